//! Documents on their way, and the batches they travel in.

use std::fmt;
use std::sync::Arc;

use antiphon_proto::v1;
use prost::Message as _;

/// Where a document was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The file as named on the command line.
    pub(crate) file: Arc<str>,
    /// From 1.
    pub(crate) line: u64,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A document on its way. Its key is never empty, so that sending it again is harmless.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Where it was read.
    pub(crate) origin: Origin,
    /// The document.
    pub(crate) document: v1::Document,
    /// The line as read, where rejects are written to a file.
    pub(crate) raw: Option<String>,
    /// Whether the key was made here.
    pub(crate) has_generated_key: bool,
    /// Bytes of all files read up to this document.
    pub(crate) bytes_read: u64,
}

/// Documents sent in one message.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    items: Vec<Item>,
    num_bytes: usize,
}

impl Batch {
    /// Adds a document.
    pub(crate) fn push(&mut self, item: Item) {
        self.num_bytes += item.document.encoded_len();
        self.items.push(item);
    }

    /// How many documents.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes of the documents, encoded.
    pub(crate) fn num_bytes(&self) -> usize {
        self.num_bytes
    }

    /// The documents.
    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    /// The message that sends them.
    pub(crate) fn request(&self, collection: &str) -> v1::ImportDocumentsRequest {
        v1::ImportDocumentsRequest {
            collection: collection.to_owned(),
            documents: self.items.iter().map(|item| item.document.clone()).collect(),
        }
    }

    /// Takes the documents at some places out; the others keep their order.
    pub(crate) fn take_out(&mut self, is_out: impl Fn(usize) -> bool) -> Vec<(usize, Item)> {
        let (out, rest): (Vec<_>, Vec<_>) = self.items.drain(..).enumerate().partition(|(place, _)| is_out(*place));
        *self = rest.into_iter().map(|(_, item)| item).collect();
        out
    }

    /// Splits the second half off.
    pub(crate) fn split_half(&mut self) -> Batch {
        let half = self.items.split_off(self.items.len().div_ceil(2)).into_iter().collect();
        *self = self.items.drain(..).collect();
        half
    }
}

impl FromIterator<Item> for Batch {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Self {
        let mut batch = Self::default();
        items.into_iter().for_each(|item| batch.push(item));
        batch
    }
}
