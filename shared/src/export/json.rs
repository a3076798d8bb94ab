//! The whole state of a run as JSON; what was not measured is null.

use serde::{Deserialize, Serialize};

use crate::{label::Labels, state::RunState};

/// Says what the file is.
pub const FORMAT: &str = "speedmatrix-run";
/// Version of the file's layout.
pub const VERSION: u32 = 1;

/// The file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFile {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The run.
    pub run: RunState,
    /// What people added to it, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

/// The state as a file with line breaks.
pub fn render(state: &RunState) -> String {
    render_labelled(state, &Labels::default())
}

/// As [`render`], with what people added to the run.
pub fn render_labelled(state: &RunState, labels: &Labels) -> String {
    let labels = (!labels.is_empty()).then(|| labels.clone());
    let file = RunFile { format: FORMAT.to_owned(), version: VERSION, run: state.clone(), labels };
    serde_json::to_string_pretty(&file).expect("a state has only string keys and no failing serializer") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_file_reads_back() {
        let state = sample::reference();
        let text = render(&state);
        let back: RunFile = serde_json::from_str(&text).expect("what was written can be read");
        assert_eq!((back.format.as_str(), back.version), (FORMAT, VERSION));
        assert_eq!(back.run, state);
        assert!(text.contains("\"cached_share\": null"));
        assert!(text.contains("\"rules\": null"), "an imported number's rules are unknown, and the file says so");
    }
}
