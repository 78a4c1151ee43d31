//! Flags of `antiphon search`.

use std::path::PathBuf;

use antiphon_proto::v1;
use clap::ValueEnum;

use super::ConnectionArgs;
use crate::queries::{Query, parse_query};

/// `antiphon search`.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("by_vector").args(["vector", "embed", "embed_only"]))]
#[command(group = clap::ArgGroup::new("texts").args(["text", "queries", "queries_file"]))]
#[command(group = clap::ArgGroup::new("lists").args(["vector", "embed", "queries", "queries_file"]).multiple(true))]
pub(crate) struct SearchArgs {
    /// Words to search for.
    #[arg(value_name = "TEXT", required_unless_present_any = ["vector", "queries", "queries_file"])]
    pub(crate) text: Option<String>,
    /// The collection.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) collection: String,
    /// A file that holds the query's vector as a JSON list of numbers; - means standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) vector: Option<PathBuf>,
    /// Search by the meaning of the text as well: the server makes its vector.
    #[arg(long, requires = "texts", conflicts_with = "vector")]
    pub(crate) embed: bool,
    /// Search by the meaning of the text alone, not by its words.
    #[arg(long, requires = "texts", conflicts_with_all = ["vector", "embed", "text_fields", "all_words", "query_syntax"])]
    pub(crate) embed_only: bool,
    /// Instead of TEXT and --vector: one query of several, as JSON: {"text": "oxygen", "text_fields": ["title"]},
    /// {"vector": [0.1, 0.2], "vector_field": "meaning"}, or both in one. "keyword": {"operator": "AND", "max_terms": 8,
    /// "min_term_chars": 2} or {"syntax": "QUERY"} goes with a text. With --embed and --embed-only each has a text and no
    /// vector. At most 16.
    #[arg(
        id = "queries",
        long = "query",
        value_name = "JSON",
        value_parser = parse_query,
        conflicts_with_all = ["text", "vector", "vector_field"]
    )]
    pub(crate) queries: Vec<Query>,
    /// The same from a file with a JSON list of queries; - means standard input.
    #[arg(long = "queries", id = "queries_file", value_name = "FILE",
        conflicts_with_all = ["text", "vector", "vector_field", "queries"])]
    pub(crate) queries_file: Option<PathBuf>,
    /// The vector field to search; may be left out where there is only one.
    #[arg(long, value_name = "NAME", requires = "by_vector")]
    pub(crate) vector_field: Option<String>,
    /// A text field to search; all if left out. May be given several times.
    #[arg(long = "text-field", value_name = "NAME", requires = "text")]
    pub(crate) text_fields: Vec<String>,
    /// Only documents that hold every word.
    #[arg(long, requires = "text")]
    pub(crate) all_words: bool,
    /// Read the text with operators: +word, -word, AND, OR, NOT, parentheses, field:word.
    #[arg(long, requires = "text")]
    pub(crate) query_syntax: bool,
    /// Only documents that meet this condition, as JSON: {"equal": {"field": "section", "value": "games"}}, and alike
    /// any_of with values, range with gt, gte, lt, lte, exists, all_of and some_of with a list, not. Whole numbers are
    /// integers, others doubles; {"timestamp": "2024-05-01T00:00:00Z"} is a time, {"double": 3} a double.
    #[arg(long, value_name = "JSON", value_parser = crate::filter::parse_filter)]
    pub(crate) filter: Option<v1::Filter>,
    /// Leave out matches whose score is lower.
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    pub(crate) min_score: Option<f64>,
    /// The page, from 1.
    #[arg(long, value_name = "N", conflicts_with = "skip")]
    pub(crate) page: Option<u32>,
    /// Matches on a page [default: 10].
    #[arg(long, value_name = "K")]
    pub(crate) page_size: Option<u32>,
    /// Instead of a page: how many matches to leave out.
    #[arg(long, value_name = "N")]
    pub(crate) skip: Option<u32>,
    /// How to make one ranking of several, where words and a vector or several queries are searched for.
    #[arg(long, value_enum, value_name = "METHOD", requires = "lists")]
    pub(crate) fusion: Option<FusionArg>,
    /// The weight of each list in a fusion by score, separated by commas: the vector's before that of the words, and so on
    /// for each query.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', requires = "fusion")]
    pub(crate) weights: Vec<f64>,
    /// The constant of --fusion rrf [default: 60].
    #[arg(long, value_name = "K", requires = "fusion")]
    pub(crate) fusion_k: Option<u32>,
    /// Which lists have the first turns: the vectors' or those of words [default: vector].
    #[arg(long, value_enum, value_name = "CHANNEL", requires = "lists")]
    pub(crate) first_channel: Option<ChannelArg>,
    /// Compare with every vector rather than ask the graph.
    #[arg(long)]
    pub(crate) exact: bool,
    /// See every write acknowledged so far, whoever took it.
    #[arg(long)]
    pub(crate) refresh: bool,
    /// See at least this write: the version that the API answered to it.
    #[arg(long, value_name = "VERSION")]
    pub(crate) at_least: Option<String>,
    /// Answer though a shard does not, and say what is missing.
    #[arg(long)]
    pub(crate) partial: bool,
    /// Search the same state of the data as an earlier search, which printed this token.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) snapshot: Option<String>,
    /// Fields to return, separated by commas; all if left out.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) fields: Vec<String>,
    /// Return the documents' vectors too; --json shows them.
    #[arg(long, requires = "json")]
    pub(crate) vectors: bool,
    /// Cut returned strings to so many characters.
    #[arg(long, value_name = "N")]
    pub(crate) text_limit: Option<u32>,
    /// Print the whole answer as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// Names of fusion methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FusionArg {
    /// The best by vector, the best by keywords, the second best by vector and so on.
    TurnTaking,
    /// Reciprocal ranks, 1 / (60 + rank), summed.
    Rrf,
    /// The highest score, as it is.
    Max,
    /// Scores mapped to 0..1 by their lowest and highest, summed.
    Relative,
    /// Scores mapped to 0..1 by mean and standard deviation, summed.
    Distribution,
}

/// Names of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChannelArg {
    /// Lists by vectors.
    Vector,
    /// Lists by words.
    Keyword,
}

impl ChannelArg {
    /// The API's name for it.
    pub(crate) fn channel(self) -> v1::Channel {
        match self {
            ChannelArg::Vector => v1::Channel::Vector,
            ChannelArg::Keyword => v1::Channel::Keyword,
        }
    }
}

impl FusionArg {
    /// The API's name for it.
    pub(crate) fn method(self) -> v1::FusionMethod {
        match self {
            FusionArg::TurnTaking => v1::FusionMethod::TurnTaking,
            FusionArg::Rrf => v1::FusionMethod::ReciprocalRank,
            FusionArg::Max => v1::FusionMethod::MaxScore,
            FusionArg::Relative => v1::FusionMethod::RelativeScore,
            FusionArg::Distribution => v1::FusionMethod::DistributionScore,
        }
    }
}
