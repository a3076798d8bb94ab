//! The rules that make findings about one cell.

use serde::{Deserialize, Serialize};

use super::{Finding, Severity};
use crate::{
    format,
    id::Phase,
    plan::{Load, PromptMode, Slo},
    stats::{
        cell::{CellStats, CellStatus, RequestCounts},
        first::SlowFirst,
        prefill::MAX_CACHED_SHARE,
        request,
    },
    trace::{RequestTrace, StampSource, StreamNote, TokenSource},
    units::{Concurrency, Context},
};

/// Fewer completed requests than this are few.
pub const FEW_REQUESTS: u64 = 3;
/// A half-width above this share of the rate is wide.
const WIDE_INTERVAL: f64 = 0.05;
/// A prompt is cached when at least this share came from the cache: the question at its end never does.
const CACHED_FROM: f64 = 0.9;
/// Without counts a TTFT of at most this share of the scout's proves the hit (method §3).
const PROVED_BY_TTFT: f64 = 0.25;
/// Real and asked prompt tokens may differ by this share …
const PROMPT_TOLERANCE: f64 = 0.005;
/// … or by this many tokens.
const PROMPT_TOLERANCE_TOKENS: u64 = 16;
/// From this share on, reads that share a stamp are told.
const COALESCED_FROM: f64 = 0.01;
/// From this many tokens per chunk on, chunks carry several.
const SEVERAL_TOKENS_FROM: f64 = 1.05;

/// What the plan asked of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Prompt tokens.
    pub context: Context,
    /// How prompts relate to each other.
    pub prompts: PromptMode,
    /// How requests come.
    #[serde(default)]
    pub load: Load,
    /// What a request must keep to count as good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<Slo>,
}

impl Asked {
    /// What a cell of this context asks for, under sustained load.
    pub const fn new(context: Context, prompts: PromptMode) -> Self {
        Self { context, prompts, load: Load::Sustained, slo: None }
    }

    /// Prompt tokens of the requests in the cell's slots: those of the background in a mixed cell.
    pub const fn prompt_context(self) -> Context {
        match self.load {
            Load::Mixed { background } => background,
            Load::Sustained | Load::Burst { .. } | Load::Open(_) => self.context,
        }
    }
}

/// What the rules look at.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// What was measured.
    pub phase: Phase,
    /// The numbers.
    pub cell: &'a CellStats,
    /// The verdict.
    pub status: CellStatus,
    /// Requests at once.
    pub concurrency: Concurrency,
    /// What the plan asked for.
    pub asked: Asked,
    /// The requests.
    pub traces: &'a [RequestTrace],
}

impl Seen<'_> {
    fn requests(&self) -> RequestCounts {
        self.cell.requests.unwrap_or_default()
    }

    fn is_decode(&self) -> bool {
        self.phase == Phase::Decode
    }
}

type Rule = fn(&Seen<'_>) -> Option<Finding>;

/// Every rule about a cell, in the order in which findings are shown.
const RULES: &[Rule] = &[
    failed_requests,
    requests_queued,
    no_completed_request,
    few_requests,
    slow_first_request,
    usage_missing,
    wide_interval,
    cache_not_proven,
    partly_cached,
    prefill_cached,
    prompt_off,
    prompt_unknown,
    coalesced_reads,
    process_stamps,
    several_tokens_per_chunk,
];

/// What a reader should know about a cell.
pub fn cell_findings(seen: &Seen<'_>) -> Vec<Finding> {
    let by_rule = RULES.iter().filter_map(|rule| rule(seen));
    by_rule.chain(NOTES.iter().filter_map(|note| noted(seen, *note))).collect()
}

fn failed_requests(seen: &Seen<'_>) -> Option<Finding> {
    let counts = seen.requests();
    let (failed, started) = (format::count(Some(counts.failed)), format::count(Some(counts.started)));
    let text = || format!("{failed} of {started} requests failed. They are in no latency and no throughput.");
    (counts.failed > 0).then(|| Finding::warning("failed_requests", text()))
}

fn requests_queued(seen: &Seen<'_>) -> Option<Finding> {
    if seen.status != CellStatus::RequestsQueued {
        return None;
    }
    let decoding = format::decimal1(seen.cell.decoding_requests);
    let text = format!("Requests waited in a queue: {decoding} of {} were decoding on average.", seen.concurrency);
    Some(Finding::warning("requests_queued", text))
}

fn no_completed_request(seen: &Seen<'_>) -> Option<Finding> {
    let none = seen.is_decode() && !seen.status.is_failed() && seen.requests().completed == 0;
    let text = "No request was completed in the window. Latencies come from requests that were still running.";
    none.then(|| Finding::info("no_completed_request", text))
}

fn few_requests(seen: &Seen<'_>) -> Option<Finding> {
    let completed = seen.requests().completed;
    let few = seen.is_decode() && (1..FEW_REQUESTS).contains(&completed);
    let noun = if completed == 1 { "request was" } else { "requests were" };
    let text = || format!("Only {completed} {noun} completed in the window. Most latencies come from running ones.");
    few.then(|| Finding::info("few_requests", text()))
}

/// Only where requests come one after the other: in a decode cell the first ones queue behind each other.
fn slow_first_request(seen: &Seen<'_>) -> Option<Finding> {
    let good = seen.traces.iter().filter(|trace| !request::is_failed(trace));
    let waits: Vec<f64> = good.filter_map(request::ttft_secs).collect();
    let slow = SlowFirst::of(&waits).filter(|_| seen.phase == Phase::Prefill)?;
    let (first, others) = (format::ttft(Some(slow.first)), format::ttft(Some(slow.others.p50)));
    let text =
        format!("The first request took {first} to its first token and the others {others}: it found a cold engine.");
    Some(Finding::warning("slow_first_request", text))
}

fn usage_missing(seen: &Seen<'_>) -> Option<Finding> {
    let text = "The server does not count tokens, so chunks with text were counted. Where chunks carry several tokens \
                the real speed is higher.";
    let missing = seen.is_decode() && seen.cell.token_source == Some(TokenSource::Chunks);
    missing.then(|| Finding::warning("usage_missing", text))
}

fn wide_interval(seen: &Seen<'_>) -> Option<Finding> {
    let (total, interval) = (seen.cell.total_tok_s?, seen.cell.total_tok_s_interval?);
    let text =
        || format!("The total speed is uncertain: {} tok/s.", format::interval(Some(total), Some(interval.half_width)));
    (interval.half_width > WIDE_INTERVAL * total).then(|| Finding::warning("wide_interval", text()))
}

fn wants_cache(seen: &Seen<'_>) -> bool {
    seen.is_decode() && seen.asked.prompts != PromptMode::Cold && !seen.status.is_failed()
}

fn cache_not_proven(seen: &Seen<'_>) -> Option<Finding> {
    if !wants_cache(seen) || seen.cell.cached_share.is_some() {
        return None;
    }
    // With a fresh part in each prompt the time to the first token proves nothing.
    let times = seen.cell.ttft_cold_s.zip(seen.cell.ttft_s);
    let whole = seen.asked.prompts.cached_share() >= 1.0;
    let Some((cold, warm)) = times.filter(|_| whole) else {
        return Some(Finding::info(
            "cache_not_proven",
            "Whether the prompt came from the cache could not be checked.".to_owned(),
        ));
    };
    // The start burst is admitted one after the other: only its first request shows one admission alone.
    let (cold, warm) = (cold.min, warm.min);
    let (cold_text, warm_text) = (format::ttft(Some(cold)), format::ttft(Some(warm)));
    let text = || format!("The prompt cache is not proven: first tokens took {warm_text} warm and {cold_text} cold.");
    (warm > PROVED_BY_TTFT * cold).then(|| Finding::warning("cache_not_proven", text()))
}

fn partly_cached(seen: &Seen<'_>) -> Option<Finding> {
    let wanted = seen.asked.prompts.cached_share();
    let share = seen.cell.cached_share.filter(|share| wants_cache(seen) && *share < CACHED_FROM * wanted)?;
    let (share, wanted) = (format::percent(Some(share)), format::percent(Some(wanted)));
    let text = match seen.asked.prompts {
        PromptMode::Mixed(_) => format!("Only {share} of the prompt came from the cache where {wanted} should have."),
        _ => format!("Only {share} of the prompt came from the cache."),
    };
    Some(Finding::warning("partly_cached", text))
}

fn prefill_cached(seen: &Seen<'_>) -> Option<Finding> {
    let cold = !seen.is_decode() || seen.asked.prompts == PromptMode::Cold;
    let share = seen.cell.cached_share.filter(|share| cold && *share > MAX_CACHED_SHARE)?;
    let percent = format::percent(Some(share));
    let effect = if seen.is_decode() { "first tokens came too early" } else { "it tells nothing about prefill speed" };
    Some(Finding::warning(
        "prompt_cached",
        format!("{percent} of the prompt came from the cache although it was new: {effect}."),
    ))
}

fn prompt_off(seen: &Seen<'_>) -> Option<Finding> {
    let (asked, real) = (seen.asked.prompt_context().tokens(), seen.cell.prompt_tokens?);
    let off = asked.abs_diff(real);
    let is_off = off > PROMPT_TOLERANCE_TOKENS && off as f64 > PROMPT_TOLERANCE * asked as f64;
    let text = || {
        let (asked, real) = (format::tokens(Some(asked)), format::count(Some(real)));
        format!("The server counts {real} prompt tokens where {asked} were asked for.")
    };
    is_off.then(|| Finding::warning("prompt_off", text()))
}

fn prompt_unknown(seen: &Seen<'_>) -> Option<Finding> {
    let unknown = seen.cell.prompt_tokens.is_none() && seen.cell.total_tok_s.is_some();
    let text = match seen.phase {
        Phase::Prefill => {
            "The server does not tell its prompt tokens: the speed is an estimate from the tokens asked for."
        }
        Phase::Decode => "The server does not tell its prompt tokens: the context length is an estimate.",
    };
    unknown.then(|| Finding::warning("prompt_unknown", text))
}

fn coalesced_reads(seen: &Seen<'_>) -> Option<Finding> {
    let share = seen.cell.coalesced_share.filter(|share| *share > COALESCED_FROM)?;
    let percent = format::percent(Some(share));
    Some(Finding::warning(
        "coalesced_reads",
        format!("{percent} of the reads brought several events under one stamp: gaps are blurred."),
    ))
}

fn process_stamps(seen: &Seen<'_>) -> Option<Finding> {
    if seen.cell.stamps != Some(StampSource::Process) {
        return None;
    }
    let lag = seen.cell.client_lag_s.map(|lag| lag.p99.unwrap_or(lag.max));
    let text = format!("Arrivals were stamped by this process, not by the kernel: off by up to {}.", format::lag(lag));
    Some(Finding::info("process_stamps", text))
}

fn several_tokens_per_chunk(seen: &Seen<'_>) -> Option<Finding> {
    let tokens = seen.cell.tokens_per_chunk.filter(|tokens| *tokens >= SEVERAL_TOKENS_FROM)?;
    let text = format!(
        "Chunks carry {} tokens on average: gaps per token are shares of a chunk's gap.",
        format::decimal1(Some(tokens))
    );
    Some(Finding::info("multi_token_chunks", text))
}

/// A note of single streams as a finding: code, weight, and what the streams did.
type Note = (StreamNote, &'static str, Severity, &'static str);

/// Notes that no rule above covers.
const NOTES: &[Note] = &[
    (StreamNote::UsageImplausible, "usage_implausible", Severity::Warning, "had a token count that can't be true"),
    (
        StreamNote::BufferedStream,
        "buffered_stream",
        Severity::Warning,
        "came all at once although a stream was asked for",
    ),
    (StreamNote::NotStreamed, "not_streamed", Severity::Warning, "were answered with one document instead of a stream"),
    (StreamNote::MalformedEventSkipped, "malformed_events", Severity::Info, "held events that could not be read"),
    (StreamNote::NoVisibleAnswer, "no_visible_answer", Severity::Info, "held only reasoning and no visible answer"),
    (
        StreamNote::LoopingText,
        "looping_output",
        Severity::Warning,
        "repeated themselves at the end: such text comes faster than real answers, with speculation above all",
    ),
    (StreamNote::ModelMismatch, "model_mismatch", Severity::Warning, "were answered by a model of another name"),
];

fn noted(seen: &Seen<'_>, (note, code, severity, did): Note) -> Option<Finding> {
    let count = seen.traces.iter().filter(|trace| trace.notes.contains(&note)).count() as u64;
    let (some, all) = (format::count(Some(count)), format::count(Some(seen.traces.len() as u64)));
    (count > 0).then(|| Finding { code: code.to_owned(), severity, text: format!("{some} of {all} requests {did}.") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{
        interval::{Interval, IntervalKind},
        summary::Summary,
    };

    /// A decode cell of 8K × 4 against which no rule speaks.
    fn clean() -> CellStats {
        CellStats {
            total_tok_s: Some(400.0),
            total_tok_s_interval: Some(Interval { half_width: 4.0, n: 64, kind: IntervalKind::Blocks }),
            requests: Some(RequestCounts { started: 12, completed: 8, cut: 4, failed: 0 }),
            token_source: Some(TokenSource::ServerPerChunk),
            tokens_per_chunk: Some(1.0),
            prompt_tokens: Some(8_200),
            cached_share: Some(0.98),
            stamps: Some(StampSource::Kernel),
            coalesced_share: Some(0.0),
            ..CellStats::default()
        }
    }

    #[track_caller]
    fn check(phase: Phase, prompts: PromptMode, change: impl Fn(&mut CellStats), wanted: &[&str]) {
        let mut cell = clean();
        change(&mut cell);
        let asked = Asked::new(Context::new(8_192).unwrap(), prompts);
        let concurrency = Concurrency::new(4).unwrap();
        let seen = Seen { phase, cell: &cell, status: CellStatus::Valid, concurrency, asked, traces: &[] };
        let codes: Vec<String> = cell_findings(&seen).into_iter().map(|finding| finding.code).collect();
        assert_eq!(codes, wanted);
    }

    #[track_caller]
    fn check_decode(change: impl Fn(&mut CellStats), wanted: &[&str]) {
        check(Phase::Decode, PromptMode::Shared, change, wanted);
    }

    #[test]
    fn each_rule_speaks_when_it_should() {
        let counts = |completed, failed| Some(RequestCounts { started: 12, completed, cut: 4, failed });
        check_decode(|_| {}, &[]);
        check_decode(|cell| cell.requests = counts(0, 0), &["no_completed_request"]);
        check_decode(|cell| cell.requests = counts(2, 1), &["failed_requests", "few_requests"]);
        check_decode(|cell| cell.requests = counts(3, 0), &[]);
        check_decode(|cell| cell.token_source = Some(TokenSource::Chunks), &["usage_missing"]);
        check_decode(|cell| cell.total_tok_s = Some(70.0), &["wide_interval"]);
        check_decode(|cell| cell.cached_share = Some(0.5), &["partly_cached"]);
        check_decode(|cell| cell.cached_share = None, &["cache_not_proven"]);
        check_decode(|cell| cell.prompt_tokens = Some(8_232), &[]);
        check_decode(|cell| cell.prompt_tokens = Some(8_233), &["prompt_off"]);
        check_decode(|cell| cell.prompt_tokens = None, &["prompt_unknown"]);
        check_decode(|cell| cell.coalesced_share = Some(0.02), &["coalesced_reads"]);
        check_decode(|cell| cell.stamps = Some(StampSource::Process), &["process_stamps"]);
        check_decode(|cell| cell.tokens_per_chunk = Some(3.4), &["multi_token_chunks"]);
    }

    #[test]
    fn the_cache_is_proven_by_first_tokens_too() {
        let with = |cold_s, warm_s| {
            move |cell: &mut CellStats| {
                cell.cached_share = None;
                (cell.ttft_cold_s, cell.ttft_s) = (Some(Summary::point(cold_s)), Some(Summary::point(warm_s)));
            }
        };
        check_decode(with(0.8, 0.2), &[]);
        check_decode(with(0.8, 0.21), &["cache_not_proven"]);
    }

    #[test]
    fn cold_prompts_must_not_be_cached() {
        check(Phase::Prefill, PromptMode::Shared, |_| {}, &["prompt_cached"]);
        check(Phase::Decode, PromptMode::Cold, |_| {}, &["prompt_cached"]);
        check(Phase::Prefill, PromptMode::Shared, |cell| cell.cached_share = Some(0.1), &[]);
    }
}
