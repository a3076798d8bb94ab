//! How two runs were made, side by side: what is the same, what differs, and how much that weighs.

use std::collections::{BTreeMap, BTreeSet};

use super::cell::tool;
use crate::{
    event::Origin,
    facts::{self, Fact},
    format,
    host::ProcessFacts,
    plan::{PlanDraft, Prefill},
    state::{Cell, RunState},
    stats::cell::CellResult,
    target::TargetFacts,
};

/// How much a difference weighs, the heaviest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Cells can't be compared under it.
    Breaks,
    /// It can be what made the difference: often what the comparison is about.
    Matters,
    /// Good to know.
    Noted,
}

impl Severity {
    /// Plain words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Breaks => "breaks comparability",
            Self::Matters => "matters",
            Self::Noted => "noted",
        }
    }
}

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// What was asked.
    Plan,
    /// What answered.
    Target,
    /// The program that serves the model.
    Engine,
    /// The machine.
    Hardware,
    /// The program that measured.
    Client,
}

impl Group {
    /// Plain words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Plan => "Plan",
            Self::Target => "Target",
            Self::Engine => "Engine",
            Self::Hardware => "Hardware",
            Self::Client => "Client",
        }
    }
}

/// One condition of both runs; at least one side tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCondition {
    /// What it is about.
    pub group: Group,
    /// Its name.
    pub label: &'static str,
    /// What it is in A; `None` where A does not tell.
    pub a: Option<String>,
    /// What it is in B.
    pub b: Option<String>,
    /// How much the difference weighs; `None`: there is none. What only one side tells is noted.
    pub severity: Option<Severity>,
}

/// All conditions that at least one run tells.
pub fn conditions(a: &RunState, b: &RunState) -> Vec<RunCondition> {
    ROWS.iter()
        .filter_map(|row| {
            let (a, b) = ((row.value)(a), (row.value)(b));
            let severity = match (&a, &b) {
                (None, None) => return None,
                (Some(one), Some(other)) if one == other => None,
                (Some(_), Some(_)) => Some(row.severity),
                _ => Some(Severity::Noted),
            };
            Some(RunCondition { group: row.group, label: row.label, a, b, severity })
        })
        .collect()
}

struct Row {
    group: Group,
    label: &'static str,
    severity: Severity,
    value: fn(&RunState) -> Option<String>,
}

const fn row(group: Group, severity: Severity, label: &'static str, value: fn(&RunState) -> Option<String>) -> Row {
    Row { group, label, severity, value }
}

use Group::{Client, Engine, Hardware, Plan, Target};
use Severity::{Breaks, Matters, Noted};

static ROWS: &[Row] = &[
    row(Plan, Breaks, "Load", |s| told(s, |draft| draft.load.clone())),
    row(Plan, Breaks, "Prompts", |s| ours(s, |draft| draft.prompts.clone())),
    row(Plan, Breaks, "Sampling", |s| measured_here(s).then(|| s.plan.sampling().words())),
    row(Plan, Breaks, "Max output", |s| Some(format::tokens(Some(u64::from(s.plan.max_output_tokens()))))),
    row(Plan, Matters, "Questions", |s| ours(s, |draft| draft.questions.clone())),
    row(Plan, Matters, "Corpus", |s| ours(s, |draft| or_word(&draft.corpus, "seeded text"))),
    row(Plan, Matters, "Prefill mode", prefill),
    row(Plan, Matters, "Time per measurement", |s| Some(format::duration_words(Some(s.plan.duration().as_secs_f64())))),
    row(Plan, Noted, "Bounds (SLO)", |s| ours(s, |draft| or_word(&draft.slo, "none"))),
    row(Plan, Noted, "Repeats", |s| ours(s, |draft| draft.repeats.clone())),
    row(Plan, Noted, "Order", |s| ours(s, |draft| draft.order.clone())),
    row(Plan, Noted, "Seed", |s| ours(s, |draft| draft.seed.clone())),
    row(Plan, Noted, "Contexts", |s| told(s, |draft| draft.contexts.clone())),
    row(Plan, Noted, "Concurrency", |s| told(s, |draft| draft.concurrency.clone())),
    row(Plan, Noted, "Left out", |s| told(s, |draft| or_word(&draft.leave_out, "none"))),
    row(Target, Matters, "Numbers come from", origin),
    row(Target, Noted, "Address", |s| Some(s.plan.target().as_str().to_owned())),
    row(Target, Matters, "Served model", |s| known(s, |f| f.served_model.clone())),
    row(Target, Matters, "Model", |s| known(s, |f| f.model.clone())),
    row(Target, Matters, "Revision", |s| known(s, |f| f.revision.clone())),
    row(Target, Matters, "Longest context", |s| known(s, |f| f.limits.max_model_len.map(tokens))),
    row(Target, Matters, "Decodes at once", |s| known(s, |f| f.limits.max_sequences.map(|n| n.to_string()))),
    row(Target, Matters, "KV cache holds", |s| known(s, |f| f.limits.kv_tokens.map(tokens))),
    row(Engine, Matters, "Engine", |s| known(s, |f| f.engine.engine.clone())),
    row(Engine, Matters, "Version", |s| known(s, |f| f.engine.version.clone())),
    row(Engine, Matters, "Quantization", |s| known(s, |f| f.engine.quantization.clone())),
    row(Engine, Matters, "Backend", |s| known(s, |f| f.engine.backend.clone())),
    row(Engine, Noted, "Repository", |s| known(s, |f| f.engine.repository.clone())),
    row(Engine, Matters, "Build", |s| known(s, |f| f.engine.build.clone())),
    row(Engine, Matters, "Environment", |s| process(s, |p| pairs(&p.environment))),
    row(Engine, Matters, "Packages", |s| process(s, |p| pairs(&p.packages))),
    row(Engine, Noted, "Server started", |s| process(s, |p| p.started_unix_ms.map(format::wall_time))),
    row(Hardware, Matters, "GPU", |s| hardware(s, "GPU")),
    row(Hardware, Matters, "GPU count", |s| hardware(s, "GPU count")),
    row(Hardware, Matters, "VRAM", |s| hardware(s, "VRAM")),
    row(Hardware, Matters, "Type", |s| hardware(s, "Type")),
    row(Hardware, Matters, "GPU parts", |s| hardware(s, "GPU parts")),
    row(Hardware, Matters, "Power limit", |s| hardware(s, "Power limit")),
    row(Hardware, Matters, "PCIe", |s| hardware(s, "PCIe")),
    row(Hardware, Matters, "Driver", |s| hardware(s, "Driver")),
    row(Hardware, Matters, "CUDA", |s| hardware(s, "CUDA")),
    row(Hardware, Noted, "GPU numbers", |s| hardware(s, "GPU numbers")),
    row(Hardware, Noted, "OS", |s| hardware(s, "OS")),
    row(Hardware, Noted, "CPU", |s| hardware(s, "CPU")),
    row(Hardware, Noted, "Memory", |s| hardware(s, "Memory")),
    row(Hardware, Noted, "Kernel", |s| hardware(s, "Kernel")),
    row(Client, Matters, "Benchmark tool", |s| (!s.tool.is_empty()).then(|| tool(s))),
    row(Client, Noted, "Version", |s| (!s.tool.is_empty()).then(|| s.tool.clone())),
    row(Client, Matters, "Rules", |s| of_cells(s, |result| result.rules.map(|rules| rules.to_string()))),
    row(Client, Breaks, "Tokens", |s| of_cells(s, |r| r.stats.token_source.map(|source| source.label().to_owned()))),
    row(Client, Noted, "Stamps", |s| of_cells(s, |r| r.stats.stamps.map(|stamps| stamps.label().to_owned()))),
    row(Client, Noted, "Client check", |s| {
        let bias = s.client.as_ref().map(|check| check.ttft_bias_s.abs());
        bias.map(|bias| format!("TTFT off by {}", format::lag(Some(bias))))
    }),
];

fn measured_here(state: &RunState) -> bool {
    state.origin != Some(Origin::Imported)
}

fn told(state: &RunState, value: impl Fn(&PlanDraft) -> String) -> Option<String> {
    Some(value(&PlanDraft::from(state.plan.clone()))).filter(|value| !value.is_empty())
}

/// As [`told`], but only where the plan was carried out here: an imported run has our defaults where its file is silent.
fn ours(state: &RunState, value: impl Fn(&PlanDraft) -> String) -> Option<String> {
    if measured_here(state) { told(state, value) } else { None }
}

fn or_word(text: &str, word: &str) -> String {
    if text.is_empty() { word } else { text }.to_owned()
}

fn prefill(state: &RunState) -> Option<String> {
    let published = known(state, |facts| facts.published.get("Prefill mode").cloned());
    let planned = || match state.plan.prefill() {
        Prefill::FromWarmUp => Some("measured during decode warm-up".to_owned()),
        Prefill::Cold(_) => Some("cold requests of their own".to_owned()),
        Prefill::None => Some("none".to_owned()),
    };
    published.or_else(|| if measured_here(state) { planned() } else { None })
}

fn origin(state: &RunState) -> Option<String> {
    state.origin.map(|origin| match origin {
        Origin::Measured => "a real server".to_owned(),
        Origin::Simulated { .. } => "the simulator".to_owned(),
        Origin::Imported => "a file or a published page".to_owned(),
    })
}

fn known(state: &RunState, value: impl Fn(&TargetFacts) -> Option<String>) -> Option<String> {
    state.facts.as_ref().and_then(value)
}

fn process(state: &RunState, value: impl Fn(&ProcessFacts) -> Option<String>) -> Option<String> {
    state.facts.as_ref().and_then(|facts| facts.process.as_ref()).and_then(value)
}

fn pairs(pairs: &BTreeMap<String, String>) -> Option<String> {
    let all: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn hardware(state: &RunState, label: &str) -> Option<String> {
    let told: Vec<Fact> = facts::hardware_facts(state);
    told.into_iter().find(|(name, _)| *name == label).map(|(_, text)| text).filter(|text| text != format::MISSING)
}

fn tokens(number: u64) -> String {
    format::tokens(Some(number))
}

/// What the finished cells say, each once.
fn of_cells(state: &RunState, value: impl Fn(&CellResult) -> Option<String>) -> Option<String> {
    let said: BTreeSet<String> = state.cells.iter().filter_map(Cell::result).filter_map(value).collect();
    (!said.is_empty()).then(|| said.into_iter().collect::<Vec<_>>().join(", "))
}
