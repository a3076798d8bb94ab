//! Why a run does not start, stop or change, each as one sentence that says what to do.

use speedmatrix_shared::{
    id::{CellId, RunId},
    plan::PlanErrors,
};

use crate::{client::probe::ProbeError, hub::TellError, prompt::corpus::CorpusError, store::StoreError};

/// Why a run did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The plan is wrong.
    #[error(transparent)]
    Plan(#[from] PlanErrors),
    /// One run at a time, so that runs do not disturb each other.
    #[error("{} is being measured and one run at a time keeps the numbers clean: wait for its end or stop it", name(.0.as_ref()))]
    Busy(Option<RunId>),
    /// The latest run is over, and waits for a store that takes nothing.
    #[error("run {run} is measured, and not all of it is stored yet: {reason}. The next run can start when it is")]
    Unstored {
        /// Which run.
        run: RunId,
        /// Why it is not stored.
        reason: &'static str,
    },
    /// The text of the prompts can't be had.
    #[error(transparent)]
    Corpus(CorpusError),
    /// The target does not answer as a model server does.
    #[error(transparent)]
    Target(#[from] ProbeError),
    /// The run could not be stored.
    #[error(transparent)]
    Store(#[from] TellError),
    /// The run to go on with can't be read.
    #[error(transparent)]
    Load(#[from] StoreError),
    /// There is nothing to go on with.
    #[error("run {0} can't go on: it is running, or has all its cells, or was not measured here")]
    NothingOpen(RunId),
    /// Two runs can't take turns.
    #[error("runs {} and {} are no pair: they need the same plan to take turns. Let each go on alone", .0[0], .0[1])]
    NotAPair([RunId; 2]),
    /// Its file names the server: whoever wrote that would choose whom this agent asks.
    #[error(
        "run {0} can't go on: it was imported, so its file says which server it is of. Start a new run with its plan"
    )]
    Imported(RunId),
    /// What answers now is not what was measured.
    #[error("the run can't go on, as the server is another one now: {0}. Start a new run with the same plan")]
    Changed(String),
    /// The agent is about to end.
    #[error("the agent is stopping: start it again first")]
    Stopping,
}

fn name(run: Option<&RunId>) -> String {
    run.map_or_else(|| "another run".into(), |run| format!("run {run}"))
}

/// Why a run was not stopped or steered.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// It is over.
    #[error("run {0} is over already")]
    Over(RunId),
    /// Another process measures it.
    #[error("run {0} is measured by another process: stop it there, with Ctrl-C in its terminal")]
    Elsewhere(RunId),
    /// The cell is not waiting and not being measured.
    #[error("{0} is neither planned nor running: there is nothing to leave out")]
    NotOpen(CellId),
    /// It is not in the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}
