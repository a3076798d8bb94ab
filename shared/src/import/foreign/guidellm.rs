//! guidellm's `benchmarks.json`, layouts 1 and 2: one benchmark per level, each metric by how its requests ended.

use serde_json::Value;

use super::{
    Layer, Row, Spread, Told, bounded,
    field::{Sample, at, count, positive, text},
    judged,
};
use crate::{
    id::Phase,
    import::ImportError,
    stats::{
        cell::{CellStats, CellStatus, RequestCounts},
        summary::Summary,
    },
};

/// The newest layout that is read.
const KNOWN_VERSION: u64 = 2;
/// Milliseconds in a second.
const MILLIS: f64 = 1e3;

pub(super) fn read(file: &Value) -> Option<Result<(Told, Vec<Row>), ImportError>> {
    let version = text(file, &["metadata", "guidellm_version"])?;
    let benchmarks = at(file, &["benchmarks"])?.as_array()?;
    let tool = format!("guidellm {version}");
    match count(file, &["metadata", "version"]) {
        Some(1..=KNOWN_VERSION) => {}
        found => {
            let found = found.map_or_else(|| "of no number".to_owned(), |found| found.to_string());
            return Some(Err(ImportError::ForeignVersion { tool, found }));
        }
    }
    let from_args = |key: &str| text(file, &["args", key]);
    let from_backend = |key: &str| text(file, &["config", "spec", "backend", key]);
    let told = Told {
        tool,
        target: from_args("target").or_else(|| from_backend("target")).filter(|url| !url.contains('@')),
        model: from_args("model").or_else(|| from_backend("model")),
        duration_s: benchmarks.first().and_then(|first| positive(first, &["duration"])),
        ..Told::default()
    };
    Some(Ok((told, bounded(benchmarks.iter().map(row)))))
}

fn row(benchmark: &Value) -> Row {
    let total = |how: &str| count(benchmark, &["metrics", "request_totals", how]);
    let counts = total("successful").map(|completed| {
        let (failed, cut) = (total("errored").unwrap_or_default(), total("incomplete").unwrap_or_default());
        RequestCounts { started: completed + failed + cut, completed, cut, failed }
    });
    let strategy = |key: &str| positive(benchmark, &["config", "strategy", key]);
    let requests = counts.map_or(1, |counts| counts.started);
    let (layer, concurrency) = match (strategy("rate"), strategy("streams").or_else(|| strategy("max_concurrency"))) {
        (Some(per_s), _) => {
            let kind = text(benchmark, &["config", "strategy", "type_"]);
            let spread = if kind.as_deref() == Some("poisson") { Spread::Poisson } else { Spread::Constant };
            (Layer::Open(spread), (per_s * 60.0).round().max(1.0) as u64)
        }
        (None, Some(streams)) => (Layer::Burst { requests }, streams as u64),
        (None, None) => (Layer::Burst { requests }, 1),
    };
    let context = positive(benchmark, &["metrics", "prompt_token_count", "successful", "mean"]);
    let stats = CellStats {
        prompt_tokens: context.map(|tokens| tokens.round() as u64),
        per_user_tok_s: rate(benchmark, "output_tokens_per_second").map(|total| total / concurrency.max(1) as f64),
        ..stats(benchmark)
    };
    Row { layer, phase: Phase::Decode, context, concurrency, result: judged(stats, counts, CellStatus::Valid) }
}

/// Of the requests that succeeded.
fn rate(benchmark: &Value, key: &str) -> Option<f64> {
    positive(benchmark, &["metrics", key, "successful", "mean"])
}

fn stats(benchmark: &Value) -> CellStats {
    let times = |key: &str, per: f64| summary(at(benchmark, &["metrics", key, "successful"])?, per);
    CellStats {
        total_tok_s: rate(benchmark, "output_tokens_per_second"),
        ttft_s: times("time_to_first_token_ms", MILLIS),
        // Its time per output token counts the wait for the first one; its inter-token latency is what others call TPOT.
        time_between_tokens_s: times("inter_token_latency_ms", MILLIS),
        // The only time in seconds.
        e2e_latency_s: times("request_latency", 1.0),
        request_rate: rate(benchmark, "requests_per_second"),
        active_requests: rate(benchmark, "request_concurrency"),
        measured_for_s: positive(benchmark, &["duration"]),
        ..CellStats::default()
    }
}

fn summary(metric: &Value, per: f64) -> Option<Summary> {
    let get = |key: &str| positive(metric, &[key]);
    let part = |key: &str| positive(metric, &["percentiles", key]);
    let sample = Sample {
        mean: get("mean"),
        p50: get("median").or_else(|| part("p50")),
        p90: part("p90"),
        p99: part("p99"),
        min: get("min"),
        max: get("max"),
    };
    sample.summary(per)
}
