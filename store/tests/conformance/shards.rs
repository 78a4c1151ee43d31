//! Logs and manifests.

use std::time::Duration;

use antiphon_proto::store::{LogEntry, LogOp, Manifest, SegmentEntry, SegmentFile, log_op};
use antiphon_store::{
    Append, Commit, Log, LogCursor, LogPoll, ManifestVersion, Manifests, SegmentId, Seq, ShardId, Store,
    StoreErrorKind, Written,
};
use futures::future::join_all;

fn shard() -> ShardId {
    "some-collection/3".parse().unwrap()
}

fn log(store: &Store) -> Log {
    Log::new(store.clone(), shard())
}

fn manifests(store: &Store) -> Manifests {
    Manifests::new(store.clone(), shard())
}

fn entry(key: &str) -> LogEntry {
    let ops = vec![LogOp { op: Some(log_op::Op::DeleteKey(key.to_owned())) }];
    LogEntry { nonce: Log::new_nonce(), ops, schema_version: 0 }
}

fn covering(seq: u64) -> Manifest {
    Manifest {
        covered_seq: seq,
        tombstone_seq: seq,
        segments: vec![SegmentEntry {
            id: SegmentId::generate().to_string(),
            format_version: 1,
            num_rows: 1,
            files: vec![SegmentFile { name: "rows".to_owned(), size_bytes: 1, crc32: 1 }],
            ..Default::default()
        }],
        schema_version: 0,
    }
}

async fn cursor(store: &Store) -> LogCursor {
    LogCursor::open(log(store), manifests(store)).await.unwrap().1
}

async fn overwrite(store: &Store, path: &str, bytes: &[u8]) {
    let temp = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(temp.path(), bytes).unwrap();
    store.upload_file(temp.path(), path).await.unwrap();
}

pub async fn log_positions_are_taken_once(store: Store) {
    let log = log(&store);
    let (one, two) = (entry("one"), entry("two"));
    assert_eq!(log.positions_after(Seq(0)).await.unwrap(), []);
    assert_eq!(log.read(Seq(1)).await.unwrap(), None);
    assert_eq!(log.append(Seq(1), &one).await.unwrap(), Append::Appended);
    assert_eq!(log.append(Seq(1), &two).await.unwrap(), Append::Taken(Box::new(one.clone())));
    assert_eq!(log.append(Seq(2), &two).await.unwrap(), Append::Appended);
    assert_eq!(log.read(Seq(1)).await.unwrap(), Some(one));
    for n in 3..=12 {
        log.append(Seq(n), &entry("more")).await.unwrap();
    }
    assert_eq!(log.positions_after(Seq(9)).await.unwrap(), [Seq(10), Seq(11), Seq(12)]);
    assert_eq!(log.delete_through(Seq(10)).await.unwrap(), 10);
    assert_eq!(log.positions_after(Seq(0)).await.unwrap(), [Seq(11), Seq(12)]);
    assert_eq!(log.append(Seq(0), &entry("x")).await.unwrap_err().kind(), StoreErrorKind::Invalid);
    let without_nonce = LogEntry::default();
    assert_eq!(log.append(Seq(20), &without_nonce).await.unwrap_err().kind(), StoreErrorKind::Invalid);
}

pub async fn an_entry_is_appended_once_however_often_it_is_tried(store: Store) {
    let log = log(&store);
    let mine = entry("mine");
    assert_eq!(log.append(Seq(1), &mine).await.unwrap(), Append::Appended);
    // By the nonce and content, in another call, as after an unknown outcome.
    assert_eq!(log.append(Seq(1), &mine).await.unwrap(), Append::Appended);
    // The nonce alone does not make another entry this one.
    let changed = LogEntry { nonce: mine.nonce.clone(), ..entry("changed") };
    assert_eq!(log.append(Seq(1), &changed).await.unwrap(), Append::Taken(Box::new(mine)));
}

pub async fn sixteen_writers_share_one_log(store: Store) {
    let writers = (0..16).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut cursor = cursor(&store).await;
            let (mut seen, mut durable) = (Vec::new(), Vec::new());
            for n in 0..4 {
                let entry = entry(&format!("{writer}-{n}"));
                loop {
                    match cursor.append(&entry).await.unwrap() {
                        Written::Durable(seq) => {
                            seen.push((seq, entry.clone()));
                            durable.push((seq, entry));
                            break;
                        }
                        Written::Taken(seq, other) => seen.push((seq, *other)),
                        Written::Behind => unreachable!("nothing was sealed"),
                    }
                }
            }
            (seen, durable)
        })
    });
    let outcomes: Vec<_> = join_all(writers).await.into_iter().map(Result::unwrap).collect();
    let mut follower = cursor(&store).await;
    let mut all = Vec::new();
    loop {
        match follower.poll(7).await.unwrap() {
            LogPoll::Entries(entries) if entries.is_empty() => break,
            LogPoll::Entries(entries) => all.extend(entries),
            LogPoll::Behind => unreachable!("nothing was sealed"),
        }
    }
    assert_eq!(all.len(), 64);
    assert!(all.iter().zip(1..).all(|((seq, _), n)| *seq == Seq(n)));
    for (seen, durable) in outcomes {
        assert_eq!(seen[..], all[..seen.len()], "every writer saw the one log");
        assert_eq!(durable.len(), 4);
    }
}

pub async fn a_gap_is_not_read_over(store: Store) {
    let (one, two, three) = (entry("1"), entry("2"), entry("3"));
    log(&store).append(Seq(1), &one).await.unwrap();
    log(&store).append(Seq(3), &three).await.unwrap();
    let mut cursor = cursor(&store).await;
    assert_eq!(cursor.poll(10).await.unwrap(), LogPoll::Entries(vec![(Seq(1), one)]));
    // Later entries are there, so it was; a log that ends before a gap would lose writes without a word.
    let error = cursor.poll(10).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    log(&store).append(Seq(2), &two).await.unwrap();
    assert_eq!(cursor.poll(10).await.unwrap(), LogPoll::Entries(vec![(Seq(2), two), (Seq(3), three)]));
}

pub async fn damaged_entries_are_errors(store: Store) {
    let log = log(&store);
    log.append(Seq(1), &entry("a key of some length")).await.unwrap();
    let path = format!("{}/log/{}", shard().path(), Seq(1).name());
    let whole = store.get(&path).await.unwrap().unwrap();
    // Each byte is tried somewhere in these steps; the frame's own tests try every bit.
    for at in (0..whole.len()).step_by(5) {
        overwrite(&store, &path, &whole[..at]).await;
        let error = log.read(Seq(1)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "cut at {at}");
        let mut flipped = whole.to_vec();
        flipped[at] ^= 1 << (at % 8);
        overwrite(&store, &path, &flipped).await;
        let error = log.append(Seq(1), &entry("x")).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "flipped at {at}");
    }
    overwrite(&store, &path, &whole).await;
    assert!(log.read(Seq(1)).await.unwrap().is_some());
}

pub async fn manifests_have_one_winner(store: Store) {
    assert_eq!(manifests(&store).newest().await.unwrap(), None);
    let racers = (0..16).map(|racer| {
        let manifests = manifests(&store);
        tokio::spawn(async move {
            let manifest = covering(racer);
            (manifest.clone(), manifests.commit(ManifestVersion(1), &manifest).await.unwrap())
        })
    });
    let outcomes: Vec<_> = join_all(racers).await.into_iter().map(Result::unwrap).collect();
    let winners: Vec<_> = outcomes.iter().filter(|(_, commit)| *commit == Commit::Committed).collect();
    assert_eq!(winners.len(), 1);
    let manifests = manifests(&store);
    assert_eq!(manifests.newest().await.unwrap(), Some((ManifestVersion(1), winners[0].0.clone())));
    // The winner, who didn't hear of it, tries again.
    assert_eq!(manifests.commit(ManifestVersion(1), &winners[0].0).await.unwrap(), Commit::Committed);
    let mut bad = covering(1);
    bad.tombstone_seq = 0;
    assert_eq!(manifests.commit(ManifestVersion(2), &bad).await.unwrap_err().kind(), StoreErrorKind::Invalid);
}

pub async fn a_stale_manifest_is_lost(store: Store) {
    let manifests = manifests(&store);
    for version in 1..=5 {
        assert_eq!(manifests.commit(ManifestVersion(version), &covering(version)).await.unwrap(), Commit::Committed);
    }
    assert_eq!(manifests.delete_before(ManifestVersion(4)).await.unwrap(), 3);
    // A writer that read version 1 long ago.
    assert_eq!(manifests.commit(ManifestVersion(2), &covering(2)).await.unwrap(), Commit::Lost);
    assert_eq!(manifests.newest().await.unwrap().unwrap().0, ManifestVersion(5));
    // The newest stays, whatever is asked.
    assert_eq!(manifests.delete_before(ManifestVersion(99)).await.unwrap(), 2);
    assert_eq!(manifests.versions().await.unwrap(), [ManifestVersion(5)]);
}

pub async fn a_damaged_newest_manifest_is_an_error(store: Store) {
    let manifests = manifests(&store);
    for version in 1..=2 {
        manifests.commit(ManifestVersion(version), &covering(version)).await.unwrap();
    }
    overwrite(&store, &format!("{}/manifest/{}", shard().path(), ManifestVersion(2).name()), b"ANTM").await;
    assert_eq!(manifests.newest().await.unwrap_err().kind(), StoreErrorKind::Corrupt);
    assert_eq!(manifests.read(ManifestVersion(1)).await.unwrap().unwrap().covered_seq, 1);
}

pub async fn a_sleeper_at_a_collected_position_is_fenced(store: Store) {
    // Zero stands for a sleep of any length.
    let asleep = async || cursor(&store).await.with_fence_after(Duration::ZERO);
    let (mut writer, mut follower, mut waiter) = (asleep().await, asleep().await, asleep().await);
    let mut awake = cursor(&store).await;
    for n in 0..5 {
        assert!(matches!(awake.append(&entry(&n.to_string())).await.unwrap(), Written::Durable(_)));
    }
    manifests(&store).commit(ManifestVersion(1), &covering(5)).await.unwrap();
    log(&store).delete_through(Seq(5)).await.unwrap();

    // It does create log/1, and is told that this is worth nothing.
    assert_eq!(writer.append(&entry("lost")).await.unwrap(), Written::Behind);
    assert!(log(&store).read(Seq(1)).await.unwrap().is_some());
    assert_eq!(writer.append(&entry("lost")).await.unwrap(), Written::Behind);
    assert_eq!(writer.poll(10).await.unwrap(), LogPoll::Behind);
    // Nobody takes what it created for a part of the log.
    assert_eq!(follower.poll(10).await.unwrap(), LogPoll::Behind);
    assert_eq!(waiter.append(&entry("other")).await.unwrap(), Written::Behind);
    let (newest, mut fresh) = LogCursor::open(log(&store), manifests(&store)).await.unwrap();
    assert_eq!(newest.unwrap().1.covered_seq, 5);
    assert_eq!(fresh.next(), Seq(6));
    assert_eq!(fresh.poll(10).await.unwrap(), LogPoll::Entries(Vec::new()));
    assert_eq!(awake.append(&entry("next")).await.unwrap(), Written::Durable(Seq(6)));
    assert_eq!(
        fresh.poll(10).await.unwrap(),
        LogPoll::Entries(vec![(Seq(6), log(&store).read(Seq(6)).await.unwrap().unwrap())])
    );
}

pub async fn a_slow_writer_at_the_tail_is_not_fenced(store: Store) {
    let mut slow = cursor(&store).await.with_fence_after(Duration::ZERO);
    for n in 1..=3 {
        assert_eq!(slow.append(&entry("x")).await.unwrap(), Written::Durable(Seq(n)));
    }
    manifests(&store).commit(ManifestVersion(1), &covering(3)).await.unwrap();
    log(&store).delete_through(Seq(3)).await.unwrap();
    assert_eq!(slow.poll(10).await.unwrap(), LogPoll::Entries(Vec::new()));
    assert_eq!(slow.append(&entry("y")).await.unwrap(), Written::Durable(Seq(4)));
}
