//! Which file is damaged how, and what must come of it.

use std::path::{Path, PathBuf};

use antiphon_store::{CatalogStore, Manifests, Seq, ShardId, Store};
use antiphon_tests::random::Random;
use rand::prelude::*;

use crate::prepared::{ROUNDS, TAIL};

/// Flipped bits of one file, beside those of its header.
pub(crate) const FLIPS: usize = 6;

#[derive(Debug, Clone)]
pub(crate) enum Damage {
    /// Only so many bytes are left.
    Cut(usize),
    /// Bytes that follow.
    Longer,
    Flip(usize),
    Lost,
    /// In its place lies a copy of this file.
    Swap(PathBuf),
}

/// What must come of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Effect {
    /// Nothing depends on it, or it can be had otherwise.
    None,
    /// No server comes up.
    NoServer,
    /// This collection is refused as damaged, as far as it depends on it; the other is served.
    Refused(&'static str),
    /// `one` is what it was before its last write.
    LastWriteGone,
    /// `one` is not known; nothing of it is deleted.
    OneUnknown,
}

pub(crate) struct Case {
    pub(crate) file: PathBuf,
    pub(crate) damage: Damage,
    pub(crate) effect: Effect,
}

pub(crate) fn apply(file: &Path, folder: &Path, damage: &Damage) {
    let mut bytes = std::fs::read(file).unwrap();
    match damage {
        Damage::Cut(len) => bytes.truncate(*len),
        Damage::Longer => bytes.push(0),
        Damage::Flip(bit) => bytes[bit / 8] ^= 1 << (bit % 8),
        Damage::Lost => return std::fs::remove_file(file).unwrap(),
        Damage::Swap(other) => bytes = std::fs::read(folder.join(other)).unwrap(),
    }
    // A new file in its place, for this one is also the prepared store's.
    std::fs::remove_file(file).unwrap();
    std::fs::write(file, bytes).unwrap();
}

/// The damages that leave a file there: cuts, additions, flipped bits.
pub(crate) fn spoilt(folder: &Path, file: &Path, header_bits: usize, random: &mut Random) -> Vec<Damage> {
    let len = std::fs::metadata(folder.join(file)).unwrap().len() as usize;
    let mut damages: Vec<Damage> =
        [0, 1, 39, len / 2, len - 1].into_iter().filter(|n| *n < len).map(Damage::Cut).collect();
    damages.push(Damage::Longer);
    let header = (0..header_bits.min(len * 8)).step_by(11).map(Damage::Flip);
    damages.extend(header);
    damages.extend((0..FLIPS).map(|_| Damage::Flip(random.below(len * 8))));
    damages
}

pub(crate) fn names(folder: &Path, dir: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join(dir)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The directories of shards: `two`'s two, then `one`'s.
pub(crate) async fn shard_dirs(folder: &Path) -> Vec<(&'static str, ShardId)> {
    let store = Store::open_dir(folder.to_owned()).unwrap();
    let catalog = CatalogStore::new(store).refresh().await.unwrap();
    let mut dirs = Vec::new();
    for (name, shards) in [("two", 2), ("one", 1)] {
        let collections = catalog.catalog.collections.iter().filter_map(|entry| entry.collection.as_ref());
        let uid = &collections.into_iter().find(|collection| collection.name == name).unwrap().uid;
        dirs.extend((0..shards).map(|shard| (name, format!("{uid}/{shard}").parse().unwrap())));
    }
    dirs
}

pub(crate) async fn catalog_cases(folder: &Path, random: &mut Random) -> Vec<Case> {
    let versions = names(folder, "catalog");
    let [older, newest] = &versions[..] else { panic!("{versions:?}") };
    let path = |name: &String| Path::new("catalog").join(name);
    let case = |name, damage, effect| Case { file: path(name), damage, effect };
    let mut cases = vec![
        case(newest, Damage::Lost, Effect::OneUnknown),
        case(newest, Damage::Swap(path(older)), Effect::NoServer),
        case(older, Damage::Lost, Effect::None),
        case(older, Damage::Swap(path(newest)), Effect::None),
    ];
    let spoilt = spoilt(folder, &path(newest), 44 * 8, random);
    cases.extend(spoilt.into_iter().map(|damage| case(newest, damage, Effect::NoServer)));
    cases
}

pub(crate) async fn manifest_cases(folder: &Path, random: &mut Random) -> Vec<Case> {
    let dirs = shard_dirs(folder).await;
    let mut cases = Vec::new();
    for (index, (collection, shard)) in dirs.iter().enumerate() {
        let dir = format!("{}/manifest", shard.path());
        let versions = names(folder, &dir);
        let [.., older, newest] = &versions[..] else { panic!("{versions:?}") };
        let path = |name: &String| Path::new(&dir).join(name);
        let case = |name, damage, effect| Case { file: path(name), damage, effect };
        let elsewhere = Path::new(&dirs[(index + 1) % dirs.len()].1.path()).join("manifest").join(older);
        cases.extend([
            // Its log entries are still there.
            case(newest, Damage::Lost, Effect::None),
            case(older, Damage::Lost, Effect::None),
            case(newest, Damage::Swap(path(older)), Effect::Refused(collection)),
            case(newest, Damage::Swap(elsewhere), Effect::Refused(collection)),
        ]);
        if index > 0 {
            let spoilt = spoilt(folder, &path(newest), 44 * 8, random);
            cases.extend(spoilt.into_iter().map(|damage| case(newest, damage, Effect::Refused(collection))));
        }
    }
    cases
}

pub(crate) async fn log_cases(folder: &Path, random: &mut Random) -> Vec<Case> {
    let dirs = shard_dirs(folder).await;
    let store = Store::open_dir(folder.to_owned()).unwrap();
    let mut cases = Vec::new();
    for (index, (collection, shard)) in dirs.iter().enumerate() {
        let dir = format!("{}/log", shard.path());
        let newest = Manifests::new(store.clone(), shard.clone()).newest().await.unwrap();
        let covered = newest.unwrap().1.covered_seq;
        let path = |seq: u64| Path::new(&dir).join(Seq(seq).name());
        let case = |seq, damage, effect| Case { file: path(seq), damage, effect };
        let (first, last) = (covered + 1, covered + TAIL);
        assert_eq!(names(folder, &dir).last().unwrap(), &Seq(last).name());
        let elsewhere =
            |seq: u64| Path::new(&dirs[(index + 1) % dirs.len()].1.path()).join("log").join(Seq(seq).name());
        let refused = Effect::Refused(collection);
        cases.extend([
            case(covered, Damage::Lost, Effect::None),
            case(covered, Damage::Cut(3), Effect::None),
            case(first, Damage::Lost, refused),
            case(first + 1, Damage::Lost, refused),
            case(first, Damage::Swap(path(last)), refused),
            case(last, Damage::Swap(path(first)), refused),
            case(last, Damage::Swap(path(covered)), refused),
            case(last, Damage::Swap(elsewhere(1)), refused),
        ]);
        if *collection == "one" {
            cases.push(case(last, Damage::Lost, Effect::LastWriteGone));
        }
        if index > 0 {
            let seq = random.rng.random_range(first..=last);
            let spoilt = spoilt(folder, &path(seq), 44 * 8, random);
            cases.extend(spoilt.into_iter().map(|damage| case(seq, damage, refused)));
        }
    }
    cases
}

pub(crate) async fn segment_cases(folder: &Path, random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, (collection, shard)) in shard_dirs(folder).await.iter().enumerate() {
        let dir = format!("{}/segments", shard.path());
        let segments = names(folder, &dir);
        assert_eq!(segments.len() as u64, ROUNDS);
        for (number, segment) in segments.iter().enumerate() {
            let files = names(folder, &format!("{dir}/{segment}"));
            assert_eq!(files.len(), 5, "rows, payload, text, vectors and graph: {files:?}");
            for name in &files {
                let path = |segment: &String| Path::new(&dir).join(segment).join(name);
                let case = |damage| Case { file: path(segment), damage, effect: Effect::Refused(collection) };
                cases.push(case(Damage::Lost));
                cases.push(case(Damage::Swap(path(&segments[(number + 1) % segments.len()]))));
                if index > 0 && number == 1 {
                    cases.extend(spoilt(folder, &path(segment), 0, random).into_iter().map(case));
                }
            }
        }
    }
    cases
}
