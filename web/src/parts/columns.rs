//! Which columns the table of all measurements has: every number of METRICS, by what it is about, with its interval and
//! its n.

use leptos::{ev::KeyboardEvent, prelude::*};
use speedmatrix_shared::{
    export::column::Column,
    metric::{Group, Metric},
};

use crate::{browser, table_view::TableView};

/// Id of the button that opens the choice.
const BUTTON: &str = "columns-button";

/// The button and what it opens.
#[component]
pub fn ColumnChoice(
    /// What the table shows.
    view: RwSignal<TableView>,
) -> impl IntoView {
    let open = RwSignal::new(false);
    let close_on_escape = move |event: KeyboardEvent| {
        if event.key() == "Escape" && open.get_untracked() {
            open.set(false);
            browser::focus(BUTTON);
        }
    };
    let count = move || view.with(|view| view.columns().len());
    view! {
        <div class="menu" on:keydown=close_on_escape>
            <button
                type="button"
                class="btn"
                id=BUTTON
                data-testid="columns"
                aria-expanded=move || open.get().to_string()
                aria-controls="columns-choice"
                on:click=move |_| open.update(|open| *open = !*open)
            >
                {move || format!("Columns ({})", count())}
            </button>
            {move || open.get().then(|| view! { <Choice view/> })}
        </div>
    }
}

#[component]
fn Choice(view: RwSignal<TableView>) -> impl IntoView {
    let group = move |group: Group| {
        view! {
            <fieldset>
                <legend>{group.label()}</legend>
                {group.metrics().map(|metric| view! { <Line view metric/> }).collect_view()}
            </fieldset>
        }
    };
    view! {
        <div class="columns panel" id="columns-choice" role="group" aria-label="Columns of the table" data-testid="columns-choice">
            <div class="btns">
                <button type="button" class="btn" data-testid="columns-standard" on:click=move |_| view.update(TableView::show_standard)>
                    "The usual columns"
                </button>
                <button type="button" class="btn" data-testid="columns-all" on:click=move |_| view.update(TableView::show_all)>
                    "All columns"
                </button>
            </div>
            <div class="groups">{Group::ALL.map(group).collect_view()}</div>
        </div>
    }
}

/// A number, with its interval and its n on the same line.
#[component]
fn Line(view: RwSignal<TableView>, metric: &'static Metric) -> impl IntoView {
    let box_of = move |column: Column| {
        let (key, words, says) = match column {
            Column::HalfWidth(metric) => {
                (column.key(), "± 95 %", format!("{}: half the width of its 95 % interval", metric.column))
            }
            Column::Samples(metric) => (column.key(), "n", format!("{}: how many samples it rests on", metric.column)),
            _ => (column.key(), metric.column, metric.label.to_owned()),
        };
        let checked = move || view.with(|view| view.columns().contains(&column));
        let name = (words != metric.column).then(|| says.clone());
        view! {
            <label title=says>
                <input
                    type="checkbox"
                    aria-label=name
                    data-testid=format!("column-{key}")
                    prop:checked=checked
                    on:change=move |_| view.update(|view| view.toggle(column))
                />
                {words}
            </label>
        }
    };
    view! { <div class="line">{Column::of(metric).into_iter().map(box_of).collect_view()}</div> }
}
