//! The decode matrix as curves: over requests at once, over context, and what one user gets against what all get.

use leptos::prelude::*;
use speedmatrix_shared::{
    format,
    id::Phase,
    metric::{self, Metric},
    plan::Load,
    state::{Cell, RunState},
    stats::cell::{CellResult, CellStatus},
    units::{Concurrency, Context},
};

use super::{
    figure::{Figure, Title},
    prefill::context_text,
};
use crate::{
    chart::{
        cell::with_unit,
        curve::{Curve, Point, Spec, Values},
        figure::Series,
        line::{Frame, Tick},
    },
    live::LiveRun,
    shell::{Room, Shell},
};

/// Colours of lines, short to long or few to many.
const COLOURS: [&str; 8] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"];

/// What a chart's horizontal axis holds, and what each of its lines is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Across {
    /// Requests at once; a line per context.
    Level,
    /// Context; a line per number of requests at once.
    Context,
    /// What one request gets; a line per context.
    OneRequest,
}

/// One chart.
#[derive(Debug, Clone, Copy)]
struct Chart {
    /// Stable name.
    name: &'static str,
    title: &'static str,
    /// Key of the metric on its value axis.
    key: &'static str,
    y_word: &'static str,
    values: Values,
    across: Across,
}

const CHARTS: [Chart; 6] = [
    Chart {
        name: "total_tok_s",
        title: "Throughput by concurrency",
        key: "total_tok_s",
        y_word: "total tok/s",
        values: Values::Rate,
        across: Across::Level,
    },
    Chart {
        name: "per_request_tok_s",
        title: "Speed of one request by concurrency",
        key: "per_request_tok_s",
        y_word: "tok/s of each request, median",
        values: Values::Rate,
        across: Across::Level,
    },
    Chart {
        name: "by-context",
        title: "Throughput by context",
        key: "total_tok_s",
        y_word: "total tok/s",
        values: Values::Rate,
        across: Across::Context,
    },
    Chart {
        name: "trade-off",
        title: "What one user gets against what all get",
        key: "total_tok_s",
        y_word: "total tok/s",
        values: Values::Rate,
        across: Across::OneRequest,
    },
    Chart {
        name: "ttft",
        title: "Time to first token by concurrency",
        key: "ttft",
        y_word: "TTFT, median",
        values: Values::Time,
        across: Across::Level,
    },
    Chart {
        name: "time_between_tokens",
        title: "Time between tokens by concurrency",
        key: "time_between_tokens",
        y_word: "time between tokens, median",
        values: Values::Time,
        across: Across::Level,
    },
];

/// The colour of the n-th of `count` lines: spread over the whole scale, so that few lines stay apart.
fn colour(n: usize, count: usize) -> &'static str {
    let last = COLOURS.len() - 1;
    let step = if count <= 1 { last / 2 } else { n * last / (count - 1) };
    COLOURS.get(step).copied().unwrap_or("kone")
}

/// The lines of a chart that have points.
fn series(state: &RunState, chart: Chart) -> Vec<Series> {
    let (contexts, levels) = (state.plan.contexts(), state.plan.concurrency());
    let lines: Vec<(String, Vec<Spot>)> = match chart.across {
        Across::Level | Across::OneRequest => contexts
            .iter()
            .map(|context| (context.to_string(), spots(state, chart, |cell| cell.id.context == *context)))
            .collect(),
        Across::Context => {
            let of = |level: &Concurrency| spots(state, chart, |cell| cell.id.concurrency == *level);
            levels.iter().map(|level| (level.to_string(), of(level))).collect()
        }
    };
    let count = lines.len();
    let line = |(n, (label, spots)): (usize, (String, Vec<Spot>))| {
        let (points, bands) = spots.into_iter().map(|spot| (spot.point, spot.band)).unzip();
        Series { curve: Curve { label, class: colour(n, count), points, filled: false }, bands }
    };
    lines.into_iter().enumerate().filter(|(_, (_, spots))| !spots.is_empty()).map(line).collect()
}

/// A point with its interval.
struct Spot {
    point: Point,
    band: Option<[f64; 2]>,
}

fn spots(state: &RunState, chart: Chart, is_on: impl Fn(&Cell) -> bool) -> Vec<Spot> {
    let spot = |cell: &Cell| spot(cell, chart);
    let mut cells: Vec<&Cell> = state.cells_of(Phase::Decode).filter(|cell| is_on(cell)).collect();
    // Also the trade-off runs from few requests to many, whatever they get.
    cells.sort_by_key(|cell| cell.id);
    cells.into_iter().filter_map(spot).collect()
}

fn spot(cell: &Cell, chart: Chart) -> Option<Spot> {
    let result = cell.result().filter(|result| !result.status.is_failed())?;
    let metric = metric::by_key(chart.key)?;
    let y = (metric.get)(result)?;
    let x = match chart.across {
        Across::Level => f64::from(cell.id.concurrency.get()),
        Across::Context => cell.id.context.tokens() as f64,
        Across::OneRequest => one_request(result).filter(|rate| *rate > 0.0)?,
    };
    let half = metric.interval(result).map(|interval| interval.half_width);
    let ringed = result.status == CellStatus::RequestsQueued;
    let band = half.map(|half| [y - half, y + half]);
    Some(Spot { point: Point { x, y, title: words(cell, chart, metric, result), ringed, text: String::new() }, band })
}

fn one_request(result: &CellResult) -> Option<f64> {
    metric::by_key("per_request_tok_s").and_then(|metric| (metric.get)(result))
}

/// What is read at a point: `1,540.5 tok/s`, `± 4.1` where it is known, and whether requests queued.
fn words(cell: &Cell, chart: Chart, metric: &Metric, result: &CellResult) -> String {
    let mut words = with_unit(metric, (metric.get)(result));
    if let Some(interval) = metric.interval(result) {
        words = format!("{words} ± {}", (metric.show)(Some(interval.half_width)));
    }
    if chart.across == Across::OneRequest {
        words = format!("× {}: {words} in all", cell.id.concurrency);
    }
    if result.status == CellStatus::RequestsQueued {
        words.push_str(", requests queued");
    }
    words
}

fn spec(state: &RunState, chart: Chart, room: Room) -> Spec {
    let levels = state.plan.concurrency().iter().map(|level| f64::from(level.get()));
    let contexts = state.plan.contexts().iter();
    let context = |context: &Context| Tick { value: context.tokens() as f64, text: context.to_string() };
    let (line, x_word, x_ticks) = match chart.across {
        Across::Level => ("one line per context", level_word(state.plan.load()), Tick::each(levels, format::whole)),
        Across::Context => {
            ("one line per number of requests at once", "context (log scale)", contexts.map(context).collect())
        }
        Across::OneRequest => {
            ("one line per context, from few requests to many", "tok/s of each request (log scale)", Vec::new())
        }
    };
    Spec {
        describes: format!("{}, {line}", chart.title),
        y_word: chart.y_word,
        x_word,
        x_ticks,
        values: chart.values,
        frame: match room {
            Room::Narrow => Frame::new(360.0, 280.0, 50.0),
            Room::Middle => Frame::new(980.0, 360.0, 60.0),
            Room::Wide => Frame::new(640.0, 310.0, 60.0),
        },
    }
}

const fn level_word(load: Load) -> &'static str {
    match load {
        Load::Sustained | Load::Burst { .. } => "requests at once (log scale)",
        Load::Mixed { .. } => "background requests (log scale)",
        Load::Open(_) => "requests per minute (log scale)",
    }
}

fn title(chart: Chart, load: Load) -> Title {
    let (place, place_text): (_, fn(f64) -> String) = match chart.across {
        Across::Level => (load.level_label(), |level| format::whole(Some(level))),
        Across::Context => ("Context", context_text),
        Across::OneRequest => ("tok/s of each request", |rate| format::rate(Some(rate))),
    };
    Title { key: chart.name, words: chart.title, place, place_text }
}

/// Charts for which the run has at least two places.
fn charts(state: &RunState) -> Vec<Chart> {
    if state.cells_of(Phase::Decode).next().is_none() {
        return Vec::new();
    }
    let has_levels = state.plan.concurrency().len() > 1;
    let has_contexts = state.plan.contexts().len() > 1;
    let is_told = |chart: &Chart| match chart.across {
        Across::Level | Across::OneRequest => has_levels,
        Across::Context => has_contexts,
    };
    CHARTS.into_iter().filter(is_told).collect()
}

/// Whether there is anything to draw curves of.
pub fn has_charts(state: &RunState) -> bool {
    !charts(state).is_empty()
}

/// The section.
#[component]
pub fn CurvesSection(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let charts = run.state.with_untracked(charts);
    (!charts.is_empty()).then(|| {
        view! {
            <section id="charts" aria-labelledby="charts-title">
                <div class="section-head">
                    <div>
                        <h2 id="charts-title">"Charts"</h2>
                        <p class="say">
                            "Bands are 95 % intervals, rings mark cells with requests queued. Point or press arrow keys to read all \
                             values; drag to zoom, a double click or 0 shows all."
                        </p>
                    </div>
                </div>
                <div class="two even">{charts.into_iter().map(|chart| view! { <CurveChart run chart/> }).collect_view()}</div>
            </section>
        }
    })
}

#[component]
fn CurveChart(run: LiveRun, chart: Chart) -> impl IntoView {
    let series = run.report(move |state| series(state, chart));
    let room = Shell::of_app().room;
    let spec = Memo::new(move |_| run.state.with_untracked(|state| spec(state, chart, room.get())));
    let title = run.state.with_untracked(|state| title(chart, state.plan.load()));
    view! { <Figure title spec series/> }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::sample;

    use super::*;

    #[test]
    fn few_lines_take_colours_far_apart() {
        assert_eq!((colour(0, 8), colour(7, 8)), ("k0", "k7"));
        assert_eq!((colour(0, 2), colour(1, 2)), ("k0", "k7"));
        assert_eq!(colour(0, 1), "k3");
        assert_eq!(colour(15, 16), "k7");
    }

    #[test]
    fn lines_run_over_what_was_measured() {
        let state = sample::reference();
        let check = |name: &str, lines: usize, first: (&str, f64, &str)| {
            let chart = CHARTS.into_iter().find(|chart| chart.name == name).unwrap();
            let series = series(&state, chart);
            let line = &series[0].curve;
            let point = &line.points[0];
            assert_eq!((series.len(), (line.label.as_str(), point.x, point.title.as_str())), (lines, first), "{name}");
        };
        check("total_tok_s", 8, ("8K", 1.0, "223.5 tok/s"));
        check("by-context", 8, ("1", 8_192.0, "223.5 tok/s"));
        check("trade-off", 8, ("8K", 222.3, "× 1: 223.5 tok/s in all"));
        check("ttft", 8, ("8K", 1.0, "92 ms"));
        assert_eq!(charts(&state).len(), CHARTS.len());
    }
}
