//! Roughly how long a run takes. Guesses only: the real speed of a server is what the run is to find out.

use super::{Prefill, PromptMode, RunPlan};
use crate::{
    id::{CellId, Phase},
    state::{CellState, RunState, RunStatus},
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

/// How long the whole plan takes.
pub fn eta(plan: &RunPlan) -> Eta {
    let total = |guess| plan.cells().into_iter().map(|cell| cell_secs(plan, cell, guess)).sum();
    Eta { low_s: total(Guess::Fast), high_s: total(Guess::Slow) }
}

/// Seconds that a running run still needs at `now` on its clock: the guess for what is left, corrected by how long
/// the finished cells really took. `None` once it is over.
pub fn remaining_secs(run: &RunState, now: Nanos) -> Option<f64> {
    if run.status != RunStatus::Running {
        return None;
    }
    let (mut done, mut left, mut running) = (0.0, 0.0, None);
    for cell in &run.cells {
        let secs = cell_secs(&run.plan, cell.id, Guess::Usual);
        match cell.state {
            CellState::Finished { .. } => done += secs,
            CellState::Planned => left += secs,
            CellState::Running { since } => running = Some((secs, since)),
            CellState::Skipped { .. } | CellState::NotReached | CellState::Cancelled => {}
        }
    }
    let spent = running.map_or(run.at, |(_, since)| since).as_secs_f64();
    let factor = if done > 0.0 { spent / done } else { 1.0 };
    let current = running.map_or(0.0, |(secs, since)| (secs * factor - now.since(since).as_secs_f64()).max(0.0));
    Some(left * factor + current)
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
                PromptMode::Shared => 1.0,
                PromptMode::Unique => requests,
                PromptMode::Cold => 0.0,
            };
            let admission_s = if prompts == PromptMode::Cold { cold_s } else { warm_s };
            OVERHEAD_S + scouts * cold_s + requests * admission_s + plan.duration().as_secs_f64()
        }
    }
}
