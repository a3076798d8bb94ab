//! The list of runs: running ones on top, then pinned ones, then the newest. On the first visit it offers the two ways
//! to start.

use leptos::{either::Either, prelude::*};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use speedmatrix_shared::{
    api::{self, Info, RunSummary, StartRun, Started},
    format,
    id::RunId,
    plan::PlanDraft,
};

use crate::{
    base::at,
    browser, fetch,
    filter::RunFilter,
    parts::{
        compare::pick::{CompareBar, Picked},
        icon::{Icon, icon},
        notice::{Loading, Notice, Weight},
        operator::ForOperator,
        run_card::{RunCard, address},
        run_edit::EditDialog,
        run_filters::{self, Filters, NoMatch},
        run_import::{Import, ImportButton, ImportReport},
        run_list::RunList,
        run_menu::{Editing, button_id},
    },
};

/// Cards that are drawn at once: a long history must not make the page slow. Search and filters go over all runs.
const CARDS_AT_ONCE: usize = 50;

/// The list of runs.
#[component]
pub fn RunsPage() -> impl IntoView {
    browser::set_title("Runs");
    let list = RunList::follow();
    let import = Import::on_page(list);
    let filter = run_filters::in_address();
    let editing = RwSignal::new(None::<Editing>);
    let shown = shown_runs(list, filter);
    let all = Memo::new(move |_| list.present().len());
    let counts = Memo::new(move |_| (shown.with(Vec::len), all.get()));
    let has_any = Memo::new(move |_| all.get() > 0);
    let listing = list.listing;
    let is_loading = Memo::new(move |_| listing.with(|listing| listing.runs.is_none() && listing.error.is_none()));
    let is_first = Memo::new(move |_| listing.with(|listing| listing.runs.is_some()) && is_first_use(&list.present()));
    let is_no_match = Memo::new(move |_| shown.with(Vec::is_empty) && has_any.get());
    let limit = RwSignal::new(CARDS_AT_ONCE);
    let drawn = Memo::new(move |_| shown.with(|shown| shown.iter().take(limit.get()).cloned().collect::<Vec<_>>()));
    let hidden = Memo::new(move |_| shown.with(Vec::len).saturating_sub(limit.get()));
    let has_more = Memo::new(move |_| hidden.get() > 0);
    let picked = Picked::provide();
    come_back(list);
    view! {
        <div class="head">
            <div>
                <h1>"Runs"</h1>
                <p class="sub">"How fast served models are, over context length and requests at once."</p>
            </div>
            <div class="btns">
                <ForOperator>
                    <ImportButton import/>
                    <a class="btn primary" href=at("/new")>{icon(Icon::Plus)}"New run"</a>
                </ForOperator>
            </div>
        </div>
        <Trouble list/>
        <ImportReport import/>
        {move || is_loading.get().then(|| view! { <Loading what="runs"/> })}
        {move || is_first.get().then(|| view! { <FirstUse has_sample=has_any/> })}
        {move || (!is_first.get() && has_any.get()).then(|| view! { <Filters list filter counts/> })}
        {move || is_no_match.get().then(|| view! { <NoMatch filter/> })}
        <ul class="runs" data-testid="runs">
            <For
                each=move || drawn.get()
                key=RunId::clone
                children=move |id| view! { <li><RunCard id list editing/></li> }
            />
        </ul>
        {move || has_more.get().then(|| view! { <ShowMore limit hidden/> })}
        <CompareBar list picked/>
        <EditDialog list editing/>
        <p class="sr" role="status" aria-live="polite" data-testid="said">{move || list.said.get()}</p>
    }
}

/// Names of the runs that are shown, in their order.
fn shown_runs(list: RunList, filter: RwSignal<RunFilter>) -> Memo<Vec<RunId>> {
    Memo::new(move |_| {
        let filter = filter.get();
        let now_unix_ms = browser::unix_ms();
        let allowed = list.present().into_iter().filter(|run| filter.allows(run, now_unix_ms));
        allowed.map(|run| run.id).collect()
    })
}

#[component]
fn ShowMore(limit: RwSignal<usize>, hidden: Memo<usize>) -> impl IntoView {
    let words = move || format!("Show more ({} left)", format::count(Some(hidden.get() as u64)));
    view! {
        <div class="btns more">
            <button type="button" class="btn" data-testid="show-more" on:click=move |_| limit.update(|limit| *limit += CARDS_AT_ONCE)>
                {words}
            </button>
        </div>
    }
}

/// A run that was brought back is looked up at once, and the focus goes to it if nobody needs it elsewhere.
fn come_back(list: RunList) {
    let restored = list.bin.restored;
    Effect::new(move |before: Option<()>| {
        let restored = restored.get();
        // What was restored before this page opened is in its first list.
        if let Some(id) = restored.filter(|_| before.is_some()) {
            leptos::task::spawn_local_scoped_with_cancellation(async move {
                if list.look().await.is_ok() {
                    let name = list.run(&id).map(|run| run.name().to_owned()).unwrap_or_default();
                    list.said.set(format!("{name} is back."));
                    request_animation_frame(move || browser::focus_if_free(&button_id(&id)));
                }
            });
        }
    });
}

fn is_first_use(runs: &[RunSummary]) -> bool {
    runs.iter().all(|run| run.id.as_str() == RunId::REFERENCE)
}

/// What went wrong with the list, or with what a person did to one of its runs.
#[component]
fn Trouble(list: RunList) -> impl IntoView {
    let error = Memo::new(move |_| {
        list.listing.with(|listing| listing.error.clone().map(|error| (error, listing.runs.is_some())))
    });
    let unread = move || {
        error.get().map(|(error, has_list)| {
            let tail = if has_list {
                " The list below is from before; it is asked for again every 2 seconds."
            } else {
                " It is asked again every 2 seconds."
            };
            let text = format!("The list of runs can't be read: {error}.{tail}");
            view! {
                <div class="simulated">
                    <Notice weight=Weight::Bad text>
                        <button type="button" class="btn" on:click=move |_| browser::reload()>"Reload"</button>
                    </Notice>
                </div>
            }
        })
    };
    let undone = move || {
        list.trouble.get().map(|text| {
            view! {
                <div class="simulated" data-testid="trouble">
                    <Notice weight=Weight::Bad text>
                        <button type="button" class="btn" on:click=move |_| list.trouble.set(None)>"Close"</button>
                    </Notice>
                </div>
            }
        })
    };
    view! { {unread} {undone} }
}

/// The two ways to start, while there is nothing but the sample.
#[component]
fn FirstUse(has_sample: Memo<bool>) -> impl IntoView {
    let demo = Demo::new();
    view! {
        <div class="first" data-testid="first-use">
            <section class="panel">
                <h2>"Measure a server"</h2>
                <p>
                    "Give the address of a server that speaks the OpenAI API. You see what it is, choose the cells, and start."
                </p>
                <a class="btn primary" href=at("/new") data-testid="measure">"Set up a run"</a>
            </section>
            <section class="panel">
                <h2>"Try the demo"</h2>
                <p>"About a minute, against the built-in simulator. No GPU is needed, and its numbers are marked as simulated."</p>
                {demo.button()}
                {demo.trouble()}
            </section>
        </div>
        {move || has_sample.get().then(|| view! {
            <p class="muted sample-note">
                "Below is a published run as a sample: this is what a report looks like. A run that was exported elsewhere can be dropped here."
            </p>
        })}
    }
}
/// Starting the demo.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DemoState {
    Ready,
    Starting,
    Failed(String),
}

#[derive(Clone, Copy)]
struct Demo {
    state: RwSignal<DemoState>,
}

impl Demo {
    fn new() -> Self {
        Self { state: RwSignal::new(DemoState::Ready) }
    }

    fn button(self) -> impl IntoView {
        let navigate = use_navigate();
        let start = move |_| {
            let navigate = navigate.clone();
            self.state.set(DemoState::Starting);
            leptos::task::spawn_local_scoped_with_cancellation(async move {
                match start_demo().await {
                    Ok(id) => navigate(&address(&id), NavigateOptions::default()),
                    Err(text) => self.state.set(DemoState::Failed(text)),
                }
            });
        };
        let starting = move || self.state.with(|state| *state == DemoState::Starting);
        view! {
            <button type="button" class="btn primary" data-testid="demo" disabled=starting on:click=start>
                {icon(Icon::Play)}
                {move || if starting() { "Starting…" } else { "Start the demo" }}
            </button>
        }
    }

    fn trouble(self) -> impl IntoView {
        move || match self.state.get() {
            DemoState::Failed(text) => Either::Left(view! { <Notice weight=Weight::Bad text/> }),
            _ => Either::Right(()),
        }
    }
}

async fn start_demo() -> Result<RunId, String> {
    let info: Info = fetch::get(api::path::INFO).await.map_err(|error| error.to_string())?;
    let plan: Option<PlanDraft> = info.targets.into_iter().find_map(|target| target.demo_plan);
    let plan =
        plan.ok_or("this agent was started without its simulator: start it with the simulator, or measure a server")?;
    let started: Started = fetch::post(api::path::RUNS, &StartRun { plan, ..StartRun::default() })
        .await
        .map_err(|error| error.to_string())?;
    Ok(started.id)
}
