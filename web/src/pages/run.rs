//! A run: live while it runs, the report afterwards. It is the same page; parts appear when there is something in them.

use leptos::{either::Either, prelude::*};
use leptos_router::hooks::{use_params_map, use_query_map};
use speedmatrix_shared::{
    api,
    finding::gpus::gpu_note,
    format,
    id::{CellId, Phase, RunId},
    state::{Cell, RunState, RunStatus},
};

use crate::{
    base::at,
    browser,
    fetch::{self, FetchError},
    live::{LiveRun, socket},
    opening::CameFrom,
    pages::missing::MissingPage,
    parts::{
        cell::{self, CellSheet},
        curves::{CurvesSection, has_charts},
        decode::DecodeSection,
        facts::{Cards, Findings},
        later::Later,
        live::{LivePart, LiveSide, Log, seen_live},
        measurements::MeasurementsSection,
        notes::{OwnNotes, RunLabels},
        notice::{Loading, Notice, Weight},
        prefill::PrefillSection,
        run_head::RunHead,
    },
    query::RunView,
    shell::{Conn, Shell},
};

/// What is known about the run of this address.
#[derive(Debug, Clone)]
enum Load {
    Asking,
    NotFound,
    Failed(String),
    Here(LiveRun),
}

/// What of a run its address names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Report,
    Cell(String),
    Nothing,
}

impl Part {
    fn read(rest: &str) -> Self {
        match rest.trim_matches('/').split_once('/') {
            None if rest.trim_matches('/').is_empty() => Self::Report,
            Some(("cells", cell)) if !cell.contains('/') => Self::Cell(cell.to_owned()),
            _ => Self::Nothing,
        }
    }

    fn cell(&self) -> Option<&str> {
        match self {
            Self::Cell(name) => Some(name),
            Self::Report | Self::Nothing => None,
        }
    }
}

/// The page of a run. Another id in the address is another page; another cell is not.
#[component]
pub fn RunPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id").unwrap_or_default()));
    let part = Memo::new(move |_| params.with(|params| Part::read(&params.get("rest").unwrap_or_default())));
    let is_nothing = Memo::new(move |_| part.get() == Part::Nothing);
    move || {
        let id = id.get();
        match id.parse::<RunId>() {
            _ if is_nothing.get() => view! { <MissingPage/> }.into_any(),
            Ok(id) => view! { <Opened id part/> }.into_any(),
            Err(_not_an_id) => view! { <NotFound id/> }.into_any(),
        }
    }
}

#[component]
fn Opened(id: RunId, part: Memo<Part>) -> impl IntoView {
    let shell = Shell::of_app();
    let load = RwSignal::new(Load::Asking);
    let asked = RwSignal::new(0_u32);
    let wanted = id.clone();
    browser::set_title("Run");
    Effect::new(move |_| {
        asked.track();
        let id = wanted.clone();
        leptos::task::spawn_local_scoped_with_cancellation(open(id, load, shell));
    });
    on_cleanup(move || shell.watching.set(None));
    move || match load.get() {
        Load::Asking => view! { <Loading what="the run"/> }.into_any(),
        Load::NotFound => view! { <NotFound id=id.to_string()/> }.into_any(),
        Load::Failed(text) => {
            let again = move |_| asked.update(|asked| *asked += 1);
            view! {
                <div class="blank">
                    <h1>"This run can't be shown"</h1>
                    <Notice weight=Weight::Bad text>
                        <button type="button" class="btn" on:click=again>"Try again"</button>
                        <a class="btn" href=at("/")>"See all runs"</a>
                    </Notice>
                </div>
            }
            .into_any()
        }
        Load::Here(run) => view! { <ReportAndCell run part/> }.into_any(),
    }
}

/// Fetches the run and then follows it until the page is left.
async fn open(id: RunId, load: RwSignal<Load>, shell: Shell) {
    load.set(Load::Asking);
    match fetch::get::<RunState>(&api::path::of(api::path::RUN, &id)).await {
        Ok(state) => {
            let run = LiveRun::new(state);
            load.set(Load::Here(run));
            socket::follow(run, id, shell).await;
        }
        Err(error) if error.is_not_found() => load.set(Load::NotFound),
        Err(error) => {
            if error == FetchError::Unreachable {
                shell.conn.set(Conn::offline());
            }
            load.set(Load::Failed(error.to_string()));
        }
    }
}

#[component]
fn NotFound(id: String) -> impl IntoView {
    browser::set_title("No such run");
    view! {
        <div class="blank" data-testid="run-not-found">
            <h1>"There is no such run here"</h1>
            <p>{format!("This agent has no run \"{id}\". It may have been deleted, or the link belongs to another agent.")}</p>
            <div class="btns">
                <a class="btn primary" href=at("/")>"See all runs"</a>
                <a class="btn" href=at("/new")>"Set up a run"</a>
            </div>
        </div>
    }
}

/// How the parts are ordered. It is decided once, so that nothing moves when a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Whoever opens a running run wants to see its matrix.
    MatrixFirst,
    /// Conditions before numbers.
    Report,
}

impl Order {
    fn of(state: &RunState) -> Self {
        if state.status == RunStatus::Running { Self::MatrixFirst } else { Self::Report }
    }
}

/// The report, and over it the cell that is looked at. The report stays as it is, so that the way back is short.
#[component]
fn ReportAndCell(run: LiveRun, part: Memo<Part>) -> impl IntoView {
    let query = use_query_map();
    let shown = Memo::new(move |_| query.with(|query| RunView::read(|key| query.get(key))));
    let open = Memo::new(move |_| part.with(|part| part.cell().is_some()));
    // While the sheet closes its name stays what it was.
    let name = Memo::new(move |before: Option<&String>| {
        part.with(|part| part.cell().map(ToOwned::to_owned)).or_else(|| before.cloned()).unwrap_or_default()
    });
    let load = run.state.with_untracked(|state| state.plan.load());
    let from = CameFrom::provide();
    let labels = RunLabels::provide(run.state.with_untracked(|state| state.id.clone()));
    Effect::new(move |_| {
        let run = run.state.with(|state| labels.name(state));
        let cell = part.with(|part| part.cell().and_then(|name| name.parse::<CellId>().ok()));
        browser::set_title(&cell.map_or(run.clone(), |cell| format!("{} · {run}", cell::title(cell, load))));
    });
    Effect::new(move |before: Option<bool>| {
        let open = open.get();
        if before == Some(true) && !open {
            // Back to where one came from.
            browser::focus_later(from.way_back(&name.get_untracked()));
        }
        open
    });
    view! {
        <div class="stack" class:behind=move || open.get()>
            <Report run shown/>
        </div>
        {move || open.get().then(|| view! { <CellSheet run name view=shown/> })}
    }
}

#[component]
fn Report(run: LiveRun, shown: Memo<RunView>) -> impl IntoView {
    let order = run.state.with_untracked(Order::of);
    let overview = move || {
        view! {
            <section id="overview" aria-label="Overview">
                <Findings run/>
                <Cards run/>
            </section>
        }
    };
    let results = move || {
        view! {
            <Later><CurvesSection run/></Later>
            <Later><MeasurementsSection run/></Later>
        }
    };
    let parts = if order == Order::MatrixFirst {
        Either::Left(view! {
            <div class="live-beside">
                <div>
                    <DecodeSection run view=shown/>
                    <Log run/>
                </div>
                <LiveSide run/>
            </div>
            <PrefillSection run/>
            {results()}
            {overview()}
            <Notes run/>
        })
    } else {
        let seen = seen_live(run);
        Either::Right(view! {
            // A run that was interrupted may go on.
            {move || seen.get().then(|| view! { <LiveSide run/> })}
            {overview()}
            <PrefillSection run/>
            <DecodeSection run view=shown/>
            {results()}
            <Notes run/>
            <Log run/>
        })
    };
    view! {
        <RunHead run/>
        <LivePart run/>
        <Sections run order/>
        {parts}
        <Foot run/>
    }
}

/// Links to the sections of the report that this run has.
#[component]
fn Sections(run: LiveRun, order: Order) -> impl IntoView {
    let has = |phase| run.state.with_untracked(|state| state.cells_of(phase).next().is_some());
    let curves = run.state.with_untracked(has_charts);
    let overview = ("overview", "Overview", true);
    let prefill = ("prefill", "Prefill", has(Phase::Prefill));
    let load = run.state.with_untracked(|state| state.plan.load());
    let decode = ("decode", load.phase_label(Phase::Decode), has(Phase::Decode));
    let charts = ("charts", "Charts", curves);
    let all = ("all", "All measurements", true);
    let notes = ("notes", "Notes", true);
    let links = match order {
        Order::MatrixFirst => [decode, prefill, charts, all, overview, notes],
        Order::Report => [overview, prefill, decode, charts, all, notes],
    };
    let link = |(id, words, _)| view! { <a href=format!("#{id}") rel="external">{words}</a> };
    view! {
        <nav class="subnav" aria-label="Sections">
            {links.into_iter().filter(|(_, _, there)| *there).map(link).collect_view()}
            <span class="keys" aria-hidden="true">
                <kbd>"m"</kbd>" matrix  "<kbd>"e"</kbd>" export  "<kbd>"?"</kbd>" all keys"
            </span>
        </nav>
    }
}

#[component]
fn Notes(run: LiveRun) -> impl IntoView {
    let gpus = run.report(gpu_note);
    view! {
        <section id="notes" aria-labelledby="notes-title">
            <div class="section-head"><h2 id="notes-title">"Notes"</h2></div>
            <OwnNotes/>
            <div class="panel pad prose">
                <p><b>"Requests queued: "</b>"the server could not run all requests at once, so some waited in a queue."</p>
                <p>
                    <b>"Time to first token (TTFT) "</b>
                    "in the matrix is measured after the prompt is in the server's cache, so it mostly excludes prefill. \
                     Read cold prompts in Prefill."
                </p>
                {move || gpus.get().map(|note| view! { <p data-testid="gpu-note"><b>"GPUs: "</b>{note}</p> })}
                <p>
                    <b>"Sustained decode "</b>
                    "keeps the same number of requests in flight for the whole window: each one that ends is replaced at once."
                </p>
                <p><b>"K "</b>"is 1,024 tokens in lengths of context, and 1,000 in rates. — means not measured."</p>
            </div>
        </section>
    }
}

#[component]
fn Foot(run: LiveRun) -> impl IntoView {
    let measured = run.report(measured);
    view! {
        <p class="foot">
            <span>{move || measured.get()}</span>
            <span>{run.state.with_untracked(|state| format!("Run {}", state.id))}</span>
        </p>
    }
}

/// `73 measurements · 2,893,461 output tokens in the decode matrix`.
fn measured(state: &RunState) -> String {
    let results = || state.cells.iter().filter_map(Cell::result);
    let tokens: u64 = results().filter_map(|result| result.stats.output_tokens).sum();
    let count = results().count() as u64;
    format!(
        "{} measurements · {} output tokens in the decode matrix",
        format::count(Some(count)),
        format::count(Some(tokens))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_the_report_or_a_cell() {
        let check = |rest: &str, wanted: Part| assert_eq!(Part::read(rest), wanted, "{rest}");
        check("", Part::Report);
        check("/", Part::Report);
        check("cells/decode-8K-16", Part::Cell("decode-8K-16".into()));
        check("cells/x", Part::Cell("x".into()));
        check("cells", Part::Nothing);
        check("cells/a/b", Part::Nothing);
        check("nonsense", Part::Nothing);
    }
}
