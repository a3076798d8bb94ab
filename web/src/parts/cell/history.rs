//! The same cell in other runs: what they found, over time.

use std::sync::Arc;

use leptos::prelude::*;
use speedmatrix_shared::{
    api::{CellInRun, MOST_OTHER_RUNS},
    facts, format,
    id::{CellId, RunId},
    metric::Metric,
    state::{Cell, RunState},
};

use super::Asked;
use crate::{
    base::at,
    chart::{
        cell::with_unit,
        line::Frame,
        over_runs::{Bar, draw},
    },
    compare_view::address,
    fetch::FetchError,
    parts::{
        badge::origin_badge,
        notice::{Loading, Notice, Weight},
    },
    query,
    shell::{Room, Shell},
};

const fn frame_for(room: Room) -> Frame {
    match room {
        Room::Narrow => Frame { width: 360.0, height: 200.0, left: 50.0, right: 350.0, top: 26.0, bottom: 170.0 },
        Room::Middle | Room::Wide => {
            Frame { width: 820.0, height: 200.0, left: 54.0, right: 812.0, top: 26.0, bottom: 170.0 }
        }
    }
}

/// Which run a line is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// The one whose page this is.
    This,
    /// One of the same model.
    Alike,
    /// One of another model, or of one that is not known.
    Apart,
}

impl Which {
    const fn class(self) -> &'static str {
        match self {
            Self::This => "run-own",
            Self::Alike => "run-alike",
            Self::Apart => "run-apart",
        }
    }
}

/// A run and what it found.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    which: Which,
    found: CellInRun,
}

impl Line {
    fn day(&self) -> String {
        match self.found.started_unix_ms {
            0 => String::new(),
            unix_ms => format::wall_time(unix_ms).chars().take("2026-01-01".len()).collect(),
        }
    }
}

/// This run first, then the others in their order.
fn lines(own: Option<CellInRun>, model: Option<&str>, others: &[CellInRun]) -> Vec<Line> {
    let which =
        |it: &CellInRun| if model.is_some() && it.model.as_deref() == model { Which::Alike } else { Which::Apart };
    let others = others.iter().map(|it| Line { which: which(it), found: it.clone() });
    own.into_iter().map(|found| Line { which: Which::This, found }).chain(others).collect()
}

/// The oldest first, as a chart over time runs.
fn bars(lines: &[Line], metric: &'static Metric) -> Vec<Bar> {
    let mut sorted: Vec<&Line> = lines.iter().collect();
    sorted.sort_by_key(|line| line.found.started_unix_ms);
    let bar = |line: &Line| {
        let value = line.found.value(metric);
        let own = if line.which == Which::This { " (this run)" } else { "" };
        let title = format!("{}{own}, {}: {}", line.found.name, line.day(), with_unit(metric, value));
        Bar { title, day: line.day(), value, class: line.which.class() }
    };
    sorted.into_iter().map(bar).collect()
}

/// The section; nothing until the cell is measured or while others have not answered.
#[component]
pub(super) fn InOtherRuns(
    /// This run.
    run: RwSignal<RunState>,
    /// Which cell.
    id: CellId,
    /// What other runs found.
    others: RwSignal<Asked<Vec<CellInRun>>>,
) -> impl IntoView {
    let shown = move || {
        match others.get() {
        Asked::Loading => view! { <Loading what="other runs"/> }.into_any(),
        Asked::Not(FetchError::Refused(problem)) if problem.status == 403 => {
            view! { <p class="muted">"Your link is for this run alone, so what other runs found is not shown."</p> }
                .into_any()
        }
        Asked::Not(error) => view! { <Notice weight=Weight::Bad text=super::sentence(&error.to_string())/> }.into_any(),
        Asked::Here(others) if others.is_empty() => view! {
            <p class="muted">
                "No other run here has measured this cell. Measure it again after a change, and both stand here side by side."
            </p>
        }
        .into_any(),
        Asked::Here(others) => view! { <Known run id others/> }.into_any(),
    }
    };
    view! {
        <section class="part" aria-labelledby="history-title" data-testid="history">
            <header><h2 id="history-title">"In other runs"</h2></header>
            {shown}
        </section>
    }
}

#[component]
fn Known(run: RwSignal<RunState>, id: CellId, others: Arc<Vec<CellInRun>>) -> impl IntoView {
    let result = Memo::new(move |_| run.with(|state| state.cell(id).and_then(Cell::result).cloned()));
    let lines = Memo::new(move |_| {
        result.track();
        run.with_untracked(|run| lines(CellInRun::of(run, id), facts::model(run).as_deref(), &others))
    });
    let is_known =
        |metric: &&Metric| lines.with_untracked(|lines| lines.iter().any(|line| line.found.value(metric).is_some()));
    let metrics: Vec<&'static Metric> = CellInRun::metrics().filter(is_known).collect();
    let metric = RwSignal::new(metrics.first().copied().or_else(|| CellInRun::metrics().next()));
    let room = Shell::of_app().room;
    let picture = move || {
        let metric = metric.get()?;
        let bars = lines.with(|lines| bars(lines, metric));
        let describes = format!("{} of this cell in {} runs, the oldest first", metric.label, bars.len());
        let unit =
            if metric.unit.is_empty() { metric.label.to_owned() } else { format!("{}, {}", metric.label, metric.unit) };
        Some(draw(&bars, frame_for(room.get()), (describes, unit), metric.show))
    };
    let is_mixed = Memo::new(move |_| lines.with(|lines| lines.iter().any(|line| line.which == Which::Apart)));
    let apart = move || is_mixed.get().then(|| view! { <li><i class="run-apart"></i>"another model"</li> });
    let this = run.with_untracked(|state| (state.id.clone(), state.started_unix_ms));
    view! {
        {(metrics.len() > 1).then(|| choice(metrics, metric))}
        <figure class="chart">{picture}</figure>
        <ul class="keys-of runs-of">
            <li><i class="run-own"></i>"this run"</li>
            <li><i class="run-alike"></i>"same model"</li>
            {apart}
        </ul>
        <Table lines metric id this/>
        <p class="muted">
            {format!("Up to {MOST_OTHER_RUNS} runs, those of the same model first. How sure a difference is, a comparison tells.")}
        </p>
    }
}

/// Which number is shown.
fn choice(metrics: Vec<&'static Metric>, chosen: RwSignal<Option<&'static Metric>>) -> impl IntoView {
    let button = move |this: &'static Metric| {
        let pressed = move || chosen.with(|metric| metric.is_some_and(|metric| metric.key == this.key)).to_string();
        view! {
            <button type="button" aria-pressed=pressed data-history=this.key on:click=move |_| chosen.set(Some(this))>
                {this.column}
            </button>
        }
    };
    view! { <div class="seg" role="group" aria-label="Number">{metrics.into_iter().map(button).collect_view()}</div> }
}

#[component]
fn Table(
    lines: Memo<Vec<Line>>,
    metric: RwSignal<Option<&'static Metric>>,
    id: CellId,
    this: (RunId, u64),
) -> impl IntoView {
    let this = StoredValue::new(this);
    let rows = move || {
        let metric = metric.get();
        this.with_value(|this| lines.with(|lines| lines.iter().map(|line| row(line, metric, id, this)).collect_view()))
    };
    view! {
        <div class="table-scroll low" tabindex="0" role="region" aria-label="Table of this cell in other runs">
            <table class="table" data-testid="history-table">
                <thead>
                    <tr>
                        <th scope="col" class="text">"Run"</th>
                        <th scope="col">{move || metric.get().map(|metric| metric.column)}</th>
                        <th scope="col" class="text">"Started"</th>
                        <th scope="col" class="text">"Status"</th>
                        <th scope="col" class="text">"Model and engine"</th>
                        <th scope="col" class="text">"Against this run"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

/// A line of the table. `this` is the run whose page it is, with its start: the older one of a pair is the base.
fn row(line: &Line, metric: Option<&'static Metric>, id: CellId, this: &(RunId, u64)) -> impl IntoView + use<> {
    let Line { which, found } = line.clone();
    let value = metric.map_or_else(|| format::MISSING.to_owned(), |metric| with_unit(metric, found.value(metric)));
    let name = match which {
        Which::This => view! { <b>"This run"</b> }.into_any(),
        Which::Alike | Which::Apart => {
            let there = query::whole_cell(&found.run, id);
            view! { <a href=at(&there)><bdi>{found.name.clone()}</bdi></a> }.into_any()
        }
    };
    let compare = (which != Which::This).then(|| {
        let (own, started) = this;
        let (older, newer) = if found.started_unix_ms <= *started { (&found.run, own) } else { (own, &found.run) };
        let there = at(&address(older.as_str(), newer.as_str()));
        // A label, not hidden text: that would hang over the side of a table that scrolls.
        view! {
            <a href=there aria-label=format!("Compare with {}", found.name)>"Compare"</a>
        }
    });
    let server = [found.model.unwrap_or_default(), found.engine];
    let server = server.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
    view! {
        <tr data-run=found.run.to_string()>
            <th scope="row" class="text wide">{name}" "{origin_badge(found.origin)}</th>
            <td class="strong">{value}</td>
            <td class="text">{format::wall_time(found.started_unix_ms)}</td>
            <td class="text">{found.status}</td>
            <td class="text wide">{server}</td>
            <td class="text">{compare}</td>
        </tr>
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{metric, sample};

    use super::*;

    #[test]
    fn this_run_stands_first_in_the_table_and_by_its_date_in_the_chart() {
        // The sample's page does not tell when it was measured.
        let state = RunState { started_unix_ms: 2, ..sample::reference() };
        let this = CellInRun::of(&state, "decode-8K-1".parse().unwrap()).unwrap();
        let other = |name: &str, started_unix_ms: u64, model: Option<&str>| CellInRun {
            name: name.to_owned(),
            run: name.parse().unwrap(),
            started_unix_ms,
            model: model.map(ToOwned::to_owned),
            total_tok_s: None,
            ..this.clone()
        };
        let model = this.model.clone();
        let others = [other("later", u64::MAX / 2, model.as_deref()), other("early", 1, None)];
        let lines = lines(Some(this), model.as_deref(), &others);
        assert_eq!(lines.iter().map(|line| line.which).collect::<Vec<_>>(), [Which::This, Which::Alike, Which::Apart]);
        let bars = bars(&lines, metric::by_key("total_tok_s").unwrap());
        let shown: Vec<_> = bars.iter().map(|bar| (bar.class, bar.value)).collect();
        assert_eq!(shown, [("run-apart", None), ("run-own", Some(223.5)), ("run-alike", None)]);
        assert!(bars[1].title.ends_with(": 223.5 tok/s") && bars[1].title.contains("(this run)"), "{}", bars[1].title);
    }
}
