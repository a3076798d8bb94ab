//! One row per cell: plain numbers in base units, empty where there is none.

use crate::{
    compare::{CellSide, ComparedCell, Comparison},
    export::csv::text,
    format,
};

const HEAD: [&str; 20] = [
    "phase",
    "context_tokens",
    "requests_at_once",
    "metric",
    "run_a",
    "run_b",
    "status_a",
    "status_b",
    "value_a",
    "value_b",
    "measurements_a",
    "measurements_b",
    "ratio",
    "ratio_low_95",
    "ratio_high_95",
    "p",
    "smallest_seen",
    "verdict",
    "only_likely",
    "reasons",
];

/// The table with its head; lines end in CR LF (RFC 4180).
pub(super) fn render(comparison: &Comparison) -> String {
    let rows = comparison.cells.iter().map(|cell| row(comparison, cell).join(","));
    let lines: Vec<String> = std::iter::once(HEAD.join(",")).chain(rows).collect();
    lines.join("\r\n") + "\r\n"
}

fn row(comparison: &Comparison, cell: &ComparedCell) -> [String; 20] {
    let status = |side: &Option<CellSide>| text(side.as_ref().map_or("", |side| side.status.as_str()));
    let value = |side: &Option<CellSide>| format::plain(side.as_ref().and_then(|side| side.value));
    let count = |side: &Option<CellSide>| side.as_ref().map_or_else(String::new, |side| side.measurements.to_string());
    let scatter = cell.effect.and_then(|effect| effect.scatter);
    [
        text(cell.id.phase.label()),
        cell.id.context.tokens().to_string(),
        cell.id.concurrency.to_string(),
        comparison.metric.metric().csv.to_owned(),
        text(comparison.a.id.as_str()),
        text(comparison.b.id.as_str()),
        status(&cell.a),
        status(&cell.b),
        value(&cell.a),
        value(&cell.b),
        count(&cell.a),
        count(&cell.b),
        format::plain(cell.ratio()),
        format::plain(scatter.map(|scatter| scatter.interval.low)),
        format::plain(scatter.map(|scatter| scatter.interval.high)),
        format::plain(scatter.map(|scatter| scatter.p)),
        format::plain(scatter.map(|scatter| scatter.smallest_seen)),
        cell.verdict.key().to_owned(),
        if cell.is_only_likely() { "yes" } else { "no" }.to_owned(),
        text(&cell.reasons.join("; ")),
    ]
}
