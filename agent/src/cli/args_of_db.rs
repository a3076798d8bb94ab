//! What can be typed about the store's file.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::args::StoreArgs;

/// How `db` ends.
pub(super) const DB_STATUS: &str = "\
Exit status:
  0   done; nothing is damaged
  1   something is damaged: the output says what, and what to do
  64  the arguments can't be followed
  74  the store or a file can't be had";

#[derive(Debug, Args)]
pub(super) struct DbArgs {
    #[command(subcommand)]
    pub(super) command: DbCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum DbCommand {
    /// Say what is damaged and what to do
    ///
    /// Reads the whole file and folds every run. It works beside an agent and changes nothing.
    #[command(after_help = DB_STATUS)]
    Check(StoreArgs),
    /// Give the room of deleted runs back to the disk
    ///
    /// Rewrites the file, which takes about its size in free room meanwhile. Not while an agent serves the store or a
    /// run is being measured: they would have to wait too long.
    #[command(after_help = DB_STATUS)]
    Vacuum(StoreArgs),
    /// Copy the store to a new file, and check the copy
    ///
    /// The copy is the store of one moment. It works beside an agent and while a run is being measured.
    #[command(after_help = DB_STATUS)]
    Backup(BackupArgs),
}

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// File that does not exist yet, or a folder [default: beside the store, named by the time]
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}
