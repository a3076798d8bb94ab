//! What a cell's status means and why it has it; its findings, its failures, its repeats.

use leptos::prelude::*;
use speedmatrix_shared::{
    detail::evidence::{evidence, meaning},
    finding::{Finding, Severity},
    format,
    id::CellId,
    state::{Cell, CellState, RunState},
    stats::cell::{CellResult, CellStatus, FailureGroup},
};

use crate::parts::notice::{Notice, Weight};

/// What is shown of a cell's verdict.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    class: &'static str,
    label: String,
    meaning: String,
    evidence: Vec<String>,
    findings: Vec<Finding>,
    failures: Vec<FailureGroup>,
    repeats: Vec<String>,
}

fn seen(state: &RunState, id: CellId) -> Option<Seen> {
    let cell = state.cell(id)?;
    let load = state.plan.load();
    let blank = |meaning: String| Seen {
        class: "badge",
        label: cell.status_label(),
        meaning,
        evidence: Vec::new(),
        findings: Vec::new(),
        failures: Vec::new(),
        repeats: Vec::new(),
    };
    Some(match &cell.state {
        CellState::Planned => blank("It is not measured yet: its turn is still to come.".into()),
        CellState::Running { .. } => blank("It is being measured. Its numbers appear here when it is done.".into()),
        CellState::Skipped { text, .. } => blank(format!("It is not measured: {text}")),
        CellState::NotReached => blank("It was not measured: the run ended before its turn.".into()),
        CellState::Cancelled => blank("It was not measured to its end: the run was stopped in it.".into()),
        CellState::Finished { result } => Seen {
            class: class(result.status),
            evidence: evidence(id, load, result),
            findings: result.findings.clone(),
            failures: result.failures.clone(),
            repeats: repeats(cell, result),
            ..blank(meaning(result.status).to_owned())
        },
    })
}

const fn class(status: CellStatus) -> &'static str {
    match status {
        CellStatus::Valid => "badge ok",
        CellStatus::Failed(_) | CellStatus::NotDrained => "badge bad",
        _ => "badge warn",
    }
}

/// Each measurement of a repeated cell: `1: 223.5 ± 4.1 tok/s, Valid`.
fn repeats(cell: &Cell, all: &CellResult) -> Vec<String> {
    if cell.repeats.len() < 2 {
        return Vec::new();
    }
    let one = |(n, result): (usize, &CellResult)| {
        let half = result.stats.total_tok_s_interval.map(|interval| interval.half_width);
        let rate = format::interval(result.stats.total_tok_s, half);
        format!("{n}: {rate} tok/s, {}", result.status.label())
    };
    let together = all.stats.total_tok_s_interval.map(|interval| interval.half_width);
    let together = format!("Together: {} tok/s", format::interval(all.stats.total_tok_s, together));
    (1..).zip(&cell.repeats).map(one).chain([together]).collect()
}

/// The verdict of a cell.
#[component]
pub fn Verdict(
    /// The run.
    run: RwSignal<RunState>,
    /// Which cell.
    id: CellId,
) -> impl IntoView {
    let seen = Memo::new(move |_| run.with(|state| seen(state, id)));
    move || seen.get().map(view)
}

fn view(seen: Seen) -> impl IntoView {
    let finding = |finding: Finding| {
        let weight = if finding.severity == Severity::Warning { Weight::Warning } else { Weight::Info };
        view! { <Notice weight text=finding.text/> }
    };
    let findings: Vec<_> = seen.findings.into_iter().map(finding).collect();
    let list = |lines: Vec<String>| lines.into_iter().map(|line| view! { <li>{line}</li> }).collect_view();
    let repeats = (!seen.repeats.is_empty()).then(|| {
        view! {
            <h3>{format!("Measured {} times", seen.repeats.len() - 1)}</h3>
            <ul class="evidence" data-testid="repeats">{list(seen.repeats)}</ul>
        }
    });
    view! {
        <section class="part verdict" aria-labelledby="verdict-title" data-testid="verdict">
            <h2 id="verdict-title" class="sr">"Status"</h2>
            <p><span class=seen.class data-testid="cell-status">{seen.label}</span>" "{seen.meaning}</p>
            <ul class="evidence">{list(seen.evidence)}</ul>
            {(!findings.is_empty()).then(|| view! { <h3>"Findings"</h3> })}
            {findings}
            {failures(seen.failures)}
            {repeats}
        </section>
    }
}

fn failures(groups: Vec<FailureGroup>) -> Option<impl IntoView> {
    let row = |group: FailureGroup| {
        view! {
            <tr>
                <td>{format::count(Some(group.count))}</td>
                <td class="text">{group.kind.label()}</td>
                <td class="text wide">{group.text}</td>
            </tr>
        }
    };
    (!groups.is_empty()).then(|| {
        view! {
            <h3>"Failed requests"</h3>
            <div class="table-scroll" tabindex="0" role="region" aria-label="Failed requests by what they said">
                <table class="table" data-testid="failures">
                    <thead>
                        <tr>
                            <th scope="col">"Requests"</th>
                            <th scope="col" class="text">"Kind"</th>
                            <th scope="col" class="text">"What came"</th>
                        </tr>
                    </thead>
                    <tbody>{groups.into_iter().map(row).collect_view()}</tbody>
                </table>
            </div>
        }
    })
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::sample;

    use super::*;

    #[test]
    fn a_status_is_said_with_its_evidence() {
        let state = sample::reference();
        let seen = seen(&state, "decode-8K-1".parse().unwrap()).unwrap();
        assert_eq!((seen.class, seen.label.as_str()), ("badge ok", "Valid"));
        assert_eq!(seen.evidence.first().map(String::as_str), Some("1 request completed in the window."));
        assert!(super::seen(&state, "decode-3K-1".parse().unwrap()).is_none());
    }
}
