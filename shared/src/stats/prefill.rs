//! The numbers of a prefill cell from its cold requests (method §4).

use super::{
    cell::{CellStats, RequestCounts},
    request,
    summary::Summary,
    window::Window,
};
use crate::{
    trace::{RequestEnd, RequestTrace},
    units::{Context, Nanos},
};

/// A prompt of which more than this came from the cache tells nothing about prefill.
pub const MAX_CACHED_SHARE: f64 = 0.1;

impl CellStats {
    /// The numbers of cold requests of one output token. Speed is real prompt tokens ÷ median TTFT: the server's own
    /// count, or where it does not tell, the tokens asked for (a finding says so). A prompt that came from the
    /// cache has no prefill speed.
    pub fn prefill(cold: &[RequestTrace], asked: Context) -> Self {
        let good: Vec<&RequestTrace> = cold.iter().filter(|trace| !request::is_failed(trace)).collect();
        let ttft_s = Summary::of(good.iter().filter_map(|trace| request::ttft_secs(trace)));
        let count = |wanted: fn(&RequestEnd) -> bool| cold.iter().filter(|trace| wanted(&trace.end)).count() as u64;
        let mut cell = Self {
            ttft_s,
            ttft_cold_s: ttft_s,
            requests: Some(RequestCounts {
                started: cold.len() as u64,
                completed: count(|end| matches!(end, RequestEnd::Completed { .. })),
                cut: count(|end| matches!(end, RequestEnd::Cut)),
                failed: count(|end| matches!(end, RequestEnd::Failed(_))),
            }),
            ..Self::default()
        };
        cell.fill_prompt(&good);
        cell.fill_client(&good, Window { start: Nanos(0), end: Nanos(u64::MAX) });
        // Chunks of one-token answers come alone: nothing can share their stamp.
        cell.coalesced_share = None;
        let cold_prompt = cell.cached_share.is_none_or(|share| share <= MAX_CACHED_SHARE);
        let prompt_tokens = cell.prompt_tokens.unwrap_or(asked.tokens()) as f64;
        let speed = ttft_s.filter(|s| s.p50 > 0.0).map(|s| prompt_tokens / s.p50);
        cell.total_tok_s = speed.filter(|_| cold_prompt);
        cell
    }
}
