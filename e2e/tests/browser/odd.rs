//! Runs that no healthy server leaves: very many cells, hardly any, every status, ends before the end, missing facts,
//! and names that break layouts. Each is made of the sample's file and imported.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use thirtyfour::prelude::*;

const IMPORT: &str = "
const [id, file, done] = arguments;
fetch('/api/v1/import?name=' + id + '.json', {method: 'POST', body: JSON.stringify(file)})
    .then(answer => answer.json()).then(done)";
const SAMPLE: &str = "
const done = arguments[0];
fetch('/api/v1/runs/reference/export?format=json').then(answer => answer.json()).then(done)";

/// The sample's file.
pub(crate) async fn sample(page: &WebDriver) -> Result<Value> {
    Ok(page.execute_async(SAMPLE, vec![]).await?.json().clone())
}

/// Stores a file as a run.
pub(crate) async fn import(page: &WebDriver, file: &Value) -> Result<()> {
    let id = file["run"]["id"].as_str().context("a run has an id")?;
    let told = page.execute_async(IMPORT, vec![id.into(), file.clone()]).await?;
    ensure!(told.json()[0]["id"] == id, "{id} was not imported: {}", told.json());
    Ok(())
}

/// Rows and columns of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) contexts: u32,
    pub(crate) levels: u32,
    pub(crate) prefill: u32,
}

fn names(count: u32) -> Vec<String> {
    (1..=count).map(|n| format!("{n}K")).collect()
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(",") }
}

/// The sample with another plan; each cell bears the numbers of a cell of the sample, a little different each.
pub(crate) fn sized(sample: &Value, id: &str, size: Size) -> Result<Value> {
    let mut file = sample.clone();
    let (contexts, prefill) = (names(size.contexts), names(size.prefill));
    let levels: Vec<String> = (1..=size.levels).map(|n| n.to_string()).collect();
    // In run order: prefill, the first column, then row by row.
    let mut ids: Vec<String> = prefill.iter().map(|context| format!("prefill-{context}-1")).collect();
    ids.extend(contexts.iter().filter_map(|context| levels.first().map(|level| format!("decode-{context}-{level}"))));
    for context in &contexts {
        ids.extend(levels.iter().skip(1).map(|level| format!("decode-{context}-{level}")));
    }
    let cells = sample["run"]["cells"].as_array().context("a run has cells")?;
    let like = |id: &str| {
        let wanted = if id.starts_with("prefill") { "prefill-8K-1" } else { "decode-8K-16" };
        cells.iter().find(|cell| cell["id"] == wanted).cloned().context("the sample's cell")
    };
    let mut made = Vec::with_capacity(ids.len());
    for (n, id) in ids.iter().enumerate() {
        let mut cell = like(id)?;
        cell["id"] = json!(id);
        cell["state"]["result"]["stats"]["total_tok_s"] = json!(100.0 + n as f64 * 3.7);
        made.push(cell);
    }
    let run = &mut file["run"];
    run["id"] = json!(id);
    run["cells"] = json!(made);
    run["plan"]["contexts"] = json!(if contexts.is_empty() { String::new() } else { listed(&contexts) });
    run["plan"]["concurrency"] = json!(levels.join(","));
    run["plan"]["prefill_contexts"] = json!(listed(&prefill));
    Ok(file)
}

/// Every status of a cell, one after the other.
pub(crate) fn every_status(sample: &Value) -> Result<Value> {
    let mut file = sized(sample, "statuses", Size { contexts: 4, levels: 4, prefill: 2 })?;
    let kinds = [
        "not_drained",
        "contaminated",
        "looping_output",
        "ramp_incomplete",
        "requests_queued",
        "preempted",
        "under_filled",
        "client_limited",
        "valid",
    ];
    let mut states: Vec<Value> = vec![
        json!({"state": "planned"}),
        json!({"state": "not_reached"}),
        json!({"state": "cancelled"}),
        json!({"state": "skipped", "reason": "kv_capacity", "text": "needs 2,097,152 KV tokens, the engine holds 1,550,000"}),
    ];
    let finished = file["run"]["cells"][5]["state"].clone();
    let with = |status: Value| {
        let mut state = finished.clone();
        state["result"]["status"] = status;
        state
    };
    states.extend(kinds.map(|kind| with(json!({"status": kind}))));
    states.push(with(json!({"status": "failed", "kind": "context_overflow"})));
    let cells = file["run"]["cells"].as_array_mut().context("a run has cells")?;
    for (cell, state) in cells.iter_mut().skip(2).zip(states) {
        cell["state"] = state;
    }
    Ok(file)
}

/// A run that a person stopped after one cell.
pub(crate) fn cancelled(sample: &Value) -> Result<Value> {
    let mut file = sized(sample, "cancelled", Size { contexts: 2, levels: 3, prefill: 0 })?;
    file["run"]["status"] = json!({"status": "ended", "outcome": {"outcome": "cancelled"}});
    let cells = file["run"]["cells"].as_array_mut().context("a run has cells")?;
    for (n, cell) in cells.iter_mut().enumerate().skip(1) {
        cell["state"] = json!({"state": if n == 1 { "cancelled" } else { "not_reached" }});
    }
    Ok(file)
}

/// A run that ended at its first request, before anything was known of the server.
pub(crate) fn failed(sample: &Value) -> Result<Value> {
    let mut file = sized(sample, "failed", Size { contexts: 2, levels: 2, prefill: 1 })?;
    let run = &mut file["run"];
    let reason =
        "nothing answers at http://10.0.0.9:8000/v1/models (connection refused): check that the server has started";
    run["status"] = json!({"status": "ended", "outcome": {"outcome": "failed", "reason": reason}});
    run["origin"] = Value::Null;
    run["facts"] = Value::Null;
    run["plan"]["name"] = json!("");
    for cell in run["cells"].as_array_mut().context("a run has cells")? {
        cell["state"] = json!({"state": "not_reached"});
    }
    Ok(file)
}

/// A run of which half of what a file can tell is missing.
pub(crate) fn half(sample: &Value) -> Result<Value> {
    let mut file = sized(sample, "half", Size { contexts: 3, levels: 3, prefill: 2 })?;
    let run = &mut file["run"];
    run["plan"]["name"] = json!("");
    run["facts"] = json!({"engine": {}, "hardware": {}, "limits": {}});
    let cells = run["cells"].as_array_mut().context("a run has cells")?;
    for (n, cell) in cells.iter_mut().enumerate() {
        let stats = &mut cell["state"]["result"]["stats"];
        *stats = if n % 2 == 0 { json!({"total_tok_s": 12.5 + n as f64}) } else { json!({}) };
    }
    Ok(file)
}

/// A run whose name, notes and facts are as long and as strange as they may be.
pub(crate) fn strange(sample: &Value, id: &str, name: &str) -> Result<Value> {
    let mut file = sized(sample, id, Size { contexts: 2, levels: 2, prefill: 1 })?;
    let facts = &mut file["run"]["facts"];
    facts["model"] = json!(name.chars().take(2_000).collect::<String>());
    facts["engine"]["version"] = json!("<b>0.25.0</b>".repeat(20));
    facts["hardware"]["os"] = json!("\u{202e}xunil");
    facts["launch_command"] = json!(format!("serve {} --api-key <redacted>", "x".repeat(3_000)));
    file["labels"] = json!({"title": name, "notes": name, "tags": ["<i>tag</i>", "كلمة"]});
    Ok(file)
}
