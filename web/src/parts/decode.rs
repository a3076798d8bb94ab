//! Sustained decode: the matrix with the choice of what it shows, its scale and its marks.

use leptos::{either::Either, prelude::*};
use leptos_router::{
    NavigateOptions,
    hooks::{use_location, use_navigate},
};
use speedmatrix_shared::{
    finding::run::out_of_order,
    id::Phase,
    metric::{Group, METRICS, Metric},
    state::{Cell, RunState},
    stats::cell::CellStatus,
};

use super::{
    icon::{Icon, icon},
    keys::METRIC_CHOICE,
};
use crate::{
    base::within,
    chart::{
        cell::{self, Ranges, direction, step_class},
        heat::{Heat, Layout},
        scale::{STEPS, step_starts},
    },
    live::LiveRun,
    query::{self, RunView, Scope},
};

/// Metrics that have a button of their own; the others are in the list beside them.
const WITH_BUTTON: [&str; 4] = ["total_tok_s", "per_request_tok_s", "ttft", "time_between_tokens"];

/// The section; nothing for a run without decode cells.
#[component]
pub fn DecodeSection(
    /// The run.
    run: LiveRun,
    /// What the page shows.
    view: Memo<RunView>,
) -> impl IntoView {
    let has_cells = run.state.with_untracked(|state| state.cells_of(Phase::Decode).next().is_some());
    has_cells.then(|| {
        let load = run.state.with_untracked(|state| state.plan.load());
        view! {
            <section id="decode" aria-labelledby="decode-title">
                <div class="section-head">
                    <div>
                        <h2 id="decode-title">{load.phase_label(Phase::Decode)}</h2>
                        <p class="say">
                            {move || says(view.get().metric())}
                            {format!(" · rows are context length, columns are {}", load.level_words())}
                        </p>
                    </div>
                    <div class="tools">
                        <MetricChoice run view/>
                        <ScopeChoice view/>
                    </div>
                </div>
                <div class="panel">
                    <Heat run view/>
                    <Legend run view/>
                    {move || how(view.get().metric())}
                </div>
            </section>
        }
    })
}

fn says(metric: &Metric) -> String {
    let standard = if metric.standard.is_empty() { String::new() } else { format!(" ({})", metric.standard) };
    let unit = if metric.unit.is_empty() { String::new() } else { format!(", {}", metric.unit) };
    format!("{}{standard}{unit}", metric.label)
}

/// How a number comes about, for whoever wants to stake something on it.
fn how(metric: &'static Metric) -> impl IntoView {
    view! {
        <details class="how" data-testid="metric-help">
            <summary>{format!("How \u{201c}{}\u{201d} is measured", metric.label)}</summary>
            {metric_help(metric)}
        </details>
    }
}

/// Formula, population, source and caveat of a number.
pub fn metric_help(metric: &'static Metric) -> impl IntoView {
    let rows = [
        ("Formula", metric.formula),
        ("Counted over", metric.population),
        ("Observed by", metric.source),
        ("Beware", metric.caveat),
    ];
    let rows = rows.into_iter().filter(|(_, text)| !text.is_empty());
    let rows = rows.map(|(name, text)| view! { <dt>{name}</dt><dd>{text}</dd> }).collect_view();
    view! { <dl>{rows}</dl> }
}

/// Shows another view of the same run: the address changes, the page stays.
fn shower() -> impl Fn(RunView) + Clone {
    let navigate = use_navigate();
    let location = use_location();
    move |view: RunView| {
        let options = NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() };
        let address = format!("{}{}", within(&location.pathname.get_untracked()), view.query());
        navigate(&query::kept(&address, &location.search.get_untracked()), options);
    }
}

fn is_decode(metric: &Metric) -> bool {
    metric.applies_to(Phase::Decode)
}

fn decode_metrics() -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(|metric| is_decode(metric))
}

/// Keys of the metrics that at least one cell of the matrix has.
fn measured(state: &RunState) -> Vec<&'static str> {
    let has = |metric: &&Metric| {
        state.cells_of(Phase::Decode).filter_map(Cell::result).any(|result| (metric.get)(result).is_some())
    };
    decode_metrics().filter(has).map(|metric| metric.key).collect()
}

#[component]
fn MetricChoice(run: LiveRun, view: Memo<RunView>) -> impl IntoView {
    let show = shower();
    let choose = move |key: &'static str| show(RunView { metric: key, ..view.get_untracked() });
    let buttons = decode_metrics().filter(|metric| WITH_BUTTON.contains(&metric.key)).map(|metric| {
        let (key, choose) = (metric.key, choose.clone());
        let pressed = move || (view.get().metric == key).to_string();
        let focus = (key == "total_tok_s").then_some(METRIC_CHOICE);
        view! {
            <button type="button" id=focus aria-pressed=pressed data-metric=key on:click=move |_| choose(key)>
                {metric.column}
            </button>
        }
    });
    let measured = run.report(measured);
    let option = move |metric: &'static Metric| {
        let tail = move || if measured.with(|keys| keys.contains(&metric.key)) { "" } else { " (not measured)" };
        let title = format!("{}. {}", says(metric), metric.formula);
        let selected = move || view.get().metric == metric.key;
        view! { <option value=metric.key title=title prop:selected=selected>{metric.column}{tail}</option> }
    };
    let group = move |group: Group| {
        let others = group.metrics().filter(|metric| is_decode(metric) && !WITH_BUTTON.contains(&metric.key));
        view! { <optgroup label=group.label()>{others.map(option).collect_view()}</optgroup> }
    };
    let pick = {
        let choose = choose.clone();
        move |event| {
            let picked = event_target_value(&event);
            if let Some(metric) = decode_metrics().find(|metric| metric.key == picked) {
                choose(metric.key);
            }
        }
    };
    let none = move || WITH_BUTTON.contains(&view.get().metric);
    view! {
        <div class="seg" role="group" aria-label="Metric">{buttons.collect_view()}</div>
        <label class="select">
            <span class="sr">"Other metric"</span>
            <select data-testid="metric" on:change=pick>
                <option value="" prop:selected=none>"More metrics…"</option>
                {Group::ALL.map(group).collect_view()}
            </select>
        </label>
    }
}

#[component]
fn ScopeChoice(view: Memo<RunView>) -> impl IntoView {
    let show = shower();
    let button = move |scope: Scope| {
        let show = show.clone();
        let pressed = move || (view.get().scope == scope).to_string();
        let choose = move |_| show(RunView { scope, ..view.get_untracked() });
        view! {
            <button type="button" aria-pressed=pressed data-scope=scope.key() on:click=choose>{scope.label()}</button>
        }
    };
    view! { <div class="seg" role="group" aria-label="Colours compare">{Scope::ALL.map(button).collect_view()}</div> }
}

/// What the colours and marks mean. Only marks that are there are explained.
#[component]
fn Legend(run: LiveRun, view: Memo<RunView>) -> impl IntoView {
    let layout = StoredValue::new(run.state.with_untracked(Layout::of));
    let ranges = run.report(move |state| layout.with_value(|layout| layout.ranges(state, view.get())));
    let marks = run.report(Marks::of);
    view! {
        <div class="legend">
            {move || ranges.with(|ranges| ramp(ranges, view.get()))}
            <span>{move || format!("{} · steps of equal ratio", direction(view.get().metric().better))}</span>
            {move || marks.get().few.then(|| view! { <span class="key"><span class="few"></span>"fewer than 3 requests finished"</span> })}
            {move || marks.get().odd.then(|| view! { <span class="key"><span class="odd"></span>"breaks the expected order, or has a finding"</span> })}
            {move || {
                marks.get().queued.then(|| {
                    view! {
                        <span class="key">
                            <span class="badge warn">{icon(Icon::Queue)}"Requests queued"</span>
                            "some waited for a place in the server"
                        </span>
                    }
                })
            }}
        </div>
    }
}

/// Marks that a matrix holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    few: bool,
    odd: bool,
    queued: bool,
}

impl Marks {
    fn of(state: &RunState) -> Self {
        let results = || state.cells_of(Phase::Decode).filter_map(Cell::result);
        Self {
            few: results().any(cell::is_few),
            odd: results().any(cell::is_odd) || !out_of_order(state).is_empty(),
            queued: results().any(|result| result.status == CellStatus::RequestsQueued),
        }
    }
}

fn ramp(ranges: &Ranges, view: RunView) -> impl IntoView + use<> {
    let metric = view.metric();
    let starts = ranges.all.map(|range| step_starts(range, metric.better)).unwrap_or_default();
    let steps = (0..STEPS).map(|step| view! { <i class=step_class(step)></i> }).collect_view();
    let words = if view.scope == Scope::All {
        let start = |start: f64| view! { <span>{(metric.show)(Some(start))}</span> };
        Either::Left(starts.into_iter().map(start).collect_view())
    } else {
        Either::Right(())
    };
    view! { <span class="ramp" aria-hidden="true">{steps}{words}</span> }
}
