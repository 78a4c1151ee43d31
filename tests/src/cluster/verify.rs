//! What a server shows, by every way of asking, and whether the ways agree.

use std::collections::{BTreeMap, BTreeSet};

use antiphon_proto::v1::{Consistency, SearchOptions, SearchResponse};
use rand::prelude::*;
use rand::rngs::StdRng;
use tonic::Status;

use super::workload::{generation_of, vector_of};
use crate::client::Client;
use crate::oracle::Generation;
use crate::sample::{hybrid_search, keyword_search, vector_search};

/// Most documents that one page shows.
const MOST: usize = 1000;
/// Generations and keys that are searched for one by one.
const PROBES: usize = 6;

/// The documents of a collection by key, with their generations.
pub type State = BTreeMap<String, Generation>;

/// Reads the whole of a collection that has at most 1,000 documents, by an exact search that wants them all.
pub async fn read_state(client: &Client, collection: &str) -> Result<State, Status> {
    let options = SearchOptions { exact: true, include_vectors: true, ..newest(collection, MOST) };
    let response = client.search_vector(vector_search(&vector_of("", 0), options)).await?;
    assert!(!response.has_more && response.coverage.as_ref().unwrap().failures.is_empty(), "{:?}", response.coverage);
    let mut state = State::new();
    for found in &response.matches {
        let document = found.document.as_ref().unwrap();
        assert_eq!(document.key, found.key);
        let generation = generation_of(document).unwrap_or_else(|fault| panic!("{fault}"));
        assert!(state.insert(found.key.clone(), generation).is_none(), "{} was found twice", found.key);
    }
    Ok(state)
}

/// Asks in the other ways, by key, by count, by graph, by words, by both, and says where they don't agree with a state.
/// `keys` are all that might be there.
pub async fn verify_answers(
    client: &Client,
    collection: &str,
    keys: &[String],
    state: &State,
    rng: &mut StdRng,
) -> Result<Vec<String>, Status> {
    let mut faults = Vec::new();
    let count = client.count(collection).await?;
    if count != state.len() as u64 {
        faults.push(format!("{count} documents are counted, {} are found", state.len()));
    }
    let mut got = State::new();
    for keys in keys.chunks(MOST) {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let response = client.get(collection, &keys).await?;
        for document in &response.documents {
            match generation_of(document) {
                Ok(generation) => drop(got.insert(document.key.clone(), generation)),
                Err(fault) => faults.push(fault),
            }
        }
    }
    if got != *state {
        let differ: Vec<_> = keys.iter().filter(|key| got.get(*key) != state.get(*key)).collect();
        faults.push(format!("got by key and found by search differ in {differ:?}"));
    }
    for (key, generation) in state.iter().sample(rng, PROBES) {
        let vector = vector_of(key, *generation);
        let word = format!("g{generation}");
        let options = newest(collection, 5);
        let by_vector = client.search_vector(vector_search(&vector, options.clone())).await?;
        let by_word = client.search_keyword(keyword_search(&word, options.clone())).await?;
        let by_both = client.search_hybrid(hybrid_search(&vector, &word, options)).await?;
        if found(&by_vector).first() != Some(key) {
            faults.push(format!("{key} is not found by its own vector: {by_vector:?}"));
        }
        if found(&by_word) != [key.as_str()] {
            faults.push(format!("the word of {key} finds {:?}", found(&by_word)));
        }
        let fused: BTreeSet<String> = found(&by_both).into_iter().collect();
        if found(&by_both).first() != Some(key) || fused.len() != by_both.matches.len() {
            faults.push(format!("{key} is not first by vector and word: {:?}", found(&by_both)));
        }
    }
    Ok(faults)
}

fn newest(collection: &str, page_size: usize) -> SearchOptions {
    let consistency = Consistency::Refresh as i32;
    SearchOptions {
        collection: collection.into(),
        page_size: page_size as u32,
        consistency,
        ..SearchOptions::default()
    }
}

fn found(response: &SearchResponse) -> Vec<String> {
    response.matches.iter().map(|found| found.key.clone()).collect()
}
