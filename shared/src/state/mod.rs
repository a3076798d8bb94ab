//! The one state machine of a run: agent, command line, browser and tests all fold the same events with it.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::{
    event::{Envelope, LogLevel, Origin, RunEvent, RunOutcome, SkipReason},
    finding::Severity,
    id::{CellId, Phase, RunId},
    plan::RunPlan,
    stats::cell::CellResult,
    steer::Next,
    target::TargetFacts,
    trust::ClientCheck,
    units::Nanos,
};

/// Log lines that a state keeps; older ones stay in the stored events.
pub const LOG_LINES_KEPT: usize = 500;

/// Where a cell stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum CellState {
    /// To be measured.
    Planned,
    /// Being measured.
    Running {
        /// Since when.
        since: Nanos,
    },
    /// Measured; the result's own status says how well.
    Finished {
        /// Its numbers.
        result: Box<CellResult>,
    },
    /// Will not be measured.
    Skipped {
        /// Why.
        reason: SkipReason,
        /// The reason with its numbers.
        text: String,
    },
    /// The run ended before its turn.
    NotReached,
    /// The run was stopped while it was being measured.
    Cancelled,
}

/// A planned cell and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Which.
    pub id: CellId,
    /// Where it stands.
    pub state: CellState,
    /// What each measurement found, where the plan repeats them; the result combines them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<CellResult>,
}

impl Cell {
    /// A cell that waits for its turn.
    pub const fn planned(id: CellId) -> Self {
        Self { id, state: CellState::Planned, repeats: Vec::new() }
    }

    /// The result, if it is measured.
    pub fn result(&self) -> Option<&CellResult> {
        match &self.state {
            CellState::Finished { result } => Some(result),
            _ => None,
        }
    }

    /// The status in tables.
    pub fn status_label(&self) -> String {
        match &self.state {
            CellState::Planned => "Planned".into(),
            CellState::Running { .. } => "Running".into(),
            CellState::Finished { result } => result.status.label(),
            CellState::Skipped { reason, .. } => format!("Skipped: {}", reason.label()),
            CellState::NotReached => "Not reached".into(),
            CellState::Cancelled => "Cancelled".into(),
        }
    }
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum RunStatus {
    /// Events still come.
    Running,
    /// It is over.
    Ended {
        /// How.
        outcome: RunOutcome,
    },
}

impl RunStatus {
    /// In one word, for programs and tables.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended { outcome: RunOutcome::Finished } => "finished",
            Self::Ended { outcome: RunOutcome::Cancelled } => "cancelled",
            Self::Ended { outcome: RunOutcome::Failed { .. } } => "failed",
            Self::Ended { outcome: RunOutcome::Interrupted } => "interrupted",
        }
    }
}

/// A log line with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When.
    pub at: Nanos,
    /// Weight.
    pub level: LogLevel,
    /// One sentence.
    pub text: String,
}

/// A run, as far as its events tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// Which run.
    pub id: RunId,
    /// The number the next event must have.
    pub next_seq: u64,
    /// Time of the latest event.
    pub at: Nanos,
    /// What is measured.
    pub plan: RunPlan,
    /// Wall time of the start, milliseconds since 1970 UTC.
    pub started_unix_ms: u64,
    /// Name and version of the measuring program.
    pub tool: String,
    /// Where the numbers come from; `None` until the target was probed.
    pub origin: Option<Origin>,
    /// The target, once probed.
    pub facts: Option<TargetFacts>,
    /// What the check of the client found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientCheck>,
    /// Where the run stands.
    pub status: RunStatus,
    /// What happens when the running cell is over.
    #[serde(default)]
    pub next: Next,
    /// All planned cells in run order.
    pub cells: Vec<Cell>,
    /// The latest lines of the log.
    pub log: VecDeque<LogLine>,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It changed the state.
    New,
    /// It was here already.
    Known,
}

/// Why an event can't be applied: take a new snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Events before it are missing.
    #[error("event {got} came where {wanted} was due")]
    Gap {
        /// The number that was due.
        wanted: u64,
        /// The number that came.
        got: u64,
    },
    /// A log starts with `RunStarted`, and only there.
    #[error("event {seq} can't stand there: a run starts with one start event, and only an ended one goes on")]
    Misplaced {
        /// Its number.
        seq: u64,
    },
}

impl RunState {
    /// The state after a run's first event, which must be `RunStarted` with number 0.
    pub fn start(id: RunId, first: &Envelope) -> Result<Self, ApplyError> {
        let RunEvent::RunStarted { plan, started_unix_ms, tool } = &first.event else {
            return Err(ApplyError::Misplaced { seq: first.seq });
        };
        if first.seq != 0 {
            return Err(ApplyError::Gap { wanted: 0, got: first.seq });
        }
        Ok(Self {
            id,
            next_seq: 1,
            at: first.at,
            plan: plan.clone(),
            started_unix_ms: *started_unix_ms,
            tool: tool.clone(),
            origin: None,
            facts: None,
            client: None,
            status: RunStatus::Running,
            next: Next::Go,
            cells: plan.cells().into_iter().map(Cell::planned).collect(),
            log: VecDeque::new(),
        })
    }

    /// Folds a whole log.
    pub fn fold<'a>(id: RunId, events: impl IntoIterator<Item = &'a Envelope>) -> Result<Option<Self>, ApplyError> {
        let mut events = events.into_iter();
        let Some(first) = events.next() else { return Ok(None) };
        let mut state = Self::start(id, first)?;
        for event in events {
            state.apply(event)?;
        }
        Ok(Some(state))
    }

    /// Applies one event. An event it has is ignored; one after a gap is refused and changes nothing.
    pub fn apply(&mut self, envelope: &Envelope) -> Result<Applied, ApplyError> {
        let seq = envelope.seq;
        if seq < self.next_seq {
            return Ok(Applied::Known);
        }
        if seq > self.next_seq {
            return Err(ApplyError::Gap { wanted: self.next_seq, got: seq });
        }
        let at = envelope.at;
        match &envelope.event {
            RunEvent::RunStarted { .. } => return Err(ApplyError::Misplaced { seq }),
            RunEvent::Probed { facts, origin } => {
                self.facts = Some(facts.as_ref().clone());
                self.origin = Some(*origin);
            }
            RunEvent::Certified { check } => self.client = Some(check.clone()),
            RunEvent::Calibrated { context_tokens, real_tokens } => {
                let text = match real_tokens {
                    Some(real) => format!("prompt of {context_tokens} tokens: the server counts {real}"),
                    None => format!("prompt of {context_tokens} tokens: the server does not tell its count"),
                };
                self.push_log(at, LogLevel::Info, text);
            }
            RunEvent::CellSkipped { cell, reason, text } => {
                let kept = self.cell(*cell).and_then(|cell| CellResult::combined(&cell.repeats)).map(Box::new);
                let skipped = || CellState::Skipped { reason: *reason, text: text.clone() };
                self.set(*cell, kept.map_or_else(skipped, |result| CellState::Finished { result }));
            }
            RunEvent::CellStarted { cell } => self.set(*cell, CellState::Running { since: at }),
            RunEvent::RampDone { cell, ramp_s } => {
                self.push_log(at, LogLevel::Info, format!("{cell}: window opened after a ramp of {ramp_s:.1} s"));
            }
            RunEvent::CellFinished { cell, result } => {
                self.finish(*cell, result);
                let warnings = result.findings.iter().filter(|finding| finding.severity == Severity::Warning);
                for finding in warnings {
                    self.push_log(at, LogLevel::Warning, format!("{cell}: {}", finding.text));
                }
            }
            RunEvent::Steered { next } => {
                self.next = *next;
                self.push_log(at, LogLevel::Info, next.sentence().to_owned());
            }
            RunEvent::Log { level, text } => self.push_log(at, *level, text.clone()),
            RunEvent::RunResumed { .. } if self.status == RunStatus::Running => {
                return Err(ApplyError::Misplaced { seq });
            }
            RunEvent::RunResumed { .. } => self.reopen(at),
            RunEvent::RunFinished { outcome } => self.end(outcome),
        }
        self.next_seq = seq + 1;
        self.at = at;
        Ok(Applied::New)
    }

    fn push_log(&mut self, at: Nanos, level: LogLevel, text: String) {
        if self.log.len() == LOG_LINES_KEPT {
            self.log.pop_front();
        }
        self.log.push_back(LogLine { at, level, text });
    }

    fn set(&mut self, id: CellId, state: CellState) {
        if let Some(cell) = self.cells.iter_mut().find(|cell| cell.id == id) {
            cell.state = state;
        }
    }

    fn finish(&mut self, id: CellId, result: &CellResult) {
        let repeated = id.phase == Phase::Decode && self.plan.repeats().most() > 1;
        let Some(cell) = self.cells.iter_mut().find(|cell| cell.id == id) else { return };
        if repeated {
            cell.repeats.push(result.clone());
        }
        let result = CellResult::combined(&cell.repeats).unwrap_or_else(|| result.clone());
        cell.state = CellState::Finished { result: Box::new(result) };
    }

    fn end(&mut self, outcome: &RunOutcome) {
        for cell in &mut self.cells {
            match cell.state {
                CellState::Planned => cell.state = CellState::NotReached,
                // A repeat that did not come to its end takes nothing from those before it.
                CellState::Running { .. } => {
                    cell.state = match CellResult::combined(&cell.repeats) {
                        Some(result) => CellState::Finished { result: Box::new(result) },
                        None => CellState::Cancelled,
                    }
                }
                _ => {}
            }
        }
        self.status = RunStatus::Ended { outcome: outcome.clone() };
    }

    fn reopen(&mut self, at: Nanos) {
        for cell in &mut self.cells {
            if matches!(cell.state, CellState::NotReached | CellState::Cancelled) {
                cell.state = CellState::Planned;
            }
        }
        (self.status, self.next) = (RunStatus::Running, Next::Go);
        self.push_log(at, LogLevel::Info, "the run goes on with the cells that are missing".to_owned());
    }

    /// Whether it ended before all its cells had their turn, so that it can go on.
    pub fn can_go_on(&self) -> bool {
        let is_ended_early = match &self.status {
            RunStatus::Running => false,
            RunStatus::Ended { outcome } => *outcome != RunOutcome::Finished,
        };
        let is_open = |cell: &Cell| matches!(cell.state, CellState::NotReached | CellState::Cancelled);
        is_ended_early && !matches!(self.origin, Some(Origin::Imported) | None) && self.cells.iter().any(is_open)
    }

    /// Whether it waits, with no cell running, until somebody lets it go on.
    pub fn is_paused(&self) -> bool {
        self.status == RunStatus::Running && self.next == Next::Pause && self.running_cell().is_none()
    }

    /// The cell being measured.
    pub fn running_cell(&self) -> Option<&Cell> {
        self.cells.iter().find(|cell| matches!(cell.state, CellState::Running { .. }))
    }

    /// One cell.
    pub fn cell(&self, id: CellId) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    /// Cells of one phase, in run order.
    pub fn cells_of(&self, phase: Phase) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(move |cell| cell.id.phase == phase)
    }

    /// Cells that need no more work, of all.
    pub fn progress(&self) -> (usize, usize) {
        let open = |cell: &&Cell| matches!(cell.state, CellState::Planned | CellState::Running { .. });
        (self.cells.len() - self.cells.iter().filter(open).count(), self.cells.len())
    }

    /// Model on GPU ×n, or the name that was given, or the address.
    pub fn title(&self) -> String {
        if let Some(name) = self.plan.name() {
            return name.to_owned();
        }
        let facts = self.facts.as_ref();
        let model = facts.and_then(|f| f.model.clone().or_else(|| f.served_model.clone()));
        let model = model.or_else(|| self.plan.model().map(ToOwned::to_owned));
        let base = model.unwrap_or_else(|| self.plan.target().as_str().to_owned());
        match facts.map(|f| (&f.hardware.gpu, f.hardware.gpu_count)) {
            Some((Some(gpu), Some(count))) => format!("{base} on {gpu} ×{count}"),
            Some((Some(gpu), None)) => format!("{base} on {gpu}"),
            _ => base,
        }
    }

    /// Whether the numbers come from the simulator.
    pub fn is_simulated(&self) -> bool {
        matches!(self.origin, Some(Origin::Simulated { .. }))
    }
}
