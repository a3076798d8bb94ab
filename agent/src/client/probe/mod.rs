//! Looks at a target without measuring it: is it there, which models, which engine, which limits, is it a simulator.
//! All questions are read-only and small; only the model list is needed, everything else may be missing.

mod error;
mod facts;

use serde_json::Value;
use speedmatrix_shared::target::TargetFacts;

pub use error::ProbeError;

use self::facts::Documents;
use super::{
    Target,
    http::{Answer, Http},
    prometheus,
};

/// Path of the model list.
const MODELS_PATH: &str = "/v1/models";

/// Asks `target` what it is. `model` is the name that requests will ask for; `None` takes the first one on offer.
pub async fn probe(target: &Target, model: Option<&str>) -> Result<TargetFacts, ProbeError> {
    let http = Http::new(target)?;
    let list = http.get(MODELS_PATH).await?;
    let list = model_list(&http, &list)?;
    let (version, sim_info, props, server_info, gauges) = tokio::join!(
        document(&http, "/version"),
        document(&http, "/sim/info"),
        document(&http, "/props"),
        document(&http, "/get_server_info"),
        prometheus::scrape(&http),
    );
    Documents { list, version, sim_info, props, server_info, gauges }.facts(target, model)
}

/// An optional document; whatever goes wrong, it is absent.
async fn document(http: &Http, path: &str) -> Option<Value> {
    let answer = http.get(path).await.ok().filter(|answer| answer.status == 200)?;
    serde_json::from_str(&answer.body).ok().filter(Value::is_object)
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
    let document: Option<Value> = serde_json::from_str(&answer.body).ok();
    let entries = document.and_then(|mut document| match document.get_mut("data").map(Value::take) {
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
