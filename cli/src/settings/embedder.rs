//! Settings of one embedder, and what values they may have together.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Key;

table! {
    /// A model that makes vectors of texts, for vector fields that name it. Any number of them, each a table
    /// [embedders.NAME]; docs/embedders.md explains them. The variable ANTIPHON_EMBEDDERS lists the names (commas between)
    /// of those that are set by the environment alone.
    Embedder {
        /// openai: an HTTP endpoint of OpenAI's form. static: a folder with static embeddings (model2vec, WordLlama).
        /// bert: a folder with a sentence encoder of BERT's type (MiniLM).
        kind: String = String::new(),
        /// static, bert: the model's folder. Nothing is downloaded.
        path: PathBuf = PathBuf::new(),
        /// openai: what /embeddings is added to, as https://host/v1.
        base_url: String = String::new(),
        /// openai: the model's name there.
        model: String = String::new(),
        /// openai: dimensions of the vectors; 0 asks the endpoint at start. static: keep only the first so many, for models
        /// trained so; 0 keeps all. bert: the model's own or 0. At most 65,536.
        dimensions: u32 = 0,
        /// openai: the file that holds the key.
        api_key_file: PathBuf = PathBuf::new(),
        /// openai: the environment variable that holds the key.
        api_key_env: String = String::new(),
        /// Put before every query, where the model wants it, as "query: ".
        query_prefix: String = String::new(),
        /// Put before every document's text.
        document_prefix: String = String::new(),
        /// A text is read up to so many characters. 1 to 1,000,000.
        max_text_chars: u32 = 8_000,
        /// openai: most texts of one request. 1 to 2,048.
        max_batch_texts: u32 = 32,
        /// openai: most characters of one request, but for a single longer text. 1 to 10,000,000.
        max_batch_chars: u32 = 64_000,
        /// openai: requests at once. 1 to 1,024.
        concurrency: u32 = 4,
        /// openai: how often a request is tried again after 408, 425, 429, 5xx, a broken connection or silence. At most 20.
        retries: u32 = 3,
        /// openai: how long one try may take, in milliseconds; never longer than the call. 1 to 600,000.
        timeout_ms: u64 = 10_000,
        /// static, bert: threads that embed; 0 means half of the cores. At most 256.
        threads: u32 = 0,
        /// What may wait for a thread or a request; more is refused as OVERLOADED. 1 to 1,000,000.
        queue: u32 = 1_024,
    }
}

impl Embedder {
    /// What is wrong with it, by key: values out of bounds, and keys that its kind does not have.
    pub(super) fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let mut fault = |key, words: &str| faults.push((key, words.to_owned()));
        let (is_openai, is_local) = match self.kind.as_str() {
            "openai" => (true, false),
            "static" | "bert" => (false, true),
            "" => {
                fault("kind", "must be set: openai, static or bert");
                return faults;
            }
            _ => {
                fault("kind", "must be openai, static or bert");
                return faults;
            }
        };
        let default = Self::default();
        let path_set = !self.path.as_os_str().is_empty();
        let keys_set = [!self.api_key_file.as_os_str().is_empty(), !self.api_key_env.is_empty()];
        if is_local && !path_set {
            fault("path", "must name the model's folder");
        }
        if is_openai && self.base_url.is_empty() {
            fault("base_url", "must be set for an endpoint");
        }
        if is_openai && self.model.is_empty() {
            fault("model", "must be set for an endpoint");
        }
        if keys_set == [true, true] {
            fault("api_key_env", "is one too many beside api_key_file");
        }
        let strange = [
            ("path", is_openai && path_set),
            ("threads", is_openai && self.threads != default.threads),
            ("base_url", is_local && !self.base_url.is_empty()),
            ("model", is_local && !self.model.is_empty()),
            ("api_key_file", is_local && keys_set[0]),
            ("api_key_env", is_local && keys_set[1]),
            ("max_batch_texts", is_local && self.max_batch_texts != default.max_batch_texts),
            ("max_batch_chars", is_local && self.max_batch_chars != default.max_batch_chars),
            ("concurrency", is_local && self.concurrency != default.concurrency),
            ("retries", is_local && self.retries != default.retries),
            ("timeout_ms", is_local && self.timeout_ms != default.timeout_ms),
        ];
        for (key, _) in strange.into_iter().filter(|(_, is_strange)| *is_strange) {
            fault(key, &format!("is not for the kind {}", self.kind));
        }
        let bounds: [(&'static str, u64, u64, u64); 9] = [
            ("dimensions", self.dimensions.into(), 0, 65_536),
            ("max_text_chars", self.max_text_chars.into(), 1, 1_000_000),
            ("max_batch_texts", self.max_batch_texts.into(), 1, 2_048),
            ("max_batch_chars", self.max_batch_chars.into(), 1, 10_000_000),
            ("concurrency", self.concurrency.into(), 1, 1_024),
            ("retries", self.retries.into(), 0, 20),
            ("timeout_ms", self.timeout_ms, 1, 600_000),
            ("threads", self.threads.into(), 0, 256),
            ("queue", self.queue.into(), 1, 1_000_000),
        ];
        for (key, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                fault(key, &format!("is {value}; must be {least} to {most}"));
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(embedder: &Embedder) -> Vec<&'static str> {
        embedder.faults().into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn a_kind_has_its_own_keys_and_no_others() {
        assert_eq!(keys(&Embedder::default()), ["kind"]);
        assert_eq!(keys(&Embedder { kind: "magic".into(), ..Embedder::default() }), ["kind"]);
        let local = Embedder { kind: "static".into(), path: "m".into(), ..Embedder::default() };
        assert_eq!(keys(&local), [""; 0]);
        assert_eq!(keys(&Embedder { kind: "bert".into(), ..local.clone() }), [""; 0]);
        assert_eq!(keys(&Embedder { retries: 1, model: "m".into(), ..local.clone() }), ["model", "retries"]);
        assert_eq!(keys(&Embedder { path: PathBuf::new(), threads: 257, ..local }), ["path", "threads"]);
        let remote = Embedder {
            kind: "openai".into(),
            base_url: "http://h".into(),
            model: "m".into(),
            api_key_env: "KEY".into(),
            ..Embedder::default()
        };
        assert_eq!(keys(&remote), [""; 0]);
        let both = Embedder { api_key_file: "k".into(), path: "m".into(), queue: 0, ..remote };
        assert_eq!(keys(&both), ["api_key_env", "path", "queue"]);
        assert_eq!(keys(&Embedder { kind: "openai".into(), ..Embedder::default() }), ["base_url", "model"]);
    }
}
