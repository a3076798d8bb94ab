//! Old runs under the rules of this version: computes the results of a stored run again from its raw arrivals.

use speedmatrix_shared::{
    event::{Envelope, LogLevel, RunEvent},
    id::{CellId, RunId},
    plan::{PlanDraft, PlanErrors, RunPlan},
    raw::codec,
    state::{RunState, RunStatus},
    stats::{RULES_VERSION, cell::CellResult},
};

use crate::store::{RawKept, Store, StoreError, Which};

/// How the name of a run that was analysed again goes on.
const ANALYSED_AGAIN: &str = " (analysed again";

/// Why a run can't be analysed again.
#[derive(Debug, thiserror::Error)]
pub enum ReanalysisError {
    /// It is not in the store, or can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// More is to come.
    #[error("run {0} is still being measured: stop it or wait for its end, then analyse it again")]
    Running(RunId),
    /// There is nothing to compute from.
    #[error(
        "run {0} has no raw arrivals, so it can't be analysed again: no cell was finished, or it was measured before \
         they were kept"
    )]
    NoRaw(RunId),
    /// The plan can't have the new name.
    #[error(transparent)]
    Plan(#[from] PlanErrors),
}

/// A run analysed again.
#[derive(Debug)]
pub struct Reanalysis {
    run: RunState,
    cells: Vec<Again>,
}

/// A measurement of a cell, then and now.
#[derive(Debug)]
pub struct Again {
    /// The cell.
    pub cell: CellId,
    /// The event that tells its result.
    pub seq: u64,
    /// Which of the cell's measurements it is, from 1, where there are several.
    pub repeat: Option<usize>,
    /// What is stored.
    pub then: CellResult,
    /// What today's rules say.
    pub now: Now,
}

/// What today's rules say about a cell.
#[derive(Debug)]
pub enum Now {
    /// This.
    Result(Box<CellResult>),
    /// Nothing: its raw arrivals were not kept.
    NoRaw,
    /// Nothing: they can't be read, for this reason.
    Damaged(StoreError),
}

impl Again {
    /// The new result, if there is one.
    pub fn result(&self) -> Option<&CellResult> {
        match &self.now {
            Now::Result(result) => Some(result),
            Now::NoRaw | Now::Damaged(_) => None,
        }
    }

    /// Whether today's rules say something else. The stamp of the rules alone is no difference.
    pub fn is_changed(&self) -> bool {
        self.result().is_some_and(|now| CellResult { rules: self.then.rules, ..now.clone() } != self.then)
    }
}

impl Reanalysis {
    /// Computes all results of a run again. Nothing is written.
    pub async fn of(store: &Store, id: &RunId) -> Result<Self, ReanalysisError> {
        let run = store.load(id).await?;
        if run.status == RunStatus::Running {
            return Err(ReanalysisError::Running(id.clone()));
        }
        let mut cells = Vec::new();
        for Envelope { seq, event, .. } in store.events_from(id, 0).await? {
            if let RunEvent::CellFinished { cell, result } = event {
                cells.push(Again { cell, seq, repeat: None, then: *result, now: now(store, id, cell, seq).await? });
            }
        }
        // Repeats of a cell need not follow on each other.
        cells.sort_by_key(|again| run.cells.iter().position(|cell| cell.id == again.cell));
        for repeats in cells.chunk_by_mut(|a, b| a.cell == b.cell).filter(|repeats| repeats.len() > 1) {
            (1..).zip(repeats).for_each(|(number, again)| again.repeat = Some(number));
        }
        if cells.iter().all(|again| matches!(again.now, Now::NoRaw)) {
            return Err(ReanalysisError::NoRaw(id.clone()));
        }
        Ok(Self { run, cells })
    }

    /// Every measurement of a cell, by the plan's order of cells.
    pub fn cells(&self) -> &[Again] {
        &self.cells
    }

    /// Stores the new results as a new run, with the plan, the facts and the raw arrivals of the old one, which stays as
    /// it is. Cells without raw arrivals keep their results, and the stamp of their rules.
    pub async fn save(&self, store: &Store) -> Result<RunId, ReanalysisError> {
        let old = &self.run.id;
        let new: RunId =
            uuid::Uuid::now_v7().to_string().parse().expect("a UUID is lower-case letters, digits and dashes");
        let mut seq = 0;
        for Envelope { seq: told_by, at, event } in store.events_from(old, 0).await? {
            let events = match event {
                RunEvent::RunStarted { plan, started_unix_ms, tool } => {
                    [None, Some(RunEvent::RunStarted { plan: self.renamed(plan)?, started_unix_ms, tool })]
                }
                RunEvent::RunFinished { .. } => {
                    [Some(RunEvent::Log { level: LogLevel::Info, text: self.origin() }), Some(event)]
                }
                event => [None, Some(event)],
            };
            for event in events.into_iter().flatten() {
                self.append(store, &new, Envelope { seq, at, event }, told_by).await?;
                seq += 1;
            }
        }
        Ok(new)
    }

    /// Stores an event of the new run; with that of a finished cell its new result and its raw arrivals.
    /// `told_by` is its number in the old run.
    async fn append(&self, store: &Store, new: &RunId, mut envelope: Envelope, told_by: u64) -> Result<(), StoreError> {
        if let RunEvent::CellFinished { cell, result } = &mut envelope.event
            && let Some(again) = self.cells.iter().find(|again| again.seq == told_by)
            && let Some(now) = again.result()
            && let Some(raw) = store.raw(&self.run.id, *cell, Which::ToldBy(told_by)).await?
        {
            let cell = *cell;
            **result = now.clone();
            if let RawKept::Lost(reason) = store.append_cell(new, envelope, raw.into()).await? {
                tracing::warn!("the raw arrivals of {cell} could not be copied: {reason}");
            }
            return Ok(());
        }
        store.append(new, envelope).await
    }

    fn renamed(&self, plan: RunPlan) -> Result<RunPlan, PlanErrors> {
        let title = self.run.title();
        let base = title.split(ANALYSED_AGAIN).next().unwrap_or_default();
        let name = format!("{base}{ANALYSED_AGAIN}, rules {RULES_VERSION})");
        RunPlan::try_from(PlanDraft { name, ..plan.into() })
    }

    /// Where the new run comes from, for its log.
    fn origin(&self) -> String {
        let changed = self.cells.iter().filter(|again| again.is_changed()).count();
        let kept = self.cells.iter().filter(|again| again.result().is_none()).count();
        let (id, all) = (&self.run.id, self.cells.len());
        let tool = concat!("speedmatrix ", env!("CARGO_PKG_VERSION"));
        let kept = match kept {
            0 => String::new(),
            kept => format!("; {kept} keep their numbers, as their raw arrivals are missing or damaged"),
        };
        format!(
            "analysed again from run {id} by {tool} under rules {RULES_VERSION}: {changed} of {all} measurements changed{kept}"
        )
    }
}

async fn now(store: &Store, run: &RunId, cell: CellId, seq: u64) -> Result<Now, StoreError> {
    let damaged = |detail: String| Now::Damaged(StoreError::DamagedRaw { run: run.clone(), cell, detail });
    let bytes = match store.raw(run, cell, Which::ToldBy(seq)).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Now::NoRaw),
        Err(error @ StoreError::DamagedRaw { .. }) => return Ok(Now::Damaged(error)),
        Err(error) => return Err(error),
    };
    // On a thread of its own: it computes for a while, and what a stranger wrote into the file can't end the program.
    let computed = tokio::task::spawn_blocking(move || codec::decode(&bytes).map(|raw| raw.result())).await;
    Ok(match computed {
        Ok(Ok(result)) => Now::Result(Box::new(result)),
        Ok(Err(error)) => damaged(error.to_string()),
        Err(fault) => damaged(format!("no result can be computed from it: {fault}")),
    })
}
