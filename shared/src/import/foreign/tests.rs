//! What becomes of other tools' files.

use std::path::Path;

use serde_json::json;

use super::*;
use crate::{import::read as read_file, units::Nanos};

/// One line per run and cell: what a page would show of it.
#[track_caller]
fn check(file: impl AsRef<[u8]>) -> String {
    let imports = read_file(file.as_ref()).expect("the file is read");
    imports.iter().map(|import| told_run(&import.run)).collect::<Vec<_>>().join("\n")
}

fn told_run(run: &RunState) -> String {
    let facts = run.facts.clone().unwrap_or_default();
    let mut lines = vec![format!("{} · {} · {}", run.tool, facts.model.unwrap_or_default(), run.plan.load())];
    lines.extend(facts.warnings);
    for cell in &run.cells {
        let Some(result) = cell.result() else { continue };
        let secs = |summary: Option<crate::stats::summary::Summary>| summary.map(|summary| summary.p50);
        let findings: Vec<&str> = result.findings.iter().map(|finding| finding.code.as_str()).collect();
        lines.push(format!(
            "{}: {} · {:?} tok/s · ttft {:?} tpot {:?} itl {:?} chunks {:?} e2e {:?} s · {:?} {}",
            cell.id,
            result.status.label(),
            result.stats.total_tok_s,
            secs(result.stats.ttft_s),
            secs(result.stats.time_between_tokens_s),
            secs(result.stats.itl_s),
            secs(result.stats.chunk_gap_s),
            secs(result.stats.e2e_latency_s),
            result.stats.requests.map(|requests| (requests.completed, requests.failed)),
            findings.join(","),
        ));
    }
    lines.join("\n")
}

fn serving(extra: &str) -> String {
    format!(
        "{{\"model_id\":\"m\",\"backend\":\"openai-chat\",\"num_prompts\":10,\"completed\":10,\"total_input_tokens\":10240,\
         \"total_output_tokens\":1000,\"duration\":5.0,\"request_throughput\":2.0,\"output_throughput\":200.0,\
         \"mean_ttft_ms\":20.0,\"median_ttft_ms\":18.0,\"median_tpot_ms\":9.0,\"median_itl_ms\":8.5{extra}}}"
    )
}

#[test]
fn serving_benchmarks_are_cells_by_how_requests_came() {
    let lines = [
        serving(",\"request_rate\":Infinity,\"max_concurrency\":4"),
        serving(
            ",\"request_rate\":\"inf\",\"max_concurrency\":8,\"accept_length\":2.5,\"total_output_tokens_retokenized\":1",
        ),
        serving(",\"request_rate\":0.5,\"max_concurrency\":null,\"completed\":1,\"failed\":9"),
        "{\"completed\":1,\"cut".to_owned(),
    ];
    insta::assert_snapshot!(check(lines.join("\n")), @"
vllm bench serve · m · burst:10
The last line of the file was cut off and is left out.
decode-1K-4: Valid · Some(200.0) tok/s · ttft Some(0.018) tpot Some(0.009) itl Some(0.0085) chunks None e2e None s · Some((10, 0)) 
decode-1K-8: Valid · Some(200.0) tok/s · ttft Some(0.018) tpot Some(0.009) itl None chunks Some(0.0085) e2e None s · Some((10, 0)) chunk_gaps
vllm bench serve · m · open:poisson
The last line of the file was cut off and is left out.
decode-10K-30: Failed: reason not told · Some(200.0) tok/s · ttft Some(0.018) tpot Some(0.009) itl Some(0.0085) chunks None e2e None s · Some((1, 9)) failed_requests
");
    insta::assert_snapshot!(check(format!("[{}]", serving(",\"completed\":0,\"failed\":10"))), @"
vllm bench serve · m · burst:10
decode-10K-10: Failed: reason not told · None tok/s · ttft None tpot None itl None chunks None e2e None s · Some((0, 10)) failed_requests
");
}

#[test]
fn a_matrix_has_windows_prefill_and_bursts() {
    let file = json!({
        "metadata": {"version": "0.4.17", "model": "m", "server": "127.0.0.1:5000", "concurrency_levels": [1, 8],
            "decode_mode": "duration", "duration_per_test": 30.0, "max_tokens": 2048},
        "prefill": {"8192": {"ttft_seconds": 1.0, "tok_per_sec": 8192.0}},
        "results": [
            {"concurrency": 1, "context_tokens": 0, "aggregate_tps": 60.0, "ttft_p50": 0.3, "request_latency_p50": 2.0,
                "inter_token_latency_p50": 0.016, "aggregate_source": "openai_continuous_usage", "num_completed": 0},
            {"concurrency": 8, "context_tokens": 8192, "aggregate_tps": 0.0, "num_errors": 8},
            {"concurrency": 8, "context_tokens": 0, "aggregate_tps": 300.0, "queue_fraction": 0.6, "underfilled": true,
                "capacity_limited": false, "aggregate_source": "openai_stream_chunks_fallback"},
        ],
        "burst_results": [{"concurrency": 8, "context_tokens": 0, "request_count_target": 40, "num_completed": 40,
            "aggregate_tps": 320.0, "request_latency_p50": 6.4}],
    });
    insta::assert_snapshot!(check(file.to_string()), @"
llm-inference-bench 0.4.17 · m · sustained
The file does not tell the prompt's length of some cells: they stand at context 1.
prefill-8K-1: Valid · Some(8192.0) tok/s · ttft Some(1.0) tpot None itl None chunks None e2e None s · None 
decode-1-1: Valid · Some(60.0) tok/s · ttft Some(0.3) tpot Some(0.016) itl None chunks None e2e None s · None 
decode-1-8: Under-filled · Some(300.0) tok/s · ttft None tpot None itl None chunks None e2e None s · None queue_seen,chunks_counted
decode-8K-8: Failed: reason not told · None tok/s · ttft None tpot None itl None chunks None e2e None s · Some((0, 8)) failed_requests
llm-inference-bench 0.4.17 · m · burst:40
The file does not tell the prompt's length of some cells: they stand at context 1.
decode-1-8: Valid · Some(320.0) tok/s · ttft None tpot None itl None chunks None e2e Some(6.4) s · Some((40, 0))
");
    let runs = read_file(file.to_string().as_bytes()).unwrap();
    let plan = &runs[0].run.plan;
    assert_eq!(
        (plan.duration(), plan.max_output_tokens(), plan.leave_out().to_string().as_str()),
        (Nanos::from_secs(30), 2_048, "8Kx1")
    );
    assert_eq!(plan.target().as_str(), "http://127.0.0.1:5000");
    // The same file has the same ids, so that nothing is stored twice.
    assert_eq!(read_file(file.to_string().as_bytes()).unwrap(), runs);
    assert_ne!(runs[0].run.id, runs[1].run.id);
}

#[test]
fn other_reports_are_read_in_their_own_units() {
    let aiperf = json!({
        "aiperf_version": "0.7.0", "was_cancelled": true,
        "input_config": {"endpoint": {"model_names": ["m"], "urls": ["http://a:1"], "api_key": "sk-1"},
            "loadgen": {"concurrency": 8}},
        "request_count": {"unit": "requests", "avg": 50.0},
        "time_to_first_token": {"unit": "ms", "avg": 60.0, "p50": 80.0},
        "inter_token_latency": {"unit": "us", "avg": 9000.0, "p50": 9500.0},
        "request_latency": {"unit": "fortnight", "avg": 1.0, "p50": 1.0},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 800.0},
        "input_sequence_length": {"unit": "tokens", "avg": 75.0},
    });
    insta::assert_snapshot!(check(aiperf.to_string()), @"
AIPerf 0.7.0 · m · burst:50
The run was cancelled before its end.
decode-75-8: Valid · Some(800.0) tok/s · ttft Some(0.08) tpot Some(0.0095) itl None chunks None e2e None s · Some((50, 0))
");
    let metric = |value: f64| json!({"successful": {"mean": value, "median": value, "percentiles": {"p99": value}}});
    let guidellm = |version: u64| {
        json!({
            "metadata": {"version": version, "guidellm_version": "0.4.0"},
            "args": {"target": "http://a:1", "model": "m"},
            "benchmarks": [{
                "config": {"strategy": {"type_": "concurrent", "streams": 8}}, "duration": 60.0,
                "metrics": {
                    "request_totals": {"successful": 84, "errored": 2, "incomplete": 8},
                    "prompt_token_count": metric(256.0), "output_tokens_per_second": metric(180.0),
                    "time_to_first_token_ms": metric(120.0), "inter_token_latency_ms": metric(39.0),
                    "request_latency": metric(5.2),
                },
            }],
        })
        .to_string()
    };
    insta::assert_snapshot!(check(guidellm(1)), @"
guidellm 0.4.0 · m · burst:94
decode-256-8: Valid · Some(180.0) tok/s · ttft Some(0.12) tpot Some(0.039) itl None chunks None e2e Some(5.2) s · Some((84, 2)) failed_requests
");
    assert_eq!(check(guidellm(2)), check(guidellm(1)));
    insta::assert_snapshot!(read_file(guidellm(3).as_bytes()).unwrap_err(), @"the file is of guidellm 0.4.0 in layout 3, which is not read here: update Speedmatrix, or export an older layout");
    let empty =
        guidellm(2).replace(&guidellm(2)[guidellm(2).find("[{").unwrap()..guidellm(2).rfind("}]").unwrap() + 2], "[]");
    insta::assert_snapshot!(read_file(empty.as_bytes()).unwrap_err(), @"the file is of guidellm 0.4.0 and holds no measurement: choose the result of a run that measured something");
}

#[test]
fn impossible_sizes_are_said_and_not_shown() {
    let wrong = |from: &str, to: &str| {
        let text = serving(",\"max_concurrency\":4").replace(from, to);
        read_file(text.as_bytes()).map(|runs| told_run(&runs[0].run)).map_err(|error| error.to_string())
    };
    insta::assert_debug_snapshot!([
        wrong("10240", "1e300"),
        wrong("\"max_concurrency\":4", "\"max_concurrency\":5000000000"),
        wrong("\"output_throughput\":200.0", "\"output_throughput\":-1"),
        wrong("18.0", "\"x\""),
    ], @r#"
[
    Err(
        "the file holds a run, but is damaged (a cell of it has an impossible size): export the run again",
    ),
    Err(
        "the file holds a run, but is damaged (a cell of it has an impossible size): export the run again",
    ),
    Ok(
        "vllm bench serve · m · burst:10\ndecode-1K-4: Failed: reason not told · None tok/s · ttft None tpot None itl None chunks None e2e None s · Some((10, 0)) ",
    ),
    Ok(
        "vllm bench serve · m · burst:10\ndecode-1K-4: Valid · Some(200.0) tok/s · ttft None tpot Some(0.009) itl Some(0.0085) chunks None e2e None s · Some((10, 0)) ",
    ),
]
"#);
}

#[test]
fn words_that_json_lacks_are_null_outside_of_texts() {
    assert_eq!(
        lenient(r#"{"a":Infinity,"b":-Infinity,"c":NaN,"d":"NaN \" NaN"}"#),
        r#"{"a":null,"b":null,"c":null,"d":"NaN \" NaN"}"#
    );
    assert_eq!(lenient("\"NaN"), "\"NaN");
}

#[test]
fn more_measurements_than_a_run_has_cells_are_refused() {
    let record = |n: usize| {
        let (level, tokens) = (n % 32 + 1, (n / 32 + 1) * 10_240);
        serving(&format!(",\"request_rate\":\"inf\",\"max_concurrency\":{level},\"total_input_tokens\":{tokens}"))
    };
    let lines = |most: usize| (0..most).map(record).collect::<Vec<_>>().join("\n");
    assert!(read_file(lines(200).as_bytes()).is_ok());
    let tool = "vllm bench serve".to_owned();
    assert_eq!(read_file(lines(MAX_CELLS + 1).as_bytes()), Err(ImportError::TooManyCells { tool }));
    let many = json!({"metadata": {"concurrency_levels": []}, "results": vec![0; 1_000_000]});
    let tool = "llm-inference-bench".to_owned();
    assert_eq!(read_file(many.to_string().as_bytes()), Err(ImportError::TooManyCells { tool }));
}

/// Real files, where they lie beside the repository.
#[test]
fn real_files_of_other_tools_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/samples");
    if !folder.is_dir() {
        println!("skipped: {} is not here", folder.display());
        return;
    }
    let sizes = |name: &str| {
        let imports = read_file(&std::fs::read(folder.join(name)).unwrap()).unwrap();
        let count = |phase| imports[0].run.cells_of(phase).filter(|cell| cell.result().is_some()).count();
        (imports.len(), count(Phase::Decode), count(Phase::Prefill))
    };
    assert_eq!(sizes("lib-nvfp4-mtp.json"), (1, 40, 5));
    assert_eq!(sizes("lib-nvfp4-nomtp.json"), (1, 40, 5));
    assert_eq!(sizes("lib-0.4.17-glm-dcp1-mtp1.json"), (1, 12, 0));
    assert_eq!(sizes("guidellm-v2.json"), (1, 2, 0));
    let unknown = std::fs::read(folder.join("llama-benchy.json")).unwrap();
    assert_eq!(read_file(&unknown), Err(ImportError::Foreign));
}
