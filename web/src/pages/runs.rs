//! The list of runs: running ones on top, then the newest. On the first visit it offers the two ways to start.

use gloo_timers::future::TimeoutFuture;
use leptos::{either::Either, prelude::*};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use speedmatrix_shared::{
    api::{self, Info, RunSummary, StartRun, Started},
    id::RunId,
    plan::PlanDraft,
};

use crate::{
    browser,
    fetch::{self, FetchError},
    parts::{
        icon::{Icon, icon},
        notice::{Loading, Notice, Weight},
        run_card::{address, run_card},
    },
    shell::{Conn, Shell},
};

/// Milliseconds between two looks at the list.
const POLL_MS: u32 = 2_000;

/// What is known about the list. After a failure the last list stays on the page.
#[derive(Debug, Clone, Default, PartialEq)]
struct Listing {
    runs: Option<Vec<RunSummary>>,
    error: Option<FetchError>,
}

/// The list of runs.
#[component]
pub fn RunsPage() -> impl IntoView {
    browser::set_title("Runs");
    let shell = Shell::of_app();
    let listing = RwSignal::new(Listing::default());
    leptos::task::spawn_local_scoped_with_cancellation(poll(listing, shell));
    let is_loading = Memo::new(move |_| listing.with(|listing| listing.runs.is_none() && listing.error.is_none()));
    let has_sample =
        Memo::new(move |_| listing.with(|listing| listing.runs.as_ref().is_some_and(|runs| !runs.is_empty())));
    let is_first = Memo::new(move |_| listing.with(|listing| listing.runs.as_deref().is_some_and(is_first_use)));
    view! {
        <div class="head">
            <div>
                <h1>"Runs"</h1>
                <p class="sub">"How fast served models are, over context length and requests at once."</p>
            </div>
            <div class="btns"><a class="btn primary" href="/new">{icon(Icon::Plus)}"New run"</a></div>
        </div>
        <Trouble listing/>
        {move || is_loading.get().then(|| view! { <Loading what="runs"/> })}
        {move || is_first.get().then(|| view! { <FirstUse/> })}
        {move || {
            (is_first.get() && has_sample.get()).then(|| {
                view! { <p class="muted sample-note">"Below is a published run as a sample: this is what a report looks like."</p> }
            })
        }}
        <Cards listing/>
    }
}

/// Looks at the list again and again while the page is seen.
async fn poll(listing: RwSignal<Listing>, shell: Shell) {
    let mut seen = browser::local_time();
    let mut attempts = 0;
    loop {
        if !browser::is_hidden() {
            match fetch::get::<Vec<RunSummary>>(api::path::RUNS).await {
                Ok(runs) => {
                    (attempts, seen) = (0, browser::local_time());
                    shell.conn.set(Conn::Connected);
                    listing.set(Listing { runs: Some(runs), error: None });
                }
                Err(error) => {
                    attempts += 1;
                    if error == FetchError::Unreachable {
                        let retry_in_s = POLL_MS / 1_000;
                        shell.conn.set(Conn::Lost { since: seen.clone(), attempts, retry_in_s });
                    }
                    listing.update(|listing| listing.error = Some(error));
                }
            }
        }
        TimeoutFuture::new(POLL_MS).await;
    }
}

fn is_first_use(runs: &[RunSummary]) -> bool {
    runs.iter().all(|run| run.id.as_str() == RunId::REFERENCE)
}

#[component]
fn Trouble(listing: RwSignal<Listing>) -> impl IntoView {
    let error =
        Memo::new(move |_| listing.with(|listing| listing.error.clone().map(|error| (error, listing.runs.is_some()))));
    move || {
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
    }
}

#[component]
fn Cards(listing: RwSignal<Listing>) -> impl IntoView {
    let ids = Memo::new(move |_| {
        listing.with(|listing| listing.runs.iter().flatten().map(|run| run.id.clone()).collect::<Vec<_>>())
    });
    let card = move |id: RunId| {
        let run =
            Memo::new(move |_| listing.with(|listing| listing.runs.iter().flatten().find(|run| run.id == id).cloned()));
        view! { <li>{move || run.get().map(|run| run_card(&run))}</li> }
    };
    view! {
        <ul class="runs" data-testid="runs">
            <For each=move || ids.get() key=RunId::clone children=card/>
        </ul>
    }
}

/// The two ways to start, while there is nothing but the sample.
#[component]
fn FirstUse() -> impl IntoView {
    let demo = Demo::new();
    view! {
        <div class="first" data-testid="first-use">
            <section class="panel">
                <h2>"Measure a server"</h2>
                <p>
                    "Give the address of a server that speaks the OpenAI API. You see what it is, choose the cells, and start."
                </p>
                <a class="btn primary" href="/new" data-testid="measure">"Set up a run"</a>
            </section>
            <section class="panel">
                <h2>"Try the demo"</h2>
                <p>"About a minute, against the built-in simulator. No GPU is needed, and its numbers are marked as simulated."</p>
                {demo.button()}
                {demo.trouble()}
            </section>
        </div>
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
    let started: Started =
        fetch::post(api::path::RUNS, &StartRun { plan, api_key: None }).await.map_err(|error| error.to_string())?;
    Ok(started.id)
}
