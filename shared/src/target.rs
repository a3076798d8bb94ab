//! What is known about the server under test. Everything is optional: unknown is `None`, never 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{gpu::GpuReading, host::ProcessFacts};

/// The machine behind the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HardwareFacts {
    /// `Discrete GPU`, `CPU only` …
    pub kind: Option<String>,
    /// Name of one GPU.
    pub gpu: Option<String>,
    /// GPUs that the server uses.
    pub gpu_count: Option<u32>,
    /// Memory of all of them, GB as the vendor counts.
    pub vram_total_gb: Option<f64>,
    /// Memory of one of them, GB.
    pub vram_each_gb: Option<f64>,
    /// Operating system.
    pub os: Option<String>,
    /// Version of its kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Its cores, over all sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<u32>,
    /// Memory of the machine, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ram_bytes: Option<u64>,
    /// Version of the GPUs' driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Highest CUDA version that the driver serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// GPUs of the machine, used or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_on_host: Option<u32>,
    /// How it is known which GPUs the server uses: `its processes`, `CUDA_VISIBLE_DEVICES` …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_known_by: Option<String>,
    /// The GPUs that the server uses, as they were when the target was looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuReading>,
}

/// The program that serves the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineFacts {
    /// `vllm`, `sglang`, `llama.cpp` … or `openai-compatible`.
    pub engine: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Weights and KV format, for example `MXFP4+FP8`.
    pub quantization: Option<String>,
    /// `cuda`, `rocm`, `cpu` …
    pub backend: Option<String>,
    /// Where its source lives.
    pub repository: Option<String>,
    /// Build flavour.
    pub build: Option<String>,
}

/// What the server can hold, in tokens and requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Longest prompt + answer, tokens.
    pub max_model_len: Option<u64>,
    /// Most requests decoding at once.
    pub max_sequences: Option<u32>,
    /// Tokens that the KV cache holds.
    pub kv_tokens: Option<u64>,
}

/// A fact about a target that has a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactName {
    /// [`EngineFacts::engine`].
    Engine,
    /// [`EngineFacts::version`].
    Version,
    /// [`EngineFacts::quantization`].
    Quantization,
    /// [`EngineFacts::build`].
    Build,
    /// [`TargetFacts::model`].
    Model,
    /// [`TargetFacts::revision`].
    Revision,
    /// [`Limits::max_model_len`].
    MaxModelLen,
    /// [`Limits::max_sequences`].
    MaxSequences,
    /// [`Limits::kv_tokens`].
    KvTokens,
}

impl FactName {
    /// Plain words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Engine => "Engine",
            Self::Version => "Version",
            Self::Quantization => "Quantization",
            Self::Build => "Build",
            Self::Model => "Model",
            Self::Revision => "Revision",
            Self::MaxModelLen => "Longest context",
            Self::MaxSequences => "Decodes at once",
            Self::KvTokens => "KV cache holds",
        }
    }

    /// Whether it is a number; else it is a text.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::MaxModelLen | Self::MaxSequences | Self::KvTokens)
    }
}

/// How surely something is known; ordered, the least sure first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sureness {
    /// It stands for something near it, or is derived.
    Guess,
    /// One sign that others may show too.
    Likely,
    /// The engine says so itself.
    Certain,
}

impl Sureness {
    /// One plain word.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Guess => "a guess",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

/// Where a fact about a target came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactSource {
    /// Which fact.
    pub fact: FactName,
    /// What was asked, as a path below the target's address.
    pub endpoint: String,
    /// How surely it is that.
    pub sureness: Sureness,
}

impl FactSource {
    /// How surely, and where: `from /props`, `likely, from /v1/models`, `a guess from /metrics`.
    pub fn words(&self) -> String {
        let surely = match self.sureness {
            Sureness::Certain => "",
            Sureness::Likely => "likely, ",
            Sureness::Guess => "a guess ",
        };
        format!("{surely}from {}", self.endpoint)
    }
}

/// A target that is a simulator says so, and how fast its clock runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulatedFacts {
    /// The simulator's preset.
    pub preset: String,
    /// Simulated seconds per real second. The run's own clock runs at the same factor, so its
    /// times and rates are simulated ones.
    pub clock_factor: f64,
    /// The simulator's seed.
    pub seed: u64,
}

/// Everything the probe found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetFacts {
    /// The base address, without `/v1` and without credentials.
    pub base_url: String,
    /// The name under which requests ask for the model.
    pub served_model: Option<String>,
    /// The model itself (repository name or path).
    pub model: Option<String>,
    /// Its revision.
    pub revision: Option<String>,
    /// All models on offer.
    pub models: Vec<String>,
    /// The engine.
    pub engine: EngineFacts,
    /// The machine.
    pub hardware: HardwareFacts,
    /// Its limits.
    pub limits: Limits,
    /// How it was started, secrets removed.
    pub launch_command: Option<String>,
    /// Set when the server is a simulator.
    pub simulated: Option<SimulatedFacts>,
    /// What the reader should know, in sentences.
    pub warnings: Vec<String>,
    /// Where each fact came from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<FactSource>,
    /// What the engine tells about itself while it works: `running`, `kv use` …
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gauges: Vec<String>,
    /// Only for imported pages: facts of the run in the page's own words, by label (`Prefill mode`).
    /// They are shown instead of what the plan would say.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub published: BTreeMap<String, String>,
    /// The server's process, if it runs on the machine that measures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessFacts>,
    /// Why a fact is not known, by its name (`launch_command`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<String, String>,
}

impl TargetFacts {
    /// Where a fact came from.
    pub fn source(&self, fact: FactName) -> Option<&FactSource> {
        self.sources.iter().find(|source| source.fact == fact)
    }
}

/// The facts line of a target: `vllm · 0.25.0 · MXFP4+FP8`.
pub fn engine_line(facts: Option<&TargetFacts>) -> String {
    let Some(engine) = facts.map(|f| &f.engine) else { return String::new() };
    let parts = [&engine.engine, &engine.version, &engine.quantization];
    parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(" · ")
}
