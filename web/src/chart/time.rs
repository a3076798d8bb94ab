//! The token rate over time, as it is seen live. Measuring windows are shaded.

use leptos::prelude::*;
use speedmatrix_shared::format;

use super::{
    line::{Frame, Tick, grid},
    scale::{Axis, Kind, Range, clock_ticks, decimate, path},
};
use crate::live::series::{RateSeries, SHOWN_S};

/// The picture's frame.
const FRAME: Frame = Frame { width: 640.0, height: 210.0, left: 52.0, right: 632.0, top: 24.0, bottom: 180.0 };
/// Least time on the axis, so that the first seconds do not look like hours.
const LEAST_S: f64 = 30.0;

/// What is drawn.
#[derive(Debug, Clone, Default, PartialEq)]
struct Drawing {
    line: String,
    windows: Vec<(f64, f64)>,
    axes: Option<[Axis; 2]>,
    latest: Option<f64>,
}

fn draw(series: &RateSeries) -> Drawing {
    let Some(latest_s) = series.latest_s() else { return Drawing::default() };
    let from_s = series.shown().next().map_or(latest_s, |first| first.at_s).max(latest_s - SHOWN_S);
    let x = Axis::new(Range { lo: from_s, hi: latest_s.max(from_s + LEAST_S) }, FRAME.across(), Kind::Linear);
    let highest = Range::of(series.shown().filter_map(|point| point.tok_s)).map_or(1.0, |range| range.hi.max(1.0));
    let y = Axis::new(Range { lo: 0.0, hi: highest * 1.08 }, FRAME.upwards(), Kind::Linear);
    let thin = decimate(series.shown().map(|point| (x.at(point.at_s), point.tok_s.map(|rate| y.at(rate)))));
    Drawing {
        line: path(thin),
        windows: series.windows().into_iter().map(|(from, to)| (x.at(from), x.at(to))).collect(),
        axes: Some([x, y]),
        latest: series.shown().last().and_then(|point| point.tok_s),
    }
}

fn frame(axes: [Axis; 2], [from_s, to_s]: [f64; 2]) -> impl IntoView {
    let x_ticks = Tick::each(clock_ticks(Range { lo: from_s, hi: to_s }), format::clock);
    let y_ticks = Tick::each(axes[1].ticks(), format::whole);
    grid(FRAME, axes, &x_ticks, &y_ticks)
}

/// Tokens per second over the last ten minutes of the run's clock.
#[component]
pub fn RateChart(
    /// What was seen.
    rates: RwSignal<RateSeries>,
) -> impl IntoView {
    let drawing = Memo::new(move |_| rates.with(draw));
    let axes = Memo::new(move |_| drawing.with(|drawing| drawing.axes));
    let windows = move || {
        let windows = drawing.with(|drawing| drawing.windows.clone());
        let shade = |(from, to): (f64, f64)| {
            view! { <rect class="window" x=from y=FRAME.top width=to - from height=FRAME.bottom - FRAME.top></rect> }
        };
        windows.into_iter().map(shade).collect::<Vec<_>>()
    };
    let grid = move || axes.get().map(|axes| frame(axes, axes[0].bounds()));
    let says = move || match drawing.with(|drawing| drawing.latest) {
        Some(rate) => format!("now {} tok/s", format::rate(Some(rate))),
        None => "waiting for the first tokens".to_owned(),
    };
    view! {
        <figure class="chart panel" data-testid="rate-chart">
            <header>
                <h3>"Token rate"</h3>
                <p>{says}</p>
            </header>
            <svg class="plot" viewBox=FRAME.view_box() role="img" aria-label="Output tokens per second over time">
                {windows}
                {grid}
                <text class="tick" x=FRAME.left y=14 text-anchor="start">"tok/s, all requests"</text>
                <g class="know"><path class="line thin" d=move || drawing.with(|drawing| drawing.line.clone())></path></g>
            </svg>
            <figcaption>"Run's clock. Shaded: measuring windows."</figcaption>
        </figure>
    }
}
