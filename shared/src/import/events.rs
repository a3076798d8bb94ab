//! A state as the events that lead to it: a store keeps events, and everything else is their fold.

use crate::{
    event::{Envelope, RunEvent, RunOutcome},
    state::{Cell, CellState, RunState, RunStatus},
    units::Nanos,
};

/// Events whose fold is `state`, as far as a state tells: when each cell ended is not known any more. What still ran
/// when the state was taken is interrupted.
pub fn events(state: &RunState) -> Vec<Envelope> {
    let mut told = vec![(
        Nanos(0),
        RunEvent::RunStarted {
            plan: state.plan.clone(),
            started_unix_ms: state.started_unix_ms,
            tool: state.tool.clone(),
        },
    )];
    if let (Some(facts), Some(origin)) = (&state.facts, state.origin) {
        told.push((Nanos(0), RunEvent::Probed { facts: Box::new(facts.clone()), origin }));
    }
    told.extend(state.client.iter().map(|check| (Nanos(0), RunEvent::Certified { check: check.clone() })));
    told.extend(state.cells.iter().flat_map(of_cell).map(|event| (Nanos(0), event)));
    let mut log: Vec<_> = state.log.iter().collect();
    log.sort_by_key(|line| line.at);
    told.extend(log.into_iter().map(|line| (line.at, RunEvent::Log { level: line.level, text: line.text.clone() })));
    let outcome = match &state.status {
        RunStatus::Running => RunOutcome::Interrupted,
        RunStatus::Ended { outcome } => outcome.clone(),
    };
    let end = told.last().map_or(state.at, |(at, _)| state.at.max(*at));
    told.push((end, RunEvent::RunFinished { outcome }));
    (0..).zip(told).map(|(seq, (at, event))| Envelope { seq, at, event }).collect()
}

fn of_cell(cell: &Cell) -> Vec<RunEvent> {
    let id = cell.id;
    match &cell.state {
        CellState::Finished { result } if cell.repeats.is_empty() => {
            vec![RunEvent::CellFinished { cell: id, result: result.clone() }]
        }
        CellState::Finished { .. } | CellState::Running { .. } | CellState::Cancelled => {
            let repeats = cell.repeats.iter().cloned().map(Box::new);
            let mut told: Vec<_> = repeats.map(|result| RunEvent::CellFinished { cell: id, result }).collect();
            if told.is_empty() {
                told.push(RunEvent::CellStarted { cell: id });
            }
            told
        }
        CellState::Skipped { reason, text } => {
            vec![RunEvent::CellSkipped { cell: id, reason: *reason, text: text.clone() }]
        }
        CellState::Planned | CellState::NotReached => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::{LogLevel, SkipReason},
        sample,
    };

    /// The state after all its events, with the numbers that only the events know.
    #[track_caller]
    fn folded(state: &RunState) -> RunState {
        let again = RunState::fold(state.id.clone(), &events(state)).unwrap().unwrap();
        RunState { next_seq: state.next_seq, ..again }
    }

    #[test]
    fn a_finished_run_folds_to_itself() {
        let state = sample::reference();
        assert_eq!(folded(&state), state);
    }

    #[test]
    fn cells_without_numbers_and_the_log_are_kept() {
        let mut state = sample::reference();
        state.at = Nanos::from_secs(90);
        state.status = RunStatus::Ended { outcome: RunOutcome::Cancelled };
        state.cells[3].state = CellState::Skipped { reason: SkipReason::User, text: "by hand".into() };
        state.cells[4].state = CellState::Cancelled;
        state.cells[5].state = CellState::NotReached;
        for (secs, text) in [(10, "first"), (20, "second")] {
            state.log.push_back(crate::state::LogLine {
                at: Nanos::from_secs(secs),
                level: LogLevel::Warning,
                text: text.into(),
            });
        }
        assert_eq!(folded(&state), state);
    }

    #[test]
    fn what_still_ran_is_interrupted() {
        let log = sample::reference_events();
        let running = RunState::fold("a".parse().unwrap(), log.iter().take(9)).unwrap().unwrap();
        let after = folded(&running);
        assert_eq!(after.status, RunStatus::Ended { outcome: RunOutcome::Interrupted });
        let results =
            |state: &RunState| state.cells.iter().filter_map(|cell| cell.result().cloned()).collect::<Vec<_>>();
        assert_eq!(results(&after), results(&running));
    }
}
