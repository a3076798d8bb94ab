//! Curves of both runs in one picture: prefill over context, decode over requests at once and over context.

use leptos::prelude::*;
use speedmatrix_shared::{
    compare::{CellSide, ComparedCell, Comparison},
    format,
    id::{CellId, Phase},
    plan::Load,
    state::RunState,
    units::{Concurrency, Context},
};

use super::{Compared, matrix::decode_axes, others::Other};
use crate::{
    chart::{
        cell::with_unit,
        curve::{Curve, Point, Spec, Values},
        figure::Series,
        line::{Frame, Tick},
    },
    parts::{
        figure::{Figure, Title},
        prefill::context_text,
    },
    shell::{Room, Shell},
};

/// What a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Picture {
    /// Prefill over context.
    Prefill,
    /// Decode of one context over requests at once.
    OverLevel(Context),
    /// Decode of one number of requests at once over context.
    OverContext(Concurrency),
}

impl Picture {
    fn has(self, cell: &ComparedCell) -> bool {
        match self {
            Self::Prefill => cell.id.phase == Phase::Prefill,
            Self::OverLevel(context) => cell.id.phase == Phase::Decode && cell.id.context == context,
            Self::OverContext(level) => cell.id.phase == Phase::Decode && cell.id.concurrency == level,
        }
    }

    fn place(self, cell: &ComparedCell) -> f64 {
        match self {
            Self::OverLevel(_) => f64::from(cell.id.concurrency.get()),
            Self::Prefill | Self::OverContext(_) => cell.id.context.tokens() as f64,
        }
    }

    const fn x_word(self) -> &'static str {
        match self {
            Self::OverLevel(_) => "requests at once (log scale)",
            Self::Prefill | Self::OverContext(_) => "context (log scale)",
        }
    }

    fn tick(self, value: f64) -> String {
        match self {
            Self::OverLevel(_) => format::whole(Some(value)),
            Self::Prefill | Self::OverContext(_) => context_text(value),
        }
    }

    fn title(self, load: Load) -> Title {
        let whole: fn(f64) -> String = |level| format::whole(Some(level));
        match self {
            Self::Prefill => Title {
                key: "compare-prefill",
                words: "Prefill by context",
                place: "Context",
                place_text: context_text,
            },
            Self::OverLevel(_) => {
                let words = "Decode by requests at once";
                Title { key: "compare-level", words, place: load.level_label(), place_text: whole }
            }
            Self::OverContext(_) => {
                Title { key: "compare-context", words: "Decode by context", place: "Context", place_text: context_text }
            }
        }
    }
}

/// A side of a compared cell.
type Side = fn(&ComparedCell) -> Option<&CellSide>;

/// The lines of A, of B and of the further runs. The points of the cell that is read out have a ring.
fn series(
    comparison: &Comparison,
    [a, b]: [&RunState; 2],
    others: &[Other],
    (picture, read): (Picture, Option<CellId>),
) -> Vec<Series> {
    let line = |label: &str, class, state: &RunState, cells: &[ComparedCell], side: Side| {
        let cells = cells.iter().filter(|cell| picture.has(cell));
        let spots = cells.filter_map(|cell| {
            let (mut point, band) = spot(comparison, state, picture.place(cell), side(cell)?)?;
            point.ringed = read == Some(cell.id);
            Some((point, band))
        });
        let (points, bands): (Vec<Point>, Vec<Option<[f64; 2]>>) = spots.unzip();
        Series { curve: Curve { label: label.to_owned(), class, points, filled: false }, bands }
    };
    let (of_a, of_b): (Side, Side) = (|cell| cell.a.as_ref(), |cell| cell.b.as_ref());
    let lines = [line("A", "ka", a, &comparison.cells, of_a), line("B", "kb", b, &comparison.cells, of_b)];
    let further = others.iter().map(|other| {
        let of_state = |state: &RunState| line(other.letter, other.class, state, other.cells(), of_b);
        other.run.state.with(of_state)
    });
    lines.into_iter().chain(further).filter(|line| !line.curve.points.is_empty()).collect()
}

fn spot(comparison: &Comparison, state: &RunState, x: f64, side: &CellSide) -> Option<(Point, Option<[f64; 2]>)> {
    let metric = comparison.metric.metric();
    let result = state.cells.iter().find(|cell| cell.id == side.id)?.result()?;
    if result.status.is_failed() {
        return None;
    }
    let y = side.value?;
    let half = metric.interval(result).map(|interval| interval.half_width);
    let mut title = with_unit(metric, Some(y));
    if half.is_some() {
        title = format!("{title} ± {}", (metric.show)(half));
    }
    let band = half.map(|half| [y - half, y + half]);
    Some((Point { x, y, title, ringed: false, text: String::new() }, band))
}

fn spec(comparison: &Comparison, picture: Picture, room: Room) -> Spec {
    let metric = comparison.metric.metric();
    let mut places: Vec<f64> =
        comparison.cells.iter().filter(|cell| picture.has(cell)).map(|cell| picture.place(cell)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    Spec {
        describes: format!("{} of the compared runs", metric.label),
        y_word: metric.label,
        x_word: picture.x_word(),
        x_ticks: places.into_iter().map(|value| Tick { value, text: picture.tick(value) }).collect(),
        values: if ["ms", "s"].contains(&metric.unit) { Values::Time } else { Values::Rate },
        frame: match room {
            Room::Narrow => Frame::new(360.0, 270.0, 30.0),
            Room::Middle => Frame::new(980.0, 340.0, 40.0),
            Room::Wide => Frame::new(440.0, 290.0, 30.0),
        },
    }
}

/// The section.
#[component]
pub fn CurvesSection(
    /// The runs.
    compared: Compared,
    /// The further ones.
    others: Memo<Vec<Other>>,
) -> impl IntoView {
    let Compared { view, comparison, .. } = compared;
    let axes = Memo::new(move |_| comparison.with(|it| decode_axes(&it.cells)));
    let context = Memo::new(move |_| axes.with(|(all, _)| picked(all, view.with(|view| view.context))));
    let level = Memo::new(move |_| axes.with(|(_, all)| picked(all, view.with(|view| view.level))));
    let has_prefill =
        Memo::new(move |_| comparison.with(|it| it.cells.iter().filter(|cell| Picture::Prefill.has(cell)).count() > 1));
    let has_levels = Memo::new(move |_| axes.with(|(_, levels)| levels.len() > 1));
    let has_contexts = Memo::new(move |_| axes.with(|(contexts, _)| contexts.len() > 1));
    let prefill = Signal::derive(move || has_prefill.get().then_some(Picture::Prefill));
    let over_level = Signal::derive(move || context.get().filter(|_| has_levels.get()).map(Picture::OverLevel));
    let over_context = Signal::derive(move || level.get().filter(|_| has_contexts.get()).map(Picture::OverContext));
    let has_any = Memo::new(move |_| has_prefill.get() || has_levels.get() || has_contexts.get());
    let choose_context = Choice {
        label: "Context",
        testid: "curve-context",
        options: Signal::derive(move || axes.with(|(contexts, _)| texts(contexts))),
        chosen: Signal::derive(move || context.get().map(|it| it.to_string())),
        choose: Callback::new(move |text: String| view.update(|view| view.context = text.parse().ok())),
    };
    let choose_level = Choice {
        label: "Requests at once",
        testid: "curve-level",
        options: Signal::derive(move || axes.with(|(_, levels)| texts(levels))),
        chosen: Signal::derive(move || level.get().map(|it| it.to_string())),
        choose: Callback::new(move |text: String| view.update(|view| view.level = text.parse().ok())),
    };
    let choices =
        move || (has_levels.get().then(|| choose_context.view()), has_contexts.get().then(|| choose_level.view()));
    move || {
        has_any.get().then(|| {
            view! {
                <section id="curves" aria-labelledby="curves-title">
                    <div class="section-head">
                        <div>
                            <h2 id="curves-title">"Curves"</h2>
                            <p class="say">"All runs in one picture; bands are 95 % intervals, where they are known. A ring marks the cell that is read out above."</p>
                        </div>
                        <div class="tools">{choices}</div>
                    </div>
                    <div class="overlaid">
                        <Drawn compared others picture=over_level/>
                        <Drawn compared others picture=over_context/>
                        <Drawn compared others picture=prefill/>
                    </div>
                </section>
            }
        })
    }
}

/// What is chosen, or else the first.
fn picked<T: Copy + PartialEq>(all: &[T], chosen: Option<T>) -> Option<T> {
    all.iter().copied().find(|it| Some(*it) == chosen).or_else(|| all.first().copied())
}

fn texts<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// Which of the lines of a matrix a picture shows.
#[derive(Clone, Copy)]
struct Choice {
    label: &'static str,
    /// Stable name for tests.
    testid: &'static str,
    options: Signal<Vec<String>>,
    chosen: Signal<Option<String>>,
    choose: Callback<String>,
}

impl Choice {
    fn view(self) -> impl IntoView {
        let Self { label, testid, options, chosen, choose } = self;
        let option = move |text: String| {
            let (own, value) = (text.clone(), text.clone());
            let selected = move || chosen.get().as_ref() == Some(&own);
            view! { <option value=value prop:selected=selected>{text}</option> }
        };
        view! {
            <label class="select">
                {label}
                <select data-testid=testid on:change=move |event| choose.run(event_target_value(&event))>
                    {move || options.get().into_iter().map(option).collect_view()}
                </select>
            </label>
        }
    }
}

/// A picture; nothing where there is none.
#[component]
fn Drawn(compared: Compared, others: Memo<Vec<Other>>, picture: Signal<Option<Picture>>) -> impl IntoView {
    let room = Shell::of_app().room;
    let is_there = Memo::new(move |_| picture.get().is_some());
    let shown = move || picture.get().unwrap_or(Picture::Prefill);
    let lines = Memo::new(move |_| {
        let [a, b] = compared.sides();
        let picture = shown();
        let read = compared.read.get();
        others.with(|others| {
            let drawn = (picture, read);
            compared.comparison.with(|it| a.state.with(|a| b.state.with(|b| series(it, [a, b], others, drawn))))
        })
    });
    let words = Memo::new(move |_| compared.comparison.with(|it| spec(it, shown(), room.get())));
    move || {
        is_there.get().then(|| {
            let [a, _] = compared.sides();
            let load = a.state.with_untracked(|state| state.plan.load());
            let title = untrack(shown).title(load);
            // The kind of the value axis belongs to what it holds.
            let kind = Memo::new(move |_| words.with(|spec| spec.values));
            move || {
                kind.track();
                view! { <Figure title spec=words series=lines/> }
            }
        })
    }
}
