//! Flags of `antiphon collection`, and the small languages of --vector and --text.

use antiphon_proto::v1;
use clap::{Args, Subcommand};

use super::ConnectionArgs;

/// `antiphon collection`.
#[derive(Debug, Args)]
pub(crate) struct CollectionArgs {
    #[command(subcommand)]
    pub(crate) command: CollectionCommand,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// What to do with collections.
#[derive(Debug, Subcommand)]
pub(crate) enum CollectionCommand {
    /// Create a collection.
    Create(CreateArgs),
    /// List all collections.
    List,
    /// Show a collection.
    Show {
        /// Its name.
        name: String,
    },
    /// Add fields to a collection, and change boosts and how deep graphs are searched.
    Update(UpdateArgs),
    /// Delete a collection and all it holds, for good.
    Delete {
        /// Its name.
        name: String,
        /// Don't ask.
        #[arg(long, short)]
        yes: bool,
    },
}

/// `antiphon collection create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Its name: small letters, digits, - and _.
    pub(crate) name: String,
    /// Number of shards, 1 to 256. Fixed at creation.
    #[arg(long, default_value_t = 1)]
    pub(crate) shards: u32,
    /// How many nodes hold each shard, 1 to 8.
    #[arg(long, default_value_t = 1)]
    pub(crate) replicas: u32,
    /// A vector field, as name:dimensions[:metric[:element]]. The metric is cosine (default), dot, euclidean, or for
    /// bits hamming (their default); the graph's element float32, float16, bfloat16 (default), int8 or bit. May be given
    /// several times.
    #[arg(long = "vector", value_name = "SPEC", value_parser = parse_vector_field)]
    pub(crate) vectors: Vec<v1::VectorField>,
    /// The embedder of a vector field, as field=embedder or field=embedder:text-field,text-field…: the server makes the vectors
    /// of these text fields (all if none is named) for documents that come without one, and of query texts. May be given
    /// several times.
    #[arg(long = "embedder", value_name = "SPEC", value_parser = parse_embedder)]
    pub(crate) embedders: Vec<EmbedderSpec>,
    /// A text field, as name[:analyzer[:boost]]. The analyzer is standard (default), en, ru, zh, exact and others. May be
    /// given several times.
    #[arg(long = "text", value_name = "SPEC", value_parser = parse_text_field)]
    pub(crate) texts: Vec<v1::TextField>,
    /// A field that filters can ask for, as name:type. The type is string, integer, double, boolean or timestamp. May be
    /// given several times.
    #[arg(long = "attribute", value_name = "SPEC", value_parser = parse_attribute)]
    pub(crate) attributes: Vec<v1::AttributeField>,
    /// Let letter case tell keys apart.
    #[arg(long)]
    pub(crate) case_sensitive: bool,
}

/// `antiphon collection update`.
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Its name, or an alias.
    pub(crate) name: String,
    /// How many nodes are to hold each shard, 1 to 8.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) replicas: Option<u32>,
    /// A vector field to add, as in create. May be given several times.
    #[arg(long = "vector", value_name = "SPEC", value_parser = parse_vector_field)]
    pub(crate) vectors: Vec<v1::VectorField>,
    /// A text field to add, or one that is there with another boost, as in create. May be given several times.
    #[arg(long = "text", value_name = "SPEC", value_parser = parse_text_field)]
    pub(crate) texts: Vec<v1::TextField>,
    /// The embedder of a vector field that has none yet, as in create. May be given several times.
    #[arg(long = "embedder", value_name = "SPEC", value_parser = parse_embedder)]
    pub(crate) embedders: Vec<EmbedderSpec>,
    /// An attribute to add, as in create. May be given several times.
    #[arg(long = "attribute", value_name = "SPEC", value_parser = parse_attribute)]
    pub(crate) attributes: Vec<v1::AttributeField>,
    /// How many candidates the graph of a vector field keeps while it is searched, as name:number from 16 to 4096. May be
    /// given several times.
    #[arg(long = "expansion-search", value_name = "SPEC", value_parser = parse_expansion)]
    pub(crate) expansions: Vec<(String, u32)>,
}

/// `name:number`.
pub(crate) fn parse_expansion(spec: &str) -> Result<(String, u32), String> {
    let fault = || format!("`{spec}` is not a name and a number, as in meaning:512");
    let (name, number) = spec.split_once(':').ok_or_else(fault)?;
    Ok((name.to_owned(), number.parse().map_err(|_| fault())?))
}

/// Which embedder makes the vectors of a field, of which text fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EmbedderSpec {
    /// The vector field.
    pub(crate) field: String,
    /// The embedder's name at the server.
    pub(crate) embedder: String,
    /// The text fields; empty means all.
    pub(crate) texts: Vec<String>,
}

/// `field=embedder[:text-field,text-field…]`.
pub(crate) fn parse_embedder(spec: &str) -> Result<EmbedderSpec, String> {
    let (field, rest) = spec.split_once('=').ok_or("needs a vector field and an embedder, as in meaning=minilm")?;
    let field = part(Some(field), "a vector field before the `=`")?.to_owned();
    let (embedder, texts) = match rest.split_once(':') {
        Some((embedder, texts)) => (embedder, texts.split(',').map(str::to_owned).collect()),
        None => (rest, Vec::new()),
    };
    if texts.iter().any(String::is_empty) {
        return Err("has a text field without a name after the `:`".to_owned());
    }
    Ok(EmbedderSpec { field, embedder: part(Some(embedder), "an embedder after the `=`")?.to_owned(), texts })
}

/// `name:dimensions[:metric[:element]]`.
pub(crate) fn parse_vector_field(spec: &str) -> Result<v1::VectorField, String> {
    let mut parts = spec.split(':');
    let name = part(parts.next(), "a name")?;
    let dimensions = part(parts.next(), "a number of dimensions after the name, as in meaning:384")?;
    let dimensions = match dimensions.parse() {
        Ok(number @ 1..=65_536) => number,
        _ => return Err(format!("`{dimensions}` is no number of dimensions from 1 to 65536")),
    };
    let metric = match parts.next() {
        None | Some("") => v1::Metric::Unspecified,
        Some("cosine") => v1::Metric::Cosine,
        Some("dot") => v1::Metric::Dot,
        Some("euclidean") => v1::Metric::Euclidean,
        Some("hamming") => v1::Metric::Hamming,
        Some(other) => return Err(format!("`{other}` is no metric; there are cosine, dot, euclidean and hamming")),
    };
    let element_type = match parts.next() {
        None | Some("") => v1::ElementType::Unspecified,
        Some("float32") => v1::ElementType::Float32,
        Some("float16") => v1::ElementType::Float16,
        Some("bfloat16") => v1::ElementType::Bfloat16,
        Some("int8") => v1::ElementType::Int8,
        Some("bit") => v1::ElementType::Bit,
        Some(other) => {
            return Err(format!("`{other}` is no element type; there are float32, float16, bfloat16, int8 and bit"));
        }
    };
    nothing_more(parts.next())?;
    Ok(v1::VectorField {
        name: name.to_owned(),
        dimensions,
        metric: metric.into(),
        element_type: element_type.into(),
        hnsw: None,
        embedder: String::new(),
        embed_fields: Vec::new(),
    })
}

/// `name[:analyzer[:boost]]`. Which analyzers there are is the server's to know.
pub(crate) fn parse_text_field(spec: &str) -> Result<v1::TextField, String> {
    let mut parts = spec.split(':');
    let name = part(parts.next(), "a name")?;
    let analyzer = parts.next().unwrap_or_default();
    let boost = match parts.next() {
        None | Some("") => 0.0,
        Some(text) => match text.parse::<f32>() {
            Ok(boost) if boost > 0.0 && boost <= 1000.0 => boost,
            _ => return Err(format!("`{text}` is no boost above 0 and up to 1000")),
        },
    };
    nothing_more(parts.next())?;
    Ok(v1::TextField { name: name.to_owned(), analyzer: analyzer.to_owned(), boost })
}

/// `name:type`.
pub(crate) fn parse_attribute(spec: &str) -> Result<v1::AttributeField, String> {
    let mut parts = spec.split(':');
    let name = part(parts.next(), "a name")?;
    let attribute_type = match part(parts.next(), "a type after the name, as in year:integer")? {
        "string" => v1::AttributeType::String,
        "integer" => v1::AttributeType::Integer,
        "double" => v1::AttributeType::Double,
        "boolean" => v1::AttributeType::Boolean,
        "timestamp" => v1::AttributeType::Timestamp,
        other => {
            return Err(format!("`{other}` is no type; there are string, integer, double, boolean and timestamp"));
        }
    };
    nothing_more(parts.next())?;
    Ok(v1::AttributeField { name: name.to_owned(), r#type: attribute_type.into() })
}

fn part<'a>(part: Option<&'a str>, what: &str) -> Result<&'a str, String> {
    part.filter(|part| !part.is_empty()).ok_or_else(|| format!("needs {what}"))
}

fn nothing_more(part: Option<&str>) -> Result<(), String> {
    part.map_or(Ok(()), |more| Err(format!("there is too much after `:{more}`, from there on")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn vector_fields_are_read_from_left_to_right() {
        let field = parse_vector_field("body:384").unwrap();
        assert_eq!((field.name.as_str(), field.dimensions), ("body", 384));
        assert_eq!((field.metric(), field.element_type()), (v1::Metric::Unspecified, v1::ElementType::Unspecified));
        let field = parse_vector_field("b:1:dot:float16").unwrap();
        assert_eq!((field.metric(), field.element_type()), (v1::Metric::Dot, v1::ElementType::Float16));
        let field = parse_vector_field("b:8:hamming:bit").unwrap();
        assert_eq!((field.metric(), field.element_type()), (v1::Metric::Hamming, v1::ElementType::Bit));
        let field = parse_vector_field("b:65536::bfloat16").unwrap();
        assert_eq!((field.metric(), field.element_type()), (v1::Metric::Unspecified, v1::ElementType::Bfloat16));
    }

    #[test]
    fn faults_in_vector_fields_are_named() {
        for (spec, words) in [
            ("", "needs a name"),
            ("body", "needs a number of dimensions"),
            ("body:", "needs a number of dimensions"),
            ("body:0", "`0`"),
            ("body:65537", "`65537`"),
            ("body:-1", "`-1`"),
            ("body:8:cos", "`cos` is no metric"),
            ("body:8:dot:int4", "`int4` is no element type"),
            ("body:8:dot:float32:x", "too much"),
        ] {
            assert!(parse_vector_field(spec).expect_err(spec).contains(words), "{spec}");
        }
    }

    #[test]
    fn embedders_name_a_field_a_model_and_perhaps_texts() {
        let spec = |texts: &[&str]| EmbedderSpec {
            field: "meaning".to_owned(),
            embedder: "minilm".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        assert_eq!(parse_embedder("meaning=minilm"), Ok(spec(&[])));
        assert_eq!(parse_embedder("meaning=minilm:title,body"), Ok(spec(&["title", "body"])));
        for wrong in ["", "meaning", "=minilm", "meaning=", "meaning=:title", "meaning=minilm:", "meaning=minilm:a,"] {
            assert!(parse_embedder(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn attributes_have_a_name_and_a_type() {
        let attribute = parse_attribute("year:integer").unwrap();
        assert_eq!((attribute.name.as_str(), attribute.r#type()), ("year", v1::AttributeType::Integer));
        for spec in ["", "year", "year:", ":integer", "year:int", "year:integer:x"] {
            assert!(parse_attribute(spec).is_err(), "{spec}");
        }
    }

    #[test]
    fn text_fields_may_leave_things_out() {
        let field = parse_text_field("title").unwrap();
        assert_eq!((field.name.as_str(), field.analyzer.as_str(), field.boost), ("title", "", 0.0));
        let field = parse_text_field("title:en:2.5").unwrap();
        assert_eq!((field.analyzer.as_str(), field.boost), ("en", 2.5));
        for spec in ["", ":en", "t:en:0", "t:en:-1", "t:en:NaN", "t:en:1001", "t:en:1:x"] {
            assert!(parse_text_field(spec).is_err(), "{spec}");
        }
    }
}
