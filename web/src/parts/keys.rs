//! Keys that work everywhere, and the dialog that lists them. None fires while typing.

use leptos::{
    ev::{self, KeyboardEvent},
    prelude::*,
};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use wasm_bindgen::JsCast as _;

use super::{
    compare::pick::COMPARE_CHOSEN,
    icon::{Icon, icon},
};
use crate::{base::at, browser, chart::heat::FIRST_CELL, shell::Shell};

/// Id of the dialog.
const DIALOG: &str = "keys-dialog";
/// Id of the choice of metrics on the page of a run.
pub const METRIC_CHOICE: &str = "metric-choice";
/// Id of the export button on the page of a run.
pub const EXPORT_BUTTON: &str = "export-button";

/// Id of the search field above the list of runs.
pub const SEARCH: &str = "search-runs";

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Keys,
    Runs,
    NewRun,
    Theme,
    Matrix,
    Metric,
    Export,
    Search,
    Compare,
}

/// The keys as the dialog lists them.
const KEYS: [(&str, &str); 14] = [
    ("?", "This list"),
    ("g r", "Runs"),
    ("n", "New run"),
    ("c", "Compare: the chosen runs, or choose two"),
    ("t", "Light or dark"),
    ("/", "In the list of runs: search"),
    ("m", "On the page of a run: to the matrix"),
    (".", "On the page of a run: choose what the matrix shows"),
    ("e", "On the page of a run: export"),
    ("↑ ↓ ← →", "In the matrix: next cell; Home, End, Page Up and Page Down go to the ends"),
    ("Enter", "In the matrix: look at the cell closely"),
    ("[ ]", "In a cell: the one before and the one after; in its head the arrow keys lead to its neighbours"),
    ("+ − 0", "In the charts of a cell: more, less, all of its time; Shift with ← → moves"),
    ("Esc", "Close"),
];

/// What a key does, given the key before it.
fn action(key: &str, before: Option<&str>) -> Option<Action> {
    Some(match (before, key) {
        (Some("g"), "r") => Action::Runs,
        (_, "?") => Action::Keys,
        (_, "n") => Action::NewRun,
        (_, "c") => Action::Compare,
        (_, "t") => Action::Theme,
        (_, "m") => Action::Matrix,
        (_, ".") => Action::Metric,
        (_, "e") => Action::Export,
        (_, "/") => Action::Search,
        _ => return None,
    })
}

/// Whether a key press belongs to a field of text or choices.
pub fn is_typing(event: &KeyboardEvent) -> bool {
    let target = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
    target.is_some_and(|element| match element.tag_name().as_str() {
        // Nobody types into a box.
        "INPUT" => element.get_attribute("type").is_none_or(|kind| kind != "checkbox"),
        tag => matches!(tag, "TEXTAREA" | "SELECT"),
    })
}

/// Whether a key press is free to mean something on the page: nobody types, holds another key, or reads the list of keys.
pub fn is_free(event: &KeyboardEvent) -> bool {
    let held = event.ctrl_key() || event.meta_key() || event.alt_key();
    !held && !is_typing(event) && !is_dialog_open()
}

fn dialog() -> Option<web_sys::HtmlDialogElement> {
    document().get_element_by_id(DIALOG)?.dyn_into().ok()
}

/// Whether any dialog stands over the page: its keys are its own.
fn is_dialog_open() -> bool {
    document().query_selector("dialog[open]").is_ok_and(|open| open.is_some())
}

/// Opens the list of keys.
pub fn open_keys() {
    if let Some(dialog) = dialog().filter(|dialog| !dialog.open()) {
        dialog.show_modal().ok();
    }
}

/// Listens for the keys, and holds their dialog.
#[component]
pub fn Keys() -> impl IntoView {
    let theme = Shell::of_app().theme;
    let navigate = use_navigate();
    let before = StoredValue::new(None::<String>);
    let handle = window_event_listener(ev::keydown, move |event| {
        if !is_free(&event) {
            return;
        }
        let key = event.key();
        let action = action(&key, before.get_value().as_deref());
        before.set_value(Some(key));
        let Some(action) = action else { return };
        event.prevent_default();
        match action {
            Action::Keys => open_keys(),
            // Resolved by the router, the root would lose the slash at its end, and with it its route.
            Action::Runs => navigate(&at("/"), NavigateOptions { resolve: false, ..NavigateOptions::default() }),
            Action::NewRun => navigate("/new", NavigateOptions::default()),
            Action::Theme => theme.update(|theme| *theme = theme.switched()),
            Action::Matrix => browser::focus(FIRST_CELL),
            Action::Metric => browser::focus(METRIC_CHOICE),
            Action::Export => browser::focus(EXPORT_BUTTON),
            Action::Search => browser::focus(SEARCH),
            Action::Compare if document().get_element_by_id(COMPARE_CHOSEN).is_some() => browser::focus(COMPARE_CHOSEN),
            Action::Compare => navigate("/compare", NavigateOptions::default()),
        }
    });
    on_cleanup(move || handle.remove());
    let rows: Vec<_> = KEYS
        .into_iter()
        .map(|(key, does)| {
            view! {
                <div>
                    <dt><kbd>{key}</kbd></dt>
                    <dd>{does}</dd>
                </div>
            }
        })
        .collect();
    view! {
        <dialog id=DIALOG class="box" aria-labelledby="keys-title">
            <header>
                <h2 id="keys-title">"Keys"</h2>
                <form method="dialog">
                    <button class="btn ghost square" aria-label="Close">{icon(Icon::Cross)}</button>
                </form>
            </header>
            <dl>{rows}</dl>
        </dialog>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_sequences() {
        assert_eq!(action("r", Some("g")), Some(Action::Runs));
        assert_eq!(action("r", None), None);
        assert_eq!(action("n", Some("g")), Some(Action::NewRun));
        assert_eq!(action("x", None), None);
    }
}
