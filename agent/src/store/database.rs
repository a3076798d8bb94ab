//! The open file: statements, and the fold of the runs that this process writes.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs::{DirBuilder, OpenOptions},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, Row, Transaction, params};
use speedmatrix_shared::{
    event::{Envelope, RunEvent, RunOutcome},
    facts::summary as summary_of,
    id::{CellId, RunId},
    state::{Applied, Cell, RunState, RunStatus},
    stats::{cell::CellResult, summary::Summary},
    units::Nanos,
};

use super::{
    Access, MAX_EVENT_BYTES,
    counts::Counts,
    error::{StoreError, explain},
    lock::{self, Lock},
    raw::{self, RawKept},
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
    state: RunState,
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
        let (lock, state) = match self.writing.remove(run) {
            Some(writing) => (writing.lock, Some(writing.state)),
            None => (self.lock_run(run)?, self.known(run)?),
        };
        let written = self.write_next(run, state.as_ref(), Entry { envelope, json: &json, raw });
        match (&written, state) {
            (Ok((next, _)), _) if next.status == RunStatus::Running => {
                self.writing.insert(run.clone(), Writing { state: next.clone(), lock });
            }
            (Err(_), Some(state)) => drop(self.writing.insert(run.clone(), Writing { state, lock })),
            (Ok(_), _) | (Err(_), None) => lock.finish(),
        }
        written.map(|(_, kept)| kept)
    }

    fn write_next(
        &mut self,
        run: &RunId,
        state: Option<&RunState>,
        entry: Entry<'_>,
    ) -> Result<(RunState, RawKept), StoreError> {
        let envelope = entry.envelope;
        let next = match state {
            None => RunState::start(run.clone(), envelope).map_err(|e| refused(run, e))?,
            Some(state) => {
                let mut next = state.clone();
                if next.apply(envelope).map_err(|e| refused(run, e))? == Applied::Known {
                    return Err(refused(run, format!("event {} is there already", envelope.seq)));
                }
                next
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
            self.writing.insert(run.clone(), Writing { state, lock });
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

/// An event to be written, and what belongs to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) envelope: &'a Envelope,
    /// The event as it is stored.
    pub(super) json: &'a str,
    /// Beside a finished cell: what its result was computed from.
    pub(super) raw: Option<&'a [u8]>,
}

/// The run's line in the list.
pub(super) fn write_run(change: &Transaction<'_>, state: &RunState) -> rusqlite::Result<()> {
    let summary = summary_of(state);
    let summary = serde_json::to_string(&summary).map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))?;
    let ended = i64::from(state.status != RunStatus::Running);
    change
        .prepare_cached(
            "INSERT INTO runs (id, started_unix_ms, ended, summary) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (id) DO UPDATE SET ended = excluded.ended, summary = excluded.summary",
        )?
        .execute(params![state.id.as_str(), whole(state.started_unix_ms), ended, summary])
        .map(drop)
}

/// An event of a run that is `state` after it, and of a finished cell what all its repeats found.
pub(super) fn write_event(change: &Transaction<'_>, state: &RunState, entry: Entry<'_>) -> rusqlite::Result<()> {
    let Entry { envelope, json, raw } = entry;
    let run = state.id.as_str();
    change.prepare_cached("INSERT INTO events (run, seq, at, json) VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        run,
        whole(envelope.seq),
        whole(envelope.at.0),
        json
    ])?;
    if let RunEvent::CellFinished { cell, result } = &envelope.event {
        let of_all = state.cell(*cell).and_then(Cell::result).unwrap_or(result);
        write_cell(change, run, *cell, of_all)?;
        if let Some(bytes) = raw {
            raw::write(change, raw::Row { run, cell: *cell, seq: envelope.seq, rules: result.rules, bytes })?;
        }
    }
    Ok(())
}

fn write_cell(change: &Transaction<'_>, run: &str, cell: CellId, result: &CellResult) -> rusqlite::Result<()> {
    let stats = &result.stats;
    let median = |summary: &Option<Summary>| summary.as_ref().map(|s| s.p50);
    change
        .prepare_cached("INSERT OR REPLACE INTO cells VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?
        .execute(params![
            run,
            cell.to_string(),
            whole(cell.context.tokens()),
            cell.concurrency.get(),
            result.status.label(),
            stats.total_tok_s,
            median(&stats.per_request_tok_s),
            median(&stats.ttft_s),
            median(&stats.time_between_tokens_s),
        ])
        .map(drop)
}

/// An event as it is stored: its number, its time and its JSON, unless that is too large.
pub(super) type EventRow = (i64, i64, Option<String>);

/// A run's events from number `from_seq` on, as they are stored.
pub(super) fn rows_of(connection: &Connection, run: &RunId, from_seq: u64) -> rusqlite::Result<Vec<EventRow>> {
    let sql = "SELECT seq, at, CASE WHEN length(json) <= ?3 THEN json END FROM events \
               WHERE run = ?1 AND seq >= ?2 ORDER BY seq";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map(params![run.as_str(), whole(from_seq), whole(MAX_EVENT_BYTES as u64)], read)?.collect()
}

pub(super) fn envelope(run: &RunId, (seq, at, json): EventRow) -> Result<Envelope, StoreError> {
    let json = json.ok_or_else(|| damaged(run, format!("event {seq} is larger than {MAX_EVENT_BYTES} bytes")))?;
    let event = serde_json::from_str(&json).map_err(|e| damaged(run, format!("event {seq}: {e}")))?;
    let positive = |number: i64| {
        u64::try_from(number).map_err(|_below_zero| damaged(run, format!("event {seq} has the number {number}")))
    };
    Ok(Envelope { seq: positive(seq)?, at: Nanos(positive(at)?), event })
}

/// A number as SQLite holds it. Numbers, sizes and times of runs stay far below 2^63.
pub(super) fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
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

pub(super) fn refused(run: &RunId, detail: impl Display) -> StoreError {
    StoreError::Refused { run: run.clone(), detail: detail.to_string() }
}

fn damaged(run: &RunId, detail: impl Display) -> StoreError {
    StoreError::DamagedRun { run: run.clone(), detail: detail.to_string() }
}
