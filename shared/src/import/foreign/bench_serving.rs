//! `vllm bench serve` and SGLang's `bench_serving`: one flat object per measurement, alone, in a list, or one per line.
//! Throughput in tokens per second, times in milliseconds, lengths as totals over all requests.

use serde_json::Value;

use super::{
    Layer, Row, Spread, Told, bounded,
    field::{Sample, count, number, positive, text},
    judged,
};
use crate::{
    finding::Finding,
    id::Phase,
    import::ImportError,
    stats::cell::{CellResult, CellStats, CellStatus, RequestCounts},
    target::EngineFacts,
};

/// Milliseconds in a second.
const MILLIS: f64 = 1e3;
/// Fields that all versions of both tools write.
const SIGNS: [&str; 4] = ["completed", "request_throughput", "output_throughput", "mean_ttft_ms"];

pub(super) fn read(file: &Value) -> Option<Result<(Told, Vec<Row>), ImportError>> {
    let records: Vec<&Value> = match file {
        Value::Array(records) => records.iter().collect(),
        one => vec![one],
    };
    let first = *records.first()?;
    let is_record = |record: &&Value| SIGNS.iter().all(|sign| record.get(sign).is_some());
    records.iter().all(is_record).then(|| Ok((told(first), bounded(records.into_iter().map(row)))))
}

/// SGLang's tool counts the answer's tokens a second time; vLLM's names the tokenizer.
fn is_sglang(record: &Value) -> bool {
    record.get("total_output_tokens_retokenized").is_some()
}

fn told(record: &Value) -> Told {
    let (tool, engine) =
        if is_sglang(record) { ("SGLang bench_serving", "sglang") } else { ("vllm bench serve", "vllm") };
    let length = text(record, &["dataset_name"]).map(|name| ("Prompts".to_owned(), name));
    let date = text(record, &["date"]).map(|date| ("Started".to_owned(), date));
    // Both measure other engines too; only then does the backend not begin with their own name or the protocol's.
    let backend = text(record, &["backend"]).unwrap_or_default();
    let is_own = ["openai", "vllm", "sglang"].iter().any(|start| backend.starts_with(start));
    Told {
        tool: tool.to_owned(),
        model: text(record, &["model_id"]),
        engine: EngineFacts { engine: is_own.then(|| engine.to_owned()).or(Some(backend)), ..EngineFacts::default() },
        max_output: positive(record, &["random_output_len"]).map(|tokens| tokens as u64),
        published: length.into_iter().chain(date).collect(),
        ..Told::default()
    }
}

fn row(record: &Value) -> Row {
    let completed = count(record, &["completed"]).unwrap_or_default();
    let asked = count(record, &["num_prompts"]).unwrap_or(completed);
    let failed = count(record, &["failed"]).unwrap_or_else(|| asked.saturating_sub(completed));
    let counts = RequestCounts { started: completed + failed, completed, cut: 0, failed };
    let per_request = |total| Some(positive(record, &[total])? / completed.max(1) as f64);
    let (layer, concurrency) = load(record, asked.max(completed));
    let context = per_request("total_input_tokens").or_else(|| positive(record, &["random_input_len"]));
    let stats = stats(record, concurrency);
    let stats = CellStats { prompt_tokens: context.map(|tokens| tokens.round() as u64), ..stats };
    let mut result = judged(stats, Some(counts), CellStatus::Valid);
    result.findings.extend(chunk_finding(&result));
    Row { layer, phase: Phase::Decode, context, concurrency, result }
}

fn load(record: &Value, requests: u64) -> (Layer, u64) {
    match positive(record, &["request_rate"]) {
        // At random whatever the burstiness, which only says how uneven.
        Some(per_s) => (Layer::Open(Spread::Poisson), (per_s * 60.0).round().max(1.0) as u64),
        // No rate is "inf": as fast as the limit of requests at once lets them.
        None => (Layer::Burst { requests }, count(record, &["max_concurrency"]).filter(|c| *c > 0).unwrap_or(requests)),
    }
}

fn stats(record: &Value, concurrency: u64) -> CellStats {
    let times = |what: &str| {
        let get = |which: &str| positive(record, &[&format!("{which}_{what}_ms")]);
        let sample =
            Sample { mean: get("mean"), p50: get("median"), p90: get("p90"), p99: get("p99"), min: None, max: None };
        sample.summary(MILLIS)
    };
    let total = positive(record, &["output_throughput"]);
    let accepted =
        positive(record, &["accept_length"]).or_else(|| positive(record, &["spec_decode_acceptance_length"]));
    // The gaps are between chunks: with several tokens in one they are not times between tokens.
    let is_per_chunk = accepted.is_some_and(|tokens| tokens > 1.0);
    let gaps = times("itl");
    CellStats {
        total_tok_s: total,
        per_user_tok_s: total.map(|total| total / concurrency.max(1) as f64),
        ttft_s: times("ttft"),
        time_between_tokens_s: times("tpot"),
        itl_s: gaps.filter(|_| !is_per_chunk),
        chunk_gap_s: gaps.filter(|_| is_per_chunk),
        e2e_latency_s: times("e2el").or_else(|| times("e2e_latency")),
        request_rate: positive(record, &["request_throughput"]),
        goodput: number(record, &["request_goodput"]),
        active_requests: positive(record, &["concurrency"]),
        output_tokens: count(record, &["total_output_tokens"]).filter(|tokens| *tokens > 0),
        measured_for_s: positive(record, &["duration"]),
        acceptance_length: accepted,
        ..CellStats::default()
    }
}

fn chunk_finding(result: &CellResult) -> Option<Finding> {
    let tokens = result.stats.acceptance_length.filter(|_| result.stats.chunk_gap_s.is_some())?;
    let text = format!("The engine accepted {tokens:.1} tokens per step, so the file's ITL is the gap between chunks.");
    Some(Finding::info("chunk_gaps", text))
}
