//! One cell looked at closely: beside the report where there is room, else a page of its own.

pub mod axis;
pub mod history;
pub mod list;
pub mod numbers;
pub mod over_time;
pub mod repeat;
pub mod rows;
pub mod spread;
pub mod table;
pub mod verdict;
pub mod waterfall;
pub mod way;

use std::sync::Arc;

use leptos::{
    ev::{self, KeyboardEvent},
    prelude::*,
};
use leptos_router::{
    NavigateOptions,
    hooks::{use_location, use_navigate, use_query_map},
};
use speedmatrix_shared::{
    api::{self, CellInRun},
    detail::{CellDetail, requests::Columns},
    id::{CellId, Phase, RunId},
    plan::Load,
};

use self::{
    axis::TimeAxis,
    history::InOtherRuns,
    list::{RequestList, Requests},
    numbers::{AllNumbers, FirstNumbers},
    over_time::OverTime,
    repeat::{Repeats, measured_times},
    spread::Spread,
    verdict::Verdict,
    waterfall::Waterfall,
    way::{Way, neighbour},
};
use super::{
    icon::{Icon, icon},
    keys,
    notice::{Loading, Notice, Weight},
};
use crate::{
    browser,
    chart::cell::cell_words,
    fetch::{self, FetchError},
    live::LiveRun,
    query::{self, CellPart, RunView},
    zoom::Zoom,
};

/// Id of the sheet's heading, where the focus goes when it opens.
const TITLE: &str = "cell-title";

/// What a cell is called: `8K context, 16 requests at once`.
pub fn title(id: CellId, load: Load) -> String {
    match id.phase {
        Phase::Prefill => format!("{} context, prefill", id.context),
        Phase::Decode if load.is_sustained() => cell_words(id),
        Phase::Decode => format!("{} context, {} {}", id.context, id.concurrency, load.level_words()),
    }
}

/// The way from here to other cells and back to the report.
#[derive(Clone, Copy)]
struct Paths {
    run: StoredValue<RunId>,
    view: Memo<RunView>,
    search: Memo<String>,
    go: UnsyncCallback<String>,
}

impl Paths {
    fn open(&self, cell: CellId, shown: CellPart) {
        let view = self.view.get_untracked();
        let address = self.run.with_value(|run| query::cell_address(run, cell, view, shown));
        self.go.run(query::kept(&address, &self.search.get_untracked()));
    }

    fn close(&self) {
        let view = self.view.get_untracked();
        let address = self.run.with_value(|run| format!("/runs/{run}{}", view.query()));
        self.go.run(query::kept(&address, &self.search.get_untracked()));
    }
}

/// The sheet of a cell. Another cell in the address changes what is in it and leaves the sheet where it is.
#[component]
pub fn CellSheet(
    /// The run.
    run: LiveRun,
    /// The cell's name, as it stands in the address.
    name: Memo<String>,
    /// What the report behind it shows.
    view: Memo<RunView>,
) -> impl IntoView {
    let navigate = use_navigate();
    let options = || NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() };
    let paths = Paths {
        run: StoredValue::new(run.state.with_untracked(|state| state.id.clone())),
        view,
        search: use_location().search,
        go: UnsyncCallback::new(move |address: String| navigate(&address, options())),
    };
    let cells: StoredValue<Vec<CellId>> =
        StoredValue::new(run.state.with_untracked(|state| state.cells.iter().map(|cell| cell.id).collect()));
    let id = Memo::new(move |_| {
        let id: CellId = name.with(|name| name.parse().ok())?;
        cells.with_value(|cells| cells.contains(&id)).then_some(id)
    });
    let to = move |way: Way| cells.with_value(|cells| neighbour(cells, id.get()?, way));
    let go = move |way: Way| {
        if let Some(cell) = untrack(|| to(way)) {
            paths.open(cell, CellPart::default());
        }
    };
    let handle = window_event_listener(ev::keydown, move |event| {
        if !keys::is_free(&event) {
            return;
        }
        match (event.key().as_str(), Way::of_bracket(&event.key())) {
            ("Escape", _) => paths.close(),
            (_, Some(way)) => go(way),
            _ => return,
        }
        event.prevent_default();
    });
    on_cleanup(move || handle.remove());
    Effect::new(move |before: Option<()>| {
        id.track();
        let title = format!("#{TITLE}");
        match before {
            None => browser::focus_later(title),
            // What had the focus may have been part of the cell before.
            Some(()) => browser::focus_later_if_lost(title),
        }
    });
    let load = run.state.with_untracked(|state| state.plan.load());
    let title = Memo::new(move |_| id.get().map_or_else(|| "No such cell".to_owned(), |id| title(id, load)));
    view! {
        <div class="sheet" role="region" aria-labelledby=TITLE data-testid="cell-sheet" data-shown=move || name.get()>
            <Head title paths to go/>
            <p class="sr" aria-live="polite">{move || title.get()}</p>
            {move || match id.get() {
                Some(id) => view! { <Body run id paths/> }.into_any(),
                None => view! { <NoSuchCell name=name.get_untracked() paths/> }.into_any(),
            }}
        </div>
    }
}

#[component]
fn Head<T, G>(title: Memo<String>, paths: Paths, to: T, go: G) -> impl IntoView
where
    T: Fn(Way) -> Option<CellId> + Copy + Send + Sync + 'static,
    G: Fn(Way) + Copy + Send + 'static,
{
    let on_arrow = move |event: KeyboardEvent| {
        let held = event.ctrl_key() || event.meta_key() || event.alt_key() || event.shift_key();
        if let Some(way) = Way::of_arrow(&event.key()).filter(|_| !held) {
            event.prevent_default();
            go(way);
        }
    };
    let step = move |way: Way, words: &'static str, key: &'static str, testid: &'static str| {
        view! {
            <button
                type="button"
                class="btn"
                disabled=move || to(way).is_none()
                aria-keyshortcuts=key
                data-testid=testid
                on:click=move |_| go(way)
            >
                {words}
                <kbd aria-hidden="true">{key}</kbd>
            </button>
        }
    };
    view! {
        <header class="sheet-head" on:keydown=on_arrow>
            <h1 id=TITLE tabindex="-1">{move || title.get()}</h1>
            <div class="btns">
                {step(Way::Previous, "Previous", "[", "previous-cell")}
                {step(Way::Next, "Next", "]", "next-cell")}
                <button
                    type="button"
                    class="btn ghost square"
                    aria-label="Close: back to the report"
                    data-testid="close-cell"
                    on:click=move |_| paths.close()
                >
                    {icon(Icon::Cross)}
                </button>
            </div>
        </header>
    }
}

#[component]
fn NoSuchCell(name: String, paths: Paths) -> impl IntoView {
    let text = format!("This run has no cell \"{name}\". The link may belong to another run, or it is not whole.");
    view! {
        <div class="sheet-body">
            <Notice weight=Weight::Warning text>
                <button type="button" class="btn" on:click=move |_| paths.close()>"See the report"</button>
            </Notice>
        </div>
    }
}

/// How far something that was asked for has come.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked<T> {
    /// No answer yet.
    Loading,
    /// The answer.
    Here(Arc<T>),
    /// Why there is none.
    Not(FetchError),
}

/// Asks for what `path` says, again whenever what it looks at changes; an answer to an earlier question is dropped.
fn ask<A, T>(path: impl Fn() -> String + 'static, read: impl Fn(A) -> T + Clone + 'static) -> RwSignal<Asked<T>>
where
    A: serde::de::DeserializeOwned + 'static,
    T: Send + Sync + 'static,
{
    let asked = RwSignal::new(Asked::Loading);
    Effect::new(move |_| {
        let (path, read) = (path(), read.clone());
        asked.set(Asked::Loading);
        leptos::task::spawn_local_scoped_with_cancellation(async move {
            let answer = fetch::get::<A>(&path).await;
            asked.set(answer.map_or_else(Asked::Not, |answer| Asked::Here(Arc::new(read(answer)))));
        });
    });
    asked
}

#[component]
fn Body(run: LiveRun, id: CellId, paths: Paths) -> impl IntoView {
    let state = run.state;
    let times = Memo::new(move |_| state.with(|state| state.cell(id).and_then(measured_times)));
    let measured = move || times.get().is_some();
    let query = use_query_map();
    let shown = Memo::new(move |_| query.with(|query| CellPart::read(|key| query.get(key))));
    let repeat =
        Memo::new(move |_| shown.get().repeat.filter(|repeat| times.get().is_some_and(|times| *repeat < times)));
    let path = move |template: &str| paths.run.with_value(|run| api::path::of_cell(template, run, id));
    let record = move |template: &'static str| {
        move || {
            times.track();
            repeat.get().map_or_else(|| path(template), |repeat| format!("{}?repeat={repeat}", path(template)))
        }
    };
    let load = state.with_untracked(|state| state.plan.load());
    let detail = ask::<CellDetail, _>(record(api::path::CELL), |detail| detail);
    let requests = ask::<Columns, _>(record(api::path::REQUESTS), move |columns| Requests::of(columns, load));
    let others = move || {
        times.track();
        path(api::path::HISTORY)
    };
    let others = ask::<Vec<CellInRun>, _>(others, |others| others);
    let history = move || measured().then(|| view! { <InOtherRuns run=state id others/> });
    let close_look = move || match detail.get() {
        _ if !measured() => ().into_any(),
        Asked::Loading => view! { <Loading what="the cell's record"/> }.into_any(),
        Asked::Not(error) => view! { <NotHere error/> }.into_any(),
        Asked::Here(detail) => view! { <CloseLook detail requests id shown paths/> }.into_any(),
    };
    view! {
        <div class="sheet-body">
            <FirstNumbers run=state id/>
            <Verdict run=state id/>
            <Repeats times repeat choose=UnsyncCallback::new(move |repeat| {
                paths.open(id, CellPart { repeat, ..shown.get_untracked() });
            })/>
            {close_look}
            {history}
            <AllNumbers run=state id/>
        </div>
    }
}

/// Why there is nothing to look at more closely. That a record was not kept is no fault.
#[component]
fn NotHere(error: FetchError) -> impl IntoView {
    let weight = match &error {
        FetchError::Refused(problem) if matches!(problem.status, 404 | 409) => Weight::Info,
        _ => Weight::Bad,
    };
    view! {
        <div data-testid="no-record">
            <Notice weight text=sentence(&error.to_string())/>
        </div>
    }
}

/// A message as a sentence: messages begin small and have no full stop, so that they can stand inside of others.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

#[component]
fn CloseLook(
    detail: Arc<CellDetail>,
    requests: RwSignal<Asked<Requests>>,
    id: CellId,
    shown: Memo<CellPart>,
    paths: Paths,
) -> impl IntoView {
    let in_address = Memo::new(move |_| shown.get().zoom);
    let zoom = RwSignal::new(in_address.get_untracked());
    let whole = Signal::stored(Zoom { from_s: 0.0, to_s: detail.span_s });
    let axis = TimeAxis::new(
        whole,
        zoom,
        UnsyncCallback::new(move |zoom| {
            paths.open(id, CellPart { zoom, ..shown.get_untracked() });
        }),
    );
    // The browser's own way back and forth shows what was shown then.
    Effect::new(move |before: Option<()>| {
        let there = in_address.get();
        if before.is_some() && there.map(Zoom::text) != zoom.get_untracked().map(Zoom::text) {
            zoom.set(there);
        }
    });
    let stages = detail.stages;
    let fall = move || match requests.get() {
        Asked::Loading => view! { <Loading what="the requests"/> }.into_any(),
        Asked::Not(error) => view! { <NotHere error/> }.into_any(),
        Asked::Here(requests) => view! { <Waterfall requests axis stages/> }.into_any(),
    };
    let list = move || match requests.get() {
        Asked::Here(requests) => Some(view! { <RequestList requests/> }),
        // Why it is not here stands in the place of the waterfall.
        Asked::Loading | Asked::Not(_) => None,
    };
    let nothing = detail.requests == 0;
    view! {
        {(!nothing).then(|| view! { <OverTime detail=Arc::clone(&detail) axis/> })}
        {(!nothing).then_some(fall)}
        <Spread distributions=detail.distributions.clone()/>
        {(!nothing).then_some(list)}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_messages_are_said_properly() {
        let title = |cell: &str, load: &str| title(cell.parse().unwrap(), load.parse().unwrap());
        assert_eq!(title("decode-8K-1", ""), "8K context, 1 request at once");
        assert_eq!(title("decode-8K-16", "open"), "8K context, 16 requests per minute");
        assert_eq!(title("prefill-64K-1", ""), "64K context, prefill");
        assert_eq!(sentence("the run is over: open it"), "The run is over: open it.");
        assert_eq!(sentence("ä"), "Ä.");
    }
}
