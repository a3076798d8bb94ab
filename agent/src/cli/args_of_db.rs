//! What can be typed about the store's file.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::args::StoreArgs;
use crate::store::Retention;

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
    /// Remove runs that are no longer wanted, or their raw arrivals only
    ///
    /// Pinned runs and running ones always stay. Each run that goes is named; it can't be brought back. It works beside an
    /// agent; `speedmatrix serve --keep-days` and its neighbours do the same all the time.
    #[command(after_help = DB_STATUS)]
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    #[command(flatten)]
    pub(super) rule: PruneRule,
    /// Say what would go, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

// No doc comment: it would take the place of the command's.
#[derive(Debug, Clone, Copy, Args)]
#[group(required = true, multiple = true)]
pub(super) struct PruneRule {
    /// Remove runs that are older than this: 90d, 12w
    #[arg(long, value_name = "AGE", value_parser = days)]
    older_than: Option<u64>,
    /// Keep this many runs, the newest, beside the pinned ones, and remove the others
    #[arg(long, value_name = "N")]
    keep_runs: Option<u64>,
    /// Remove the raw arrivals of runs that are older than this: their numbers stay, and can't be computed again
    #[arg(long, value_name = "AGE", value_parser = days)]
    raw_older_than: Option<u64>,
}

impl PruneRule {
    pub(super) const fn retention(self) -> Retention {
        Retention { runs: self.keep_runs, days: self.older_than, raw_days: self.raw_older_than }
    }
}

/// An age in days.
fn days(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no age: write 90d for days or 12w for weeks");
    let (number, days_each) = match text.strip_suffix('w') {
        Some(weeks) => (weeks, 7),
        None => (text.strip_suffix('d').ok_or_else(wrong)?, 1),
    };
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(days_each)).ok_or_else(wrong)
}

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// File that does not exist yet, or a folder [default: beside the store, named by the time]
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

// How long runs are kept. No doc comment: it would take the place of the command's.
#[derive(Debug, Clone, Copy, Args)]
#[expect(clippy::struct_field_names, reason = "the names of the options are those of the fields")]
pub(super) struct KeepArgs {
    /// Delete runs older than this many days; pinned ones always stay [default: all are kept]
    #[arg(long, value_name = "DAYS")]
    keep_days: Option<u64>,
    /// Keep this many runs beside the pinned ones, the newest, and delete the others
    #[arg(long, value_name = "N")]
    keep_runs: Option<u64>,
    /// Delete the raw arrivals of runs older than this many days; their numbers stay
    #[arg(long, value_name = "DAYS")]
    keep_raw_days: Option<u64>,
}

impl KeepArgs {
    pub(super) const fn retention(self) -> Retention {
        Retention { runs: self.keep_runs, days: self.keep_days, raw_days: self.keep_raw_days }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_days_or_weeks() {
        let check = |text: &str, wanted: Option<u64>| assert_eq!(days(text).ok(), wanted, "{text}");
        check("90d", Some(90));
        check("12w", Some(84));
        check("0d", Some(0));
        for wrong in ["", "d", "90", "-1d", "1.5d", "3m", "99999999999999999999d", "9999999999999999999w"] {
            check(wrong, None);
        }
    }
}
