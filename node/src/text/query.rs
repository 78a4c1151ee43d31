//! A keyword query as every segment of a collection gets it: terms, and the statistics of the whole collection.

/// One term of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryTerm {
    /// Index of the text field.
    pub field: usize,
    /// The term, as [`Analyzer::terms`](super::Analyzer::terms) gives it.
    pub text: String,
    /// Which word of the query it stands for: with `require_all_groups` a row must hold one term of each group.
    pub group: u32,
    /// Live rows of the collection that hold the term in that field. May be 0, may lag; more than the field's rows
    /// counts as all of them.
    pub doc_freq: u64,
}

/// What the scores need to know of one text field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldStatistics {
    /// Live rows of the collection.
    pub num_docs: u64,
    /// Tokens of this field in them, exactly.
    pub num_tokens: u64,
    /// Factor of the field's scores; finite, at least 0.
    pub boost: f32,
}

/// A keyword query. The order of the terms is the order in which their scores are summed.
#[derive(Debug, Clone, PartialEq)]
pub struct KeywordQuery {
    /// The terms. A term given twice counts twice.
    pub terms: Vec<QueryTerm>,
    /// By index of the text field.
    pub fields: Vec<FieldStatistics>,
    /// Whether a row must hold a term of every group; else of one.
    pub require_all_groups: bool,
}
