//! The decode matrix as curves: one line per context, over requests at once.

use leptos::prelude::*;
use speedmatrix_shared::{
    format,
    id::Phase,
    metric,
    plan::Load,
    state::{Cell, RunState},
    stats::cell::CellStatus,
    units::Context,
};

use crate::{
    chart::{
        cell::with_unit,
        curve::{Curve, Point, Spec, Values, plot},
        line::{Frame, Tick},
    },
    live::LiveRun,
    shell::{Room, Shell},
};

/// Colours of contexts, short to long.
const COLOURS: [&str; 8] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"];

/// One chart.
#[derive(Debug, Clone, Copy)]
struct Chart {
    title: &'static str,
    key: &'static str,
    y_word: &'static str,
    values: Values,
}

const CHARTS: [Chart; 4] = [
    Chart { title: "Throughput by concurrency", key: "total_tok_s", y_word: "total tok/s", values: Values::Rate },
    Chart {
        title: "Speed of one request by concurrency",
        key: "per_request_tok_s",
        y_word: "tok/s of each request, median",
        values: Values::Rate,
    },
    Chart { title: "Time to first token by concurrency", key: "ttft", y_word: "TTFT, median", values: Values::Time },
    Chart {
        title: "Time between tokens by concurrency",
        key: "time_between_tokens",
        y_word: "time between tokens, median",
        values: Values::Time,
    },
];

/// The colour of the n-th of `count` contexts: spread over the whole scale, so that few lines stay apart.
fn colour(n: usize, count: usize) -> &'static str {
    let last = COLOURS.len() - 1;
    let step = if count <= 1 { last / 2 } else { n * last / (count - 1) };
    COLOURS.get(step).copied().unwrap_or("kone")
}

fn curves(state: &RunState, key: &str) -> Vec<Curve> {
    let contexts = state.plan.contexts();
    let line = |(n, context): (usize, &Context)| Curve {
        label: context.to_string(),
        class: colour(n, contexts.len()),
        points: points(state, *context, key),
        filled: false,
    };
    contexts.iter().enumerate().map(line).filter(|curve| !curve.points.is_empty()).collect()
}

fn points(state: &RunState, context: Context, key: &str) -> Vec<Point> {
    let point = |cell: &Cell| {
        let result = cell.result().filter(|result| !result.status.is_failed())?;
        let metric = metric::by_key(key)?;
        let y = (metric.get)(result)?;
        let ringed = result.status == CellStatus::RequestsQueued;
        let tail = if ringed { ", requests queued" } else { "" };
        let title = format!("{context} × {}: {}{tail}", cell.id.concurrency, with_unit(metric, Some(y)));
        Some(Point { x: f64::from(cell.id.concurrency.get()), y, title, ringed, text: String::new() })
    };
    let mut points: Vec<Point> =
        state.cells_of(Phase::Decode).filter(|cell| cell.id.context == context).filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

fn spec(state: &RunState, chart: Chart, room: Room) -> Spec {
    let levels = state.plan.concurrency().iter().map(|level| f64::from(level.get()));
    Spec {
        describes: format!("{}, one line per context; the values are in the table of all measurements", chart.title),
        y_word: chart.y_word,
        x_word: match state.plan.load() {
            Load::Sustained | Load::Burst { .. } => "requests at once (log scale)",
            Load::Mixed { .. } => "background requests (log scale)",
            Load::Open(_) => "requests per minute (log scale)",
        },
        x_ticks: Tick::each(levels, format::whole),
        values: chart.values,
        frame: match room {
            Room::Narrow => Frame::new(360.0, 280.0, 50.0),
            Room::Middle => Frame::new(980.0, 360.0, 60.0),
            Room::Wide => Frame::new(640.0, 310.0, 60.0),
        },
    }
}

/// The section. A curve needs at least two columns.
#[component]
pub fn CurvesSection(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let has_curves = run
        .state
        .with_untracked(|state| state.plan.concurrency().len() > 1 && state.cells_of(Phase::Decode).next().is_some());
    has_curves.then(|| {
        view! {
            <section id="charts" aria-labelledby="charts-title">
                <div class="section-head">
                    <div>
                        <h2 id="charts-title">"Charts"</h2>
                        <p class="say">"One line per context length. Rings mark cells with requests queued."</p>
                    </div>
                </div>
                <div class="two even">{CHARTS.map(|chart| view! { <CurveChart run chart/> }).collect_view()}</div>
            </section>
        }
    })
}

#[component]
fn CurveChart(run: LiveRun, chart: Chart) -> impl IntoView {
    let curves = Memo::new(move |_| run.state.with(|state| curves(state, chart.key)));
    let room = Shell::of_app().room;
    let spec = Memo::new(move |_| run.state.with_untracked(|state| spec(state, chart, room.get())));
    view! {
        <figure class="panel chart" data-chart=chart.key>
            <header><h3>{chart.title}</h3></header>
            {move || curves.with(|curves| spec.with(|spec| plot(spec, curves)))}
        </figure>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_contexts_take_colours_far_apart() {
        assert_eq!((colour(0, 8), colour(7, 8)), ("k0", "k7"));
        assert_eq!((colour(0, 2), colour(1, 2)), ("k0", "k7"));
        assert_eq!(colour(0, 1), "k3");
        assert_eq!(colour(15, 16), "k7");
    }
}
