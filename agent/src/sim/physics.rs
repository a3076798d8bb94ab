//! How long the simulated hardware takes: prefill, cached prefix, decode steps, speculation. Pure formulas.

use std::time::Duration;

use rand::Rng;

use super::text::{standard_normal, uniform};

/// Which law of time the simulator obeys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Physics {
    /// Every request on its own: the first token a fixed time after it was admitted, then one step every `step`.
    Fixed {
        /// From admission to the first token, simulated time.
        first_token: Duration,
        /// From step to step, simulated time.
        step: Duration,
    },
    /// One engine for all: prefills one after the other, all decoding requests in one batch, step by step.
    Batch(BatchPhysics),
}

/// Coefficients of a continuously batching engine. Fitted values: `SimConfig::preset("reference")`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchPhysics {
    /// Time per token of a median stream.
    pub token_time: TokenTime,
    /// Latency before a request reaches the queue (HTTP, template, tokeniser), seconds. It passes for all requests side
    /// by side: in the reference data a lone cached 8K request needs 92 ms, of which the prefix takes only 13.
    pub frontend_secs: f64,
    /// Cold prefill, seconds per token.
    pub prefill_secs_per_token: f64,
    /// Cold prefill, seconds per token squared (attention).
    pub prefill_secs_per_token2: f64,
    /// Rate at which cached prefixes are taken in, one request after the other.
    pub ingest_tokens_per_sec: f64,
    /// Uncached tokens after a cached prefix that cost nothing: the fit of the ingest rate has them already.
    pub free_tail_tokens: u64,
    /// Factor on the decode step while a prefill of uncached tokens runs; an assumption, the page holds no such data.
    pub prefill_slowdown: f64,
    /// Log-normal scatter of single steps (σ of the logarithm); 0 = none.
    pub step_sigma: f64,
}

/// Milliseconds per token = `base + sqrt·√C + streams·C + context·K + product·C·K`, with C requests decoding at a mean
/// context of K × 1,024 tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenTime {
    /// ms
    pub base_ms: f64,
    /// ms per √C
    pub sqrt_ms: f64,
    /// ms per C
    pub streams_ms: f64,
    /// ms per K
    pub context_ms: f64,
    /// ms per C·K
    pub product_ms: f64,
}

impl BatchPhysics {
    /// Time per token of a median stream when `streams` requests decode that hold `context_tokens` together.
    pub fn token_time(&self, streams: usize, context_tokens: u64) -> Duration {
        let c = streams.max(1) as f64;
        let all_k = context_tokens as f64 / 1024.0;
        let t = &self.token_time;
        let ms = t.base_ms + t.sqrt_ms * c.sqrt() + t.streams_ms * c + t.context_ms * all_k / c + t.product_ms * all_k;
        seconds(ms / 1e3)
    }

    /// Time for which a request of `prompt_tokens`, the first `cached_tokens` of them in the prefix cache, keeps the
    /// prefill to itself (without [`Self::frontend_secs`]).
    pub fn prefill_time(&self, prompt_tokens: u64, cached_tokens: u64) -> Duration {
        let n = prompt_tokens as f64;
        let paid = self.computed_tokens(prompt_tokens, cached_tokens) as f64;
        let before = n - paid;
        let computing = self.prefill_secs_per_token * paid + self.prefill_secs_per_token2 * (n * n - before * before);
        seconds(cached_tokens as f64 / self.ingest_tokens_per_sec + computing)
    }

    /// Prompt tokens that the prefill has to compute and that cost time.
    pub fn computed_tokens(&self, prompt_tokens: u64, cached_tokens: u64) -> u64 {
        let free = if cached_tokens == 0 { 0 } else { self.free_tail_tokens };
        prompt_tokens.saturating_sub(cached_tokens).saturating_sub(free)
    }

    /// The latency before the queue.
    pub fn frontend(&self) -> Duration {
        seconds(self.frontend_secs)
    }
}

/// Speculative decoding: each step proposes `draft_tokens`, keeps the first few, and adds one token of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speculation {
    /// Tokens proposed per step and stream, at most 16.
    pub draft_tokens: u32,
    /// Tokens per step of a median text: 1 + accepted.
    pub mean_length: f64,
    /// Text factor: σ of the logarithm of a request's own length; constant within the request.
    pub text_sigma: f64,
}

/// What one request's text does to speculation: the chance of each further draft token to be accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Acceptance {
    draft_tokens: u32,
    chance: f64,
}

impl Acceptance {
    /// Draws the text factor of a request.
    pub(super) fn draw(speculation: &Speculation, rng: &mut impl Rng) -> Self {
        let factor = (speculation.text_sigma * standard_normal(rng)).exp();
        let most = f64::from(speculation.draft_tokens);
        let accepted = (speculation.mean_length / factor - 1.0).clamp(0.0, most);
        Self { draft_tokens: speculation.draft_tokens, chance: chance_for(accepted, speculation.draft_tokens) }
    }

    /// Draws how many draft tokens one step keeps.
    pub(super) fn step(&self, rng: &mut impl Rng) -> u32 {
        (0..self.draft_tokens).take_while(|_| uniform(rng) < self.chance).count() as u32
    }

    pub(super) fn draft_tokens(&self) -> u32 {
        self.draft_tokens
    }
}

/// The chance p per draft token with which a step keeps `mean` of `draft_tokens`: p + p² + … + p^d = mean. Bisection;
/// the sum rises with p.
fn chance_for(mean: f64, draft_tokens: u32) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..50 {
        let p = f64::midpoint(low, high);
        let sum = (0..draft_tokens).fold(0.0, |sum, _| (sum + 1.0) * p);
        if sum < mean {
            low = p;
        } else {
            high = p;
        }
    }
    f64::midpoint(low, high)
}

/// Seconds as a duration; what can't be a duration (a broken configuration) is zero.
pub(super) fn seconds(secs: f64) -> Duration {
    Duration::try_from_secs_f64(secs).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::config::SimConfig;
    use super::super::text::seeded;
    use super::*;

    fn reference() -> BatchPhysics {
        match SimConfig::preset("reference").unwrap().physics {
            Physics::Batch(batch) => batch,
            Physics::Fixed { .. } => panic!("the reference preset is a batch"),
        }
    }

    fn check_within(got: f64, want: f64, share: f64) {
        assert!((got / want - 1.0).abs() <= share, "{got} is not within {share} of {want}");
    }

    #[test]
    fn cold_prefill_matches_the_reference_page() {
        // (context in K, TTFT in ms) of the page's nine prefill rows.
        let rows = [
            (8, 726.0),
            (16, 1_402.0),
            (32, 2_834.0),
            (64, 5_580.0),
            (128, 11_505.0),
            (256, 25_181.0),
            (512, 60_458.0),
            (1019, 163_008.0),
            (1024, 164_864.0),
        ];
        for (k, page_ms) in rows {
            let physics = reference();
            let ms = (physics.frontend() + physics.prefill_time(k * 1024, 0)).as_secs_f64() * 1e3;
            check_within(ms, page_ms, 0.035);
        }
    }

    #[test]
    fn token_time_matches_the_checks_of_the_fit() {
        for (k, streams, ms) in [(8, 1, 3.2), (8, 128, 28.6), (1019, 64, 46.0)] {
            let context = k * 1024 * streams as u64;
            check_within(reference().token_time(streams, context).as_secs_f64() * 1e3, ms, 0.02);
        }
    }

    #[test]
    fn a_cached_prompt_costs_its_ingest_only() {
        let physics = reference();
        let cached = 64 * 1024;
        check_within(physics.prefill_time(cached + 300, cached).as_secs_f64(), cached as f64 / 0.64e6, 1e-9);
        check_within((physics.frontend() + physics.prefill_time(cached, cached)).as_secs_f64(), 0.186, 0.01);
    }

    #[test]
    fn acceptance_has_the_wanted_mean() {
        let speculation = Speculation { draft_tokens: 7, mean_length: 3.5, text_sigma: 0.0 };
        let mut rng = seeded([1, 2, 3, 4]);
        let acceptance = Acceptance::draw(&speculation, &mut rng);
        let steps = 200_000;
        let kept: u64 = (0..steps).map(|_| u64::from(acceptance.step(&mut rng))).sum();
        check_within(kept as f64 / f64::from(steps), 2.5, 0.01);
    }

    proptest! {
        #[test]
        fn the_chance_solves_its_equation(draft in 1_u32..=16, share in 0.0_f64..=1.0) {
            let mean = share * f64::from(draft);
            let p = chance_for(mean, draft);
            let sum: f64 = (1..=draft).map(|k| p.powi(i32::try_from(k).unwrap())).sum();
            prop_assert!((sum - mean).abs() < 1e-9 * f64::from(draft));
        }

        #[test]
        fn prefill_in_two_parts_is_no_shorter_than_whole(n in 1_000_u64..1_000_000, share in 0.0_f64..1.0) {
            let physics = BatchPhysics { free_tail_tokens: 0, ..reference() };
            let first = (n as f64 * share) as u64;
            let parts = physics.prefill_time(first, 0) + physics.prefill_time(n, first);
            prop_assert!(parts.as_secs_f64() >= physics.prefill_time(n, 0).as_secs_f64() - 1e-6);
        }
    }
}
