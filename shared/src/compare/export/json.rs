//! The comparison for programs; what is not known is null.

use serde_json::{Value, json};

use crate::compare::{CellSide, ComparedCell, Comparison, RunSide};

/// Says what the file is.
pub const FORMAT: &str = "speedmatrix-comparison";
/// Version of the file's layout.
const VERSION: u32 = 1;

pub(super) fn render(comparison: &Comparison) -> String {
    let metric = comparison.metric.metric();
    let counts = comparison.counts;
    let file = json!({
        "format": FORMAT,
        "version": VERSION,
        "a": run(&comparison.a),
        "b": run(&comparison.b),
        "metric": { "key": metric.key, "label": metric.label, "column": metric.csv },
        "margin": comparison.margin,
        "sentence": comparison.sentence(),
        "notes": comparison.notes,
        "counts": {
            "faster": counts.faster,
            "slower": counts.slower,
            "no_difference": counts.no_difference,
            "inconclusive": counts.inconclusive,
            "not_comparable": counts.not_comparable,
            "only_a": counts.only_a,
            "only_b": counts.only_b,
        },
        "conditions": comparison.conditions.iter().map(|it| json!({
            "group": it.group.label(),
            "name": it.label,
            "a": it.a,
            "b": it.b,
            "severity": it.severity.map(crate::compare::Severity::label),
        })).collect::<Vec<_>>(),
        "command": comparison.command.iter().map(|it| json!({
            "name": it.name, "change": it.change.label(), "a": it.a, "b": it.b,
        })).collect::<Vec<_>>(),
        "cells": comparison.cells.iter().map(|cell| self::cell(comparison, cell)).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&file).expect("a JSON value has only string keys") + "\n"
}

fn run(side: &RunSide) -> Value {
    json!({
        "id": side.id,
        "title": side.title,
        "started_unix_ms": (side.started_unix_ms > 0).then_some(side.started_unix_ms),
        "origin": side.origin,
    })
}

fn cell(comparison: &Comparison, cell: &ComparedCell) -> Value {
    let scatter = cell.effect.and_then(|effect| effect.scatter);
    json!({
        "cell": cell.id,
        "a": cell.a.as_ref().map(side),
        "b": cell.b.as_ref().map(side),
        "verdict": cell.verdict.key(),
        "words": cell.label(comparison.metric),
        "only_likely": cell.is_only_likely(),
        "caveat": cell.caveat(),
        "ratio": cell.ratio(),
        "ratio_low_95": scatter.map(|scatter| scatter.interval.low),
        "ratio_high_95": scatter.map(|scatter| scatter.interval.high),
        "p": scatter.map(|scatter| scatter.p),
        "smallest_seen": scatter.map(|scatter| scatter.smallest_seen),
        "reasons": cell.reasons,
    })
}

fn side(side: &CellSide) -> Value {
    json!({
        "cell": side.id,
        "status": side.status,
        "value": side.value,
        "measurements": side.measurements,
    })
}
