//! The engine's own gauges and counters from its Prometheus page. Only what is needed, by exact names, summed over all
//! replicas. What isn't there, or isn't a number, is unknown.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use super::http::{AskError, Http};

/// Where engines keep the page.
const METRICS_PATH: &str = "/metrics";
/// Longest wait for it.
const SCRAPE_LIMIT: Duration = Duration::from_secs(5);
/// Longest label list of one series; real ones have about ten.
const MAX_LABELS: usize = 64;

/// Engines whose names are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EngineKind {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// The llama.cpp server.
    LlamaCpp,
}

impl EngineKind {
    /// The engine's name as facts carry it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::LlamaCpp => "llama.cpp",
        }
    }
}

/// What one scrape tells, over all replicas. `None` is unknown, never 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EngineGauges {
    /// Whose names they are.
    pub engine: EngineKind,
    /// Requests being worked on.
    pub running: Option<f64>,
    /// Requests that wait.
    pub waiting: Option<f64>,
    /// Used share (0–1) of the KV cache, mean over replicas.
    pub kv_usage: Option<f64>,
    /// Tokens that the KV caches hold.
    pub kv_tokens: Option<f64>,
    /// Output tokens since the engine started.
    pub generation_tokens: Option<f64>,
    /// Prompt tokens since the engine started.
    pub prompt_tokens: Option<f64>,
    /// Requests thrown out and started again since the engine started.
    pub preemptions: Option<f64>,
    /// Prompt tokens looked up in the prefix cache since the engine started.
    pub prefix_queries: Option<f64>,
    /// Of these, found.
    pub prefix_hits: Option<f64>,
}

impl EngineGauges {
    /// Of an engine that tells nothing.
    pub const fn unknown(engine: EngineKind) -> Self {
        Self {
            engine,
            running: None,
            waiting: None,
            kv_usage: None,
            kv_tokens: None,
            generation_tokens: None,
            prompt_tokens: None,
            preemptions: None,
            prefix_queries: None,
            prefix_hits: None,
        }
    }
}

/// Why a target has no gauges.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScrapeError {
    /// No answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Another status than 200.
    #[error("{url} answered {status} ({excerpt}): start the engine with its metrics on to see queue and cache")]
    Status {
        /// What was asked.
        url: String,
        /// HTTP status.
        status: u16,
        /// What it said.
        excerpt: String,
    },
    /// A page without any known engine's names.
    #[error("{url} has no gauges of vllm, sglang or llama.cpp: queue and cache of the engine stay unknown")]
    Unknown {
        /// What was asked.
        url: String,
    },
}

/// Reads the target's gauges once.
pub async fn scrape(http: &Http) -> Result<EngineGauges, ScrapeError> {
    let url = || format!("{}{METRICS_PATH}", http.target().url.as_str());
    let answer = http.get_within(METRICS_PATH, SCRAPE_LIMIT).await?;
    if answer.status != 200 {
        return Err(ScrapeError::Status { url: url(), status: answer.status, excerpt: http.excerpt(&answer.body) });
    }
    gauges(&parse(&answer.body)).ok_or_else(|| ScrapeError::Unknown { url: url() })
}

/// One series with its value.
#[derive(Debug, Clone, PartialEq)]
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, Cow<'a, str>)>,
    /// `None`: NaN or infinite.
    value: Option<f64>,
}

/// A parsed page.
#[derive(Debug, Clone, Default, PartialEq)]
struct Page<'a> {
    samples: Vec<Sample<'a>>,
    /// Lines that could not be read.
    skipped_lines: u32,
}

fn parse(text: &str) -> Page<'_> {
    let mut page = Page::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match sample(line) {
            Some(sample) => page.samples.push(sample),
            None => page.skipped_lines += 1,
        }
    }
    page
}

/// `name`, then maybe labels in braces, then a value, then maybe a time stamp.
fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':').filter(|end| *end > 0)?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { name, labels, value: value.is_finite().then_some(value) })
}

/// Labels up to the closing brace, and what stands after it.
#[expect(clippy::type_complexity, reason = "a pair of what was read and what is left, used in one place")]
fn labels(mut rest: &str) -> Option<(Vec<(&str, Cow<'_, str>)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        if labels.len() == MAX_LABELS {
            return None;
        }
        let (key, after) = rest.split_once('=')?;
        let (value, after) = quoted(after.trim_start().strip_prefix('"')?)?;
        labels.push((key.trim(), value));
        rest = after;
    }
}

/// A label's value up to its closing quote, escapes undone, and what stands after it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    if text.as_bytes()[end] == b'"' {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Cow::Owned(value), &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

/// What a series means to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Meaning {
    Running,
    Waiting,
    KvUsage,
    KvTokens,
    /// vLLM's way to tell the capacity: in labels.
    CacheConfig,
    GenerationTokens,
    PromptTokens,
    Preemptions,
    PrefixQueries,
    PrefixHits,
}

/// Exact names, without the engine's prefix; older names after newer ones.
const NAMES: &[(EngineKind, &str, Meaning)] = &[
    (EngineKind::Vllm, "num_requests_running", Meaning::Running),
    (EngineKind::Vllm, "num_requests_waiting", Meaning::Waiting),
    (EngineKind::Vllm, "kv_cache_usage_perc", Meaning::KvUsage),
    (EngineKind::Vllm, "gpu_cache_usage_perc", Meaning::KvUsage),
    (EngineKind::Vllm, "cache_config_info", Meaning::CacheConfig),
    (EngineKind::Vllm, "generation_tokens_total", Meaning::GenerationTokens),
    (EngineKind::Vllm, "prompt_tokens_total", Meaning::PromptTokens),
    (EngineKind::Vllm, "num_preemptions_total", Meaning::Preemptions),
    (EngineKind::Vllm, "prefix_cache_queries_total", Meaning::PrefixQueries),
    (EngineKind::Vllm, "prefix_cache_hits_total", Meaning::PrefixHits),
    (EngineKind::Vllm, "gpu_prefix_cache_queries_total", Meaning::PrefixQueries),
    (EngineKind::Vllm, "gpu_prefix_cache_hits_total", Meaning::PrefixHits),
    (EngineKind::Sglang, "num_running_reqs", Meaning::Running),
    (EngineKind::Sglang, "num_queue_reqs", Meaning::Waiting),
    (EngineKind::Sglang, "token_usage", Meaning::KvUsage),
    (EngineKind::Sglang, "max_total_num_tokens", Meaning::KvTokens),
    (EngineKind::Sglang, "generation_tokens_total", Meaning::GenerationTokens),
    (EngineKind::Sglang, "prompt_tokens_total", Meaning::PromptTokens),
    (EngineKind::LlamaCpp, "requests_processing", Meaning::Running),
    (EngineKind::LlamaCpp, "requests_deferred", Meaning::Waiting),
    (EngineKind::LlamaCpp, "kv_cache_usage_ratio", Meaning::KvUsage),
    (EngineKind::LlamaCpp, "tokens_predicted_total", Meaning::GenerationTokens),
    (EngineKind::LlamaCpp, "prompt_tokens_total", Meaning::PromptTokens),
];

/// Prefixes that Ray puts in front of an engine's names.
const OUTER_PREFIXES: [&str; 3] = ["ray_serve_", "ray_", ""];
const ENGINE_PREFIXES: [(&str, EngineKind); 3] =
    [("vllm", EngineKind::Vllm), ("sglang", EngineKind::Sglang), ("llamacpp", EngineKind::LlamaCpp)];

/// Labels of ranks that mirror one scheduler: of their equal series only the largest counts.
const MIRROR_LABELS: [&str; 6] = ["tp_rank", "pp_rank", "cp_rank", "attn_cp_rank", "ep_rank", "moe_ep_rank"];

fn meaning(name: &str) -> Option<(EngineKind, Meaning)> {
    let bare = OUTER_PREFIXES.iter().find_map(|prefix| {
        let rest = name.strip_prefix(prefix)?;
        ENGINE_PREFIXES.iter().find_map(|(prefix, engine)| {
            // Some collectors turn the colon into an underscore.
            rest.strip_prefix(prefix)?.strip_prefix([':', '_']).map(|bare| (*engine, bare))
        })
    })?;
    let row = NAMES.iter().find(|(engine, known, _)| (*engine, *known) == bare)?;
    Some((row.0, row.2))
}

/// Values of one meaning by replica; a replica with a gap makes the sum unknown.
#[derive(Debug, Default)]
struct Replicas(BTreeMap<Vec<String>, Option<f64>>);

impl Replicas {
    fn add(&mut self, sample: &Sample<'_>, value: Option<f64>) {
        let kept = sample.labels.iter().filter(|(key, _)| !MIRROR_LABELS.contains(key));
        let mut replica: Vec<String> = kept.map(|(key, value)| format!("{key}={value}")).collect();
        replica.sort();
        self.0.entry(replica).and_modify(|old| *old = old.zip(value).map(|(a, b)| a.max(b))).or_insert(value);
    }

    fn sum(&self) -> Option<f64> {
        (!self.0.is_empty()).then_some(())?;
        self.0.values().copied().sum()
    }

    fn mean(&self) -> Option<f64> {
        self.sum().map(|sum| sum / self.0.len() as f64)
    }
}

fn gauges(page: &Page<'_>) -> Option<EngineGauges> {
    let mut engine = None;
    let mut found: BTreeMap<Meaning, Replicas> = BTreeMap::new();
    for sample in &page.samples {
        let Some((kind, meaning)) = meaning(sample.name) else { continue };
        engine.get_or_insert(kind);
        let (meaning, value) = match meaning {
            Meaning::CacheConfig => (Meaning::KvTokens, kv_capacity(sample)),
            other => (other, sample.value),
        };
        found.entry(meaning).or_default().add(sample, value);
    }
    let sum = |meaning| found.get(&meaning).and_then(Replicas::sum);
    Some(EngineGauges {
        engine: engine?,
        running: sum(Meaning::Running),
        waiting: sum(Meaning::Waiting),
        kv_usage: found.get(&Meaning::KvUsage).and_then(Replicas::mean),
        kv_tokens: sum(Meaning::KvTokens),
        generation_tokens: sum(Meaning::GenerationTokens),
        prompt_tokens: sum(Meaning::PromptTokens),
        preemptions: sum(Meaning::Preemptions),
        prefix_queries: sum(Meaning::PrefixQueries),
        prefix_hits: sum(Meaning::PrefixHits),
    })
}

/// The explicit capacity; else blocks × size, which overstates models with several kinds of attention.
fn kv_capacity(sample: &Sample<'_>) -> Option<f64> {
    let label = |name: &str| {
        let (_, value) = sample.labels.iter().find(|(key, _)| *key == name)?;
        value.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0)
    };
    label("kv_cache_size_tokens").or_else(|| Some(label("block_size")? * label("num_gpu_blocks")?))
}

#[cfg(test)]
#[path = "prometheus_tests.rs"]
mod tests;
