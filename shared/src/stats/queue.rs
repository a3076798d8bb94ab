//! Whether requests had to queue: waited for their first token longer than a warm admission needs.
//!
//! A slot without a token is no proof of a queue: every restart of a long context is admitted first, and restarts at
//! the same time are admitted one after the other. So a request counts as queued only from the moment when it has
//! waited for more than its *allowance*: three times the shortest TTFT of the cell (one admission alone) for each
//! request that waited at the same time, itself included; and never more than twice the longest TTFT with which the
//! start burst got in, because then all C were admitted at once.
//!
//! Where answers are short the start burst itself had to queue and the allowance hides it. There the engine's own
//! gauge decides, if it shows a queue that stands.

use super::{
    cell::CellStats,
    decode::DecodeInput,
    request::{is_failed, ttft_secs},
};
use crate::units::{Concurrency, Nanos};

/// Admissions under load are slower than one alone.
const SLOWER_UNDER_LOAD: f64 = 3.0;
/// A request that waits twice as long as the last of the start burst waits for more than admission.
const LONGER_THAN_BURST: f64 = 2.0;
/// Queues shorter than this share of the window are not worth a mark (method §5).
const MAX_SHARE: f64 = 0.05;
/// The engine's gauge is above 0 at every admission, also when many restart together. Alone it proves a queue only
/// where it stands: in more than this share of the scrapes …
const STANDING_SHARE: f64 = 0.5;
/// … with this share of C waiting on average, …
const STANDING_WAITING: f64 = 0.05;
/// … and at least half a request.
const MIN_MEAN_WAITING: f64 = 0.5;

/// Whether requests queued: for more than 5 % of the window by the client's own waits, or all along by the engine's gauge.
pub fn is_queued(cell: &CellStats, input: &DecodeInput<'_>) -> bool {
    let by_client = queued_share(input).is_some_and(|share| share > MAX_SHARE);
    by_client || engine_queued(cell, input)
}

/// The share (0–1) of the window during which at least one request waited beyond its allowance; `None` if no request
/// of the cell got a token, so that the length of an admission is unknown.
pub fn queued_share(input: &DecodeInput<'_>) -> Option<f64> {
    let admission_s = input.good().chain(input.scouts).filter_map(ttft_secs).min_by(f64::total_cmp)?;
    let in_burst = input.good().filter(|trace| trace.first_arrival().is_some_and(|at| at < input.window.start));
    let longest_s = in_burst.filter_map(ttft_secs).max_by(f64::total_cmp);
    let at_most_s = longest_s.map_or(f64::INFINITY, |longest| longest * LONGER_THAN_BURST);
    let waits = waits(input);
    let mut from: Vec<Nanos> = waits.iter().map(|wait| wait.0).collect();
    let mut to: Vec<Nanos> = waits.iter().map(|wait| wait.1).collect();
    from.sort_unstable();
    to.sort_unstable();
    let queued = waits.iter().map(|&(sent, until)| {
        let begun = from.partition_point(|at| *at < until).max(1);
        let over = to.partition_point(|at| *at <= sent);
        let together = begun.saturating_sub(over).max(1);
        let allowance_s = (SLOWER_UNDER_LOAD * admission_s * together as f64).min(at_most_s);
        (sent + Nanos::from_secs_f64(allowance_s), until)
    });
    let covered = input.window.covered(queued.filter(|(from, until)| from < until));
    let secs = input.window.secs();
    (secs > 0.0).then(|| covered.as_secs_f64() / secs)
}

/// When requests that did not fail waited for their first token.
fn waits(input: &DecodeInput<'_>) -> Vec<(Nanos, Nanos)> {
    let sent = input.traces.iter().filter(|trace| !is_failed(trace));
    sent.filter_map(|trace| Some((trace.send_started?, trace.first_arrival().unwrap_or(trace.ended)))).collect()
}

fn engine_queued(cell: &CellStats, input: &DecodeInput<'_>) -> bool {
    let Some((waiting, share)) = cell.engine_waiting.zip(engine_queued_share(input)) else { return false };
    share > STANDING_SHARE && waiting.mean >= fewest_waiting(input.concurrency)
}

/// The share (0–1) of the engine's looks in the window at which requests waited; `None` if it did not tell.
pub fn engine_queued_share(input: &DecodeInput<'_>) -> Option<f64> {
    let inside = || input.engine.waiting.iter().filter(|(at, _)| input.window.contains(*at));
    let (all, positive) = (inside().count(), inside().filter(|(_, value)| *value > 0.0).count());
    (all > 0).then(|| positive as f64 / all as f64)
}

fn fewest_waiting(concurrency: Concurrency) -> f64 {
    (STANDING_WAITING * f64::from(concurrency.get())).max(MIN_MEAN_WAITING)
}
