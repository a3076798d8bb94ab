//! The cases about results of other tools: the file through the importer, what it told against what is expected.

use std::{fs, io, path::Path};

use serde_json::{Map, Value, json};
use speedmatrix_shared::{
    export,
    id::Phase,
    import::{self, Import, ImportError},
    plan::Load,
    state::{Cell, RunState},
    stats::{
        cell::{CellResult, CellStatus},
        summary::Summary,
    },
    trace::TokenSource,
};

use super::{Verdict, calc::Wrong};

/// Checks one case; `path` is any of its files.
pub(crate) fn check(id: &str, path: &Path) -> io::Result<Verdict> {
    let folder = path.parent().unwrap_or(path);
    let case: Value = serde_json::from_slice(&fs::read(folder.join(format!("{id}.expect.json")))?)?;
    let bytes = fs::read(folder.join(case["file"].as_str().unwrap_or_default()))?;
    let expect = case["expect"].as_object().cloned().unwrap_or_default();
    let mut wrong = Wrong::default();
    match import::read(&bytes) {
        Ok(imports) => runs(&imports, &expect, &mut wrong),
        Err(error) => refusal(&error, &expect, &mut wrong),
    }
    Ok(if wrong.0.is_empty() { Verdict::Ok(String::new()) } else { Verdict::Failed(wrong.0) })
}

fn refusal(error: &ImportError, expect: &Map<String, Value>, wrong: &mut Wrong) {
    let word = match error {
        ImportError::Foreign => "unknown_format",
        ImportError::ForeignVersion { .. } | ImportError::Newer { .. } => "unsupported_version",
        _ => "broken",
    };
    wrong.same("error", word, expect.get("error").unwrap_or(&Value::Null));
    let part = expect.get("message_contains").and_then(Value::as_str).unwrap_or_default();
    wrong.must(error.to_string().contains(part).then_some(()), &format!("{part} is not in \"{error}\""));
}

fn results(run: &RunState, phase: Phase) -> impl Iterator<Item = (&Cell, &CellResult)> {
    run.cells_of(phase).filter_map(|cell| Some((cell, cell.result()?)))
}

fn is_burst(import: &Import) -> bool {
    matches!(import.run.plan.load(), Load::Burst { .. })
}

fn runs(imports: &[Import], expect: &Map<String, Value>, wrong: &mut Wrong) {
    // Where a file has both, its windows are its cells, and its bursts are counted apart.
    let windows = imports.iter().find(|import| !is_burst(import));
    let bursts = imports.iter().find(|import| is_burst(import));
    let Some(main) = windows.or(bursts) else { return wrong.must(None, "there is no run") };
    let cells: Vec<(&Cell, &CellResult)> = results(&main.run, Phase::Decode).collect();
    for (key, wanted) in expect {
        match key.as_str() {
            "burst_cells" => {
                let count = bursts.map_or(0, |bursts| results(&bursts.run, Phase::Decode).count());
                wrong.same(key, count, wanted);
            }
            "must_not_contain" => secrets(imports, wanted, wrong),
            "warnings" => {
                let warnings = main.run.facts.iter().flat_map(|facts| &facts.warnings);
                let is_told = warnings.clone().any(|text| text.contains("cut off"));
                wrong.must(is_told.then_some(()), &format!("{wanted} is not told"));
            }
            "latency_ms" => latency(&cells, bursts, wanted, wrong),
            _ => of_run(key, wanted, &main.run, &cells, wrong),
        }
    }
}

fn of_run(key: &str, wanted: &Value, run: &RunState, cells: &[(&Cell, &CellResult)], wrong: &mut Wrong) {
    let each = |get: &dyn Fn(&Cell, &CellResult) -> Value| match (wanted, cells) {
        (Value::Array(_), _) => cells.iter().map(|(cell, result)| get(cell, result)).collect(),
        (_, [(cell, result), ..]) => get(cell, result),
        _ => Value::Null,
    };
    let got = match key {
        "tool" => json!(tool(&run.tool)),
        "model" => json!(run.facts.as_ref().and_then(|facts| facts.model.clone())),
        "cells" => json!(cells.len()),
        "concurrency" => each(&|cell, _| json!(cell.id.concurrency.get())),
        "output_tok_s" => each(&|_, result| json!(result.stats.total_tok_s)),
        "request_rate" => json!(matches!(run.plan.load(), Load::Burst { .. }).then_some("inf")),
        "mean_input_tokens" => each(&|_, result| json!(result.stats.prompt_tokens)),
        "mean_output_tokens" => each(&|_, result| {
            let requests = result.stats.requests.map(|requests| requests.completed);
            json!(result.stats.output_tokens.zip(requests).map(|(tokens, requests)| tokens / requests.max(1)))
        }),
        "cell_valid" => each(&|_, result| json!(result.status == CellStatus::Valid)),
        "comparable" => each(&|_, result| json!(!result.status.is_failed())),
        "chunk_itl_suspect" => each(&|_, result| json!(result.stats.chunk_gap_s.is_some())),
        "ttft_ms" => return part(key, wanted, cells, |result| result.stats.ttft_s, wrong),
        // Both are per request, (latency − TTFT) ÷ (tokens − 1): what is called TPOT here.
        "tpot_ms" | "itl_ms" => return part(key, wanted, cells, |result| result.stats.time_between_tokens_s, wrong),
        "requests" => return requests(wanted, cells, wrong),
        "flags" | "token_source" => return by_cell(wanted, cells, wrong),
        "prefill_tok_s" => return prefill(run, wanted, wrong),
        _ => return wrong.must(None, &format!("{key} is not checked")),
    };
    wrong.same(key, got, wanted);
}

fn tool(name: &str) -> &'static str {
    match name.split(' ').next() {
        Some("vllm") => "vllm-bench-serve",
        Some("SGLang") => "sglang-bench-serving",
        Some("AIPerf") => "aiperf",
        Some("guidellm") => "guidellm",
        Some("llm-inference-bench") => "llm-inference-bench",
        _ => "unknown",
    }
}

/// The named parts of a time's summary in the first cell, ms.
fn part(
    key: &str,
    wanted: &Value,
    cells: &[(&Cell, &CellResult)],
    get: fn(&CellResult) -> Option<Summary>,
    wrong: &mut Wrong,
) {
    let summary = cells.first().and_then(|(_, result)| get(result));
    for (name, wanted) in wanted.as_object().into_iter().flatten() {
        let value = match name.as_str() {
            "mean" => summary.map(|summary| summary.mean),
            "p50" => summary.map(|summary| summary.p50),
            "p90" => summary.and_then(|summary| summary.p90),
            _ => summary.and_then(|summary| summary.p99),
        };
        wrong.number(&format!("{key}.{name}"), value.map(|secs| secs * 1e3), wanted);
    }
}

fn latency(cells: &[(&Cell, &CellResult)], bursts: Option<&Import>, wanted: &Value, wrong: &mut Wrong) {
    let burst: Vec<_> = bursts.into_iter().flat_map(|import| results(&import.run, Phase::Decode)).collect();
    let first = |cells: &[(&Cell, &CellResult)]| cells.first().and_then(|(_, result)| result.stats.e2e_latency_s);
    for (name, wanted) in wanted.as_object().into_iter().flatten() {
        let value = match name.as_str() {
            "sustained_p50" => first(cells).map(|summary| summary.p50),
            "burst_p50" => first(&burst).map(|summary| summary.p50),
            _ => first(cells).map(|summary| summary.mean),
        };
        wrong.number(&format!("latency.{name}"), value.map(|secs| secs * 1e3), wanted);
    }
}

fn requests(wanted: &Value, cells: &[(&Cell, &CellResult)], wrong: &mut Wrong) {
    let counts = cells.first().and_then(|(_, result)| result.stats.requests);
    for (name, wanted) in wanted.as_object().into_iter().flatten() {
        let count = counts.map(|counts| if name == "ok" { counts.completed } else { counts.failed });
        wrong.same(name, json!(count), wanted);
    }
}

/// `32@65536`: requests at once at a context of the file, whose 0 stands at 1 here.
fn by_cell(wanted: &Value, cells: &[(&Cell, &CellResult)], wrong: &mut Wrong) {
    for (name, wanted) in wanted.as_object().into_iter().flatten() {
        let found = cells.iter().find(|(cell, _)| {
            let context = cell.id.context.tokens();
            format!("{}@{}", cell.id.concurrency, if context == 1 { 0 } else { context }) == *name
        });
        let got = found.map(|(_, result)| match (wanted, result.status) {
            (Value::Array(_), CellStatus::UnderFilled) => json!(["underfilled"]),
            (Value::Array(_), CellStatus::RequestsQueued) => json!(["capacity_limited"]),
            (Value::Array(_), _) => json!([]),
            _ => json!((result.stats.token_source == Some(TokenSource::Chunks)).then_some("chunks")),
        });
        wrong.same(name, json!(got), wanted);
    }
}

fn prefill(run: &RunState, wanted: &Value, wrong: &mut Wrong) {
    for (context, wanted) in wanted.as_object().into_iter().flatten() {
        let mut rows = results(run, Phase::Prefill);
        let row = rows.find(|(cell, _)| cell.id.context.tokens().to_string() == *context);
        wrong.number(&format!("prefill {context}"), row.and_then(|(_, result)| result.stats.total_tok_s), wanted);
    }
}

fn secrets(imports: &[Import], wanted: &Value, wrong: &mut Wrong) {
    for import in imports {
        let text = export::json::render(&import.run);
        let secrets = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
        for secret in secrets.filter(|secret| text.contains(secret)) {
            wrong.must(None, &format!("the run holds {secret}"));
        }
    }
}
