//! Searches that go to the engine and to the [`Model`] alike, and answers in a form that both are compared in.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use antiphon_proto::v1::*;
use tonic::Status;

use crate::client::Client;
use crate::model::{Entry, Model, Words, sorted};
use crate::sample;

/// What is searched for.
#[derive(Debug, Clone)]
pub enum Ask {
    Vector(Vec<f32>),
    Keyword(Words),
    Hybrid { vector: Vec<f32>, words: Words, fusion: Fusion },
    Several { queries: Vec<One>, fusion: Fusion },
}

/// One query of several: by a vector, by words, or by both.
#[derive(Debug, Clone)]
pub struct One {
    pub vector: Option<Vec<f32>>,
    pub words: Option<Words>,
}

/// One stretch of a ranking, under a window of `max_result_window` matches.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    pub max_result_window: usize,
    pub start: usize,
    pub size: usize,
}

/// An answer, whoever gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub matches: Vec<Found>,
    pub has_more: bool,
    pub last_page: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub key: String,
    pub score: Bits,
    pub rank: u32,
    pub channel: Channel,
    /// Channel, query, rank and score.
    pub places: Vec<Place>,
}

/// Channel, query, rank and score.
pub type Place = (Channel, u32, u32, Bits);

/// A score that equals another only bit by bit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Bits(u64);

impl Bits {
    pub fn of(score: f64) -> Self {
        Self(score.to_bits())
    }

    pub fn score(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.score())
    }
}

impl From<&SearchResponse> for Answer {
    fn from(response: &SearchResponse) -> Self {
        let found = |found: &Match| Found {
            key: found.key.clone(),
            score: Bits::of(found.score),
            rank: found.rank,
            channel: found.channel(),
            places: found
                .places
                .iter()
                .map(|place| (place.channel(), place.query, place.rank, Bits::of(place.score)))
                .collect(),
        };
        let matches = response.matches.iter().map(found).collect();
        Self { matches, has_more: response.has_more, last_page: response.last_page }
    }
}

impl Answer {
    pub fn keys(&self) -> Vec<&str> {
        self.matches.iter().map(|found| found.key.as_str()).collect()
    }
}

impl Words {
    /// One of the words in any field.
    pub fn any(text: &str) -> Self {
        Self { text: text.into(), fields: Vec::new(), operator: Operator::Or }
    }

    fn keyword(&self) -> Option<Keyword> {
        Some(Keyword { operator: self.operator as i32, ..Keyword::default() })
    }
}

impl Ask {
    /// A hybrid search by a method with its defaults.
    pub fn fused(vector: &[f32], text: &str, method: FusionMethod) -> Self {
        let fusion = Fusion { method: method as i32, ..Fusion::default() };
        Self::Hybrid { vector: vector.to_vec(), words: Words::any(text), fusion }
    }

    pub async fn send(&self, client: &Client, options: SearchOptions) -> Result<SearchResponse, Status> {
        match self {
            Self::Vector(vector) => client.search_vector(sample::vector_search(vector, options)).await,
            Self::Keyword(words) => {
                let request = sample::keyword_search(&words.text, options);
                let fields = words.fields.clone();
                client
                    .search_keyword(SearchKeywordRequest { text_fields: fields, keyword: words.keyword(), ..request })
                    .await
            }
            Self::Hybrid { vector, words, fusion } => {
                let request = SearchHybridRequest {
                    text_fields: words.fields.clone(),
                    keyword: words.keyword(),
                    fusion: Some(fusion.clone()),
                    ..sample::hybrid_search(vector, &words.text, options)
                };
                client.search_hybrid(request).await
            }
            Self::Several { queries, fusion } => send_several(client, queries, fusion.clone(), options).await,
        }
    }

    /// The lists that the model makes, in their order.
    fn lists(&self, model: &Model) -> Vec<List> {
        let vector =
            |query, values: &[f32]| List { channel: Channel::Vector, query, entries: model.vector_list(values) };
        let keyword = |query, words| List { channel: Channel::Keyword, query, entries: model.keyword_list(words) };
        match self {
            Self::Vector(values) => vec![vector(0, values)],
            Self::Keyword(words) => vec![keyword(0, words)],
            Self::Hybrid { vector: values, words, .. } => vec![vector(0, values), keyword(0, words)],
            Self::Several { queries, .. } => (0..)
                .zip(queries)
                .flat_map(|(index, one)| {
                    let vectors = one.vector.iter().map(move |values| vector(index, values));
                    vectors.chain(one.words.iter().map(move |words| keyword(index, words))).collect::<Vec<_>>()
                })
                .collect(),
        }
    }

    /// What the model says, whose ranking is made anew for each stretch.
    pub fn answer(&self, model: &Model, stretch: Stretch) -> Answer {
        let Stretch { max_result_window, start, size } = stretch;
        let end = start + size;
        let reaches = |score: f64| model.min_score.is_none_or(|least| score >= least);
        let mut lists = self.lists(model);
        let none = Fusion::default();
        let fusion = match self {
            Self::Hybrid { fusion, .. } | Self::Several { fusion, .. } => fusion,
            Self::Vector(_) | Self::Keyword(_) => &none,
        };
        let ranking = match fusion.method() {
            FusionMethod::Unspecified | FusionMethod::TurnTaking => {
                let first = if fusion.first_channel() == Channel::Keyword { Channel::Keyword } else { Channel::Vector };
                lists.iter_mut().for_each(|list| list.entries.retain(|entry| reaches(entry.score)));
                by_turns(&lists, first, end + 1)
            }
            _ => {
                lists.iter_mut().for_each(|list| list.entries.truncate(max_result_window.max(end + 1)));
                by_scores(&lists, fusion).into_iter().filter(|placed| reaches(placed.score)).collect()
            }
        };
        let reach = max_result_window - 1;
        let has_more = end + size <= reach && ranking.len() > end;
        let page = ranking.into_iter().zip(1..).skip(start).take(size);
        let matches = page
            .map(|(placed, rank)| Found {
                key: model.key(&placed.folded).to_owned(),
                score: Bits::of(placed.score),
                rank,
                channel: placed.channel,
                places: placed.places,
            })
            .collect();
        Answer { matches, has_more, last_page: (reach / size).max(1) as u32 }
    }
}

/// By the narrowest method that takes all the queries.
async fn send_several(
    client: &Client,
    queries: &[One],
    fusion: Fusion,
    options: SearchOptions,
) -> Result<SearchResponse, Status> {
    let (fusion, options) = (Some(fusion), Some(options));
    if queries.iter().all(|one| one.words.is_none()) {
        let queries = queries.iter().map(|one| VectorQuery {
            vector: one.vector.as_deref().map(antiphon_proto::vector::to_proto),
            vector_field: String::new(),
        });
        let request =
            SearchVectorRequest { queries: queries.collect(), fusion, options, ..SearchVectorRequest::default() };
        return client.search_vector(request).await;
    }
    if queries.iter().all(|one| one.vector.is_none()) {
        let queries = queries.iter().filter_map(|one| one.words.as_ref()).map(|words| KeywordQuery {
            text: words.text.clone(),
            text_fields: words.fields.clone(),
            keyword: words.keyword(),
        });
        let request =
            SearchKeywordRequest { queries: queries.collect(), fusion, options, ..SearchKeywordRequest::default() };
        return client.search_keyword(request).await;
    }
    let queries = queries.iter().map(|one| HybridQuery {
        vector: one.vector.as_deref().map(antiphon_proto::vector::to_proto),
        vector_field: String::new(),
        text: one.words.as_ref().map(|words| words.text.clone()),
        text_fields: one.words.as_ref().map(|words| words.fields.clone()).unwrap_or_default(),
        keyword: one.words.as_ref().and_then(Words::keyword),
    });
    let request = SearchHybridRequest { queries: queries.collect(), fusion, options, ..SearchHybridRequest::default() };
    client.search_hybrid(request).await
}

/// One ranked list, whole.
struct List {
    channel: Channel,
    query: u32,
    entries: Vec<Entry>,
}

struct Placed {
    folded: String,
    score: f64,
    channel: Channel,
    places: Vec<Place>,
}

/// Where every key stands within the first `window` matches of each list, in the order of the lists.
fn places_of(lists: &[List], window: usize) -> BTreeMap<String, Vec<Place>> {
    let mut places: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for list in lists {
        for (entry, rank) in list.entries.iter().zip(1..).take(window) {
            let place = (list.channel, list.query, rank, Bits::of(entry.score));
            places.entry(entry.folded.clone()).or_default().push(place);
        }
    }
    places
}

/// The whole ranking by turns: the heads of the lists, one after the other, each key where it comes first.
fn by_turns(lists: &[List], first: Channel, window: usize) -> Vec<Placed> {
    let places = places_of(lists, window);
    let longest = lists.iter().map(|list| list.entries.len()).max().unwrap_or(0);
    let (early, late): (Vec<_>, Vec<_>) = lists.iter().partition(|list| list.channel == first);
    let mut placed = HashSet::new();
    let mut ranking = Vec::new();
    for turn in 0..longest {
        for list in early.iter().chain(&late) {
            if let Some(entry) = list.entries.get(turn)
                && placed.insert(entry.folded.clone())
            {
                let places = places.get(&entry.folded).cloned().unwrap_or_default();
                let (folded, channel) = (entry.folded.clone(), list.channel);
                ranking.push(Placed { folded, score: entry.score, channel, places });
            }
        }
    }
    ranking
}

fn by_scores(lists: &[List], fusion: &Fusion) -> Vec<Placed> {
    let method = fusion.method();
    let weight = |list: usize| match (fusion.weights.as_slice(), method) {
        ([], FusionMethod::RelativeScore | FusionMethod::DistributionScore) => 1.0 / lists.len() as f64,
        ([], _) => 1.0,
        (weights, FusionMethod::ReciprocalRank) => weights[list],
        (weights, _) => weights[list] / weights.iter().sum::<f64>(),
    };
    let mut points: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (index, list) in lists.iter().enumerate() {
        let list = &list.entries;
        let count = list.len() as f64;
        let (low, high) = match method {
            FusionMethod::RelativeScore => (
                list.iter().map(|entry| entry.score).fold(f64::INFINITY, f64::min),
                list.iter().map(|entry| entry.score).fold(f64::NEG_INFINITY, f64::max),
            ),
            _ => {
                let mean = list.iter().fold(0.0, |sum, entry| sum + entry.score) / count;
                let variance =
                    list.iter().fold(0.0, |sum, entry| sum + (entry.score - mean) * (entry.score - mean)) / count;
                (mean - 3.0 * variance.sqrt(), mean + 3.0 * variance.sqrt())
            }
        };
        for (entry, rank) in list.iter().zip(1..) {
            let worth = match method {
                FusionMethod::ReciprocalRank => 1.0 / (f64::from(fusion.k.unwrap_or(60)) + f64::from(rank)),
                FusionMethod::MaxScore => entry.score,
                _ if low == high => f64::from(u8::from(high > 0.0)),
                _ => (entry.score - low) / (high - low),
            };
            points.entry(entry.folded.clone()).or_default().push(weight(index) * worth);
        }
    }
    let join = |points: Vec<f64>| match method {
        FusionMethod::MaxScore => points.into_iter().fold(f64::NEG_INFINITY, f64::max),
        _ => points.into_iter().fold(0.0, |sum, points| sum + points),
    };
    let fused = points.into_iter().map(|(folded, points)| Entry { folded, score: join(points) + 0.0 }).collect();
    let mut places = places_of(lists, usize::MAX);
    let place = |entry: Entry| {
        let places = places.remove(&entry.folded).unwrap_or_default();
        Placed { channel: places[0].0, folded: entry.folded, score: entry.score, places }
    };
    sorted(fused).into_iter().map(place).collect()
}
