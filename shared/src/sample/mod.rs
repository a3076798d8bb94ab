//! The read-only sample run: one published page as data, so that the first screen is never empty.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    event::{Envelope, Origin, RunEvent, RunOutcome},
    id::{CellId, Phase, RunId},
    plan::{PlanDraft, RunPlan},
    state::RunState,
    stats::{
        cell::{CellResult, CellStats, CellStatus, RequestCounts},
        summary::Summary,
    },
    target::{EngineFacts, HardwareFacts, Limits, TargetFacts},
    units::{Concurrency, Context, Nanos},
};

/// The page, field by field as it was published.
const REFERENCE: &str = include_str!("reference.json");

/// A plan needs an address and the page names none: this is the port of its launch command.
const REFERENCE_TARGET: &str = "http://localhost:8000";

/// The context limit in the page's launch command (`--max-model-len`), tokens.
const REFERENCE_MAX_MODEL_LEN: u64 = 1_048_576;

#[derive(Deserialize)]
struct Page {
    title: String,
    hardware: PageHardware,
    engine: EngineFacts,
    run: PageRun,
    launch_command: String,
    rows: Vec<PageRow>,
}

#[derive(Deserialize)]
struct PageHardware {
    r#type: String,
    gpu: String,
    gpu_count: u32,
    vram_gb_total: f64,
    vram_gb_each: f64,
    os: String,
}

#[derive(Deserialize)]
struct PageRun {
    served_model: String,
    model: String,
    revision: String,
    benchmark_tool: String,
    decode_test: String,
    prefill_mode: String,
    time_per_measurement_s: u64,
    max_output_tokens: u32,
}

#[derive(Deserialize)]
struct PageRow {
    phase: Phase,
    context_tokens: Context,
    concurrency: Concurrency,
    status: PageStatus,
    total_tok_s: Option<f64>,
    per_request_tok_s: Option<f64>,
    ttft_ms: Option<f64>,
    time_between_tokens_ms: Option<f64>,
    average_active_requests: Option<f64>,
    completed_requests: u64,
    output_tokens: Option<u64>,
    measured_for_s: Option<f64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PageStatus {
    Valid,
    RequestsQueued,
}

/// The reference page as a finished run. Its start is unknown (0, shown as "—"), and so is every n.
pub fn reference() -> RunState {
    let id: RunId = RunId::REFERENCE.parse().expect("the reference's own id is valid");
    RunState::fold(id, &reference_events()).expect("its events are numbered from 0").expect("it has events")
}

/// The facts of the reference run, as if it had been measured here.
pub fn reference_events() -> Vec<Envelope> {
    let page: Page = serde_json::from_str(REFERENCE).expect("the committed page is read by a test");
    let started = RunEvent::RunStarted { plan: plan(&page), started_unix_ms: 0, tool: page.run.benchmark_tool.clone() };
    let probed = RunEvent::Probed { facts: Box::new(facts(&page)), origin: Origin::Imported };
    let finished = page.rows.iter().map(|row| RunEvent::CellFinished {
        cell: CellId { phase: row.phase, context: row.context_tokens, concurrency: row.concurrency },
        result: Box::new(result(row)),
    });
    let end = RunEvent::RunFinished { outcome: RunOutcome::Finished };
    let events = [started, probed].into_iter().chain(finished).chain([end]);
    events.zip(0..).map(|(event, seq)| Envelope { seq, at: Nanos(0), event }).collect()
}

fn plan(page: &Page) -> RunPlan {
    let rows = |phase| page.rows.iter().filter(move |row| row.phase == phase);
    let contexts = |phase| rows(phase).map(|row| row.context_tokens.to_string()).collect::<Vec<_>>().join(",");
    let levels: Vec<String> = rows(Phase::Decode).map(|row| row.concurrency.to_string()).collect();
    let draft = PlanDraft {
        target: REFERENCE_TARGET.to_owned(),
        model: page.run.served_model.clone(),
        name: page.title.clone(),
        contexts: contexts(Phase::Decode),
        concurrency: levels.join(","),
        // The page's prefill rows came from warm-up, but one of them (1024K) has no decode row: only a list says that.
        prefill_contexts: contexts(Phase::Prefill),
        duration: page.run.time_per_measurement_s.to_string(),
        max_output: page.run.max_output_tokens.to_string(),
        ..PlanDraft::default()
    };
    RunPlan::try_from(draft).expect("the committed page makes a valid plan: a test reads it")
}

fn facts(page: &Page) -> TargetFacts {
    let hardware = &page.hardware;
    TargetFacts {
        served_model: Some(page.run.served_model.clone()),
        model: Some(page.run.model.clone()),
        revision: Some(page.run.revision.clone()),
        models: vec![page.run.served_model.clone()],
        engine: page.engine.clone(),
        hardware: HardwareFacts {
            kind: Some(hardware.r#type.clone()),
            gpu: Some(hardware.gpu.clone()),
            gpu_count: Some(hardware.gpu_count),
            vram_total_gb: Some(hardware.vram_gb_total),
            vram_each_gb: Some(hardware.vram_gb_each),
            os: Some(hardware.os.clone()),
            ..HardwareFacts::default()
        },
        limits: Limits { max_model_len: Some(REFERENCE_MAX_MODEL_LEN), ..Limits::default() },
        launch_command: Some(page.launch_command.clone()),
        published: BTreeMap::from([
            ("Decode test".to_owned(), page.run.decode_test.clone()),
            ("Prefill mode".to_owned(), page.run.prefill_mode.clone()),
        ]),
        ..TargetFacts::default()
    }
}

/// Milliseconds as the seconds with the same decimal digits (7.1 → 0.0071): dividing gives 0.007099999….
fn secs(millis: f64) -> Option<f64> {
    format!("{millis}e-3").parse().ok()
}

fn result(row: &PageRow) -> CellResult {
    let ttft_s = row.ttft_ms.and_then(secs).map(Summary::point);
    let decode = row.phase == Phase::Decode;
    let stats = CellStats {
        total_tok_s: row.total_tok_s,
        per_request_tok_s: row.per_request_tok_s.map(Summary::point),
        per_user_tok_s: row.total_tok_s.filter(|_| decode).map(|total| total / f64::from(row.concurrency.get())),
        ttft_s,
        ttft_cold_s: ttft_s.filter(|_| !decode),
        time_between_tokens_s: row.time_between_tokens_ms.and_then(secs).map(Summary::point),
        requests: Some(RequestCounts { completed: row.completed_requests, ..RequestCounts::default() }),
        active_requests: row.average_active_requests,
        output_tokens: row.output_tokens,
        measured_for_s: row.measured_for_s,
        ..CellStats::default()
    };
    let verdict = match row.status {
        PageStatus::Valid => CellStatus::Valid,
        PageStatus::RequestsQueued => CellStatus::RequestsQueued,
    };
    CellResult { status: verdict, stats, findings: Vec::new(), failures: Vec::new(), rules: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Cell;

    #[test]
    fn every_row_of_the_page_is_a_finished_cell() {
        let state = reference();
        assert_eq!(state.id.as_str(), "reference");
        assert_eq!(state.title(), "DeepSeek-V4-Flash-DSpark on H200 NVL 141GB ×2");
        assert_eq!(state.progress(), (73, 73));
        assert!(state.cells.iter().all(|cell| cell.result().is_some()));
        let queued: Vec<String> =
            state.cells.iter().filter(|c| c.status_label() == "Requests queued").map(|c| c.id.to_string()).collect();
        assert_eq!(queued, ["decode-1019K-2", "decode-1019K-128"]);
        let output: u64 = state.cells.iter().filter_map(Cell::result).filter_map(|r| r.stats.output_tokens).sum();
        assert_eq!(output, 2_893_461);
    }
}
