//! Quantities with their unit in the type, and the texts people type for them (`8K`, `30s`).

use std::{
    fmt,
    ops::{Add, Sub},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// Tokens in one `K`: 1,024 in all labels (`8K` is 8,192 tokens).
pub const K: u64 = 1_024;
/// Nanoseconds in a second.
pub const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Monotonic nanoseconds since the run began (or a length of time in nanoseconds).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Whole seconds as nanoseconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(NANOS_PER_SEC))
    }

    /// Whole milliseconds as nanoseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Seconds, rounded to nanoseconds; negative or not finite input gives 0.
    pub fn from_secs_f64(secs: f64) -> Self {
        // A float cast saturates and sends NaN to 0.
        Self((secs * NANOS_PER_SEC as f64).round() as u64)
    }

    /// As seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// The time from `earlier` to `self`; 0 if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;
    /// Saturates at 0: a time before the run began does not exist.
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

/// Why a typed quantity could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a size such as `8K`, `1019K`, `1M` or `8192`.
    #[error("\"{0}\" is not a size: write tokens as 8K, 1019K, 1M or 8192")]
    Size(String),
    /// Not a duration such as `30s`, `5m`, `1h` or `500ms`.
    #[error("\"{0}\" is not a duration: write 30s, 5m, 1h or 500ms")]
    Duration(String),
    /// Not a whole number.
    #[error("\"{0}\" is not a whole number")]
    Count(String),
    /// Outside the bounds that make sense.
    #[error("{what} must be between {min} and {max}, not {got}")]
    OutOfRange {
        /// The quantity's plain name.
        what: &'static str,
        /// Smallest allowed value, as text.
        min: String,
        /// Largest allowed value, as text.
        max: String,
        /// What was typed.
        got: String,
    },
}

/// Reads a size in tokens: digits (underscores and commas between them are ignored), then an optional `K` (× 1,024)
/// or `M` (× 1,024²), in either case.
pub fn parse_size_tokens(text: &str) -> Result<u64, UnitError> {
    let wrong = || UnitError::Size(text.trim().to_owned());
    let clean: String = text.trim().chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let (digits, factor) = match clean.chars().last() {
        Some('k' | 'K') => (&clean[..clean.len() - 1], K),
        Some('m' | 'M') => (&clean[..clean.len() - 1], K * K),
        _ => (clean.as_str(), 1),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: u64 = digits.parse().map_err(|_digits_only_so_too_long| wrong())?;
    number.checked_mul(factor).ok_or_else(wrong)
}

/// A size as people write it: `8K` where it is a whole number of K, else plain digits (`8000`).
pub fn size_label(tokens: u64) -> String {
    if tokens > 0 && tokens.is_multiple_of(K) { format!("{}K", tokens / K) } else { tokens.to_string() }
}

/// Reads a duration: `500ms`, `30s` (also plain `30`), `5m`, `1h`, with decimals allowed.
pub fn parse_duration(text: &str) -> Result<Nanos, UnitError> {
    let trimmed = text.trim();
    let wrong = || UnitError::Duration(trimmed.to_owned());
    let split = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let factor_secs = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err(wrong()),
    };
    let number = number.trim();
    if !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(wrong());
    }
    let value: f64 = number.parse().map_err(|_reason_is_in_the_message| wrong())?;
    Ok(Nanos::from_secs_f64(value * factor_secs))
}

/// A duration as the command line takes it: `30s`, or `500ms` where it is not whole seconds.
pub fn duration_label(duration: Nanos) -> String {
    if duration.0.is_multiple_of(NANOS_PER_SEC) {
        format!("{}s", duration.0 / NANOS_PER_SEC)
    } else {
        format!("{}ms", duration.0 as f64 / 1e6)
    }
}

/// Context length: prompt tokens of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Context(u64);

impl Context {
    /// Largest context a plan may ask for, in tokens (16M): four times the longest context windows sold.
    pub const MAX_TOKENS: u64 = 16 * K * K;

    /// A context of `tokens`; an error outside 1 … [`Self::MAX_TOKENS`].
    pub fn new(tokens: u64) -> Result<Self, UnitError> {
        if (1..=Self::MAX_TOKENS).contains(&tokens) {
            return Ok(Self(tokens));
        }
        Err(UnitError::OutOfRange {
            what: "context length",
            min: "1".into(),
            max: size_label(Self::MAX_TOKENS),
            got: size_label(tokens),
        })
    }

    /// In tokens.
    pub const fn tokens(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&size_label(self.0))
    }
}

impl FromStr for Context {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        Self::new(parse_size_tokens(text)?)
    }
}

/// Concurrency: requests at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Concurrency(u32);

impl Concurrency {
    /// Most requests at once that a plan may ask for; the client is certified up to here.
    pub const MAX: u32 = 1_024;

    /// One request at a time.
    pub const ONE: Self = Self(1);

    /// `requests` at once; an error outside 1 … [`Self::MAX`].
    pub fn new(requests: u32) -> Result<Self, UnitError> {
        if (1..=Self::MAX).contains(&requests) {
            return Ok(Self(requests));
        }
        Err(UnitError::OutOfRange {
            what: "requests at once",
            min: "1".into(),
            max: Self::MAX.to_string(),
            got: requests.to_string(),
        })
    }

    /// As a number of requests.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Concurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Concurrency {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        let number = trimmed.parse().map_err(|_reason_is_in_the_message| UnitError::Count(trimmed.to_owned()))?;
        Self::new(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_write() {
        let check = |text: &str, tokens: Option<u64>| assert_eq!(parse_size_tokens(text).ok(), tokens, "{text}");
        check("8K", Some(8_192));
        check(" 1019k ", Some(1_043_456));
        check("1M", Some(1_048_576));
        check("8,192", Some(8_192));
        check("K", None);
        check("-8K", None);
        check("8.5K", None);
        check("99999999999999999999K", None);
        check("", None);
        assert_eq!(size_label(1_043_456), "1019K");
        assert_eq!(size_label(8_000), "8000");
    }

    #[test]
    fn durations_read_and_write() {
        let check = |text: &str, millis: Option<u64>| {
            assert_eq!(parse_duration(text).ok(), millis.map(Nanos::from_millis), "{text}");
        };
        check("30s", Some(30_000));
        check("30", Some(30_000));
        check("1.5m", Some(90_000));
        check("500ms", Some(500));
        check("1h", Some(3_600_000));
        check("-3s", None);
        check("inf", None);
        check("s", None);
        check("", None);
        assert_eq!(duration_label(Nanos::from_secs(30)), "30s");
        assert_eq!(duration_label(Nanos::from_millis(500)), "500ms");
    }
}
