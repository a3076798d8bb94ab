//! From a page of series to what an engine says about itself: exact names only, added up over all its replicas. What isn't
//! there, or isn't a number, is unknown.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    exposition::{Page, Sample},
    known::{EngineKind, Meaning, meaning},
};

/// Labels of ranks that mirror one scheduler: of their equal series only the largest counts.
const MIRROR_LABELS: [&str; 6] = ["tp_rank", "pp_rank", "cp_rank", "attn_cp_rank", "ep_rank", "moe_ep_rank"];

/// A label whose series are parts of the one without a value for it: they would be counted twice.
const PART_LABEL: &str = "priority";

/// What one look at an engine tells, over all its replicas. `None` is unknown, never 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EngineGauges {
    /// Whose names they are; the one with most series, if there are several.
    pub engine: EngineKind,
    /// Another engine whose names are on the same page.
    pub beside: Option<EngineKind>,
    /// Replicas (data-parallel ranks, workers) that tell.
    pub replicas: u32,
    /// Requests being worked on.
    pub running: Option<f64>,
    /// Requests that wait.
    pub waiting: Option<f64>,
    /// Used share (0–1) of the KV cache, mean over replicas.
    pub kv_usage: Option<f64>,
    /// Used share (0–1) of the fullest replica's KV cache: that one throws requests out first.
    pub kv_usage_max: Option<f64>,
    /// Tokens that the KV caches hold.
    pub kv_tokens: Option<KvTokens>,
    /// Most requests decoding at once.
    pub max_sequences: Option<f64>,
    /// Whether prompts' prefixes are cached.
    pub prefix_cache: Option<bool>,
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
    /// Speculation: drafts that were verified since the engine started.
    pub drafts: Option<f64>,
    /// Speculation: tokens in them.
    pub draft_tokens: Option<f64>,
    /// Speculation: of these, accepted.
    pub accepted_tokens: Option<f64>,
    /// Speculation: tokens per step of late, mean over replicas, for engines that tell no counters.
    pub accept_length: Option<f64>,
    /// Output tokens per second of late, for engines that tell it.
    pub gen_throughput: Option<f64>,
}

/// How many tokens the KV caches hold, and how that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KvTokens {
    /// The engine says so.
    Told(f64),
    /// Blocks × tokens per block: too much for models with several kinds of attention, whose blocks are shared out.
    FromBlocks(f64),
}

impl KvTokens {
    /// The number.
    pub const fn tokens(self) -> f64 {
        match self {
            Self::Told(tokens) | Self::FromBlocks(tokens) => tokens,
        }
    }
}

impl EngineGauges {
    /// Of an engine that tells nothing.
    pub const fn unknown(engine: EngineKind) -> Self {
        Self {
            engine,
            beside: None,
            replicas: 1,
            running: None,
            waiting: None,
            kv_usage: None,
            kv_usage_max: None,
            kv_tokens: None,
            max_sequences: None,
            prefix_cache: None,
            generation_tokens: None,
            prompt_tokens: None,
            preemptions: None,
            prefix_queries: None,
            prefix_hits: None,
            drafts: None,
            draft_tokens: None,
            accepted_tokens: None,
            accept_length: None,
            gen_throughput: None,
        }
    }

    /// What a page tells; `None`: it has no known engine's names.
    pub fn of(page: &Page<'_>) -> Option<Self> {
        let mut engines: BTreeMap<EngineKind, Found> = BTreeMap::new();
        for sample in &page.samples {
            if let Some((engine, meaning, rank)) = meaning(&sample.name) {
                engines.entry(engine).or_default().take(meaning, rank, sample);
            }
        }
        let mut by_series: Vec<(EngineKind, Found)> = engines.into_iter().collect();
        by_series.sort_by_key(|(_, found)| std::cmp::Reverse(found.series));
        let mut by_series = by_series.into_iter();
        let (engine, found) = by_series.next()?;
        Some(Self { beside: by_series.next().map(|(engine, _)| engine), ..found.gauges(engine) })
    }

    /// What is told, in the field's words, in a fixed order.
    pub fn words(&self) -> Vec<&'static str> {
        let told = [
            ("running", self.running.is_some()),
            ("waiting", self.waiting.is_some()),
            ("kv use", self.kv_usage.is_some()),
            ("preemptions", self.preemptions.is_some()),
            ("output tokens", self.generation_tokens.is_some()),
            ("prompt tokens", self.prompt_tokens.is_some()),
            ("prefix cache", self.prefix_hits.is_some()),
            ("speculation", self.speculates() || self.draft_tokens.is_some()),
        ];
        told.into_iter().filter(|(_, is_told)| *is_told).map(|(word, _)| word).collect()
    }

    /// Whether tokens were drafted since the engine started.
    pub fn speculates(&self) -> bool {
        self.draft_tokens.or(self.drafts).is_some_and(|drafted| drafted > 0.0)
            || self.accept_length.is_some_and(|length| length > 1.0)
    }
}

/// Series of one engine by what they mean.
#[derive(Debug, Default)]
struct Found {
    series: usize,
    /// By meaning, then by how old its name is: a newer name stands for the older ones.
    values: BTreeMap<Meaning, BTreeMap<usize, Replicas>>,
    explicit: Replicas,
    blocks: Replicas,
    prefix_cache: BTreeSet<bool>,
}

impl Found {
    fn take(&mut self, meaning: Meaning, rank: usize, sample: &Sample<'_>) {
        if sample.label(PART_LABEL).is_some_and(|part| !part.is_empty()) {
            return;
        }
        self.series += 1;
        if meaning == Meaning::CacheConfig {
            let number = |name: &str| {
                let number: f64 = sample.label(name)?.parse().ok()?;
                (number.is_finite() && number > 0.0).then_some(number)
            };
            // Its labels carry the values, so that they can't tell replicas apart; the engine's own can.
            let replica =
                sample.labels.iter().filter(|(key, _)| matches!(key.as_ref(), "engine" | "dp_rank" | "WorkerId"));
            let replica: Vec<String> = replica.map(|(key, value)| format!("{key}={value}")).collect();
            self.explicit.put(replica.clone(), number("kv_cache_size_tokens"));
            let blocks = number("block_size").zip(number("num_gpu_blocks"));
            self.blocks.put(replica, blocks.map(|(size, count)| size * count));
            self.prefix_cache.extend(sample.label("enable_prefix_caching").and_then(switch));
            return;
        }
        self.values.entry(meaning).or_default().entry(rank).or_default().add(sample);
    }

    fn replicas(&self, meaning: Meaning) -> Option<&Replicas> {
        self.values.get(&meaning)?.values().next()
    }

    fn gauges(&self, engine: EngineKind) -> EngineGauges {
        let sum = |meaning| self.replicas(meaning).and_then(Replicas::sum);
        let mean = |meaning| self.replicas(meaning).and_then(Replicas::mean);
        let largest = |meaning| self.replicas(meaning).and_then(Replicas::largest);
        let told = sum(Meaning::KvTokens).or_else(|| self.explicit.sum()).map(KvTokens::Told);
        let product = sum(Meaning::KvBlocks).zip(largest(Meaning::KvBlockTokens)).map(|(count, size)| count * size);
        let load = [Meaning::Running, Meaning::Waiting, Meaning::GenerationTokens];
        let replicas = load.into_iter().find_map(|meaning| self.replicas(meaning)).map(|all| all.0.len());
        EngineGauges {
            engine,
            beside: None,
            replicas: replicas.and_then(|count| u32::try_from(count).ok()).unwrap_or(1).max(1),
            running: sum(Meaning::Running),
            waiting: sum(Meaning::Waiting),
            kv_usage: mean(Meaning::KvUsage),
            kv_usage_max: largest(Meaning::KvUsage),
            kv_tokens: told.or_else(|| self.blocks.sum().or(product).map(KvTokens::FromBlocks)),
            max_sequences: sum(Meaning::MaxSequences),
            // Replicas that differ leave it unknown.
            prefix_cache: self.prefix_cache.first().copied().filter(|_| self.prefix_cache.len() == 1),
            generation_tokens: sum(Meaning::GenerationTokens),
            prompt_tokens: sum(Meaning::PromptTokens),
            preemptions: sum(Meaning::Preemptions),
            prefix_queries: sum(Meaning::PrefixQueries),
            prefix_hits: sum(Meaning::PrefixHits),
            drafts: sum(Meaning::Drafts),
            draft_tokens: sum(Meaning::DraftTokens),
            accepted_tokens: sum(Meaning::AcceptedTokens),
            accept_length: mean(Meaning::AcceptLength),
            gen_throughput: sum(Meaning::GenThroughput),
        }
    }
}

/// Python's and JSON's words for yes and no.
fn switch(word: &str) -> Option<bool> {
    match word {
        "True" | "true" => Some(true),
        "False" | "false" => Some(false),
        _ => None,
    }
}

/// Values of one meaning by replica; a replica with a gap makes what is said of all of them unknown.
#[derive(Debug, Default)]
struct Replicas(BTreeMap<Vec<String>, Option<f64>>);

impl Replicas {
    fn add(&mut self, sample: &Sample<'_>) {
        let kept = sample.labels.iter().filter(|(key, _)| !MIRROR_LABELS.contains(&key.as_ref()));
        let mut replica: Vec<String> = kept.map(|(key, value)| format!("{key}={value}")).collect();
        replica.sort();
        self.put(replica, sample.value);
    }

    fn put(&mut self, replica: Vec<String>, value: Option<f64>) {
        self.0.entry(replica).and_modify(|old| *old = old.zip(value).map(|(a, b)| a.max(b))).or_insert(value);
    }

    fn sum(&self) -> Option<f64> {
        (!self.0.is_empty()).then_some(())?;
        self.0.values().copied().sum()
    }

    fn mean(&self) -> Option<f64> {
        self.sum().map(|sum| sum / self.0.len() as f64)
    }

    fn largest(&self) -> Option<f64> {
        self.sum()?;
        self.0.values().copied().flatten().max_by(f64::total_cmp)
    }
}

#[cfg(test)]
#[path = "gauges_tests.rs"]
mod tests;
