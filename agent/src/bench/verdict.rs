//! From what was seen to a cell's result: the numbers and the verdict are `shared`'s, the proof of the cache is ours.

use speedmatrix_shared::{
    finding::{Finding, Severity, rules::Asked},
    id::CellId,
    stats::{
        cell::{CellResult, CellStats, CellStatus, FailureGroup},
        decode::{DecodeInput, EngineSeries},
        verdict::{RampEnd, failures},
    },
    trace::{RequestFailure, RequestTrace},
    units::Nanos,
};

use super::{
    cache::Proof,
    cell::{Measured, Opened},
    gauges::Look,
};
use crate::client::prometheus::EngineGauges;

/// The finding of a cache that was filled and showed no hit.
const NOT_PROVEN: &str = "cache_not_proven";

/// A cell whose requests can't succeed, for the reason `failure`.
pub(super) fn failed(failure: &RequestFailure, traces: &[RequestTrace]) -> CellResult {
    let mut failures = failures(traces);
    if failures.is_empty() {
        failures.push(FailureGroup { kind: failure.kind, text: failure.text.clone(), count: 1 });
    }
    CellResult { status: CellStatus::Failed(failure.kind), stats: CellStats::default(), findings: Vec::new(), failures }
}

/// A cell before which the engine would not become idle.
pub(super) fn not_drained(running: f64, waiting: f64) -> CellResult {
    let text = format!(
        "Before the cell the engine still worked on {running:.0} requests and {waiting:.0} waited. Stop other traffic."
    );
    let finding = Finding { code: "not_drained".to_owned(), severity: Severity::Warning, text };
    CellResult { findings: vec![finding], ..CellResult::not_drained() }
}

/// A decode cell. `cold` are the requests that filled its cache.
pub(super) fn decode(
    cell: CellId,
    asked: Asked,
    measured: &Measured,
    cold: &[RequestTrace],
    proof: Proof,
) -> CellResult {
    let (window, ramp) = match &measured.opened {
        Opened::Ready(window) => (*window, RampEnd::Ready),
        Opened::Anyway(window) => (*window, RampEnd::BudgetSpent),
        Opened::Never(failure) => return failed(failure, &measured.traces),
    };
    let series = |of: fn(&EngineGauges) -> Option<f64>| points(&measured.looks, of);
    let (running, waiting, kv_usage) = (series(|g| g.running), series(|g| g.waiting), series(|g| g.kv_usage));
    let input = DecodeInput {
        traces: &measured.traces,
        scouts: cold,
        ramp_start: measured.ramp_start,
        window,
        concurrency: cell.concurrency,
        engine: EngineSeries { running: &running, waiting: &waiting, kv_usage: &kv_usage },
    };
    let mut result = CellResult::decode(&input, ramp, asked);
    // The rule can only compare times; a probe request and the engine's counters know better.
    match proof {
        Proof::NotWanted => {}
        Proof::Shown => result.findings.retain(|finding| finding.code != NOT_PROVEN),
        Proof::Missing => {
            result.findings.retain(|finding| finding.code != NOT_PROVEN);
            let text = "The prompt cache was filled before the cell, but a probe request showed no hit.";
            result.findings.push(Finding {
                code: NOT_PROVEN.to_owned(),
                severity: Severity::Warning,
                text: text.to_owned(),
            });
        }
    }
    result
}

fn points(looks: &[Look], of: fn(&EngineGauges) -> Option<f64>) -> Vec<(Nanos, f64)> {
    looks.iter().filter_map(|(at, gauges)| Some((*at, of(gauges.as_ref()?)?))).collect()
}
