//! Every kind of file in a store cut off, with flipped bits, lost, or in the place of another: a server over it says so, or
//! gives the right answer. It never gives a wrong one, never crashes and never hangs.
//!
//! A store is prepared once ([`prepared`]). Each case ([`cases`]) damages a copy, opens it, and asks everything ([`answers`])
//! twice: PARTIAL_REFUSE and PARTIAL_ALLOW.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
mod cases;
mod prepared;

use std::sync::Arc;
use std::time::Duration;

use antiphon_proto::error::ErrorKind;
use antiphon_proto::v1::{Document, Partial};
use antiphon_store::{Log, ManifestVersion, Manifests, Seq, Store, StoreErrorKind};
use antiphon_tests::random::Random;
use futures::{StreamExt, stream};

use crate::answers::{Answer, ask};
use crate::cases::{Case, Effect, apply, catalog_cases, log_cases, manifest_cases, segment_cases, shard_dirs};
use crate::prepared::{Prepared, copy, open, prepare};

/// Longest that one case may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs one case and says what is wrong.
async fn run(prepared: &Prepared, case: &Case) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    copy(prepared.folder.path(), folder.path());
    let file = folder.path().join(&case.file);
    apply(&file, folder.path(), &case.damage);
    let mut faults = Vec::new();
    let server = match open(folder.path()).await {
        Ok(server) => server,
        Err(StoreErrorKind::Corrupt) if case.effect == Effect::NoServer => return faults,
        Err(kind) => return vec![format!("no server, for {kind:?}")],
    };
    if case.effect == Effect::NoServer {
        faults.push("a server".to_owned());
    }
    for (name, right) in &prepared.right {
        let right = if case.effect == Effect::LastWriteGone && *name == "one" { &prepared.before_last } else { right };
        for partial in [Partial::Refuse, Partial::Allow] {
            let answers = ask(&server.client, name, partial).await;
            let mut is_refused = false;
            for ((what, right), (_, answer)) in right.iter().zip(&answers) {
                let found = match answer {
                    Answer::Whole(..) if answer == right => continue,
                    Answer::Whole(..) => Some(format!("is wrong: {answer:?} instead of {right:?}")),
                    Answer::Part(documents, reasons) => {
                        is_refused = true;
                        let stray = documents.iter().find(|document| !is_right(prepared, name, document));
                        let is_right = partial == Partial::Allow && reasons.iter().all(|reason| reason == "CORRUPTION");
                        stray.map(|document| format!("has {document:?}")).or((!is_right).then(|| format!("{answer:?}")))
                    }
                    Answer::Failed(ErrorKind::Corruption, _) => {
                        is_refused = true;
                        None
                    }
                    Answer::Failed(ErrorKind::CollectionNotFound, _)
                        if case.effect == Effect::OneUnknown && *name == "one" =>
                    {
                        None
                    }
                    Answer::Failed(..) => Some(format!("fails: {answer:?}")),
                };
                faults.extend(found.map(|found| format!("{name}, {what}, {partial:?}: {found}")));
            }
            let must_be = case.effect == Effect::Refused(name);
            if is_refused != must_be {
                faults.push(format!("{name}, {partial:?}: refused is {is_refused}: {answers:?}"));
            }
        }
    }
    server.stop().await;
    if case.effect == Effect::OneUnknown {
        // Whoever finds the lost file again has everything again.
        std::fs::copy(prepared.folder.path().join(&case.file), &file).unwrap();
        let server = open(folder.path()).await.unwrap();
        if ask(&server.client, "one", Partial::Refuse).await != prepared.right["one"] {
            faults.push("the data of a collection that the catalog does not name was deleted".to_owned());
        }
        server.stop().await;
    }
    faults
}

fn is_right(prepared: &Prepared, name: &str, document: &Document) -> bool {
    match &prepared.right[name][0] {
        (_, Answer::Whole(_, all)) => all.contains(document),
        _ => false,
    }
}

async fn run_all(prepared: Prepared, cases: Vec<Case>) {
    let prepared = Arc::new(prepared);
    let num_cases = cases.len();
    let outcomes = stream::iter(cases).map(|case| {
        let prepared = Arc::clone(&prepared);
        async move {
            let words = format!("{}: {:?}", case.file.display(), case.damage);
            let work = tokio::spawn(async move { tokio::time::timeout(TIMEOUT, run(&prepared, &case)).await });
            let faults = match work.await {
                Ok(Ok(faults)) => faults,
                Ok(Err(_)) => vec![format!("hangs for more than {TIMEOUT:?}")],
                Err(panic) => vec![format!("panics: {panic}")],
            };
            faults.into_iter().map(|fault| format!("{words}: {fault}")).collect::<Vec<_>>()
        }
    });
    let faults: Vec<String> = outcomes.buffer_unordered(4).collect::<Vec<_>>().await.into_iter().flatten().collect();
    assert!(faults.is_empty(), "{} faults in {num_cases} cases:\n{}", faults.len(), faults.join("\n"));
    eprintln!("{num_cases} cases");
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_catalogs_manifests_and_log_entries_are_noticed() {
    let mut random = Random::seeded(rand::random());
    let prepared = prepare().await;
    let folder = prepared.folder.path();
    let mut cases = catalog_cases(folder, &mut random).await;
    cases.extend(manifest_cases(folder, &mut random).await);
    cases.extend(log_cases(folder, &mut random).await);
    run_all(prepared, cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_segments_are_set_aside() {
    let mut random = Random::seeded(rand::random());
    let prepared = prepare().await;
    let cases = segment_cases(prepared.folder.path(), &mut random).await;
    run_all(prepared, cases).await;
}

/// The one before would be in force, and what it covers less is no longer in the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_manifest_whose_log_was_collected_is_noticed() {
    let prepared = prepare().await;
    let folder = prepared.folder.path();
    let (_, shard) = shard_dirs(folder).await.into_iter().find(|(name, _)| *name == "one").unwrap();
    let store = Store::open_dir(folder.to_owned()).unwrap();
    let (log, manifests) = (Log::new(store.clone(), shard.clone()), Manifests::new(store.clone(), shard.clone()));
    let (version, manifest) = manifests.newest().await.unwrap().unwrap();
    // As the collector does it: the last of the covered entries stays. And nothing was written since.
    log.delete_through(Seq(manifest.covered_seq - 1)).await.unwrap();
    for seq in log.positions_after(Seq(manifest.covered_seq)).await.unwrap() {
        std::fs::remove_file(folder.join(shard.path()).join("log").join(seq.name())).unwrap();
    }
    let server = open(folder).await.unwrap();
    let whole = ask(&server.client, "one", Partial::Refuse).await;
    assert!(whole.iter().all(|(_, answer)| matches!(answer, Answer::Whole(..))), "{whole:?}");
    server.stop().await;
    for lost in (1..=version.0).rev() {
        std::fs::remove_file(folder.join(shard.path()).join("manifest").join(ManifestVersion(lost).name())).unwrap();
        let server = open(folder).await.unwrap();
        for (what, answer) in ask(&server.client, "one", Partial::Refuse).await {
            assert!(matches!(answer, Answer::Failed(ErrorKind::Corruption, _)), "{lost}, {what}: {answer:?}");
        }
        assert_eq!(ask(&server.client, "two", Partial::Refuse).await, prepared.right["two"]);
        server.stop().await;
    }
}
