//! What a cell of the matrix is loaded with (method §3 and §4).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{id::Phase, units::Context};

/// Most requests of one burst cell.
const MAX_BURST: u32 = 100_000;
/// Context of the background of a mixed cell, where none is given.
const DEFAULT_BACKGROUND: &str = "1K";

/// How requests come. It is stored as it is typed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Load {
    /// C requests at all times; a window of fixed length is measured once all have a token.
    #[default]
    Sustained,
    /// A number of requests, C at once, all completed; measured from the first send to the last byte.
    Burst {
        /// How many.
        requests: u32,
    },
    /// C requests decode all the time as the background, on prompts of this length; meanwhile cold prompts of the cell's
    /// context arrive, one at a time.
    Mixed {
        /// Prompt length of the background.
        background: Context,
    },
    /// Requests come by a clock, whatever the server does; C is how many a minute. Latency counts from when each was due.
    Open(Arrivals),
}

/// How the requests of an open loop are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// One after the other at equal distances.
    Constant,
    /// At random, each independent of the others (a Poisson process).
    Poisson,
    /// From none to twice the rate, evenly rising.
    Ramp,
}

impl Load {
    /// What a phase's cells are called under this load.
    pub const fn phase_label(self, phase: Phase) -> &'static str {
        match (phase, self) {
            (Phase::Prefill, _) | (Phase::Decode, Self::Sustained) => phase.label(),
            (Phase::Decode, Self::Burst { .. }) => "Burst",
            (Phase::Decode, Self::Mixed { .. }) => "Prefill beside decode",
            (Phase::Decode, Self::Open(_)) => "Open loop",
        }
    }

    /// What the numbers of the matrix's columns are.
    pub const fn level_label(self) -> &'static str {
        match self {
            Self::Sustained | Self::Burst { .. } => "Requests at once",
            Self::Mixed { .. } => "Background requests",
            Self::Open(_) => "Requests per minute",
        }
    }

    /// The same in a sentence, lower case.
    pub const fn level_words(self) -> &'static str {
        match self {
            Self::Sustained | Self::Burst { .. } => "requests at once",
            Self::Mixed { .. } => "background requests",
            Self::Open(_) => "requests per minute",
        }
    }

    /// Whether C requests are held in flight all the time.
    pub const fn is_sustained(self) -> bool {
        matches!(self, Self::Sustained | Self::Mixed { .. })
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sustained => f.write_str("sustained"),
            Self::Burst { requests } => write!(f, "burst:{requests}"),
            Self::Mixed { background } => write!(f, "mixed:{background}"),
            Self::Open(Arrivals::Constant) => f.write_str("open:constant"),
            Self::Open(Arrivals::Poisson) => f.write_str("open:poisson"),
            Self::Open(Arrivals::Ramp) => f.write_str("open:ramp"),
        }
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let requests = |text: &str| {
            let number = text.trim().parse().ok().filter(|number| (1..=MAX_BURST).contains(number));
            number.ok_or_else(|| format!("\"{text}\" is no number of requests: write burst:100, 1 to {MAX_BURST}"))
        };
        let mixed = |context: &str| match context.trim().parse() {
            Ok(background) => Ok(Self::Mixed { background }),
            Err(error) => Err(format!("{error}: write mixed:1K, the prompt length of the background")),
        };
        match text.trim() {
            "" | "sustained" => Ok(Self::Sustained),
            "mixed" => mixed(DEFAULT_BACKGROUND),
            "open:constant" => Ok(Self::Open(Arrivals::Constant)),
            "open" | "open:poisson" => Ok(Self::Open(Arrivals::Poisson)),
            "open:ramp" => Ok(Self::Open(Arrivals::Ramp)),
            other => match other.split_once(':') {
                Some(("burst", number)) => requests(number).map(|requests| Self::Burst { requests }),
                Some(("mixed", context)) => mixed(context),
                _ => Err(format!(
                    "\"{other}\" is unknown: choose sustained, burst:100, mixed:1K, open:constant, open:poisson or open:ramp"
                )),
            },
        }
    }
}

impl TryFrom<String> for Load {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Load> for String {
    fn from(load: Load) -> Self {
        load.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_read_what_they_write() {
        let check = |text: &str, wanted: Result<&str, &str>| {
            let read = text.parse::<Load>().map(|load| load.to_string());
            assert_eq!(read.as_deref().map_err(String::as_str), wanted, "{text}");
        };
        check("", Ok("sustained"));
        check("burst: 100", Ok("burst:100"));
        check("burst:0", Err("\"0\" is no number of requests: write burst:100, 1 to 100000"));
        check("mixed", Ok("mixed:1K"));
        check("mixed: 2048", Ok("mixed:2K"));
        check("open", Ok("open:poisson"));
        check("open:ramp", Ok("open:ramp"));
        let unknown =
            "\"steady\" is unknown: choose sustained, burst:100, mixed:1K, open:constant, open:poisson or open:ramp";
        check("steady", Err(unknown));
    }
}
