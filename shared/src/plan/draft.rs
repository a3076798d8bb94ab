//! A plan as people type it, and the checks that turn it into a [`RunPlan`]: all errors at once, each at its field.

use serde::{Deserialize, Serialize};

use super::{
    Field, FieldError, LeaveOut, Load, MAX_CELLS, PlanErrors, Prefill, RunPlan, TargetUrl, manner::Manner, range,
};
use crate::units::{Concurrency, Context, Nanos, duration_label, parse_duration, parse_size_tokens};

/// Default window, the reference page's.
const DEFAULT_DURATION: &str = "30s";
/// Default output limit in tokens, the reference page's.
const DEFAULT_MAX_OUTPUT: &str = "4096";
/// Shortest window: below it even a fast server sends too few tokens to divide.
const MIN_DURATION: Nanos = Nanos::from_millis(100);
/// Longest window, one day.
const MAX_DURATION: Nanos = Nanos::from_secs(24 * 3_600);
/// Most output tokens of one request: 1024K, as much as the longest contexts.
const MAX_OUTPUT_TOKENS: u32 = 1_048_576;
/// Most requests of one cell of an open loop.
const MAX_OPEN_REQUESTS: u32 = 100_000;
/// Longest name, in characters; longer ones are refused, not cut.
const MAX_NAME_CHARS: usize = 10_000;
/// Longest address, in bytes.
const MAX_URL_BYTES: usize = 2_000;

/// A plan as typed: every field is text, empty means the default. It is the form's content, the flags, and the plan file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlanDraft {
    /// Address of the server, with or without `/v1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Model name; empty: the first one the server offers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Name of the run; empty: model and hardware.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `8K,16K,…`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub contexts: String,
    /// `1,2,4,…`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub concurrency: String,
    /// `64Kx128,…`: decode cells that are not measured.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub leave_out: String,
    /// `8K,…` for cold prefill requests, `none`, or empty: from warm-up.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prefill_contexts: String,
    /// `30s`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub duration: String,
    /// `4096`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub max_output: String,
    /// `shared`, `unique`, `mixed:40%` or `cold`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prompts: String,
    /// `sustained`, `burst:100`, `mixed:1K`, `open:constant`, `open:poisson` or `open:ramp`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub load: String,
    /// `ttft:500ms,tpot:50ms,e2e:10s`; empty: no bounds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub slo: String,
    /// A file in the agent's folder of corpora; empty: seeded text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub corpus: String,
    /// `varied` or `identical`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub questions: String,
    /// `0.7`, or `server` for its own; empty: 1.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub temperature: String,
    /// `0.95`; empty or `server`: its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub top_p: String,
    /// `ignore` or `stop`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub end_of_text: String,
    /// Fewest output tokens; empty: not asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_output: String,
    /// `rows`, `shuffled` or `interleaved`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub order: String,
    /// `3`, `3%` or `10,3%`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repeats: String,
    /// `run` or `skip`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_check: String,
    /// A whole number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seed: String,
}

/// Collects the errors while fields are read.
#[derive(Default)]
pub(super) struct Reading {
    errors: Vec<FieldError>,
}

impl Reading {
    fn wrong(&mut self, field: Field, message: impl Into<String>) {
        self.errors.push(FieldError { field, message: message.into() });
    }

    pub(super) fn take<T, E: ToString>(&mut self, field: Field, result: Result<T, E>) -> Option<T> {
        result.map_err(|e| self.wrong(field, e.to_string())).ok()
    }

    /// A text that may be missing. `None` also where it is wrong: no plan comes of a draft with errors.
    pub(super) fn optional<T: std::str::FromStr<Err: ToString>>(&mut self, field: Field, text: &str) -> Option<T> {
        optional(text).and_then(|text| self.take(field, text.parse()))
    }

    /// A list such as `8K,16K` or `8K-64K`: sorted, without repeats, every bad item named.
    fn list<T: Ord + std::str::FromStr<Err: ToString>>(&mut self, field: Field, text: &str) -> Vec<T> {
        let items = range::written_out(text).into_iter();
        let read = |item: Result<String, String>| {
            self.take(field, item.and_then(|item| item.parse().map_err(|e: T::Err| e.to_string())))
        };
        let mut values: Vec<T> = items.filter_map(read).collect();
        values.sort();
        values.dedup();
        values
    }
}

fn or_default<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.trim().is_empty() { default } else { text.trim() }
}

/// Whether a list has no item, whatever else was typed between them.
fn is_blank(list: &str) -> bool {
    list.chars().all(|c| c.is_whitespace() || matches!(c, ',' | ';'))
}

fn optional(text: &str) -> Option<String> {
    let trimmed = text.trim();
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// Reads and normalises an address: `http` or `https`, a host, no credentials, no query; `/v1`, endpoint paths
/// below it and trailing slashes are taken off.
pub fn parse_target(text: &str) -> Result<TargetUrl, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err("give the address of the server, for example http://127.0.0.1:8000".into());
    }
    if trimmed.len() > MAX_URL_BYTES {
        return Err(format!("an address of over {MAX_URL_BYTES} bytes is not read"));
    }
    if trimmed.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("an address has no spaces in it".into());
    }
    let (scheme, rest) = match trimmed.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
        None => ("http".to_owned(), trimmed),
    };
    if scheme != "http" && scheme != "https" {
        return Err(format!("\"{scheme}\" can't be measured: the address starts with http:// or https://"));
    }
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if authority.contains('@') {
        return Err("keep user names and keys out of the address: give the key in its own field".into());
    }
    check_authority(authority)?;
    let path = base_path(path);
    let slash = if path.is_empty() { "" } else { "/" };
    Ok(TargetUrl(format!("{scheme}://{}{slash}{path}", authority.to_ascii_lowercase())))
}

/// What lies before `/v1` and the endpoints below it. Taken off until nothing is left to take, so that reading an
/// address that was written here changes nothing.
fn base_path(path: &str) -> &str {
    let mut path = path.trim_matches('/');
    loop {
        let endpoints = ["chat/completions", "completions", "models", "v1"];
        let shorter = endpoints
            .iter()
            .find_map(|end| path.strip_suffix(end))
            .filter(|rest| rest.is_empty() || rest.ends_with('/'));
        match shorter {
            Some(rest) => path = rest.trim_end_matches('/'),
            None => return path,
        }
    }
}

fn check_authority(authority: &str) -> Result<(), String> {
    let after_v6 = authority.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match authority.get(after_v6..).and_then(|tail| tail.rfind(':')) {
        Some(colon) => (&authority[..after_v6 + colon], Some(&authority[after_v6 + colon + 1..])),
        None => (authority, None),
    };
    let host_ok =
        !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':'));
    if !host_ok {
        return Err(format!("\"{authority}\" names no host: write for example http://127.0.0.1:8000"));
    }
    match port.map(str::parse::<u16>) {
        None | Some(Ok(1..)) => Ok(()),
        Some(_) => Err(format!("\"{}\" is not a port: 1 to 65535", port.unwrap_or_default())),
    }
}

impl TryFrom<PlanDraft> for RunPlan {
    type Error = PlanErrors;

    fn try_from(draft: PlanDraft) -> Result<Self, PlanErrors> {
        let mut reading = Reading::default();
        let target = reading.take(Field::Target, parse_target(&draft.target));
        for (field, text) in [(Field::Model, &draft.model), (Field::Name, &draft.name)] {
            if text.chars().count() > MAX_NAME_CHARS {
                reading.wrong(field, format!("at most {MAX_NAME_CHARS} characters"));
            }
        }
        let contexts: Vec<Context> = reading.list(Field::Contexts, &draft.contexts);
        let concurrency: Vec<Concurrency> = reading.list(Field::Concurrency, &draft.concurrency);
        let leave_out = read_leave_out(&mut reading, &draft.leave_out, &contexts, &concurrency);
        let prefill = read_prefill(&mut reading, &draft.prefill_contexts);
        let duration = read_duration(&mut reading, &draft.duration);
        let max_output_tokens = read_max_output(&mut reading, &draft.max_output);
        let manner = Manner::read(&mut reading, &draft, max_output_tokens);
        let seed = reading.take(Field::Seed, read_seed(&draft.seed));
        let load = manner.as_ref().map(|manner| manner.load);
        check_rate(&mut reading, load, concurrency.last().copied(), duration);
        check_shape(&mut reading, &draft, [contexts.len(), concurrency.len()], &prefill);
        let window = duration.zip(max_output_tokens);
        let (Some(target), Some((duration, max_output_tokens)), Some(manner), Some(seed), true) =
            (target, window, manner, seed, reading.errors.is_empty())
        else {
            reading.errors.sort_by_key(|e| e.field);
            return Err(PlanErrors(reading.errors));
        };
        Ok(Self {
            target,
            model: optional(&draft.model),
            name: optional(&draft.name),
            contexts,
            concurrency,
            leave_out,
            prefill,
            duration,
            max_output_tokens,
            manner: Box::new(manner),
            seed,
        })
    }
}

/// Each must be a cell of the matrix, and one must be left to measure.
fn read_leave_out(reading: &mut Reading, text: &str, contexts: &[Context], levels: &[Concurrency]) -> LeaveOut {
    let cells: LeaveOut = reading.take(Field::LeaveOut, text.parse()).unwrap_or_default();
    let foreign = cells.cells().find(|(context, level)| !contexts.contains(context) || !levels.contains(level));
    if let Some((context, level)) = foreign {
        reading.wrong(Field::LeaveOut, format!("{context}x{level} is no cell of this matrix"));
    } else if cells.count() > 0 && cells.count() == contexts.len() * levels.len() {
        reading.wrong(Field::LeaveOut, "all cells are left out: leave one in, or measure prefill rows only");
    }
    cells
}

fn read_prefill(reading: &mut Reading, text: &str) -> Prefill {
    match text.trim() {
        nothing if is_blank(nothing) => Prefill::FromWarmUp,
        "none" => Prefill::None,
        list => Prefill::Cold(reading.list(Field::PrefillContexts, list)),
    }
}

fn read_duration(reading: &mut Reading, text: &str) -> Option<Nanos> {
    let duration = reading.take(Field::Duration, parse_duration(or_default(text, DEFAULT_DURATION)))?;
    if (MIN_DURATION..=MAX_DURATION).contains(&duration) {
        return Some(duration);
    }
    reading.wrong(Field::Duration, "a window is between 100ms and 24h long");
    None
}

fn read_max_output(reading: &mut Reading, text: &str) -> Option<u32> {
    let tokens = reading.take(Field::MaxOutput, parse_size_tokens(or_default(text, DEFAULT_MAX_OUTPUT)))?;
    let tokens = u32::try_from(tokens).ok().filter(|tokens| (1..=MAX_OUTPUT_TOKENS).contains(tokens));
    if tokens.is_none() {
        reading.wrong(Field::MaxOutput, "between 1 and 1024K output tokens");
    }
    tokens
}

fn read_seed(text: &str) -> Result<u64, String> {
    let trimmed = or_default(text, "0");
    trimmed.parse().map_err(|_reason_is_in_the_message| format!("\"{trimmed}\" is not a whole number"))
}

/// An open loop prepares a place for each of its requests.
fn check_rate(reading: &mut Reading, load: Option<Load>, most: Option<Concurrency>, duration: Option<Nanos>) {
    let (Some(Load::Open(_)), Some(most), Some(duration)) = (load, most, duration) else { return };
    let requests = f64::from(most.get()) * duration.as_secs_f64() / 60.0;
    if requests > f64::from(MAX_OPEN_REQUESTS) {
        let text = format!(
            "{requests:.0} requests are more than an open loop holds ({MAX_OPEN_REQUESTS}): take a lower rate or a shorter time"
        );
        reading.wrong(Field::Duration, text);
    }
}

fn check_shape(reading: &mut Reading, draft: &PlanDraft, [contexts, levels]: [usize; 2], prefill: &Prefill) {
    let prefill_rows = match prefill {
        Prefill::Cold(own) => own.len(),
        Prefill::FromWarmUp => contexts,
        Prefill::None => 0,
    };
    // Bad items were named already: say "none given" only where nothing was typed.
    let only_prefill = matches!(prefill, Prefill::Cold(own) if !own.is_empty());
    if is_blank(&draft.contexts) && (!only_prefill || !is_blank(&draft.concurrency)) {
        reading.wrong(Field::Contexts, "give at least one context length, for example 8K,16K");
    }
    if is_blank(&draft.concurrency) && (!only_prefill || !is_blank(&draft.contexts)) {
        reading.wrong(Field::Concurrency, "give at least one number of requests at once, for example 1,2,4");
    }
    let cells = contexts * levels + prefill_rows;
    if cells > MAX_CELLS {
        reading.wrong(
            Field::Contexts,
            format!("{cells} cells are more than one run holds ({MAX_CELLS}): take fewer contexts or levels"),
        );
    }
}

fn join<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl From<RunPlan> for PlanDraft {
    fn from(plan: RunPlan) -> Self {
        let mut draft = Self {
            target: plan.target.0,
            model: plan.model.unwrap_or_default(),
            name: plan.name.unwrap_or_default(),
            contexts: join(&plan.contexts),
            concurrency: join(&plan.concurrency),
            leave_out: plan.leave_out.to_string(),
            prefill_contexts: match &plan.prefill {
                Prefill::FromWarmUp => String::new(),
                Prefill::Cold(contexts) => join(contexts),
                Prefill::None => "none".into(),
            },
            duration: duration_label(plan.duration),
            max_output: plan.max_output_tokens.to_string(),
            seed: plan.seed.to_string(),
            ..Self::default()
        };
        plan.manner.write(&mut draft);
        draft
    }
}
