//! People change their mind while a run runs: pause, go on, leave a cell out, stop after the running cell.

use speedmatrix_agent::sim::SimConfig;
use speedmatrix_shared::{
    event::{Envelope, RunEvent, RunOutcome, SkipReason},
    plan::PlanDraft,
    state::{CellState, RunState},
    steer::Next,
};

use crate::rig::{Reins, Rig, Seen, draft, exact, simulator};

/// A run of two contexts at 1 and 2 requests, steered by `hand`.
fn steered(plan: PlanDraft, hand: impl FnMut(&RunEvent, &Reins) + Send + 'static) -> Seen {
    let sim = simulator(SimConfig { ..exact(10.0) });
    Rig::new(&sim.base_url()).run_until(plan, hand)
}

fn plan() -> PlanDraft {
    PlanDraft { client_check: "skip".into(), ..draft("1K,2K", "1,2", "500ms", "64") }
}

fn ask(reins: &Reins, next: Next) {
    reins.steering.send_modify(|steering| steering.next = next);
}

fn is_finished(event: &RunEvent, wanted: &str) -> bool {
    matches!(event, RunEvent::CellFinished { cell, .. } if cell.to_string() == wanted)
}

#[test]
fn a_paused_run_waits_between_cells_until_it_may_go_on() {
    let mut asked_again = false;
    let seen = steered(plan(), move |event, reins| match event {
        RunEvent::CellStarted { cell } if cell.to_string() == "decode-1K-1" => ask(reins, Next::Pause),
        // Told while the cell still runs: it is not cut short. The pause ends when the cell has.
        event if is_finished(event, "decode-1K-1") && !asked_again => {
            asked_again = true;
            ask(reins, Next::Go);
        }
        _ => {}
    });
    assert_eq!(seen.outcome, RunOutcome::Finished);
    let place = |wanted: &dyn Fn(&RunEvent) -> bool| seen.events.iter().position(|(_, event)| wanted(event)).unwrap();
    let paused = place(&|event| *event == RunEvent::Steered { next: Next::Pause });
    let done = place(&|event| is_finished(event, "decode-1K-1"));
    let on = place(&|event| *event == RunEvent::Steered { next: Next::Go });
    assert!(paused < done && done < on, "{paused} {done} {on}");
    assert!(!seen.result("decode-2K-2").status.is_failed());
}

#[test]
fn a_run_stops_after_the_running_cell() {
    let seen = steered(plan(), |event, reins| {
        if matches!(event, RunEvent::CellStarted { cell } if cell.to_string() == "decode-1K-1") {
            ask(reins, Next::Stop);
        }
    });
    assert_eq!(seen.outcome, RunOutcome::Cancelled);
    assert!(!seen.result("decode-1K-1").status.is_failed(), "the running cell came to its end");
    assert!(!seen.events.iter().any(|(_, event)| is_finished(event, "decode-2K-1")));
}

#[test]
fn a_running_cell_is_left_out_and_the_rest_is_measured() {
    let seen = steered(plan(), |event, reins| {
        let RunEvent::RampDone { cell, .. } = event else { return };
        if cell.to_string() == "decode-1K-1" {
            let cell = *cell;
            reins.steering.send_modify(|steering| {
                steering.skips.insert(cell);
            });
        }
    });
    assert_eq!(seen.outcome, RunOutcome::Finished);
    assert_eq!(seen.skipped("decode-1K-1").map(|(reason, _)| reason), Some(SkipReason::User));
    assert!(!seen.result("decode-2K-1").status.is_failed());
    assert!(!seen.result("decode-1K-2").status.is_failed());
}

#[test]
fn what_earlier_repeats_measured_stays() {
    let mut finished = 0;
    let seen = steered(PlanDraft { repeats: "3".into(), contexts: "1K".into(), concurrency: "1".into(), ..plan() }, {
        move |event, reins| {
            finished += usize::from(is_finished(event, "decode-1K-1"));
            let RunEvent::RampDone { cell, .. } = event else { return };
            if finished == 1 {
                let cell = *cell;
                reins.steering.send_modify(|steering| {
                    steering.skips.insert(cell);
                });
            }
        }
    });
    let plan = PlanDraft { target: "host".into(), repeats: "3".into(), ..draft("1K", "1", "500ms", "64") };
    let start = RunEvent::RunStarted { plan: plan.try_into().unwrap(), started_unix_ms: 0, tool: String::new() };
    let told = std::iter::once(start).chain(seen.events.iter().map(|(_, event)| event.clone()));
    let log: Vec<Envelope> =
        (0..).zip(told).map(|(seq, event)| Envelope { seq, at: speedmatrix_shared::units::Nanos(0), event }).collect();
    let state = RunState::fold("0198-test".parse().unwrap(), &log).unwrap().unwrap();
    let cell = state.cell("decode-1K-1".parse().unwrap()).unwrap();
    assert_eq!(cell.repeats.len(), 1);
    assert!(matches!(cell.state, CellState::Finished { .. }), "{:?}", cell.state);
}
