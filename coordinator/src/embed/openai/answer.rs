//! An endpoint's answer: vectors put in the order of the texts by their `index`.

use serde::Deserialize;

use crate::embed::EmbedError;

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Failure {
    error: FailureDetail,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FailureDetail {
    Object { message: String },
    Words(String),
}

/// The vectors of so many texts. Where no item has an index, they are in order.
///
/// # Errors
/// [`EmbedError::Answer`]: no JSON of that form, another number of vectors, an index twice or out of bounds.
pub(super) fn vectors(body: &[u8], num_texts: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| EmbedError::Answer(error.to_string()))?;
    if answer.data.len() != num_texts {
        return Err(EmbedError::Answer(format!("{} vectors for {num_texts} texts", answer.data.len())));
    }
    let in_order = answer.data.iter().all(|item| item.index.is_none());
    let mut vectors = vec![None; num_texts];
    for (position, item) in answer.data.into_iter().enumerate() {
        let index = if in_order { Some(position) } else { item.index };
        let place = index.and_then(|index| vectors.get_mut(index)).filter(|place| place.is_none());
        let Some(place) = place else {
            return Err(EmbedError::Answer(format!("the index {index:?} is out of bounds or there twice")));
        };
        *place = Some(item.embedding);
    }
    // As many items as places, none of them twice.
    Ok(vectors.into_iter().flatten().collect())
}

/// What an endpoint says of its failure, cut to a line.
pub(super) fn failure(body: &[u8]) -> Option<String> {
    let failure: Failure = serde_json::from_slice(body).ok()?;
    let (FailureDetail::Object { message } | FailureDetail::Words(message)) = failure.error;
    Some(message.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Vec<Vec<f32>>, EmbedError> {
        vectors(body.as_bytes(), 2)
    }

    #[test]
    fn items_are_put_in_order() {
        let (a, b) = (r#"{"index":0,"embedding":[1,2e0],"object":"embedding"}"#, r#"{"embedding":[3],"index":1}"#);
        let wanted = vec![vec![1.0, 2.0], vec![3.0]];
        assert_eq!(read(&format!(r#"{{"data":[{a},{b}]}}"#)), Ok(wanted.clone()));
        assert_eq!(read(&format!(r#"{{"object":"list","data":[{b},{a}],"usage":{{}}}}"#)), Ok(wanted));
        assert_eq!(read(r#"{"data":[{"embedding":[3]},{"embedding":[4]}]}"#), Ok(vec![vec![3.0], vec![4.0]]));
    }

    #[test]
    fn what_is_amiss_is_an_error() {
        for body in [
            "",
            "<html>",
            r#"{"data":[]}"#,
            r#"{"data":[{"index":0,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":-1,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[null]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":"AACAPw=="}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}"#,
        ] {
            assert!(matches!(read(body), Err(EmbedError::Answer(_))), "{body}");
        }
    }

    #[test]
    fn failures_are_one_line() {
        let words = |body: &str| failure(body.as_bytes());
        assert_eq!(words(r#"{"error":{"message":"too\n long","type":"x"}}"#).as_deref(), Some("too long"));
        assert_eq!(words(r#"{"error":"no such model"}"#).as_deref(), Some("no such model"));
        assert_eq!(words("<html>"), None);
    }
}
