//! The charts of a run while it runs: one axis of time, one cross line, and a table for each.

use leptos::{
    ev::{KeyboardEvent, PointerEvent},
    prelude::*,
};
use speedmatrix_shared::format;

use super::cell::{
    axis::{Field, TimeAxis},
    over_time::step,
    table::AsTable,
};
use crate::{
    chart::{
        line::{Frame, Tick, grid},
        live::{CHARTS, Drawn, LiveChart, columns, draw, frame_for, rows, values_at},
        scale::{Axis, Range, clock_ticks},
        timeline::overlay,
    },
    live::{LiveRun, series::GaugeSeries},
    shell::Shell,
    zoom::Zoom,
};

/// Said where nothing is pointed at.
const HOW_TO: &str = "Drag to zoom; 0 or a double click follows the run again. Times are the run's clock. Shaded: \
                      measuring windows.";

/// The charts.
#[component]
pub fn LiveCharts(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let series = run.series;
    let whole = Memo::new(move |_| series.with(GaugeSeries::whole));
    let axis = TimeAxis::new(whole.into(), RwSignal::new(None), UnsyncCallback::new(|_| ()));
    let spoken = RwSignal::new(String::new());
    let values = move |at_s: f64| series.with_untracked(|series| values_at(series, at_s)).unwrap_or_default();
    let on_key = move |event: KeyboardEvent| {
        if axis.key(&event) {
            return;
        }
        if let Some(at_s) = step(&event, axis) {
            event.prevent_default();
            axis.cursor.set(Some(at_s));
            axis.bring(at_s);
            spoken.set(values(at_s));
        }
    };
    let read_out = move || axis.cursor.get().map_or_else(|| HOW_TO.to_owned(), values);
    // Whether the server's GPUs are seen is known before anything runs, and does not change.
    let no_gpus = Memo::new(move |_| {
        run.state.with(|state| state.facts.as_ref().is_some_and(|facts| facts.hardware.gpus.is_empty()))
    });
    view! {
        <section class="panel pad live-charts" aria-labelledby="live-charts-title" data-testid="live-charts">
            <header>
                <h3 id="live-charts-title">"Last 10 minutes"</h3>
                <Follow axis/>
            </header>
            <div
                class="times"
                tabindex="0"
                role="group"
                aria-label="Live charts. Arrow keys move the cross line, plus and minus zoom, Shift with arrows moves, 0 follows the run."
                on:keydown=on_key
            >
                {CHARTS.map(|chart| view! { <Slot chart series axis no_gpus/> }).collect_view()}
            </div>
            <p class="read-out" data-testid="live-values" aria-hidden="true">{read_out}</p>
            <p class="sr" aria-live="polite">{move || spoken.get()}</p>
        </section>
    }
}

/// What is shown, where it is a part, and the way back.
#[component]
fn Follow(axis: TimeAxis) -> impl IntoView {
    let clock = |secs: f64| format::clock(Some(secs));
    let part = move || {
        axis.zoom.get().map(|_| {
            let shown = axis.shown();
            format!("{} to {}", clock(shown.from_s), clock(shown.to_s))
        })
    };
    view! {
        <div class="btns zoomed">
            <span data-testid="live-zoom">{part}</span>
            <button
                type="button"
                class="btn"
                data-testid="live-follow"
                disabled=move || axis.zoom.with(Option::is_none)
                on:click=move |_| axis.show(None)
            >
                "Follow"
            </button>
        </div>
    }
}

/// One chart with its table, or why it is not there. It keeps its height, so that nothing moves when values come.
#[component]
fn Slot(chart: LiveChart, series: RwSignal<GaugeSeries>, axis: TimeAxis, no_gpus: Memo<bool>) -> impl IntoView {
    let absent = Memo::new(move |_| series.with(|series| chart.is_absent(series)));
    let of_gpu = matches!(chart.key, "power" | "temperature");
    let now = move || {
        let words = series.with(|series| series.latest().and_then(|gauge| chart.words(gauge)));
        words.filter(|_| chart.lines.len() == 1)
    };
    view! {
        <figure
            class="live-chart"
            class:low=move || of_gpu && absent.get() && no_gpus.get()
            data-testid="live-chart"
            data-chart=chart.key
        >
            <figcaption>
                <b>{chart.title}</b>
                " "
                <span class="now" data-testid=format!("now-{}", chart.key)>{now}</span>
            </figcaption>
            {move || {
                if absent.get() {
                    view! { <p class="absent">{chart.absent}</p> }.into_any()
                } else {
                    view! { <Picture chart series axis/> }.into_any()
                }
            }}
        </figure>
    }
}

#[component]
fn Picture(chart: LiveChart, series: RwSignal<GaugeSeries>, axis: TimeAxis) -> impl IntoView {
    let room = Shell::of_app().room;
    let frame = Memo::new(move |_| frame_for(room.get()));
    let shown = Memo::new(move |_| axis.shown());
    let drawn = Memo::new(move |_| series.with(|series| draw(&chart, series, shown.get(), frame.get())));
    let field = move || {
        let Frame { left, right, width, .. } = frame.get_untracked();
        Field { left: left / width, right: right / width }
    };
    let point = move |event: PointerEvent| {
        axis.point(&event, field());
    };
    // A table that changes under its reader can't be read: it holds what was there when it was opened or zoomed.
    let table = UnsyncCallback::new(move |()| {
        axis.zoom.track();
        series.with_untracked(|series| rows(&chart, series, axis.shown_now()))
    });
    let heads: Vec<String> = columns(&chart).into_iter().map(str::to_owned).collect();
    let heads = UnsyncCallback::new(move |()| heads.clone());
    view! {
        <svg
            class="plot time"
            viewBox=move || frame.get().view_box()
            role="img"
            aria-label=format!("{} over the last minutes", chart.title)
            on:pointerdown=move |event| axis.press(&event, field())
            on:pointermove=point
            on:pointerup=move |_| axis.release()
            on:pointercancel=move |_| axis.release()
            on:pointerleave=move |_| axis.leave()
            on:dblclick=move |_| axis.show(None)
            on:wheel=move |event| axis.wheel(&event, field())
        >
            {move || drawn.with(|drawn| picture(drawn, frame.get_untracked(), shown.get_untracked()))}
            {move || overlay(shown.get(), axis.cursor.get(), axis.marked.get(), frame.get())}
        </svg>
        <AsTable caption=chart.title columns=heads rows=table testid=table_name(chart.key)/>
    }
}

/// Stable name of a chart's table.
fn table_name(key: &str) -> &'static str {
    match key {
        "rate" => "live-rate-table",
        "requests" => "live-requests-table",
        "kv" => "live-kv-table",
        "power" => "live-power-table",
        "temperature" => "live-temperature-table",
        _ => "live-lateness-table",
    }
}

fn picture(drawn: &Drawn, frame: Frame, shown: Zoom) -> impl IntoView + use<> {
    let Frame { left, right, top, bottom, .. } = frame;
    let shade = |class: &'static str, from_to: &[(f64, f64)], top: f64| {
        let one = |&(from, to): &(f64, f64)| {
            view! { <rect class=class x=from y=top width=(to - from).max(1.0) height=bottom - top></rect> }
        };
        from_to.iter().map(one).collect_view()
    };
    let times = |axes: [Axis; 2]| {
        let ticks = Tick::each(clock_ticks(Range { lo: shown.from_s, hi: shown.to_s }), format::clock);
        grid(frame, axes, &ticks, &drawn.y_ticks)
    };
    let line = |(class, path): &(&'static str, String)| {
        view! { <g class=*class><path class="line thin" d=path.clone()></path></g> }
    };
    let label = |&(class, text, place): &(&'static str, &'static str, f64)| {
        view! { <text class=format!("label {class}") x=right + 6.0 y=place + 4.0>{text}</text> }
    };
    // A picture inside the picture, because it cuts off what lies outside of it.
    let (width, height) = (right - left, bottom - top);
    view! {
        {shade("window", &drawn.windows, top)}
        {drawn.axes.map(times)}
        <svg x=left y=top width=width height=height viewBox=format!("{left} {top} {width} {height}")>
            {drawn.lines.iter().map(line).collect_view()}
        </svg>
        {shade("held", &drawn.held, bottom - 5.0)}
        {drawn.labels.iter().map(label).collect_view()}
    }
}
