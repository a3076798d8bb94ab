//! A comparison as a file: Markdown for a pull request, CSV, JSON, and JUnit for a build.

mod csv;
mod json;
mod junit;
mod markdown;

use std::str::FromStr;

use super::{Comparison, cell::ComparedCell, gate::IfInconclusive};
use crate::format;

pub use json::FORMAT;

/// What kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonFormat {
    /// For people.
    Markdown,
    /// One row per cell, for spreadsheets.
    Csv,
    /// For programs.
    Json,
    /// One test per cell, for builds.
    Junit,
}

/// Not a kind of file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a format of comparisons: choose md, csv, json or junit")]
pub struct UnknownComparisonFormat(String);

impl FromStr for ComparisonFormat {
    type Err = UnknownComparisonFormat;

    fn from_str(text: &str) -> Result<Self, UnknownComparisonFormat> {
        let found = Self::ALL.into_iter().find(|format| format.key() == text);
        found.ok_or_else(|| UnknownComparisonFormat(text.chars().take(80).collect()))
    }
}

impl ComparisonFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Markdown, Self::Csv, Self::Json, Self::Junit];

    /// The name on the command line.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Junit => "junit",
        }
    }
}

/// The comparison as a file. Equal comparisons give equal bytes.
pub fn render(comparison: &Comparison, format: ComparisonFormat) -> String {
    match format {
        ComparisonFormat::Markdown => markdown::render(comparison),
        ComparisonFormat::Csv => csv::render(comparison),
        ComparisonFormat::Json => json::render(comparison),
        ComparisonFormat::Junit => junit::render(comparison, IfInconclusive::Tell),
    }
}

/// The tests of a build: as [`render`] with JUnit, with inconclusive cells counted as the gate counts them.
pub fn junit(comparison: &Comparison, if_inconclusive: IfInconclusive) -> String {
    junit::render(comparison, if_inconclusive)
}

/// `+8.4 %`, or `—`.
pub fn change(cell: &ComparedCell) -> String {
    format::change(cell.delta.share())
}

/// `+6.3 % to +10.5 %`, or `—` where there is no interval.
pub fn interval(cell: &ComparedCell) -> String {
    match cell.effect.and_then(|effect| effect.scatter) {
        Some(scatter) => {
            let end = |ratio: f64| format::change(Some(ratio - 1.0));
            format!("{} to {}", end(scatter.interval.low), end(scatter.interval.high))
        }
        None => format::MISSING.to_owned(),
    }
}

/// The smallest change that could have been seen: `5 %`, or `—`.
pub fn smallest_seen(cell: &ComparedCell) -> String {
    format::percent(cell.effect.and_then(|effect| effect.scatter).map(|scatter| scatter.smallest_seen))
}

/// The cell in words: `Sustained decode, 8K × 16`.
pub fn name(cell: &ComparedCell) -> String {
    format!("{}, {} × {}", cell.id.phase.label(), cell.id.context, cell.id.concurrency)
}

/// Why a verdict is what it is, as far as there is more to say: reasons, and the smallest change that could be seen.
pub fn why(cell: &ComparedCell) -> String {
    let unseen = (cell.verdict == super::CellVerdict::Inconclusive).then(|| {
        match cell.effect.and_then(|effect| effect.scatter) {
            Some(_) => format!("smallest change that could be seen: {}", smallest_seen(cell)),
            None => "the scatter of a side is not known".to_owned(),
        }
    });
    let paired = match (&cell.a, &cell.b) {
        (Some(a), Some(b)) if a.id != b.id => Some(format!("B's cell is {}", b.id)),
        _ => None,
    };
    let caveat = cell.caveat().map(ToOwned::to_owned);
    cell.reasons.iter().cloned().chain(unseen).chain(paired).chain(caveat).collect::<Vec<_>>().join("; ")
}
