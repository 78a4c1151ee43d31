//! What is particular to a local directory: files in place, several processes, what a crash left.
#![allow(clippy::unwrap_used)]

use antiphon_store::{Created, Store};

fn url(path: &std::path::Path) -> String {
    format!("file://{}", path.display())
}

#[tokio::test]
async fn objects_outlive_the_process_and_leftovers_do_not() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("made/by/open");
    let store = Store::open(&url(&root)).unwrap();
    store.create_if_absent("x/log/1", "whole".into()).await.unwrap();
    drop(store);
    let torn = root.join("x/log/2#12345678901234567890");
    std::fs::write(&torn, "tor").unwrap();
    let store = Store::open(&url(&root)).unwrap();
    assert!(!torn.exists());
    assert_eq!(store.get("x/log/1").await.unwrap(), Some("whole".into()));
    let names: Vec<_> = store.list("x/log", None).await.unwrap().into_iter().map(|object| object.name).collect();
    assert_eq!(names, ["1"]);
}

#[tokio::test]
async fn leftovers_are_invisible_before_they_are_swept() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(&url(temp.path())).unwrap();
    store.create_if_absent("x/1", "a".into()).await.unwrap();
    std::fs::write(temp.path().join("x/2#77"), "torn").unwrap();
    assert_eq!(store.list("x", None).await.unwrap().len(), 1);
    assert_eq!(store.create_if_absent("x/2", "b".into()).await.unwrap(), Created::Yes);
    // Not even they keep a deleted prefix alive.
    store.delete_prefix("x").await.unwrap();
    assert!(!temp.path().join("x").exists());
}

#[tokio::test]
async fn two_openings_of_one_directory_are_one_store() {
    let temp = tempfile::tempdir().unwrap();
    let (one, two) = (Store::open(&url(temp.path())).unwrap(), Store::open(&url(temp.path())).unwrap());
    assert_eq!(one.create_if_absent("a/b", "one".into()).await.unwrap(), Created::Yes);
    assert_eq!(two.create_if_absent("a/b", "two".into()).await.unwrap(), Created::AlreadyExists);
    // The other's directories may vanish under one's feet.
    two.delete_prefix("a").await.unwrap();
    assert_eq!(one.create_if_absent("a/b", "again".into()).await.unwrap(), Created::Yes);
    assert_eq!(two.get("a/b").await.unwrap(), Some("again".into()));
}

#[tokio::test]
async fn an_upload_is_a_copy_of_its_own() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(&url(&temp.path().join("store"))).unwrap();
    let file = temp.path().join("built");
    std::fs::write(&file, "segment").unwrap();
    let mut permissions = std::fs::metadata(&file).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&file, permissions).unwrap();
    store.upload_file(&file, "s/rows").await.unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "changed").unwrap();
    assert!(store.is_local());
    assert_eq!(std::fs::read(store.local_path("s/rows").unwrap()).unwrap(), b"segment");
    let left = std::fs::read_dir(temp.path().join("store/s")).unwrap().count();
    assert_eq!(left, 1, "no staging file stays");
}

#[tokio::test]
async fn creating_leaves_no_staging_files() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(&url(temp.path())).unwrap();
    for _ in 0..3 {
        store.create_if_absent("x/1", "a".into()).await.unwrap();
    }
    assert_eq!(std::fs::read_dir(temp.path().join("x")).unwrap().count(), 1);
}

#[test]
fn a_directory_that_cannot_be_is_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(Store::open(&url(&file.join("below"))).is_err());
}
