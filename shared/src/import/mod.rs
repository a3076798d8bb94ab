//! A file from elsewhere as a run: what kind of file it is, and what is wrong with it. Each kind has a file of its own.

mod events;
mod foreign;
mod own;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use crate::{
    export::json,
    facts,
    label::{LabelError, Labels},
    plan::MAX_CELLS,
    state::RunState,
};

pub use events::events;

/// Largest file that is read, in bytes. A run of 1,024 cells has some 3 MB; repeats add as much each.
pub const MAX_BYTES: usize = 32 * 1_024 * 1_024;
/// Most that a file may weigh when it is read, see [`weight`]. A file of 32 MB that tells every single request weighs some 2.7
/// million; in memory a unit takes some 80 bytes.
const MAX_WEIGHT: usize = 3_000_000;
/// What an object weighs: one with a single field takes 600 bytes.
const OBJECT_WEIGHT: usize = 8;
/// Longest line of the list that a run may have, in bytes: its names and its mini map.
const MAX_SUMMARY_BYTES: usize = 256 * 1_024;

/// Whose results are read.
const TOOLS: &str = "llm-inference-bench, vLLM's or SGLang's bench serve, AIPerf or guidellm";

/// A run as a file tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    /// The run; its id is the one it had where the file was written.
    pub run: RunState,
    /// What people had added to it there.
    pub labels: Labels,
}

/// Why a file is no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// There is nothing in it.
    #[error("the file is empty: export the run again")]
    Empty,
    /// It has too many bytes.
    #[error("the file has more than {} MB and is not read: export runs one by one", MAX_BYTES / (1_024 * 1_024))]
    TooLarge,
    /// It has too many values: read, they take many times the memory of the file.
    #[error(
        "the file holds more values than are read: leave out what it tells of single requests, or export fewer runs"
    )]
    TooMany,
    /// It is a result of a known tool with more measurements than a run has cells.
    #[error("the file is of {tool} and holds more than the {MAX_CELLS} measurements of a run: export fewer at a time")]
    TooManyCells {
        /// The tool with its version.
        tool: String,
    },
    /// It is not text.
    #[error("the file is not text: choose a run's JSON file, or a result of {TOOLS}")]
    NotText,
    /// It is text of another kind.
    #[error("the file is not JSON ({0}): choose a run's JSON file, or a result of {TOOLS}")]
    NotJson(String),
    /// It ends too early.
    #[error("the file ends in the middle ({0}): it was cut short, so copy or export it again")]
    Cut(String),
    /// It is JSON of another program that is not known.
    #[error("the file is JSON, but neither a run of Speedmatrix nor a result of {TOOLS}: choose one of those")]
    Foreign,
    /// It is a result of a known tool in a layout that is not.
    #[error(
        "the file is of {tool} in layout {found}, which is not read here: update Speedmatrix, or export an older layout"
    )]
    ForeignVersion {
        /// The tool with its version.
        tool: String,
        /// The layout it names.
        found: String,
    },
    /// It is a result of a known tool without a measurement.
    #[error("the file is of {tool} and holds no measurement: choose the result of a run that measured something")]
    NoCells {
        /// The tool with its version.
        tool: String,
    },
    /// It is a run of a later version.
    #[error("the file was written by a newer Speedmatrix (layout {found}, this one reads {known}): update Speedmatrix")]
    Newer {
        /// Its layout.
        found: u64,
        /// The newest layout that is read here.
        known: u32,
    },
    /// It says that it is a run, and is none.
    #[error("the file holds a run, but is damaged ({0}): export the run again")]
    Damaged(String),
}

impl From<LabelError> for ImportError {
    fn from(error: LabelError) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// What a file says it is. Everything else in it is passed over.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: Value,
    #[serde(default)]
    version: Value,
}

/// Reads a file as runs, at least one: another tool's file may hold several that differ in how they loaded the server.
pub fn read(bytes: &[u8]) -> Result<Vec<Import>, ImportError> {
    if bytes.len() > MAX_BYTES {
        return Err(ImportError::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|_not_utf8| ImportError::NotText)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(ImportError::Empty);
    }
    if weight(text) > MAX_WEIGHT {
        return Err(ImportError::TooMany);
    }
    match head(text) {
        Ok(Some(head)) if head.format == json::FORMAT => Ok(vec![checked(own::read(text, &head.version)?)?]),
        told => foreign_runs(text, told.err()),
    }
}

/// How much memory the values of a JSON text take, in units: commas, lists and objects outside of its strings.
fn weight(text: &str) -> usize {
    let (mut weight, mut is_text, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' if !is_text => weight += OBJECT_WEIGHT,
            b'[' | b',' if !is_text => weight += 1,
            _ => {}
        }
    }
    weight
}

/// Runs of another tool's file; `no_json` is why the text is no JSON of ours.
fn foreign_runs(text: &str, no_json: Option<ImportError>) -> Result<Vec<Import>, ImportError> {
    let told = match serde_json::from_str::<Value>(&foreign::lenient(text)) {
        Ok(file) => foreign::read(&file),
        Err(_) => foreign::read_lines(text),
    };
    let imports = told.ok_or_else(|| no_json.unwrap_or(ImportError::Foreign))??;
    imports.into_iter().map(checked).collect()
}

/// What the file says it is, if it is one JSON object; `None` for any other JSON.
fn head(text: &str) -> Result<Option<Head>, ImportError> {
    let is_object = text.trim_start().starts_with('{');
    let told = if is_object {
        serde_json::from_str::<Head>(text).map(Some)
    } else {
        serde_json::from_str::<IgnoredAny>(text).map(|_other_json| None)
    };
    match told {
        Ok(head) => Ok(head),
        Err(error) if error.is_data() => Ok(None),
        Err(error) if error.is_eof() && is_object => Err(ImportError::Cut(error.to_string())),
        Err(error) => Err(ImportError::NotJson(error.to_string())),
    }
}

/// What every kind of file must hold, so that no page stumbles over it.
fn checked(import: Import) -> Result<Import, ImportError> {
    let run = &import.run;
    let planned = run.plan.cells();
    if run.cells.len() != planned.len() || run.cells.iter().zip(&planned).any(|(cell, planned)| cell.id != *planned) {
        return Err(ImportError::Damaged("its cells are not those of its plan".into()));
    }
    let line = serde_json::to_string(&facts::summary(run)).map_err(|e| ImportError::Damaged(e.to_string()))?;
    if line.len() > MAX_SUMMARY_BYTES {
        return Err(ImportError::Damaged("its names are too long".into()));
    }
    Ok(import)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{export::json, sample};

    #[track_caller]
    fn refusal(bytes: impl AsRef<[u8]>) -> String {
        read(bytes.as_ref()).expect_err("it is no run").to_string()
    }

    #[test]
    fn an_exported_run_reads_back() {
        let run = sample::reference();
        let labels = Labels { revision: 7, title: Some("Mine".into()), notes: "a\nb".into(), ..Labels::default() };
        let text = json::render_labelled(&run, &labels);
        let import = read(text.as_bytes()).unwrap().remove(0);
        assert_eq!(import.run, run);
        assert_eq!((import.labels.title.as_deref(), import.labels.notes.as_str()), (Some("Mine"), "a\nb"));
        // A mark that some editors put before the text is none of its letters.
        assert_eq!(read(format!("\u{feff}{}", json::render(&run)).as_bytes()).unwrap().remove(0).run, run);
    }

    #[test]
    fn whatever_is_no_run_says_what_it_is() {
        let text = json::render(&sample::reference());
        let said = [
            refusal(""),
            refusal([0x1f, 0x8b, 0xff, 0xfe]),
            refusal("model,tok/s\nx,1"),
            refusal("[1, 2, 3]"),
            refusal("{\"format\": [\"speedmatrix-run\"]}"),
            refusal("{\"version\": \"0.2.2\", \"benchmarks\": []}"),
            refusal(&text[..text.len() / 2]),
            refusal(text.replacen("\"version\": 1", "\"version\": 2", 1)),
            refusal(text.replacen("\"version\": 1", "\"version\": \"one\"", 1)),
            refusal(text.replacen("\"tool\": ", "\"tol\": ", 1)),
            refusal(text.replacen("decode-8K-1\"", "decode-9K-1\"", 1)),
            refusal(text.replacen("\"gpu\": \"", &format!("\"gpu\": \"{}", "x".repeat(300_000)), 1)),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        the file is empty: export the run again
        the file is not text: choose a run's JSON file, or a result of llm-inference-bench, vLLM's or SGLang's bench serve, AIPerf or guidellm
        the file is not JSON (expected value at line 1 column 1): choose a run's JSON file, or a result of llm-inference-bench, vLLM's or SGLang's bench serve, AIPerf or guidellm
        the file is JSON, but neither a run of Speedmatrix nor a result of llm-inference-bench, vLLM's or SGLang's bench serve, AIPerf or guidellm: choose one of those
        the file is JSON, but neither a run of Speedmatrix nor a result of llm-inference-bench, vLLM's or SGLang's bench serve, AIPerf or guidellm: choose one of those
        the file is JSON, but neither a run of Speedmatrix nor a result of llm-inference-bench, vLLM's or SGLang's bench serve, AIPerf or guidellm: choose one of those
        the file ends in the middle (EOF while parsing an object at line 3360 column 0): it was cut short, so copy or export it again
        the file was written by a newer Speedmatrix (layout 2, this one reads 1): update Speedmatrix
        the file holds a run, but is damaged (it does not say the version of its layout): export the run again
        the file holds a run, but is damaged (missing field `tool` at line 6724 column 3): export the run again
        the file holds a run, but is damaged (its cells are not those of its plan): export the run again
        the file holds a run, but is damaged (its names are too long): export the run again
        ");
    }

    #[test]
    fn the_largest_file_has_a_limit() {
        assert_eq!(read(&vec![b' '; MAX_BYTES + 1]), Err(ImportError::TooLarge));
        let most = |item: &str, weight: usize| format!("[{}0]", item.repeat(MAX_WEIGHT.div_ceil(weight)));
        for crowded in [most("0,", 1), most("{\"a\":0},", 9), most("[],", 2), most("0,\"\\\",[{\",", 2)] {
            assert_eq!(read(crowded.as_bytes()), Err(ImportError::TooMany));
        }
        let names = format!("[\"{}\"]", "\\\"[{,".repeat(MAX_WEIGHT));
        assert_eq!(read(names.as_bytes()), Err(ImportError::Foreign));
        assert_eq!(refusal("[".repeat(1_000_000)).split('(').next(), Some("the file is not JSON "));
    }
}
