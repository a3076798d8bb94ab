//! What can be wrong with the store, each as one sentence that says what to do.

use std::{
    fmt::Display,
    io,
    path::{Path, PathBuf},
};

use rusqlite::ErrorCode;
use speedmatrix_shared::{
    id::{CellId, RunId},
    label::{LabelError, Labels},
};

use super::upkeep::free_bytes;

/// Why the store did not do what was asked. Nothing was overwritten.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is not SQLite's, or parts of it are not.
    #[error(
        "the store {path} is damaged ({detail}) and was left as it is: move it away, or choose another file with --store"
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// A later version of this program wrote it.
    #[error(
        "the store {path} was made by a newer Speedmatrix (schema {found}, this one knows {known}): update \
         Speedmatrix, or choose another file with --store"
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema known here.
        known: i64,
    },
    /// An earlier version wrote it and it was opened only to look.
    #[error(
        "the store {path} was made by an older Speedmatrix (schema {found}, this one writes {known}): start \
         `speedmatrix serve` once, which brings it up to date"
    )]
    Older {
        /// Which file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The schema of this version.
        known: i64,
    },
    /// It is a database, but not ours.
    #[error("{path} is the database of another program: choose another file with --store")]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// It can't be written.
    #[error("the store {path} can't be written: make it writable for this user, or choose another file with --store")]
    ReadOnly {
        /// Which file.
        path: PathBuf,
    },
    /// Another agent serves it.
    #[error("another agent serves the store {path}: open its page, stop it, or choose another file with --store")]
    InUse {
        /// Which file.
        path: PathBuf,
    },
    /// The file, its folder or a lock beside it can't be made or opened.
    #[error("the store {path} can't be opened ({source}): check the folder, or choose another file with --store")]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no file to look after.
    #[error("there is no store {path}: check the path, or give the right one with --store")]
    Missing {
        /// Which file.
        path: PathBuf,
    },
    /// A copy never replaces a file.
    #[error("{path} is there already and was left as it is: give the copy another name")]
    Exists {
        /// Which file.
        path: PathBuf,
    },
    /// The copy can't be written.
    #[error("the copy {path} can't be written ({source}): choose another file on a disk with room")]
    NoCopy {
        /// Which file.
        path: PathBuf,
        /// What the system or SQLite said.
        source: io::Error,
    },
    /// A run is being written to the file that is to be rewritten.
    #[error("run {run} is being measured into the store {path}: wait for its end or stop it, then try again")]
    Measuring {
        /// Which file.
        path: PathBuf,
        /// Which run.
        run: RunId,
    },
    /// Another program holds the file.
    #[error("other programs kept the store {path} busy for too long: wait for their end or stop them, then try again")]
    Busy {
        /// Which file.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("the disk that holds the store {path} is full: free some space, then try again")]
    Full {
        /// Which file.
        path: PathBuf,
    },
    /// There is no such run.
    #[error("there is no run \"{0}\" in the store")]
    NoSuchRun(RunId),
    /// Nobody else can be let in.
    #[error("there are {most} links already: take some back, or give new ones a time after which they run out")]
    TooManyPasses {
        /// How many are kept.
        most: usize,
    },
    /// One run's record can't be read; the others can.
    #[error("the record of run {run} is damaged ({detail}): the other runs are not affected")]
    DamagedRun {
        /// Which run.
        run: RunId,
        /// What is wrong with it.
        detail: String,
    },
    /// What one cell's result was computed from can't be read; the result can.
    #[error(
        "the record of raw arrivals of {cell} in run {run} is damaged ({detail}): the cell's stored numbers are not affected"
    )]
    DamagedRaw {
        /// Which run.
        run: RunId,
        /// Which cell.
        cell: CellId,
        /// What is wrong with them.
        detail: String,
    },
    /// An event that may not stand there.
    #[error("an event of run {run} can't be stored: {detail}")]
    Refused {
        /// Which run.
        run: RunId,
        /// Why.
        detail: String,
    },
    /// A run that is being measured can't be deleted.
    #[error("run {0} is still being measured: stop it first, then delete it")]
    Running(RunId),
    /// Somebody else changed a run's labels first.
    #[error("somebody else changed run {run} meanwhile: look at what is there now, then save again")]
    LabelsChanged {
        /// Which run.
        run: RunId,
        /// What is there now.
        now: Box<Labels>,
    },
    /// A label that is not kept.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// A run of that name is there already.
    #[error("there is a run {0} in the store already")]
    Taken(RunId),
    /// The thread of the file could not be started.
    #[error("no thread for the store {path} ({source}): close other programs and try again")]
    Thread {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The thread of the file has ended.
    #[error("the store {path} is closed: start Speedmatrix again")]
    Gone {
        /// Which file.
        path: PathBuf,
    },
    /// Anything else that SQLite says.
    #[error("the store {path} did not do its work ({source}): check the disk and try again")]
    Sqlite {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Whether it may go away while this program runs, so that the same work can be tried again.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::ReadOnly { .. } | Self::Open { .. } | Self::Busy { .. } | Self::Full { .. } => true,
            Self::Sqlite { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(
                    ErrorCode::SystemIoFailure
                        | ErrorCode::OutOfMemory
                        | ErrorCode::DatabaseLocked
                        | ErrorCode::FileLockingProtocolFailed
                )
            ),
            _ => false,
        }
    }

    /// In words that tell nothing of this machine.
    pub const fn plain(&self) -> &'static str {
        match self {
            Self::Full { .. } => "the disk that holds the store is full or nearly so: free some space",
            Self::ReadOnly { .. } => "the store can't be written: make it writable for the agent's user",
            Self::Busy { .. } => "other programs keep the store busy: wait for their end or stop them",
            Self::Damaged { .. } => "the store is damaged: `speedmatrix db check` says what to do",
            Self::Gone { .. } => "the store is closed: start the agent again",
            _ => "the store did not do its work: the agent's log says why, and `speedmatrix db check` looks for damage",
        }
    }
}

/// Room below which what goes wrong on a disk is told as a full one: a page of SQLite's, bytes.
const NO_ROOM_BYTES: u64 = 4_096;

/// What SQLite says, as one of ours.
pub(super) fn explain(path: &Path, source: rusqlite::Error) -> StoreError {
    // Where not even its index of the log fits, SQLite tells of input and output.
    let is_full = || free_bytes(path).is_some_and(|free| free < NO_ROOM_BYTES);
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            StoreError::Damaged { path, detail: source.to_string() }
        }
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path },
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::SystemIoFailure) if is_full() => StoreError::Full { path },
        Some(ErrorCode::DatabaseBusy) => StoreError::Busy { path },
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::Open { path, source: io::Error::other(source) }
        }
        _ => StoreError::Sqlite { path, source },
    }
}

/// An event that the run can't have.
pub(super) fn refused(run: &RunId, detail: impl Display) -> StoreError {
    StoreError::Refused { run: run.clone(), detail: detail.to_string() }
}

/// What is stored of the run can't be read.
pub(super) fn damaged(run: &RunId, detail: impl Display) -> StoreError {
    StoreError::DamagedRun { run: run.clone(), detail: detail.to_string() }
}
