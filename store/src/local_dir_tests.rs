//! What a crash left behind goes, and nothing else does.
#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn leftovers_are_swept_when_alone() {
    let temp = tempfile::tempdir().unwrap();
    let log = temp.path().join("store/collections/u/log");
    std::fs::create_dir_all(&log).unwrap();
    for name in ["00000000000000000001", "00000000000000000002#17", "00000000000000000002#1"] {
        std::fs::write(log.join(name), "x").unwrap();
    }
    std::fs::write(temp.path().join("outside#1"), "x").unwrap();
    LocalDir::open(&temp.path().join("store")).unwrap();
    let left: Vec<_> = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["00000000000000000001"]);
    assert!(temp.path().join("outside#1").exists());
}

#[test]
fn in_company_only_old_leftovers_are_swept() {
    let temp = tempfile::tempdir().unwrap();
    let _first = LocalDir::open(temp.path()).unwrap();
    let (old, young) = (temp.path().join("a#1"), temp.path().join("b#1"));
    std::fs::write(&old, "x").unwrap();
    std::fs::write(&young, "x").unwrap();
    #[expect(clippy::disallowed_methods, reason = "file times are the wall clock's")]
    let long_ago = SystemTime::now() - 2 * OLD_LEFTOVER;
    File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
    let _second = LocalDir::open(temp.path()).unwrap();
    assert!(!old.exists());
    assert!(young.exists());
}

#[test]
fn directories_removed_by_others_are_made_again() {
    let temp = tempfile::tempdir().unwrap();
    let dir = LocalDir::open(temp.path()).unwrap();
    let deep = dir.root().join("a/b/c");
    dir.make_dirs(&deep).unwrap();
    std::fs::remove_dir_all(dir.root().join("a")).unwrap();
    dir.forget(&deep);
    dir.make_dirs(&deep).unwrap();
    assert!(deep.is_dir());
    assert!(dir.make_dirs(FsPath::new("/elsewhere")).is_err());
}

#[test]
fn pruning_leaves_directories_in_use() {
    let temp = tempfile::tempdir().unwrap();
    let dir = LocalDir::open(temp.path()).unwrap();
    dir.make_dirs(&dir.root().join("c/used")).unwrap();
    dir.make_dirs(&dir.root().join("c/empty/deeper")).unwrap();
    std::fs::write(dir.root().join("c/used/file"), "x").unwrap();
    std::fs::write(dir.root().join("c/empty/torn#5"), "x").unwrap();
    dir.prune(&Path::from("c")).unwrap();
    assert!(dir.root().join("c/used/file").exists());
    assert!(!dir.root().join("c/empty").exists());
    dir.prune(&Path::from("absent")).unwrap();
}
