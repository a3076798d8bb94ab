//! The verdicts on cells: what is a queue, what is only a restart.

use super::{Pace, arrival, cut, failed, ms, request, slot};
use crate::{
    finding::{Finding, rules::Asked},
    plan::Load,
    plan::PromptMode,
    stats::{
        cell::{CellResult, CellStatus},
        decode::{DecodeInput, EngineSeries},
        mixed::Beside,
        verdict::{RampEnd, failures},
        window::Window,
    },
    trace::{FailureKind, RequestTrace, StampSource},
    trust::ClientWatch,
    units::{Concurrency, Context, Nanos},
};

/// A window of 30 s after a ramp of 10 s.
const WINDOW: Window = Window { start: Nanos::from_secs(10), end: Nanos::from_secs(40) };
const END_MS: u64 = 40_000;

const STEADY: Pace = Pace { ttft_ms: 100, restart_ttft_ms: 100, gap_ms: 20, tokens: 4_096 };

struct Case {
    traces: Vec<RequestTrace>,
    concurrency: u32,
    ramp: RampEnd,
    running: Vec<(Nanos, f64)>,
    waiting: Vec<(Nanos, f64)>,
}

impl Case {
    fn new(concurrency: u32, pace: impl Fn(u32) -> Pace) -> Self {
        let traces = (0..concurrency).flat_map(|number| slot(number, pace(number), END_MS)).collect();
        Self { traces, concurrency, ramp: RampEnd::Ready, running: Vec::new(), waiting: Vec::new() }
    }

    fn result(&self) -> CellResult {
        let input = DecodeInput {
            traces: &self.traces,
            scouts: &[],
            ramp_start: Nanos(0),
            window: WINDOW,
            concurrency: Concurrency::new(self.concurrency).unwrap(),
            engine: EngineSeries { running: &self.running, waiting: &self.waiting, kv_usage: &[] },
            client: ClientWatch::default(),
            load: Load::Sustained,
            slo: None,
            beside: Beside::default(),
        };
        let context = Context::new(8_192).unwrap();
        CellResult::decode(&input, self.ramp, Asked::new(context, PromptMode::Shared))
    }

    #[track_caller]
    fn check(&self, wanted: CellStatus) {
        assert_eq!(self.result().status, wanted);
    }
}

/// One scrape per second of the window.
fn scrapes(value: impl Fn(u64) -> f64) -> Vec<(Nanos, f64)> {
    (10..40).map(|second| (Nanos::from_secs(second), value(second))).collect()
}

#[test]
fn steady_slots_are_valid() {
    Case::new(4, |_| STEADY).check(CellStatus::Valid);
}

#[test]
fn a_window_without_a_token_is_never_valid() {
    let mut case = Case::new(2, |_| STEADY);
    for trace in &mut case.traces {
        trace.arrivals.retain(|arrival| arrival.at < WINDOW.start);
    }
    case.check(CellStatus::Failed(FailureKind::Stalled));
}

#[test]
fn slow_admissions_of_restarts_are_no_queue() {
    // As 1019K × 2: every request needs 3 s to its first token, and one of 17 s leaves 15 % of the slots without one.
    let long =
        |number: u32| Pace { ttft_ms: 1_500 * u64::from(number + 1), restart_ttft_ms: 3_000, gap_ms: 7, tokens: 2_000 };
    let mut case = Case::new(2, long);
    case.check(CellStatus::UnderFilled);
    // The engine's gauge passes through 1 at each admission.
    case.waiting = scrapes(|second| if second % 8 == 0 { 1.0 } else { 0.0 });
    case.check(CellStatus::UnderFilled);
}

#[test]
fn restarts_at_the_same_time_are_no_queue() {
    // All 32 slots end together, and are admitted one after the other, 50 ms each.
    let pace = |number: u32| {
        let ttft = 50 * u64::from(number + 1);
        Pace { ttft_ms: ttft, restart_ttft_ms: ttft, gap_ms: 20, tokens: 600 }
    };
    let mut case = Case::new(32, pace);
    case.waiting = scrapes(|second| if second % 12 == 0 { 16.0 } else { 0.0 });
    assert_ne!(case.result().status, CellStatus::RequestsQueued);
}

#[test]
fn a_slot_that_waits_is_queued() {
    let mut case = Case::new(4, |_| STEADY);
    case.traces.retain(|trace| trace.slot != 3);
    case.traces.push(cut(request(3, 0, vec![]), END_MS));
    case.check(CellStatus::RequestsQueued);
    // A queue is the reason of an incomplete ramp.
    case.ramp = RampEnd::BudgetSpent;
    case.check(CellStatus::RequestsQueued);
    let has = |code: &str| case.result().findings.iter().any(|finding: &Finding| finding.code == code);
    assert!(has("requests_queued") && has("no_completed_request"));
}

#[test]
fn the_engine_s_word_is_enough_for_a_queue() {
    // Short answers: each request waits no longer than the burst did, but 24 of 32 wait at any time.
    let mut case = Case::new(32, |_| Pace { ttft_ms: 900, restart_ttft_ms: 900, gap_ms: 10, tokens: 30 });
    case.waiting = scrapes(|_| 24.0);
    case.check(CellStatus::RequestsQueued);
    case.waiting.clear();
    case.check(CellStatus::UnderFilled);
}

#[test]
fn a_cell_without_a_token_failed_whatever_its_ramp() {
    let mut case = Case::new(2, |_| STEADY);
    case.traces = vec![cut(request(0, 0, vec![]), END_MS), cut(request(1, 0, vec![]), END_MS)];
    case.ramp = RampEnd::BudgetSpent;
    case.check(CellStatus::Failed(FailureKind::Stalled));
    // With one slot that got text late in the window, it is the ramp.
    case.traces[0].arrivals.push(arrival(39_000, 1));
    case.check(CellStatus::RampIncomplete);
}

#[test]
fn failures_weigh_most() {
    let mut case = Case::new(4, |_| Pace { tokens: 200, ..STEADY });
    let bad = |sent_ms| failed(request(0, sent_ms, vec![]), FailureKind::RateLimited);
    case.traces.push(bad(12_000));
    assert_eq!(case.result().status, CellStatus::Valid, "1 of 41");
    case.traces.extend((0..10).map(|n| bad(12_000 + n)));
    case.check(CellStatus::Failed(FailureKind::RateLimited));
    assert_eq!(failures(&case.traces).iter().map(|group| group.count).collect::<Vec<_>>(), [11]);
}

#[test]
fn a_dead_slot_fails_the_cell() {
    // Slot 0 gets nothing but a reset after 20 s, and is not served again: 1 failure among many requests.
    let mut case = Case::new(4, |_| Pace { tokens: 20, ..STEADY });
    case.traces.retain(|trace| trace.slot != 0 || trace.ended < ms(20_000));
    case.check(CellStatus::UnderFilled);
    case.traces.push(failed(request(0, 20_000, vec![]), FailureKind::ConnectionReset));
    case.check(CellStatus::Failed(FailureKind::ConnectionReset));
}

#[test]
fn foreign_load_is_seen() {
    let mut case = Case::new(4, |_| STEADY);
    case.running = scrapes(|_| 4.0);
    case.check(CellStatus::Valid);
    case.running = scrapes(|_| 6.0);
    case.check(CellStatus::Contaminated);
}

#[test]
fn a_late_client_is_seen() {
    let mut case = Case::new(4, |_| STEADY);
    for arrival in case.traces.iter_mut().flat_map(|trace| &mut trace.arrivals) {
        arrival.late_ns = 3_000_000;
    }
    case.check(CellStatus::Valid);
    for trace in &mut case.traces {
        trace.stamps = StampSource::Process;
    }
    case.check(CellStatus::ClientLimited);
    let mut case = Case::new(4, |_| STEADY);
    for trace in &mut case.traces {
        trace.coalesced_reads = trace.arrivals.len() as u32 / 10;
    }
    case.check(CellStatus::ClientLimited);
}

#[test]
fn findings_say_what_to_know() {
    let mut case = Case::new(2, |_| STEADY);
    let cold = [request(0, 0, vec![arrival(300, 0)])];
    for trace in &mut case.traces {
        trace.stamps = StampSource::Process;
        for arrival in &mut trace.arrivals {
            arrival.usage_tokens = None;
        }
    }
    let input = DecodeInput {
        traces: &case.traces,
        scouts: &cold,
        ramp_start: Nanos(0),
        window: WINDOW,
        concurrency: Concurrency::new(2).unwrap(),
        engine: EngineSeries::default(),
        client: ClientWatch::default(),
        load: Load::Sustained,
        slo: None,
        beside: Beside::default(),
    };
    let asked = Asked::new(Context::new(8_192).unwrap(), PromptMode::Shared);
    let result = CellResult::decode(&input, RampEnd::Ready, asked);
    let lines: Vec<String> = result.findings.iter().map(|f| format!("{}: {}", f.code, f.text)).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    no_completed_request: No request was completed in the window. Latencies come from requests that were still running.
    usage_missing: The server does not count tokens, so chunks with text were counted. Where chunks carry several tokens the real speed is higher.
    cache_not_proven: The prompt cache is not proven: first tokens took 100 ms warm and 300 ms cold.
    prompt_unknown: The server does not tell its prompt tokens: the context length is an estimate.
    process_stamps: Arrivals were stamped by this process, not by the kernel: off by up to 0.01 ms.
    ");
}

#[test]
fn a_cold_engine_shows_in_its_first_request() {
    let check = |ttfts_ms: &[u64], wanted: bool| {
        let cold: Vec<RequestTrace> = ttfts_ms.iter().map(|ttft| request(0, 0, vec![arrival(*ttft, 1)])).collect();
        let asked = Asked::new(Context::new(8_192).unwrap(), PromptMode::Shared);
        let result = CellResult::prefill(&cold, asked);
        assert_eq!(result.findings.iter().any(|it| it.code == "slow_first_request"), wanted, "{ttfts_ms:?}");
    };
    check(&[4_800, 205, 198], true);
    check(&[205, 198, 4_800], false);
    check(&[4_800], false);
}
