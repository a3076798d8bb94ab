//! Further runs beside A and B: their lines in the curves and their values in the table, without verdicts.

use leptos::prelude::*;
use speedmatrix_shared::{
    api::RunSummary,
    compare::{CellSide, ComparedCell, Comparison},
    id::CellId,
};

use super::{
    Compared, choose,
    load::{self, Load, Runs},
};
use crate::{
    base::at,
    compare_view::{CompareView, MOST_OTHERS},
    live::LiveRun,
    parts::run_card,
};

/// Letters of the further runs, and the classes of their lines.
pub const NAMES: [(&str, &str); MOST_OTHERS] = [("C", "kc"), ("D", "kd"), ("E", "ke"), ("F", "kf")];

/// A run beside A and B.
#[derive(Debug, Clone, PartialEq)]
pub struct Other {
    /// Its letter.
    pub letter: &'static str,
    /// Class of its line.
    pub class: &'static str,
    /// Its name and its cells, matched with those of A.
    comparison: Comparison,
    /// It.
    pub run: LiveRun,
}

impl Other {
    /// What it found in a cell, by the cell's name in A, or in B where only B has it.
    pub fn side(&self, id: CellId) -> Option<&CellSide> {
        self.cells().iter().find(|cell| cell.id == id)?.b.as_ref()
    }

    /// Its cells, each as B of a comparison with A.
    pub fn cells(&self) -> &[ComparedCell] {
        &self.comparison.cells
    }
}

/// A further run of the address, and how far it has come.
type Asked = (String, RwSignal<Load>);

/// The further runs of this page.
#[derive(Debug, Clone, Copy)]
pub struct Others {
    asked: Memo<Vec<Asked>>,
    /// Those that are here.
    pub here: Memo<Vec<Other>>,
}

impl Others {
    /// Asks once for each run of the address, and follows those that run.
    pub fn of(compared: Compared) -> Self {
        let view = compared.view;
        let ids = Memo::new(move |_| view.with(|view| view.others.clone()));
        // A run that stays stays open: what opens it is the page, not this list.
        let page = Owner::current().unwrap_or_default();
        let asked = Memo::new(move |before: Option<&Vec<Asked>>| {
            let open = |id: String| {
                let known = before.into_iter().flatten().find(|(known, _)| *known == id).cloned();
                known.unwrap_or_else(|| (id.clone(), page.with(|| load::open(&id))))
            };
            ids.get().into_iter().map(open).collect()
        });
        let here = Memo::new(move |_| {
            let [a, _] = compared.sides();
            let metric = view.with(|view| view.metric);
            asked.with(|asked: &Vec<Asked>| {
                let named = asked.iter().zip(NAMES);
                let other = |((_, load), (letter, class)): (&Asked, _)| match load.get() {
                    Load::Here(run) => {
                        let comparison = a.state.with(|a| run.state.with(|state| super::compare(a, state, metric)));
                        Some(Other { letter, class, comparison, run })
                    }
                    _ => None,
                };
                named.filter_map(other).collect()
            })
        });
        Self { asked, here }
    }
}

/// The further runs by name, each with a button that takes it away, and the choice of one more.
#[component]
pub fn OthersLine(
    /// The runs.
    compared: Compared,
    /// The further ones.
    others: Others,
    /// All runs.
    runs: Runs,
) -> impl IntoView {
    let view = compared.view;
    let shown = move |((id, load), (letter, class)): (Asked, (&'static str, &'static str))| {
        let own = id.clone();
        let name = move || match load.get() {
            Load::Here(run) => run.state.with(|state| runs.name(&state.id).unwrap_or_else(|| state.title())),
            Load::Asking => "being loaded…".to_owned(),
            Load::NotFound => format!("there is no run \"{own}\" here"),
            Load::Failed(text) => text,
        };
        let address = move || match load.get() {
            Load::Here(run) => Some(run.state.with(|state| at(&run_card::address(&state.id)))),
            _ => None,
        };
        let said = name.clone();
        let take_away = move |_| view.update(|view| view.others.retain(|other| *other != id));
        view! {
            <li class=class data-testid=format!("side-{letter}")>
                <b class="letter">{letter}</b>
                <a href=address><bdi>{name}</bdi></a>
                <button type="button" class="btn ghost" data-testid=format!("take-away-{letter}") on:click=take_away>
                    "Take away"
                    <span class="sr">{said}</span>
                </button>
            </li>
        }
    };
    let listed = move || others.asked.get().into_iter().zip(NAMES).map(shown).collect_view();
    let says = move || {
        let is_any = others.asked.with(|asked| !asked.is_empty());
        is_any.then_some("In the curves and the table of all cells; verdicts are between A and B alone.")
    };
    view! {
        <div class="others" data-testid="others">
            <ul>{listed}</ul>
            <Further view runs/>
            <p class="muted">{says}</p>
        </div>
    }
}

/// The choice of one more run; nothing where there is none, or no room for it.
#[component]
fn Further(view: RwSignal<CompareView>, runs: Runs) -> impl IntoView {
    let is_free = move |run: &&RunSummary| view.with(|view| !view.names(run.id.as_str()));
    let option = |run: &RunSummary| view! { <option value=run.id.to_string()>{choose::words(run)}</option> };
    let options = move || runs.all.with(|all| all.iter().flatten().filter(is_free).map(option).collect_view());
    let has_room = Memo::new(move |_| {
        let is_any_left = runs.all.with(|all| all.iter().flatten().any(|run| is_free(&run)));
        is_any_left && view.with(|view| view.others.len() < MOST_OTHERS)
    });
    let add = move |event: leptos::ev::Event| {
        let id = event_target_value(&event);
        // It asks again, whatever was chosen.
        event_target::<web_sys::HtmlSelectElement>(&event).set_value("");
        view.update(|view| view.add(id));
    };
    move || {
        has_room.get().then(|| {
            view! {
                <label class="select">
                    "Also show"
                    <select data-testid="also-show" on:change=add>
                        <option value="" selected>"a further run…"</option>
                        {options}
                    </select>
                </label>
            }
        })
    }
}
