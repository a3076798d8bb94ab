//! A chart of curves that answers: a cross line with all values by pointer and by keyboard, a linear or logarithmic
//! value axis, zoom by drag, and the same numbers as a table.

mod values;

use leptos::{
    ev::{KeyboardEvent, PointerEvent},
    prelude::*,
};
use wasm_bindgen::JsCast as _;

use crate::chart::{
    curve::{Curve, Point, Spec, draw, labels},
    figure::{self, Field, LABELS, Look, Series, band},
    line::{Frame, grid, thin_out},
    scale::{Kind, Range},
};

/// What a chart is called.
#[derive(Debug, Clone, Copy)]
pub struct Title {
    /// Stable name.
    pub key: &'static str,
    /// Its heading.
    pub words: &'static str,
    /// Head of the table's column of places, such as "Requests at once".
    pub place: &'static str,
    /// A place of the horizontal axis in words.
    pub place_text: fn(f64) -> String,
}

/// What the parts of a chart share.
#[derive(Clone, Copy)]
struct Chart {
    title: Title,
    spec: Memo<Spec>,
    series: Memo<Vec<Series>>,
    kind: RwSignal<Kind>,
    zoom: RwSignal<Option<Range>>,
    /// Where the cross line stands.
    at: RwSignal<Option<f64>>,
    /// Where a drag began and where it is, in pixels of the picture.
    drag: RwSignal<Option<[f64; 2]>>,
    field: Memo<Option<Field>>,
}

impl Chart {
    fn whole(self) -> Option<Range> {
        let look = Look { kind: self.kind.get_untracked(), zoom: None };
        let field =
            self.spec.with_untracked(|spec| self.series.with_untracked(|series| figure::field(spec, series, look)));
        field.map(|field| {
            let [lo, hi] = field.x.bounds();
            Range { lo, hi }
        })
    }

    fn reset(self) {
        self.zoom.set(None);
        self.drag.set(None);
    }

    fn on_key(self, event: &KeyboardEvent) {
        if event.ctrl_key() || event.meta_key() || event.alt_key() {
            return;
        }
        let Some(field) = self.field.get_untracked() else { return };
        let at = self.at.get_untracked();
        match event.key().as_str() {
            "0" => self.reset(),
            "Escape" if at.is_some() => self.at.set(None),
            "+" | "=" => self.scale(&field, 0.5),
            "-" => self.scale(&field, 2.0),
            key => match figure::step(&field, at, key) {
                Some(stop) => self.at.set(Some(stop)),
                None => return,
            },
        }
        event.prevent_default();
        event.stop_propagation();
    }

    fn scale(self, field: &Field, factor: f64) {
        let [lo, hi] = field.x.bounds();
        let at = self.at.get_untracked().unwrap_or_else(|| (lo * hi).sqrt());
        if let Some(whole) = self.whole() {
            self.zoom.set(figure::zoomed(field, whole, at, factor));
        }
    }

    /// The pixel of the picture under a pointer.
    fn pixel(self, event: &PointerEvent) -> Option<f64> {
        let picture = event.current_target()?.dyn_into::<web_sys::Element>().ok()?;
        let place = picture.get_bounding_client_rect();
        let width = self.spec.with_untracked(|spec| spec.frame.width);
        (place.width() > 0.0).then(|| (f64::from(event.client_x()) - place.left()) / place.width() * width)
    }

    fn on_down(self, event: &PointerEvent) {
        if event.button() == 0 {
            if let Some(picture) = event.current_target().and_then(|it| it.dyn_into::<web_sys::Element>().ok()) {
                picture.set_pointer_capture(event.pointer_id()).ok();
            }
            let px = self.pixel(event);
            self.drag.set(px.map(|px| [px, px]));
            self.look_at(px);
        }
    }

    /// The cross line goes to the stop that is nearest to a pixel.
    fn look_at(self, px: Option<f64>) {
        let Some(px) = px else { return };
        let stop = self.field.with_untracked(|field| field.as_ref().and_then(|field| figure::nearest(field, px)));
        if stop != self.at.get_untracked() {
            self.at.set(stop);
        }
    }

    /// A finger that is lifted leaves what it touched to be read.
    fn on_leave(self, event: &PointerEvent) {
        if event.pointer_type() == "mouse" {
            self.at.set(None);
        }
    }

    fn on_move(self, event: &PointerEvent) {
        let Some(px) = self.pixel(event) else { return };
        self.drag.update(|drag| {
            if let Some([_, to]) = drag {
                *to = px;
            }
        });
        self.look_at(Some(px));
    }

    fn on_up(self) {
        let Some(drag) = self.drag.get_untracked() else { return };
        self.drag.set(None);
        let part = self.field.with_untracked(|field| field.as_ref().and_then(|field| figure::dragged(field, drag)));
        if part.is_some() {
            self.zoom.set(part);
        }
    }
}

/// The chart.
#[component]
pub fn Figure(
    /// What it is called.
    title: Title,
    /// Its words, axes and size.
    spec: Memo<Spec>,
    /// Its lines.
    series: Memo<Vec<Series>>,
) -> impl IntoView {
    let kind = RwSignal::new(figure::first_kind(spec.with_untracked(|spec| spec.values)));
    let (zoom, at, drag) = (RwSignal::new(None), RwSignal::new(None), RwSignal::new(None));
    let field = Memo::new(move |_| {
        let look = Look { kind: kind.get(), zoom: zoom.get() };
        spec.with(|spec| series.with(|series| figure::field(spec, series, look)))
    });
    let chart = Chart { title, spec, series, kind, zoom, at, drag, field };
    let has_points = Memo::new(move |_| field.with(Option::is_some));
    let body = move || {
        if has_points.get() {
            view! {
                <Picture chart/>
                {values::legend(chart)}
                {values::numbers(chart)}
            }
            .into_any()
        } else {
            view! { <p class="muted pad">"Nothing measured yet."</p> }.into_any()
        }
    };
    view! {
        <figure class="panel chart live-chart" data-chart=title.key>
            <header>
                <h3>{title.words}</h3>
                <Switches chart/>
            </header>
            {body}
        </figure>
    }
}

#[component]
fn Switches(chart: Chart) -> impl IntoView {
    let Chart { kind, zoom, title, .. } = chart;
    let is_zoomed = Memo::new(move |_| zoom.with(Option::is_some));
    let button = move |to: Kind, words: &'static str| {
        view! {
            <button type="button" aria-pressed=move || (kind.get() == to).to_string() on:click=move |_| kind.set(to)>{words}</button>
        }
    };
    let reset = move || {
        is_zoomed.get().then(|| {
            view! {
                <button type="button" class="btn ghost" data-testid="reset-zoom" aria-keyshortcuts="0" on:click=move |_| chart.reset()>
                    "All of it"
                </button>
            }
        })
    };
    view! {
        <div class="switches">
            {reset}
            <div class="seg" role="group" aria-label=format!("Value axis of {}", title.words)>
                {button(Kind::Linear, "linear")}
                {button(Kind::Log, "log")}
            </div>
        </div>
    }
}

#[component]
fn Picture(chart: Chart) -> impl IntoView {
    let Chart { spec, series, zoom, at, drag, field, .. } = chart;
    let frame = Memo::new(move |_| spec.with(|spec| spec.frame));
    let drawn = move || {
        let field = field.get()?;
        // Without a zoom points and rings may reach over the edges of the field.
        let air = if zoom.get().is_some() { 0.0 } else { 12.0 };
        Some(spec.with(|spec| series.with(|series| lines(spec, series, &field, air))))
    };
    let cross = move || {
        let x = field.with(|field| Some(field.as_ref()?.x.at(at.get()?)))?;
        let Frame { top, bottom, .. } = frame.get();
        Some(view! { <line class="cross" x1=x x2=x y1=top y2=bottom></line> })
    };
    let chosen = move || {
        let [from, to] = drag.get().filter(|[from, to]| (to - from).abs() >= figure::LEAST_DRAG)?;
        let Frame { left, right, top, bottom, .. } = frame.get();
        let (a, b) = (from.min(to).max(left), from.max(to).min(right));
        Some(view! { <rect class="chosen" x=a y=top width=(b - a).max(0.0) height=bottom - top></rect> })
    };
    let describes = move || {
        spec.with(|spec| format!("{}. Arrow keys read the values, plus and minus zoom, 0 shows all", spec.describes))
    };
    view! {
        <div
            class="stage"
            role="group"
            tabindex="0"
            aria-label=describes
            data-testid="chart-stage"
            on:keydown=move |event| chart.on_key(&event)
            on:blur=move |_| at.set(None)
        >
            <svg
                class="plot"
                viewBox=move || frame.get().view_box()
                aria-hidden="true"
                on:pointerdown=move |event| chart.on_down(&event)
                on:pointermove=move |event| chart.on_move(&event)
                on:pointerup=move |_| chart.on_up()
                on:pointercancel=move |_| drag.set(None)
                on:pointerleave=move |event| chart.on_leave(&event)
                on:dblclick=move |_| chart.reset()
            >
                {drawn}
                {chosen}
                {cross}
            </svg>
            {values::read_out_of(chart)}
        </div>
    }
}

/// Grid, bands, lines and labels. What lies more than `air` beside the field is cut off.
fn lines(spec: &Spec, series: &[Series], field: &Field, air: f64) -> impl IntoView + use<> {
    let (x, y, frame) = (field.x, field.y, spec.frame);
    let band = |one: &Series| {
        let (class, path) = (one.curve.class, band(one, x, y));
        (!path.is_empty()).then(|| view! { <g class=class><path class="band" d=path></path></g> })
    };
    let bands: Vec<_> = series.iter().map(band).collect();
    let drawn: Vec<_> = series.iter().map(|one| draw(&one.curve, [x, y], frame)).collect();
    let visible: Vec<Curve> = series.iter().map(|one| within(&one.curve, field)).collect();
    let named = if series.len() <= LABELS { labels(&visible, [x, y], frame) } else { Vec::new() };
    let (left, width) = (frame.left - air, frame.right - frame.left + 2.0 * air);
    let (top, height) = (frame.top - 12.0, frame.bottom - frame.top + 24.0);
    let (y_word, x_word) = (spec.y_word, spec.x_word);
    view! {
        {grid(frame, [x, y], &thin_out(field.x_ticks.clone(), x, 34.0), &field.y_ticks)}
        <text class="tick" x=frame.left y=14 text-anchor="start">{y_word}</text>
        <text class="tick" x=f64::midpoint(frame.left, frame.right) y=frame.height - 4.0 text-anchor="middle">{x_word}</text>
        <svg x=left y=top width=width height=height viewBox=format!("{left} {top} {width} {height}")>
            {bands}
            {drawn}
        </svg>
        {named}
    }
}

/// The points of a line that the field shows.
fn within(curve: &Curve, field: &Field) -> Curve {
    let is_shown = |point: &&Point| field.stops.iter().any(|stop| (stop - point.x).abs() < 1e-9);
    Curve { points: curve.points.iter().filter(is_shown).cloned().collect(), ..curve.clone() }
}
