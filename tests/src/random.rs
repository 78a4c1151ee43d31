//! Random documents and questions in which the hard cases are frequent: equal scores, duplicate vectors, keys that differ by
//! case, documents without vector or text, texts of very different lengths.

use antiphon_proto::v1::*;
use antiphon_proto::vector;
use rand::prelude::*;
use rand::rngs::StdRng;

use crate::ask::{Ask, One};
use crate::model::{Words, fold};
use crate::sample::text;

/// Words of the texts; the first are the most frequent.
const VOCABULARY: [&str; 16] = [
    "red", "apple", "sky", "sea", "car", "tree", "blue", "stone", "rain", "wind", "gold", "iron", "owl", "fox", "elk",
    "yew",
];

/// All methods of fusion.
const METHODS: [FusionMethod; 6] = [
    FusionMethod::Unspecified,
    FusionMethod::TurnTaking,
    FusionMethod::ReciprocalRank,
    FusionMethod::MaxScore,
    FusionMethod::RelativeScore,
    FusionMethod::DistributionScore,
];

/// A source of randomness that prints its seed when the test that holds it fails.
pub struct Random {
    pub rng: StdRng,
    seed: u64,
}

impl Random {
    /// From ANTIPHON_TEST_SEED, or else from `seed`.
    pub fn seeded(seed: u64) -> Self {
        let seed = std::env::var("ANTIPHON_TEST_SEED").ok().map_or(seed, |given| given.parse().unwrap());
        Self { rng: StdRng::seed_from_u64(seed), seed }
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.rng.random_range(0..end)
    }

    /// A number that is mostly small.
    fn skewed(&mut self, end: usize) -> usize {
        let unit: f64 = self.rng.random_range(0.0..1.0);
        (unit * unit * end as f64) as usize
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// One of `num_keys` keys, in any spelling.
    pub fn key(&mut self, num_keys: usize) -> String {
        let number = self.below(num_keys);
        let stem =
            ["Doc", "straße", "Ключ", "éclair", "ı", "北京"][if number.is_multiple_of(3) { number / 3 % 6 } else { 0 }];
        self.respelled(&format!("{stem}-{number}"))
    }

    /// The same key with other letters in upper case.
    pub fn respelled(&mut self, key: &str) -> String {
        let mut flip = |c: char| {
            let other = if c.is_lowercase() { c.to_uppercase().next() } else { c.to_lowercase().next() };
            other.filter(|other| fold(&other.to_string()) == fold(&c.to_string()) && self.chance(0.3)).unwrap_or(c)
        };
        key.chars().map(&mut flip).collect()
    }

    /// Small whole numbers, so that many scores tie and all of them are exact.
    pub fn vector(&mut self, dims: usize, metric: Metric) -> Vec<f32> {
        loop {
            let values: Vec<f32> = (0..dims).map(|_| self.rng.random_range(-2i8..=2) as f32).collect();
            if !matches!(metric, Metric::Cosine | Metric::Unspecified) || values.iter().any(|value| *value != 0.0) {
                return values;
            }
        }
    }

    /// Some words, often the frequent ones, seldom very many.
    pub fn words(&mut self, most: usize) -> String {
        let most = if self.chance(0.05) { most * 12 } else { most };
        let count = self.skewed(most + 1);
        let words: Vec<String> = (0..count).map(|_| self.word()).collect();
        words.join(if self.chance(0.9) { " " } else { ", " })
    }

    fn word(&mut self) -> String {
        let word = VOCABULARY[self.skewed(VOCABULARY.len())];
        if self.chance(0.1) { word.to_uppercase() } else { word.to_owned() }
    }

    /// A document with vector `v` and texts `t` and `u`, any of which may be missing.
    pub fn document(&mut self, num_keys: usize, dims: usize, metric: Metric) -> Document {
        let mut document = Document { key: self.key(num_keys), ..Document::default() };
        if self.chance(0.8) {
            let values = self.vector(dims, metric);
            let sent = if self.chance(0.5) {
                vector::to_proto(&values)
            } else {
                Vector { kind: Some(antiphon_proto::v1::vector::Kind::Floats(Floats { values })) }
            };
            document.vectors.insert("v".into(), sent);
        }
        for (field, most) in [("t", 8), ("u", 3)] {
            if self.chance(0.75) {
                let value = if self.chance(0.9) {
                    text(&self.words(most))
                } else {
                    let values = vec![text(&self.words(most)), text(&self.words(2))];
                    Value { kind: Some(value::Kind::List(ValueList { values })) }
                };
                document.fields.insert(field.into(), value);
            }
        }
        document
    }

    /// A keyword query: frequent, rare, unknown and repeated words; sometimes none.
    pub fn query(&mut self) -> Words {
        let mut words: Vec<String> = (0..self.below(5)).map(|_| self.word()).collect();
        if self.chance(0.2) {
            words.push("nowhere".into());
        }
        if self.chance(0.2) {
            words.extend(words.first().cloned());
        }
        let fields = if self.chance(0.3) { vec![self.pick(&["t", "u"]).to_owned()] } else { Vec::new() };
        let operator = if self.chance(0.25) { Operator::And } else { Operator::Or };
        Words { text: words.join(" "), fields, operator }
    }

    /// A search of every kind, hybrid ones by every method.
    pub fn asks(&mut self, dims: usize, metric: Metric) -> Vec<Ask> {
        let (vector, words) = (self.vector(dims, metric), self.query());
        let mut asks = vec![Ask::Vector(vector.clone()), Ask::Keyword(words.clone())];
        for method in METHODS {
            let by_scores = !matches!(method, FusionMethod::Unspecified | FusionMethod::TurnTaking);
            let mut fusion = Fusion { method: method as i32, ..Fusion::default() };
            if method == FusionMethod::TurnTaking {
                fusion.first_channel = self.pick(&[Channel::Vector, Channel::Keyword]) as i32;
            }
            if method == FusionMethod::ReciprocalRank && self.chance(0.5) {
                fusion.k = Some(self.pick(&[1, 10, 59]));
            }
            if by_scores && method != FusionMethod::MaxScore && self.chance(0.5) {
                fusion.weights = self.pick(&[vec![1.0, 3.0], vec![0.7, 0.3], vec![0.0, 2.0]]);
            }
            asks.push(Ask::Hybrid { vector: vector.clone(), words: words.clone(), fusion });
        }
        asks.extend(METHODS.map(|method| self.several(dims, metric, method)));
        asks
    }

    /// A search of one to five queries: vectors, texts, or either and both, some of them twice.
    fn several(&mut self, dims: usize, metric: Metric, method: FusionMethod) -> Ask {
        let kind = self.below(3);
        let mut queries: Vec<One> = Vec::new();
        for _ in 0..1 + self.below(5) {
            if self.chance(0.1)
                && let Some(same) = queries.first().cloned()
            {
                queries.push(same);
                continue;
            }
            let (by_vector, by_words) =
                [(true, false), (false, true), self.pick(&[(true, true), (true, false), (false, true)])][kind];
            queries.push(One {
                vector: by_vector.then(|| self.vector(dims, metric)),
                words: by_words.then(|| self.query()),
            });
        }
        let has = |channel| {
            queries.iter().any(|one| match channel {
                Channel::Vector => one.vector.is_some(),
                _ => one.words.is_some(),
            })
        };
        let num_lists =
            queries.iter().map(|one| usize::from(one.vector.is_some()) + usize::from(one.words.is_some())).sum();
        let by_scores = !matches!(method, FusionMethod::Unspecified | FusionMethod::TurnTaking);
        let mut fusion = Fusion { method: method as i32, ..Fusion::default() };
        if method == FusionMethod::TurnTaking {
            let channel = self.pick(&[Channel::Vector, Channel::Keyword]);
            fusion.first_channel = if has(channel) { channel } else { Channel::Unspecified } as i32;
        }
        if by_scores && method != FusionMethod::MaxScore && self.chance(0.6) {
            fusion.weights = (0..num_lists).map(|_| self.pick(&[0.5, 1.0, 2.0, 3.25])).collect();
        }
        Ask::Several { queries, fusion }
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to see this again: ANTIPHON_TEST_SEED={}", self.seed);
        }
    }
}
