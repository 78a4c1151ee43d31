//! What the cache knows a segment by.

use antiphon_store::{SegmentId, ShardId};

/// A segment of a shard, as the path of its folder below that of all segments: `<uid>/<shard>/<segment>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheKey(String);

impl CacheKey {
    /// The key of a segment.
    pub fn new(shard: &ShardId, segment: &SegmentId) -> Self {
        Self(format!("{}/{}/{}", shard.uid().as_str(), shard.shard(), segment.as_str()))
    }

    /// The key of a folder that was found.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let is_plain = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        let parts = path.split('/');
        (parts.clone().count() == 3 && parts.clone().all(is_plain)).then(|| Self(path.to_owned()))
    }

    pub(super) fn path(&self) -> &str {
        &self.0
    }

    pub(super) fn is_of_collection(&self, uid: &str) -> bool {
        self.0.split('/').next() == Some(uid)
    }
}
