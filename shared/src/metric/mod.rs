//! The METRICS table: one row per number; tables, heat map, CSV, Markdown and docs derive from it.

mod table;

use crate::{
    event::Origin,
    format,
    id::Phase,
    stats::{cell::CellResult, interval::Interval},
};

pub use table::METRICS;

/// Which way a number is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// It describes; it does not rank.
    Neither,
}

/// What numbers are about, for menus: their order is the menus'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Tokens per second.
    Speed,
    /// Until the answer begins.
    FirstToken,
    /// While it flows.
    BetweenTokens,
    /// How many, how long, how they ended.
    Requests,
    /// Drafted tokens.
    Speculation,
    /// What was sent, and what of it was cached.
    Prompt,
    /// What the engine says.
    Engine,
    /// The GPUs.
    Gpu,
    /// The measuring side itself.
    Client,
}

impl Group {
    /// All groups, in their order.
    pub const ALL: [Self; 9] = [
        Self::Speed,
        Self::FirstToken,
        Self::BetweenTokens,
        Self::Requests,
        Self::Speculation,
        Self::Prompt,
        Self::Engine,
        Self::Gpu,
        Self::Client,
    ];

    /// Its words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Speed => "Speed",
            Self::FirstToken => "First token",
            Self::BetweenTokens => "Between tokens",
            Self::Requests => "Requests",
            Self::Speculation => "Speculation",
            Self::Prompt => "Prompt and cache",
            Self::Engine => "Engine",
            Self::Gpu => "GPU",
            Self::Client => "Measuring client",
        }
    }

    /// Its rows of [`METRICS`].
    pub fn metrics(self) -> impl Iterator<Item = &'static Metric> {
        METRICS.iter().filter(move |metric| metric.group == self)
    }
}

/// One number of a cell: where it comes from, how it is called, how it is shown.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Stable name, as in addresses (`?m=ttft`).
    pub key: &'static str,
    /// Head of its column; the reference page's words where it has the column.
    pub column: &'static str,
    /// Head of its column in CSV, with the unit of [`Metric::get`] as suffix (`ttft_s`).
    pub csv: &'static str,
    /// Plain words.
    pub label: &'static str,
    /// What it is about.
    pub group: Group,
    /// The field's own word or abbreviation (`TTFT`), or empty.
    pub standard: &'static str,
    /// The unit that [`Metric::show`] shows, or empty.
    pub unit: &'static str,
    /// Which way is good.
    pub better: Better,
    /// Phases whose cells have it.
    pub phases: &'static [Phase],
    /// The number: seconds, tokens per second, tokens, requests, or a share of 0–1.
    pub get: fn(&CellResult) -> Option<f64>,
    /// That number as text, unit included where the reference page includes it.
    pub show: fn(Option<f64>) -> String,
    interval: Option<fn(&CellResult) -> Option<Interval>>,
    samples: Option<fn(&CellResult) -> Option<u64>>,
    /// How it is computed.
    pub formula: &'static str,
    /// Over what it is computed.
    pub population: &'static str,
    /// Who observed it.
    pub source: &'static str,
    /// What to beware of, or empty.
    pub caveat: &'static str,
}

impl Metric {
    /// The cell's number as text, "—" where it was not measured.
    pub fn text(&self, result: &CellResult) -> String {
        (self.show)((self.get)(result))
    }

    /// The 95 % interval around the number.
    pub fn interval(&self, result: &CellResult) -> Option<Interval> {
        self.interval.and_then(|get| get(result))
    }

    /// Whether cells may have an interval for it.
    pub const fn has_interval(&self) -> bool {
        self.interval.is_some()
    }

    /// Whether it is a statistic over samples, so that n belongs beside it.
    pub const fn has_n(&self) -> bool {
        self.samples.is_some()
    }

    /// How many samples the number rests on; `None` if that is not known, as for imported pages, which give
    /// one value without its n.
    pub fn n(&self, result: &CellResult, origin: Option<Origin>) -> Option<u64> {
        match origin {
            Some(Origin::Imported) => None,
            _ => self.samples.and_then(|get| get(result)),
        }
    }

    /// How sure the number is, as far as that is known: `± 4.1, n 12`, and empty where neither is.
    pub fn precision(&self, result: &CellResult, origin: Option<Origin>) -> String {
        let half = self.interval(result).map(|interval| format!("± {}", (self.show)(Some(interval.half_width))));
        let n = self.n(result, origin).map(|n| format!("n {}", format::count(Some(n))));
        half.into_iter().chain(n).collect::<Vec<_>>().join(", ")
    }

    /// Whether cells of `phase` have it.
    pub fn applies_to(&self, phase: Phase) -> bool {
        self.phases.contains(&phase)
    }
}

/// How many of [`METRICS`], from the start, are the reference page's columns, in its order.
pub const REFERENCE_COLUMNS: usize = 8;

/// The reference page's columns, in its order.
pub fn reference_columns() -> &'static [Metric] {
    METRICS.get(..REFERENCE_COLUMNS).expect("the table begins with the reference page's columns")
}

/// The metric of that key.
pub fn by_key(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

/// The table as `docs/METRICS.md`.
pub fn markdown() -> String {
    let head = "# Metrics\n\nGenerated from `shared/src/metric/table.rs`. Not measured is \"—\" in tables, an absent \
                value in CSV and null in JSON, never 0. K = 1,024 tokens in labels of sizes.\n";
    std::iter::once(head.to_owned()).chain(METRICS.iter().map(section)).collect()
}

fn section(metric: &Metric) -> String {
    let standard = if metric.standard.is_empty() { String::new() } else { format!(" ({})", metric.standard) };
    let better = match metric.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "neither",
    };
    let phases = metric.phases.iter().map(|phase| phase.label()).collect::<Vec<_>>().join(", ");
    let (key, csv) = (format!("`{}`", metric.key), format!("`{}`", metric.csv));
    let facts = [
        ("Key", key.as_str()),
        ("Column", metric.column),
        ("CSV", csv.as_str()),
        ("Unit", metric.unit),
        ("Better", better),
        ("Phases", phases.as_str()),
        ("Formula", metric.formula),
        ("Over", metric.population),
        ("Source", metric.source),
        ("Beware", metric.caveat),
    ];
    let told = facts.into_iter().filter(|(_, value)| !value.is_empty());
    let rows: Vec<String> = told.map(|(name, value)| format!("| {name} | {value} |")).collect();
    format!("\n## {}{standard}\n\n| | |\n|---|---|\n{}\n", metric.label, rows.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_begins_with_the_reference_columns() {
        let columns: Vec<&str> = reference_columns().iter().map(|metric| metric.column).collect();
        assert_eq!(
            columns,
            [
                "Total tok/s",
                "Per request tok/s",
                "TTFT",
                "Time between tokens",
                "Average active requests",
                "Completed requests",
                "Output tokens",
                "Measured for"
            ]
        );
    }

    #[test]
    fn names_are_unique_and_every_row_is_complete() {
        for name in [|m: &Metric| m.key, |m: &Metric| m.column, |m: &Metric| m.csv, |m: &Metric| m.label] {
            let names: BTreeSet<&str> = METRICS.iter().map(name).collect();
            assert_eq!(names.len(), METRICS.len());
        }
        for metric in METRICS {
            let texts = [metric.key, metric.column, metric.csv, metric.label, metric.formula, metric.source];
            assert!(texts.iter().all(|text| !text.is_empty() && !text.contains('|')), "{}", metric.key);
            assert!(!metric.phases.is_empty(), "{}", metric.key);
            assert!(markdown().contains(&format!("| Key | `{}` |", metric.key)));
        }
        assert_eq!(Group::ALL.into_iter().flat_map(Group::metrics).count(), METRICS.len(), "a group is in no menu");
        assert_eq!(by_key("ttft").map(|m| m.column), Some("TTFT"));
        assert!(by_key("TTFT").is_none());
    }
}
