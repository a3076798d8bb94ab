//! The head of a run's page: what it is, where its numbers come from, its headline numbers.

use leptos::prelude::*;
use speedmatrix_shared::{
    api::{self, ResumeRun, engine_line},
    event::{Origin, RunOutcome},
    facts::{self, Kpi},
    plan::PlanDraft,
    state::{RunState, RunStatus},
};

use super::{
    badge::{origin_badge, simulated_sentence, status_badge},
    export::ExportMenu,
    icon::{Icon, icon},
    notes::{HeadLabels, RunLabels},
    notice::{Notice, Weight},
};
use crate::{base::at, browser, compare_view, fetch, live::LiveRun, query, shell::Shell};

/// The head.
#[component]
pub fn RunHead(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let export = run.state.with_untracked(|state| api::path::of(api::path::EXPORT, &state.id));
    let compare = run.state.with_untracked(|state| compare_view::address(state.id.as_str(), ""));
    let labels: RunLabels = expect_context();
    let title = Memo::new(move |_| run.state.with(|state| labels.name(state)));
    let engine = Memo::new(move |_| run.state.with(|state| engine_line(state.facts.as_ref())));
    let subtitle = run.state.with_untracked(facts::subtitle);
    let badges = Memo::new(move |_| run.state.with(|state| (state.status.clone(), state.origin)));
    let again = run.report(again);
    view! {
        <p class="kicker">
            <a href=at("/")>"Runs"</a>
            <span aria-hidden="true">"/"</span>
            <span>"Speed test matrix"</span>
            {move || {
                let (status, origin) = badges.get();
                view! { {status_badge(&status)} {origin_badge(origin)} }
            }}
            <HeadLabels/>
        </p>
        <div class="head">
            <div>
                <h1 data-testid="title"><bdi title=move || title.get()>{move || title.get()}</bdi></h1>
                <p class="sub">
                    <b>{move || engine.get()}</b>
                    {move || engine.with(|engine| !engine.is_empty()).then(|| view! { <br/> })}
                    {subtitle}
                </p>
            </div>
            <div class="btns">
                <a class="btn" href=move || at(&again.get().address) data-testid="again">
                    {icon(Icon::Again)}
                    {move || again.get().words}
                </a>
                <a class="btn" href=at(&compare) data-testid="compare">"Compare…"</a>
                <ExportMenu path=export/>
            </div>
        </div>
        <Outcome run/>
        {move || {
            run.unstored.get().map(|text| {
                view! { <div class="simulated" data-testid="unstored"><Notice weight=Weight::Warning text/></div> }
            })
        }}
        {move || {
            simulated_sentence(badges.get().1).map(|text| {
                view! { <div class="simulated" data-testid="simulated"><Notice weight=Weight::Warning text/></div> }
            })
        }}
        <Kpis run/>
    }
}

/// What to say about a run that did not end well, with the next step.
#[component]
fn Outcome(run: LiveRun) -> impl IntoView {
    let outcome = Memo::new(move |_| run.state.with(ending));
    let again = run.state.with_untracked(again);
    let labels: RunLabels = expect_context();
    // Until it is known that the run is of this agent nothing is offered.
    let open = Memo::new(move |_| labels.is_imported() == Some(false) && run.state.with(RunState::can_go_on));
    let may_act = Shell::of_app().may_act;
    move || {
        let Again { address, words } = again.clone();
        outcome.get().map(|(weight, text)| {
            view! {
                <div class="simulated" data-testid="outcome">
                    <Notice weight text>
                        // Labels come after the run: the offer may appear later than the sentence.
                        {move || (open.get() && may_act.get()).then(|| view! { <GoOn run/> })}
                        <a class="btn" href=at(&address)>{words}</a>
                    </Notice>
                </div>
            }
        })
    }
}

/// Lets the run go on with the cells that are missing. The page is opened anew then, and watches.
#[component]
fn GoOn(run: LiveRun) -> impl IntoView {
    let trouble = RwSignal::new(None::<String>);
    let is_sent = RwSignal::new(false);
    let path = run.state.with_untracked(|state| api::path::of(api::path::RESUME, &state.id));
    let path = StoredValue::new(path);
    let press = move |_| {
        is_sent.set(true);
        leptos::task::spawn_local(async move {
            match fetch::order(&path.get_value(), &ResumeRun::default()).await {
                Ok(()) => browser::reload(),
                Err(error) => {
                    is_sent.set(false);
                    trouble.set(Some(error.to_string()));
                }
            }
        });
    };
    let words = move || if is_sent.get() { "Looking at the server…" } else { "Measure the missing cells" };
    view! {
        <button type="button" class="btn primary" data-testid="resume" disabled=move || is_sent.get() on:click=press>
            {words}
        </button>
        <span role="status" class="error" data-testid="resume-error">{move || trouble.get()}</span>
    }
}

/// The way to a new run with the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Again {
    address: String,
    words: &'static str,
}

fn again(state: &RunState) -> Again {
    let words = if state.origin == Some(Origin::Imported) { "Use this plan" } else { "Run again" };
    Again { address: format!("/new{}", query::draft_query(&plan_again(state))), words }
}

/// The plan of a run, for a new one. An imported page names no server to measure: only its matrix can be used again.
pub fn plan_again(state: &RunState) -> PlanDraft {
    let draft = PlanDraft::from(state.plan.clone());
    if state.origin == Some(Origin::Imported) {
        return PlanDraft { target: String::new(), model: String::new(), name: String::new(), ..draft };
    }
    draft
}

fn ending(state: &RunState) -> Option<(Weight, String)> {
    let RunStatus::Ended { outcome } = &state.status else { return None };
    let (done, all) = (state.cells.iter().filter(|cell| cell.result().is_some()).count(), state.cells.len());
    match outcome {
        RunOutcome::Finished => None,
        RunOutcome::Cancelled => {
            Some((Weight::Info, format!("The run was stopped. {done} of {all} cells were measured and are kept.")))
        }
        RunOutcome::Failed { reason } => Some((Weight::Bad, format!("The run failed: {reason}"))),
        RunOutcome::Interrupted => Some((
            Weight::Warning,
            format!("The agent ended in the middle of this run. {done} of {all} cells were measured and are kept."),
        )),
    }
}

#[component]
fn Kpis(run: LiveRun) -> impl IntoView {
    let kpis = run.report(facts::kpis);
    let one = |kpi: Kpi| {
        view! {
            <div data-testid="kpi">
                <dt>{kpi.label}</dt>
                <dd class="value">{kpi.value}" "<small>{kpi.unit}</small></dd>
                <dd class="at">{kpi.at}</dd>
            </div>
        }
    };
    view! { <dl class="kpis">{move || kpis.get().into_iter().map(one).collect_view()}</dl> }
}
