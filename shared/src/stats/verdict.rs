//! The verdict on a cell: its status, its findings and its failed requests (method §5).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    RULES_VERSION,
    cell::{CellResult, CellStats, CellStatus, FailureGroup},
    decode::DecodeInput,
    looping, queue,
};
use crate::{
    finding::{
        Finding,
        rules::{self, Asked},
    },
    id::Phase,
    trace::{FailureKind, RequestEnd, RequestFailure, RequestTrace, StampSource, StreamNote},
    units::{Concurrency, Nanos},
};

/// A cell with more failed requests than this share fails.
const MAX_FAILED_SHARE: f64 = 0.05;
/// So does one with a slot that gave nothing for more than this share of the window.
const MAX_DEAD_SHARE: f64 = 0.1;
/// The engine runs this share of C, and at least one request, beyond ours: somebody else is on it.
const FOREIGN_SHARE: f64 = 0.05;
/// Lateness (p99) above this share of the median gap bends process stamps.
const MAX_LAG_OF_GAP: f64 = 0.1;
/// Reads whose stamp several events share, above which gaps can't be trusted.
const MAX_COALESCED_SHARE: f64 = 0.05;
/// Measuring threads busier than this share of their cores can't keep up.
const MAX_CPU_SHARE: f64 = 0.9;
/// Rows of failed requests that are kept.
pub(super) const FAILURE_ROWS: usize = 10;

/// The finding of a cache that was filled and showed no hit.
const NOT_PROVEN: &str = "cache_not_proven";

/// How the ramp of a decode cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RampEnd {
    /// Every slot had a token.
    Ready,
    /// Its time was over, and the window opened anyway.
    BudgetSpent,
}

/// Whether the prompt cache of a decode cell is known to have been filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The cell's prompts are cold on purpose.
    NotWanted,
    /// A request hit.
    Shown,
    /// No request is known to have hit.
    Missing,
}

impl CellResult {
    /// A measured decode cell.
    pub fn decode(input: &DecodeInput<'_>, ramp: RampEnd, asked: Asked) -> Self {
        let stats = CellStats::decode(input);
        let verdict = decide(&stats, input, ramp);
        let findings = rules::cell_findings(&rules::Seen {
            phase: Phase::Decode,
            cell: &stats,
            status: verdict,
            concurrency: input.concurrency,
            asked,
            traces: input.traces,
        });
        Self { status: verdict, stats, findings, failures: failures(input.traces), rules: Some(RULES_VERSION) }
    }

    /// A measured prefill cell.
    pub fn prefill(cold: &[RequestTrace], asked: Asked) -> Self {
        let stats = CellStats::prefill(cold, asked.context);
        let verdict = decide_prefill(cold);
        let findings = rules::cell_findings(&rules::Seen {
            phase: Phase::Prefill,
            cell: &stats,
            status: verdict,
            concurrency: Concurrency::ONE,
            asked,
            traces: cold,
        });
        Self { status: verdict, stats, findings, failures: failures(cold), rules: Some(RULES_VERSION) }
    }

    /// A cell that could not begin because the engine would not become idle: it still worked on this many requests.
    pub fn not_drained(running: f64, waiting: f64) -> Self {
        let text = format!(
            "Before the cell the engine still worked on {running:.0} requests and {waiting:.0} waited. Stop other \
             traffic."
        );
        let findings = vec![Finding::warning("not_drained", text)];
        Self { findings, ..Self::without_numbers(CellStatus::NotDrained, Vec::new()) }
    }

    /// A cell that was given up because its requests can't succeed, for the reason `failure`; `traces` are those that
    /// were sent before.
    pub fn given_up(failure: &RequestFailure, traces: &[RequestTrace]) -> Self {
        let mut failures = failures(traces);
        if failures.is_empty() {
            failures.push(FailureGroup { kind: failure.kind, text: failure.text.clone(), count: 1 });
        }
        Self::without_numbers(CellStatus::Failed(failure.kind), failures)
    }

    fn without_numbers(verdict: CellStatus, failures: Vec<FailureGroup>) -> Self {
        let (stats, findings) = (CellStats::default(), Vec::new());
        Self { status: verdict, stats, findings, failures, rules: Some(RULES_VERSION) }
    }

    /// The rule on the cache can only compare times; a request that asked for it knows better.
    #[must_use]
    pub fn with_proof(mut self, proof: Proof) -> Self {
        if proof != Proof::NotWanted {
            self.findings.retain(|finding| finding.code != NOT_PROVEN);
        }
        if proof == Proof::Missing {
            let text = "The prompt cache was filled before the cell, but a probe request showed no hit.";
            self.findings.push(Finding::warning(NOT_PROVEN, text));
        }
        self
    }
}

/// The status of a decode cell, most severe first. One exception: a queue is *why* a ramp stays incomplete, so where
/// requests are seen to queue the reason is named, which is also the reference page's word.
pub fn decide(cell: &CellStats, input: &DecodeInput<'_>, ramp: RampEnd) -> CellStatus {
    // Only where a slot is always filled again can one be dead, and a cell be filled too little.
    let held = input.load.is_sustained();
    if let Some(kind) = failed(input.traces).or_else(|| dead_slot(input).filter(|_| held)) {
        return CellStatus::Failed(kind);
    }
    // Nothing arrived although nothing failed: there is no number to stand on, whatever the reason, and whatever the
    // engine's own counters say.
    if cell.output_tokens == Some(0) {
        return CellStatus::Failed(FailureKind::Stalled);
    }
    if is_contaminated(cell, input) {
        return CellStatus::Contaminated;
    }
    if is_looping(input) {
        return CellStatus::LoopingOutput;
    }
    if queue::is_queued(cell, input) {
        return CellStatus::RequestsQueued;
    }
    if ramp == RampEnd::BudgetSpent {
        return CellStatus::RampIncomplete;
    }
    if held && cell.is_underfilled(input.concurrency) {
        return CellStatus::UnderFilled;
    }
    if is_client_limited(cell) { CellStatus::ClientLimited } else { CellStatus::Valid }
}

/// The status of a prefill cell.
pub fn decide_prefill(cold: &[RequestTrace]) -> CellStatus {
    failed(cold).map_or(CellStatus::Valid, CellStatus::Failed)
}

fn failures_of(traces: &[RequestTrace]) -> impl Iterator<Item = &RequestFailure> {
    traces.iter().filter_map(|trace| match &trace.end {
        RequestEnd::Failed(failure) => Some(failure),
        _ => None,
    })
}

fn most_frequent(traces: &[RequestTrace]) -> Option<FailureKind> {
    let mut counts: BTreeMap<FailureKind, usize> = BTreeMap::new();
    for failure in failures_of(traces) {
        *counts.entry(failure.kind).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(kind, count)| (*count, std::cmp::Reverse(*kind))).map(|(kind, _)| kind)
}

fn failed(traces: &[RequestTrace]) -> Option<FailureKind> {
    let share = failures_of(traces).count() as f64 / traces.len() as f64;
    if share > MAX_FAILED_SHARE { most_frequent(traces) } else { None }
}

/// A slot is alive while a request is in flight that will not fail; one that will fail, until its last text.
fn dead_slot(input: &DecodeInput<'_>) -> Option<FailureKind> {
    let mut slots: BTreeMap<u32, Vec<&RequestTrace>> = BTreeMap::new();
    for trace in input.traces {
        slots.entry(trace.slot).or_default().push(trace);
    }
    let at_least = Nanos::from_secs_f64(input.window.secs() * (1.0 - MAX_DEAD_SHARE));
    let is_dead = |traces: &Vec<&RequestTrace>| {
        let failed = |trace: &RequestTrace| matches!(trace.end, RequestEnd::Failed(_));
        let alive = traces.iter().filter_map(|trace| {
            let until = if failed(trace) { trace.last_arrival()? } else { trace.ended };
            Some((trace.send_started?, until))
        });
        traces.iter().any(|trace| failed(trace)) && input.window.covered(alive) < at_least
    };
    if slots.values().any(is_dead) { most_frequent(input.traces) } else { None }
}

fn is_contaminated(cell: &CellStats, input: &DecodeInput<'_>) -> bool {
    let (Some(running), Some(own)) = (cell.engine_running, cell.active_requests) else { return false };
    running.mean - own > (FOREIGN_SHARE * f64::from(input.concurrency.get())).max(1.0)
}

fn is_looping(input: &DecodeInput<'_>) -> bool {
    let looked_at = || input.good().filter(|trace| trace.slot < looping::LOOKED_AT_SLOTS && !trace.arrivals.is_empty());
    let looping = looked_at().filter(|trace| trace.notes.contains(&StreamNote::LoopingText)).count();
    looping > 0 && looping as f64 >= looping::MIN_SHARE * looked_at().count() as f64
}

fn is_client_limited(cell: &CellStats) -> bool {
    let late = match (cell.client_lag_s.and_then(|lag| lag.p99), cell.chunk_gap_s) {
        (Some(lag), Some(gap)) => lag > MAX_LAG_OF_GAP * gap.p50,
        _ => false,
    };
    let bent = late && cell.stamps == Some(StampSource::Process);
    let busy = cell.client_cpu_share.is_some_and(|share| share > MAX_CPU_SHARE);
    bent || busy || cell.coalesced_share.is_some_and(|share| share > MAX_COALESCED_SHARE)
}

/// Failed requests that said the same, most frequent first.
pub fn failures(traces: &[RequestTrace]) -> Vec<FailureGroup> {
    let mut counts: BTreeMap<(FailureKind, &str), u64> = BTreeMap::new();
    for failure in failures_of(traces) {
        *counts.entry((failure.kind, failure.text.as_str())).or_default() += 1;
    }
    let group = |((kind, text), count): ((FailureKind, &str), u64)| FailureGroup { kind, text: text.to_owned(), count };
    let mut groups: Vec<FailureGroup> = counts.into_iter().map(group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups.truncate(FAILURE_ROWS);
    groups
}
