//! Looks at a target without measuring it: is it there, which models, which engine, which limits, is it a simulator.
//! All questions are read-only and small; only the model list is needed, everything else may be missing.

mod error;
mod facts;
mod warnings;

use std::collections::BTreeMap;

use serde_json::Value;
use speedmatrix_shared::target::TargetFacts;
use tokio::task::JoinSet;

pub use error::ProbeError;

use super::{
    Target,
    http::{Answer, Http},
    prometheus,
};
use crate::engine::known::{Answers, Ask, EngineKind, MODELS_PATH, SIMULATOR_PATH, row};

/// Most values of the model list: routers with a thousand models have some hundred each.
const MODEL_LIST_VALUES: usize = 200_000;
/// Most values of another document; SGLang's has about 2,000.
const DOCUMENT_VALUES: usize = 50_000;

/// What a probe found.
#[derive(Debug, Clone, Default)]
pub struct Probed {
    /// All that may be kept and shown.
    pub facts: TargetFacts,
    /// The name that requests ask for, to the letter. Only for them: a server may have put anything into it.
    pub model: Option<String>,
}

/// Asks `target` what it is. `model` is the name that requests will ask for; `None` takes the first one on offer that is
/// loaded.
pub async fn probe(target: &Target, model: Option<&str>) -> Result<Probed, ProbeError> {
    let http = Http::new(target)?;
    let answer = http.get(MODELS_PATH).await?;
    let list = model_list(&http, &answer)?;
    let (offered, entry) = facts::chosen(&http, list, model)?;
    let model = facts::served(&entry, model);
    let (documents, gauges) = tokio::join!(documents(&http, model.as_deref()), prometheus::find(&http));
    let (gauges, silence) = match gauges {
        Ok(gauges) => (Some(gauges), None),
        Err(error) => (None, Some(error)),
    };
    let answers = Answers { entry, server: answer.server, headers: answer.headers, documents, gauges };
    let mut facts = facts::facts(target, &answers, model.as_deref());
    facts.models = offered;
    facts.warnings = warnings::warnings(&answers, silence.as_ref());
    Ok(Probed { facts, model })
}

/// What engines tell beside their model list, by path; for `served`, where it is told by model. Whatever goes wrong with
/// a document, it is absent.
async fn documents(http: &Http, served: Option<&str>) -> BTreeMap<&'static str, Value> {
    let engines = EngineKind::ALL.into_iter().flat_map(|kind| kind.engine().asks).copied();
    let simulator = Ask { path: SIMULATOR_PATH, rows: None };
    let asks: BTreeMap<&str, Ask> = engines.chain([simulator]).map(|ask| (ask.path, ask)).collect();
    let mut asked = JoinSet::new();
    for ask in asks.into_values() {
        let (http, served) = (http.clone(), served.map(ToOwned::to_owned));
        asked.spawn(async move {
            let answer = http.get(ask.path).await.ok().filter(|answer| answer.status == 200)?;
            let document = answer.json(DOCUMENT_VALUES).filter(Value::is_object)?;
            Some((ask.path, row(&document, ask, served.as_deref())?))
        });
    }
    asked.join_all().await.into_iter().flatten().collect()
}

/// The entries of the model list, or why there are none.
fn model_list(http: &Http, answer: &Answer) -> Result<Vec<Value>, ProbeError> {
    let url = format!("{}{MODELS_PATH}", http.target().url.as_str());
    let status = answer.status;
    match status {
        200..=299 => {}
        401 | 403 if http.target().key.is_none() => return Err(ProbeError::KeyMissing { url, status }),
        401 | 403 => return Err(ProbeError::KeyRefused { url, status }),
        404 => return Err(ProbeError::NotFound { url }),
        300..=399 => {
            let location = answer.location.as_deref().unwrap_or("nowhere");
            return Err(ProbeError::Moved { url, status, location: http.excerpt(location) });
        }
        _ => return Err(ProbeError::Status { url, status, excerpt: http.excerpt(&answer.body) }),
    }
    if answer.content_type == "text/html" || answer.body.trim_start().starts_with('<') {
        return Err(ProbeError::WebPage { url, title: http.excerpt(page_title(&answer.body)) });
    }
    let entries =
        answer.json(MODEL_LIST_VALUES).and_then(|mut document| match document.get_mut("data").map(Value::take) {
            Some(Value::Array(entries)) => Some(entries),
            _ => None,
        });
    match entries {
        None => Err(ProbeError::NotAModelList { url, excerpt: http.excerpt(&answer.body) }),
        Some(entries) if entries.iter().all(|entry| facts::model_id(entry).is_none()) => {
            Err(ProbeError::NoModels { url })
        }
        Some(entries) => Ok(entries),
    }
}

fn page_title(html: &str) -> &str {
    // ASCII lowering keeps every byte where it was.
    let lower = html.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|start| {
        let from = start + lower[start..].find('>')? + 1;
        let to = from + lower[from..].find("</title")?;
        html.get(from..to)
    });
    title.map(str::trim).filter(|title| !title.is_empty()).unwrap_or("no title")
}

#[cfg(test)]
mod tests;
