//! Runs on disk: one SQLite file. A run is its events, and the raw arrivals beside them; everything else in the file is
//! a fold of the events.
//!
//! The file has a thread of its own. [`Store::append`] returns once the event would survive a loss of power.

mod counts;
mod database;
mod error;
mod history;
mod import;
mod labels;
mod list;
mod lock;
mod passes;
mod raw;
mod retention;
mod rows;
mod schema;
mod upkeep;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use speedmatrix_shared::{
    api::{CellInRun, Pass, RunSummary},
    event::Envelope,
    id::{CellId, RunId},
    label::{LabelPatch, Labels},
    state::RunState,
};
use tokio::sync::{mpsc, oneshot};

pub use counts::Counts;
use database::Database;
pub use error::StoreError;
pub use import::Foreign;
pub use passes::KeptPass;
pub use raw::{RawKept, Which};
pub use retention::{Prune, Pruned, Retention};
pub use upkeep::{Damage, Health, Shrunk, backup, check, vacuum};

/// Calls that may wait for the file's thread; more wait at their caller.
const WAITING_CALLS: usize = 64;

/// Largest event that is stored or read, in bytes of JSON. The largest real one, a plan of 1,024 cells or a finished
/// cell with its findings, has some 20 KB.
const MAX_EVENT_BYTES: usize = 4 * 1_024 * 1_024;

/// What the file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To serve it: one agent at a time. Runs whose process died are ended as interrupted.
    Serve,
    /// To add a run of one's own, also beside a serving agent.
    Measure,
    /// To look, also beside the others. Nothing is written, not even a missing file.
    Read,
}

type Call = Box<dyn FnOnce(&mut Database) + Send>;

/// A handle to the file; clones share its thread, which ends with the last of them.
#[derive(Debug, Clone)]
pub struct Store {
    calls: mpsc::Sender<Call>,
    path: PathBuf,
    counts: Counts,
}

impl Store {
    /// Opens the file and, except for [`Access::Read`], makes it and its folder where there is none.
    pub async fn open(path: &Path, access: Access) -> Result<Self, StoreError> {
        let (calls, mut waiting) = mpsc::channel::<Call>(WAITING_CALLS);
        let (opened, answer) = oneshot::channel();
        let place = path.to_owned();
        let work = move || match Database::open(&place, access) {
            Ok(mut database) => {
                if opened.send(Ok(database.counts().clone())).is_ok() {
                    while let Some(call) = waiting.blocking_recv() {
                        call(&mut database);
                    }
                }
            }
            Err(error) => drop(opened.send(Err(error))),
        };
        std::thread::Builder::new()
            .name("store".into())
            .spawn(work)
            .map_err(|source| StoreError::Thread { path: path.to_owned(), source })?;
        let counts = answer.await.map_err(|_the_thread_is_gone| StoreError::Gone { path: path.to_owned() })??;
        Ok(Self { calls, path: path.to_owned(), counts })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What this handle and its clones wrote.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether the store answers and takes what is written: it writes a little and waits for the
    /// disk, which must have some room left.
    pub async fn prove_writable(&self) -> Result<(), StoreError> {
        self.call(Database::prove_writable).await
    }

    /// Room on the disk that holds the file, bytes, as far as this user may take it; `None` where the system does not say.
    pub fn free_bytes(&self) -> Option<u64> {
        upkeep::free_bytes(&self.path)
    }

    /// Stores a run's next event. It is on disk when this returns.
    pub async fn append(&self, run: &RunId, envelope: Envelope) -> Result<(), StoreError> {
        let run = run.clone();
        self.call(move |database| database.append(&run, &envelope)).await
    }

    /// As [`Store::append`], for a finished cell: what its result was computed from, packed, goes to disk together with
    /// the event. Where that can never be stored the event still is, and the answer says so.
    pub async fn append_cell(&self, run: &RunId, envelope: Envelope, raw: Arc<[u8]>) -> Result<RawKept, StoreError> {
        let run = run.clone();
        self.call(move |database| database.append_cell(&run, &envelope, &raw)).await
    }

    /// What the result of a cell's measurement was computed from, packed; `None` where it was not kept.
    pub async fn raw(&self, run: &RunId, cell: CellId, which: Which) -> Result<Option<Vec<u8>>, StoreError> {
        let run = run.clone();
        self.call(move |database| database.raw(&run, cell, which)).await
    }

    /// All runs: running ones first, then newest first. A run whose record is damaged is among them and says so.
    pub async fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.call(Database::list).await
    }

    /// What runs other than `run` measured in a cell, some dozens at most: those of `model` first, each time newest first.
    pub async fn cell_in_others(
        &self,
        run: &RunId,
        cell: CellId,
        model: Option<String>,
    ) -> Result<Vec<CellInRun>, StoreError> {
        let run = run.clone();
        self.call(move |database| database.cell_in_others(&run, cell, model.as_deref())).await
    }

    /// A run as its events tell.
    pub async fn load(&self, run: &RunId) -> Result<RunState, StoreError> {
        let run = run.clone();
        self.call(move |database| database.load(&run)).await
    }

    /// A run's events from number `from_seq` on.
    pub async fn events_from(&self, run: &RunId, from_seq: u64) -> Result<Vec<Envelope>, StoreError> {
        let run = run.clone();
        self.call(move |database| database.events_from(&run, from_seq)).await
    }

    /// What people added to a run.
    pub async fn labels(&self, run: &RunId) -> Result<Labels, StoreError> {
        let run = run.clone();
        self.call(move |database| database.labels(&run)).await
    }

    /// Changes what people added to a run, unless somebody else did so since the patch was made.
    pub async fn relabel(&self, run: &RunId, patch: LabelPatch) -> Result<Labels, StoreError> {
        let run = run.clone();
        self.call(move |database| database.relabel(&run, &patch)).await
    }

    /// Hides a run that is over; [`Store::remove_deleted`] removes it later.
    pub async fn delete(&self, run: &RunId, at_unix_ms: u64) -> Result<(), StoreError> {
        let run = run.clone();
        self.call(move |database| database.delete(&run, at_unix_ms)).await
    }

    /// Takes a deletion back.
    pub async fn restore(&self, run: &RunId) -> Result<(), StoreError> {
        let run = run.clone();
        self.call(move |database| database.restore(&run)).await
    }

    /// Removes for good what was deleted at `until_unix_ms` or before; says how many runs that were. An agent that
    /// begins to serve the store removes all of them.
    pub async fn remove_deleted(&self, until_unix_ms: u64) -> Result<usize, StoreError> {
        self.call(move |database| database.remove_deleted(until_unix_ms)).await
    }

    /// Does with what a rule no longer keeps as is asked; says what that is.
    pub async fn prune(&self, rule: Retention, now_unix_ms: u64, what: Prune) -> Result<Pruned, StoreError> {
        self.call(move |database| database.prune(rule, now_unix_ms, what)).await
    }

    /// Stores a run that was made elsewhere.
    pub async fn import(&self, run: Foreign) -> Result<(), StoreError> {
        self.call(move |database| database.import(&run)).await
    }

    /// Who may use the agent.
    pub async fn passes(&self) -> Result<Vec<KeptPass>, StoreError> {
        self.call(|database| database.passes()).await
    }

    /// Lets somebody in. The answer has the pass's number.
    pub async fn add_pass(&self, kept: KeptPass, now_unix_ms: u64) -> Result<Pass, StoreError> {
        self.call(move |database| database.add_pass(&kept, now_unix_ms)).await
    }

    /// Takes a pass back; whether there was one.
    pub async fn revoke_pass(&self, number: u64) -> Result<bool, StoreError> {
        self.call(move |database| database.revoke_pass(number)).await
    }

    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let gone = || StoreError::Gone { path: self.path.clone() };
        let (reply, answer) = oneshot::channel();
        // A caller that no longer waits for the answer does not undo the work.
        let call: Call = Box::new(move |database| drop(reply.send(work(database))));
        self.calls.send(call).await.map_err(|_the_thread_is_gone| gone())?;
        answer.await.map_err(|_the_thread_is_gone| gone())?
    }
}
