//! How many characters make how many tokens. Two sizes give overhead and slope (one size would leave the chat template in
//! the slope); each context is then corrected by what the server really counted.

use speedmatrix_shared::units::Context;

/// Corrections of one context's length, at most.
pub const MAX_CORRECTIONS: u32 = 3;

/// Lengths within this many tokens, or within [`TOLERANCE_SHARE`] of the context, are right.
const TOLERANCE_TOKENS: u64 = 16;
/// See [`TOLERANCE_TOKENS`].
const TOLERANCE_SHARE: f64 = 0.005;
/// Aimed this far below the context, so that questions of slightly different lengths don't push prompt and answer over a
/// limit that they just fit.
const AIM_BELOW_TOKENS: u64 = 8;
/// A prompt that the server counts this much shorter than asked was cut.
const TRUNCATED_SHARE: f64 = 0.95;
/// Characters per token of English text with the tokenizers in use, where the server doesn't tell.
const ESTIMATED_CHARS_PER_TOKEN: f64 = 4.5;
/// Tokens of a chat template, where the server doesn't tell.
const ESTIMATED_OVERHEAD_TOKENS: f64 = 30.0;

/// tokens = overhead + characters of the document × slope. The overhead holds the template and the question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    overhead_tokens: f64,
    tokens_per_char: f64,
}

/// A document's length and the prompt tokens that the server counted with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Characters of the document.
    pub chars: usize,
    /// Tokens of the whole prompt.
    pub tokens: u64,
}

impl Fit {
    /// The line through two counts; `None` if it doesn't rise (the server doesn't really count, or cuts its prompts).
    pub fn through(small: Counted, large: Counted) -> Option<Self> {
        let tokens_per_char =
            large.tokens.checked_sub(small.tokens)? as f64 / large.chars.checked_sub(small.chars)? as f64;
        let rises = tokens_per_char.is_finite() && tokens_per_char > 0.0;
        let overhead_tokens = small.tokens as f64 - small.chars as f64 * tokens_per_char;
        rises.then_some(Self { overhead_tokens, tokens_per_char })
    }

    /// What is usual, for servers that don't count.
    pub const fn estimated() -> Self {
        Self { overhead_tokens: ESTIMATED_OVERHEAD_TOKENS, tokens_per_char: 1.0 / ESTIMATED_CHARS_PER_TOKEN }
    }

    /// Characters of a document that makes a prompt of `tokens`; at least 1.
    fn chars(&self, tokens: u64) -> usize {
        (((tokens as f64 - self.overhead_tokens) / self.tokens_per_char).floor() as usize).max(1)
    }
}

/// The length of one context's documents, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Aim {
    context: Context,
    fit: Fit,
    chars: usize,
    corrections_left: u32,
    first: Option<Counted>,
    real_tokens: Option<u64>,
}

/// What a count says about the length that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Right,
    /// Off; [`Aim::chars`] is corrected now.
    Corrected,
    /// Off, and no correction is left.
    Off,
    /// The server counts far fewer tokens than it was sent, whatever the length: it cuts its prompts.
    Truncated,
}

impl Aim {
    /// The first try.
    pub fn new(context: Context, fit: Fit) -> Self {
        let chars = fit.chars(context.tokens().saturating_sub(AIM_BELOW_TOKENS));
        Self { context, fit, chars, corrections_left: MAX_CORRECTIONS, first: None, real_tokens: None }
    }

    /// The context that it is about.
    pub const fn context(&self) -> Context {
        self.context
    }

    /// Characters of the context's documents.
    pub const fn chars(&self) -> usize {
        self.chars
    }

    /// How often the length was corrected: documents of another edition share no beginning with earlier ones.
    pub const fn edition(&self) -> u64 {
        (MAX_CORRECTIONS - self.corrections_left) as u64
    }

    /// The latest count, if the server tells.
    pub const fn real_tokens(&self) -> Option<u64> {
        self.real_tokens
    }

    /// Takes in that a document of [`Aim::chars`] gave a prompt of `tokens`.
    pub fn counted(&mut self, tokens: u64) -> Verdict {
        self.real_tokens = Some(tokens);
        let asked = self.context.tokens();
        let tolerance = TOLERANCE_TOKENS.max((asked as f64 * TOLERANCE_SHARE) as u64);
        if tokens.abs_diff(asked) <= tolerance {
            return Verdict::Right;
        }
        let short = (tokens as f64) < asked as f64 * TRUNCATED_SHARE;
        // More characters and no more tokens: it was cut.
        let grew = self.first.is_none_or(|first| self.chars <= first.chars || tokens > first.tokens);
        if short && !grew {
            return Verdict::Truncated;
        }
        if self.corrections_left == 0 {
            return if short { Verdict::Truncated } else { Verdict::Off };
        }
        self.corrections_left -= 1;
        let now = Counted { chars: self.chars, tokens };
        self.first.get_or_insert(now);
        let aimed = asked.saturating_sub(AIM_BELOW_TOKENS);
        let off_chars = (aimed as f64 - tokens as f64) / self.fit.tokens_per_char;
        self.chars = ((self.chars as f64 + off_chars).floor() as usize).max(1);
        Verdict::Corrected
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn context(tokens: u64) -> Context {
        Context::new(tokens).unwrap()
    }

    /// Calibrates against a server that counts by `tokens`; returns the verdicts of the tries.
    fn check(asked: u64, tokens: impl Fn(usize) -> u64) -> (Aim, Vec<Verdict>) {
        let count = |chars| Counted { chars, tokens: tokens(chars) };
        let fit = Fit::through(count(2_000), count(20_000)).unwrap_or_else(Fit::estimated);
        let mut aim = Aim::new(context(asked), fit);
        let mut verdicts = Vec::new();
        loop {
            let verdict = aim.counted(tokens(aim.chars()));
            verdicts.push(verdict);
            if verdict != Verdict::Corrected {
                return (aim, verdicts);
            }
        }
    }

    #[test]
    fn an_even_tokenizer_is_hit_at_once() {
        for asked in [1_024, 8_192, 1_043_456] {
            let (aim, verdicts) = check(asked, |chars| 135 + chars.div_ceil(5) as u64);
            assert_eq!(verdicts, [Verdict::Right], "{asked}");
            assert!(aim.real_tokens().is_some_and(|real| real <= asked && asked - real <= 8), "{aim:?}");
        }
    }

    #[test]
    fn a_bent_tokenizer_is_corrected() {
        // A tenth fewer tokens per character in long texts.
        let bent =
            |chars: usize| if chars < 20_001 { chars as u64 / 5 } else { 4_000 + (chars as u64 - 20_000) * 9 / 50 };
        let (_, verdicts) = check(100_000, bent);
        assert_eq!(verdicts.last(), Some(&Verdict::Right));
        assert!(verdicts.len() <= 4, "{verdicts:?}");
    }

    #[test]
    fn a_server_that_cuts_its_prompts_is_found_out() {
        let (_, verdicts) = check(8_192, |chars| (20 + chars as u64 / 5).min(4_500));
        assert_eq!(verdicts, [Verdict::Corrected, Verdict::Truncated]);
        let (_, verdicts) = check(8_192, |_| 2_050);
        assert_eq!(verdicts, [Verdict::Corrected, Verdict::Truncated]);
    }

    #[test]
    fn a_line_that_does_not_rise_is_no_fit() {
        let check = |small: (usize, u64), large: (usize, u64)| {
            let [small, large] = [small, large].map(|(chars, tokens)| Counted { chars, tokens });
            assert_eq!(Fit::through(small, large), None);
        };
        check((100, 50), (1_000, 50));
        check((100, 50), (1_000, 40));
        check((100, 50), (100, 60));
    }

    proptest! {
        #[test]
        fn any_straight_line_is_hit(
            overhead in 0_u64..500, tokens_per_char in 0.1_f64..1.0, asked in 1_000_u64..2_000_000,
        ) {
            let (aim, verdicts) = check(asked, |chars| overhead + (chars as f64 * tokens_per_char).round() as u64);
            prop_assert_eq!(verdicts.last(), Some(&Verdict::Right));
            let real = aim.real_tokens().unwrap();
            prop_assert!(real.abs_diff(asked) as f64 <= (asked as f64 * 0.005).max(16.0));
        }
    }
}
