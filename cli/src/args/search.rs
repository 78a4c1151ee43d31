//! Flags of `antiphon search`.

use std::path::PathBuf;

use antiphon_proto::v1;
use clap::ValueEnum;

use super::ConnectionArgs;

/// `antiphon search`.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("by_vector").args(["vector", "embed", "embed_only"]))]
pub(crate) struct SearchArgs {
    /// Words to search for.
    #[arg(value_name = "TEXT", required_unless_present = "vector")]
    pub(crate) text: Option<String>,
    /// The collection.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) collection: String,
    /// A file that holds the query's vector as a JSON list of numbers; - means standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) vector: Option<PathBuf>,
    /// Search by the meaning of the text as well: the server makes its vector.
    #[arg(long, requires = "text", conflicts_with = "vector")]
    pub(crate) embed: bool,
    /// Search by the meaning of the text alone, not by its words.
    #[arg(long, requires = "text", conflicts_with_all = ["vector", "embed", "fusion", "text_fields", "all_words"])]
    pub(crate) embed_only: bool,
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
    /// How to make one ranking of two, where words and a vector are searched for.
    #[arg(long, value_enum, value_name = "METHOD", requires = "text", requires = "by_vector")]
    pub(crate) fusion: Option<FusionArg>,
    /// Compare with every vector rather than ask the graph.
    #[arg(long)]
    pub(crate) exact: bool,
    /// See every write acknowledged so far, whoever took it.
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Answer though a shard does not, and say what is missing.
    #[arg(long)]
    pub(crate) partial: bool,
    /// Search the same state of the data as an earlier search, which printed this token.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) snapshot: Option<String>,
    /// Fields to return, separated by commas; all if left out.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) fields: Vec<String>,
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
