//! Tests over the whole way from traces to numbers, and the streams they are made from.

mod cell;
mod count;
mod goodput;
mod mixed;
mod verdict;

use std::num::NonZeroU32;

use crate::{
    trace::{Arrival, FailureKind, RequestEnd, RequestFailure, RequestTrace, StampSource, Usage},
    units::Nanos,
};

pub(super) fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// An arrival of one event, at milliseconds, with cumulative usage (0: none).
pub(super) fn arrival(at_ms: u64, usage: u32) -> Arrival {
    Arrival { at: ms(at_ms), usage_tokens: NonZeroU32::new(usage), text_events: 1, late_ns: 10_000 }
}

/// A request that ends a millisecond after its last arrival.
pub(super) fn request(slot: u32, sent_ms: u64, arrivals: Vec<Arrival>) -> RequestTrace {
    RequestTrace {
        slot,
        scheduled: ms(sent_ms),
        send_started: Some(ms(sent_ms)),
        send_finished: Some(ms(sent_ms + 1)),
        headers_at: None,
        first_content_at: None,
        ended: arrivals.last().map_or(ms(sent_ms), |last| last.at) + ms(1),
        arrivals,
        usage: None,
        usage_raw_completion_tokens: None,
        coalesced_reads: 0,
        skipped_events: 0,
        stamps: StampSource::Kernel,
        notes: Vec::new(),
        end: RequestEnd::Completed { finish_reason: Some("length".into()) },
    }
}

pub(super) fn with_usage(mut trace: RequestTrace, completion: u64) -> RequestTrace {
    trace.usage = Some(Usage { prompt_tokens: Some(8_192), completion_tokens: Some(completion), ..Usage::default() });
    trace
}

pub(super) fn cut(mut trace: RequestTrace, at_ms: u64) -> RequestTrace {
    trace.arrivals.retain(|arrival| arrival.at < ms(at_ms));
    trace.ended = ms(at_ms);
    trace.usage = None;
    trace.end = RequestEnd::Cut;
    trace
}

pub(super) fn failed(mut trace: RequestTrace, kind: FailureKind) -> RequestTrace {
    trace.end = RequestEnd::Failed(RequestFailure { kind, http_status: None, text: kind.label().to_owned() });
    trace
}

/// How a slot of a made-up server behaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) ttft_ms: u64,
    pub(super) restart_ttft_ms: u64,
    pub(super) gap_ms: u64,
    pub(super) tokens: u32,
}

/// The requests of one slot: one after the other from 0 until `end_ms`, one token per chunk, the last one cut.
pub(super) fn slot(number: u32, pace: Pace, end_ms: u64) -> Vec<RequestTrace> {
    let mut traces = Vec::new();
    let (mut sent, mut ttft) = (0, pace.ttft_ms);
    while sent < end_ms {
        let arrivals = (0..pace.tokens).map(|n| arrival(sent + ttft + u64::from(n) * pace.gap_ms, n + 1)).collect();
        let whole = with_usage(request(number, sent, arrivals), u64::from(pace.tokens));
        let next = sent + ttft + u64::from(pace.tokens) * pace.gap_ms;
        traces.push(if next < end_ms { whole } else { cut(whole, end_ms) });
        (sent, ttft) = (next, pace.restart_ttft_ms);
    }
    traces
}
