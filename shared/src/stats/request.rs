//! What one request tells: its latencies, and how many tokens each of its arrivals carried.

use super::{summary::Weighted, window::Window};
use crate::{
    trace::{RequestEnd, RequestTrace, TokenSource},
    units::Nanos,
};

/// Times below this can't be told from 0 by stamps that share packets, so they give no speed
/// (100 tokens "in 0.9 ns" are one buffered answer, not 10^11 tokens per second).
pub const SHORTEST_SPAN: Nanos = Nanos::from_millis(1);

/// Time to first token, seconds: first arrival − first byte sent.
pub fn ttft_secs(trace: &RequestTrace) -> Option<f64> {
    Some(trace.first_arrival()?.since(trace.send_started?).as_secs_f64())
}

/// Upload time, seconds: last − first byte handed to the kernel.
pub fn upload_secs(trace: &RequestTrace) -> Option<f64> {
    Some(trace.send_finished?.since(trace.send_started?).as_secs_f64())
}

/// Time of the whole request, seconds: last arrival − first byte sent; completed requests only.
pub fn e2e_secs(trace: &RequestTrace) -> Option<f64> {
    let completed = matches!(trace.end, RequestEnd::Completed { .. });
    if completed { Some(trace.last_arrival()?.since(trace.send_started?).as_secs_f64()) } else { None }
}

/// Whether the request failed; its tokens and times are in no statistic.
pub fn is_failed(trace: &RequestTrace) -> bool {
    matches!(trace.end, RequestEnd::Failed(_))
}

/// Tokens per event with text over all requests that the server counted once, at their end. It scales those
/// that were cut off before the server counted them.
pub fn pooled_ratio<'a>(traces: impl IntoIterator<Item = &'a RequestTrace>) -> Option<f64> {
    let counted = traces.into_iter().filter_map(|trace| match trace.output_tokens() {
        (tokens, TokenSource::ServerPerRequest) => Some((tokens, trace.text_events())),
        _ => None,
    });
    let (tokens, events) = counted.fold((0, 0), |(t, e), (tokens, events)| (t + tokens, e + events));
    (tokens > 0 && events > 0).then(|| tokens as f64 / events as f64)
}

/// A request with the tokens of each arrival.
#[derive(Debug, Clone)]
pub struct Counted<'a> {
    /// The request.
    pub trace: &'a RequestTrace,
    /// Where the count comes from.
    pub source: TokenSource,
    tokens: Vec<f64>,
}

/// The way from one arrival with tokens to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// When the later one came.
    pub at: Nanos,
    /// Time between them.
    pub gap: Nanos,
    /// Tokens of the later one, more than 0.
    pub tokens: f64,
}

impl<'a> Counted<'a> {
    /// Counts a request's tokens (method §5): usage differences where chunks carry usage; the final usage spread over
    /// the events with text; the pooled ratio of the cell for requests without any usage; else events with text.
    pub fn new(trace: &'a RequestTrace, pooled_tokens_per_event: Option<f64>) -> Self {
        let (total, mut source) = trace.output_tokens();
        let cumulated = match (source, pooled_tokens_per_event) {
            (TokenSource::ServerPerChunk, _) => by_usage(trace, total),
            (TokenSource::ServerPerRequest, _) => by_events(trace, total as f64, trace.text_events() as f64),
            (TokenSource::Chunks, Some(ratio)) => {
                source = TokenSource::ServerPerRequest;
                by_events(trace, ratio, 1.0)
            }
            (TokenSource::Chunks, None) => by_events(trace, 1.0, 1.0),
        };
        let before = std::iter::once(0.0).chain(cumulated.iter().copied());
        let tokens = cumulated.iter().zip(before).map(|(after, before)| after - before).collect();
        Self { trace, source, tokens }
    }

    /// Tokens of each arrival, in order; they sum up to the request's total.
    pub fn tokens(&self) -> &[f64] {
        &self.tokens
    }

    /// All arrivals with their tokens.
    pub fn arrivals(&self) -> impl Iterator<Item = (Nanos, f64)> {
        self.trace.arrivals.iter().map(|arrival| arrival.at).zip(self.tokens.iter().copied())
    }

    /// Arrivals that carry tokens. Text whose tokens the server counts only with a later chunk belongs to that one.
    fn with_tokens(&self) -> impl Iterator<Item = (Nanos, f64)> {
        self.arrivals().filter(|&(_, tokens)| tokens > 0.0)
    }

    /// The steps between arrivals with tokens; their gaps sum up to last − first.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        let later = self.with_tokens().skip(1);
        self.with_tokens().zip(later).map(|((before, _), (at, tokens))| Step { at, gap: at.since(before), tokens })
    }

    /// Steps whose later arrival falls in the window; none if the whole text came within [`SHORTEST_SPAN`].
    pub fn steps_in(&self, window: Window) -> impl Iterator<Item = Step> {
        let told = self.span().is_some_and(|(first, last)| last.since(first) >= SHORTEST_SPAN);
        self.steps().filter(move |step| told && window.contains(step.at))
    }

    /// First and last arrival with tokens.
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        let first = self.with_tokens().next()?.0;
        let last = self.with_tokens().last()?.0;
        Some((first, last))
    }

    /// Time per output token inside the window, seconds: (last − first arrival in it) ÷ tokens after that first one.
    pub fn tpot_secs(&self, window: Window) -> Option<f64> {
        let mut inside = self.with_tokens().filter(|&(at, _)| window.contains(at));
        let (first, _) = inside.next()?;
        let (last, tokens) = inside.fold((first, 0.0), |(_, sum), (at, tokens)| (at, sum + tokens));
        let span = last.since(first);
        (span >= SHORTEST_SPAN && tokens > 0.0).then(|| span.as_secs_f64() / tokens)
    }

    /// Gaps per token (ITL) of steps in the window: gap ÷ k, counted k times.
    pub fn itl(&self, window: Window) -> impl Iterator<Item = Weighted> {
        self.steps_in(window).map(|step| Weighted { value: step.gap.as_secs_f64() / step.tokens, weight: step.tokens })
    }

    /// What of the text flowed in the window: tokens that are not in the request's first arrival, and the time between
    /// its first and last arrival.
    pub fn flow_in(&self, window: Window) -> (f64, Nanos) {
        let tokens = self.with_tokens().skip(1).filter(|&(at, _)| window.contains(at)).map(|(_, tokens)| tokens).sum();
        let time = self.span().map_or(Nanos(0), |(first, last)| window.overlap(first, last));
        (tokens, time)
    }
}

/// Cumulated tokens by the chunks' own usage. Usage that shrinks is ignored; tokens that only the final usage tells
/// (no visible text) belong to the last arrival.
fn by_usage(trace: &RequestTrace, total: u64) -> Vec<f64> {
    let mut highest = 0;
    let mut cumulated: Vec<f64> = Vec::with_capacity(trace.arrivals.len());
    for arrival in &trace.arrivals {
        highest = arrival.usage_tokens.map_or(highest, |usage| usage.get().max(highest));
        cumulated.push(f64::from(highest));
    }
    if let Some(last) = cumulated.last_mut() {
        *last = last.max(total as f64);
    }
    cumulated
}

/// Cumulated tokens as `tokens` per `events` events with text. Multiplied before divided, so that the last is exact.
fn by_events(trace: &RequestTrace, tokens: f64, events: f64) -> Vec<f64> {
    let mut seen = 0;
    let cumulated = trace.arrivals.iter().map(|arrival| {
        seen += u64::from(arrival.text_events);
        seen as f64 * tokens / events
    });
    cumulated.collect()
}
