//! Bounds that a request must keep to count as good (service-level objectives, method §4).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::units::{Nanos, duration_label, parse_duration};

/// What a request must keep, all at once; at least one bound is set. It is stored as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slo {
    ttft: Option<Nanos>,
    tpot: Option<Nanos>,
    e2e: Option<Nanos>,
}

/// The latencies of one completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latencies {
    /// To the first token.
    pub ttft: Nanos,
    /// Per output token after the first arrival; `None` if there was none.
    pub tpot: Option<Nanos>,
    /// Of the whole request.
    pub e2e: Nanos,
}

impl Slo {
    /// Whether a request kept every bound. Where nothing came after the first arrival nothing was late between tokens.
    pub fn is_met(self, seen: Latencies) -> bool {
        let within = |bound: Option<Nanos>, value: Nanos| bound.is_none_or(|bound| value <= bound);
        within(self.ttft, seen.ttft) && within(self.tpot, seen.tpot.unwrap_or_default()) && within(self.e2e, seen.e2e)
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [("ttft", self.ttft), ("tpot", self.tpot), ("e2e", self.e2e)];
        let parts = named.into_iter().filter_map(|(name, bound)| Some(format!("{name}:{}", duration_label(bound?))));
        f.write_str(&parts.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Slo {
    type Err = String;

    /// `ttft:500ms,tpot:50ms,e2e:10s`: at least one, in any order.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut slo = Self { ttft: None, tpot: None, e2e: None };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong = || format!("\"{part}\" is no bound: write ttft:500ms, tpot:50ms or e2e:10s");
            let (name, bound) = part.split_once([':', '=']).ok_or_else(wrong)?;
            let bound = bound.trim();
            // A bare number would be milliseconds to some tools and seconds to others.
            let has_unit = bound.ends_with(|last: char| last.is_ascii_alphabetic());
            let bound = parse_duration(bound).ok().filter(|bound| has_unit && bound.0 > 0).ok_or_else(wrong)?;
            let place = match name.trim().to_ascii_lowercase().as_str() {
                "ttft" => &mut slo.ttft,
                "tpot" => &mut slo.tpot,
                "e2e" | "e2el" => &mut slo.e2e,
                _ => return Err(wrong()),
            };
            if place.replace(bound).is_some() {
                return Err(format!("\"{}\" is bound twice", name.trim()));
            }
        }
        if slo.ttft.or(slo.tpot).or(slo.e2e).is_none() {
            return Err("give at least one bound: ttft:500ms, tpot:50ms or e2e:10s".to_owned());
        }
        Ok(slo)
    }
}

impl TryFrom<String> for Slo {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Slo> for String {
    fn from(slo: Slo) -> Self {
        slo.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_read_what_they_write() {
        let check = |text: &str, wanted: Result<&str, &str>| {
            let read = text.parse::<Slo>().map(|slo| slo.to_string());
            assert_eq!(read.as_deref().map_err(String::as_str), wanted, "{text}");
        };
        check("tpot:50ms, TTFT: 0.5s", Ok("ttft:500ms,tpot:50ms"));
        check("e2el=10s", Ok("e2e:10s"));
        check("", Err("give at least one bound: ttft:500ms, tpot:50ms or e2e:10s"));
        check("ttft:500", Err("\"ttft:500\" is no bound: write ttft:500ms, tpot:50ms or e2e:10s"));
        check("ttft:0ms", Err("\"ttft:0ms\" is no bound: write ttft:500ms, tpot:50ms or e2e:10s"));
        check("itl:5ms", Err("\"itl:5ms\" is no bound: write ttft:500ms, tpot:50ms or e2e:10s"));
        check("ttft:1s,ttft:2s", Err("\"ttft\" is bound twice"));
    }

    #[test]
    fn a_request_keeps_all_bounds_or_is_not_good() {
        let check = |slo: &str, [ttft, tpot, e2e]: [u64; 3], wanted: bool| {
            let seen = Latencies {
                ttft: Nanos::from_millis(ttft),
                tpot: (tpot > 0).then(|| Nanos::from_millis(tpot)),
                e2e: Nanos::from_millis(e2e),
            };
            assert_eq!(slo.parse::<Slo>().unwrap().is_met(seen), wanted, "{slo} {seen:?}");
        };
        check("ttft:500ms", [500, 900, 9_000], true);
        check("ttft:500ms", [501, 1, 600], false);
        check("ttft:500ms,tpot:20ms", [100, 20, 600], true);
        check("ttft:500ms,tpot:20ms", [100, 21, 600], false);
        check("tpot:20ms", [100, 0, 100], true);
        check("ttft:500ms,tpot:20ms,e2e:1s", [100, 20, 1_001], false);
    }
}
