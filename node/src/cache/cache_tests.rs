//! The cache on a real disk: what a start finds, what goes first, what builds leave.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;

fn shard() -> ShardId {
    "u/0".parse().unwrap()
}

fn open(parent: &Path, max_bytes: u64) -> Arc<SegmentCache> {
    SegmentCache::open(Some(parent), &CacheConfig { max_bytes, downloads: 1 }).unwrap()
}

/// Claims a segment of so many bytes and writes them.
fn fill(cache: &Arc<SegmentCache>, id: &SegmentId, bytes: u64) -> Lease {
    let lease = cache.claim(&shard(), vec![(id.clone(), bytes)]).unwrap().remove(0);
    let dir = cache.segment_dir(&lease.key);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("rows"), vec![7; bytes as usize]).unwrap();
    lease
}

#[test]
fn a_start_finds_segments_and_drops_those_used_longest_ago() {
    let temp = tempfile::tempdir().unwrap();
    let ids: Vec<SegmentId> = (0..4).map(|_| SegmentId::generate()).collect();
    let cache = open(temp.path(), 1000);
    let mut leases: Vec<Option<Lease>> = ids.iter().map(|id| Some(fill(&cache, id, 100))).collect();
    // The order in which they are let go of, not that in which they came.
    for index in [2, 0, 3, 1] {
        leases[index] = None;
        // Times of files are no finer everywhere.
        std::thread::sleep(Duration::from_millis(15));
    }
    assert_eq!(cache.usage().bytes, 400);
    let dirs: Vec<PathBuf> = ids.iter().map(|id| cache.segment_dir(&CacheKey::new(&shard(), id))).collect();
    drop(cache);
    let cache = open(temp.path(), 250);
    assert_eq!(cache.usage().bytes, 200);
    let there: Vec<bool> = dirs.iter().map(|dir| dir.exists()).collect();
    assert_eq!(there, [false, true, false, true]);
    // And the next that is needed takes the place of 3.
    let _lease = fill(&cache, &SegmentId::generate(), 150);
    assert_eq!((cache.usage().bytes, cache.usage().evictions), (250, 1));
    assert!(dirs[1].exists() && !dirs[3].exists());
}

#[test]
fn what_does_not_fit_is_refused_in_words_until_there_is_room() {
    let temp = tempfile::tempdir().unwrap();
    let cache = open(temp.path(), 100);
    let held = fill(&cache, &SegmentId::generate(), 60);
    let wanted = SegmentId::generate();
    let claim = || cache.claim(&shard(), vec![(wanted.clone(), 50)]);
    let refused = claim().unwrap_err();
    assert!(matches!(&refused, NodeError::DiskFull(words) if words.contains("60 of 100 bytes")), "{refused}");
    assert_eq!(cache.usage().problem, Some(refused.to_string()));
    drop(held);
    claim().unwrap();
    assert_eq!(cache.usage().problem, None);
}

#[test]
fn builds_take_room_and_leave_nothing_but_what_was_adopted() {
    let temp = tempfile::tempdir().unwrap();
    let cache = open(temp.path(), 100);
    let (kept, dropped) = (SegmentId::generate(), SegmentId::generate());
    let mut room = cache.build(&shard(), &kept, 70).unwrap();
    assert!(matches!(cache.build(&shard(), &dropped, 31), Err(NodeError::DiskFull(_))));
    std::fs::write(room.dir().join("rows"), [1; 40]).unwrap();
    room.resize(40).unwrap();
    let second = cache.build(&shard(), &dropped, 60).unwrap();
    assert!(matches!(room.resize(41), Err(NodeError::DiskFull(_))));
    let (first_dir, second_dir) = (room.dir().to_owned(), second.dir().to_owned());
    let lease = room.adopt().unwrap();
    drop(second);
    assert!(!first_dir.exists() && !second_dir.exists());
    assert_eq!(cache.usage().bytes, 40);
    assert!(cache.segment_dir(&lease.key).join("rows").exists());
    cache.forget(&shard(), &kept);
    assert!(!cache.segment_dir(&lease.key).exists());
    assert_eq!(cache.usage().bytes, 40, "it may be mapped still");
    drop(lease);
    assert_eq!(cache.usage().bytes, 0);
}

#[test]
fn the_default_limit_is_a_share_of_the_disk() {
    let temp = tempfile::tempdir().unwrap();
    let cache = open(temp.path(), 0);
    let free = free_bytes(temp.path()).unwrap();
    let limit = cache.usage().limit_bytes;
    assert!(limit > 0 && limit < free, "{limit} of {free}");
}
