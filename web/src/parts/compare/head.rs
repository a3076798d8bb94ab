//! The head of a comparison: which runs, by which number, and ways to take it along.

use leptos::{ev::KeyboardEvent, prelude::*};
use speedmatrix_shared::{
    compare::{
        Comparison, Ranked, RunSide,
        export::{self, ComparisonFormat},
    },
    format,
    metric::{Group, Metric},
    state::RunStatus,
    stats::compare::Direction,
};

use super::Compared;
use crate::{
    base::at,
    browser,
    compare_view::CompareView,
    parts::{
        badge::{origin_badge, status_badge},
        copy::CopyButton,
        icon::{Icon, icon},
        keys::{EXPORT_BUTTON, METRIC_CHOICE},
        run_card,
    },
};

/// The head.
#[component]
pub fn Head(
    /// The runs.
    compared: Compared,
) -> impl IntoView {
    let view = compared.view;
    let link = Signal::derive(move || {
        let origin = window().location().origin().ok()?;
        Some(format!("{origin}{}{}", at("/compare"), view.with(CompareView::query)))
    });
    let a = Memo::new(move |_| compared.comparison.with(|it| it.a.clone()));
    let b = Memo::new(move |_| compared.comparison.with(|it| it.b.clone()));
    view! {
        <p class="kicker">
            <a href=at("/")>"Runs"</a>
            <span aria-hidden="true">"/"</span>
            <a href=at("/compare")>"Compare"</a>
        </p>
        <div class="head">
            <h1 data-testid="title">"B against A"</h1>
            <div class="btns">
                <CopyButton label="Copy link" text=link testid="copy-link"/>
                <Export compared/>
            </div>
        </div>
        <div class="sides">
            <Side name="A" says="the base" side=a/>
            <button type="button" class="btn" data-testid="swap" on:click=move |_| view.update(CompareView::swap)>
                "Swap"
            </button>
            <Side name="B" says="what is judged" side=b/>
        </div>
        <MetricChoice compared/>
    }
}

#[component]
fn Side(name: &'static str, says: &'static str, side: Memo<RunSide>) -> impl IntoView {
    let when = |side: &RunSide| match side.started_unix_ms {
        0 => "date not known".to_owned(),
        unix_ms => format::wall_time(unix_ms),
    };
    let cells = |side: &RunSide| match side.status {
        RunStatus::Running => format!("{} of {} cells", side.cells_done, side.cells),
        RunStatus::Ended { .. } => format!("{} cells", format::count(Some(side.cells as u64))),
    };
    view! {
        <div class="panel side" data-testid=format!("side-{name}")>
            <p class="which"><b class="letter">{name}</b><span class="muted">{says}</span></p>
            <p class="name">
                <a href=move || side.with(|side| at(&run_card::address(&side.id)))><bdi>{move || side.with(|side| side.title.clone())}</bdi></a>
            </p>
            <p class="meta">
                {move || side.with(|side| view! { {status_badge(&side.status)} {origin_badge(side.origin)} })}
                <span class="muted">{move || side.with(when)}</span>
                <span class="muted">{move || side.with(cells)}</span>
                <span class="muted id">{move || side.with(|side| format!("Run {}", side.id))}</span>
            </p>
        </div>
    }
}

/// The numbers by which runs can be compared.
#[component]
fn MetricChoice(compared: Compared) -> impl IntoView {
    let view = compared.view;
    let chosen = Memo::new(move |_| view.with(|view| view.metric.metric().key));
    let option = move |metric: &'static Metric| {
        let selected = move || chosen.get() == metric.key;
        view! { <option value=metric.key title=metric.formula prop:selected=selected>{metric.label}</option> }
    };
    let group = move |group: Group| {
        let ranked: Vec<_> = group.metrics().filter(|metric| Ranked::of(metric).is_some()).map(option).collect();
        (!ranked.is_empty()).then(|| view! { <optgroup label=group.label()>{ranked}</optgroup> })
    };
    let pick = move |event| {
        if let Ok(metric) = event_target_value(&event).parse::<Ranked>() {
            view.update(|view| view.metric = metric);
        }
    };
    let says = move || {
        let metric = view.with(|view| view.metric);
        let (better, unit) =
            (if metric.direction() == Direction::HigherIsFaster { "higher" } else { "lower" }, metric.metric().unit);
        let unit = if unit.is_empty() { String::new() } else { format!("in {unit}, ") };
        format!("{unit}{better} is {}", metric.better())
    };
    view! {
        <div class="metric-line">
            <label class="select">
                "Compare by"
                <select id=METRIC_CHOICE data-testid="metric" on:change=pick>{Group::ALL.map(group).collect_view()}</select>
            </label>
            <span class="muted">{says}</span>
        </div>
    }
}

/// A way to take a comparison along.
#[derive(Debug, Clone, Copy)]
struct Way {
    format: ComparisonFormat,
    name: &'static str,
    says: &'static str,
    content_type: &'static str,
}

const WAYS: [Way; 3] = [
    Way {
        format: ComparisonFormat::Markdown,
        name: "Markdown",
        says: "Verdict and tables, for a pull request",
        content_type: "text/markdown",
    },
    Way {
        format: ComparisonFormat::Csv,
        name: "CSV",
        says: "One row per cell, for spreadsheets",
        content_type: "text/csv",
    },
    Way {
        format: ComparisonFormat::Json,
        name: "JSON",
        says: "The whole comparison, for programs",
        content_type: "application/json",
    },
];

fn file_name(comparison: &Comparison, format: ComparisonFormat) -> String {
    format!("speedmatrix-compare-{}-{}.{}", comparison.a.id, comparison.b.id, format.key())
}

/// Milliseconds that it is said how copying or saving went.
const SAID_MS: u32 = 4_000;

/// The menu of the ways.
#[derive(Clone, Copy)]
struct Menu {
    compared: Compared,
    open: RwSignal<bool>,
    /// How it went.
    said: RwSignal<&'static str>,
}

impl Menu {
    fn close(self) {
        self.open.set(false);
        browser::focus(EXPORT_BUTTON);
    }

    fn on_key(self, event: &KeyboardEvent) {
        if event.key() == "Escape" && self.open.get_untracked() {
            self.close();
        }
    }

    fn render(self, format: ComparisonFormat) -> String {
        self.compared.comparison.with_untracked(|it| export::render(it, format))
    }

    fn copy(self) {
        let text = self.render(ComparisonFormat::Markdown);
        self.close();
        leptos::task::spawn_local_scoped_with_cancellation(async move {
            let is_copied = browser::copy(text).await;
            self.said.set(if is_copied {
                "Copied as Markdown."
            } else {
                "The browser did not allow copying: save the file instead."
            });
            gloo_timers::future::TimeoutFuture::new(SAID_MS).await;
            self.said.set("");
        });
    }

    fn save(self, way: Way) {
        let name = self.compared.comparison.with_untracked(|it| file_name(it, way.format));
        browser::save_as(&name, way.content_type, &self.render(way.format));
        self.close();
    }

    fn items(self) -> impl IntoView {
        let item = move |way: Way| {
            view! {
                <li>
                    <button type="button" data-testid=format!("export-{}", way.format.key()) on:click=move |_| self.save(way)>
                        {way.name}
                        <span>{way.says}</span>
                    </button>
                </li>
            }
        };
        view! {
            <ul>
                <li>
                    <button type="button" data-testid="copy-markdown" on:click=move |_| self.copy()>
                        "Copy as Markdown"
                        <span>"To be pasted into a pull request"</span>
                    </button>
                </li>
                {WAYS.map(item).collect_view()}
            </ul>
        }
    }
}

#[component]
fn Export(compared: Compared) -> impl IntoView {
    let (open, said) = (RwSignal::new(false), RwSignal::new(""));
    let menu = Menu { compared, open, said };
    view! {
        <div class="menu" on:keydown=move |event| menu.on_key(&event)>
            <button
                type="button"
                class="btn"
                id=EXPORT_BUTTON
                data-testid="export"
                aria-expanded=move || open.get().to_string()
                on:click=move |_| open.update(|open| *open = !*open)
            >
                {icon(Icon::Download)}
                "Export"
            </button>
            {move || open.get().then(|| menu.items())}
            <p class="said" role="status" data-testid="export-said">{move || said.get()}</p>
        </div>
    }
}
