//! Choosing two runs to compare.

use leptos::prelude::*;
use leptos_router::{NavigateOptions, hooks::use_navigate};
use speedmatrix_shared::{api::RunSummary, format};

use super::load::Runs;
use crate::{
    base::at,
    compare_view::address,
    parts::notice::{Loading, Notice, Weight},
};

/// Two lists of all runs and the button that compares the chosen ones.
#[component]
pub fn Choose(
    /// All runs.
    runs: Runs,
    /// The base that is chosen already; empty for none.
    a: String,
    /// What is judged, if that is chosen already.
    b: String,
) -> impl IntoView {
    let (a, b) = (RwSignal::new(a), RwSignal::new(b));
    let navigate = use_navigate();
    let is_whole = Memo::new(move |_| a.with(|a| !a.is_empty()) && b.with(|b| !b.is_empty()));
    let compare = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if is_whole.get_untracked() {
            navigate(&address(&a.get_untracked(), &b.get_untracked()), NavigateOptions::default());
        }
    };
    let count = Memo::new(move |_| runs.all.with(|all| all.as_ref().map(Vec::len)));
    let is_loading = move || count.get().is_none() && runs.trouble.with(Option::is_none);
    let trouble = move || {
        runs.trouble.get().map(|error| {
            let text = format!("The list of runs can't be read: {error}.");
            view! { <Notice weight=Weight::Bad text><a class="btn" href=at("/")>"See all runs"</a></Notice> }
        })
    };
    let few = move || {
        count.get().is_some_and(|count| count < 2).then(|| {
            let text = "A comparison takes two runs, and there are not two here yet.".to_owned();
            view! { <Notice weight=Weight::Info text><a class="btn" href=at("/new")>"Set up a run"</a></Notice> }
        })
    };
    view! {
        {move || is_loading().then(|| view! { <Loading what="runs"/> })}
        {trouble}
        {few}
        <form class="panel pad choose-runs" data-testid="choose-runs" on:submit=compare>
            <Pick runs chosen=a label="A: the base" testid="choose-a"/>
            <Pick runs chosen=b label="B: what is judged" testid="choose-b"/>
            <button type="submit" class="btn primary" data-testid="compare" disabled=move || !is_whole.get()>
                "Compare"
            </button>
        </form>
    }
}

#[component]
fn Pick(runs: Runs, chosen: RwSignal<String>, label: &'static str, testid: &'static str) -> impl IntoView {
    let option = move |run: &RunSummary| {
        let (id, own) = (run.id.to_string(), run.id.to_string());
        view! { <option value=id prop:selected=move || chosen.with(|chosen| *chosen == own)>{words(run)}</option> }
    };
    let options = move || runs.all.with(|all| all.iter().flatten().map(option).collect_view());
    view! {
        <div class="field">
            <label for=testid>{label}</label>
            <select
                class="input"
                id=testid
                data-testid=testid
                on:change=move |event| chosen.set(event_target_value(&event))
            >
                <option value="" prop:selected=move || chosen.with(String::is_empty)>"Choose a run…"</option>
                {options}
            </select>
        </div>
    }
}

/// A run among many: its name and when it was.
pub(super) fn words(run: &RunSummary) -> String {
    match run.started_unix_ms {
        0 => run.name().to_owned(),
        unix_ms => format!("{} · {}", run.name(), format::wall_time(unix_ms)),
    }
}
