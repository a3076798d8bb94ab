//! A run in the list. Each of its parts is redrawn by itself, so that a running run takes the focus from nobody.

use leptos::prelude::*;
use speedmatrix_shared::{
    api::RunSummary,
    format,
    id::RunId,
    metric::{self, Metric},
    state::RunStatus,
};

use super::{
    badge::{flagged_badge, import_badge, origin_badge, status_badge, unstored_badge},
    compare::pick::PickBox,
    icon::{Icon, icon},
    run_list::RunList,
    run_menu::{Editing, RunMenu, button_id},
};
use crate::{
    base::at,
    chart::mini::Mini,
    filter::{Facet, RunFilter},
    shell::Shell,
};

/// A run in the list. The whole card is its link.
#[component]
pub fn RunCard(
    /// Which.
    id: RunId,
    /// The list it stands in.
    list: RunList,
    /// The run whose labels are being edited.
    editing: RwSignal<Option<Editing>>,
) -> impl IntoView {
    let (shown, home, of_menu, of_pick) = (id.to_string(), address(&id), button_id(&id), id.clone());
    let run = Memo::new(move |before: Option<&Option<RunSummary>>| {
        // A card outlives its run by a moment.
        list.run(&id).or_else(|| before.cloned().flatten())
    });
    let may_act = Shell::of_app().may_act;
    let name = part(run, |run| run.name().to_owned());
    let mini = part(run, |run| run.mini.clone());
    view! {
        <article class="run-card panel" data-testid="run-card" data-run=shown>
            {move || mini.get().map(|rows| view! { <Mini rows/> })}
            <div class="who">
                <h2 class="name">
                    <Pinned run/>
                    <a href=at(&home)><bdi>{move || name.get()}</bdi></a>
                </h2>
                <Meta run>
                    <PickBox id=of_pick name/>
                </Meta>
                <Tags run/>
            </div>
            <Numbers run/>
            {move || may_act.get().then(|| view! { <RunMenu id=of_menu.clone() run list editing/> })}
            <Progress run/>
        </article>
    }
}

/// The address of a run's page.
pub fn address(id: &RunId) -> String {
    format!("/runs/{id}")
}

/// The run of a card.
pub type OfCard = Memo<Option<RunSummary>>;

fn part<T: PartialEq + Send + Sync + 'static>(run: OfCard, read: fn(&RunSummary) -> T) -> Memo<Option<T>> {
    Memo::new(move |_| run.with(|run| run.as_ref().map(read)))
}

#[component]
fn Pinned(run: OfCard) -> impl IntoView {
    let pinned = part(run, |run| run.labels.pinned);
    move || {
        pinned.get().unwrap_or(false).then(|| {
            view! { <span class="pin" data-testid="pinned">{icon(Icon::Pin)}<span class="sr">"Pinned: "</span></span> }
        })
    }
}

/// What the run is: status, where its numbers come from, what there is to look at, engine, date, how long it took.
#[component]
fn Meta(run: OfCard, children: Children) -> impl IntoView {
    let badges = part(run, |run| (run.status.clone(), run.origin, run.flagged, run.labels.imported.clone()));
    let unstored = part(run, |run| run.unstored.clone());
    let facts = part(run, |run| (run.engine.clone(), run.started_unix_ms, took(run)));
    view! {
        <p class="meta">
            {move || {
                badges.get().map(|(status, origin, flagged, imported)| {
                    view! {
                        {status_badge(&status)}
                        {origin_badge(origin)}
                        {import_badge(imported.as_ref())}
                        {flagged_badge(flagged)}
                    }
                })
            }}
            {move || unstored_badge(unstored.get().flatten())}
            {move || {
                facts.get().map(|(engine, started, took)| {
                    let engine = if engine.is_empty() { "engine not known".to_owned() } else { engine };
                    view! {
                        <span><bdi>{engine}</bdi></span>
                        <span class="muted">{when(started)}</span>
                        {took.map(|took| view! { <span class="muted" data-testid="took">{took}</span> })}
                    }
                })
            }}
            {children()}
        </p>
    }
}

fn when(started_unix_ms: u64) -> String {
    match started_unix_ms {
        0 => "date not known".to_owned(),
        unix_ms => format::wall_time(unix_ms),
    }
}

/// How long it took or takes already; nothing for a page that does not tell.
fn took(run: &RunSummary) -> Option<String> {
    let verb = if run.status == RunStatus::Running { "for" } else { "took" };
    (run.elapsed_s > 0.0).then(|| format!("{verb} {}", format::duration_words(Some(run.elapsed_s))))
}

/// The tags; each shows all runs that have it.
#[component]
fn Tags(run: OfCard) -> impl IntoView {
    let tags = part(run, |run| run.labels.tags.clone());
    let one = |tag: String| {
        let mut filter = RunFilter::default();
        filter.choose(Facet::Tag, tag.clone());
        let title = format!("All runs with the tag {tag}");
        view! { <li><a href=at(&format!("/{}", filter.query())) title=title><bdi>{tag}</bdi></a></li> }
    };
    move || {
        let tags = tags.get().filter(|tags| !tags.is_empty());
        tags.map(|tags| {
            view! { <ul class="tags" aria-label="Tags" data-testid="tags">{tags.into_iter().map(one).collect_view()}</ul> }
        })
    }
}

#[component]
fn Numbers(run: OfCard) -> impl IntoView {
    let headline = part(run, |run| run.headline);
    let numbers = move || {
        let headline = headline.get().unwrap_or_default();
        let numbers = [
            ("Highest total", "total_tok_s", headline.best_total_tok_s),
            ("Fastest prefill", "total_tok_s", headline.best_prefill_tok_s),
            ("Shortest TTFT", "ttft", headline.shortest_ttft_s),
        ];
        numbers.map(number).collect_view()
    };
    view! { <dl class="numbers">{numbers}</dl> }
}

fn number((label, key, value): (&'static str, &str, Option<f64>)) -> impl IntoView + use<> {
    let text = metric::by_key(key).map_or_else(|| format::MISSING.to_owned(), |metric| (metric.show)(value));
    let unit = metric::by_key(key).filter(|metric| shows_unit_apart(metric, value)).map(|metric| metric.unit);
    view! {
        <div>
            <dt>{label}</dt>
            <dd>{text}" "<small>{unit}</small></dd>
        </div>
    }
}

fn shows_unit_apart(metric: &Metric, value: Option<f64>) -> bool {
    value.is_some() && !(metric.show)(value).ends_with(metric.unit)
}

#[component]
fn Progress(run: OfCard) -> impl IntoView {
    let cells = part(run, |run| (run.status == RunStatus::Running).then_some((run.cells_done, run.cells)));
    move || cells.get().flatten().map(|(done, all)| progress(done, all))
}

fn progress(cells_done: usize, cells: usize) -> impl IntoView {
    let words = format!("{cells_done} of {cells} cells");
    view! {
        <div class="running">
            <div
                class="progress"
                role="progressbar"
                aria-label="Cells done"
                aria-valuetext=words.clone()
                aria-valuenow=cells_done
                aria-valuemax=cells
            >
                <i style=("--done", share(cells_done, cells))></i>
            </div>
            <span>{words}</span>
        </div>
    }
}

/// A share as a length of a bar: `37.5%`.
pub fn share(part: usize, whole: usize) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}
