//! What happened over the time of a cell: the token rate and the requests as the client saw them, and what the engine
//! told. On one axis, and bounded however long the cell was.

use serde::{Deserialize, Serialize};

use super::Extent;
use crate::{
    raw::Engine,
    stats::{request::Counted, window::Window},
    trace::RequestTrace,
    units::Nanos,
};

/// Most blocks of a time line: about one per pixel of a wide chart.
const MOST_BLOCKS: u32 = 600;
/// Shortest block in seconds: shorter ones hold single tokens of a slow request, and the rate only jumps.
const SHORTEST_BLOCK_S: f64 = 0.25;
/// Most points of a line of the engine.
const MOST_LOOKS: usize = 1_200;

/// What the client saw, in blocks of equal length from zero to the end of the cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of a block, seconds; 0 where there is none.
    pub block_s: f64,
    /// Output tokens per second, of requests that did not fail.
    pub tok_s: Vec<f64>,
    /// Requests in flight, mean over the block; also those that failed.
    pub in_flight: Vec<f64>,
    /// Of these, requests that have a token.
    pub decoding: Vec<f64>,
}

/// What the engine told: seconds and values, in order of time; empty where it does not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineLines {
    /// Running requests.
    pub running: Vec<(f64, f64)>,
    /// Waiting requests.
    pub waiting: Vec<(f64, f64)>,
    /// Use of the KV cache, 0–1.
    pub kv_usage: Vec<(f64, f64)>,
}

impl Timeline {
    /// The time line of a cell's requests; `counted` are those that did not fail.
    pub fn of(traces: &[RequestTrace], counted: &[Counted<'_>], extent: Extent) -> Self {
        let span_s = extent.secs(extent.end);
        if span_s <= 0.0 {
            return Self::default();
        }
        let count = ((span_s / SHORTEST_BLOCK_S).floor() as u32).clamp(1, MOST_BLOCKS);
        let block_s = span_s / f64::from(count);
        let whole = Window { start: extent.zero, end: extent.end };
        // The last arrival may be the end itself, which a window leaves out.
        let last = Nanos(extent.end.0.saturating_sub(1));
        let arrivals: Vec<(Nanos, f64)> =
            counted.iter().flat_map(Counted::arrivals).map(|(at, tokens)| (at.min(last), tokens)).collect();
        let in_flight = traces.iter().filter_map(|trace| Some((trace.send_started?, trace.ended)));
        let decoding = traces.iter().filter_map(|trace| Some((trace.first_arrival()?, trace.ended)));
        Self {
            block_s,
            tok_s: whole.blocks(count, &arrivals).into_iter().map(|sum| sum / block_s).collect(),
            in_flight: mean_open(whole, count, in_flight),
            decoding: mean_open(whole, count, decoding),
        }
    }
}

/// How many of the spans were open on average in each of `blocks` equally long parts of `whole`.
fn mean_open(whole: Window, blocks: u32, spans: impl Iterator<Item = (Nanos, Nanos)>) -> Vec<f64> {
    let length = whole.end.since(whole.start).0 as f64 / f64::from(blocks);
    let mut open = vec![0.0; blocks as usize];
    // What begins or ends at a block's border, so that a long span costs two steps instead of one per block.
    let mut change = vec![0.0; blocks as usize + 1];
    let place = |at: Nanos| at.since(whole.start).0 as f64 / length;
    for (from, to) in spans.filter(|(from, to)| from < to) {
        let (from, to) = (place(from), place(to).min(f64::from(blocks)));
        let (first, last) = (from.floor() as usize, to.floor() as usize);
        let mut add = |block: usize, share: f64| {
            if let Some(sum) = open.get_mut(block) {
                *sum += share;
            }
        };
        if first == last {
            add(first, to - from);
            continue;
        }
        add(first, (first + 1) as f64 - from);
        add(last, to - last as f64);
        if let Some(rise) = change.get_mut(first + 1) {
            *rise += 1.0;
        }
        if let Some(fall) = change.get_mut(last) {
            *fall -= 1.0;
        }
    }
    let mut whole_blocks = 0.0;
    for (sum, change) in open.iter_mut().zip(change) {
        whole_blocks += change;
        *sum += whole_blocks;
    }
    open
}

impl EngineLines {
    /// The engine's lines over the time of a cell.
    pub fn of(engine: &Engine, extent: Extent) -> Self {
        let line = |looks: &[(Nanos, f64)]| {
            let inside =
                looks.iter().filter(|(at, value)| (extent.zero..=extent.end).contains(at) && value.is_finite());
            thin(inside.map(|&(at, value)| (extent.secs(at), value)).collect())
        };
        Self { running: line(&engine.running), waiting: line(&engine.waiting), kv_usage: line(&engine.kv_usage) }
    }

    /// Whether the engine told nothing.
    pub fn is_silent(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty() && self.kv_usage.is_empty()
    }
}

/// At most [`MOST_LOOKS`] points: of each group of neighbours the lowest and the highest, so that no peak is lost.
pub(super) fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= MOST_LOOKS {
        return points;
    }
    let group = points.len().div_ceil(MOST_LOOKS / 2);
    let ends = |chunk: &[(f64, f64)]| {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (low, high) = (chunk.iter().min_by(by_value).copied(), chunk.iter().max_by(by_value).copied());
        let mut ends: Vec<(f64, f64)> = low.into_iter().chain(high).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        ends.dedup();
        ends
    };
    points.chunks(group).flat_map(ends).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn means_are_those_of_each_block_alone(
            spans in prop::collection::vec((0_u64..900, 0_u64..600), 0..20), blocks in 1_u32..12,
        ) {
            let spans: Vec<_> = spans.into_iter().map(|(from, length)| (Nanos(from), Nanos(from + length))).collect();
            let whole = Window { start: Nanos(0), end: Nanos(u64::from(blocks) * 100) };
            let got = mean_open(whole, blocks, spans.iter().copied());
            for (n, mean) in got.iter().enumerate() {
                let block = Window { start: Nanos(n as u64 * 100), end: Nanos((n as u64 + 1) * 100) };
                let wanted = block.mean_open(spans.iter().copied()).unwrap_or(0.0);
                prop_assert!((mean - wanted).abs() < 1e-9, "block {}: {} and {}", n, mean, wanted);
            }
        }

        #[test]
        fn a_thinned_line_keeps_its_peaks(values in prop::collection::vec(0.0..1e3, 1..6_000)) {
            let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(n, value)| (n as f64, *value)).collect();
            let thin = thin(points);
            let highest = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::MIN, f64::max);
            prop_assert!(thin.len() <= MOST_LOOKS + 2);
            let (of_thin, of_all) = (highest(&mut thin.iter().map(|p| p.1)), highest(&mut values.iter().copied()));
            prop_assert!(of_thin.total_cmp(&of_all).is_eq(), "{} and {}", of_thin, of_all);
            prop_assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
