//! Prefill: how fast prompts are read, by context. Bars, and the same as curves.

use leptos::prelude::*;
use speedmatrix_shared::{
    format,
    id::Phase,
    metric,
    state::{Cell, CellState, RunState},
};

use super::figure::{Figure, Title};
use crate::{
    base::at,
    chart::{
        cell::with_unit,
        curve::{Curve, Point, Spec, Values},
        figure::Series,
        line::{Frame, Tick},
        scale::Range,
    },
    live::LiveRun,
    opening::open_from,
    query,
    shell::{Room, Shell},
};

/// A row of the table of bars.
#[derive(Debug, Clone, PartialEq)]
struct Bar {
    id: String,
    address: String,
    context: String,
    share: f64,
    rate: String,
    ttft: String,
    /// How many requests it is of, where that is known.
    sure: String,
    state: Option<String>,
}

fn number(cell: &Cell, key: &str) -> Option<f64> {
    let result = cell.result().filter(|result| !result.status.is_failed())?;
    metric::by_key(key).and_then(|metric| (metric.get)(result))
}

fn text(cell: &Cell, key: &str) -> String {
    metric::by_key(key).map_or_else(|| format::MISSING.to_owned(), |metric| (metric.show)(number(cell, key)))
}

fn sure(state: &RunState, cell: &Cell) -> String {
    let ttft = metric::by_key("ttft").zip(cell.result());
    ttft.map(|(metric, result)| metric.precision(result, state.origin)).unwrap_or_default()
}

fn bars(state: &RunState) -> Vec<Bar> {
    let cells: Vec<&Cell> = state.cells_of(Phase::Prefill).collect();
    let fastest = Range::of(cells.iter().filter_map(|cell| number(cell, "total_tok_s"))).map_or(1.0, |range| range.hi);
    let bar = |cell: &&Cell| Bar {
        id: cell.id.to_string(),
        address: query::whole_cell(&state.id, cell.id),
        context: cell.id.context.to_string(),
        share: number(cell, "total_tok_s").map_or(0.0, |rate| rate / fastest),
        rate: text(cell, "total_tok_s"),
        ttft: text(cell, "ttft"),
        sure: sure(state, cell),
        state: word(cell),
    };
    cells.iter().map(bar).collect()
}

/// A word where there is no number.
fn word(cell: &Cell) -> Option<String> {
    match &cell.state {
        CellState::Finished { result } if !result.status.is_failed() => None,
        CellState::Skipped { text, .. } => Some(format!("skipped: {text}")),
        _ => Some(cell.status_label().to_lowercase()),
    }
}

/// The section; nothing for a run without prefill rows.
#[component]
pub fn PrefillSection(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let has_rows = run.state.with_untracked(|state| state.cells_of(Phase::Prefill).next().is_some());
    has_rows.then(|| {
        view! {
            <section id="prefill" aria-labelledby="prefill-title">
                <div class="section-head">
                    <div>
                        <h2 id="prefill-title">"Prefill"</h2>
                        <p class="say">"Prompt tokens per second and time to first token by context length, cold cache"</p>
                    </div>
                </div>
                <div class="two">
                    <Bars run/>
                    <PrefillCurves run/>
                </div>
            </section>
        }
    })
}

#[component]
fn Bars(run: LiveRun) -> impl IntoView {
    let bars = run.report(bars);
    let open = open_from("prefill");
    let row = |bar: Bar| {
        let numbers = match bar.state {
            None => view! {
                <td class="value">{bar.rate}</td>
                <td>{bar.ttft}<small class="sure">{bar.sure}</small></td>
            }
            .into_any(),
            Some(state) => view! { <td class="state" colspan="2">{state}</td> }.into_any(),
        };
        view! {
            <tr data-cell=bar.id.clone()>
                <th scope="row">
                    <a href=at(&bar.address) data-noscroll data-opens=bar.id.clone() title="Look at it closely">{bar.context}</a>
                </th>
                <td class="track"><i style=("--share", format!("{:.1}%", bar.share * 100.0))></i></td>
                {numbers}
            </tr>
        }
    };
    view! {
        <div class="panel">
            <table class="bars" data-testid="prefill" on:click=open>
                <caption class="sr">"Prefill speed and time to first token by context length"</caption>
                <thead>
                    <tr>
                        <th scope="col">"Context"</th>
                        <td class="track"></td>
                        <th scope="col">"tok/s"</th>
                        <th scope="col">"TTFT"</th>
                    </tr>
                </thead>
                <tbody>{move || bars.get().into_iter().map(row).collect_view()}</tbody>
            </table>
        </div>
    }
}

fn series(state: &RunState, key: &'static str) -> Vec<Series> {
    let point = |cell: &Cell| {
        let y = number(cell, key)?;
        let text = text(cell, key);
        let title = with_unit(metric::by_key(key)?, Some(y));
        Some(Point { x: cell.id.context.tokens() as f64, y, title, ringed: false, text })
    };
    let mut points: Vec<Point> = state.cells_of(Phase::Prefill).filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    keep_telling_texts(&mut points);
    vec![Series::bare(Curve { label: String::new(), class: "kone", points, filled: key == "total_tok_s" })]
}

/// Only the highest point and the last keep their text.
fn keep_telling_texts(points: &mut [Point]) {
    let highest = points.iter().map(|point| point.y).fold(f64::MIN, f64::max);
    let (mut found, last) = (false, points.len().saturating_sub(1));
    for (n, point) in points.iter_mut().enumerate() {
        let is_highest = !found && point.y >= highest;
        found |= is_highest;
        if !is_highest && n != last {
            point.text.clear();
        }
    }
}

fn spec(state: &RunState, values: Values, room: Room) -> Spec {
    let tick = |cell: &Cell| Tick { value: cell.id.context.tokens() as f64, text: cell.id.context.to_string() };
    let mut x_ticks: Vec<Tick> = state.cells_of(Phase::Prefill).map(tick).collect();
    x_ticks.sort_by(|a, b| a.value.total_cmp(&b.value));
    let (describes, y_word) = match values {
        Values::Rate => ("Prompt tokens per second by context length", "prompt tok/s"),
        Values::Time => ("Cold time to first token by context length", "time to first token, cold"),
    };
    Spec {
        describes: describes.to_owned(),
        y_word,
        x_word: "",
        x_ticks,
        values,
        frame: match room {
            Room::Narrow => Frame::new(360.0, 190.0, 12.0),
            Room::Middle => Frame::new(980.0, 230.0, 16.0),
            Room::Wide => Frame::new(640.0, 216.0, 16.0),
        },
    }
}

#[component]
fn PrefillCurves(run: LiveRun) -> impl IntoView {
    let room = Shell::of_app().room;
    let chart = move |key: &'static str, words: &'static str, values: Values| {
        let series = run.report(move |state| series(state, key));
        let spec = Memo::new(move |_| run.state.with_untracked(|state| spec(state, values, room.get())));
        let title = Title { key, words, place: "Context", place_text: context_text };
        view! { <Figure title spec series/> }
    };
    view! {
        <div class="panel stacked">
            {chart("total_tok_s", "Prefill speed", Values::Rate)}
            {chart("ttft", "Cold time to first token", Values::Time)}
        </div>
    }
}

/// A number of tokens as it stands at the axis.
pub fn context_text(tokens: f64) -> String {
    format::size(Some(tokens as u64))
}
