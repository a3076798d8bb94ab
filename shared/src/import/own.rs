//! The JSON file that Speedmatrix itself writes.

use serde_json::Value;

use super::{Import, ImportError};
use crate::{
    export::json::{RunFile, VERSION},
    label::{LabelPatch, Labels},
};

/// Reads the file; `version` is the layout that it names.
pub(super) fn read(text: &str, version: &Value) -> Result<Import, ImportError> {
    match version.as_u64() {
        Some(found) if found > u64::from(VERSION) => return Err(ImportError::Newer { found, known: VERSION }),
        Some(1..) => {}
        _ => return Err(ImportError::Damaged("it does not say the version of its layout".into())),
    }
    let file: RunFile = serde_json::from_str(text).map_err(|e| ImportError::Damaged(e.to_string()))?;
    let Labels { title, tags, notes, typed, .. } = file.labels.unwrap_or_default();
    // They pass the same checks as what people type here. Pins and revisions belong to the other agent.
    let patch = LabelPatch { title, tags: Some(tags), notes: Some(notes), typed: Some(typed), ..LabelPatch::default() };
    Ok(Import { run: file.run, labels: Labels::default().changed(&patch)? })
}
