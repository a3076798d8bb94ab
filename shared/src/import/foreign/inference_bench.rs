//! llm-inference-bench, the tool of the reference page: a matrix, prefill rows, and from 0.4 a second layer of bursts.
//! Times in seconds. The oldest files have no version and take their rates from the server's own gauge.

use serde_json::Value;

use super::{
    Layer, Row, Told, bounded,
    field::{Sample, at, count, number, positive, text},
    judged,
};
use crate::{
    finding::Finding,
    format,
    id::Phase,
    import::ImportError,
    stats::{
        cell::{CellResult, CellStats, CellStatus, GaugeSummary, RequestCounts},
        summary::Summary,
    },
    target::{EngineFacts, Limits},
    trace::TokenSource,
};

/// Above this share of time with waiting requests they count as queued (method §5).
const QUEUED_FROM: f64 = 0.05;

pub(super) fn read(file: &Value) -> Option<Result<(Told, Vec<Row>), ImportError>> {
    let results = at(file, &["results"])?.as_array()?;
    at(file, &["metadata", "concurrency_levels"])?;
    let prefill = at(file, &["prefill"]).and_then(Value::as_object);
    let bursts = at(file, &["burst_results"]).and_then(Value::as_array);
    let windows = results.iter().map(|row| decode(row, Layer::Sustained));
    let prefill = prefill.into_iter().flatten().map(|(context, row)| prefill_row(context, row));
    let bursts = bursts.into_iter().flatten().map(|row| decode(row, burst(row)));
    Some(Ok((told(file), bounded(windows.chain(prefill).chain(bursts)))))
}

fn told(file: &Value) -> Told {
    let of_run = |key: &str| text(file, &["metadata", key]);
    let version = of_run("version");
    let is_old = version.is_none();
    let oldest = "The file is of the oldest layout: rates are the server's own gauge, not counted tokens.";
    let words = [
        (
            "Decode test",
            of_run("decode_mode").map(|mode| if mode == "duration" { "Fixed duration".into() } else { mode }),
        ),
        ("Prefill mode", of_run("prefill_mode").map(|mode| mode.replace('_', " "))),
        ("Started", of_run("timestamp")),
    ];
    let published = words.into_iter().filter_map(|(label, words)| Some((label.to_owned(), words?)));
    Told {
        tool: version
            .map_or_else(|| "llm-inference-bench".to_owned(), |version| format!("llm-inference-bench {version}")),
        target: of_run("server").filter(|server| !server.contains('@')),
        model: of_run("model"),
        engine: EngineFacts { engine: of_run("engine"), ..EngineFacts::default() },
        limits: Limits {
            kv_tokens: positive(file, &["metadata", "max_total_tokens"]).map(|tokens| tokens as u64),
            ..Limits::default()
        },
        duration_s: positive(file, &["metadata", "duration_per_test"]),
        max_output: positive(file, &["metadata", "max_tokens"]).map(|tokens| tokens as u64),
        published: published.collect(),
        warnings: is_old.then(|| oldest.to_owned()).into_iter().collect(),
        ..Told::default()
    }
}

fn burst(row: &Value) -> Layer {
    Layer::Burst {
        requests: count(row, &["request_count_target"]).or_else(|| count(row, &["num_completed"])).unwrap_or(1),
    }
}

fn prefill_row(context: &str, row: &Value) -> Row {
    let seconds = positive(row, &["ttft_seconds"]);
    let ttft_s = seconds.map(Summary::point);
    let stats = CellStats {
        total_tok_s: positive(row, &["tok_per_sec"]),
        ttft_s,
        ttft_cold_s: ttft_s,
        prompt_tokens: positive(row, &["prompt_tokens"]).map(|tokens| tokens as u64),
        ..CellStats::default()
    };
    let result = judged(stats, None, CellStatus::Valid);
    let context = context.parse().ok();
    Row { layer: Layer::Sustained, phase: Phase::Prefill, context, concurrency: 1, result }
}

fn decode(row: &Value, layer: Layer) -> Row {
    let concurrency = count(row, &["concurrency"]).unwrap_or_default();
    let is_window = layer == Layer::Sustained;
    let failed = count(row, &["num_errors"]).unwrap_or_default();
    // In a window `num_completed` counts workers, which stand for requests only where some failed and no more is known.
    let workers = count(row, &["num_completed"]).filter(|_| !is_window || failed > 0);
    let completed = count(row, &["completed_request_count"]).filter(|_| is_window).or(workers);
    let started = count(row, &["request_count"]).unwrap_or_default();
    let counts = completed.map(|completed| RequestCounts { started, completed, cut: 0, failed });
    let counts = counts.or_else(|| (failed > 0).then(|| RequestCounts { failed, ..RequestCounts::default() }));
    let mut result = judged(stats(row, concurrency, layer), counts, status(row));
    result.findings.extend(findings(row, &result));
    let context = at(row, &["context_tokens"]).and_then(Value::as_f64);
    Row { layer, phase: Phase::Decode, context, concurrency, result }
}

fn status(row: &Value) -> CellStatus {
    let is = |key: &str| at(row, &[key]).and_then(Value::as_bool);
    let waited = positive(row, &["queue_fraction"]).unwrap_or_default();
    match (is("warmup_timed_out"), is("capacity_limited"), is("underfilled")) {
        (Some(true), ..) => CellStatus::RampIncomplete,
        (_, Some(true), _) => CellStatus::RequestsQueued,
        (.., Some(true)) => CellStatus::UnderFilled,
        // Before there were marks, the share of time with a queue is what is known.
        (_, None, _) if waited > QUEUED_FROM => CellStatus::RequestsQueued,
        _ => CellStatus::Valid,
    }
}

fn stats(row: &Value, concurrency: u64, layer: Layer) -> CellStats {
    let sample = |what: &str| {
        let get = |which: &str| positive(row, &[&format!("{what}_{which}")]);
        let sample =
            Sample { mean: get("avg"), p50: get("p50"), p90: get("p90"), p99: get("p99"), min: None, max: None };
        sample.summary(1.0)
    };
    let total = positive(row, &["aggregate_tps"]);
    let gauge = |mean: &str, max: &str| {
        let mean = number(row, &[mean])?;
        Some(GaugeSummary { n: 1, mean, max: number(row, &[max]).unwrap_or(mean) })
    };
    CellStats {
        total_tok_s: total,
        per_request_tok_s: sample("output_tps_per_user"),
        per_user_tok_s: total.map(|total| total / concurrency.max(1) as f64),
        ttft_s: sample("ttft"),
        time_between_tokens_s: sample("inter_token_latency"),
        chunk_gap_s: sample("chunk_inter_token_latency"),
        // In a window most requests are cut, and what completes is the short ones: only a burst has latencies.
        e2e_latency_s: sample("request_latency").filter(|_| layer != Layer::Sustained),
        active_requests: positive(row, &["avg_running_reqs"]),
        output_tokens: count(row, &["client_output_tokens"]).or_else(|| count(row, &["total_tokens"])),
        measured_for_s: positive(row, &["measurement_seconds"]),
        token_source: text(row, &["aggregate_source"]).map(|source| token_source(&source)),
        prompt_tokens: positive(row, &["input_seq_len_avg"]).map(|tokens| tokens.round() as u64),
        engine_running: gauge("avg_running_reqs", "max_running_reqs"),
        engine_waiting: gauge("avg_queue_reqs", "max_queue_reqs"),
        ..CellStats::default()
    }
}

fn token_source(source: &str) -> TokenSource {
    if source.contains("chunk") {
        TokenSource::Chunks
    } else if source.contains("continuous") {
        TokenSource::ServerPerChunk
    } else {
        TokenSource::ServerPerRequest
    }
}

fn findings(row: &Value, result: &CellResult) -> Vec<Finding> {
    let waited = positive(row, &["queue_fraction"]).filter(|_| result.status != CellStatus::RequestsQueued);
    let waited = waited.map(|share| {
        let share = format::percent(Some(share));
        Finding::warning("queue_seen", format!("Requests waited for {share} of the window, says the file."))
    });
    let chunks = (result.stats.token_source == Some(TokenSource::Chunks)).then(|| {
        let text = "Chunks were counted, as the server told no tokens: a lower bound where chunks hold several.";
        Finding::warning("chunks_counted", text)
    });
    waited.into_iter().chain(chunks).collect()
}
