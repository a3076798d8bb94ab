//! Roughly how long a run takes. Guesses only: the real speed of a server is what the run is to find out.

use super::{Load, Prefill, PromptMode, RunPlan};
use crate::{
    feasible::Feasible,
    id::{CellId, Phase},
    state::{CellState, RunState, RunStatus},
    target::Limits,
    units::Nanos,
};

/// Seconds for draining, opening, and the 3 s for which every slot must stay ready.
const OVERHEAD_S: f64 = 5.0;
/// Cold requests per prefill cell.
const COLD_REQUESTS: f64 = 2.0;
/// How fast a server may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guess {
    Fast,
    Usual,
    Slow,
}

impl Guess {
    /// Prompt tokens per second with a cold cache; the reference page's are 11,000.
    const fn cold_tok_s(self) -> f64 {
        match self {
            Self::Fast => 40_000.0,
            Self::Usual => 10_000.0,
            Self::Slow => 2_500.0,
        }
    }

    /// Prompt tokens per second from a warm cache; the reference page's are 640,000.
    const fn warm_tok_s(self) -> f64 {
        match self {
            Self::Fast => 2_000_000.0,
            Self::Usual => 600_000.0,
            Self::Slow => 150_000.0,
        }
    }
}

/// A range of seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Eta {
    /// On a fast server.
    pub low_s: f64,
    /// On a slow one.
    pub high_s: f64,
}

/// How long the whole plan takes on a server with these limits: a cell that can't run there takes no time.
pub fn eta(plan: &RunPlan, limits: Limits) -> Eta {
    let cells: Vec<CellId> = plan.cells().into_iter().filter(|cell| can_run(plan, *cell, limits)).collect();
    let total = |guess| {
        let secs = |cell: &CellId| cell_secs(plan, *cell, guess) * repeats(plan, *cell);
        cells.iter().map(secs).sum()
    };
    Eta { low_s: total(Guess::Fast), high_s: total(Guess::Slow) }
}

/// Seconds that a running run still needs at `now` on its clock: the guess for what is left, corrected by how long
/// the finished cells really took; cells that the server can't run will be skipped. `None` once it is over.
pub fn remaining_secs(run: &RunState, now: Nanos) -> Option<f64> {
    if run.status != RunStatus::Running {
        return None;
    }
    let limits = run.facts.as_ref().map(|facts| facts.limits).unwrap_or_default();
    let (mut done, mut left, mut running) = (0.0, 0.0, None);
    for cell in &run.cells {
        let secs = cell_secs(&run.plan, cell.id, Guess::Usual);
        let repeats_left = (repeats(&run.plan, cell.id) - cell.repeats.len() as f64 - 1.0).max(0.0);
        done += secs * cell.repeats.len() as f64;
        match cell.state {
            CellState::Finished { .. } if cell.repeats.is_empty() => done += secs,
            CellState::Planned if can_run(&run.plan, cell.id, limits) => left += secs * (1.0 + repeats_left),
            CellState::Running { since } => {
                left += secs * repeats_left;
                running = Some((secs, since));
            }
            // Whether a finished cell is measured again is decided by how sure it is: only the sure part counts.
            CellState::Finished { .. }
            | CellState::Planned
            | CellState::Skipped { .. }
            | CellState::NotReached
            | CellState::Cancelled => {}
        }
    }
    let spent = running.map_or(run.at, |(_, since)| since).as_secs_f64();
    let factor = if done > 0.0 { spent / done } else { 1.0 };
    let current = running.map_or(0.0, |(secs, since)| (secs * factor - now.since(since).as_secs_f64()).max(0.0));
    Some(left * factor + current)
}

fn can_run(plan: &RunPlan, cell: CellId, limits: Limits) -> bool {
    !matches!(Feasible::of(cell, plan, limits), Feasible::CantRun { .. })
}

/// Seconds that a cell takes with all its repeats on a usual server.
pub(super) fn usual_secs(plan: &RunPlan, cell: CellId) -> f64 {
    cell_secs(plan, cell, Guess::Usual) * repeats(plan, cell)
}

/// Prompt tokens that the plan sends at least: each place of each cell asks once, and what fills the cache before it.
pub fn least_prompt_tokens(plan: &RunPlan) -> u64 {
    plan.cells().into_iter().map(|cell| least_of(plan, cell)).fold(0, u64::saturating_add)
}

fn least_of(plan: &RunPlan, cell: CellId) -> u64 {
    let tokens = cell.context.tokens();
    let level = u64::from(cell.concurrency.get());
    match (cell.phase, plan.prefill(), plan.load()) {
        // Its request is counted with the decode cell that it warms up.
        (Phase::Prefill, Prefill::FromWarmUp, _) => 0,
        (Phase::Prefill, _, _) | (Phase::Decode, _, Load::Open(_)) => tokens,
        (Phase::Decode, _, Load::Burst { requests }) => tokens * u64::from(requests),
        (Phase::Decode, _, Load::Mixed { background }) => tokens + level * background.tokens(),
        (Phase::Decode, _, Load::Sustained) => {
            let scouts = match plan.prompts() {
                PromptMode::Shared | PromptMode::Mixed(_) => 1,
                PromptMode::Unique => level,
                PromptMode::Cold => 0,
            };
            tokens * (scouts + level)
        }
    }
}

/// How often a cell may be measured.
fn repeats(plan: &RunPlan, cell: CellId) -> f64 {
    match cell.phase {
        Phase::Prefill => 1.0,
        Phase::Decode => f64::from(plan.repeats().most()),
    }
}

fn cell_secs(plan: &RunPlan, cell: CellId, guess: Guess) -> f64 {
    let tokens = cell.context.tokens() as f64;
    let (cold_s, warm_s) = (tokens / guess.cold_tok_s(), tokens / guess.warm_tok_s());
    let requests = f64::from(cell.concurrency.get());
    match (cell.phase, plan.prefill(), plan.prompts()) {
        // The scout of the first decode cell gives the row.
        (Phase::Prefill, Prefill::FromWarmUp, _) => 0.0,
        (Phase::Prefill, _, _) => COLD_REQUESTS * cold_s + OVERHEAD_S,
        (Phase::Decode, _, prompts) => {
            let scouts = match prompts {
                PromptMode::Shared | PromptMode::Mixed(_) => 1.0,
                PromptMode::Unique => requests,
                PromptMode::Cold => 0.0,
            };
            let cached = prompts.cached_share();
            let admission_s = cold_s * (1.0 - cached) + warm_s * cached;
            OVERHEAD_S + scouts * cold_s + requests * admission_s + plan.duration().as_secs_f64()
        }
    }
}
