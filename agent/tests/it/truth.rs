//! What a run says against what the simulator knows: counts exactly, rates within 1 %, latencies never below the truth.

use speedmatrix_agent::sim::{ChunkRecord, End, RequestRecord, SimConfig, SimLog, UsageStyle};
use speedmatrix_shared::{
    event::{RunEvent, RunOutcome},
    gauge::CellPhase,
    plan::PlanDraft,
    stats::cell::CellStatus,
    trace::TokenSource,
    units::Nanos,
};

use crate::rig::{Rig, Seen, draft, exact, monotonic_ns, received, simulator};

/// Chunks sent this close (real nanoseconds) to an edge of the window may be counted on either side.
const EDGE_NS: u64 = 2_000_000;
/// The same where reads were coalesced: a busy machine kept the client from reading, and packets share a stamp.
const BUSY_EDGE_NS: u64 = 40_000_000;

/// The simulator's own view of one decode cell.
struct Truth {
    requests: Vec<RequestRecord>,
    start: u64,
    end: u64,
    edge: u64,
    factor: f64,
}

impl Truth {
    fn of(seen: &Seen, log: &SimLog, cell: &str, window: Nanos) -> Self {
        let (ramp, start) = seen.opened(cell);
        let at = |time| monotonic_ns(seen.clock, time);
        let (start, end) = (at(start), at(start + window));
        // The sends begin right after the start of the ramp is noted.
        let requests = received(log, at(ramp) - EDGE_NS, at(seen.finished(cell)));
        let busy = seen.result(cell).stats.coalesced_share.is_none_or(|share| share > 0.0);
        let edge = if busy { BUSY_EDGE_NS } else { EDGE_NS };
        Self { requests, start, end, edge, factor: seen.clock.factor() }
    }

    /// Sum over chunks surely inside, and over those surely or maybe inside.
    fn bounds(&self, worth: impl Fn(&ChunkRecord) -> u64) -> (u64, u64) {
        let sum = |from: u64, to: u64| {
            let chunks = self.requests.iter().flat_map(|request| &request.chunk_log);
            chunks.filter(|chunk| (from..to).contains(&chunk.sent.monotonic_ns)).map(&worth).sum()
        };
        (sum(self.start + self.edge, self.end - self.edge), sum(self.start - self.edge, self.end + self.edge))
    }

    fn completed(&self) -> (u64, u64) {
        let count = |from: u64, to: u64| {
            let done = self.requests.iter().filter(|request| request.end == Some(End::Completed));
            let last = done.filter_map(|request| request.last_token);
            last.filter(|last| (from..to).contains(&last.monotonic_ns)).count() as u64
        };
        (count(self.start + self.edge, self.end - self.edge), count(self.start - self.edge, self.end + self.edge))
    }

    /// Median time per output token, seconds on the run's clock, over requests with chunks in the window.
    fn tpot_s(&self) -> f64 {
        let mut values: Vec<f64> = Vec::new();
        for request in &self.requests {
            let chunks: Vec<_> =
                request.chunk_log.iter().filter(|c| (self.start..self.end).contains(&c.sent.monotonic_ns)).collect();
            let (Some(first), Some(last)) = (chunks.first(), chunks.last()) else { continue };
            let tokens: u64 = chunks.iter().skip(1).map(|chunk| chunk.tokens).sum();
            if tokens > 0 {
                let real_ns = last.sent.monotonic_ns - first.sent.monotonic_ns;
                values.push(real_ns as f64 * 1e-9 * self.factor / tokens as f64);
            }
        }
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len().is_multiple_of(2) { f64::midpoint(values[middle - 1], values[middle]) } else { values[middle] }
    }
}

fn check_within(what: &str, got: f64, want: f64, share: f64) {
    assert!((got / want - 1.0).abs() <= share, "{what}: {got} is not within {share} of {want}");
}

fn check_between(what: &str, got: u64, (least, most): (u64, u64)) {
    assert!((least..=most).contains(&got), "{what}: {got} is not between {least} and {most}");
}

/// The simulator knows every request, but for those that were cut before it had read them.
fn check_started(truth: &Truth, started: u64, what: &str) {
    let known = truth.requests.len() as u64;
    check_between(what, started, (known, known + 4));
}

/// A decode cell that the server counts in every chunk: everything against the log.
fn check_cell(seen: &Seen, log: &SimLog, cell: &str, window: Nanos) {
    let truth = Truth::of(seen, log, cell, window);
    let result = seen.result(cell);
    let stats = &result.stats;
    // A busy machine may keep the client from reading, and says so.
    assert!(matches!(result.status, CellStatus::Valid | CellStatus::ClientLimited), "{cell}: {result:#?}");
    let tokens = stats.output_tokens.unwrap();
    check_between("output tokens", tokens, truth.bounds(|chunk| chunk.tokens));
    check_within("measured for", stats.measured_for_s.unwrap(), window.as_secs_f64(), 1e-9);
    check_within("total tok/s", stats.total_tok_s.unwrap(), tokens as f64 / window.as_secs_f64(), 1e-9);
    check_within("time between tokens", stats.time_between_tokens_s.unwrap().p50, truth.tpot_s(), 0.01);
    check_within("per-request tok/s", stats.per_request_tok_s.unwrap().p50, 1.0 / truth.tpot_s(), 0.03);
    let requests = stats.requests.unwrap();
    check_started(&truth, requests.started, cell);
    check_between("completed", requests.completed, truth.completed());
    assert_eq!(requests.failed, 0, "{cell}: {:?}", result.failures);
    let concurrency = cell.rsplit('-').next().unwrap().parse::<f64>().unwrap();
    assert!(stats.active_requests.unwrap() <= concurrency + 1e-9);
    check_within("active requests", stats.active_requests.unwrap(), concurrency, 0.05);
    // The first token takes 50 ms from admission; nothing can be faster.
    let ttft = stats.ttft_s.unwrap();
    assert!(ttft.min >= 0.0499, "{cell}: ttft {ttft:?}");
    let mut prompts: Vec<u64> = truth.requests.iter().map(|request| request.prompt_tokens).collect();
    prompts.sort_unstable();
    check_between("prompt tokens", stats.prompt_tokens.unwrap(), (prompts[0], *prompts.last().unwrap()));
}

#[test]
fn every_number_of_a_small_matrix_is_true() {
    let sim = simulator(exact(2.0));
    let seen = Rig::new(&sim.base_url()).run(draft("1K,2K", "1,4", "2s", "256"));
    assert_eq!(seen.outcome, RunOutcome::Finished);
    for cell in ["decode-1K-1", "decode-1K-4", "decode-2K-1", "decode-2K-4"] {
        check_cell(&seen, &sim.log(), cell, Nanos::from_secs(2));
        let findings = &seen.result(cell).findings;
        assert!(findings.iter().all(|finding| finding.code != "cache_not_proven"), "{findings:?}");
    }
    for (cell, context) in [("prefill-1K-1", 1_024_u64), ("prefill-2K-1", 2_048)] {
        let result = seen.result(cell);
        let ttft = result.stats.ttft_cold_s.or(result.stats.ttft_s).unwrap();
        assert!(ttft.min >= 0.0499, "{ttft:?}");
        assert!(result.stats.prompt_tokens.unwrap().abs_diff(context) <= 16);
        assert_eq!(result.status, CellStatus::Valid, "{result:#?}");
    }
    let order: Vec<String> = seen
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            RunEvent::CellStarted { cell } => Some(cell.to_string()),
            _ => None,
        })
        .collect();
    let want = ["prefill-1K-1", "decode-1K-1", "prefill-2K-1", "decode-2K-1", "decode-1K-4", "decode-2K-4"];
    assert_eq!(order, want);
    assert!(seen.events.iter().any(|(_, event)| matches!(
        event,
        RunEvent::Calibrated { context_tokens: 2_048, real_tokens: Some(real) } if real.abs_diff(2_048) <= 16
    )));
    assert!(seen.gauges.iter().any(|gauge| gauge.phase == CellPhase::Measure && gauge.window_tok_s.is_some()));
}

/// One cell of four streams for each prompt mode, with and without speculation.
fn check_usage(usage: UsageStyle) {
    for (preset, speculative) in [("exact", false), ("exact-speculative", true)] {
        for prompts in ["shared", "unique", "cold"] {
            let mut config = SimConfig { usage, ..SimConfig::preset(preset).unwrap() };
            // All requests alike: the tokens per chunk of completed ones stand for those that were cut.
            config.speculation.iter_mut().for_each(|speculation| speculation.text_sigma = 0.0);
            let sim = simulator(SimConfig { clock_factor: 4.0, recording: exact(1.0).recording, ..config });
            let output = if speculative { "896" } else { "256" };
            let plan = PlanDraft { prompts: prompts.into(), ..draft("1K", "4", "2s", output) };
            let seen = Rig::new(&sim.base_url()).run(plan);
            let what = format!("{usage:?}, {preset}, {prompts}");
            assert_eq!(seen.outcome, RunOutcome::Finished, "{what}");
            check_counts(&seen, &sim.log(), usage, &what);
            check_cache(&seen, usage, prompts, &what);
        }
    }
}

fn check_counts(seen: &Seen, log: &SimLog, usage: UsageStyle, what: &str) {
    let truth = Truth::of(seen, log, "decode-1K-4", Nanos::from_secs(2));
    let result = seen.result("decode-1K-4");
    let stats = &result.stats;
    let tokens = stats.output_tokens.unwrap_or_else(|| panic!("{what}: {result:#?}"));
    let (source, exact) = match usage {
        UsageStyle::EveryChunk => (TokenSource::ServerPerChunk, truth.bounds(|chunk| chunk.tokens)),
        UsageStyle::FinalOnly => {
            // The server's totals are spread over the chunks of each request: right on average.
            let (least, most) = truth.bounds(|chunk| chunk.tokens);
            (TokenSource::ServerPerRequest, (least * 9 / 10, most * 11 / 10))
        }
        UsageStyle::None => (TokenSource::Chunks, truth.bounds(|_| 1)),
    };
    assert_eq!(stats.token_source, Some(source), "{what}");
    assert_eq!(stats.requests.unwrap().failed, 0, "{what}: {:?}", result.failures);
    check_between(what, tokens, exact);
    check_started(&truth, stats.requests.unwrap().started, what);
    assert!(stats.ttft_s.unwrap().min >= 0.0499, "{what}");
}

fn check_cache(seen: &Seen, usage: UsageStyle, prompts: &str, what: &str) {
    let result = seen.result("decode-1K-4");
    let proven = result.findings.iter().all(|finding| finding.code != "cache_not_proven");
    assert!(proven, "{what}: {:?}", result.findings);
    let share = result.stats.cached_share;
    match (usage, prompts) {
        (UsageStyle::None, _) => assert_eq!(share, None, "{what}"),
        (_, "cold") => assert_eq!(share, Some(0.0), "{what}"),
        _ => assert!(share.is_some_and(|share| share > 0.5), "{what}: {share:?}"),
    }
    if usage == UsageStyle::None {
        assert!(seen.logged("estimated") || result.stats.prompt_tokens.is_none(), "{what}");
    }
}

#[test]
fn usage_in_every_chunk_counts_exactly() {
    check_usage(UsageStyle::EveryChunk);
}

#[test]
fn usage_at_the_end_is_spread() {
    check_usage(UsageStyle::FinalOnly);
}

#[test]
fn without_usage_chunks_are_counted() {
    check_usage(UsageStyle::None);
}

#[test]
fn cold_prefill_rows_are_measured_on_their_own() {
    let sim = simulator(exact(4.0));
    let plan = PlanDraft { prefill_contexts: "1K,4K".into(), ..draft("", "", "1s", "") };
    let seen = Rig::new(&sim.base_url()).run(plan);
    assert_eq!(seen.outcome, RunOutcome::Finished);
    for cell in ["prefill-1K-1", "prefill-4K-1"] {
        let stats = &seen.result(cell).stats;
        let ttft = stats.ttft_s.or(stats.ttft_cold_s).unwrap();
        assert!(ttft.n >= 2 && ttft.min >= 0.0499, "{ttft:?}");
    }
    let cold = sim.log().records().iter().all(|request| request.cached_tokens == 0);
    assert!(cold, "every prefill request is cold");
}

#[test]
fn two_runs_share_no_prompt() {
    let sim = simulator(exact(4.0));
    let plan = PlanDraft { prefill_contexts: "1K".into(), ..draft("", "", "1s", "") };
    let mut rig = Rig::new(&sim.base_url());
    rig.run(plan.clone());
    let first = sim.log().records().len();
    rig.id = "0199-test";
    rig.run(plan);
    assert!(sim.log().records().iter().skip(first).all(|request| request.cached_tokens == 0));
}
