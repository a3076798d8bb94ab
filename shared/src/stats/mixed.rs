//! A mixed cell (method §4): what cold prompts do to requests that decode, and these to them.

use super::{
    cell::{CellResult, CellStats, CellStatus},
    decode::DecodeInput,
    request,
    summary::Summary,
    window::Window,
};
use crate::{
    finding::Finding,
    trace::{FailureKind, RequestEnd, RequestTrace},
    units::Nanos,
};

/// The cold prompts of a mixed cell; empty in all others.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'a> {
    /// Sent to the idle server before.
    pub alone: &'a [RequestTrace],
    /// Sent in the window, one after the other, while the background decoded.
    pub arriving: &'a [RequestTrace],
}

impl CellStats {
    /// TTFT of cold prompts alone and under load; speed of the background before the first one, while one is read, and
    /// in the rest of the window. `arrivals` are those of the background, with their tokens.
    pub(super) fn fill_mixed(&mut self, input: &DecodeInput<'_>, arrivals: &[(Nanos, f64)]) {
        let ttfts = |traces: &[RequestTrace]| {
            Summary::of(traces.iter().filter(|trace| !request::is_failed(trace)).filter_map(request::ttft_secs))
        };
        self.ttft_alone_s = ttfts(input.beside.alone);
        self.ttft_loaded_s = ttfts(input.beside.arriving);
        let read = |trace: &RequestTrace| Some((trace.send_started?, trace.first_arrival()?));
        let mut reads: Vec<(Nanos, Nanos)> = input.beside.arriving.iter().filter_map(read).collect();
        reads.sort_unstable();
        let (Some(first), window) = (reads.first().map(|read| read.0), input.window) else { return };
        // The prompts come one after the other, so what lies between them is the gaps of this list.
        let starts = reads.iter().map(|read| read.0).skip(1).chain([window.end]);
        let between = reads.iter().map(|read| read.1).zip(starts);
        let parts = |spans: &[(Nanos, Nanos)]| speed(spans, window, arrivals);
        self.tok_s_before_prefill = parts(&[(window.start, first)]);
        self.tok_s_during_prefill = parts(&reads);
        self.tok_s_after_prefill = parts(&between.collect::<Vec<_>>());
    }
}

impl CellResult {
    /// Tells of cold prompts that failed; where all did, the cell has no answer.
    #[must_use]
    pub fn with_prompts(mut self, arriving: &[RequestTrace]) -> Self {
        let kinds: Vec<FailureKind> = arriving
            .iter()
            .filter_map(|trace| match &trace.end {
                RequestEnd::Failed(failure) => Some(failure.kind),
                RequestEnd::Completed { .. } | RequestEnd::Cut => None,
            })
            .collect();
        let Some(first) = kinds.first() else { return self };
        let text = format!("{} of {} cold prompts failed: {}.", kinds.len(), arriving.len(), first.label());
        self.findings.push(Finding::warning("cold_prompts_failed", text));
        if kinds.len() == arriving.len() {
            self.status = self.status.min(CellStatus::Failed(*first));
        }
        self
    }
}

/// Tokens per second in those parts of the window; `None` if they are too short to tell.
fn speed(spans: &[(Nanos, Nanos)], window: Window, arrivals: &[(Nanos, f64)]) -> Option<f64> {
    let inside = |(from, to): &(Nanos, Nanos)| Window { start: (*from).max(window.start), end: (*to).min(window.end) };
    let spans: Vec<Window> = spans.iter().map(inside).filter(|span| span.start < span.end).collect();
    let secs: f64 = spans.iter().map(|span| span.secs()).sum();
    let tokens = arrivals.iter().filter(|(at, _)| spans.iter().any(|span| span.contains(*at)));
    let tokens: f64 = tokens.map(|(_, tokens)| tokens).sum();
    (secs >= request::SHORTEST_SPAN.as_secs_f64()).then(|| tokens / secs)
}
