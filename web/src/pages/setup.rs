//! Set-up: a server, its cells, and how they are measured. The half-made plan is in the address.

use gloo_timers::future::TimeoutFuture;
use leptos::{ev::SubmitEvent, prelude::*};
use leptos_router::{
    NavigateOptions,
    hooks::{use_navigate, use_query_map},
};
use speedmatrix_shared::{
    api::{self, Info, RunSummary, SavedTarget, StartRun, Started},
    id::RunId,
    plan::Field,
    state::RunState,
    typed::TypedFacts,
};

use crate::{
    browser,
    fetch::{self, FetchError},
    history,
    parts::{
        field::{Form, input_id},
        icon::{Icon, icon},
        notice::{Notice, Weight},
        plan_budget::Budget,
        plan_file::FromRun,
        plan_foot::Summary,
        plan_form::{HowFields, MatrixFields, TargetFields},
        plan_preview::Preview,
        probe::Probe,
        run_card::address,
        run_head::plan_again,
        typed::TypedFold,
    },
    query,
    shell::{Conn, Shell},
};

/// What the start button does.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Starting {
    No,
    Sent,
    Refused(String),
}

/// Said to who may not start runs.
const ONLY_LOOKS: &str = "Your link allows to look at runs, not to start them: ask the operator of this agent.";

/// The set-up page.
#[component]
pub fn SetupPage() -> impl IntoView {
    browser::set_title("New run");
    let may_act = Shell::of_app().may_act;
    let query = use_query_map();
    let addressed = Memo::new(move |_| query.with(|query| query::read_draft(|key| query.get(key))));
    let form = Form::of(addressed.get_untracked());
    let api_key = RwSignal::new(String::new());
    let probe = RwSignal::new(Probe::NotYet);
    let typed = RwSignal::new(TypedFacts::new());
    let saved = RwSignal::new(Vec::new());
    let runs = RwSignal::new(Vec::new());
    leptos::task::spawn_local_scoped_with_cancellation(ask_runs(runs));
    leptos::task::spawn_local_scoped_with_cancellation(ask_targets(saved, Shell::of_app()));
    let trouble = RwSignal::new(None);
    let take = move |run: String| {
        leptos::task::spawn_local_scoped_with_cancellation(take_plan(form, run, trouble));
    };
    if let Some(run) = query.with_untracked(|query| query.get("from")) {
        take(run);
    }
    let from_run = view! { <FromRun runs take/> }.into_any();
    history::keep("/new", form.draft, addressed, query::draft_query);
    forget_other_server(form, probe);
    view! {
        <div class="head">
            <div>
                <h1>"New run"</h1>
                <p class="sub">"Choose a server and the cells to measure. Every cell is one context length at one number of requests at once."</p>
            </div>
        </div>
        {move || trouble.get().map(|text| view! { <div class="simulated" data-testid="from-error"><Notice weight=Weight::Bad text/></div> })}
        {move || (!may_act.get()).then(|| view! { <div class="simulated" data-testid="only-looks"><Notice weight=Weight::Warning text=ONLY_LOOKS/></div> })}
        <StartForm form api_key probe typed>
            <div class="column">
                <TargetFields form api_key probe saved runs>
                    <TypedFold typed/>
                </TargetFields>
                <MatrixFields form from_run>
                    <Preview form probe/>
                    <Budget form probe/>
                </MatrixFields>
                <HowFields form/>
            </div>
        </StartForm>
    }
}

/// Milliseconds between two looks at the agent: a half-made plan may stand open for hours.
const POLL_MS: u32 = 5_000;

/// Asks for the servers to choose from, and notices when the agent goes or comes back.
async fn ask_targets(saved: RwSignal<Vec<SavedTarget>>, shell: Shell) {
    let mut seen = browser::local_time();
    let mut attempts = 0;
    loop {
        match fetch::get::<Info>(api::path::INFO).await {
            Ok(info) => {
                (attempts, seen) = (0, browser::local_time());
                shell.learn(&info);
                if saved.with_untracked(|saved| *saved != info.targets) {
                    saved.set(info.targets);
                }
            }
            Err(FetchError::Unreachable) => {
                attempts += 1;
                shell.conn.set(Conn::Lost { since: seen.clone(), attempts, retry_in_s: POLL_MS / 1_000 });
            }
            // Without the list an address can still be typed.
            Err(_) => {}
        }
        TimeoutFuture::new(POLL_MS).await;
    }
}

/// Asks for the runs whose servers and plans can be taken.
async fn ask_runs(runs: RwSignal<Vec<RunSummary>>) {
    // Without them everything can still be typed.
    if let Ok(found) = fetch::get::<Vec<RunSummary>>(api::path::RUNS).await {
        runs.set(found);
    }
}

/// Fills the form with the plan of the run that `from` in the address names; says why it can't.
async fn take_plan(form: Form, run: String, trouble: RwSignal<Option<String>>) {
    let path = run.parse::<RunId>().map(|id| api::path::of(api::path::RUN, &id));
    let found = match path {
        Ok(path) => fetch::get::<RunState>(&path).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match found {
        Ok(state) => {
            trouble.set(None);
            form.fill(plan_again(&state));
        }
        Err(error) => trouble.set(Some(format!(
            "The plan of run {run} can't be taken over: {error}. Choose the cells yourself, or another run."
        ))),
    }
}

/// What was found belongs to one address.
fn forget_other_server(form: Form, probe: RwSignal<Probe>) {
    let target = Memo::new(move |_| form.text(Field::Target));
    Effect::new(move |before: Option<String>| {
        let target = target.get();
        if before.is_some_and(|before| before != target) && probe.get_untracked() != Probe::Looking {
            probe.set(Probe::NotYet);
        }
        target
    });
}

#[component]
fn StartForm(
    form: Form,
    api_key: RwSignal<String>,
    probe: RwSignal<Probe>,
    typed: RwSignal<TypedFacts>,
    children: Children,
) -> impl IntoView {
    let starting = RwSignal::new(Starting::No);
    let navigate = use_navigate();
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if let Some(first) = form.touch_all() {
            browser::focus(&input_id(first));
            return;
        }
        starting.set(Starting::Sent);
        let navigate = navigate.clone();
        leptos::task::spawn_local_scoped_with_cancellation(async move {
            match start(form, api_key.get_untracked(), typed.get_untracked()).await {
                Ok(started) => navigate(&address(&started.id), NavigateOptions::default()),
                Err(error) => starting.set(Starting::Refused(refused(form, error))),
            }
        });
    };
    let sent = move || starting.with(|starting| *starting == Starting::Sent);
    let trouble = move || {
        starting.with(|starting| match starting {
            Starting::Refused(text) if !text.is_empty() => {
                let text = format!("The run was not started: {text}.");
                Some(view! { <div data-testid="start-error"><Notice weight=Weight::Bad text/></div> })
            }
            _ => None,
        })
    };
    view! {
        <form class="form" data-testid="setup" novalidate on:submit=submit>
            {children()}
            <Summary form probe>
                {trouble}
                <button type="submit" class="btn primary wide" data-testid="start" disabled=sent>
                    {icon(Icon::Play)}
                    {move || if sent() { "Starting…" } else { "Start" }}
                </button>
            </Summary>
        </form>
    }
}

async fn start(form: Form, api_key: String, typed: TypedFacts) -> Result<Started, FetchError> {
    let plan = form.draft.get_untracked();
    let body = StartRun { plan, api_key: (!api_key.is_empty()).then_some(api_key), typed };
    fetch::post(api::path::RUNS, &body).await
}

/// Brings the agent's objections to their fields; returns what belongs to no field.
fn refused(form: Form, error: FetchError) -> String {
    match error {
        FetchError::Refused(problem) if !problem.fields.is_empty() => {
            if let Some(first) = form.refuse(problem.fields) {
                browser::focus(&input_id(first));
            }
            String::new()
        }
        other => other.to_string(),
    }
}
