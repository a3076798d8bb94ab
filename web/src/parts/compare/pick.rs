//! Choosing two runs in the list of runs: a box on each card, and the bar that compares them.

use leptos::prelude::*;
use speedmatrix_shared::{api::RunSummary, id::RunId};

use crate::{base::at, browser, compare_view::address, parts::run_list::RunList};

/// A comparison takes as many runs.
const PAIR: usize = 2;
/// Id of the link that compares the chosen runs; the key `c` goes there.
pub const COMPARE_CHOSEN: &str = "compare-chosen";

/// The runs that are chosen to be compared.
#[derive(Debug, Clone, Copy)]
pub struct Picked(RwSignal<Vec<RunId>>);

impl Picked {
    /// None yet, for all cards of this page.
    pub fn provide() -> Self {
        let picked = Self(RwSignal::new(Vec::new()));
        provide_context(picked);
        picked
    }

    fn toggle(self, id: &RunId) {
        self.0.update(|ids| match ids.iter().position(|one| one == id) {
            Some(place) => drop(ids.remove(place)),
            None if ids.len() < PAIR => ids.push(id.clone()),
            None => {}
        });
    }

    /// Those that are still in the list, the older one first.
    fn present(self, list: RunList) -> Vec<RunSummary> {
        let mut runs: Vec<RunSummary> =
            list.present().into_iter().filter(|run| self.0.with(|ids| ids.contains(&run.id))).collect();
        runs.sort_by(|one, other| (one.started_unix_ms, &one.id).cmp(&(other.started_unix_ms, &other.id)));
        runs
    }
}

/// The box on a card.
#[component]
pub fn PickBox(
    /// Whose card it is.
    id: RunId,
    /// Its name.
    name: Memo<Option<String>>,
) -> impl IntoView {
    let picked: Option<Picked> = use_context();
    picked.map(|picked| {
        let id = StoredValue::new(id);
        let is_picked = Memo::new(move |_| picked.0.with(|ids| id.with_value(|id| ids.contains(id))));
        let is_full = Memo::new(move |_| picked.0.with(Vec::len) >= PAIR);
        view! {
            <label class="pick">
                <input
                    type="checkbox"
                    data-testid="pick"
                    prop:checked=move || is_picked.get()
                    disabled=move || is_full.get() && !is_picked.get()
                    on:change=move |_| id.with_value(|id| picked.toggle(id))
                />
                "Compare"
                <span class="sr">{move || name.get()}</span>
            </label>
        }
    })
}

/// What is chosen, and the way to the comparison.
#[component]
pub fn CompareBar(
    /// The list.
    list: RunList,
    /// What is chosen.
    picked: Picked,
) -> impl IntoView {
    let runs = Memo::new(move |_| picked.present(list));
    let is_open = Memo::new(move |_| runs.with(|runs| !runs.is_empty()));
    let words = move || {
        runs.with(|runs| match runs.as_slice() {
            [] => String::new(),
            [one] => format!("{} is chosen. Choose one more run to compare it with.", one.name()),
            [a, b, ..] => format!("Compare {} (A) with {} (B)", a.name(), b.name()),
        })
    };
    let link = move || {
        runs.with(|runs| match runs.as_slice() {
            [a, b, ..] => Some(address(a.id.as_str(), b.id.as_str())),
            _ => None,
        })
    };
    let clear = move |_| {
        picked.0.set(Vec::new());
        browser::focus_content();
    };
    let bar = move || {
        is_open.get().then(|| {
            view! {
                <div class="compare-bar panel" role="group" aria-label="Runs chosen to compare" data-testid="compare-bar">
                    <p><bdi>{words}</bdi></p>
                    <div class="btns">
                        {move || link().map(|href| view! {
                            <a class="btn primary" href=at(&href) id=COMPARE_CHOSEN data-testid="compare-chosen">"Compare"</a>
                        })}
                        <button type="button" class="btn ghost" data-testid="clear-chosen" on:click=clear>"Clear"</button>
                    </div>
                </div>
            }
        })
    };
    view! {
        <p class="sr" role="status">{words}</p>
        {bar}
    }
}
