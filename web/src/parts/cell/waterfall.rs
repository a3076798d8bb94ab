//! The waterfall: one line for each slot, its requests on it, on the axis of the charts above.

use std::sync::Arc;

use leptos::{
    ev::{KeyboardEvent, PointerEvent},
    html,
    prelude::*,
};
use speedmatrix_shared::{detail::Stages, format};
use wasm_bindgen::{Clamped, JsCast as _};

use super::{
    axis::{Field, TimeAxis},
    list::Requests,
};
use crate::{
    browser,
    chart::{
        lanes::{Lanes, Way},
        line::{Frame, grid},
        scale::{Axis, Kind, Range},
        timeline::{frame_for, moments},
        waterfall::{self, Colours, Rgb, Size, Stage},
    },
    shell::{Room, Shell},
    zoom::Zoom,
};

/// Height of a line, in CSS pixels, where there are few.
const LINE_PX: usize = 10;
/// Least and greatest height of the picture, in CSS pixels.
const HEIGHT_PX: (usize, usize) = (60, 320);

/// What the parts of the waterfall share.
#[derive(Clone)]
struct Fall {
    requests: Arc<Requests>,
    axis: TimeAxis,
    shown: Memo<Zoom>,
    /// The request that is read out.
    picked: RwSignal<Option<usize>>,
    /// What a screen reader says.
    spoken: RwSignal<String>,
}

impl Fall {
    /// Height of the picture, in CSS pixels.
    fn height(&self) -> usize {
        (self.requests.lanes.count() * LINE_PX).clamp(HEIGHT_PX.0, HEIGHT_PX.1)
    }

    fn point(&self, event: &PointerEvent) {
        let at_s = self.axis.point(event, Field::WHOLE);
        let share = f64::from(event.offset_y()) / self.height() as f64;
        self.picked.set(at_s.and_then(|at_s| self.requests.lanes.at(share, at_s)));
    }

    fn key(&self, event: &KeyboardEvent) {
        if self.axis.key(event) {
            return;
        }
        let Some(way) = way(&event.key()) else { return };
        event.prevent_default();
        event.stop_propagation();
        let next = self.requests.lanes.step(self.picked.get_untracked(), way);
        self.picked.set(next);
        if let Some(row) = next.and_then(|row| self.requests.rows.get(row)) {
            self.axis.bring(row.due_s);
            self.axis.cursor.set(Some(row.due_s));
        }
        self.spoken.set(next.map(|row| self.requests.words(row)).unwrap_or_default());
    }

    fn says(&self) -> String {
        self.picked.get().map_or_else(|| HOW_TO.to_owned(), |row| self.requests.words(row))
    }

    fn mark(&self) -> Option<impl IntoView + use<>> {
        place(&self.requests, self.picked.get()?, self.shown.get())
    }

    fn describes(&self) -> String {
        format!(
            "Waterfall: {} requests on {} lines. Arrow keys go from request to request; the table of requests holds the \
             same.",
            format::count(Some(self.requests.rows.len() as u64)),
            format::count(Some(self.requests.lanes.count() as u64))
        )
    }
}

/// The waterfall of a cell.
#[component]
pub fn Waterfall(
    /// The requests.
    requests: Arc<Requests>,
    /// The axis that it shares with the charts.
    axis: TimeAxis,
    /// Ramp and window.
    stages: Option<Stages>,
) -> impl IntoView {
    let room = Shell::of_app().room;
    let legend = NodeRef::<html::Ul>::new();
    let shown = Memo::new(move |_| axis.shown());
    let lines = requests.lanes.count();
    let noun = if lines == 1 { "line" } else { "lines" };
    let fall = Fall { requests, axis, shown, picked: RwSignal::new(None), spoken: RwSignal::new(String::new()) };
    let spoken = fall.spoken;
    let says = {
        let fall = fall.clone();
        move || fall.says()
    };
    let swatch = |stage: Stage| view! { <li><i class=stage.class()></i>{stage.label()}</li> };
    view! {
        <section class="part" aria-labelledby="waterfall-title" data-testid="waterfall">
            <header>
                <h2 id="waterfall-title">"Requests, slot by slot"</h2>
                <p>
                    {format::count(Some(lines as u64))} " " {noun}
                    ", each request on the axis above. The table below holds the same."
                </p>
            </header>
            <Picture fall stages legend/>
            <svg class="plot time" viewBox=move || scale_frame(room.get()).view_box() aria-hidden="true">
                {move || time_scale(room.get(), shown.get())}
            </svg>
            <ul class="keys-of" node_ref=legend>{Stage::ALL.map(swatch).collect_view()}</ul>
            <p class="read-out" data-testid="request-at" aria-hidden="true">{says}</p>
            <p class="sr" aria-live="polite">{move || spoken.get()}</p>
        </section>
    }
}

/// The canvas with what lies over it.
#[component]
fn Picture(fall: Fall, stages: Option<Stages>, legend: NodeRef<html::Ul>) -> impl IntoView {
    let shell = Shell::of_app();
    let canvas = NodeRef::<html::Canvas>::new();
    let (axis, shown, height, describes) = (fall.axis, fall.shown, fall.height(), fall.describes());
    let requests = Arc::clone(&fall.requests);
    // To ask for them in every frame would take a tenth of it.
    let known = StoredValue::new(None::<Colours>);
    Effect::new(move |_| {
        shell.theme.track();
        known.set_value(None);
    });
    Effect::new(move |_| {
        let zoom = shown.get();
        shell.theme.track();
        shell.room.track();
        let (Some(canvas), Some(legend)) = (canvas.get(), legend.get()) else { return };
        let requests = Arc::clone(&requests);
        // In the next frame the colours of a new theme are there, and the element has its size.
        request_animation_frame(move || {
            let colours = known.try_get_value().flatten().unwrap_or_else(|| colours(&legend));
            known.try_update_value(|known| *known = Some(colours));
            show(&canvas, &colours, &requests.lanes, zoom);
        });
    });
    let (pointed, pressed) = (fall.clone(), fall.clone());
    view! {
        <div class="fall" style=move || margins(frame_for(shell.room.get(), 0.0))>
            <canvas
                node_ref=canvas
                tabindex="0"
                role="img"
                aria-label=describes
                style=format!("height:{height}px")
                on:pointerdown=move |event| axis.press(&event, Field::WHOLE)
                on:pointermove=move |event| pointed.point(&event)
                on:pointerup=move |_| axis.release()
                on:pointercancel=move |_| axis.release()
                on:pointerleave=move |_| axis.leave()
                on:dblclick=move |_| axis.show(None)
                on:wheel=move |event| axis.wheel(&event, Field::WHOLE)
                on:keydown=move |event| pressed.key(&event)
            ></canvas>
            {move || stages.map(|stages| edges(stages, shown.get()))}
            {move || axis.cursor.get().and_then(|at| share(at, shown.get())).map(|at| line("cursor", at))}
            {move || axis.marked.get().map(|marked| band("marked", marked, shown.get()))}
            {move || fall.mark()}
        </div>
    }
}

/// Said where nothing is pointed at.
const HOW_TO: &str = "Point at a request, or press the arrow keys in the chart, to read it in words.";

/// Where a key leads.
fn way(key: &str) -> Option<Way> {
    Some(match key {
        "ArrowLeft" => Way::Earlier,
        "ArrowRight" => Way::Later,
        "ArrowUp" => Way::Up,
        "ArrowDown" => Way::Down,
        "Home" => Way::First,
        "End" => Way::Last,
        _ => return None,
    })
}

/// Paints the lines with the pixels that the screen really has.
fn show(canvas: &web_sys::HtmlCanvasElement, colours: &Colours, lanes: &Lanes, zoom: Zoom) {
    let dense = browser::pixel_ratio();
    let real = |px: i32| ((f64::from(px.max(1)) * dense).round() as usize).min(8_192);
    let size = Size { width: real(canvas.client_width()), height: real(canvas.client_height()) };
    let (width, height) = (size.width as u32, size.height as u32);
    if (canvas.width(), canvas.height()) != (width, height) {
        canvas.set_width(width);
        canvas.set_height(height);
    }
    let context = canvas.get_context("2d").ok().flatten();
    let context = context.and_then(|context| context.dyn_into::<web_sys::CanvasRenderingContext2d>().ok());
    let pixels = waterfall::paint(lanes, zoom.range(), size, colours);
    let image = web_sys::ImageData::new_with_u8_clamped_array_and_sh(Clamped(&pixels), width, height);
    if let (Some(context), Ok(image)) = (context, image) {
        context.put_image_data(&image, 0.0, 0.0).ok();
    }
}

/// The colours that the legend has: the style sheet's, in whatever theme.
fn colours(legend: &web_sys::HtmlElement) -> Colours {
    Colours(Stage::ALL.map(|stage| {
        let swatch = legend.query_selector(&format!("i.{}", stage.class())).ok().flatten();
        swatch.and_then(|swatch| rgb(&browser::background(&swatch)?)).unwrap_or_default()
    }))
}

/// The three numbers of a colour as browsers write it, `rgb(12, 34, 56)`.
fn rgb(text: &str) -> Option<Rgb> {
    let inside = text.split_once('(')?.1.trim_end_matches(')');
    let mut numbers = inside.split([',', ' ', '/']).filter(|part| !part.is_empty());
    let mut next = || numbers.next()?.parse::<f64>().ok().map(|number| number.round() as u8);
    Some([next()?, next()?, next()?])
}

/// A moment as a share of what is shown; `None` beside it.
fn share(at_s: f64, zoom: Zoom) -> Option<f64> {
    let share = (at_s - zoom.from_s) / (zoom.to_s - zoom.from_s);
    (0.0..=1.0).contains(&share).then_some(share)
}

fn percent(share: f64) -> String {
    format!("{:.3}%", share * 100.0)
}

fn line(class: &'static str, at: f64) -> impl IntoView {
    view! { <i class=class style=("left", percent(at))></i> }
}

fn band(class: &'static str, part: Zoom, zoom: Zoom) -> impl IntoView {
    let place = |at_s: f64| ((at_s - zoom.from_s) / (zoom.to_s - zoom.from_s)).clamp(0.0, 1.0);
    let (from, to) = (place(part.from_s), place(part.to_s));
    view! { <i class=class style=("left", percent(from)) style=("width", percent(to - from))></i> }
}

/// Lines where the window begins and ends.
fn edges(stages: Stages, zoom: Zoom) -> impl IntoView {
    let edge = |at_s: f64| share(at_s, zoom).map(|at| line("edge", at));
    view! { {edge(stages.window.0)} {edge(stages.window.1)} }
}

/// The frame around the request that is read out.
fn place(requests: &Requests, row: usize, zoom: Zoom) -> Option<impl IntoView + use<>> {
    let request = requests.rows.get(row)?;
    let lane = requests.lanes.lane_of(row)? as f64;
    let lines = requests.lanes.count() as f64;
    let place = |at_s: f64| ((at_s - zoom.from_s) / (zoom.to_s - zoom.from_s)).clamp(0.0, 1.0);
    let (from, to) = (place(request.due_s), place(request.ended_s));
    (to > from).then(|| {
        view! {
            <i
                class="picked"
                style=("left", percent(from))
                style=("width", percent(to - from))
                style=("top", percent(lane / lines))
                style=("height", percent(1.0 / lines))
            ></i>
        }
    })
}

/// The charts' margins, so that the picture lies exactly on their axis.
fn margins(frame: Frame) -> String {
    let share = |px: f64| px / frame.width * 100.0;
    format!("margin-left:{:.4}%;margin-right:{:.4}%", share(frame.left), share(frame.width - frame.right))
}

fn scale_frame(room: Room) -> Frame {
    let frame = frame_for(room, 0.0);
    Frame { top: 0.0, bottom: 1.0, height: 24.0, ..frame }
}

fn time_scale(room: Room, zoom: Zoom) -> impl IntoView {
    let frame = scale_frame(room);
    let x = Axis::new(zoom.range(), frame.across(), Kind::Linear);
    let y = Axis::new(Range { lo: 0.0, hi: 1.0 }, frame.upwards(), Kind::Linear);
    grid(frame, [x, y], &moments(x), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_as_browsers_write_them() {
        let check = |text: &str, wanted: Option<Rgb>| assert_eq!(rgb(text), wanted, "{text}");
        check("rgb(12, 34, 56)", Some([12, 34, 56]));
        check("rgba(12, 34, 56, 0.5)", Some([12, 34, 56]));
        check("rgb(12 34 56 / 0.5)", Some([12, 34, 56]));
        check("transparent", None);
    }
}
