//! From the documents that a server answered to what is known about it.

use serde_json::Value;
use speedmatrix_shared::target::{EngineFacts, HardwareFacts, Limits, SimulatedFacts, TargetFacts};

use super::ProbeError;
use crate::{
    client::{
        Target,
        prometheus::{EngineGauges, EngineKind, ScrapeError},
    },
    secret::redact,
};

/// What engines call themselves in `owned_by`.
const OWNERS: [(&str, &str); 4] =
    [("vllm", "vllm"), ("sglang", "sglang"), ("llamacpp", "llama.cpp"), ("library", "ollama")];
/// The name of an engine that isn't recognised.
const GENERIC_ENGINE: &str = "openai-compatible";

/// Everything that was answered.
pub(super) struct Documents {
    pub(super) list: Vec<Value>,
    pub(super) version: Option<Value>,
    pub(super) sim_info: Option<Value>,
    pub(super) props: Option<Value>,
    pub(super) server_info: Option<Value>,
    pub(super) gauges: Result<EngineGauges, ScrapeError>,
}

/// The name of an entry of the model list.
pub(super) fn model_id(entry: &Value) -> Option<&str> {
    text(entry, "/id").filter(|id| !id.is_empty())
}

impl Documents {
    pub(super) fn facts(&self, target: &Target, wanted: Option<&str>) -> Result<TargetFacts, ProbeError> {
        let models: Vec<String> = self.list.iter().filter_map(model_id).map(ToOwned::to_owned).collect();
        let entry = match wanted {
            None => self.list.iter().find(|entry| model_id(entry).is_some()),
            Some(name) => self.list.iter().find(|entry| goes_by(entry, name)),
        };
        let Some(entry) = entry else {
            return Err(ProbeError::NoSuchModel {
                url: target.url.as_str().to_owned(),
                wanted: wanted.unwrap_or_default().to_owned(),
                offered: models,
            });
        };
        let engine = self.engine(entry);
        let served = wanted.or_else(|| model_id(entry)).map(ToOwned::to_owned);
        let mut warnings = Vec::new();
        if let Err(error) = &self.gauges {
            warnings.push(error.to_string());
        }
        Ok(TargetFacts {
            base_url: target.url.as_str().to_owned(),
            // A path may be an address with credentials in it.
            model: self.model_itself(entry).map(|path| redact(&path, target.key.as_ref())).or_else(|| served.clone()),
            served_model: served,
            revision: self.server_info.as_ref().and_then(|info| text(info, "/revision")).map(ToOwned::to_owned),
            models,
            hardware: self.sim_info.as_ref().map(simulated_hardware).unwrap_or_default(),
            limits: self.limits(entry),
            launch_command: None,
            simulated: self.simulated(),
            engine,
            warnings,
            ..TargetFacts::default()
        })
    }

    fn simulated(&self) -> Option<SimulatedFacts> {
        let info = self.sim_info.as_ref().filter(|info| info.get("simulated") == Some(&Value::Bool(true)))?;
        Some(SimulatedFacts {
            preset: text(info, "/preset")?.to_owned(),
            clock_factor: info.get("clock_factor")?.as_f64().filter(|factor| factor.is_finite() && *factor > 0.0)?,
            seed: number(info, "/seed")?,
        })
    }

    fn engine(&self, entry: &Value) -> EngineFacts {
        let from_gauges = self.gauges.as_ref().ok().map(|gauges| gauges.engine.name());
        let owner = text(entry, "/owned_by");
        let from_owner = OWNERS.iter().find(|(key, _)| owner == Some(key)).map(|(_, engine)| *engine);
        let from_documents = if self.props.as_ref().is_some_and(|props| props.get("total_slots").is_some()) {
            Some(EngineKind::LlamaCpp.name())
        } else if self.server_info.as_ref().is_some_and(|info| info.get("max_total_num_tokens").is_some()) {
            Some(EngineKind::Sglang.name())
        } else {
            None
        };
        let engine = from_gauges.or(from_documents).or(from_owner).unwrap_or(GENERIC_ENGINE);
        let of =
            |document: &Option<Value>, pointer| document.as_ref().and_then(|d| text(d, pointer).map(ToOwned::to_owned));
        EngineFacts {
            engine: Some(engine.to_owned()),
            version: of(&self.server_info, "/version").or_else(|| of(&self.version, "/version")),
            quantization: of(&self.server_info, "/quantization").or_else(|| of(&self.props, "/model_ftype")),
            backend: None,
            repository: None,
            build: of(&self.props, "/build_info"),
        }
    }

    /// The model's own name: vLLM's `root`, SGLang's and llama.cpp's `model_path`.
    fn model_itself(&self, entry: &Value) -> Option<String> {
        let path =
            |document: &Option<Value>| document.as_ref().and_then(|d| text(d, "/model_path").map(ToOwned::to_owned));
        let root = text(entry, "/root").filter(|root| !root.is_empty());
        root.map(ToOwned::to_owned).or_else(|| path(&self.server_info)).or_else(|| path(&self.props))
    }

    fn limits(&self, entry: &Value) -> Limits {
        let of = |document: &Option<Value>, pointer| document.as_ref().and_then(|d| number(d, pointer));
        let max_model_len = number(entry, "/max_model_len")
            .or_else(|| number(entry, "/meta/n_ctx"))
            .or_else(|| of(&self.props, "/default_generation_settings/n_ctx"))
            .or_else(|| of(&self.server_info, "/context_length"))
            .or_else(|| of(&self.sim_info, "/max_model_len"));
        let max_sequences = of(&self.sim_info, "/max_sequences")
            .or_else(|| of(&self.props, "/total_slots"))
            .or_else(|| of(&self.server_info, "/max_running_requests"));
        let scraped = self.gauges.as_ref().ok().and_then(|gauges| gauges.kv_tokens).map(|tokens| tokens as u64);
        Limits {
            max_model_len,
            max_sequences: max_sequences.and_then(|count| u32::try_from(count).ok()),
            kv_tokens: scraped.or_else(|| of(&self.server_info, "/max_total_num_tokens")),
        }
    }
}

/// A simulator's made-up machine.
fn simulated_hardware(info: &Value) -> HardwareFacts {
    let bytes_each = number(info, "/hardware/memory_bytes_each");
    let gpu_count = number(info, "/hardware/gpu_count").and_then(|count| u32::try_from(count).ok());
    // The simulator's card sizes are what a vendor prints, in units of 2³⁰ bytes.
    let each_gb = bytes_each.map(|bytes| bytes as f64 / f64::from(1 << 30));
    HardwareFacts {
        kind: Some("Simulated".to_owned()),
        gpu: text(info, "/hardware/gpu").map(ToOwned::to_owned),
        gpu_count,
        vram_total_gb: each_gb.zip(gpu_count).map(|(each, count)| each * f64::from(count)),
        vram_each_gb: each_gb,
        ..HardwareFacts::default()
    }
}

/// Whether requests for `name` reach this entry: its id or one of its aliases.
fn goes_by(entry: &Value, name: &str) -> bool {
    let aliases = entry.get("aliases").and_then(Value::as_array);
    model_id(entry) == Some(name) || aliases.is_some_and(|all| all.iter().any(|alias| alias.as_str() == Some(name)))
}

fn text<'a>(document: &'a Value, pointer: &str) -> Option<&'a str> {
    document.pointer(pointer).and_then(Value::as_str)
}

/// A positive whole number; 0 and negative ones mean "unknown" where engines say them.
fn number(document: &Value, pointer: &str) -> Option<u64> {
    document.pointer(pointer).and_then(Value::as_u64).filter(|number| *number > 0)
}
