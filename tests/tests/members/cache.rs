//! The node's cache over a store that is not local: what a start finds again, what is verified, what is bounded, and what
//! happens where there is no room.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_proto::error::ErrorKind;
use antiphon_proto::v1::{DeleteCollectionRequest, Metric, SearchResponse};
use antiphon_store::Store;
use antiphon_store::failing::{FailingStore, Fault, Op};
use antiphon_tests::client::{Client, kind_of};
use antiphon_tests::cluster::{Bucket, ClusterBuilder, DIMENSIONS, document_of, read_state, vector_of};
use antiphon_tests::local::{Local, LocalBuilder, wait_until};
use antiphon_tests::sample::*;
use object_store::memory::InMemory;

/// A store in memory, and what counts and delays.
fn store() -> (Store, FailingStore) {
    let failing = FailingStore::new(Arc::new(InMemory::new()));
    (Store::with_object_store(Arc::new(failing.clone())), failing)
}

fn builder(store: &Store, cache: &Path, max_bytes: u64) -> LocalBuilder {
    LocalBuilder::new().store(store.clone()).small_segments(40).node_config(|config| {
        config.cache_dir = Some(cache.to_owned());
        config.cache.max_bytes = max_bytes;
    })
}

async fn fill(server: &Local, name: &str, num_docs: u64) {
    server.client.create(collection(name, 1, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
    write(&server.client, name, 1..=num_docs).await;
    server.settle(|replica| replica.num_live_rows == 0).await;
}

async fn write(client: &Client, name: &str, generations: std::ops::RangeInclusive<u64>) {
    let documents = generations.map(|generation| document_of(&format!("k{generation}"), generation)).collect();
    client.upsert(name, documents).await.unwrap();
}

async fn search(client: &Client, name: &str) -> Result<SearchResponse, tonic::Status> {
    client.search_vector(vector_search(&vector_of("k7", 7), options(name, 1, 50))).await.map(comparable)
}

/// Stops a server and waits until its cache is free: calls under way may hold it for a moment.
async fn stop(server: Local, cache: &Path) {
    server.stop().await;
    let lock = cache.join("node-0/lock");
    wait_until(Duration::from_secs(20), || async { std::fs::File::open(&lock).unwrap().try_lock().is_ok() }).await;
}

/// All files of segments in a cache.
fn cached(cache: &Path) -> Vec<PathBuf> {
    fn walk(dir: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => walk(&entry.path(), files),
                false => files.push(entry.path()),
            }
        }
    }
    let mut files = Vec::new();
    walk(&cache.join("node-0/segments"), &mut files);
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_start_downloads_nothing_and_damage_is_fetched_again() {
    let (store, failing) = store();
    let temp = tempfile::tempdir().unwrap();
    let server = builder(&store, temp.path(), 0).start().await;
    fill(&server, "c", 200).await;
    let before = search(&server.client, "c").await.unwrap();
    assert_eq!(before.matches.len(), 50);
    stop(server, temp.path()).await;

    let gets = || failing.calls(Op::Get, "/segments/");
    let before_start = gets();
    let server = builder(&store, temp.path(), 0).start().await;
    assert_eq!(search(&server.client, "c").await.unwrap(), before);
    let usage = server.nodes[0].cache_usage();
    assert_eq!((gets() - before_start, usage.downloads), (0, 0), "{usage:?}");
    assert!(usage.hits >= 4 && usage.bytes > 0 && usage.bytes <= usage.limit_bytes, "{usage:?}");
    stop(server, temp.path()).await;

    // One file with another byte, one cut off, one gone.
    let mut files = cached(temp.path());
    files.sort();
    let whole: Vec<Vec<u8>> = files.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let mut flipped = whole[0].clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    std::fs::write(&files[0], flipped).unwrap();
    std::fs::write(&files[1], &whole[1][..whole[1].len() - 1]).unwrap();
    std::fs::remove_file(&files[2]).unwrap();
    let server = builder(&store, temp.path(), 0).start().await;
    assert_eq!(search(&server.client, "c").await.unwrap(), before);
    let usage = server.nodes[0].cache_usage();
    assert_eq!((usage.damaged, usage.downloads), (2, 3), "{usage:?}");
    for (path, whole) in files.iter().zip(&whole) {
        assert!(std::fs::read(path).unwrap() == *whole, "{}", path.display());
    }
    stop(server, temp.path()).await;

    let empty = tempfile::tempdir().unwrap();
    let server = builder(&store, empty.path(), 0).start().await;
    assert_eq!(search(&server.client, "c").await.unwrap(), before);
    assert_eq!(server.nodes[0].cache_usage().downloads as usize, files.len());
    server.stop().await;
}

/// What a store hands out wrongly is damage of the store: the segment is set aside, and nothing of it stays in the cache.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_damaged_in_the_store_get_no_name_in_the_cache() {
    let objects = Arc::new(InMemory::new());
    let store = Store::with_object_store(Arc::clone(&objects) as _);
    let temp = tempfile::tempdir().unwrap();
    let server = builder(&store, temp.path(), 0).start().await;
    fill(&server, "c", 60).await;
    stop(server, temp.path()).await;
    let kept = cached(temp.path());
    let rows = kept.iter().find(|path| path.ends_with("rows")).unwrap();
    let below = rows.strip_prefix(temp.path().join("node-0/segments")).unwrap().to_str().unwrap();
    let (uid, rest) = below.split_once('/').unwrap();
    let (_, rest) = rest.split_once('/').unwrap();
    let object = object_store::path::Path::from(format!("collections/{uid}/shards/00000/segments/{rest}"));
    let mut bytes = std::fs::read(rows).unwrap();
    bytes[20] ^= 4;
    object_store::ObjectStoreExt::put(&*objects, &object, bytes.into()).await.unwrap();

    let empty = tempfile::tempdir().unwrap();
    let server = builder(&store, empty.path(), 0).start().await;
    let refused = search(&server.client, "c").await.unwrap_err();
    assert_eq!(kind_of(&refused), ErrorKind::Corruption, "{refused:?}");
    assert!(cached(empty.path()).iter().all(|path| path.file_name() != rows.file_name()));
    stop(server, empty.path()).await;
    // Who has a good copy goes on with it.
    let server = builder(&store, temp.path(), 0).start().await;
    assert_eq!(search(&server.client, "c").await.unwrap().matches.len(), 50);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_cache_refuses_shards_and_goes_on_serving_others() {
    let (store, _) = store();
    let temp = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c", "d", "e", "f"];
    let server = builder(&store, temp.path(), 0).start().await;
    for name in names {
        fill(&server, name, 150).await;
    }
    let whole = search(&server.client, "a").await.unwrap();
    let each = server.nodes[0].cache_usage().bytes / names.len() as u64;
    stop(server, temp.path()).await;

    let limit = each * 7 / 2;
    let small = tempfile::tempdir().unwrap();
    let server = builder(&store, small.path(), limit).start().await;
    let outcome = || async {
        let (mut served, mut refused) = (Vec::new(), Vec::new());
        for name in names {
            match search(&server.client, name).await {
                Ok(answer) => {
                    assert_eq!(answer, whole, "{name}");
                    served.push(name);
                }
                Err(status) => {
                    assert_eq!(kind_of(&status), ErrorKind::DiskFull, "{status:?}");
                    assert!(status.message().contains("cache.max_bytes"), "{status:?}");
                    refused.push(name);
                }
            }
            let usage = server.nodes[0].cache_usage();
            assert!(usage.bytes <= limit, "{usage:?}");
        }
        (served, refused)
    };
    let (served, refused) = outcome().await;
    assert_eq!((served.len(), refused.len()), (3, 3));
    assert_eq!(outcome().await, (served.clone(), refused.clone()));
    let on_disk: u64 = cached(small.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(on_disk <= limit, "{on_disk} of {limit}");
    let described = server.client.describe_cluster().await.unwrap();
    assert!(described.nodes[0].reachable && described.nodes[0].problem.contains("full"), "{described:?}");

    // Room is made, and one of the others is served.
    let request = DeleteCollectionRequest { name: served[0].to_owned() };
    server.client.collections.clone().delete_collection(request).await.unwrap();
    wait_until(Duration::from_secs(20), || async { search(&server.client, refused[0]).await.is_ok() }).await;
    assert_eq!(search(&server.client, served[1]).await.unwrap(), whole);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seal_without_room_waits_and_writes_go_on_until_the_bound() {
    let (store, _) = store();
    let temp = tempfile::tempdir().unwrap();
    let server = builder(&store, temp.path(), 1000).node_config(|config| config.max_unsealed_rows = 200).start().await;
    let client = &server.client;
    client.create(collection("c", 1, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
    write(client, "c", 1..=100).await;
    wait_until(Duration::from_secs(20), || async { server.nodes[0].cache_usage().problem.is_some() }).await;
    write(client, "c", 101..=200).await;
    let refused = client.upsert("c", vec![document_of("k201", 201)]).await.unwrap_err();
    assert_eq!(kind_of(&refused), ErrorKind::Overloaded, "{refused:?}");
    assert_eq!(client.count("c").await.unwrap(), 200);
    assert_eq!(search(client, "c").await.unwrap().matches[0].key, "k7");
    let described = client.describe_cluster().await.unwrap();
    assert!(described.nodes[0].problem.contains("building a segment"), "{described:?}");
    assert_eq!(described.shards[0].replicas[0].num_segments, 0);
    stop(server, temp.path()).await;

    let server = builder(&store, temp.path(), 0).start().await;
    server.settle(|replica| replica.num_live_rows == 0 && replica.num_segments > 0).await;
    write(&server.client, "c", 201..=201).await;
    assert_eq!(server.client.count("c").await.unwrap(), 201);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_side_by_side_as_many_as_are_allowed() {
    let (store, failing) = store();
    let temp = tempfile::tempdir().unwrap();
    let server = builder(&store, temp.path(), 0).start().await;
    fill(&server, "c", 200).await;
    stop(server, temp.path()).await;
    let num_files = cached(temp.path()).len() as u32;
    assert!(num_files >= 4);
    let delay = Duration::from_millis(150);
    failing.plan(Op::Get, "/segments/", usize::MAX, Fault::Delay(delay));
    let mut times = Vec::new();
    for downloads in [1, 8] {
        let empty = tempfile::tempdir().unwrap();
        let began = Instant::now();
        let server =
            builder(&store, empty.path(), 0).node_config(|config| config.cache.downloads = downloads).start().await;
        times.push(began.elapsed());
        assert_eq!(server.nodes[0].cache_usage().downloads, u64::from(num_files));
        server.stop().await;
    }
    assert!(times[0] >= delay * num_files, "more than one at once: {times:?} for {num_files} files");
    assert!(times[1] < delay * num_files, "one after the other: {times:?} for {num_files} files");
}

// --- A disk that is really full.

/// A small file system in memory.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Nothing where this process may not mount.
    fn mount(path: &Path, kilobytes: u32) -> Option<Self> {
        let size = format!("size={kilobytes}k");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(path).output().ok()?;
        mounted.status.success().then(|| Self(path.to_owned()))
    }

    fn resize(&self, kilobytes: u32) {
        let options = format!("remount,size={kilobytes}k");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, for files may be mapped still.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_keeps_what_it_has_and_takes_more_when_it_grew() {
    let (store, _) = store();
    let temp = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c", "d", "e", "f"];
    let server = builder(&store, temp.path(), 0).start().await;
    for name in names {
        fill(&server, name, 1500).await;
    }
    let whole = search(&server.client, "a").await.unwrap();
    let each = server.nodes[0].cache_usage().bytes / names.len() as u64;
    stop(server, temp.path()).await;

    let disk = tempfile::tempdir().unwrap();
    let Some(small) = SmallDisk::mount(disk.path(), (each * 3 / 1024) as u32) else {
        eprintln!("skipped: this needs the right to mount a file system");
        return;
    };
    // The books say that there is room for ever.
    let server =
        builder(&store, disk.path(), 1 << 40).node_config(|config| config.max_unsealed_rows = 3000).start().await;
    let (mut served, mut refused) = (Vec::new(), Vec::new());
    for name in names {
        match search(&server.client, name).await {
            Ok(answer) => {
                assert_eq!(answer, whole, "{name}");
                served.push(name);
            }
            Err(status) => {
                assert_eq!(kind_of(&status), ErrorKind::DiskFull, "{status:?}");
                refused.push(name);
            }
        }
    }
    assert!(!served.is_empty() && !refused.is_empty(), "{served:?} {refused:?}");
    let described = server.client.describe_cluster().await.unwrap();
    assert!(described.nodes[0].problem.contains("is full"), "{described:?}");
    // Writes to what is served are taken, though no segment can be built any more.
    for round in 0..10 {
        let generations = 2000 + round * 200..=2199 + round * 200;
        write(&server.client, served[0], generations).await;
    }
    let num_docs = 1500 + 2000;
    assert_eq!(server.client.count(served[0]).await.unwrap(), num_docs);
    small.resize(64 << 10);
    for name in &refused {
        wait_until(Duration::from_secs(20), || async { search(&server.client, name).await.is_ok() }).await;
        assert_eq!(search(&server.client, name).await.unwrap(), whole, "{name}");
    }
    server.settle(|replica| replica.num_live_rows == 0 && replica.quarantined_segments.is_empty()).await;
    assert_eq!(server.client.count(served[0]).await.unwrap(), num_docs);
    server.stop().await;
}

// --- Killed in the middle.

#[tokio::test(flavor = "multi_thread")]
async fn a_node_killed_while_it_downloads_uses_no_part_of_a_file() {
    let Some(bucket) = Bucket::start() else {
        eprintln!("skipped: this needs python3 with moto[server]");
        return;
    };
    let builder =
        ClusterBuilder::roles(1, 1).bucket(&bucket).set("sealing.seal_rows", 150).set("sealing.seal_age_s", 1);
    let mut cluster = builder.set("cache.downloads", 2).start().await;
    let client = cluster.client(0);
    client.create(collection("c", 2, schema(DIMENSIONS, Metric::Cosine))).await.unwrap();
    for batch in 0..10 {
        write(&client, "c", batch * 200 + 1..=batch * 200 + 200).await;
    }
    wait_until(Duration::from_secs(60), || async {
        let described = client.describe_cluster().await.unwrap();
        described.shards.iter().all(|shard| shard.replicas[0].num_live_rows == 0)
    })
    .await;
    let (whole, state) = (search(&client, "c").await.unwrap(), read_state(&client, "c").await.unwrap());
    let cache = cluster.data.parent().unwrap().join("node-0/cache");
    let mut files = cached(&cache);
    files.sort();
    let bytes: Vec<Vec<u8>> = files.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(files.len() >= 8, "{}", files.len());

    let mut num_partial = 0;
    for num_landed in [0, 1, 2, 3, 5, 7] {
        cluster.nodes[0].kill();
        std::fs::remove_dir_all(cache.join("node-0")).unwrap();
        cluster.nodes[0].start().await;
        let asker = client.clone();
        let opening = tokio::spawn(async move { search(&asker, "c").await });
        while !opening.is_finished() && cached(&cache).len() < num_landed {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        cluster.nodes[0].kill();
        // It was refused, or it had come.
        let _ = opening.await.unwrap();
        // Whatever has a name is whole.
        let landed = cached(&cache);
        num_partial += usize::from(!landed.is_empty() && landed.len() < files.len());
        for path in &landed {
            let at = files.iter().position(|file| file == path).unwrap();
            assert!(std::fs::read(path).unwrap() == bytes[at], "{}", path.display());
        }
        cluster.nodes[0].start().await;
        let back = || async { search(&client, "c").await.is_ok_and(|answer| answer == whole) };
        wait_until(Duration::from_secs(30), back).await;
        assert_eq!(std::fs::read_dir(cache.join("node-0/trash")).unwrap().count(), 0);
    }
    assert!(num_partial >= 3, "only {num_partial} of 6 were killed on their way");
    assert_eq!(read_state(&client, "c").await.unwrap(), state);
}
