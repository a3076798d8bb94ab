//! What a cell of the matrix shows: its text, its colour step, its marks, and the sentence that says it in words.
//! Pure, and comparable, so that a cell is drawn again only when something it shows has changed.

use speedmatrix_shared::{
    finding::{Finding, Severity, rules::FEW_REQUESTS, run::OutOfOrder},
    format,
    gauge::{CellPhase, Gauge},
    id::CellId,
    metric::{self, Better, Metric},
    state::{Cell, CellState},
    stats::cell::{CellResult, CellStatus},
};

use super::scale::{Range, step};
use crate::{parts::icon::Icon, query::Scope};

/// A mark in the cell that is more than a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Its words.
    pub text: String,
    /// Class in the style sheet.
    pub class: &'static str,
    /// Its picture.
    pub icon: Icon,
}

/// What a cell shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellView {
    /// Class in the style sheet: its colour step or its state.
    pub class: &'static str,
    /// First line.
    pub value: String,
    /// Second line.
    pub second: String,
    /// A word on its status.
    pub flag: Option<Flag>,
    /// Whether few requests finished.
    pub few: bool,
    /// Whether there is something to know about it.
    pub odd: bool,
    /// All of it as a sentence.
    pub sentence: String,
}

/// Classes of the colour steps.
const STEP_CLASSES: [&str; 9] = ["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8"];

/// The class of a colour step.
pub fn step_class(step: u8) -> &'static str {
    STEP_CLASSES.get(usize::from(step)).copied().unwrap_or("none")
}

/// `8K context, 16 requests at once`.
pub fn cell_words(id: CellId) -> String {
    let requests = id.concurrency.get();
    let noun = if requests == 1 { "request" } else { "requests" };
    format!("{} context, {requests} {noun} at once", id.context)
}

/// A metric's text with its unit, which some columns leave to their head.
pub fn with_unit(metric: &Metric, value: Option<f64>) -> String {
    let text = (metric.show)(value);
    if metric.unit.is_empty() || text == format::MISSING || text.ends_with(metric.unit) {
        return text;
    }
    format!("{text} {}", metric.unit)
}

/// How a cell is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// What is shown.
    pub metric: &'a Metric,
    /// What the colour compares within.
    pub range: Option<Range>,
    /// The running cell, now; looked at for that cell only.
    pub gauge: Option<&'a Gauge>,
    /// If the cell breaks the expected order.
    pub order: Option<OutOfOrder>,
}

/// What a cell shows.
pub fn view(cell: &Cell, look: Look<'_>) -> CellView {
    let words = cell_words(cell.id);
    let blank = |class, value: &str, second: &str, state: String| CellView {
        class,
        value: value.to_owned(),
        second: second.to_owned(),
        sentence: format!("{words}: {state}"),
        ..CellView::default()
    };
    match &cell.state {
        CellState::Planned => blank("planned", "", "", "planned".into()),
        CellState::NotReached => blank("none", format::MISSING, "not reached", "the run ended before its turn".into()),
        CellState::Cancelled => blank("none", format::MISSING, "stopped", "the run was stopped in it".into()),
        CellState::Skipped { text, .. } => blank("none", format::MISSING, "skipped", format!("skipped: {text}")),
        CellState::Running { .. } => running(cell.id, look.gauge.filter(|gauge| gauge.cell == cell.id)),
        CellState::Finished { result } => finished(cell.id, result, look),
    }
}

fn running(id: CellId, gauge: Option<&Gauge>) -> CellView {
    let phase = gauge.map_or(CellPhase::Drain, |gauge| gauge.phase);
    let rate = gauge.and_then(|gauge| gauge.window_tok_s);
    let second = if rate.is_some() { "so far" } else { phase.label() };
    CellView {
        class: "running",
        value: rate.map_or_else(String::new, |rate| format::rate(Some(rate))),
        second: second.to_owned(),
        sentence: format!("{}: being measured", cell_words(id)),
        ..CellView::default()
    }
}

fn finished(id: CellId, result: &CellResult, look: Look<'_>) -> CellView {
    let metric = look.metric;
    let value = if result.status.is_failed() { None } else { (metric.get)(result) };
    let class = match (value, look.range) {
        (Some(value), Some(range)) => step_class(step(value, range, metric.better)),
        _ => "none",
    };
    CellView {
        class,
        value: (metric.show)(value),
        second: second_line(result, metric),
        flag: flag(result.status),
        few: is_few(result),
        odd: look.order.is_some() || is_odd(result),
        sentence: sentence(id, result, look),
    }
}

fn second_line(result: &CellResult, metric: &Metric) -> String {
    let with = |key: &str, tail: &str| {
        let text = metric::by_key(key).map_or_else(String::new, |other| other.text(result));
        if text == format::MISSING { String::new() } else { format!("{text} {tail}") }
    };
    if result.status.is_failed() {
        return String::new();
    }
    if metric.key == "total_tok_s" { with("ttft", "TTFT") } else { with("total_tok_s", "tok/s") }
}

fn flag(status: CellStatus) -> Option<Flag> {
    match status {
        CellStatus::Valid => None,
        failed if failed.is_failed() => Some(Flag { text: failed.label(), class: "flag bad", icon: Icon::Cross }),
        CellStatus::RequestsQueued => Some(Flag { text: status.label(), class: "flag", icon: Icon::Queue }),
        other => Some(Flag { text: other.label(), class: "flag", icon: Icon::Warning }),
    }
}

/// Whether few requests finished in it.
pub fn is_few(result: &CellResult) -> bool {
    let completed = metric::by_key("completed_requests").and_then(|metric| (metric.get)(result));
    !result.status.is_failed() && completed.is_some_and(|completed| completed < FEW_REQUESTS as f64)
}

/// Whether it has a finding that a reader should not miss. Queued requests have a mark of their own.
pub fn is_odd(result: &CellResult) -> bool {
    let is_odd = |finding: &Finding| finding.severity == Severity::Warning && finding.code != "requests_queued";
    result.findings.iter().any(is_odd)
}

fn sentence(id: CellId, result: &CellResult, look: Look<'_>) -> String {
    let metric = look.metric;
    let text = |key: &str| metric::by_key(key).map_or_else(|| format::MISSING.to_owned(), |other| other.text(result));
    let mut parts =
        vec![format!("{} tokens per second", text("total_tok_s")), format!("{} to first token", text("ttft"))];
    if !matches!(metric.key, "total_tok_s" | "ttft") {
        parts.push(format!("{} {}", metric.label.to_lowercase(), with_unit(metric, (metric.get)(result))));
    }
    parts.push(result.status.label());
    let completed = metric::by_key("completed_requests").and_then(|metric| (metric.get)(result));
    if let Some(completed) = completed {
        let count = format::whole(Some(completed));
        let noun = if count == "1" { "request" } else { "requests" };
        parts.push(format!("{count} {noun} finished"));
    }
    parts.extend(look.order.map(order_words));
    format!("{}: {}", cell_words(id), parts.join(", "))
}

/// `71 % faster than 8K × 1`.
fn order_words(order: OutOfOrder) -> String {
    let change = ((order.ratio - 1.0).abs() * 100.0).round() / 100.0;
    let word = if order.ratio > 1.0 { "faster" } else { "slower" };
    let neighbour = order.neighbour;
    format!("{} {word} than {} × {}", format::percent(Some(change)), neighbour.context, neighbour.concurrency)
}

/// Ranges that the colours compare within.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranges {
    /// Of all cells.
    pub all: Option<Range>,
    /// Of each row.
    pub rows: Vec<Option<Range>>,
    /// Of each column.
    pub columns: Vec<Option<Range>>,
}

impl Ranges {
    /// The ranges of a table of values, given row by row.
    pub fn of(values: &[Vec<Option<f64>>]) -> Self {
        let width = values.iter().map(Vec::len).max().unwrap_or(0);
        let column = |n: usize| Range::of(values.iter().filter_map(|row| row.get(n).copied().flatten()));
        Self {
            all: Range::of(values.iter().flatten().copied().flatten()),
            rows: values.iter().map(|row| Range::of(row.iter().copied().flatten())).collect(),
            columns: (0..width).map(column).collect(),
        }
    }

    /// Those that a scope compares within, without the others, whose changes would change nothing.
    #[must_use]
    pub fn within(self, scope: Scope) -> Self {
        match scope {
            Scope::All => Self { all: self.all, ..Self::default() },
            Scope::Row => Self { rows: self.rows, ..Self::default() },
            Scope::Column => Self { columns: self.columns, ..Self::default() },
        }
    }
}

/// The words of the colour scale's direction.
pub const fn direction(better: Better) -> &'static str {
    match better {
        Better::Higher => "stronger colour = better (higher)",
        Better::Lower => "stronger colour = better (lower)",
        Better::Neither => "stronger colour = higher",
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{
        event::SkipReason,
        stats::cell::{CellStats, RequestCounts},
        units::Nanos,
    };

    use super::*;

    fn cell(state: CellState) -> Cell {
        Cell { state, ..Cell::planned("decode-8K-16".parse().unwrap()) }
    }

    fn measured(status: CellStatus, completed: u64) -> Cell {
        let mut result =
            CellResult { status, stats: CellStats::default(), findings: Vec::new(), failures: Vec::new(), rules: None };
        result.stats.total_tok_s = Some(1_540.5);
        result.stats.requests = Some(RequestCounts { completed, ..RequestCounts::default() });
        cell(CellState::Finished { result: Box::new(result) })
    }

    fn total() -> &'static Metric {
        metric::by_key("total_tok_s").unwrap()
    }

    #[test]
    fn a_measured_cell_says_all_in_a_sentence() {
        let range = Range { lo: 100.0, hi: 1_540.5 };
        let look = Look { metric: total(), range: Some(range), gauge: None, order: None };
        let shown = view(&measured(CellStatus::RequestsQueued, 4), look);
        assert_eq!((shown.class, shown.value.as_str(), shown.few), ("q8", "1,540.5", false));
        assert_eq!(shown.flag.map(|flag| flag.text).as_deref(), Some("Requests queued"));
        assert_eq!(
            shown.sentence,
            "8K context, 16 requests at once: 1,540.5 tokens per second, — to first token, Requests queued, \
             4 requests finished"
        );
        assert!(view(&measured(CellStatus::Valid, 1), look).few);
        let neighbour = "decode-8K-8".parse().unwrap();
        let order = OutOfOrder { cell: "decode-8K-16".parse().unwrap(), neighbour, ratio: 0.82 };
        let odd = view(&measured(CellStatus::Valid, 1), Look { order: Some(order), ..look });
        assert!(odd.odd && odd.sentence.ends_with("18 % slower than 8K × 8"), "{}", odd.sentence);
    }

    #[test]
    fn a_cell_without_a_number_has_no_colour() {
        let check = |cell: &Cell, class: &str, second: &str| {
            let range = Some(Range { lo: 1.0, hi: 2.0 });
            let shown = view(cell, Look { metric: total(), range, gauge: None, order: None });
            assert_eq!((shown.class, shown.second.as_str()), (class, second), "{}", shown.sentence);
        };
        check(&cell(CellState::Planned), "planned", "");
        check(&cell(CellState::Running { since: Nanos(0) }), "running", "drain");
        check(&cell(CellState::Cancelled), "none", "stopped");
        check(&cell(CellState::Skipped { reason: SkipReason::User, text: "x".into() }), "none", "skipped");
        check(&measured(CellStatus::NotDrained, 0), "none", "");
    }

    #[test]
    fn ranges_are_per_scope() {
        let ranges = Ranges::of(&[vec![Some(1.0), None], vec![Some(4.0), Some(2.0)]]);
        assert_eq!(ranges.all, Some(Range { lo: 1.0, hi: 4.0 }));
        assert_eq!(ranges.rows, [Some(Range { lo: 1.0, hi: 1.0 }), Some(Range { lo: 2.0, hi: 4.0 })]);
        assert_eq!(ranges.columns, [Some(Range { lo: 1.0, hi: 4.0 }), Some(Range { lo: 2.0, hi: 2.0 })]);
    }
}
