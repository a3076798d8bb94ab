//! From what a server answered to what is known about it, each fact with its source.

use serde_json::Value;
use speedmatrix_shared::target::{
    EngineFacts, FactName, FactSource, HardwareFacts, Limits, SimulatedFacts, TargetFacts,
};

use super::ProbeError;
use crate::{
    client::{Target, http::Http},
    engine::known::{Answers, Claim, SIMULATOR_PATH, Said},
    secret::redact_short,
};

/// Longest text that is kept of what a server tells, characters.
const TEXT_LIMIT_CHARS: usize = 500;
/// Texts above this size are not looked at, bytes.
const TEXT_LIMIT_BYTES: usize = 64 << 10;
/// Most models on offer that are kept.
const MOST_MODELS: usize = 1_000;

/// A text of the server as it may be kept and shown: without secrets, of which it knows its own key, and short.
fn kept(text: &str, target: &Target) -> String {
    if text.len() > TEXT_LIMIT_BYTES {
        return format!("over {TEXT_LIMIT_BYTES} bytes");
    }
    redact_short(text, target.key.as_ref(), TEXT_LIMIT_CHARS)
}

/// The name of an entry of the model list.
pub(super) fn model_id(entry: &Value) -> Option<&str> {
    text(entry, "/id").filter(|id| !id.is_empty())
}

/// The name by which requests reach an entry, to the letter: the wanted one, else its own.
pub(super) fn served(entry: &Value, wanted: Option<&str>) -> Option<String> {
    // A wanted name that is not quite one was read on a page, without what looked like a secret in it.
    wanted.filter(|name| goes_by(entry, name)).or_else(|| model_id(entry)).map(ToOwned::to_owned)
}

/// All names on offer, and the entry to measure: the wanted one, else the first that is loaded.
pub(super) fn chosen(http: &Http, list: Vec<Value>, wanted: Option<&str>) -> Result<(Vec<String>, Value), ProbeError> {
    let shown = |entry: &Value| model_id(entry).map(|id| kept(id, http.target()));
    let offered: Vec<String> = list.iter().filter_map(shown).take(MOST_MODELS).collect();
    // Asking a model that a router has not loaded would throw out the one in use.
    let is_loaded = |entry: &Value| text(entry, "/status/value") == Some("loaded");
    let place = match wanted {
        Some(name) => {
            let exact = list.iter().position(|entry| goes_by(entry, name));
            exact.or_else(|| list.iter().position(|entry| shown(entry).as_deref() == Some(name)))
        }
        None => list.iter().position(is_loaded).or_else(|| list.iter().position(|entry| model_id(entry).is_some())),
    };
    match place.and_then(|place| list.into_iter().nth(place)) {
        Some(entry) => Ok((offered, entry)),
        None => Err(ProbeError::NoSuchModel {
            url: http.target().url.as_str().to_owned(),
            wanted: wanted.unwrap_or_default().to_owned(),
            offered,
        }),
    }
}

/// Everything but models and warnings.
pub(super) fn facts(target: &Target, answers: &Answers, served: Option<&str>) -> TargetFacts {
    let recognised = answers.recognised();
    let engine = recognised.first().copied();
    let claims = engine.map(|evidence| answers.claims(evidence.kind)).unwrap_or_default();
    let told = Told { claims: &claims, target };
    let served = served.map(|name| kept(name, target));
    let sim_info = answers.documents.get(SIMULATOR_PATH);
    let mut sources: Vec<FactSource> = engine
        .map(|evidence| FactSource {
            fact: FactName::Engine,
            endpoint: evidence.endpoint.to_owned(),
            sureness: evidence.sureness,
        })
        .into_iter()
        .collect();
    sources.extend(told.sources());
    TargetFacts {
        base_url: target.url.as_str().to_owned(),
        model: told.text(FactName::Model).or_else(|| served.clone()),
        served_model: served,
        revision: told.text(FactName::Revision),
        engine: EngineFacts {
            engine: engine.map(|evidence| evidence.kind.name().to_owned()),
            version: told.text(FactName::Version),
            quantization: told.text(FactName::Quantization),
            build: told.text(FactName::Build),
            ..EngineFacts::default()
        },
        hardware: sim_info.map(|info| simulated_hardware(info, target)).unwrap_or_default(),
        limits: Limits {
            max_model_len: told.number(FactName::MaxModelLen),
            max_sequences: told.number(FactName::MaxSequences).and_then(|count| u32::try_from(count).ok()),
            kv_tokens: told.number(FactName::KvTokens),
        },
        simulated: sim_info.and_then(|info| simulated(info, target)),
        sources,
        gauges: answers.gauges.iter().flat_map(|(_, gauges)| gauges.words()).map(ToOwned::to_owned).collect(),
        ..TargetFacts::default()
    }
}

/// What is told, one claim per fact.
struct Told<'a> {
    claims: &'a [Claim],
    target: &'a Target,
}

impl<'a> Told<'a> {
    /// The claim that counts: the first; of contexts, the shortest that is told as surely.
    fn claim(&self, fact: FactName) -> Option<&'a Claim> {
        let mut all = self.claims.iter().filter(|claim| claim.fact == fact);
        let first = all.next()?;
        if fact != FactName::MaxModelLen {
            return Some(first);
        }
        let number = |claim: &&Claim| match claim.said {
            Said::Number(number) => number,
            Said::Text(_) => u64::MAX,
        };
        // Of equal ones the first counts.
        [first].into_iter().chain(all.filter(|claim| claim.sureness >= first.sureness)).min_by_key(number)
    }

    fn text(&self, fact: FactName) -> Option<String> {
        match &self.claim(fact)?.said {
            Said::Text(text) => Some(kept(text, self.target)),
            Said::Number(_) => None,
        }
    }

    fn number(&self, fact: FactName) -> Option<u64> {
        match self.claim(fact)?.said {
            Said::Number(number) => Some(number),
            Said::Text(_) => None,
        }
    }

    fn sources(&self) -> Vec<FactSource> {
        let facts: std::collections::BTreeSet<FactName> = self.claims.iter().map(|claim| claim.fact).collect();
        let claims = facts.into_iter().filter_map(|fact| self.claim(fact));
        let source = |claim: &Claim| FactSource {
            fact: claim.fact,
            endpoint: claim.endpoint.to_owned(),
            sureness: claim.sureness,
        };
        claims.map(source).collect()
    }
}

fn simulated(info: &Value, target: &Target) -> Option<SimulatedFacts> {
    if info.get("simulated") != Some(&Value::Bool(true)) {
        return None;
    }
    Some(SimulatedFacts {
        preset: kept(text(info, "/preset")?, target),
        clock_factor: info.get("clock_factor")?.as_f64().filter(|factor| factor.is_finite() && *factor > 0.0)?,
        seed: number(info, "/seed")?,
    })
}

/// A simulator's made-up machine.
fn simulated_hardware(info: &Value, target: &Target) -> HardwareFacts {
    let bytes_each = number(info, "/hardware/memory_bytes_each");
    let gpu_count = number(info, "/hardware/gpu_count").and_then(|count| u32::try_from(count).ok());
    // The simulator's card sizes are what a vendor prints, in units of 2³⁰ bytes.
    let each_gb = bytes_each.map(|bytes| bytes as f64 / f64::from(1 << 30));
    HardwareFacts {
        kind: Some("Simulated".to_owned()),
        gpu: text(info, "/hardware/gpu").map(|gpu| kept(gpu, target)),
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
