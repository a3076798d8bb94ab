//! Locks beside the store's file. The system lets them go when their process dies, however it dies, so a lock that is
//! held means a process that lives.

use std::{
    ffi::OsString,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use speedmatrix_shared::id::RunId;

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    _held: File,
}

impl Lock {
    /// Takes the lock at `path`; `None` if a living process holds it.
    pub(super) fn take(path: PathBuf) -> io::Result<Option<Self>> {
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { path, _held: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Lets go of a lock that nobody will ask for again, and takes its file away.
    pub(super) fn finish(self) {
        // A file that stays behind is unlocked, which says the same.
        drop(fs::remove_file(&self.path));
    }
}

/// The lock of the agent that serves the store.
pub(super) fn of_store(store: &Path) -> PathBuf {
    beside(store, "lock")
}

/// The lock of the process that measures a run.
pub(super) fn of_run(store: &Path, run: &RunId) -> PathBuf {
    beside(store, &format!("{run}.lock"))
}

fn beside(store: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(".");
    name.push(ending);
    name.into()
}
