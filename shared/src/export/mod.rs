//! A run as a file: Markdown, HTML, CSV, JSON. All from METRICS, so that no list of columns is kept by hand.

pub mod column;
pub mod csv;
pub mod html;
pub mod json;
pub mod markdown;

use std::str::FromStr;

use crate::{
    event::Origin,
    format,
    id::CellId,
    label::Labels,
    metric::{self, Metric},
    state::{Cell, RunState},
};

/// What kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Title, facts and the table of all measurements, for people.
    Markdown,
    /// The report as one page that opens from disk, for people.
    Html,
    /// One row per cell with every number, for spreadsheets.
    Csv,
    /// The whole state, for programs.
    Json,
}

/// Not a kind of file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not an export format: choose md, html, csv or json")]
pub struct UnknownFormat(String);

impl FromStr for ExportFormat {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        match text {
            "md" => Ok(Self::Markdown),
            "html" => Ok(Self::Html),
            "csv" => Ok(Self::Csv),
            "json" => Ok(Self::Json),
            other => Err(UnknownFormat(other.chars().take(80).collect())),
        }
    }
}

impl ExportFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Markdown, Self::Html, Self::Csv, Self::Json];

    /// The file name's extension, which is also the format's name in addresses and on the command line.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Html => "html",
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }

    /// The HTTP content type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

/// The run as a file. Equal states give equal bytes.
pub fn render(state: &RunState, format: ExportFormat) -> String {
    render_labelled(state, &Labels::default(), format)
}

/// As [`render`], with the name and the notes that people gave the run. A table of numbers has no place for them.
pub fn render_labelled(state: &RunState, labels: &Labels, format: ExportFormat) -> String {
    match format {
        ExportFormat::Markdown => markdown::render_labelled(state, labels),
        ExportFormat::Html => html::render_labelled(state, labels),
        ExportFormat::Csv => csv::render(state),
        ExportFormat::Json => json::render_labelled(state, labels),
    }
}

/// What "Requests queued" and TTFT mean: the reference page's notes.
const REPORT_NOTES: [&str; 3] = [
    "Latencies are medians. Total tok/s is output across all simultaneous requests; for prefill it is prompt tokens.",
    "Requests queued: the server could not run all requests at once, so some waited in a queue.",
    "TTFT of sustained decode is measured after the server's prompt cache is warm, so it mostly excludes prefill.",
];

/// Where the numbers come from, where that is not a server of the reader's; empty otherwise.
fn origin_words(state: &RunState) -> String {
    match state.origin {
        Some(Origin::Simulated { clock_factor }) => {
            format!(
                "Simulated: no real server was measured; its clock ran {}× as fast.",
                format::plain(Some(clock_factor))
            )
        }
        Some(Origin::Imported) => "Measured by another tool, and imported.".to_owned(),
        Some(Origin::Measured) | None => String::new(),
    }
}

/// `speedmatrix-deepseek-v4-flash-on-h200-2-018f…`, the suggested name of a run's files without its extension: from a
/// title that a stranger may have chosen, only letters and digits; with the id, so that no two runs share one.
pub fn file_stem(state: &RunState, labels: &Labels) -> String {
    const MAX_TITLE: usize = 60;
    let title = labels.title.clone().unwrap_or_else(|| state.title()).to_ascii_lowercase();
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let title: String = words.collect::<Vec<_>>().join("-").chars().take(MAX_TITLE).collect();
    let parts = ["speedmatrix", title.trim_matches('-'), state.id.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// The reference page's table "All measurements".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Column heads.
    pub columns: Vec<&'static str>,
    /// Rows, by phase, context and requests at once.
    pub rows: Vec<TableRow>,
}

/// One cell of the matrix as a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    /// Which.
    pub id: CellId,
    /// Texts, as many as there are columns.
    pub cells: Vec<String>,
    /// How sure each is, where that is known; as many, and empty otherwise.
    pub precision: Vec<String>,
}

/// All planned cells with the reference page's columns; "—" where a cell has no number (yet).
pub fn table(state: &RunState) -> Table {
    let metrics = metric::reference_columns();
    let load = state.plan.load();
    let mut columns = vec!["Phase", "Context", load.level_label(), "Status"];
    columns.extend(metrics.iter().map(|metric| metric.column));
    Table { columns, rows: sorted(state).into_iter().map(|cell| row(state, cell, metrics)).collect() }
}

fn row(state: &RunState, cell: &Cell, metrics: &[Metric]) -> TableRow {
    let id = cell.id;
    let phase = state.plan.load().phase_label(id.phase).to_owned();
    let mut cells = vec![phase, id.context.to_string(), id.concurrency.to_string(), cell.status_label()];
    let text = |metric: &Metric| cell.result().map_or_else(|| format::MISSING.to_owned(), |r| metric.text(r));
    let mut precision = vec![String::new(); cells.len()];
    cells.extend(metrics.iter().map(text));
    let sure = |metric: &Metric| cell.result().map(|r| metric.precision(r, state.origin)).unwrap_or_default();
    precision.extend(metrics.iter().map(sure));
    TableRow { id, cells, precision }
}

/// The cells by phase, context and requests at once, whatever order they are measured in.
fn sorted(state: &RunState) -> Vec<&Cell> {
    let mut cells: Vec<&Cell> = state.cells.iter().collect();
    cells.sort_by_key(|cell| cell.id);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{id::RunId, sample};

    #[test]
    fn cells_without_numbers_have_rows_too() {
        let log = sample::reference_events();
        let start = RunState::fold(RunId::REFERENCE.parse().unwrap(), log.iter().take(5)).unwrap().unwrap();
        let table = table(&start);
        assert_eq!((table.columns.len(), table.rows.len()), (12, 73));
        let line = |index: usize| table.rows[index].cells.join(" ");
        assert_eq!(line(2), "Prefill 32K 1 Valid 11.4K — 2,834 ms — — 1 — —");
        assert_eq!(line(3), "Prefill 64K 1 Planned — — — — — — — —");
    }

    #[test]
    fn formats_have_names() {
        for format in ExportFormat::ALL {
            assert_eq!(format.extension().parse(), Ok(format));
        }
        assert_eq!(
            "pdf".parse::<ExportFormat>().map_err(|e| e.to_string()),
            Err("\"pdf\" is not an export format: choose md, html, csv or json".to_owned())
        );
    }
}
