//! AIPerf's `profile_export_aiperf.json`: one measurement per file, one key per metric, each with its unit.

use serde_json::Value;

use super::{
    Layer, Row, Spread, Told,
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

pub(super) fn read(file: &Value) -> Option<Result<(Told, Vec<Row>), ImportError>> {
    let version = text(file, &["aiperf_version"])?;
    let loadgen = |key: &str| positive(file, &["input_config", "loadgen", key]);
    let models = at(file, &["input_config", "endpoint", "model_names"]).and_then(Value::as_array);
    let urls = at(file, &["input_config", "endpoint", "urls"]).and_then(Value::as_array);
    let first = |list: Option<&Vec<Value>>| list.and_then(|list| text(list.first()?, &[]));
    let mut told = Told {
        tool: format!("AIPerf {version}"),
        target: first(urls).filter(|url| !url.contains('@')),
        model: first(models),
        published: text(file, &["start_time"]).map(|date| ("Started".to_owned(), date)).into_iter().collect(),
        ..Told::default()
    };
    if at(file, &["was_cancelled"]).and_then(Value::as_bool) == Some(true) {
        told.warnings.push("The run was cancelled before its end.".to_owned());
    }
    let completed = count(file, &["request_count", "avg"]).unwrap_or_default();
    let failed = count(file, &["error_request_count", "avg"]).unwrap_or_else(|| errors(file));
    let counts = RequestCounts { started: completed + failed, completed, cut: 0, failed };
    let (layer, concurrency) = match loadgen("request_rate") {
        Some(per_s) => (Layer::Open(Spread::Poisson), (per_s * 60.0).round().max(1.0) as u64),
        None => (Layer::Burst { requests: completed + failed }, loadgen("concurrency").map_or(1, |level| level as u64)),
    };
    let context = positive(file, &["input_sequence_length", "avg"]);
    let stats = stats(file, concurrency);
    let stats = CellStats { prompt_tokens: context.map(|tokens| tokens.round() as u64), ..stats };
    let result = judged(stats, Some(counts), CellStatus::Valid);
    Some(Ok((told, vec![Row { layer, phase: Phase::Decode, context, concurrency, result }])))
}

/// Failed requests, as the summary of errors counts them.
fn errors(file: &Value) -> u64 {
    let groups = at(file, &["error_summary"]).and_then(Value::as_array);
    groups.into_iter().flatten().filter_map(|group| count(group, &["count"])).sum()
}

fn stats(file: &Value, concurrency: u64) -> CellStats {
    let times = |key: &str| in_seconds(at(file, &[key])?);
    let total = positive(file, &["output_token_throughput", "avg"]);
    CellStats {
        total_tok_s: total,
        per_user_tok_s: total.map(|total| total / concurrency.max(1) as f64),
        per_request_tok_s: at(file, &["output_token_throughput_per_user"])
            .and_then(|metric| sample(metric).summary(1.0)),
        ttft_s: times("time_to_first_token"),
        // AIPerf's inter-token latency is (latency − TTFT) ÷ (tokens − 1) of each request: what others call TPOT.
        time_between_tokens_s: times("inter_token_latency"),
        chunk_gap_s: times("inter_chunk_latency"),
        e2e_latency_s: times("request_latency"),
        request_rate: positive(file, &["request_throughput", "avg"]),
        active_requests: positive(file, &["effective_concurrency", "avg"]),
        measured_for_s: positive(file, &["benchmark_duration", "avg"]),
        ..CellStats::default()
    }
}

fn sample(metric: &Value) -> Sample {
    let get = |key: &str| positive(metric, &[key]);
    Sample { mean: get("avg"), p50: get("p50"), p90: get("p90"), p99: get("p99"), min: get("min"), max: get("max") }
}

/// A time in the unit that it names; `None` for one that is not known, as guessing would be off by a thousand.
fn in_seconds(metric: &Value) -> Option<Summary> {
    let per_second = match text(metric, &["unit"])?.as_str() {
        "ns" => 1e9,
        "us" => 1e6,
        "ms" => 1e3,
        "s" | "sec" => 1.0,
        _ => return None,
    };
    sample(metric).summary(per_second)
}
