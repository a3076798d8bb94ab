//! What a run says against what the simulator knows: counts exactly, rates within 1 %, latencies never below the truth.

use std::time::Duration;

use speedmatrix_agent::sim::{ChunkRecord, End, RequestRecord, SimConfig, SimLog, SimThread, UsageStyle};
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
/// A machine on which nothing is later than this (real time) is quiet: only then is everything exact.
const QUIET: Duration = Duration::from_millis(3);
/// On a busy machine, after this many runs, numbers only have to be near the truth …
const TRIES: usize = 2;
/// … by this share.
const BUSY_SLACK: f64 = 0.5;
/// The simulator's time from step to step in the exact presets, seconds on its clock.
const STEP_S: f64 = 0.010;
/// The simulator's time to the first token, less what rounding may take.
const FIRST_TOKEN_S: f64 = 0.0499;

/// The simulator's own view of one decode cell.
struct Truth {
    requests: Vec<RequestRecord>,
    start: u64,
    end: u64,
    factor: f64,
    /// How far numbers may be off: 0 on a quiet machine.
    slack: f64,
}

impl Truth {
    fn of(seen: &Seen, log: &SimLog, cell: &str, window: Nanos) -> Self {
        let (ramp, start) = seen.opened(cell);
        let at = |time| monotonic_ns(seen.clock, time);
        let (start, end) = (at(start), at(start + window));
        // The sends begin right after the start of the ramp is noted.
        let requests = received(log, at(ramp) - EDGE_NS, at(seen.finished(cell)));
        let slack = if is_quiet(seen, &requests, cell) { 0.0 } else { BUSY_SLACK };
        Self { requests, start, end, factor: seen.clock.factor(), slack }
    }

    fn is_exact(&self) -> bool {
        self.slack <= 0.0
    }

    /// Sum over chunks surely inside, and over those surely or maybe inside.
    fn bounds(&self, worth: impl Fn(&ChunkRecord) -> u64) -> (u64, u64) {
        let sum = |from: u64, to: u64| {
            let chunks = self.requests.iter().flat_map(|request| &request.chunk_log);
            chunks.filter(|chunk| (from..to).contains(&chunk.sent.monotonic_ns)).map(&worth).sum()
        };
        (sum(self.start + EDGE_NS, self.end - EDGE_NS), sum(self.start - EDGE_NS, self.end + EDGE_NS))
    }

    fn completed(&self) -> (u64, u64) {
        let count = |from: u64, to: u64| {
            let done = self.requests.iter().filter(|request| request.end == Some(End::Completed));
            let last = done.filter_map(|request| request.last_token);
            last.filter(|last| (from..to).contains(&last.monotonic_ns)).count() as u64
        };
        (count(self.start + EDGE_NS, self.end - EDGE_NS), count(self.start - EDGE_NS, self.end + EDGE_NS))
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

    fn check_within(&self, what: &str, got: f64, want: f64, share: f64) {
        let share = share + self.slack;
        assert!((got / want - 1.0).abs() <= share, "{what}: {got} is not within {share} of {want}");
    }

    fn check_between(&self, what: &str, got: u64, (least, most): (u64, u64)) {
        let (least, most) = (least as f64 * (1.0 - self.slack), most as f64 * (1.0 + self.slack));
        assert!((least..=most).contains(&(got as f64)), "{what}: {got} is not between {least} and {most}");
    }

    /// The simulator knows every request, but for those that were cut before it had read them.
    fn check_started(&self, what: &str, started: u64) {
        let known = self.requests.len() as u64;
        assert!((known..=known + 4).contains(&started), "{what}: {started} requests, the simulator knows {known}");
    }
}

/// Whether simulator and client were always scheduled in time: then stamps and sends agree.
fn is_quiet(seen: &Seen, requests: &[RequestRecord], cell: &str) -> bool {
    let quiet_ns = u64::try_from(QUIET.as_nanos()).unwrap();
    let longest_gap_s = seen.result(cell).stats.chunk_gap_s.map(|gap| gap.max);
    let sent_in_time = requests.iter().all(|request| request.max_lateness_ns <= quiet_ns);
    sent_in_time && longest_gap_s.is_some_and(|gap| gap <= STEP_S + QUIET.as_secs_f64() * seen.clock.factor())
}

/// Makes a run of `plan` against a simulator of `config`, again if the machine was busy during one of `cells`.
fn quiet_run(config: &SimConfig, plan: &PlanDraft, cells: &[&str], window: Nanos) -> (SimThread, Seen) {
    let mut tries = 0;
    loop {
        let sim = simulator(config.clone());
        let seen = Rig::new(&sim.base_url()).run(plan.clone());
        assert_eq!(seen.outcome, RunOutcome::Finished);
        tries += 1;
        let quiet = cells.iter().all(|cell| Truth::of(&seen, &sim.log(), cell, window).is_exact());
        if quiet || tries == TRIES {
            return (sim, seen);
        }
    }
}

/// A decode cell that the server counts in every chunk: everything against the log.
fn check_cell(seen: &Seen, log: &SimLog, cell: &str, window: Nanos) {
    let truth = Truth::of(seen, log, cell, window);
    let result = seen.result(cell);
    let stats = &result.stats;
    // A busy machine may read late, or start the next request late; then the status says so.
    let fine = [CellStatus::Valid, CellStatus::ClientLimited, CellStatus::UnderFilled];
    let expected = if truth.is_exact() { &fine[..1] } else { &fine };
    assert!(expected.contains(&result.status), "{cell}: {result:#?}");
    let tokens = stats.output_tokens.unwrap();
    truth.check_between("output tokens", tokens, truth.bounds(|chunk| chunk.tokens));
    truth.check_within("measured for", stats.measured_for_s.unwrap(), window.as_secs_f64(), 1e-9);
    truth.check_within("total tok/s", stats.total_tok_s.unwrap(), tokens as f64 / window.as_secs_f64(), 1e-9);
    truth.check_within("time between tokens", stats.time_between_tokens_s.unwrap().p50, truth.tpot_s(), 0.01);
    truth.check_within("per-request tok/s", stats.per_request_tok_s.unwrap().p50, 1.0 / truth.tpot_s(), 0.01);
    let requests = stats.requests.unwrap();
    truth.check_started(cell, requests.started);
    truth.check_between("completed", requests.completed, truth.completed());
    assert_eq!(requests.failed, 0, "{cell}: {:?}", result.failures);
    let concurrency = cell.rsplit('-').next().unwrap().parse::<f64>().unwrap();
    assert!(stats.active_requests.unwrap() <= concurrency + 1e-9);
    truth.check_within("active requests", stats.active_requests.unwrap(), concurrency, 0.01);
    let ttft = stats.ttft_s.unwrap();
    assert!(ttft.min >= FIRST_TOKEN_S, "{cell}: ttft {ttft:?}");
    let mut prompts: Vec<u64> = truth.requests.iter().map(|request| request.prompt_tokens).collect();
    prompts.sort_unstable();
    let prompt = stats.prompt_tokens.unwrap();
    assert!((prompts[0]..=*prompts.last().unwrap()).contains(&prompt), "{cell}: {prompt} of {prompts:?}");
}

#[test]
fn every_number_of_a_small_matrix_is_true() {
    let window = Nanos::from_secs(2);
    let cells = ["decode-1K-1", "decode-1K-4", "decode-2K-1", "decode-2K-4"];
    let (sim, seen) = quiet_run(&exact(2.0), &draft("1K,2K", "1,4", "2s", "256"), &cells, window);
    for cell in cells {
        check_cell(&seen, &sim.log(), cell, window);
        let findings = &seen.result(cell).findings;
        assert!(findings.iter().all(|finding| finding.code != "cache_not_proven"), "{findings:?}");
    }
    for (cell, context) in [("prefill-1K-1", 1_024_u64), ("prefill-2K-1", 2_048)] {
        let result = seen.result(cell);
        let ttft = result.stats.ttft_cold_s.or(result.stats.ttft_s).unwrap();
        assert!(ttft.min >= FIRST_TOKEN_S, "{ttft:?}");
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
            let config = SimConfig { clock_factor: 4.0, recording: exact(1.0).recording, ..config };
            let output = if speculative { "896" } else { "256" };
            let plan = PlanDraft { prompts: prompts.into(), ..draft("1K", "4", "2s", output) };
            let what = format!("{usage:?}, {preset}, {prompts}");
            let (sim, seen) = quiet_run(&config, &plan, &["decode-1K-4"], Nanos::from_secs(2));
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
    truth.check_between(what, tokens, exact);
    truth.check_started(what, stats.requests.unwrap().started);
    assert!(stats.ttft_s.unwrap().min >= FIRST_TOKEN_S, "{what}");
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
        assert!(ttft.n >= 2 && ttft.min >= FIRST_TOKEN_S, "{ttft:?}");
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
