//! What can be done with a run of the list, as a menu on its card.

use leptos::{
    ev::{FocusEvent, KeyboardEvent},
    html,
    prelude::*,
};
use speedmatrix_shared::{
    api::{self, RunSummary},
    export::ExportFormat,
    id::RunId,
    state::RunStatus,
};
use wasm_bindgen::JsCast as _;

use super::{
    icon::{Icon, icon},
    run_card::OfCard,
    run_list::RunList,
};
use crate::{
    base::at,
    browser,
    labels::{self, Gone, SaveError},
};

/// Which label a person wants to write first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// The name.
    Name,
    /// The tags.
    Tags,
    /// The notes.
    Notes,
}

/// A run whose labels are being edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Editing {
    /// Which.
    pub run: RunId,
    /// Where the writing begins.
    pub first: Label,
}

/// Id of the button that opens a run's menu.
pub fn button_id(run: &RunId) -> String {
    format!("actions-{run}")
}

/// The menu: a button that opens a list of actions.
#[component]
pub fn RunMenu(
    /// Id of its button.
    id: String,
    /// The run.
    run: OfCard,
    /// The list it stands in.
    list: RunList,
    /// The run whose labels are being edited.
    editing: RwSignal<Option<Editing>>,
) -> impl IntoView {
    let open = RwSignal::new(false);
    let place = NodeRef::<html::Div>::new();
    let button = StoredValue::new(id);
    let name = Memo::new(move |_| run.with(|run| run.as_ref().map(|run| run.name().to_owned()).unwrap_or_default()));
    close_when_left(open, place);
    let keys = move |event: KeyboardEvent| match event.key().as_str() {
        "Escape" if open.get_untracked() => {
            open.set(false);
            browser::focus(&button.get_value());
        }
        "ArrowDown" if !open.get_untracked() => {
            event.prevent_default();
            open.set(true);
        }
        key @ ("ArrowDown" | "ArrowUp" | "Home" | "End") => {
            event.prevent_default();
            move_focus(place, key);
        }
        _ => {}
    };
    // As the run is when the menu opens: what changes meanwhile must not take the focus away.
    let items = move || {
        let run = open.get().then(|| run.get_untracked()).flatten()?;
        request_animation_frame(move || move_focus(place, "Home"));
        Some(view! { <ul>{actions(&run, list, editing, open)}</ul> })
    };
    view! {
        <div class="menu" node_ref=place on:keydown=keys>
            <button
                type="button"
                class="btn ghost square"
                id=button.get_value()
                data-testid="run-menu"
                aria-label=move || format!("Actions for {}", name.get())
                aria-expanded=move || open.get().to_string()
                on:click=move |_| open.update(|open| *open = !*open)
            >
                {icon(Icon::More)}
            </button>
            {items}
        </div>
    }
}

/// A press or a step of the focus to somewhere else closes the menu.
fn close_when_left(open: RwSignal<bool>, place: NodeRef<html::Div>) {
    let is_elsewhere = move |target: Option<web_sys::EventTarget>| {
        let target = target.and_then(|target| target.dyn_into::<web_sys::Node>().ok());
        place.get_untracked().is_some_and(|place| !place.contains(target.as_ref()))
    };
    let pressed = window_event_listener(leptos::ev::pointerdown, move |event| {
        if open.get_untracked() && is_elsewhere(event.target()) {
            open.set(false);
        }
    });
    let focused = window_event_listener(leptos::ev::focusin, move |event: FocusEvent| {
        if open.get_untracked() && is_elsewhere(event.target()) {
            open.set(false);
        }
    });
    on_cleanup(move || {
        pressed.remove();
        focused.remove();
    });
}

fn move_focus(place: NodeRef<html::Div>, key: &str) {
    let Some(place) = place.get_untracked() else { return };
    // From the menu's own list on: the cards stand in a list, too.
    let Ok(found) = place.query_selector_all(":scope > ul a, :scope > ul button:not([disabled])") else { return };
    let items: Vec<web_sys::HtmlElement> =
        (0..found.length()).filter_map(|at| found.get(at)?.dyn_into().ok()).collect();
    let active = document().active_element();
    let at = items.iter().position(|item| active.as_ref() == Some(item.as_ref()));
    let last = items.len().saturating_sub(1);
    let next = match (key, at) {
        ("ArrowDown", Some(at)) if at < last => at + 1,
        ("ArrowUp", Some(at)) if at > 0 => at - 1,
        ("End" | "ArrowUp", _) => last,
        _ => 0,
    };
    if let Some(item) = items.get(next) {
        item.focus().ok();
    }
}

fn actions(
    run: &RunSummary,
    list: RunList,
    editing: RwSignal<Option<Editing>>,
    open: RwSignal<bool>,
) -> impl IntoView + use<> {
    let is_own = run.id.as_str() != RunId::REFERENCE;
    let id = run.id.clone();
    let file = format!("{}?format={}", api::path::of(api::path::EXPORT, &id), ExportFormat::Json.extension());
    let edit = move |words, testid, first| {
        let run = id.clone();
        let edit = move |_| {
            open.set(false);
            editing.set(Some(Editing { run: run.clone(), first }));
        };
        is_own.then(|| view! { <li><button type="button" data-testid=testid on:click=edit>{words}</button></li> })
    };
    view! {
        {is_own.then(|| pin_action(run, list, open))}
        {edit("Rename…", "rename", Label::Name)}
        {edit("Tags…", "edit-tags", Label::Tags)}
        {edit("Notes…", "edit-notes", Label::Notes)}
        <li><a href=at(&format!("/new?from={}", run.id)) data-testid="duplicate">"Set up with this plan"</a></li>
        <li><a href=at(&file) rel="external" download data-testid="export-run">"Export as JSON"</a></li>
        {is_own.then(|| delete_action(run, list, open))}
    }
}

fn pin_action(run: &RunSummary, list: RunList, open: RwSignal<bool>) -> impl IntoView + use<> {
    let words = if run.labels.pinned { "Unpin" } else { "Pin to the top" };
    let (id, now, name) = (run.id.clone(), run.labels.clone(), run.name().to_owned());
    let pin = move |_| {
        open.set(false);
        let (id, now, name) = (id.clone(), now.clone(), name.clone());
        // The menu goes with the press: this must not go with it.
        leptos::task::spawn_local(async move {
            let pinned = labels::pin(&id, &now).await;
            if list.said.is_disposed() {
                return;
            }
            match pinned {
                Ok(labels) => {
                    let word = if labels.pinned { "pinned to the top" } else { "no longer pinned" };
                    list.relabelled(&id, labels);
                    list.said.set(format!("{name} is {word}."));
                    request_animation_frame(move || browser::focus_if_free(&button_id(&id)));
                }
                Err(SaveError::Changed(_)) => list.trouble.set(Some(format!("{name} was not pinned: try again."))),
                Err(SaveError::Other(text)) => list.trouble.set(Some(format!("{name} was not pinned: {text}."))),
            }
        });
    };
    view! { <li><button type="button" data-testid="pin" on:click=pin>{words}</button></li> }
}

fn delete_action(run: &RunSummary, list: RunList, open: RwSignal<bool>) -> impl IntoView + use<> {
    let gone = Gone { id: run.id.clone(), name: run.name().to_owned() };
    let delete = move |_| {
        open.set(false);
        let gone = gone.clone();
        // The card goes with the answer: this must not go with it.
        leptos::task::spawn_local(async move {
            let name = gone.name.clone();
            if let Err(error) = list.bin.delete(gone).await {
                drop(list.trouble.try_set(Some(format!("{name} was not deleted: {error}."))));
            }
        });
    };
    let running = run.status == RunStatus::Running;
    view! {
        <li>
            <button type="button" class="danger" data-testid="delete" disabled=running on:click=delete>
                "Delete"
                {running.then(|| view! { <span>"Stop the run first"</span> })}
            </button>
        </li>
    }
}
