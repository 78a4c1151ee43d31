//! A named model: an embedder with its prefixes and bounds, whose answers are checked.

use std::sync::Arc;
use std::time::Instant;

use antiphon_proto::deadline::Deadline;
use metrics::histogram;

use super::{EmbedError, Embedder, Purpose};

/// An embedder under its name.
#[derive(Clone)]
pub struct Model {
    /// The name that a vector field gives.
    pub name: String,
    /// `openai`, `static` or `bert`.
    pub kind: &'static str,
    /// The model, for people: its name at the endpoint, or its folder's.
    pub model: String,
    pub(super) query_prefix: String,
    pub(super) document_prefix: String,
    pub(super) max_text_chars: usize,
    pub(super) embedder: Arc<dyn Embedder>,
}

impl Model {
    /// Components of every vector.
    pub fn dimensions(&self) -> usize {
        self.embedder.dimensions()
    }

    /// A vector for each text, in order; none for a blank text and for one in which the model knows nothing.
    ///
    /// # Errors
    /// Those of the model, and [`EmbedError::Answer`] or [`EmbedError::Dimensions`] where it answers amiss.
    pub async fn embed(
        &self,
        texts: &[&str],
        purpose: Purpose,
        deadline: Deadline,
    ) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let prefix = match purpose {
            Purpose::Query => &self.query_prefix,
            Purpose::Document => &self.document_prefix,
        };
        let wanted: Vec<usize> = (0..texts.len()).filter(|index| !texts[*index].trim().is_empty()).collect();
        let mut vectors = vec![None; texts.len()];
        if wanted.is_empty() {
            return Ok(vectors);
        }
        let sent = wanted.iter().map(|index| format!("{prefix}{}", head(texts[*index], self.max_text_chars))).collect();
        let began = Instant::now();
        let got = self.embedder.embed(sent, purpose, deadline).await;
        let outcome = if got.is_ok() { "done" } else { "failed" };
        histogram!("antiphon_embed_seconds", "embedder" => self.name.clone(), "outcome" => outcome)
            .record(began.elapsed());
        let got = got?;
        if got.len() != wanted.len() {
            return Err(EmbedError::Answer(format!("{} vectors for {} texts", got.len(), wanted.len())));
        }
        for (index, vector) in wanted.into_iter().zip(got) {
            if let Some(vector) = &vector {
                check(vector, self.dimensions())?;
            }
            vectors[index] = vector;
        }
        Ok(vectors)
    }
}

fn check(vector: &[f32], dimensions: usize) -> Result<(), EmbedError> {
    if vector.len() != dimensions {
        return Err(EmbedError::Dimensions { expected: dimensions, found: vector.len() });
    }
    match vector.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(EmbedError::Answer(format!("component {index} (from 0) of a vector is not finite"))),
        None => Ok(()),
    }
}

/// The first characters of a text.
fn head(text: &str, chars: usize) -> &str {
    match text.char_indices().nth(chars) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    /// Answers as it was told and remembers what it was asked.
    struct Told {
        answer: Vec<Option<Vec<f32>>>,
        asked: Mutex<Vec<String>>,
    }

    #[tonic::async_trait]
    impl Embedder for Told {
        fn dimensions(&self) -> usize {
            2
        }

        async fn embed(
            &self,
            texts: Vec<String>,
            _: Purpose,
            _: Deadline,
        ) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
            *self.asked.lock().unwrap() = texts;
            Ok(self.answer.clone())
        }
    }

    async fn ask(
        answer: Vec<Option<Vec<f32>>>,
        texts: &[&str],
    ) -> (Result<Vec<Option<Vec<f32>>>, EmbedError>, Vec<String>) {
        let told = Arc::new(Told { answer, asked: Mutex::new(Vec::new()) });
        let model = Model {
            name: "m".into(),
            kind: "static",
            model: "told".into(),
            query_prefix: "q: ".into(),
            document_prefix: "d: ".into(),
            max_text_chars: 3,
            embedder: Arc::clone(&told) as Arc<dyn Embedder>,
        };
        let outcome = model.embed(texts, Purpose::Document, Deadline::after(Duration::from_secs(1))).await;
        let asked = told.asked.lock().unwrap().clone();
        (outcome, asked)
    }

    #[tokio::test]
    async fn blank_texts_are_not_asked_and_others_are_cut_after_characters() {
        let (outcome, asked) = ask(vec![Some(vec![1.0, 0.0]), None], &["", "naïveté", " \t\n", "北京大学"]).await;
        assert_eq!(outcome.unwrap(), [None, Some(vec![1.0, 0.0]), None, None]);
        assert_eq!(asked, ["d: naï", "d: 北京大"]);
    }

    #[tokio::test]
    async fn answers_amiss_are_errors() {
        let (outcome, _) = ask(vec![], &["a"]).await;
        assert!(matches!(outcome, Err(EmbedError::Answer(_))), "{outcome:?}");
        let (outcome, _) = ask(vec![Some(vec![1.0])], &["a"]).await;
        assert_eq!(outcome, Err(EmbedError::Dimensions { expected: 2, found: 1 }));
        let (outcome, _) = ask(vec![Some(vec![1.0, f32::INFINITY])], &["a"]).await;
        assert!(matches!(outcome, Err(EmbedError::Answer(_))), "{outcome:?}");
    }
}
