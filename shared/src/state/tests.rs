//! The laws of folding.

use proptest::prelude::*;

use super::{Applied, ApplyError, CellState, LOG_LINES_KEPT, RunState, RunStatus};
use crate::{
    event::{Envelope, LogLevel, Origin, RunEvent, RunOutcome, SkipReason},
    id::{CellId, RunId},
    plan::{PlanDraft, RunPlan},
    sample,
    stats::{cell::CellResult, summary::Summary},
    target::TargetFacts,
    units::Nanos,
};

fn id() -> RunId {
    "run-1".parse().unwrap()
}

fn started() -> RunEvent {
    let draft = PlanDraft {
        target: "host".into(),
        contexts: "8K,16K".into(),
        concurrency: "1,2".into(),
        ..PlanDraft::default()
    };
    RunEvent::RunStarted { plan: RunPlan::try_from(draft).unwrap(), started_unix_ms: 1, tool: "test".into() }
}

fn numbered(events: impl IntoIterator<Item = RunEvent>) -> Vec<Envelope> {
    let events = std::iter::once(started()).chain(events).zip(0..);
    events.map(|(event, seq)| Envelope { seq, at: Nanos::from_secs(seq), event }).collect()
}

fn cells() -> Vec<CellId> {
    ["prefill-8K-1", "decode-8K-1", "decode-8K-2", "decode-16K-1", "decode-64K-1"].map(|id| id.parse().unwrap()).into()
}

fn events() -> impl Strategy<Value = RunEvent> {
    let cell = prop::sample::select(cells());
    let finished = (cell.clone(), 0.0..1e5).prop_map(|(cell, value): (CellId, f64)| {
        let mut result = CellResult::not_drained(1.0, 0.0);
        result.stats.ttft_s = Some(Summary::point(value));
        RunEvent::CellFinished { cell, result: Box::new(result) }
    });
    prop_oneof![
        cell.clone().prop_map(|cell| RunEvent::CellStarted { cell }),
        finished,
        (cell.clone(), 0.0..1e3).prop_map(|(cell, ramp_s)| RunEvent::RampDone { cell, ramp_s }),
        cell.prop_map(|cell| RunEvent::CellSkipped { cell, reason: SkipReason::User, text: "why".into() }),
        "[a-z ]{0,9}".prop_map(|text| RunEvent::Log { level: LogLevel::Warning, text }),
        prop::option::of(1_u64..9_999)
            .prop_map(|real_tokens| RunEvent::Calibrated { context_tokens: 8_192, real_tokens }),
        (0.5..99.0).prop_map(|clock_factor| RunEvent::Probed {
            facts: Box::new(TargetFacts { base_url: "http://host".into(), ..TargetFacts::default() }),
            origin: Origin::Simulated { clock_factor },
        }),
        Just(RunEvent::RunFinished { outcome: RunOutcome::Cancelled }),
    ]
}

proptest! {
    #[test]
    fn a_snapshot_and_the_rest_are_the_whole(events in prop::collection::vec(events(), 0..30), cut in 1_usize..40) {
        let log = numbered(events);
        let (early, late) = log.split_at(cut.min(log.len()));
        let whole = RunState::fold(id(), &log).unwrap().unwrap();
        let snapshot = serde_json::to_string(&RunState::fold(id(), early).unwrap().unwrap()).unwrap();
        let mut state: RunState = serde_json::from_str(&snapshot).unwrap();
        for envelope in late {
            prop_assert_eq!(state.apply(envelope), Ok(Applied::New));
        }
        prop_assert_eq!(&state, &whole);
        // What is known changes nothing, a gap is refused and changes nothing.
        for envelope in &log {
            prop_assert_eq!(state.apply(envelope), Ok(Applied::Known));
        }
        let wanted = state.next_seq;
        let mut after_gap = log[log.len() - 1].clone();
        after_gap.seq = wanted + 3;
        prop_assert_eq!(state.apply(&after_gap), Err(ApplyError::Gap { wanted, got: wanted + 3 }));
        prop_assert_eq!(&state, &whole);
    }

    #[test]
    fn events_read_back_what_they_write(events in prop::collection::vec(events(), 0..10)) {
        for envelope in numbered(events) {
            let json = serde_json::to_string(&envelope).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Envelope>(&json).unwrap(), &envelope);
        }
    }
}

#[test]
fn a_log_starts_with_its_start_and_only_there() {
    assert_eq!(RunState::fold(id(), &[]), Ok(None));
    let mut log = numbered([started()]);
    assert_eq!(RunState::fold(id(), &log), Err(ApplyError::Misplaced { seq: 1 }));
    assert_eq!(RunState::start(id(), &log[0]).map(|state| state.next_seq), Ok(1));
    log[0].seq = 4;
    assert_eq!(RunState::start(id(), &log[0]), Err(ApplyError::Gap { wanted: 0, got: 4 }));
    let other = Envelope { seq: 0, at: Nanos(0), event: RunEvent::RunFinished { outcome: RunOutcome::Finished } };
    assert_eq!(RunState::start(id(), &other), Err(ApplyError::Misplaced { seq: 0 }));
}

#[test]
fn the_end_leaves_no_cell_open() {
    let [prefill, first, second] = ["prefill-8K-1", "decode-8K-1", "decode-8K-2"].map(|id| id.parse().unwrap());
    let log = numbered([
        RunEvent::CellSkipped { cell: prefill, reason: SkipReason::KvCapacity, text: String::new() },
        RunEvent::CellFinished { cell: first, result: Box::new(CellResult::not_drained(1.0, 0.0)) },
        RunEvent::CellStarted { cell: second },
    ]);
    let mut state = RunState::fold(id(), &log).unwrap().unwrap();
    assert_eq!(state.running_cell().map(|cell| cell.id), Some(second));
    assert_eq!(state.progress(), (2, 6));
    let end = RunEvent::RunFinished { outcome: RunOutcome::Interrupted };
    assert_eq!(state.apply(&Envelope { seq: 4, at: Nanos(9), event: end }), Ok(Applied::New));
    let labels: Vec<String> = state.cells.iter().map(super::Cell::status_label).collect();
    assert_eq!(
        labels,
        [
            "Skipped: does not fit the KV cache",
            "Not reached",
            "Failed: engine not idle",
            "Not reached",
            "Cancelled",
            "Not reached"
        ]
    );
    assert_eq!(state.status, RunStatus::Ended { outcome: RunOutcome::Interrupted });
    assert_eq!(state.progress(), (6, 6));
    assert_eq!(state.cell(second).map(|cell| &cell.state), Some(&CellState::Cancelled));
}

#[test]
fn the_log_keeps_its_latest_lines() {
    let lines = (0..LOG_LINES_KEPT + 5).map(|n| RunEvent::Log { level: LogLevel::Info, text: n.to_string() });
    let state = RunState::fold(id(), &numbered(lines)).unwrap().unwrap();
    assert_eq!(state.log.len(), LOG_LINES_KEPT);
    assert_eq!(state.log.front().map(|line| line.text.as_str()), Some("5"));
}

#[test]
fn titles_say_what_was_measured() {
    let mut state = RunState::fold(id(), &numbered([])).unwrap().unwrap();
    assert_eq!(state.title(), "http://host");
    state.facts = sample::reference().facts;
    assert_eq!(state.title(), "deepseek-ai/DeepSeek-V4-Flash-DSpark on H200 NVL ×2");
    assert!(!state.is_simulated());
}

#[test]
fn an_ended_run_goes_on_with_what_is_open() {
    let (first, second) = ("decode-8K-1".parse().unwrap(), "decode-8K-2".parse().unwrap());
    let mut state = RunState::fold(
        id(),
        &numbered(vec![
            RunEvent::Probed { facts: Box::default(), origin: Origin::Measured },
            RunEvent::CellFinished { cell: first, result: Box::new(CellResult::not_drained(1.0, 0.0)) },
            RunEvent::CellStarted { cell: second },
        ]),
    )
    .unwrap()
    .unwrap();
    let next = |state: &mut RunState, event| {
        let envelope = Envelope { seq: state.next_seq, at: Nanos(99), event };
        state.apply(&envelope)
    };
    let again = || RunEvent::RunResumed { resumed_unix_ms: 5 };
    assert!(matches!(next(&mut state, again()), Err(ApplyError::Misplaced { .. })));
    next(&mut state, RunEvent::RunFinished { outcome: RunOutcome::Interrupted }).unwrap();
    assert!(state.can_go_on());
    let done = state.cell(first).cloned();
    next(&mut state, again()).unwrap();
    assert_eq!((state.status.clone(), state.cell(first).cloned()), (RunStatus::Running, done));
    assert_eq!(state.cell(second).map(|cell| &cell.state), Some(&CellState::Planned));
    next(&mut state, RunEvent::RunFinished { outcome: RunOutcome::Finished }).unwrap();
    assert!(!state.can_go_on());
}
