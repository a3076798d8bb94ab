//! Reading a file whose fields may be missing, null, of another type, or text where a number belongs.

use std::borrow::Cow;

use serde_json::Value;

use super::MAX_TEXT_CHARS;
use crate::{id::RunId, stats::summary::Summary};

/// The value below these keys.
pub(super) fn at<'a>(file: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().try_fold(file, |value, key| value.get(key))
}

/// A finite number, also where it is written as text.
pub(super) fn number(file: &Value, keys: &[&str]) -> Option<f64> {
    let found = at(file, keys)?;
    found.as_f64().or_else(|| found.as_str()?.parse().ok()).filter(|number: &f64| number.is_finite())
}

/// A number above zero: other tools write zero for what they did not measure.
pub(super) fn positive(file: &Value, keys: &[&str]) -> Option<f64> {
    number(file, keys).filter(|number| *number > 0.0)
}

/// A whole number from zero.
pub(super) fn count(file: &Value, keys: &[&str]) -> Option<u64> {
    number(file, keys).filter(|number| *number >= 0.0).map(|number| number.round() as u64)
}

/// A text with something in it, cut to what a page can show.
pub(super) fn text(file: &Value, keys: &[&str]) -> Option<String> {
    let found = at(file, keys)?.as_str()?.trim();
    let shown: String = found.chars().filter(|c| !c.is_control()).take(MAX_TEXT_CHARS).collect();
    (!shown.is_empty()).then_some(shown)
}

/// What a file tells of a sample. Unknown is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    pub(super) mean: Option<f64>,
    pub(super) p50: Option<f64>,
    pub(super) p90: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
}

impl Sample {
    /// As a summary in another unit, of which the file's has `per`; `None` without a median. The ends that a file does not
    /// tell are the smallest and largest value that it does: nothing of an imported run shows them. Zeros are no times.
    pub(super) fn summary(self, per: f64) -> Option<Summary> {
        let scaled = |value: Option<f64>| value.filter(|value| *value > 0.0).map(|value| value / per);
        let (p50, p90, p99) = (scaled(self.p50)?, scaled(self.p90), scaled(self.p99));
        let mean = scaled(self.mean);
        let told = [mean, p90, p99, scaled(self.min), scaled(self.max)];
        let told = || told.into_iter().flatten();
        Some(Summary {
            mean: mean.unwrap_or(p50),
            p90,
            p99,
            min: told().fold(p50, f64::min),
            max: told().fold(p50, f64::max),
            ..Summary::point(p50)
        })
    }
}

/// Python writes numbers that JSON has no word for: they become null, but not inside of texts.
pub(in crate::import) fn lenient(text: &str) -> Cow<'_, str> {
    const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    if !WORDS.iter().any(|word| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(next) = rest.chars().next() {
        let word = WORDS.iter().find(|word| rest.starts_with(**word));
        let taken = match (next, word) {
            ('"', _) => string_end(rest),
            (_, Some(word)) => word.len(),
            _ => next.len_utf8(),
        };
        let (part, after) = rest.split_at(taken);
        out.push_str(if word.is_some() && next != '"' { "null" } else { part });
        rest = after;
    }
    Cow::Owned(out)
}

/// Bytes of the JSON string that `text` begins with, quotes included; all of it if it has no end.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The objects of a text with one per line, and whether the last was cut; `None` if the first line is none.
pub(super) fn lines(text: &str) -> Option<(Vec<Value>, bool)> {
    let mut records: Vec<Value> = Vec::new();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    while let Some(line) = lines.next() {
        match serde_json::from_str::<Value>(&lenient(line)) {
            Ok(record) if record.is_object() => records.push(record),
            Err(error) if error.is_eof() && lines.peek().is_none() && !records.is_empty() => {
                return Some((records, true));
            }
            _ => return None,
        }
    }
    (!records.is_empty()).then_some((records, false))
}

/// An id that the same file always gives, so that a second import finds the first. 64 bits of FNV-1a
/// (Fowler, Noll, Vo 1991) name a file among a person's files; they prove nothing.
pub(super) fn id(file: &Value, number: usize) -> RunId {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let bytes = file.to_string();
    let hash = bytes.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    let suffix = if number == 0 { String::new() } else { format!("-{}", number + 1) };
    format!("imported-{hash:016x}{suffix}").parse().expect("hexadecimal digits and dashes make an id")
}
