//! A chart of curves that answers: a cross line with all values by pointer and by keyboard, a linear or logarithmic
//! value axis, zoom by drag, and the same numbers as a table.

use leptos::{
    ev::{KeyboardEvent, PointerEvent},
    prelude::*,
};
use speedmatrix_shared::format;
use wasm_bindgen::JsCast as _;

use super::cell::table::AsTable;
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
            self.drag.set(self.pixel(event).map(|px| [px, px]));
        }
    }

    fn on_move(self, event: &PointerEvent) {
        let Some(px) = self.pixel(event) else { return };
        self.drag.update(|drag| {
            if let Some([_, to]) = drag {
                *to = px;
            }
        });
        let stop = self.field.with_untracked(|field| field.as_ref().and_then(|field| figure::nearest(field, px)));
        if stop != self.at.get_untracked() {
            self.at.set(stop);
        }
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
                <Legend chart/>
                <Numbers chart/>
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
        Some(spec.with(|spec| series.with(|series| lines(spec, series, &field, zoom.get().is_some()))))
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
                on:pointerleave=move |_| at.set(None)
                on:dblclick=move |_| chart.reset()
            >
                {drawn}
                {chosen}
                {cross}
            </svg>
            <ReadOut chart/>
        </div>
    }
}

/// Grid, bands, lines and labels. What lies outside a zoom is cut off at the edges of the field.
fn lines(spec: &Spec, series: &[Series], field: &Field, is_zoomed: bool) -> impl IntoView + use<> {
    let (x, y, frame) = (field.x, field.y, spec.frame);
    let band = |one: &Series| {
        let (class, path) = (one.curve.class, band(one, x, y));
        (!path.is_empty()).then(|| view! { <g class=class><path class="band" d=path></path></g> })
    };
    let bands: Vec<_> = series.iter().map(band).collect();
    let drawn: Vec<_> = series.iter().map(|one| draw(&one.curve, [x, y], frame)).collect();
    let visible: Vec<Curve> = series.iter().map(|one| within(&one.curve, field)).collect();
    let named = if series.len() <= LABELS { labels(&visible, [x, y], frame) } else { Vec::new() };
    // Without a zoom points and rings may reach over the edges of the field.
    let air = if is_zoomed { 0.0 } else { 12.0 };
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

/// All values where the cross line stands: beside it for eyes, as a sentence for screen readers.
#[component]
fn ReadOut(chart: Chart) -> impl IntoView {
    let Chart { title, spec, series, at, field, .. } = chart;
    let told = Memo::new(move |_| {
        let stop = at.get()?;
        Some((stop, series.with(|series| figure::read_out(series, stop))))
    });
    let side = move || {
        let is_right = field.with(|field| {
            let Some((field, stop)) = field.as_ref().zip(at.get()) else { return false };
            spec.with(|spec| field.x.at(stop) > f64::midpoint(spec.frame.left, spec.frame.right))
        });
        if is_right { "values panel left" } else { "values panel right" }
    };
    let row = |(class, label, words): (&'static str, String, String)| {
        view! {
            <li class=class>
                <i></i>
                <b>{label}</b>
                <span>{words}</span>
            </li>
        }
    };
    let shown = move || {
        let (stop, rows) = told.get()?;
        Some(view! {
            <div class=side aria-hidden="true" data-testid="chart-values">
                <b>{format!("{} {}", title.place, (title.place_text)(stop))}</b>
                <ul>{rows.into_iter().map(row).collect_view()}</ul>
            </div>
        })
    };
    let sentence = move || {
        told.get().map(|(stop, rows)| {
            let each = rows
                .into_iter()
                .map(|(_, label, words)| if label.is_empty() { words } else { format!("{label}: {words}") });
            format!("{} {}. {}", title.place, (title.place_text)(stop), each.collect::<Vec<_>>().join("; "))
        })
    };
    view! {
        {shown}
        <p class="sr" aria-live="polite">{sentence}</p>
    }
}

/// Names of lines that are too many to be labelled one by one.
#[component]
fn Legend(chart: Chart) -> impl IntoView {
    let Chart { series, .. } = chart;
    move || {
        series.with(|series| {
            let one = |one: &Series| {
                let (class, label) = (one.curve.class, one.curve.label.clone());
                view! { <li class=class><i></i>{label}</li> }
            };
            (series.len() > LABELS)
                .then(|| view! { <ul class="lines-legend">{series.iter().map(one).collect_view()}</ul> })
        })
    }
}

/// The chart's numbers as a table: a row per place, a column per line.
#[component]
fn Numbers(chart: Chart) -> impl IntoView {
    let Chart { title, series, .. } = chart;
    let heads = move || {
        let labels = series.with_untracked(|series| series.iter().map(|one| label_of(one, title)).collect::<Vec<_>>());
        std::iter::once(title.place.to_owned()).chain(labels).collect::<Vec<_>>()
    };
    let rows = move || series.with_untracked(|series| table(series, title.place_text));
    view! {
        <AsTable
            caption=title.words
            columns=UnsyncCallback::new(move |()| heads())
            rows=UnsyncCallback::new(move |()| rows())
            testid="figure-table"
        />
    }
}

fn label_of(one: &Series, title: Title) -> String {
    if one.curve.label.is_empty() { title.words.to_owned() } else { one.curve.label.clone() }
}

/// A row per place with the words of each line's point there; "—" where a line has none.
fn table(series: &[Series], place_text: fn(f64) -> String) -> Vec<Vec<String>> {
    let mut places: Vec<f64> = series.iter().flat_map(|one| one.curve.points.iter().map(|point| point.x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let text = |one: &Series, place: f64| {
        let point = one.curve.points.iter().find(|point| (point.x - place).abs() < 1e-9);
        point.map_or_else(|| format::MISSING.to_owned(), |point| point.title.clone())
    };
    let row =
        |place: f64| std::iter::once(place_text(place)).chain(series.iter().map(|one| text(one, place))).collect();
    places.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_per_place() {
        let point = |x: f64, title: &str| Point { x, y: x, title: title.into(), ringed: false, text: String::new() };
        let line = |points: Vec<Point>| Series::bare(Curve { label: "8K".into(), class: "k0", points, filled: false });
        let series = [line(vec![point(1.0, "a"), point(2.0, "b")]), line(vec![point(2.0, "c")])];
        let rows = table(&series, |place| format::whole(Some(place)));
        assert_eq!(rows, [["1", "a", "—"], ["2", "b", "c"]]);
    }
}
