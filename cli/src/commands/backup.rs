//! `antiphon backup` and `antiphon restore`: between stores, without a server.

use std::path::{Path, PathBuf};

use antiphon_store::backup::{Backups, Copier};
use antiphon_store::{Store, StoreError};
use ulid::Ulid;

use crate::args::{BackupArgs, BackupCommand, RestoreArgs};
use crate::failure::Failure;
use crate::output::{Table, bytes, count, print};

/// Variables with this prefix are S3 options of the store of backups alone: `ANTIPHON_BACKUP_AWS_ENDPOINT_URL`.
const OPTIONS_PREFIX: &str = "ANTIPHON_BACKUP_";

/// Runs `antiphon backup`.
///
/// # Errors
/// Those of the stores.
pub(crate) async fn run(args: &BackupArgs) -> Result<(), Failure> {
    match &args.command {
        None => take(args).await,
        Some(BackupCommand::List { from }) => list(from).await,
        Some(BackupCommand::Verify { backup, from }) => {
            let scratch = Scratch::make(None)?;
            let seen = backups(from).await?.verify(backup, &scratch.copier()).await.map_err(failed(backup))?;
            let (files, entries) = (count(seen.files), count(seen.entries));
            print(&format!("{backup} is whole: {files} files, {}, {entries} log entries\n", bytes(seen.bytes)))
        }
        Some(BackupCommand::Delete { backup, from }) => {
            let deleted = backups(from).await?.delete(backup).await.map_err(failed(backup))?;
            print(&format!("deleted {backup} and {} objects that only it needed\n", count(deleted)))
        }
    }
}

async fn take(args: &BackupArgs) -> Result<(), Failure> {
    let (Some(collection), Some(store), Some(to)) = (&args.collection, &args.store, &args.to) else {
        return Err(Failure::new("backup needs a collection, --store and --to"));
    };
    let name = match &args.name {
        Some(name) => name.clone(),
        None => format!("{collection}.{}", Ulid::generate().to_string().to_ascii_lowercase()),
    };
    let scratch = Scratch::make(args.scratch.as_deref())?;
    let source = open(store, false).await?;
    let taken = backups(to).await?.take(&source, collection, &name, &scratch.copier()).await;
    let (_, copied) = taken.map_err(failed(collection))?;
    print(&format!(
        "{name}: copied {} files, {}; {} were there; {} log entries\n",
        count(copied.files),
        bytes(copied.bytes),
        count(copied.files_there),
        count(copied.entries)
    ))
}

async fn list(from: &str) -> Result<(), Failure> {
    let backups = backups(from).await?;
    let mut table = Table::new(&["backup", "collection", "time", "#shards", "#size"]);
    for name in backups.names().await.map_err(failed(from))? {
        let backup = backups.get(&name).await.map_err(failed(&name))?;
        let collection = backup.collection.and_then(|entry| entry.collection).unwrap_or_default();
        let manifests = backup.shards.iter().filter_map(|shard| shard.manifest.as_ref());
        let files = manifests.flat_map(|manifest| &manifest.segments).flat_map(|segment| &segment.files);
        let size = files.map(|file| file.size_bytes).sum();
        let time = backup.create_time.map(|time| time.to_string()).unwrap_or_default();
        table.row([name, collection.name, time, backup.shards.len().to_string(), bytes(size)]);
    }
    match table.is_empty() {
        true => print("There are no backups.\n"),
        false => print(&table.render(0)),
    }
}

/// Runs `antiphon restore`.
///
/// # Errors
/// Those of the stores; that the name is taken.
pub(crate) async fn restore(args: &RestoreArgs) -> Result<(), Failure> {
    let scratch = Scratch::make(args.scratch.as_deref())?;
    let target = open(&args.store, false).await?;
    let backups = backups(&args.from).await?;
    let made = backups.restore(&args.backup, &target, args.new_name.as_deref(), &scratch.copier()).await;
    let made = made.map_err(|error| Failure::of(&args.backup, &error))?.collection.unwrap_or_default();
    print(&format!("restored {} as {}, uid {}\n", args.backup, made.name, made.uid))
}

fn failed(what: &str) -> impl Fn(StoreError) -> Failure {
    move |error| Failure::of(what, &error)
}

async fn backups(url: &str) -> Result<Backups, Failure> {
    Backups::open(open(url, true).await?).await.map_err(failed(url))
}

async fn open(url: &str, is_of_backups: bool) -> Result<Store, Failure> {
    let owned = url.to_owned();
    let work = tokio::task::spawn_blocking(move || {
        let own = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.to_str()?.strip_prefix(OPTIONS_PREFIX)?.to_owned();
            Some((name, value.into_string().ok()?))
        });
        let own: Vec<(String, String)> = own.filter(|_| is_of_backups && owned.starts_with("s3:")).collect();
        let options: Vec<(&str, &str)> = own.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Store::open_with(&owned, &options)
    });
    match work.await {
        Ok(opened) => opened.map_err(failed(url)),
        Err(error) => Err(Failure::of(format!("the store {url}"), &error)),
    }
}

/// A folder of this run's own, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn make(below: Option<&Path>) -> Result<Self, Failure> {
        let below = below.map_or_else(std::env::temp_dir, Path::to_owned);
        let folder = below.join(format!("antiphon-backup-{}", Ulid::generate()));
        match std::fs::create_dir(&folder) {
            Ok(()) => Ok(Self(folder)),
            Err(error) => Err(Failure::of(folder.display(), &error)),
        }
    }

    fn copier(&self) -> Copier {
        Copier::new(self.0.clone())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
