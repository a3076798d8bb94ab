//! What happened over the time of a cell: token rate, requests, and what the engine told, on one axis.

use std::sync::Arc;

use leptos::{
    ev::{KeyboardEvent, PointerEvent},
    prelude::*,
};
use speedmatrix_shared::{
    detail::{CellDetail, Stages},
    format,
    stats::verdict::RampEnd,
};

use super::{
    axis::{Field, TimeAxis},
    rows::{table_heads, table_rows},
    table::AsTable,
};
use crate::{
    chart::{
        line::Frame,
        timeline::{Chart, Line, Values, frame_for, overlay, stage_words},
    },
    shell::{Room, Shell},
};

/// Values of equal blocks, each at the middle of its block.
fn blocks(block_s: f64, values: &[f64]) -> Vec<(f64, f64)> {
    values.iter().enumerate().map(|(n, value)| ((n as f64 + 0.5) * block_s, *value)).collect()
}

/// The charts of a cell.
fn charts(detail: &CellDetail, room: Room) -> Vec<Chart> {
    let (seen, engine) = (&detail.timeline, &detail.engine);
    let of_client = |values: &[f64]| blocks(seen.block_s, values);
    let line = |label, class, points| Line { label, class, points };
    let rate = Chart {
        describes: "Output tokens per second over the time of the cell",
        y_word: "tok/s",
        lines: vec![line("", "know", of_client(&seen.tok_s))],
        values: Values::Amount,
        held: Vec::new(),
        frame: frame_for(room, 110.0),
    };
    let requests = Chart {
        describes: "Requests over the time of the cell, as the client and the engine count them",
        y_word: "requests",
        lines: vec![
            line("in flight", "k-flight", of_client(&seen.in_flight)),
            line("decoding", "know", of_client(&seen.decoding)),
            line("running", "k-running", engine.running.clone()),
            line("waiting", "k-waiting", engine.waiting.clone()),
        ],
        values: Values::Amount,
        held: Vec::new(),
        frame: frame_for(room, 96.0),
    };
    let requests =
        Chart { lines: requests.lines.into_iter().filter(|line| !line.points.is_empty()).collect(), ..requests };
    let kv = Chart {
        describes: "Use of the engine's KV cache over the time of the cell",
        y_word: "KV cache in use",
        lines: vec![line("", "k-running", engine.kv_usage.clone())],
        values: Values::Share,
        held: Vec::new(),
        frame: frame_for(room, 56.0),
    };
    let [power, temperature] = of_gpus(detail, room);
    let told = |chart: &Chart| chart.lines.iter().any(|line| !line.points.is_empty());
    // Cold requests have one token each, which is no rate.
    let rate = detail.stages.map(|_| rate);
    rate.into_iter().chain([requests, kv, power, temperature]).filter(told).collect()
}

/// What the GPUs did. Times in which they were held back are marked at the foot of their power.
fn of_gpus(detail: &CellDetail, room: Room) -> [Chart; 2] {
    let gpu = &detail.gpu;
    let line = |class, points: &[(f64, f64)]| vec![Line { label: "", class, points: points.to_vec() }];
    let power = Chart {
        describes: "Power of the server's GPUs over the time of the cell; marked where they were held back",
        y_word: "GPU power, W · bar below: held back",
        lines: line("know", &gpu.power_w),
        values: Values::Amount,
        held: gpu.held.iter().map(|(from, to, _)| (*from, *to)).collect(),
        frame: frame_for(room, 56.0),
    };
    let temperature = Chart {
        describes: "Temperature of the hottest of the server's GPUs over the time of the cell",
        y_word: "GPU temperature, °C",
        lines: line("k-waiting", &gpu.temperature_c),
        values: Values::Amount,
        held: Vec::new(),
        frame: frame_for(room, 56.0),
    };
    [power, temperature]
}

/// The values at a moment: `12.4 s: 1,540.5 tok/s, in flight 16, decoding 16`.
fn values_at(detail: &CellDetail, at_s: f64) -> String {
    let (seen, engine) = (&detail.timeline, &detail.engine);
    let of_client = |values: &[f64], show: fn(Option<f64>) -> String| {
        let line = Line { label: "", class: "", points: blocks(seen.block_s, values) };
        show(line.at(at_s))
    };
    let of_engine = |points: &[(f64, f64)], show: fn(Option<f64>) -> String| {
        let line = Line { label: "", class: "", points: points.to_vec() };
        line.at(at_s).map(|value| show(Some(value)))
    };
    let mut words = vec![
        format!("{} tok/s", of_client(&seen.tok_s, format::rate)),
        format!("{} in flight", of_client(&seen.in_flight, format::decimal1)),
        format!("{} decoding", of_client(&seen.decoding, format::decimal1)),
    ];
    words.extend(of_engine(&engine.running, format::whole).map(|value| format!("engine: {value} running")));
    words.extend(of_engine(&engine.waiting, format::whole).map(|value| format!("{value} waiting")));
    words.extend(of_engine(&engine.kv_usage, format::percent).map(|value| format!("KV cache {value}")));
    words.extend(of_engine(&detail.gpu.power_w, format::watts).map(|value| format!("GPUs {value}")));
    words.extend(of_engine(&detail.gpu.temperature_c, format::celsius).map(|value| format!("hottest {value}")));
    words.extend(detail.gpu.held_at(at_s).map(|by| format!("held back by {}", by.label())));
    format!("{}: {}", format::moment(at_s, 0.1), words.join(", "))
}

/// What the stages say in words.
pub fn stage_sentence(stages: Stages) -> String {
    let secs = |(from, to): (f64, f64)| format::seconds(Some(to - from));
    let how = match stages.ramp_end {
        RampEnd::Ready => "until every slot had text",
        RampEnd::BudgetSpent => "until its time was over",
    };
    format!("Ramp of {} {how}, then a window of {}.", secs(stages.ramp), secs(stages.window))
}

/// The charts with their cross line, and the way back to all of the time.
#[component]
pub fn OverTime(
    /// What is known of the cell.
    detail: Arc<CellDetail>,
    /// The axis that the charts share.
    axis: TimeAxis,
) -> impl IntoView {
    let room = Shell::of_app().room;
    let (spoken, stages) = (RwSignal::new(String::new()), detail.stages);
    let drawn = {
        let detail = Arc::clone(&detail);
        Memo::new(move |_| charts(&detail, room.get()))
    };
    let pictures = move || {
        let first = drawn.with(|charts| charts.first().map(|chart| chart.describes));
        let picture = |chart: Chart| {
            let named = stages.filter(|_| Some(chart.describes) == first);
            view! { <Picture chart axis stages named/> }
        };
        drawn.get().into_iter().map(picture).collect_view()
    };
    let read_out = {
        let detail = Arc::clone(&detail);
        move || axis.cursor.get().map_or_else(|| HOW_TO.to_owned(), |at_s| values_at(&detail, at_s))
    };
    let on_key = {
        let detail = Arc::clone(&detail);
        move |event: KeyboardEvent| {
            if axis.key(&event) {
                return;
            }
            if let Some(at_s) = step(&event, axis) {
                event.prevent_default();
                axis.cursor.set(Some(at_s));
                axis.bring(at_s);
                spoken.set(values_at(&detail, at_s));
            }
        }
    };
    let heads = table_heads(&detail);
    let rows = UnsyncCallback::new(move |()| table_rows(&detail, axis.shown()));
    view! {
        <section class="part" aria-labelledby="over-time-title" data-testid="over-time">
            <header>
                <h2 id="over-time-title">"Over time"</h2>
                <p>{stages.map(stage_sentence)}</p>
                <WholeButton axis/>
            </header>
            <div
                class="times"
                tabindex="0"
                role="group"
                aria-label="Charts over time. Arrow keys move the cross line, plus and minus zoom, Shift with arrows moves, 0 shows all."
                on:keydown=on_key
            >
                {pictures}
            </div>
            <p class="read-out" data-testid="values-at" aria-hidden="true">{read_out}</p>
            <p class="sr" aria-live="polite">{move || spoken.get()}</p>
            <AsTable
                caption="Token rate and requests over the shown time"
                columns=UnsyncCallback::new(move |()| heads.iter().copied().map(String::from).collect())
                rows
                testid="over-time-table"
            />
        </section>
    }
}

/// Said where nothing is pointed at.
const HOW_TO: &str = "Drag to zoom, Shift and drag to move, Ctrl and wheel to zoom; 0 or a double click shows all.";

/// Shows all of the time again; says what is shown where it is a part.
#[component]
fn WholeButton(axis: TimeAxis) -> impl IntoView {
    let part = move || {
        axis.zoom.get().map(|_| {
            let shown = axis.shown();
            format!("{} to {}", format::moment(shown.from_s, 0.01), format::moment(shown.to_s, 0.01))
        })
    };
    view! {
        <div class="btns zoomed">
            <span data-testid="zoom">{part}</span>
            <button
                type="button"
                class="btn"
                data-testid="zoom-out"
                disabled=move || axis.zoom.with(Option::is_none)
                on:click=move |_| axis.show(None)
            >
                "Show all"
            </button>
        </div>
    }
}

/// Where an arrow key moves the cross line: a hundredth of what is shown.
pub fn step(event: &KeyboardEvent, axis: TimeAxis) -> Option<f64> {
    let shown = axis.shown_now();
    let one = (shown.to_s - shown.from_s) / 100.0;
    let at_s = axis.cursor.get_untracked().unwrap_or(shown.from_s);
    let to_s = match event.key().as_str() {
        "ArrowLeft" => at_s - one,
        "ArrowRight" => at_s + one,
        "Home" => shown.from_s,
        "End" => shown.to_s,
        _ => return None,
    };
    let whole = axis.whole.get_untracked();
    Some(to_s.clamp(whole.from_s, whole.to_s.max(whole.from_s)))
}

#[component]
fn Picture(
    chart: Chart,
    axis: TimeAxis,
    stages: Option<Stages>,
    /// Stages whose names stand over the chart.
    named: Option<Stages>,
) -> impl IntoView {
    let frame = chart.frame;
    let field = Field { left: frame.left / frame.width, right: frame.right / frame.width };
    let describes = chart.describes;
    let chart = StoredValue::new(chart);
    let shown = Memo::new(move |_| axis.shown());
    let drawn = move || {
        let zoom = shown.get();
        let over = named.map(|stages| stage_words(stages, zoom, frame));
        view! { {chart.with_value(|chart| chart.draw(zoom, stages))} {over} }
    };
    let point = move |event: PointerEvent| {
        axis.point(&event, field);
    };
    view! {
        <svg
            class="plot time"
            viewBox=Frame::view_box(&frame)
            role="img"
            aria-label=describes
            on:pointerdown=move |event| axis.press(&event, field)
            on:pointermove=point
            on:pointerup=move |_| axis.release()
            on:pointercancel=move |_| axis.release()
            on:pointerleave=move |_| axis.leave()
            on:dblclick=move |_| axis.show(None)
            on:wheel=move |event| axis.wheel(&event, field)
        >
            {drawn}
            {move || overlay(shown.get(), axis.cursor.get(), axis.marked.get(), frame)}
        </svg>
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::detail::{
        gpu::GpuLines,
        timeline::{EngineLines, Timeline},
    };

    use super::*;
    use crate::zoom::Zoom;

    fn detail() -> CellDetail {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        CellDetail {
            zero: speedmatrix_shared::units::Nanos(0),
            span_s: 50.0,
            load: speedmatrix_shared::plan::Load::Sustained,
            stages: Some(Stages { ramp: (0.0, 5.0), ramp_end: RampEnd::Ready, window: (5.0, 50.0) }),
            timeline: Timeline { block_s: 0.5, tok_s: values.clone(), in_flight: values.clone(), decoding: values },
            gpu: GpuLines::default(),
            engine: EngineLines { waiting: vec![(3.0, 2.0)], ..EngineLines::default() },
            distributions: Vec::new(),
            failures: Vec::new(),
            requests: 0,
        }
    }

    #[test]
    fn a_moment_is_read_out_in_words() {
        assert_eq!(values_at(&detail(), 5.1), "5.1 s: 10.0 tok/s, 10.0 in flight, 10.0 decoding, 2 waiting");
    }

    #[test]
    fn the_table_covers_what_is_shown_in_few_rows() {
        let rows = table_rows(&detail(), Zoom { from_s: 0.0, to_s: 50.0 });
        assert_eq!(
            (rows.len(), rows[0].join(" "), rows[33][0].as_str()),
            (34, "0.0 s 1.5 s 1.0 1.0 1.0 —".into(), "49.5 s")
        );
        assert_eq!(table_rows(&detail(), Zoom { from_s: 3.2, to_s: 4.4 }).len(), 3);
    }

    #[test]
    fn only_what_was_told_has_a_line() {
        let charts = charts(&detail(), Room::Wide);
        assert_eq!(charts.iter().map(|chart| chart.lines.len()).collect::<Vec<_>>(), [1, 3]);
        let cold = super::charts(&CellDetail { stages: None, ..detail() }, Room::Wide);
        assert_eq!(cold.len(), 1);
    }
}
