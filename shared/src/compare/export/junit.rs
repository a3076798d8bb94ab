//! The comparison as test results, in the JUnit layout that builds read: one test per cell of both matrices. A proven
//! regression fails, what can't be compared is an error, and what the data can't tell is skipped or counts as it is told to.

use super::{change, interval, name, why};
use crate::compare::{CellSide, CellVerdict, ComparedCell, Comparison, gate::IfInconclusive};

/// What a test came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestResult {
    Passed,
    Failed,
    Error,
    Skipped,
}

pub(super) fn render(comparison: &Comparison, if_inconclusive: IfInconclusive) -> String {
    let results: Vec<(TestResult, &ComparedCell)> =
        comparison.cells.iter().map(|cell| (result(cell, if_inconclusive), cell)).collect();
    let count = |wanted: TestResult| results.iter().filter(|(result, _)| *result == wanted).count();
    let metric = comparison.metric.metric();
    let suite = escape(&format!("{}: {} against {}", metric.label, comparison.b.title, comparison.a.title));
    let head = format!(
        "name=\"{suite}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        results.len(),
        count(TestResult::Failed),
        count(TestResult::Error),
        count(TestResult::Skipped)
    );
    let tests: String = results.iter().map(|(result, cell)| test(comparison, *result, cell)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite {head}>\n{tests}    \
         <system-out>{}</system-out>\n  </testsuite>\n</testsuites>\n",
        escape(&comparison.sentence())
    )
}

fn result(cell: &ComparedCell, if_inconclusive: IfInconclusive) -> TestResult {
    let open = match if_inconclusive {
        IfInconclusive::Tell => TestResult::Skipped,
        IfInconclusive::Pass => TestResult::Passed,
        IfInconclusive::Fail => TestResult::Failed,
    };
    match cell.verdict {
        CellVerdict::Faster | CellVerdict::NoDifference => TestResult::Passed,
        CellVerdict::Slower if !cell.is_only_likely() => TestResult::Failed,
        CellVerdict::Slower | CellVerdict::Inconclusive => open,
        CellVerdict::NotComparable if cell.a.as_ref().is_some_and(|side| side.is_measured) => TestResult::Error,
        CellVerdict::NotComparable | CellVerdict::OnlyA | CellVerdict::OnlyB => TestResult::Skipped,
    }
}

fn test(comparison: &Comparison, result: TestResult, cell: &ComparedCell) -> String {
    let value = |side: &Option<CellSide>| (comparison.metric.metric().show)(side.as_ref().and_then(|side| side.value));
    let label = cell.label(comparison.metric);
    let numbers =
        format!("A {}, B {}, change {}, interval {}", value(&cell.a), value(&cell.b), change(cell), interval(cell));
    let why = why(cell);
    let text = if why.is_empty() { numbers } else { format!("{numbers}; {why}") };
    let (label, text) = (escape(&label), escape(&text));
    let body = match result {
        TestResult::Passed => format!("<system-out>{label}: {text}</system-out>"),
        TestResult::Failed => format!("<failure message=\"{label}\">{text}</failure>"),
        TestResult::Error => format!("<error message=\"{label}\">{text}</error>"),
        TestResult::Skipped => format!("<skipped message=\"{label}: {text}\"/>"),
    };
    let class = escape(comparison.metric.metric().key);
    let name = escape(&name(cell));
    format!("    <testcase classname=\"speedmatrix.{class}\" name=\"{name}\" time=\"0\">{body}</testcase>\n")
}

/// Text without meaning to XML 1.0, which can't hold most control characters even as references (§2.2).
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(escape("a<b>&\"\u{0}\u{ffff}é\n"), "a&lt;b&gt;&amp;&quot;  é ");
    }
}
