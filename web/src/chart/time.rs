//! The token rate over time, as it is seen live. Measuring windows are shaded.

use leptos::prelude::*;
use speedmatrix_shared::format;

use super::{
    line::{Frame, Tick, grid},
    scale::{Axis, Kind, Range, clock_ticks, decimate, path},
};
use crate::{
    live::series::{RateSeries, SHOWN_S},
    shell::{Room, Shell},
};

/// The picture's frame.
const fn frame_for(room: Room) -> Frame {
    match room {
        Room::Narrow => Frame { width: 360.0, height: 190.0, left: 46.0, right: 354.0, top: 24.0, bottom: 164.0 },
        Room::Middle | Room::Wide => {
            Frame { width: 920.0, height: 270.0, left: 52.0, right: 912.0, top: 26.0, bottom: 242.0 }
        }
    }
}

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

fn draw(series: &RateSeries, frame: Frame) -> Drawing {
    let Some(latest_s) = series.latest_s() else { return Drawing::default() };
    let from_s = series.shown().next().map_or(latest_s, |first| first.at_s).max(latest_s - SHOWN_S);
    let x = Axis::new(Range { lo: from_s, hi: latest_s.max(from_s + LEAST_S) }, frame.across(), Kind::Linear);
    let highest = Range::of(series.shown().filter_map(|point| point.tok_s)).map_or(1.0, |range| range.hi.max(1.0));
    let y = Axis::new(Range { lo: 0.0, hi: highest * 1.08 }, frame.upwards(), Kind::Linear);
    let thin = decimate(series.shown().map(|point| (x.at(point.at_s), point.tok_s.map(|rate| y.at(rate)))));
    Drawing {
        line: path(thin),
        windows: series.windows().into_iter().map(|(from, to)| (x.at(from), x.at(to))).collect(),
        axes: Some([x, y]),
        latest: series.shown().last().and_then(|point| point.tok_s),
    }
}

fn time_grid(frame: Frame, axes: [Axis; 2]) -> impl IntoView {
    let [from_s, to_s] = axes[0].bounds();
    let x_ticks = Tick::each(clock_ticks(Range { lo: from_s, hi: to_s }), format::clock);
    let y_ticks = Tick::each(axes[1].ticks(), format::whole);
    grid(frame, axes, &x_ticks, &y_ticks)
}

/// Tokens per second over the last ten minutes of the run's clock.
#[component]
pub fn RateChart(
    /// What was seen.
    rates: RwSignal<RateSeries>,
) -> impl IntoView {
    let room = Shell::of_app().room;
    let frame = Memo::new(move |_| frame_for(room.get()));
    let drawing = Memo::new(move |_| rates.with(|rates| draw(rates, frame.get())));
    let axes = Memo::new(move |_| drawing.with(|drawing| drawing.axes));
    let windows = move || {
        let windows = drawing.with(|drawing| drawing.windows.clone());
        let Frame { top, bottom, .. } = frame.get();
        let shade = |(from, to): (f64, f64)| {
            view! { <rect class="window" x=from y=top width=to - from height=bottom - top></rect> }
        };
        windows.into_iter().map(shade).collect::<Vec<_>>()
    };
    let grid = move || axes.get().map(|axes| time_grid(frame.get_untracked(), axes));
    let says = move || match drawing.with(|drawing| drawing.latest) {
        Some(rate) => format!("now {} tok/s", format::rate(Some(rate))),
        None if drawing.with(|drawing| drawing.line.is_empty()) => "waiting for the first tokens".to_owned(),
        None => String::new(),
    };
    view! {
        <figure class="chart panel" data-testid="rate-chart">
            <header>
                <h3>"Token rate"</h3>
                <p>{says}</p>
            </header>
            <svg class="plot" viewBox=move || frame.get().view_box() role="img" aria-label="Output tokens per second over time">
                {windows}
                {grid}
                <text class="tick" x=move || frame.get().left y=14 text-anchor="start">"tok/s, all requests"</text>
                <g class="know"><path class="line thin" d=move || drawing.with(|drawing| drawing.line.clone())></path></g>
            </svg>
            <figcaption>"Run's clock. Shaded: measuring windows."</figcaption>
        </figure>
    }
}
