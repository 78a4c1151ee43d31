//! Made documents, any number of them, without a file: vectors in clusters, short texts of words by Zipf's law.
//!
//! Row and seed give the document, so nothing is held.

use antiphon_proto::v1::Document;
use antiphon_proto::vector;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::documents::string;
use crate::queries::{Query, gauss, normalise};

/// Expected length of what is added to a centre of unit length.
const SPREAD: f32 = 0.7;
/// Different words.
const VOCABULARY: f64 = 50_000.0;

/// Makes documents.
#[derive(Debug, Clone)]
pub struct Maker {
    dims: usize,
    centres: Vec<Vec<f32>>,
    seed: u64,
}

impl Maker {
    /// A maker of vectors around so many centres.
    pub fn new(dims: usize, num_centres: usize, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let centre = |_| {
            let mut centre: Vec<f32> = (0..dims).map(|_| gauss(&mut rng)).collect();
            normalise(&mut centre);
            centre
        };
        Self { dims, centres: (0..num_centres.max(1)).map(centre).collect(), seed }
    }

    fn rng(&self, row: u64) -> StdRng {
        StdRng::seed_from_u64(self.seed ^ row.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn vector(&self, rng: &mut StdRng) -> Vec<f32> {
        let sigma = SPREAD / (self.dims as f32).sqrt();
        let mut vector = self.centres[rng.random_range(0..self.centres.len())].clone();
        vector.iter_mut().for_each(|value| *value += sigma * gauss(rng));
        normalise(&mut vector);
        vector
    }

    fn text(rng: &mut StdRng, num_words: usize) -> String {
        let word = |_| {
            let rank = (VOCABULARY.ln() * rng.random::<f64>()).exp() as u32;
            spell(rank)
        };
        (0..num_words).map(word).collect::<Vec<_>>().join(" ")
    }

    /// The document of a row, with the vector `v` and the fields `title` and `text`.
    pub fn document(&self, row: u64) -> Document {
        let mut rng = self.rng(row);
        let mut document = Document { key: format!("doc-{row:08}"), ..Document::default() };
        document.vectors.insert("v".into(), vector::to_proto(&self.vector(&mut rng)));
        document.fields.insert("title".into(), string(&Self::text(&mut rng, 3)));
        let num_words = rng.random_range(6..16);
        document.fields.insert("text".into(), string(&Self::text(&mut rng, num_words)));
        document
    }

    /// Queries of the same kind as the documents, none of them a document.
    pub fn queries(&self, count: usize) -> Vec<Query> {
        let make = |number: u64| {
            let mut rng = self.rng(!number);
            let vector = self.vector(&mut rng);
            let num_words = rng.random_range(3..6);
            Query { text: Self::text(&mut rng, num_words), vector }
        };
        (0..count as u64).map(make).collect()
    }
}

/// A word for a number, pronounceable and of its own.
fn spell(mut number: u32) -> String {
    const CONSONANTS: &[u8; 16] = b"bcdfghklmnprstvz";
    const VOWELS: &[u8; 5] = b"aeiou";
    let mut word = String::new();
    loop {
        word.push(char::from(CONSONANTS[number as usize % 16]));
        word.push(char::from(VOWELS[number as usize / 16 % 5]));
        number /= 80;
        if number == 0 {
            return word;
        }
    }
}
