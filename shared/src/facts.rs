//! What a report says about a run besides its cells: subtitle, cards of facts, headline numbers, line of the run list.

use crate::{
    api::{Headline, RunSummary, engine_line},
    event::Origin,
    finding::Severity,
    format,
    gpu::GpuMemory,
    host::{machine_facts, process_facts},
    id::{CellId, Phase},
    label::Labels,
    metric,
    plan::{Arrivals, CheckClient, Load, Prefill, PromptMode, Questions, Repeats, Sampling},
    state::{Cell, CellState, RunState},
    stats::cell::{CellResult, CellStatus},
    target::TargetFacts,
};

/// A fact: its label and its text, "—" where unknown.
pub type Fact = (&'static str, String);

fn text(value: Option<&String>) -> String {
    value.cloned().unwrap_or_else(|| format::MISSING.to_owned())
}

/// The machine: type, GPU, GPU count, VRAM, OS; and what else is known of it.
pub fn hardware_facts(state: &RunState) -> Vec<Fact> {
    let hardware = state.facts.as_ref().map(|facts| facts.hardware.clone()).unwrap_or_default();
    let unified = !hardware.gpus.is_empty() && hardware.gpus.iter().all(|gpu| gpu.memory == GpuMemory::Unified);
    let ram = || format::memory(hardware.ram_bytes.map(|bytes| bytes as f64));
    let vram = match (hardware.vram_total_gb, hardware.vram_each_gb, hardware.gpu_count) {
        (Some(total), Some(each), Some(count)) => {
            let (total, each) = (format::gigabytes(Some(total)), format::gigabytes(Some(each)));
            format!("{total} ({} × {each})", format::count(Some(u64::from(count))))
        }
        (None, _, _) if unified => format!("{}, shared with the CPU", ram()),
        (total, _, _) => format::gigabytes(total),
    };
    let mut told = vec![
        ("Type", text(hardware.kind.as_ref())),
        ("GPU", text(hardware.gpu.as_ref())),
        ("GPU count", format::count(hardware.gpu_count.map(u64::from))),
        ("VRAM", vram),
        ("OS", text(hardware.os.as_ref())),
    ];
    told.extend(machine_facts(&hardware));
    told
}

/// The serving program: engine, version, quantization, backend, repository, build; and what is known of its process.
pub fn engine_facts(state: &RunState) -> Vec<Fact> {
    let engine = state.facts.as_ref().map(|facts| facts.engine.clone()).unwrap_or_default();
    let mut told = vec![
        ("Engine", text(engine.engine.as_ref())),
        ("Version", text(engine.version.as_ref())),
        ("Quantization", text(engine.quantization.as_ref())),
        ("Backend", text(engine.backend.as_ref())),
        ("Repository", text(engine.repository.as_ref())),
        ("Build", text(engine.build.as_ref())),
    ];
    if let Some(facts) = &state.facts {
        told.extend(process_facts(facts));
    }
    told
}

/// How it was measured. An imported page's own words go before what the plan would say.
pub fn run_facts(state: &RunState) -> Vec<Fact> {
    let facts = state.facts.as_ref();
    let model = state.plan.model().map(ToOwned::to_owned);
    let published = |label: &str| facts.and_then(|f| f.published.get(label)).cloned();
    let prefill = match state.plan.prefill() {
        Prefill::FromWarmUp => "Measured during decode warm-up",
        Prefill::Cold(_) => "Cold requests of their own",
        Prefill::None => format::MISSING,
    };
    let mut told = vec![
        ("Served model", text(facts.and_then(|f| f.served_model.clone()).or(model).as_ref())),
        ("Model", text(facts.and_then(|f| f.model.as_ref()))),
        ("Revision", text(facts.and_then(|f| f.revision.as_ref()))),
        ("Benchmark tool", text(Some(&state.tool).filter(|tool| !tool.is_empty()))),
        ("Decode test", published("Decode test").unwrap_or_else(|| decode_test(state.plan.load()))),
        ("Prefill mode", published("Prefill mode").unwrap_or_else(|| prefill.to_owned())),
        ("Time per measurement", format::duration_words(Some(state.plan.duration().as_secs_f64()))),
        ("Max output", format::tokens(Some(u64::from(state.plan.max_output_tokens())))),
    ];
    if state.origin != Some(Origin::Imported) {
        let prompts = match state.plan.prompts() {
            PromptMode::Shared => "One document for all requests, cached".to_owned(),
            PromptMode::Unique => "A document per slot, cached".to_owned(),
            PromptMode::Mixed(shared) => {
                format!("The first {} of each document shared and cached", format::percent(Some(shared.share())))
            }
            PromptMode::Cold => "A fresh document per request".to_owned(),
        };
        told.push(("Prompts", prompts));
        if let Some(corpus) = state.plan.corpus() {
            told.push(("Text", format!("Corpus {}", corpus.as_str())));
        }
        if let Some(slo) = state.plan.slo() {
            told.push(("Bounds (SLO)", slo.to_string()));
        }
        if state.plan.sampling() != Sampling::default() {
            told.push(("Sampling", state.plan.sampling().words()));
        }
        if state.plan.questions() == Questions::Identical {
            told.push(("Questions", "The same for all requests".to_owned()));
        }
        if state.plan.repeats() != Repeats::default() {
            told.push(("Repeats", format!("{}, {}", state.plan.repeats().words(), state.plan.order())));
        }
        if let Some(check) = &state.client {
            let bias = format::lag(Some(check.ttft_bias_s.abs()));
            told.push(("Client check", format!("TTFT off by {bias} at {} streams", check.streams)));
        } else if state.plan.check_client() == CheckClient::Skip {
            told.push(("Client check", "Skipped".to_owned()));
        }
        told.push(("Seed", state.plan.seed().to_string()));
        told.push(("Started", format::wall_time(state.started_unix_ms)));
    }
    told
}

fn decode_test(load: Load) -> String {
    match load {
        Load::Sustained => "Fixed duration".to_owned(),
        Load::Burst { requests } => format!("Burst of {requests} requests"),
        Load::Mixed { background } => format!("Cold prompts beside decoding requests of {background}"),
        Load::Open(Arrivals::Constant) => "Open loop, constant rate".to_owned(),
        Load::Open(Arrivals::Poisson) => "Open loop, Poisson arrivals".to_owned(),
        Load::Open(Arrivals::Ramp) => "Open loop, rising rate".to_owned(),
    }
}

/// How the server was started, secrets removed.
pub fn launch_command(state: &RunState) -> Option<&str> {
    state.facts.as_ref().and_then(|facts: &TargetFacts| facts.launch_command.as_deref())
}

/// `8 contexts (8K–1019K) × 8 concurrency levels (1–128) · prefill at 8K, 16K, …`
pub fn subtitle(state: &RunState) -> String {
    let plan = &state.plan;
    let mut parts = Vec::new();
    if !plan.contexts().is_empty() && !plan.concurrency().is_empty() {
        let contexts = range(plan.contexts(), "context", "contexts");
        let levels = match plan.load() {
            Load::Sustained | Load::Burst { .. } => {
                range(plan.concurrency(), "concurrency level", "concurrency levels")
            }
            Load::Mixed { .. } => range(plan.concurrency(), "background request", "backgrounds"),
            Load::Open(_) => range(plan.concurrency(), "rate", "rates per minute"),
        };
        parts.push(format!("{contexts} × {levels}"));
        match plan.leave_out().count() {
            0 => {}
            1 => parts.push("1 cell left out".to_owned()),
            cells => parts.push(format!("{cells} cells left out")),
        }
    }
    let prefill: Vec<String> = plan.prefill_contexts().iter().map(ToString::to_string).collect();
    if !prefill.is_empty() {
        parts.push(format!("prefill at {}", prefill.join(", ")));
    }
    parts.join(" · ")
}

fn range<T: ToString>(items: &[T], one: &str, many: &str) -> String {
    match items {
        [] => String::new(),
        [only] => format!("1 {one} ({})", only.to_string()),
        [first, .., last] => format!("{} {many} ({}–{})", items.len(), first.to_string(), last.to_string()),
    }
}

/// Cells of a phase whose numbers can be stood on.
fn measured(state: &RunState, phase: Phase) -> impl Iterator<Item = (CellId, &CellResult)> {
    let cells = state.cells_of(phase);
    cells.filter_map(|cell| Some((cell.id, cell.result()?))).filter(|(_, result)| !result.status.is_failed())
}

fn best(state: &RunState, phase: Phase, key: &str) -> Option<f64> {
    let metric = metric::by_key(key)?;
    let values = measured(state, phase).filter_map(|(_, result)| (metric.get)(result));
    match metric.better {
        metric::Better::Lower => values.min_by(f64::total_cmp),
        _ => values.max_by(f64::total_cmp),
    }
}

/// The numbers people look for first.
pub fn headline(state: &RunState) -> Headline {
    Headline {
        best_total_tok_s: best(state, Phase::Decode, "total_tok_s"),
        best_per_request_tok_s: best(state, Phase::Decode, "per_request_tok_s"),
        best_prefill_tok_s: best(state, Phase::Prefill, "total_tok_s"),
        shortest_ttft_s: best(state, Phase::Decode, "ttft"),
    }
}

/// A headline number of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kpi {
    /// What it is.
    pub label: &'static str,
    /// The number, without its unit.
    pub value: String,
    /// Its unit, or empty.
    pub unit: String,
    /// Where it was measured: `64K × 128 requests`.
    pub at: String,
}

/// The report's five headline numbers; "—" where nothing is measured yet.
pub fn kpis(state: &RunState) -> Vec<Kpi> {
    vec![
        kpi(state, "Highest total", Phase::Decode, "total_tok_s"),
        kpi(state, "Fastest single stream", Phase::Decode, "per_request_tok_s"),
        kpi(state, "Fastest prefill", Phase::Prefill, "total_tok_s"),
        kpi(state, ttft_label(state.plan.prompts()), Phase::Decode, "ttft"),
        valid_cells(state),
    ]
}

fn ttft_label(prompts: PromptMode) -> &'static str {
    match prompts {
        PromptMode::Shared | PromptMode::Unique => "Shortest TTFT, warm cache",
        PromptMode::Mixed(_) | PromptMode::Cold => "Shortest TTFT",
    }
}

fn kpi(state: &RunState, label: &'static str, phase: Phase, key: &str) -> Kpi {
    let metric = metric::by_key(key).expect("headline numbers are rows of METRICS");
    let shown = (metric.show)(best(state, phase, key));
    // Cells that show the same number as the best one are equally good to a reader.
    let mut cells: Vec<CellId> =
        measured(state, phase).filter(|(_, result)| metric.text(result) == shown).map(|(id, _)| id).collect();
    cells.sort();
    let value = shown.split(' ').next().unwrap_or_default().to_owned();
    let unit = if value == format::MISSING { String::new() } else { metric.unit.to_owned() };
    let sure = cells.first().and_then(|id| state.cell(*id)?.result()).map(|r| metric.precision(r, state.origin));
    let sure = sure.filter(|sure| !sure.is_empty()).map(|sure| format!(" ({sure})")).unwrap_or_default();
    let at = if unit.is_empty() { String::new() } else { places(&cells) + &sure };
    Kpi { label, value, unit, at }
}

fn places(cells: &[CellId]) -> String {
    let place = |id: &CellId| match (id.phase, id.concurrency.get()) {
        (Phase::Prefill, _) => id.context.to_string(),
        (Phase::Decode, 1) => format!("{} × 1 request", id.context),
        (Phase::Decode, n) => format!("{} × {n} requests", id.context),
    };
    let list = match cells {
        [] => return String::new(),
        [one] => place(one),
        [one, two] => format!("{} and {}", place(one), place(two)),
        [one, rest @ ..] => format!("{} and {} more", place(one), rest.len()),
    };
    let prefill = cells.iter().all(|id| id.phase == Phase::Prefill);
    if prefill { format!("{list} context") } else { list }
}

fn valid_cells(state: &RunState) -> Kpi {
    let all = state.cells_of(Phase::Decode).count();
    let statuses = || state.cells_of(Phase::Decode).filter_map(Cell::result).map(|result| result.status);
    let valid = statuses().filter(|status| *status == CellStatus::Valid).count();
    let mut flagged: Vec<CellStatus> = statuses().filter(|status| *status != CellStatus::Valid).collect();
    flagged.sort();
    let groups = flagged.chunk_by(|a, b| a == b);
    let words: Vec<String> =
        groups.filter_map(|g| g.first().map(|s| format!("{} {}", g.len(), status_words(*s)))).collect();
    let at = if words.is_empty() { "nothing flagged".to_owned() } else { words.join(", ") };
    Kpi { label: "Valid cells", value: valid.to_string(), unit: format!("of {all}"), at }
}

fn status_words(status: CellStatus) -> String {
    match status {
        CellStatus::RequestsQueued => "with requests queued".to_owned(),
        CellStatus::LoopingOutput => "with looping output".to_owned(),
        CellStatus::RampIncomplete => "with the ramp incomplete".to_owned(),
        other => other.label().to_lowercase(),
    }
}

/// The run's line in the list of runs.
pub fn summary(state: &RunState) -> RunSummary {
    let (cells_done, cells) = state.progress();
    let flagged = |cell: &&Cell| match &cell.state {
        CellState::Finished { result } => {
            result.status != CellStatus::Valid || result.findings.iter().any(|it| it.severity == Severity::Warning)
        }
        _ => false,
    };
    RunSummary {
        id: state.id.clone(),
        title: state.title(),
        engine: engine_line(state.facts.as_ref()),
        started_unix_ms: state.started_unix_ms,
        elapsed_s: state.at.as_secs_f64(),
        status: state.status.clone(),
        origin: state.origin,
        cells_done,
        cells,
        flagged: state.cells.iter().filter(flagged).count(),
        headline: headline(state),
        mini: mini(state),
        model: model(state),
        gpu: state.facts.as_ref().and_then(|facts| facts.hardware.gpu.clone()),
        engine_name: state.facts.as_ref().and_then(|facts| facts.engine.engine.clone()),
        target: (state.origin == Some(Origin::Measured)).then(|| state.plan.target().as_str().to_owned()),
        labels: Labels::default(),
        unstored: None,
    }
}

/// The model that a run measures, as far as known.
pub fn model(state: &RunState) -> Option<String> {
    let found = state.facts.as_ref().and_then(|facts| facts.model.clone().or_else(|| facts.served_model.clone()));
    found.or_else(|| state.plan.model().map(ToOwned::to_owned))
}

fn mini(state: &RunState) -> Vec<Vec<Option<f64>>> {
    let value = |context, concurrency| {
        let cell = state.cell(CellId { phase: Phase::Decode, context, concurrency })?;
        cell.result().and_then(|result| result.stats.total_tok_s)
    };
    let levels = state.plan.concurrency();
    let row = |&context| levels.iter().map(|&concurrency| value(context, concurrency)).collect();
    state.plan.contexts().iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_reference_reads_as_its_page() {
        let state = sample::reference();
        assert_eq!(
            subtitle(&state),
            "8 contexts (8K–1019K) × 8 concurrency levels (1–128) · prefill at 8K, 16K, 32K, 64K, 128K, 256K, 512K, \
             1019K, 1024K"
        );
        let cards: Vec<String> = [hardware_facts(&state), engine_facts(&state), run_facts(&state)]
            .iter()
            .flatten()
            .map(|(label, text)| format!("{label}: {text}"))
            .collect();
        insta::assert_snapshot!(cards.join("\n"), @r"
        Type: Discrete GPU
        GPU: H200 NVL
        GPU count: 2
        VRAM: 282 GB (2 × 141 GB)
        OS: linux
        Engine: vllm
        Version: 0.25.0
        Quantization: MXFP4+FP8
        Backend: cuda
        Repository: github.com/vllm-project/vllm
        Build: cuda-13.2
        Served model: deepseek
        Model: deepseek-ai/DeepSeek-V4-Flash-DSpark
        Revision: main
        Benchmark tool: llm-inference-bench v0.4.29
        Decode test: Fixed duration
        Prefill mode: Measured during decode warm-up
        Time per measurement: 30 s
        Max output: 4,096 tokens
        ");
        assert!(launch_command(&state).is_some_and(|line| line.contains("--api-key <redacted>")));
    }

    #[test]
    fn headline_numbers_say_where() {
        let lines: Vec<String> = kpis(&sample::reference())
            .into_iter()
            .map(|kpi| format!("{}: {} {} | {}", kpi.label, kpi.value, kpi.unit, kpi.at))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        Highest total: 4,201.1 tok/s | 64K × 128 requests
        Fastest single stream: 366.7 tok/s | 32K × 1 request
        Fastest prefill: 11.6K tok/s | 16K and 64K context
        Shortest TTFT, warm cache: 92 ms | 8K × 1 request
        Valid cells: 62 of 64 | 2 with requests queued
        ");
    }

    #[test]
    fn a_run_in_the_list_has_its_mini_map() {
        let line = summary(&sample::reference());
        assert_eq!((line.cells_done, line.cells, line.flagged), (73, 73, 2));
        assert_eq!(line.engine, "vllm · 0.25.0 · MXFP4+FP8");
        assert_eq!((line.mini.len(), line.mini[3][7]), (8, Some(4_201.1)));
        assert_eq!(line.headline.shortest_ttft_s, Some(0.092));
        assert_eq!(line.model.as_deref(), Some("deepseek-ai/DeepSeek-V4-Flash-DSpark"));
        assert_eq!((line.gpu.as_deref(), line.engine_name.as_deref()), (Some("H200 NVL"), Some("vllm")));
        let own = RunState { origin: Some(Origin::Measured), ..sample::reference() };
        assert_eq!(summary(&own).target.as_deref(), Some(own.plan.target().as_str()));
    }
}
