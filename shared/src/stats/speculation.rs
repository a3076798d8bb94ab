//! What speculative decoding did in a window, from the engine's counters or, where it has none, from its gauges
//! (method §5). A step is one pass of the model over one request; without speculation it makes one token.

use super::{counter, window::Window};
use crate::{
    raw::Engine,
    stats::{cell::CellStats, summary::Summary},
    units::Nanos,
};

/// Tokens per step to which speeds are normalised. Any fixed number would do: only the ratio of two normalised speeds says
/// something, namely how fast the engines are where their texts can be guessed equally well.
pub const REFERENCE_LENGTH: f64 = 2.0;

/// Speculation over a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Speculation {
    /// Tokens per step, its own token included; at least 1.
    pub acceptance_length: Option<f64>,
    /// Accepted ÷ drafted tokens, 0–1.
    pub acceptance_rate: Option<f64>,
    /// Steps per second, all requests, where the engine's gauges tell it better than our tokens.
    steps_per_s: Option<f64>,
}

/// Rises of an engine's counters over the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rises {
    /// Output tokens.
    pub output_tokens: f64,
    /// Drafts that were verified.
    pub drafts: f64,
    /// Tokens of them that were accepted.
    pub accepted_tokens: f64,
}

impl Rises {
    /// Tokens per step: steps are the drafts and, for what came without one, a step per token. `None` where nothing was
    /// drafted, or the counters can't belong together.
    pub fn acceptance_length(self) -> Option<f64> {
        let Self { output_tokens, drafts, accepted_tokens } = self;
        let known = [output_tokens, drafts, accepted_tokens].into_iter().all(|rise| rise.is_finite() && rise >= 0.0);
        if !known || drafts <= 0.0 || output_tokens <= 0.0 {
            return None;
        }
        let steps = drafts + (output_tokens - (accepted_tokens + drafts)).max(0.0);
        // The last draft of a request may be cut off by its end.
        Some((output_tokens / steps).max(1.0))
    }
}

impl Speculation {
    /// From what an engine told in and around the window.
    pub fn of(engine: &Engine, window: Window) -> Self {
        let rise = |series: &[(Nanos, f64)]| counter::increase(series, window);
        let (drafts, accepted) = (rise(&engine.drafts), rise(&engine.accepted_tokens));
        let counted = rise(&engine.output_tokens).zip(drafts).zip(accepted).and_then(|((output, drafts), accepted)| {
            Rises { output_tokens: output, drafts, accepted_tokens: accepted }.acceptance_length()
        });
        let drafted = rise(&engine.draft_tokens).filter(|tokens| *tokens > 0.0);
        let rate = accepted.zip(drafted).map(|(accepted, drafted)| (accepted / drafted).clamp(0.0, 1.0));
        if counted.is_some() {
            return Self { acceptance_length: counted, acceptance_rate: rate, steps_per_s: None };
        }
        let inside = |(at, length): &&(Nanos, f64)| window.contains(*at) && *length > 1.0;
        let lengths: Vec<&(Nanos, f64)> = engine.accept_length.iter().filter(inside).collect();
        let throughput =
            |at: Nanos| engine.gen_throughput.iter().find(|(other, _)| *other == at).map(|(_, rate)| *rate);
        let pairs: Vec<(f64, f64)> =
            lengths.iter().filter_map(|(at, length)| Some((throughput(*at)?, *length))).collect();
        let median = |values: Vec<f64>| Summary::of(values).map(|summary| summary.p50);
        Self {
            acceptance_length: median(lengths.iter().map(|(_, length)| *length).collect()),
            acceptance_rate: rate,
            steps_per_s: median(counter::paired_ratios(&pairs)).filter(|rate| *rate > 0.0),
        }
    }
}

impl CellStats {
    /// The same numbers with what speculation did.
    #[must_use]
    pub fn with_speculation(mut self, speculation: Speculation) -> Self {
        self.acceptance_length = speculation.acceptance_length;
        self.acceptance_rate = speculation.acceptance_rate;
        let ours = self.total_tok_s.zip(speculation.acceptance_length).map(|(speed, length)| speed / length);
        self.steps_per_s = speculation.steps_per_s.or(ours);
        self.normalised_tok_s = self.steps_per_s.map(|steps| steps * REFERENCE_LENGTH);
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: Window = Window { start: Nanos::from_secs(10), end: Nanos::from_secs(20) };

    fn series(points: &[(u64, f64)]) -> Vec<(Nanos, f64)> {
        points.iter().map(|(secs, value)| (Nanos::from_secs(*secs), *value)).collect()
    }

    /// Length, rate, steps per second and normalised speed of a cell of 100 tok/s.
    fn check(engine: &Engine, wanted: [Option<f64>; 4]) {
        let stats = CellStats { total_tok_s: Some(100.0), ..CellStats::default() };
        let stats = stats.with_speculation(Speculation::of(engine, WINDOW));
        let got = [stats.acceptance_length, stats.acceptance_rate, stats.steps_per_s, stats.normalised_tok_s];
        let near = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-9,
            (a, b) => a == b,
        };
        assert!(got.iter().zip(&wanted).all(|(a, b)| near(a, b)), "{got:?} instead of {wanted:?}");
    }

    #[test]
    fn counters_tell_steps() {
        // 400 drafts of 3 made 600 accepted tokens and one of their own each; nothing else was made.
        let engine = Engine {
            output_tokens: series(&[(10, 5_000.0), (20, 6_000.0)]),
            drafts: series(&[(10, 0.0), (20, 400.0)]),
            draft_tokens: series(&[(10, 0.0), (20, 1_200.0)]),
            accepted_tokens: series(&[(10, 0.0), (20, 600.0)]),
            ..Engine::default()
        };
        check(&engine, [Some(2.5), Some(0.5), Some(40.0), Some(80.0)]);
        // The same drafts, and 500 tokens without any: 900 steps.
        let mixed = Engine { output_tokens: series(&[(10, 0.0), (20, 1_500.0)]), ..engine.clone() };
        check(&mixed, [Some(1_500.0 / 900.0), Some(0.5), Some(60.0), Some(120.0)]);
        let unknown = Engine { output_tokens: Vec::new(), ..engine.clone() };
        check(&unknown, [None, Some(0.5), None, None]);
        let idle = Engine { drafts: series(&[(10, 7.0), (20, 7.0)]), draft_tokens: Vec::new(), ..engine };
        check(&idle, [None; 4]);
        check(&Engine::default(), [None; 4]);
    }

    #[test]
    fn gauges_tell_steps_where_there_are_no_counters() {
        let engine = Engine {
            accept_length: series(&[(5, 9.0), (11, 4.0), (12, 3.9), (13, 4.0), (14, 2.0), (15, 0.0)]),
            gen_throughput: series(&[(11, 286.0), (12, 279.0), (13, 290.0), (14, 143.0), (15, 100.0)]),
            ..Engine::default()
        };
        let median = f64::midpoint(71.5, 279.0 / 3.9);
        check(&engine, [Some(3.95), None, Some(median), Some(2.0 * median)]);
        let lengths_only = Engine { gen_throughput: Vec::new(), ..engine };
        check(&lengths_only, [Some(3.95), None, Some(100.0 / 3.95), Some(200.0 / 3.95)]);
    }

    proptest! {
        #[test]
        fn lengths_are_those_of_the_steps(steps in prop::collection::vec((0_u32..6, any::<bool>()), 1..60)) {
            // Each step makes a token of its own and maybe some of a draft.
            let drafts = steps.iter().filter(|(_, drafted)| *drafted).count() as f64;
            let accepted: f64 = steps.iter().filter(|(_, drafted)| *drafted).map(|(k, _)| f64::from(*k)).sum();
            let output_tokens = accepted + steps.len() as f64;
            let length = Rises { output_tokens, drafts, accepted_tokens: accepted }.acceptance_length();
            let wanted = (drafts > 0.0).then(|| output_tokens / steps.len() as f64);
            prop_assert_eq!(length.is_some(), wanted.is_some());
            prop_assert!((length.unwrap_or(0.0) - wanted.unwrap_or(0.0)).abs() < 1e-9);
        }

        #[test]
        fn no_counters_break_it(rises in prop::array::uniform3(-1e9..1e9_f64)) {
            let [output_tokens, drafts, accepted_tokens] = rises;
            let length = Rises { output_tokens, drafts, accepted_tokens }.acceptance_length();
            prop_assert!(length.is_none_or(|length| length.is_finite() && length >= 1.0));
        }
    }
}
