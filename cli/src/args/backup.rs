//! Flags of `antiphon backup` and `antiphon restore`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `antiphon backup`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BackupArgs {
    #[command(subcommand)]
    pub(crate) command: Option<BackupCommand>,
    /// The collection to copy, by its own name.
    #[arg(required = true, value_name = "COLLECTION")]
    pub(crate) collection: Option<String>,
    /// The store of the collection, as servers are given it: file:///srv/antiphon, s3://bucket/prefix.
    #[arg(long, value_name = "URL", required = true)]
    pub(crate) store: Option<String>,
    /// The store of backups, which no server may use: a folder or a prefix of its own.
    #[arg(long, value_name = "URL", required = true)]
    pub(crate) to: Option<String>,
    /// What to call the backup [default: COLLECTION, a dot and letters that grow with time].
    #[arg(long, value_name = "BACKUP")]
    pub(crate) name: Option<String>,
    /// A folder for files on their way, with room for two of the largest [default: the system's for temporary files].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) scratch: Option<PathBuf>,
}

/// What to do with backups.
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// List backups.
    List {
        /// The store of backups.
        #[arg(long, value_name = "URL")]
        from: String,
    },
    /// Read all that a backup needs and compare checksums.
    Verify {
        /// The backup.
        backup: String,
        /// The store of backups.
        #[arg(long, value_name = "URL")]
        from: String,
    },
    /// Delete a backup, and those files that no other backup needs. Not while one is being taken into the same store.
    Delete {
        /// The backup.
        backup: String,
        /// The store of backups.
        #[arg(long, value_name = "URL")]
        from: String,
    },
}

/// `antiphon restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup.
    pub(crate) backup: String,
    /// The store of backups.
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// The store to make the collection in.
    #[arg(long, value_name = "URL")]
    pub(crate) store: String,
    /// What to call the collection [default: as it was called].
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) new_name: Option<String>,
    /// A folder for files on their way, with room for two of the largest [default: the system's for temporary files].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) scratch: Option<PathBuf>,
}
