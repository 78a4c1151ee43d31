//! Queries that are near the data and not in it: between two documents, with noise; words from one of their texts.
//!
//! The same seed gives the same queries.

use rand::rngs::StdRng;
use rand::seq::index::sample;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::corpus::Corpus;

/// Expected length of the noise added to the sum of two unit vectors.
const NOISE: f32 = 0.3;
/// Attempts to find a text with enough words.
const ATTEMPTS: usize = 100;

/// A vector and a text.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Query {
    /// Words.
    pub text: String,
    /// Of unit length.
    pub vector: Vec<f32>,
}

/// Makes queries: the vector is the normalised sum of two documents' vectors and of noise, the text three to five
/// different words of one of the documents, in their order.
pub fn make(corpus: &Corpus, count: usize, seed: u64) -> Vec<Query> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..count).map(|_| make_one(corpus, &mut rng)).collect()
}

fn make_one(corpus: &Corpus, rng: &mut StdRng) -> Query {
    let dims = corpus.vectors.dims;
    let (a, b) = (rng.random_range(0..corpus.len()), rng.random_range(0..corpus.len()));
    let sigma = NOISE / (dims as f32).sqrt();
    let mut vector: Vec<f32> = corpus.vectors.row(a).iter().zip(corpus.vectors.row(b)).map(|(a, b)| a + b).collect();
    vector.iter_mut().for_each(|value| *value += sigma * gauss(rng));
    normalise(&mut vector);
    let mut text = words(&corpus.entries[a].text);
    for _ in 0..ATTEMPTS {
        if text.len() >= 3 {
            break;
        }
        text = words(&corpus.entries[rng.random_range(0..corpus.len())].text);
    }
    let wanted = rng.random_range(3..=5).min(text.len());
    let mut chosen = sample(rng, text.len(), wanted).into_vec();
    chosen.sort_unstable();
    let text = chosen.into_iter().map(|index| text[index]).collect::<Vec<_>>().join(" ");
    Query { text, vector }
}

fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Brings a vector to unit length, unless it has none.
pub fn normalise(vector: &mut [f32]) {
    let norm = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
    }
}

/// A normally distributed number (Box and Muller, 1958).
pub fn gauss(rng: &mut StdRng) -> f32 {
    let (radius, angle): (f32, f32) = (1.0 - rng.random::<f32>(), rng.random::<f32>());
    (-2.0 * radius.ln()).sqrt() * (std::f32::consts::TAU * angle).cos()
}
