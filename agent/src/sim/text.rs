//! Seeded randomness and the text that the simulated model writes: pseudo-words of exactly five bytes per token, so
//! that `/tokenize` counts a generated text exactly (with the presets' five bytes per token).

use rand::{Rng, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
const VOWELS: &[u8; 4] = b"aeio";

/// What a request's random numbers are for: each purpose has a stream of its own, so that one can't shift another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Text = 1,
    Steps = 2,
    Length = 3,
    Script = 4,
    Engine = 5,
}

/// A generator that depends on these four words only.
pub(super) fn seeded(words: [u64; 4]) -> ChaCha8Rng {
    let mut seed = [0_u8; 32];
    for (place, word) in seed.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(seed)
}

/// Uniform in [0, 1), from the upper 53 bits.
pub(super) fn uniform(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Standard normal by Box and Muller (1958).
pub(super) fn standard_normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(rng)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(rng)).cos()
}

/// Log-normal with this mean; `sigma` is that of the logarithm.
pub(super) fn log_normal(mean: f64, sigma: f64, rng: &mut impl Rng) -> f64 {
    mean * (sigma * standard_normal(rng) - sigma * sigma / 2.0).exp()
}

/// The text of one request.
#[derive(Debug)]
pub(super) struct Writer(ChaCha8Rng);

impl Writer {
    pub(super) fn new(rng: ChaCha8Rng) -> Self {
        Self(rng)
    }

    /// Appends `tokens` tokens: a space and two syllables each, plain letters that JSON needn't escape.
    pub(super) fn write(&mut self, tokens: u64, out: &mut Vec<u8>) {
        for _ in 0..tokens {
            let bits = self.0.next_u32() as usize;
            out.extend_from_slice(&[
                b' ',
                CONSONANTS[bits & 15],
                VOWELS[bits >> 4 & 3],
                CONSONANTS[bits >> 6 & 15],
                VOWELS[bits >> 10 & 3],
            ]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(seed: u64, parts: &[u64]) -> String {
        let mut writer = Writer::new(seeded([seed, 0, 0, Purpose::Text as u64]));
        let mut out = Vec::new();
        for tokens in parts {
            writer.write(*tokens, &mut out);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_depends_on_the_seed_alone() {
        assert_eq!(written(7, &[4]), written(7, &[1, 3]));
        assert_ne!(written(7, &[4]), written(8, &[4]));
        assert_eq!(written(7, &[100]).len(), 500);
        insta::assert_snapshot!(written(7, &[6]), @" liji hano rake mapa diha higa");
    }

    #[test]
    fn the_log_normal_has_its_mean() {
        let mut rng = seeded([1, 1, 1, 1]);
        let n = 100_000;
        let mean = (0..n).map(|_| log_normal(400.0, 0.5, &mut rng)).sum::<f64>() / f64::from(n);
        assert!((mean - 400.0).abs() < 5.0, "{mean}");
    }
}
