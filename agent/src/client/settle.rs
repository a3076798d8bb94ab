//! After the last byte: how a request ended, what its counts are worth, and what was odd about its stream.

use std::time::Instant;

use http::StatusCode;
use speedmatrix_shared::{
    trace::{FailureKind, RequestEnd, RequestFailure, RequestTrace, StampSource, StreamNote, Usage},
    units::Nanos,
};

use super::{
    Ask,
    failure::Failures,
    record::{Progress, Record, Seen},
};

/// How the bytes ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Closing {
    /// The body was whole, or all of it that matters had come.
    Whole,
    /// The connection or the answer broke.
    Broken(RequestFailure),
    /// We closed it.
    Cut,
    /// Nothing came for longer than the idle limit.
    Silent {
        /// That limit, on the run's clock.
        limit: Nanos,
    },
}

/// Moments of one try, and how it ended.
#[derive(Debug)]
pub(super) struct Try {
    pub(super) record: Record,
    pub(super) send_started: Option<Instant>,
    pub(super) send_finished: Option<Instant>,
    pub(super) headers_at: Option<Instant>,
    pub(super) status: Option<StatusCode>,
    pub(super) closing: Closing,
    pub(super) ended: Instant,
}

/// More tokens than any request has: the longest contexts hold some ten million. Sums of such counts stay numbers.
const MOST_TOKENS: u64 = 1 << 28;

/// Finish reasons by which engines say that they gave a request up (vLLM and SGLang; TGI's proxies).
const GIVEN_UP: [&str; 3] = ["abort", "error", "cancelled"];
/// Tokens per text event above which chunks are said to carry several.
const MULTI_TOKEN_RATIO: f64 = 1.5;
/// Text events from which "all at once" is odd.
const BUFFERED_EVENTS: u64 = 4;
/// An answer whose text took less than this share of the wait for it came at once.
const BUFFERED_SHARE: u64 = 100;

/// The trace of a finished try.
pub(super) fn trace(mut attempt: Try, ask: &Ask, expected_model: Option<&str>, failures: &Failures) -> RequestTrace {
    let end = end(&attempt, failures);
    let mut notes = Vec::new();
    settle_arrivals(&mut attempt.record, &mut notes);
    let (usage, raw) = settle_usage(&attempt.record, &mut notes);
    let record = &attempt.record;
    let completed = matches!(end, RequestEnd::Completed { .. });
    let ended = match record.last_event_at {
        Some(last) if completed => last,
        _ => record.time(attempt.ended),
    };
    let at = |instant: Option<Instant>| instant.map(|instant| record.time(instant));
    let mut trace = RequestTrace {
        slot: ask.slot,
        scheduled: ask.scheduled,
        send_started: at(attempt.send_started),
        send_finished: at(attempt.send_finished),
        headers_at: at(attempt.headers_at),
        arrivals: Vec::new(),
        first_content_at: record.first_content_at,
        ended,
        usage,
        usage_raw_completion_tokens: raw,
        coalesced_reads: record.coalesced_reads,
        skipped_events: record.skipped_events,
        stamps: record.stamps.unwrap_or(StampSource::Process),
        notes,
        end,
    };
    if record.saw.document == Seen::Yes {
        trace.notes.push(StreamNote::NotStreamed);
    }
    if let (Some(expected), Some(model)) = (expected_model, record.model.as_deref())
        && expected != model
    {
        trace.notes.push(StreamNote::ModelMismatch);
    }
    let only_thought = record.saw.reasoning == Seen::Yes && record.saw.content == Seen::No;
    if completed && only_thought {
        trace.notes.push(StreamNote::NoVisibleAnswer);
    }
    trace.arrivals = attempt.record.arrivals;
    note_stream(&mut trace);
    trace.notes.sort_unstable();
    trace.notes.dedup();
    trace
}

fn end(attempt: &Try, failures: &Failures) -> RequestEnd {
    let record = &attempt.record;
    let failed = |kind, text: &str| RequestEnd::Failed(failures.of(kind, attempt.status, text));
    if let Some(error) = &record.error {
        let words = if error.is_empty() { "the stream carried an error without words" } else { error };
        return failed(FailureKind::ErrorInStream, words);
    }
    let finished = record.finish_reason.is_some();
    // With the end mark, or a finish reason and the count, the answer is whole whatever the connection does, unless far too
    // much came.
    let whole = record.progress == Progress::Done
        || (finished && (record.usage.is_some() || attempt.closing == Closing::Whole));
    let whole = whole && record.progress != Progress::TooMuch;
    let events = record.text_events;
    match &attempt.closing {
        Closing::Cut => RequestEnd::Cut,
        _ if whole => completed(record, failures, failed),
        Closing::Whole => failed(
            FailureKind::TruncatedStream,
            &format!("the stream ended after {events} events with text, without a finish reason or [DONE]"),
        ),
        Closing::Silent { limit } => failed(
            FailureKind::Stalled,
            &format!("nothing came for {} s after {events} events with text", limit.as_secs_f64()),
        ),
        Closing::Broken(failure) => RequestEnd::Failed(RequestFailure {
            http_status: failure.http_status.or(attempt.status.map(|status| status.as_u16())),
            ..failure.clone()
        }),
    }
}

fn completed(record: &Record, failures: &Failures, failed: impl Fn(FailureKind, &str) -> RequestEnd) -> RequestEnd {
    if let Some(reason) = record.finish_reason.as_deref().filter(|reason| GIVEN_UP.contains(reason)) {
        return failed(FailureKind::ServerAbort, &format!("the server gave the request up: finish_reason {reason}"));
    }
    if record.saw.content == Seen::No && record.saw.reasoning == Seen::No {
        return failed(FailureKind::EmptyOutput, "the answer ended properly but held no generated text");
    }
    RequestEnd::Completed { finish_reason: record.finish_reason.as_deref().map(|reason| failures.name(reason)) }
}

/// Counts in the chunks are cumulative and at least one token per event, or they are no counts.
fn settle_arrivals(record: &mut Record, notes: &mut Vec<StreamNote>) {
    let (mut events, mut last) = (0_u64, 0_u32);
    let plausible = record.arrivals.iter().all(|arrival| {
        events += u64::from(arrival.text_events);
        let tokens = arrival.usage_tokens.map_or(last, std::num::NonZeroU32::get);
        let counted = events..=MOST_TOKENS;
        let ok = tokens >= last && (arrival.usage_tokens.is_none() || counted.contains(&u64::from(tokens)));
        last = tokens;
        ok
    });
    if !plausible {
        record.arrivals.iter_mut().for_each(|arrival| arrival.usage_tokens = None);
        notes.push(StreamNote::UsageImplausible);
    }
}

/// The server's last word, without what can't be true, and its raw count.
fn settle_usage(record: &Record, notes: &mut Vec<StreamNote>) -> (Option<Usage>, Option<u64>) {
    let Some(report) = record.usage else { return (None, None) };
    let completion_tokens = match report.completion_tokens {
        // Text came, so this is a placeholder: no count at all.
        Some(0) if record.saw.content == Seen::Yes || record.saw.reasoning == Seen::Yes => None,
        Some(tokens) if tokens < record.text_events || tokens > MOST_TOKENS => {
            notes.push(StreamNote::UsageImplausible);
            None
        }
        other => other,
    };
    let prompt_tokens = report.prompt_tokens.filter(|tokens| (1..=MOST_TOKENS).contains(tokens));
    let usage = Usage {
        prompt_tokens,
        completion_tokens,
        reasoning_tokens: report.reasoning_tokens.filter(|part| completion_tokens.is_some_and(|all| *part <= all)),
        cached_tokens: report.cached_tokens.filter(|part| prompt_tokens.is_some_and(|all| *part <= all)),
    };
    ((usage != Usage::default()).then_some(usage), report.completion_tokens)
}

fn note_stream(trace: &mut RequestTrace) {
    let completed = matches!(trace.end, RequestEnd::Completed { .. });
    let counted = trace.usage.and_then(|usage| usage.completion_tokens);
    let events = trace.text_events();
    if completed && counted.is_none() && !trace.notes.contains(&StreamNote::UsageImplausible) {
        trace.notes.push(StreamNote::UsageMissing);
    }
    if counted.is_some_and(|tokens| events > 0 && tokens as f64 > MULTI_TOKEN_RATIO * events as f64) {
        trace.notes.push(StreamNote::MultiTokenChunks);
    }
    if trace.skipped_events > 0 {
        trace.notes.push(StreamNote::MalformedEventSkipped);
    }
    let prompt = trace.usage.and_then(|usage| Some((usage.cached_tokens?, usage.prompt_tokens?)));
    if prompt.is_some_and(|(cached, prompt)| cached * 2 > prompt) {
        trace.notes.push(StreamNote::PromptCached);
    }
    if let (Some(sent), Some(first), Some(last)) = (trace.send_started, trace.first_arrival(), trace.last_arrival())
        && completed
        && events >= BUFFERED_EVENTS
        && last.since(first).0.saturating_mul(BUFFERED_SHARE) <= first.since(sent).0
    {
        trace.notes.push(StreamNote::BufferedStream);
    }
}
