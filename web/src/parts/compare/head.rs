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
        Some(format!("{origin}/compare{}", view.with(CompareView::query)))
    });
    let a = Memo::new(move |_| compared.comparison.with(|it| it.a.clone()));
    let b = Memo::new(move |_| compared.comparison.with(|it| it.b.clone()));
    view! {
        <p class="kicker">
            <a href="/">"Runs"</a>
            <span aria-hidden="true">"/"</span>
            <a href="/compare">"Compare"</a>
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
                <a href=move || side.with(|side| run_card::address(&side.id))><bdi>{move || side.with(|side| side.title.clone())}</bdi></a>
            </p>
            <p class="meta">
                {move || side.with(|side| view! { {status_badge(&side.status)} {origin_badge(side.origin)} })}
                <span class="muted">{move || side.with(when)}</span>
                <span class="muted">{move || side.with(cells)}</span>
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

#[component]
fn Export(compared: Compared) -> impl IntoView {
    let open = RwSignal::new(false);
    let said = RwSignal::new("");
    let close_on_escape = move |event: KeyboardEvent| {
        if event.key() == "Escape" && open.get_untracked() {
            open.set(false);
            browser::focus(EXPORT_BUTTON);
        }
    };
    let done = move |words: &'static str| {
        said.set(words);
        open.set(false);
        browser::focus(EXPORT_BUTTON);
    };
    let copy = move |_| {
        let text = compared.comparison.with_untracked(|it| export::render(it, ComparisonFormat::Markdown));
        // Not scoped: the menu that holds the button closes.
        leptos::task::spawn_local(async move {
            let is_copied = browser::copy(text).await;
            done(if is_copied {
                "Copied as Markdown."
            } else {
                "The browser did not allow copying: save the file instead."
            });
        });
    };
    let save = move |way: Way| {
        compared.comparison.with_untracked(|it| {
            browser::save_as(&file_name(it, way.format), way.content_type, &export::render(it, way.format));
        });
        done("Saved.");
    };
    let item = move |way: Way| {
        view! {
            <li>
                <button type="button" data-testid=format!("export-{}", way.format.key()) on:click=move |_| save(way)>
                    {way.name}
                    <span>{way.says}</span>
                </button>
            </li>
        }
    };
    let items = move || {
        open.get().then(|| {
            view! {
                <ul>
                    <li>
                        <button type="button" data-testid="copy-markdown" on:click=copy>
                            "Copy as Markdown"
                            <span>"To be pasted into a pull request"</span>
                        </button>
                    </li>
                    {WAYS.map(item).collect_view()}
                </ul>
            }
        })
    };
    view! {
        <div class="menu" on:keydown=close_on_escape>
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
            {items}
            <p class="sr" role="status" data-testid="export-said">{move || said.get()}</p>
        </div>
    }
}
