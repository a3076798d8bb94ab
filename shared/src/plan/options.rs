//! How often and in which order cells are measured, and whether the client is checked before. Each option reads what it
//! writes.

use std::{fmt, str::FromStr};

use crate::stats::interval::Interval;

/// Most measurements of one cell.
const MAX_REPEATS: u32 = 50;
/// Measurements at most where only a precision is asked for.
const DEFAULT_REPEATS_UNTIL: u32 = 10;
/// Fewest measurements before a precision can be told: an interval between repeats needs them.
const FEWEST_FOR_INTERVAL: usize = 3;

/// In which order decode cells are measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CellOrder {
    /// The first column, the first row, then row by row; a cell's repeats one after the other.
    #[default]
    Rows,
    /// By the seed; a cell's repeats one after the other.
    Shuffled,
    /// Every cell once, by the seed, then every cell again: drift of the machine falls on all of them alike.
    Interleaved,
}

impl fmt::Display for CellOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rows => "rows",
            Self::Shuffled => "shuffled",
            Self::Interleaved => "interleaved",
        })
    }
}

impl FromStr for CellOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" | "rows" => Ok(Self::Rows),
            "shuffled" => Ok(Self::Shuffled),
            "interleaved" => Ok(Self::Interleaved),
            other => Err(format!("\"{other}\" is unknown: choose rows, shuffled or interleaved")),
        }
    }
}

/// Whether the client is checked against the built-in simulator before the run (method §2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckClient {
    /// It is: some seconds, after which the bound of its error is known.
    #[default]
    Run,
    /// It is not: times have no certified bound.
    Skip,
}

impl fmt::Display for CheckClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "run",
            Self::Skip => "skip",
        })
    }
}

impl FromStr for CheckClient {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" | "run" => Ok(Self::Run),
            "skip" => Ok(Self::Skip),
            other => Err(format!("\"{other}\" is unknown: choose run or skip")),
        }
    }
}

/// How often a decode cell is measured (method §6): a fixed number of times, or until its total speed is known well
/// enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeats {
    /// At most this often.
    most: u32,
    /// Half-width of the interval between repeats at which it is enough, percent of the speed.
    until_percent: Option<f64>,
}

impl Eq for Repeats {}

impl Default for Repeats {
    fn default() -> Self {
        Self { most: 1, until_percent: None }
    }
}

impl Repeats {
    /// Reads the two fields. An empty number means once, or where a precision is asked for, up to 10 times.
    pub(super) fn read(number: &str) -> Result<Self, String> {
        let wrong = || {
            format!("\"{}\" is no number of repeats: write 3, or 3% for a precision, or 10,3% for both", number.trim())
        };
        let mut repeats = Self { most: 0, until_percent: None };
        for part in number.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if let Some(percent) = part.trim_start_matches(['±', '+', '-']).strip_suffix('%') {
                let percent = percent.trim().parse().ok().filter(|percent| (0.1..=50.0).contains(percent));
                repeats.until_percent = Some(percent.ok_or_else(wrong)?);
            } else {
                let most = part.parse().ok().filter(|most| (1..=MAX_REPEATS).contains(most));
                repeats.most = most.ok_or_else(wrong)?;
            }
        }
        if repeats.most == 0 {
            repeats.most = if repeats.until_percent.is_some() { DEFAULT_REPEATS_UNTIL } else { 1 };
        }
        Ok(repeats)
    }

    /// At most this often.
    pub const fn most(self) -> u32 {
        self.most
    }

    /// Plain words.
    pub fn words(self) -> String {
        match self.until_percent {
            Some(percent) => format!("until ±{percent} %, at most {}", self.most),
            None => self.most.to_string(),
        }
    }

    /// Whether a cell with these speeds is known well enough.
    pub fn are_enough(self, speeds: &[f64]) -> bool {
        if speeds.len() >= self.most as usize {
            return true;
        }
        let (Some(percent), Some(interval)) = (self.until_percent, Interval::of_repeats(speeds)) else { return false };
        let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
        speeds.len() >= FEWEST_FOR_INTERVAL && interval.half_width <= mean * percent / 100.0
    }
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.until_percent {
            Some(percent) => write!(f, "{},{percent}%", self.most),
            None => write!(f, "{}", self.most),
        }
    }
}

/// A number that depends on these three only and looks random: SplitMix64 (Steele, Lea and Flood, 2014).
pub(super) fn scattered(seed: u64, round: u32, index: usize) -> u64 {
    let mut z = seed ^ (u64::from(round) << 32) ^ index as u64;
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_read_what_they_write() {
        fn check<T: FromStr<Err = String> + ToString>(text: &str, wanted: Result<&str, &str>) {
            let read = text.parse::<T>().map(|option| option.to_string());
            assert_eq!(read.as_ref().map(String::as_str).map_err(String::as_str), wanted, "{text}");
        }
        check::<CheckClient>("skip", Ok("skip"));
        check::<CheckClient>("no", Err("\"no\" is unknown: choose run or skip"));
        check::<CellOrder>("interleaved", Ok("interleaved"));
        check::<CellOrder>("random", Err("\"random\" is unknown: choose rows, shuffled or interleaved"));
    }

    #[test]
    fn repeats_read_what_they_write() {
        let check = |text: &str, wanted: &str| {
            assert_eq!(Repeats::read(text).map_or_else(|error| error, |repeats| repeats.to_string()), wanted, "{text}");
        };
        check("", "1");
        check("4", "4");
        check("±3 %", "10,3%");
        check("5, 2.5%", "5,2.5%");
        let wrong = |text: &str| {
            format!("\"{text}\" is no number of repeats: write 3, or 3% for a precision, or 10,3% for both")
        };
        check("0", &wrong("0"));
        check("51", &wrong("51"));
        check("x%", &wrong("x%"));
    }

    #[test]
    fn a_cell_is_repeated_until_it_is_known_well_enough() {
        let check = |repeats: &str, speeds: &[f64], enough: bool| {
            assert_eq!(Repeats::read(repeats).unwrap().are_enough(speeds), enough, "{repeats}: {speeds:?}");
        };
        check("1", &[], false);
        check("1", &[5.0], true);
        check("3", &[5.0, 5.0], false);
        check("5,3%", &[100.0, 100.0], false);
        check("5,3%", &[100.0, 100.5, 99.5], true);
        check("5,3%", &[100.0, 110.0, 90.0], false);
        check("5,3%", &[100.0, 110.0, 90.0, 120.0, 80.0], true);
    }
}
