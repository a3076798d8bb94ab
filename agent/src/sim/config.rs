//! What a simulator is told to be, and the presets.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::physics::{BatchPhysics, Physics, Speculation, TokenTime};
use super::script::Script;

/// Everything that makes a simulated server. Start from [`SimConfig::preset`] and change fields.
#[derive(Debug, Clone, PartialEq)]
pub struct SimConfig {
    /// Name of the preset that this began as; told by `/sim/info`.
    pub preset: String,
    /// The served model's name.
    pub model: String,
    /// Seed of all that is drawn: texts, lengths, acceptance, misbehaviour.
    pub seed: u64,
    /// Simulated seconds per real second, at least 1.
    pub clock_factor: f64,
    /// The law of time.
    pub physics: Physics,
    /// Speculative decoding, if the engine has it.
    pub speculation: Option<Speculation>,
    /// Which `usage` the server can give in a stream.
    pub usage: UsageStyle,
    /// Bearer key that `/v1` asks for; `None` = open.
    pub api_key: Option<ApiKey>,
    /// Most tokens of prompt and output together in one request.
    pub max_model_len: u64,
    /// Most requests that run at once; the others queue.
    pub max_sequences: usize,
    /// KV memory in tokens, at least `max_model_len`.
    pub kv_tokens: u64,
    /// Prompt tokens that the chat template adds.
    pub template_tokens: u64,
    /// Bytes of text per prompt token.
    pub bytes_per_token: u64,
    /// Mean output of a request that doesn't ask for `ignore_eos` (log-normal, σ 0.6), tokens.
    pub mean_output_tokens: u64,
    /// Misbehaviour.
    pub script: Script,
    /// How much of each request the log keeps.
    pub recording: Recording,
    /// The machine that the simulator claims to be.
    pub hardware: Hardware,
}

/// Which `usage` a stream can carry. It is a capability: as in vLLM, a client gets the final one only when it asks with
/// `stream_options.include_usage`, and one per chunk only when it also asks for `continuous_usage_stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageStyle {
    /// In every chunk and at the end.
    EveryChunk,
    /// At the end only, as llama.cpp does.
    FinalOnly,
    /// Never, as some proxies do.
    None,
}

/// How much of each request the log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    /// Stamps of the first and last token.
    FirstAndLast,
    /// Also one entry per chunk (40 bytes each).
    EveryChunk,
}

/// A key that can't be printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(super) fn opens(&self, authorization: Option<&str>) -> bool {
        authorization.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|key| key == self.0)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// Simulated hardware, told by `/sim/info`. Nothing of it is real; power follows the load by a made-up curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hardware {
    /// Product name of each GPU.
    pub gpu: String,
    /// How many.
    pub gpu_count: u32,
    /// Memory of each, bytes.
    pub memory_bytes_each: u64,
    /// Power of each when idle, watts.
    pub idle_watts: f64,
    /// Power limit of each, watts.
    pub limit_watts: f64,
}

/// No preset has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no simulator preset `{name}`; use one of: {known}")]
pub struct UnknownPreset {
    name: String,
    known: String,
}

/// A configuration that can't run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadConfig {
    /// The clock would stand still or run backwards.
    #[error("clock factor {0} can't be simulated; give a finite number of at least 1")]
    ClockFactor(f64),
    /// A single request could wait for ever.
    #[error(
        "a request of {max_model_len} tokens never fits {kv_tokens} tokens of kv memory; raise kv_tokens or lower max_model_len"
    )]
    KvTooSmall {
        /// The configured limit of a request.
        max_model_len: u64,
        /// The configured memory.
        kv_tokens: u64,
    },
    /// A value that must be positive isn't.
    #[error("{0} is zero; give at least 1")]
    Zero(&'static str),
    /// Speculation outside what the metrics can show.
    #[error("{0} draft tokens can't be simulated; give 1 to {MAX_DRAFT_TOKENS}")]
    DraftTokens(u32),
}

/// Most draft tokens per step.
pub(super) const MAX_DRAFT_TOKENS: u32 = 16;

const GIB: u64 = 1 << 30;

/// Names and one-line descriptions, in the order in which they are offered.
const PRESETS: &[(&str, &str)] = &[
    ("reference", "two simulated H200 NVL serving a 1M-token model with speculation, fitted to the reference page"),
    ("exact", "50 ms to the first token, 10 ms per token, no queue, no noise: for tests and benchmarks"),
    ("exact-speculative", "like exact, with 1 to 8 tokens per 10 ms step"),
    ("small", "one simulated 24 GB card serving a small 32K model, 16 requests at once: queues soon"),
];

impl SimConfig {
    /// The preset of this name; see [`Self::presets`].
    pub fn preset(name: &str) -> Result<Self, UnknownPreset> {
        match name {
            "reference" => Ok(Self::reference()),
            "exact" => Ok(Self::exact()),
            "exact-speculative" => Ok(Self {
                preset: "exact-speculative".to_owned(),
                speculation: Some(Speculation { draft_tokens: 7, mean_length: 3.5, text_sigma: 0.25 }),
                ..Self::exact()
            }),
            "small" => Ok(Self::small()),
            _ => Err(UnknownPreset {
                name: name.to_owned(),
                known: PRESETS.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Names and one-line descriptions of all presets.
    pub fn presets() -> &'static [(&'static str, &'static str)] {
        PRESETS
    }

    /// Whether this can run.
    pub fn check(&self) -> Result<(), BadConfig> {
        let positive = [
            ("max_model_len", self.max_model_len),
            ("max_sequences", self.max_sequences as u64),
            ("bytes_per_token", self.bytes_per_token),
            ("mean_output_tokens", self.mean_output_tokens),
        ];
        if let Some((name, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(BadConfig::Zero(name));
        }
        if !self.clock_factor.is_finite() || self.clock_factor < 1.0 {
            return Err(BadConfig::ClockFactor(self.clock_factor));
        }
        if self.kv_tokens < self.max_model_len {
            return Err(BadConfig::KvTooSmall { max_model_len: self.max_model_len, kv_tokens: self.kv_tokens });
        }
        match self.speculation {
            Some(Speculation { draft_tokens, .. }) if !(1..=MAX_DRAFT_TOKENS).contains(&draft_tokens) => {
                Err(BadConfig::DraftTokens(draft_tokens))
            }
            _ => Ok(()),
        }
    }

    /// Fitted to the sample run that ships with the product: `DeepSeek-V4-Flash` on two H200 NVL, vLLM 0.25.0. The kv
    /// memory and the slowdown during prefill are assumptions, the page doesn't tell them.
    fn reference() -> Self {
        Self {
            preset: "reference".to_owned(),
            model: "deepseek".to_owned(),
            seed: 1,
            clock_factor: 1.0,
            physics: Physics::Batch(BatchPhysics {
                token_time: TokenTime {
                    base_ms: 1.363,
                    sqrt_ms: 1.795,
                    streams_ms: 0.0507,
                    context_ms: 0.001_377,
                    product_ms: 0.000_397,
                },
                frontend_secs: 0.084,
                prefill_secs_per_token: 7.87e-5,
                prefill_secs_per_token2: 7.3e-11,
                ingest_tokens_per_sec: 0.64e6,
                free_tail_tokens: 512,
                prefill_slowdown: 1.5,
                step_sigma: 0.05,
            }),
            speculation: Some(Speculation { draft_tokens: 7, mean_length: 3.5, text_sigma: 0.25 }),
            usage: UsageStyle::EveryChunk,
            api_key: None,
            max_model_len: 1_048_576,
            max_sequences: 256,
            kv_tokens: 2_097_152,
            template_tokens: 135,
            bytes_per_token: 5,
            mean_output_tokens: 700,
            script: Script::default(),
            recording: Recording::FirstAndLast,
            hardware: Hardware {
                gpu: "NVIDIA H200 NVL (simulated)".to_owned(),
                gpu_count: 2,
                memory_bytes_each: 141 * GIB,
                idle_watts: 75.0,
                limit_watts: 600.0,
            },
        }
    }

    fn exact() -> Self {
        Self {
            preset: "exact".to_owned(),
            model: "exact".to_owned(),
            physics: Physics::Fixed { first_token: Duration::from_millis(50), step: Duration::from_millis(10) },
            speculation: None,
            max_sequences: 65_536,
            // Holds 128 different documents of a million tokens.
            kv_tokens: 1 << 28,
            mean_output_tokens: 100,
            ..Self::reference()
        }
    }

    /// Made up, of the size of an 8B model on a consumer card.
    fn small() -> Self {
        Self {
            preset: "small".to_owned(),
            model: "small-8b".to_owned(),
            physics: Physics::Batch(BatchPhysics {
                token_time: TokenTime {
                    base_ms: 16.0,
                    sqrt_ms: 0.6,
                    streams_ms: 0.12,
                    context_ms: 0.02,
                    product_ms: 0.06,
                },
                frontend_secs: 0.02,
                prefill_secs_per_token: 2.4e-4,
                prefill_secs_per_token2: 1.5e-9,
                ingest_tokens_per_sec: 0.3e6,
                free_tail_tokens: 256,
                prefill_slowdown: 2.0,
                step_sigma: 0.05,
            }),
            speculation: None,
            max_model_len: 32_768,
            max_sequences: 16,
            kv_tokens: 65_536,
            template_tokens: 21,
            mean_output_tokens: 300,
            hardware: Hardware {
                gpu: "24 GB card (simulated)".to_owned(),
                gpu_count: 1,
                memory_bytes_each: 24 * GIB,
                idle_watts: 20.0,
                limit_watts: 350.0,
            },
            ..Self::reference()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_run_and_knows_its_name() {
        for (name, _) in SimConfig::presets() {
            let config = SimConfig::preset(name).unwrap();
            assert_eq!(config.check(), Ok(()), "{name}");
            assert_eq!(&config.preset, name);
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let unknown = SimConfig::preset("refrence").unwrap_err().to_string();
        insta::assert_snapshot!(unknown, @"there is no simulator preset `refrence`; use one of: reference, exact, exact-speculative, small");
        let exact = SimConfig::exact();
        let bad = [
            SimConfig { clock_factor: 0.5, ..exact.clone() },
            SimConfig { kv_tokens: 10, ..exact.clone() },
            SimConfig { max_sequences: 0, ..exact },
        ];
        let errors = bad.map(|config| config.check().unwrap_err().to_string()).join("\n");
        insta::assert_snapshot!(errors, @"
        clock factor 0.5 can't be simulated; give a finite number of at least 1
        a request of 1048576 tokens never fits 10 tokens of kv memory; raise kv_tokens or lower max_model_len
        max_sequences is zero; give at least 1
        ");
    }

    #[test]
    fn the_key_is_not_printed() {
        let key = ApiKey::new("sk-1");
        assert!(key.opens(Some("Bearer sk-1")));
        assert!(!key.opens(Some("Bearer sk-2")) && !key.opens(None));
        assert_eq!(format!("{key:?}"), "ApiKey(..)");
    }
}
