//! Results of other tools as runs. Each tool has a file that reads its layout into [`Row`]s; this one makes runs of them.
//! Such a run claims no more than its file does: no interval, no n of samples, no rules of ours.

mod aiperf;
mod bench_serving;
mod field;
mod guidellm;
mod inference_bench;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Import, ImportError};
use crate::{
    event::{Envelope, Origin, RunEvent, RunOutcome},
    finding::Finding,
    id::{CellId, Phase, RunId},
    label::Labels,
    plan::{Arrivals, LeaveOut, Load, MAX_CELLS, PlanDraft, RunPlan},
    state::RunState,
    stats::cell::{CellResult, CellStats, CellStatus, RequestCounts},
    target::{EngineFacts, HardwareFacts, Limits, TargetFacts},
    trace::FailureKind,
    units::{Concurrency, Context, Nanos},
};

pub(super) use field::lenient;

/// A plan needs an address, and some files name none; names that end so are nobody's (RFC 2606).
const NO_TARGET: &str = "http://imported.invalid";
/// Prompts within this ratio of each other are one context (method §6): sampled lengths scatter.
const SAME_CONTEXT: f64 = 1.02;
/// Above this share of failed requests a cell has no numbers to stand on (method §5).
const MAX_FAILED_SHARE: f64 = 0.05;
/// Longest text that is taken from a file, in characters.
const MAX_TEXT_CHARS: usize = 500;

/// What a file tells about all its measurements.
#[derive(Debug, Default)]
struct Told {
    tool: String,
    target: Option<String>,
    model: Option<String>,
    engine: EngineFacts,
    hardware: HardwareFacts,
    limits: Limits,
    duration_s: Option<f64>,
    max_output: Option<u64>,
    /// In the file's own words, by label.
    published: BTreeMap<String, String>,
    warnings: Vec<String>,
}

/// How the requests of a measurement came. Kinds are separate runs, as a run has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    /// C at all times, in a window.
    Sustained,
    /// A number of requests, C at once, all of them counted.
    Burst { requests: u64 },
    /// By a clock; C is how many a minute.
    Open(Spread),
}

/// How the requests of an open loop are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spread {
    Constant,
    Poisson,
}

impl Layer {
    fn load(self) -> Load {
        match self {
            Self::Sustained => Load::Sustained,
            Self::Burst { requests } => Load::Burst { requests: u32::try_from(requests).unwrap_or(u32::MAX).max(1) },
            Self::Open(Spread::Constant) => Load::Open(Arrivals::Constant),
            Self::Open(Spread::Poisson) => Load::Open(Arrivals::Poisson),
        }
    }

    const fn is_like(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Sustained, Self::Sustained)
                | (Self::Burst { .. }, Self::Burst { .. })
                | (Self::Open(_), Self::Open(_))
        )
    }
}

/// One measurement of a file.
#[derive(Debug)]
struct Row {
    layer: Layer,
    phase: Phase,
    /// Prompt tokens of a request; `None`: the file does not tell.
    context: Option<f64>,
    /// Requests at once, or a minute.
    concurrency: u64,
    result: CellResult,
}

/// The runs of a file of another tool; `None` if it is of none that is known.
pub(super) fn read(file: &Value) -> Option<Result<Vec<Import>, ImportError>> {
    let readers = [inference_bench::read, guidellm::read, aiperf::read, bench_serving::read];
    let told = readers.into_iter().find_map(|read| read(file))?;
    Some(told.and_then(|(told, rows)| runs(told, rows, file)))
}

/// The runs of a file with one JSON object per line; `None` if it is none.
pub(super) fn read_lines(text: &str) -> Option<Result<Vec<Import>, ImportError>> {
    let (records, cut) = field::lines(text)?;
    let file = Value::Array(records);
    let (mut told, rows) = match bench_serving::read(&file)? {
        Ok(read) => read,
        Err(error) => return Some(Err(error)),
    };
    told.warnings.extend(cut.then(|| "The last line of the file was cut off and is left out.".to_owned()));
    Some(runs(told, rows, &file))
}

/// As many rows as a run may have cells, and one more that tells of too many.
fn bounded(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    rows.take(MAX_CELLS + 1).collect()
}

/// One run per kind of load, the file's first kind first.
fn runs(mut told: Told, mut rows: Vec<Row>, file: &Value) -> Result<Vec<Import>, ImportError> {
    if rows.len() > MAX_CELLS {
        return Err(ImportError::TooManyCells { tool: told.tool });
    }
    if rows.iter().any(|row| row.context.is_none_or(|tokens| tokens < 1.0)) {
        let warning = "The file does not tell the prompt's length of some cells: they stand at context 1.";
        told.warnings.push(warning.to_owned());
    }
    one_context_each(&mut rows);
    let mut imports = Vec::new();
    while let Some(layer) = rows.first().map(|row| row.layer) {
        let (of_layer, others): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.layer.is_like(layer));
        rows = others;
        let number = imports.len();
        imports.push(run(&told, &of_layer, field::id(file, number))?);
    }
    if imports.is_empty() { Err(ImportError::NoCells { tool: told.tool }) } else { Ok(imports) }
}

/// Lengths that are nearly the same become the first of them.
fn one_context_each(rows: &mut [Row]) {
    let mut seen: Vec<f64> = Vec::new();
    for row in rows {
        let tokens = row.context.filter(|tokens| *tokens >= 1.0).unwrap_or(1.0);
        let same = seen.iter().copied().find(|one| (tokens / one).max(one / tokens) <= SAME_CONTEXT);
        seen.extend(same.is_none().then_some(tokens));
        row.context = Some(same.unwrap_or(tokens));
    }
}

fn run(told: &Told, rows: &[Row], id: RunId) -> Result<Import, ImportError> {
    let cells: Vec<(CellId, CellResult)> =
        rows.iter().filter_map(|row| Some((cell_of(row)?, row.result.clone()))).collect();
    if cells.len() < rows.len() {
        return Err(ImportError::Damaged("a cell of it has an impossible size".into()));
    }
    let layer = rows.iter().map(|row| row.layer).max().unwrap_or(Layer::Sustained);
    let plan = plan(told, &cells, layer)?;
    let started = RunEvent::RunStarted { plan, started_unix_ms: 0, tool: told.tool.clone() };
    let probed = RunEvent::Probed { facts: Box::new(facts(told)), origin: Origin::Imported };
    let finished = cells.into_iter().map(|(cell, result)| RunEvent::CellFinished { cell, result: Box::new(result) });
    let end = RunEvent::RunFinished { outcome: RunOutcome::Finished };
    let events = [started, probed].into_iter().chain(finished).chain([end]);
    let events: Vec<Envelope> = events.zip(0..).map(|(event, seq)| Envelope { seq, at: Nanos(0), event }).collect();
    let run = RunState::fold(id, &events).ok().flatten();
    let run = run.ok_or_else(|| ImportError::Damaged("its cells do not make a run".into()))?;
    Ok(Import { run, labels: Labels::default() })
}

fn cell_of(row: &Row) -> Option<CellId> {
    let context = Context::new(row.context?.round() as u64).ok()?;
    let concurrency = Concurrency::new(u32::try_from(row.concurrency).ok()?).ok()?;
    Some(CellId { phase: row.phase, context, concurrency })
}

/// The smallest plan that has these cells, and no others.
fn plan(told: &Told, cells: &[(CellId, CellResult)], layer: Layer) -> Result<RunPlan, ImportError> {
    let of = |phase| cells.iter().map(|(id, _)| *id).filter(move |id| id.phase == phase);
    let list = |items: Vec<String>| items.join(",");
    let measured: BTreeSet<(Context, Concurrency)> = of(Phase::Decode).map(|id| (id.context, id.concurrency)).collect();
    let contexts: BTreeSet<Context> = measured.iter().map(|(context, _)| *context).collect();
    let levels: BTreeSet<Concurrency> = measured.iter().map(|(_, level)| *level).collect();
    let grid = contexts.iter().flat_map(|context| levels.iter().map(move |level| (*context, *level)));
    let holes: LeaveOut = grid.filter(|cell| !measured.contains(cell)).collect();
    let prefill = list(of(Phase::Prefill).map(|id| id.context.tokens().to_string()).collect());
    let draft = PlanDraft {
        target: told.target.clone().unwrap_or_else(|| NO_TARGET.to_owned()),
        model: told.model.clone().unwrap_or_default(),
        contexts: list(of(Phase::Decode).map(|id| id.context.tokens().to_string()).collect()),
        concurrency: list(of(Phase::Decode).map(|id| id.concurrency.to_string()).collect()),
        leave_out: holes.to_string(),
        prefill_contexts: if prefill.is_empty() { "none".to_owned() } else { prefill },
        duration: told.duration_s.map(|secs| format!("{}ms", (secs * 1e3).round())).unwrap_or_default(),
        max_output: told.max_output.map(|tokens| tokens.to_string()).unwrap_or_default(),
        load: layer.load().to_string(),
        ..PlanDraft::default()
    };
    RunPlan::try_from(draft).map_err(|errors| ImportError::Damaged(format!("it makes no plan: {errors}")))
}

fn facts(told: &Told) -> TargetFacts {
    TargetFacts {
        base_url: told.target.clone().unwrap_or_default(),
        served_model: told.model.clone(),
        model: told.model.clone(),
        models: told.model.clone().into_iter().collect(),
        engine: told.engine.clone(),
        hardware: told.hardware.clone(),
        limits: told.limits,
        published: told.published.clone(),
        warnings: told.warnings.clone(),
        ..TargetFacts::default()
    }
}

/// The verdict of a cell, from what the file tells of its requests; without any number where it has no rate.
fn judged(stats: CellStats, counts: Option<RequestCounts>, unless_failed: CellStatus) -> CellResult {
    let total = counts.map_or(0, |counts| counts.completed + counts.failed);
    let failed = counts.map_or(0, |counts| counts.failed);
    let share = failed as f64 / total.max(1) as f64;
    let is_empty = stats.total_tok_s.is_none() || (failed > 0 && failed == total);
    let verdict =
        if is_empty || share > MAX_FAILED_SHARE { CellStatus::Failed(FailureKind::NotTold) } else { unless_failed };
    let stats = CellStats { requests: counts, ..if is_empty { CellStats::default() } else { stats } };
    let findings = (failed > 0).then(|| {
        Finding::warning("failed_requests", format!("{failed} of {total} requests failed; the file does not tell why."))
    });
    CellResult { status: verdict, stats, findings: findings.into_iter().collect(), failures: Vec::new(), rules: None }
}

#[cfg(test)]
mod tests;
