//! The open file: statements, and the fold of the runs that this process writes.

use std::{
    collections::BTreeMap,
    fs::{DirBuilder, OpenOptions},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, Transaction, params};
use speedmatrix_shared::{
    event::{Envelope, RunEvent, RunOutcome},
    id::RunId,
    state::{Applied, RunState, RunStatus},
};

use super::{
    Access, MAX_EVENT_BYTES,
    counts::Counts,
    error::{StoreError, damaged, explain, refused},
    lock::{self, Lock},
    raw::RawKept,
    rows::{Entry, envelope, rows_of, write_event, write_run},
    schema,
    upkeep::free_bytes,
};

/// How long a statement waits for another process that writes.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Least room on the disk with which a store counts as writable: a run needs more for its log and raw arrivals.
const LEAST_FREE_BYTES: u64 = 32 * 1_024 * 1_024;

/// The file and what is known about the runs in it.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    path: PathBuf,
    access: Access,
    counts: Counts,
    writing: BTreeMap<RunId, Writing>,
    _serving: Option<Lock>,
}

/// A run that this process adds to.
#[derive(Debug)]
struct Writing {
    /// As it is in the file; `None` after an event that could not be written, and so was folded in vain.
    state: Option<RunState>,
    lock: Lock,
}

impl Database {
    pub(super) fn open(path: &Path, access: Access) -> Result<Self, StoreError> {
        let explain = |e| explain(path, e);
        let serving = match access {
            Access::Read => None,
            Access::Measure => {
                make_place(path)?;
                None
            }
            Access::Serve => {
                make_place(path)?;
                let lock = Lock::take(lock::of_store(path)).map_err(|source| unopened(path, source))?;
                Some(lock.ok_or_else(|| StoreError::InUse { path: path.to_owned() })?)
            }
        };
        let connection = if access == Access::Read && !path.exists() {
            schema::empty().map_err(explain)?
        } else {
            let flags = match access {
                Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
                _ => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            };
            let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let mut connection = Connection::open_with_flags(path, flags).map_err(explain)?;
            connection.busy_timeout(BUSY_TIMEOUT).map_err(explain)?;
            schema::prepare(&mut connection, path, access)?;
            connection
        };
        let (counts, writing) = (Counts::default(), BTreeMap::new());
        let mut database = Self { connection, path: path.to_owned(), access, counts, writing, _serving: serving };
        database.end_dead_runs()?;
        if access == Access::Serve {
            // Nobody is left who could take these deletions back.
            match database.remove_deleted(u64::MAX) {
                // What was deleted stays hidden, and goes at the next start.
                Err(error) if error.may_pass() => tracing::warn!("deleted runs could not be removed: {error}"),
                removed => {
                    removed?;
                }
            }
        }
        Ok(database)
    }

    pub(super) fn append(&mut self, run: &RunId, envelope: &Envelope) -> Result<(), StoreError> {
        self.add(run, envelope, None).map(drop)
    }

    pub(super) fn append_cell(&mut self, run: &RunId, envelope: &Envelope, raw: &[u8]) -> Result<RawKept, StoreError> {
        self.add(run, envelope, Some(raw))
    }

    fn add(&mut self, run: &RunId, envelope: &Envelope, raw: Option<&[u8]>) -> Result<RawKept, StoreError> {
        let json = serde_json::to_string(&envelope.event).map_err(|e| refused(run, e))?;
        if json.len() > MAX_EVENT_BYTES {
            return Err(refused(run, format!("{} bytes are more than the {MAX_EVENT_BYTES} allowed", json.len())));
        }
        let (lock, state, is_written) = match self.writing.remove(run) {
            Some(Writing { state, lock }) => (lock, state, true),
            None => (self.lock_run(run)?, None, false),
        };
        match self.write_next(run, state, Entry { envelope, json: &json, raw }) {
            Ok((next, kept)) => {
                if next.status == RunStatus::Running {
                    self.writing.insert(run.clone(), Writing { state: Some(next), lock });
                } else {
                    lock.finish();
                }
                Ok(kept)
            }
            Err(error) => {
                if is_written {
                    self.writing.insert(run.clone(), Writing { state: None, lock });
                } else {
                    lock.finish();
                }
                Err(error)
            }
        }
    }

    fn write_next(
        &mut self,
        run: &RunId,
        state: Option<RunState>,
        entry: Entry<'_>,
    ) -> Result<(RunState, RawKept), StoreError> {
        let envelope = entry.envelope;
        let state = match state {
            None => self.known(run)?,
            known => known,
        };
        let next = match state {
            None => RunState::start(run.clone(), envelope).map_err(|e| refused(run, e))?,
            Some(mut state) => {
                if state.apply(envelope).map_err(|e| refused(run, e))? == Applied::Known {
                    return Err(refused(run, format!("event {} is there already", envelope.seq)));
                }
                state
            }
        };
        let kept = match self.write(&next, entry) {
            Ok(()) => RawKept::Kept,
            // What may be tried again later is tried whole. Else the fact weighs more than what it was computed from.
            Err(error) if entry.raw.is_some() && !error.may_pass() => {
                self.counts.retried.inc();
                self.write(&next, Entry { raw: None, ..entry })?;
                RawKept::Lost(error)
            }
            Err(error) => return Err(error),
        };
        Ok((next, kept))
    }

    fn write(&mut self, state: &RunState, entry: Entry<'_>) -> Result<(), StoreError> {
        self.change(|change| {
            write_run(change, state)?;
            write_event(change, state, entry)
        })
    }

    /// The state of a run that is in the file.
    fn known(&self, run: &RunId) -> Result<Option<RunState>, StoreError> {
        match self.load(run) {
            Ok(state) => Ok(Some(state)),
            Err(StoreError::NoSuchRun(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) const fn access(&self) -> Access {
        self.access
    }

    /// Does several things together or not at all.
    pub(super) fn change<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let done = self.connection.transaction().and_then(|change| {
            let made = work(&change)?;
            change.commit().map(|()| made)
        });
        self.counts.note(done).map_err(|e| explain(&self.path, e))
    }

    /// Writes what is there already, and reads.
    pub(super) fn prove_writable(&mut self) -> Result<(), StoreError> {
        self.change(|change| {
            change.pragma_update(None, "user_version", schema::KNOWN)?;
            change.query_row("SELECT EXISTS (SELECT 1 FROM runs)", [], |_| Ok(()))
        })?;
        // So little was written that it fits where a run would not.
        let is_full = free_bytes(&self.path).is_some_and(|free| free < LEAST_FREE_BYTES);
        if is_full { Err(StoreError::Full { path: self.path.clone() }) } else { Ok(()) }
    }

    fn lock_run(&self, run: &RunId) -> Result<Lock, StoreError> {
        let lock = Lock::take(lock::of_run(&self.path, run)).map_err(|source| unopened(&self.path, source))?;
        lock.ok_or_else(|| refused(run, "another process measures it"))
    }

    pub(super) fn load(&self, run: &RunId) -> Result<RunState, StoreError> {
        let folded = self.events_from(run, 0).and_then(|events| {
            let state = RunState::fold(run.clone(), &events).map_err(|e| damaged(run, e))?;
            state.ok_or_else(|| damaged(run, "it has no events"))
        });
        if let (Err(StoreError::DamagedRun { detail, .. }), Access::Serve) = (&folded, self.access) {
            // From now on the list says it too.
            self.connection
                .execute("UPDATE runs SET damage = ?2 WHERE id = ?1", params![run.as_str(), detail])
                .map_err(|e| explain(&self.path, e))?;
        }
        folded
    }

    pub(super) fn events_from(&self, run: &RunId, from_seq: u64) -> Result<Vec<Envelope>, StoreError> {
        if !self.is_shown(run)? {
            return Err(StoreError::NoSuchRun(run.clone()));
        }
        let rows = rows_of(&self.connection, run, from_seq).map_err(|e| explain(&self.path, e))?;
        rows.into_iter().map(|row| envelope(run, row)).collect()
    }

    /// Ends the runs whose process is gone; only the agent that serves the store may say so. The answer has those whose
    /// end can't be stored yet, for a reason that may pass.
    pub(super) fn end_dead_runs(&mut self) -> Result<Vec<(RunId, StoreError)>, StoreError> {
        let mut unended = Vec::new();
        if self.access != Access::Serve {
            return Ok(unended);
        }
        let open: Vec<String> = self
            .connection
            .prepare_cached("SELECT id FROM runs WHERE ended = 0 AND damage IS NULL")
            .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
            .map_err(|e| explain(&self.path, e))?;
        for run in open.iter().filter_map(|id| id.parse::<RunId>().ok()) {
            if self.writing.contains_key(&run) {
                continue;
            }
            let lock = Lock::take(lock::of_run(&self.path, &run)).map_err(|source| unopened(&self.path, source))?;
            let Some(lock) = lock else { continue };
            // Its last words may have come between the list and the lock.
            let state = match self.load(&run) {
                Ok(state) if state.status == RunStatus::Running => state,
                Ok(_) | Err(StoreError::DamagedRun { .. }) => {
                    lock.finish();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let event = RunEvent::RunFinished { outcome: RunOutcome::Interrupted };
            let envelope = Envelope { seq: state.next_seq, at: state.at, event };
            self.writing.insert(run.clone(), Writing { state: Some(state), lock });
            if let Err(error) = self.append(&run, &envelope) {
                // It is tried again the next time.
                self.writing.remove(&run);
                if !error.may_pass() {
                    return Err(error);
                }
                tracing::warn!("the end of run {run}, which was interrupted, could not be stored: {error}");
                unended.push((run, error));
            }
        }
        Ok(unended)
    }
}

/// The folder and the file, for this user alone whatever the umask: SQLite's log beside it gets the mode of the file.
fn make_place(path: &Path) -> Result<(), StoreError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|source| unopened(path, source))?;
    }
    // One that is there stays as it is. Where none can be made SQLite says why.
    drop(OpenOptions::new().write(true).create_new(true).mode(0o600).open(path));
    Ok(())
}

fn unopened(path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Open { path: path.to_owned(), source }
}
