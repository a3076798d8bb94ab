//! A run that ended too early goes on with the cells that are missing.

use std::sync::Arc;

use speedmatrix_shared::{
    event::RunEvent,
    id::{CellId, RunId},
    state::{Cell, CellState, RunState},
    stats::cell::CellResult,
    target::TargetFacts,
};
use tokio::runtime::Handle;

use super::{
    Looked, Reserved, Runs, Slot, StartError,
    measure::{self, Begun},
    met, to_its_end, unix_ms,
};
use crate::{
    bench::{Job, Patience, turns::Seat},
    client::Target,
    hub::Teller,
    secret::Secret,
};

/// Longest id that a run may have, and so what its prompts are seeded with, in bytes.
const MAX_ID_BYTES: usize = 64;

/// What is known on both sides and differs: half of a matrix of one server and half of another would tell of none.
fn changes(state: &RunState, now: &TargetFacts) -> Vec<String> {
    let Some(then) = &state.facts else { return Vec::new() };
    let text = |value: &Option<String>| value.clone();
    let simulated = |facts: &TargetFacts| {
        facts.simulated.as_ref().map(|it| format!("{} at {} times, seed {}", it.preset, it.clock_factor, it.seed))
    };
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let pairs = [
        ("model", text(&then.served_model), text(&now.served_model)),
        ("engine", text(&then.engine.engine), text(&now.engine.engine)),
        ("version", text(&then.engine.version), text(&now.engine.version)),
        ("quantization", text(&then.engine.quantization), text(&now.engine.quantization)),
        ("GPU", text(&then.hardware.gpu), text(&now.hardware.gpu)),
        ("GPUs", number(then.hardware.gpu_count.map(u64::from)), number(now.hardware.gpu_count.map(u64::from))),
        ("KV cache", number(then.limits.kv_tokens), number(now.limits.kv_tokens)),
        ("longest context", number(then.limits.max_model_len), number(now.limits.max_model_len)),
        ("launch command", text(&then.launch_command), text(&now.launch_command)),
        ("simulator", simulated(then), simulated(now)),
    ];
    let differ = pairs.into_iter().filter_map(|(name, then, now)| Some((name, then?, now?)));
    let differ = differ.filter(|(_, then, now)| then != now);
    differ.map(|(name, then, now)| format!("{name} was {then} and is {now}")).collect()
}

/// A run that can go on, and its server, which is still the same.
pub(super) struct Again {
    state: RunState,
    target: Target,
    looked: Looked,
}

impl Runs {
    /// Goes on with a run that ended too early, with the cells that are missing, if its server is still the same.
    pub async fn resume(self: &Arc<Self>, run: &RunId, key: Option<Secret>) -> Result<(), StartError> {
        let reserved = self.reserve()?;
        let again = same(open(self, run).await?, key).await?;
        let runs = Arc::clone(self);
        to_its_end(async move {
            let begun = begin_again(&runs, &reserved, again).await?;
            measure::launch(&runs, begun);
            Ok(())
        })
        .await
    }
}

/// A run with cells that are missing. None that was imported: its file says which server it is of.
pub(super) async fn open(runs: &Runs, run: &RunId) -> Result<RunState, StartError> {
    let state = runs.store.load(run).await?;
    if !state.can_go_on() {
        return Err(StartError::NothingOpen(run.clone()));
    }
    match runs.store.labels(run).await?.imported {
        Some(_) => Err(StartError::Imported(run.clone())),
        None => Ok(state),
    }
}

/// Looks at the run's server, which must be the one that was measured.
pub(super) async fn same(state: RunState, key: Option<Secret>) -> Result<Again, StartError> {
    let (target, looked) = met(&state.plan, key).await?;
    let changed = changes(&state, &looked.facts);
    if changed.is_empty() { Ok(Again { state, target, looked }) } else { Err(StartError::Changed(changed.join("; "))) }
}

/// Goes on with a run. It still has to be launched.
pub(super) async fn begin_again(runs: &Arc<Runs>, _place: &Reserved, again: Again) -> Result<Begun, StartError> {
    let Again { state, target, looked: Looked { facts, gpus, model } } = again;
    let corpus = measure::corpus(runs, &state.plan).await?;
    let clock = measure::clock(&facts).starting_at(state.at);
    let plan = state.plan.clone();
    let settled = state.cells.iter().filter_map(settled).collect();
    let run = seed_of(&state);
    if !matches!(*runs.slot(), Slot::Starting) {
        return Err(StartError::Stopping);
    }
    let resumed = RunEvent::RunResumed { resumed_unix_ms: unix_ms() };
    let teller = Teller::go_on(runs.store.clone(), state, resumed, clock).await?;
    let (patience, serving) = (Patience::default(), Handle::current());
    let seat = Seat::alone();
    let job = Job { plan, settled, run, target, facts, model, clock, corpus, patience, serving, gpus, seat };
    Ok(Begun { teller, job })
}

/// What was measured of a cell; nothing if it is open. A cell that was left out has no results.
fn settled(cell: &Cell) -> Option<(CellId, Vec<CellResult>)> {
    match &cell.state {
        CellState::Finished { result } if cell.repeats.is_empty() => Some((cell.id, vec![result.as_ref().clone()])),
        CellState::Finished { .. } => Some((cell.id, cell.repeats.clone())),
        CellState::Skipped { .. } => Some((cell.id, Vec::new())),
        CellState::Planned | CellState::Running { .. } | CellState::NotReached | CellState::Cancelled => None,
    }
}

/// The run's id with the number of the event that lets it go on: its documents are new to the server's cache.
fn seed_of(state: &RunState) -> RunId {
    let mark = format!("-{}", state.next_seq);
    let kept = state.id.as_str().get(..MAX_ID_BYTES - mark.len()).unwrap_or(state.id.as_str());
    format!("{kept}{mark}").parse().expect("an id with a number is one")
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::sample;

    use super::*;

    #[test]
    fn only_what_is_known_on_both_sides_can_differ() {
        let state = sample::reference();
        let then = state.facts.clone().unwrap();
        assert_eq!(changes(&state, &then), Vec::<String>::new());
        assert_eq!(changes(&state, &TargetFacts::default()), Vec::<String>::new());
        let mut now = then;
        now.engine.version = Some("0.99".into());
        now.hardware.gpu_count = Some(8);
        insta::assert_snapshot!(changes(&state, &now).join("\n"), @"
version was 0.25.0 and is 0.99
GPUs was 2 and is 8
");
    }

    #[test]
    fn a_run_s_second_start_has_prompts_of_its_own() {
        let state = RunState { id: "x".repeat(64).parse().unwrap(), ..sample::reference() };
        assert_eq!(seed_of(&state).as_str().len(), 64);
        assert_ne!(seed_of(&state), state.id);
    }
}
