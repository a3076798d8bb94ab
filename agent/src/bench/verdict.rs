//! From what was seen to a cell's result: numbers by `shared`, and what only the measuring side knows.

use speedmatrix_shared::{
    finding::{Finding, Severity},
    id::CellId,
    stats::cell::{CellResult, CellStats, CellStatus, FailureGroup},
    trace::{RequestFailure, RequestTrace},
};

use super::cell::{Measured, Opened};

/// A prompt that the server counts at less than this share of the context was cut.
const TRUNCATED_SHARE: f64 = 0.95;

/// A cell whose requests can't succeed.
pub(super) fn failed(failure: &RequestFailure, _traces: &[RequestTrace]) -> CellResult {
    CellResult {
        status: CellStatus::Failed(failure.kind),
        stats: CellStats::default(),
        findings: Vec::new(),
        failures: vec![FailureGroup { kind: failure.kind, text: failure.text.clone(), count: 1 }],
    }
}

/// A cell before which the engine would not become idle.
pub(super) fn not_drained(running: f64, waiting: f64) -> CellResult {
    let finding = Finding {
        code: "not_drained".to_owned(),
        severity: Severity::Warning,
        text: format!(
            "before the cell the engine still worked on {running:.0} requests and {waiting:.0} waited: stop other traffic"
        ),
    };
    CellResult {
        status: CellStatus::NotDrained,
        stats: CellStats::default(),
        findings: vec![finding],
        failures: Vec::new(),
    }
}

pub(super) fn decode(cell: CellId, measured: &Measured, cold: &[RequestTrace], findings: Vec<Finding>) -> CellResult {
    let _ = (cell, measured, cold, TRUNCATED_SHARE);
    if let Opened::Never(failure) = &measured.opened { return failed(failure, &measured.traces); }
    CellResult { status: CellStatus::Valid, stats: CellStats::default(), findings, failures: Vec::new() }
}

pub(super) fn prefill(cell: CellId, traces: &[RequestTrace]) -> CellResult {
    let _ = (cell, traces);
    CellResult { status: CellStatus::Valid, stats: CellStats::default(), findings: vec![], failures: Vec::new() }
}
