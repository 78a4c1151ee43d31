//! Objects and files.

use antiphon_store::{Created, FileSum, Store, StoreErrorKind};
use bytes::Bytes;
use futures::future::join_all;
use tokio::sync::Semaphore;

pub async fn of_16_racers_one_wins_each_of_50_names(store: Store) {
    for name in 0..50 {
        let path = format!("race/{name:03}");
        let racers = (0..16).map(|racer| {
            let (store, path) = (store.clone(), path.clone());
            tokio::spawn(async move {
                let bytes = Bytes::from(format!("racer {racer}").repeat(racer + 1));
                (bytes.clone(), store.create_if_absent(&path, bytes).await.unwrap())
            })
        });
        let outcomes: Vec<_> = join_all(racers).await.into_iter().map(Result::unwrap).collect();
        let winners: Vec<_> = outcomes.iter().filter(|(_, created)| *created == Created::Yes).collect();
        assert_eq!(winners.len(), 1, "{path}");
        assert_eq!(store.get(&path).await.unwrap().as_ref(), Some(&winners[0].0), "{path}");
    }
    assert_eq!(store.list("race", None).await.unwrap().len(), 50);
}

pub async fn what_was_written_is_read(store: Store) {
    let large: Vec<u8> = (0..1_000_003u32).map(|n| (n * 31 / 7) as u8).collect();
    for (path, bytes) in [("a/empty", Vec::new()), ("a/b/c/small", vec![0, 255, 10]), ("a/large", large)] {
        assert_eq!(store.get(path).await.unwrap(), None);
        let bytes = Bytes::from(bytes);
        assert_eq!(store.create_if_absent(path, bytes.clone()).await.unwrap(), Created::Yes);
        assert_eq!(store.get(path).await.unwrap(), Some(bytes.clone()), "{path}");
        assert_eq!(store.create_if_absent(path, "other".into()).await.unwrap(), Created::AlreadyExists);
        assert_eq!(store.get(path).await.unwrap(), Some(bytes), "{path}");
    }
}

pub async fn lists_are_sorted_and_begin_after(store: Store) {
    assert_eq!(store.list("l", None).await.unwrap(), []);
    assert_eq!(store.list_dirs("l").await.unwrap(), [""; 0]);
    for name in ["l/003", "l/001", "l/010", "l/002", "l/deep/004", "l/other/x/y", "l2/005", "l/a", "l/a.b"] {
        store.create_if_absent(name, name.into()).await.unwrap();
    }
    let names = async |after| -> Vec<String> {
        store.list("l", after).await.unwrap().into_iter().map(|object| object.name).collect()
    };
    assert_eq!(names(None).await, ["001", "002", "003", "010", "a", "a.b"]);
    assert_eq!(names(Some("002")).await, ["003", "010", "a", "a.b"]);
    assert_eq!(names(Some("0020")).await, ["003", "010", "a", "a.b"]);
    assert_eq!(names(Some("zzz")).await, [""; 0]);
    assert_eq!(store.list_dirs("l").await.unwrap(), ["deep", "other"]);
    let listed = &store.list("l", Some("a")).await.unwrap()[0];
    assert_eq!(listed.size_bytes, "l/a.b".len() as u64);
    assert!(listed.last_modified.elapsed().unwrap_or_default().as_secs() < 600);
}

pub async fn deleting_takes_what_it_was_told(store: Store) {
    for path in ["d/1", "d/2", "d/deep/er/3", "d2/4"] {
        store.create_if_absent(path, "x".into()).await.unwrap();
    }
    store.delete("d/1").await.unwrap();
    store.delete("d/1").await.unwrap();
    store.delete("never/was").await.unwrap();
    assert_eq!(store.get("d/1").await.unwrap(), None);
    assert_eq!(store.delete_prefix("d").await.unwrap(), 2);
    assert_eq!(store.delete_prefix("d").await.unwrap(), 0);
    assert_eq!(store.get("d/deep/er/3").await.unwrap(), None);
    assert_eq!(store.list_dirs("d").await.unwrap(), [""; 0]);
    assert!(store.get("d2/4").await.unwrap().is_some());
    // What was deleted can be made again.
    assert_eq!(store.create_if_absent("d/deep/er/3", "y".into()).await.unwrap(), Created::Yes);
    assert_eq!(store.get("d/deep/er/3").await.unwrap(), Some("y".into()));
}

pub async fn files_go_up_and_down(store: Store) {
    let temp = tempfile::tempdir().unwrap();
    let (from, to, part) = (temp.path().join("from"), temp.path().join("dir/to"), temp.path().join("part"));
    std::fs::create_dir(temp.path().join("dir")).unwrap();
    let permits = Semaphore::new(2);
    let sum_of = |bytes: &[u8]| FileSum { size_bytes: bytes.len() as u64, crc32: crc32fast::hash(bytes) };
    let pieces = 16 << 20;
    for (n, len) in [0, 1, pieces - 1, pieces, pieces + 1, 20_000_000].into_iter().enumerate() {
        let bytes: Vec<u8> = (0..len).map(|at| ((at * 2_654_435_761usize) >> 13) as u8).collect();
        std::fs::write(&from, &bytes).unwrap();
        let path = format!("segments/s{n}/file");
        store.upload_file(&from, &path).await.unwrap();
        let sum = sum_of(&bytes);
        store.download_file(&path, &to, &part, sum, &permits).await.unwrap();
        assert!(std::fs::read(&to).unwrap() == bytes, "{len} bytes");
        if let Some(mapped) = store.local_path(&path) {
            assert!(std::fs::read(mapped).unwrap() == bytes, "{len} bytes in place");
        }
        assert_eq!(store.list(&format!("segments/s{n}"), None).await.unwrap()[0].size_bytes, len as u64);
    }
    // A retry after an unknown outcome.
    store.upload_file(&from, "segments/s0/file").await.unwrap();
    let sum = sum_of(&std::fs::read(&from).unwrap());
    store.download_file("segments/s0/file", &to, &part, sum, &permits).await.unwrap();
    assert_eq!(std::fs::metadata(&to).unwrap().len(), 20_000_000);

    // Other bytes than those expected get no name.
    let other = temp.path().join("other");
    for sum in [FileSum { crc32: sum.crc32 ^ 1, ..sum }, FileSum { size_bytes: sum.size_bytes - 1, ..sum }] {
        let damaged = store.download_file("segments/s0/file", &other, &part, sum, &permits).await.unwrap_err();
        assert_eq!(damaged.kind(), StoreErrorKind::Corrupt, "{damaged}");
        assert!(!other.exists() && !part.exists());
    }

    let absent = store.download_file("segments/none/file", &other, &part, sum, &permits).await.unwrap_err();
    assert_eq!(absent.kind(), StoreErrorKind::NotFound);
    let missing = store.upload_file(&temp.path().join("missing"), "segments/s9/file").await.unwrap_err();
    assert_eq!(missing.kind(), StoreErrorKind::LocalFile);
    assert_eq!(store.get("segments/s9/file").await.unwrap(), None);
    // It comes whole, and can't be put in place.
    let occupied =
        store.download_file("segments/s0/file", to.parent().unwrap(), &part, sum, &permits).await.unwrap_err();
    assert_eq!(occupied.kind(), StoreErrorKind::LocalFile);
    let left: Vec<_> = std::fs::read_dir(temp.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(std::fs::read_dir(to.parent().unwrap()).unwrap().count(), 1);
}

pub async fn invalid_paths_are_refused(store: Store) {
    for path in ["", "/", "../x", "a/../../x", "a//b", "a#1", "a/b#2", "a b", ".antiphon.lock"] {
        let kinds = [
            store.create_if_absent(path, "x".into()).await.unwrap_err().kind(),
            store.get(path).await.unwrap_err().kind(),
            store.list(path, None).await.unwrap_err().kind(),
            store.delete(path).await.unwrap_err().kind(),
            store.delete_prefix(path).await.unwrap_err().kind(),
        ];
        assert_eq!(kinds, [StoreErrorKind::Invalid; 5], "{path:?}");
        assert_eq!(store.local_path(path), None);
    }
}
