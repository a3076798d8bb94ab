//! All measurements: one row per planned cell. Any column of METRICS can be shown and sorted by, rows can be left out,
//! and the table can be taken along as CSV. All of it stands in the address.

use leptos::{ev::Event, prelude::*};
use leptos_router::hooks::{use_location, use_query_map};
use speedmatrix_shared::{
    export::{self, column::Column, csv},
    format,
    id::Phase,
    label::Labels,
    metric::Metric,
    plan::Load,
    state::{Cell, RunState},
};

use super::{
    columns::ColumnChoice,
    icon::{Icon, icon},
    notes::RunLabels,
};
use crate::{
    base::{at, within},
    browser, history,
    live::LiveRun,
    opening::open_from,
    query,
    table_view::{Facet, TableView},
};

/// Stable name of the table.
const TABLE: &str = "measurements";

/// What is shown of a cell in a column.
#[derive(Debug, Clone, PartialEq)]
struct Shown {
    column: Column,
    text: String,
    /// How sure the number is, where its own columns do not say so.
    sure: String,
}

fn row(state: &RunState, cell: &Cell, columns: &[Column]) -> Vec<Shown> {
    let shown = |column: &Column| Shown {
        column: *column,
        text: column.text(state, cell),
        sure: sure(state, cell, *column, columns),
    };
    columns.iter().map(shown).collect()
}

fn sure(state: &RunState, cell: &Cell, column: Column, columns: &[Column]) -> String {
    let is_told = |metric: &'static Metric| {
        [Column::HalfWidth(metric), Column::Samples(metric)].iter().any(|more| columns.contains(more))
    };
    match (column, cell.result()) {
        (Column::Value(metric), Some(result)) if !is_told(metric) => metric.precision(result, state.origin),
        _ => String::new(),
    }
}

/// The view of this page's table, which the address follows. Other parts of the page have names in the address, too.
fn in_address() -> RwSignal<TableView> {
    let query = use_query_map();
    let location = use_location();
    let addressed = Memo::new(move |_| query.with(|query| TableView::read(|key| query.get(key))));
    let view = RwSignal::new(addressed.get_untracked());
    history::keep_at(view, addressed, TableView::query, move |own| {
        let others = query::without(&location.search.get_untracked(), &TableView::KEYS);
        format!("{}{}", within(&location.pathname.get_untracked()), query::appended(&others, own))
    });
    view
}

/// The section.
#[component]
pub fn MeasurementsSection(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let view = in_address();
    let rows = run.report(move |state| view.with(|view| view.places(state)));
    let columns = Memo::new(move |_| view.with(TableView::columns));
    let load = run.state.with_untracked(|state| state.plan.load());
    let is_empty = Memo::new(move |_| rows.with(Vec::is_empty));
    let open = open_from(TABLE);
    view! {
        <section id="all" aria-labelledby="all-title">
            <div class="section-head">
                <div>
                    <h2 id="all-title">"All measurements"</h2>
                    <p class="say">"Latencies are medians of n requests. Total tok/s is output across all requests at once, with its 95 % interval."</p>
                </div>
            </div>
            <Tools run view rows/>
            <div class="panel table-scroll tall" tabindex="0" role="region" aria-label="Table of all measurements">
                <table class="table rows" data-testid=TABLE on:click=open>
                    <thead>
                        <tr>{move || columns.get().into_iter().map(|column| head(column, load, view)).collect_view()}</tr>
                    </thead>
                    <tbody>
                        <For each=move || rows.get() key=|place| *place let:place><Row run place columns/></For>
                    </tbody>
                </table>
                {move || is_empty.get().then(|| view! { <NoRow view/> })}
            </div>
        </section>
    }
}

fn head(column: Column, load: Load, view: RwSignal<TableView>) -> impl IntoView {
    let order = move || view.with(|view| view.order);
    let title = match column {
        Column::Value(metric) | Column::HalfWidth(metric) | Column::Samples(metric) => metric.formula,
        _ => "",
    };
    let press = move |_| view.update(|view| view.order = view.order.pressed(column));
    view! {
        <th scope="col" class=align(column) aria-sort=move || order().aria(column) data-col=column.key()>
            <button type="button" title=title on:click=press>
                {column.head(load)}
                <span aria-hidden="true">{move || order().arrow(column)}</span>
            </button>
        </th>
    }
}

const fn align(column: Column) -> &'static str {
    match column {
        Column::Phase | Column::Status => "text",
        _ => "",
    }
}

/// The row of the cell at this place; drawn again only when something it shows has changed.
#[component]
fn Row(run: LiveRun, place: usize, columns: Memo<Vec<Column>>) -> impl IntoView {
    let shown = Memo::new(move |_| run.cell(place, |state, cell| columns.with(|columns| row(state, cell, columns))));
    let (id, address) = run
        .state
        .with_untracked(|state| state.cells.get(place).map(|cell| (cell.id, query::whole_cell(&state.id, cell.id))))
        .unzip();
    let class = id.is_some_and(|id| id.phase == Phase::Decode).then_some("decode");
    let (name, address) = (id.map(|id| id.to_string()), at(&address.unwrap_or_default()));
    let (opens, to) = (name.clone(), StoredValue::new(address));
    let one = move |Shown { column, text, sure }: Shown| {
        let key = column.key();
        if column == Column::Context {
            return view! {
                <th scope="row" data-col=key>
                    <a href=to.get_value() data-opens=opens.clone() title="Look at it closely">{text}</a>
                </th>
            }
            .into_any();
        }
        let class = if key == "total_tok_s" { "strong" } else { align(column) };
        let sure = (!sure.is_empty()).then(|| view! { <small class="sure">{sure}</small> });
        view! { <td class=class data-col=key>{text}{sure}</td> }.into_any()
    };
    view! {
        <tr class=class data-cell=name>
            {move || shown.get().into_iter().flatten().map(&one).collect_view()}
        </tr>
    }
}

/// What is above the table: which rows, which columns, and the way to take them along.
#[component]
fn Tools(run: LiveRun, view: RwSignal<TableView>, rows: Memo<Vec<usize>>) -> impl IntoView {
    let labels: RunLabels = expect_context();
    let all = run.state.with_untracked(|state| state.cells.len());
    let is_filtered = Memo::new(move |_| view.with(TableView::is_filtered));
    let count = move || count_words(rows.with(Vec::len), all);
    let download = move |_| {
        run.state.with_untracked(|state| {
            let (file, name) = view.with_untracked(|view| as_file(state, &labels.now_untracked(), view));
            browser::save_as(&name, "text/csv", &file);
        });
    };
    view! {
        <div class="table-tools" role="search" aria-label="Rows and columns of the table">
            <input
                class="input find"
                type="search"
                dir="auto"
                data-testid="find-rows"
                aria-label="Search the rows"
                placeholder="Search the rows…"
                autocomplete="off"
                spellcheck="false"
                prop:value=move || view.with(|view| view.text.clone())
                on:input=move |event: Event| view.update(|view| view.text = event_target_value(&event))
            />
            {Facet::ALL.map(|facet| view! { <Choose run view facet/> }).collect_view()}
            {move || is_filtered.get().then(|| view! { <ShowAll view class="btn ghost"/> })}
            <p class="count" role="status" data-testid="row-count">{count}</p>
            <ColumnChoice view/>
            <button type="button" class="btn" data-testid="table-csv" on:click=download>
                {icon(Icon::Download)}
                "Download CSV"
            </button>
        </div>
    }
}

/// The table as it is shown, and a name for the file.
fn as_file(state: &RunState, labels: &Labels, view: &TableView) -> (String, String) {
    let file = csv::shown(state, &view.columns(), &view.cells(state));
    (file, format!("{}-table.csv", export::file_stem(state, labels)))
}

fn count_words(shown: usize, all: usize) -> String {
    let noun = if all == 1 { "row" } else { "rows" };
    let count = |n: usize| format::count(Some(n as u64));
    if shown == all { format!("{} {noun}", count(all)) } else { format!("{} of {} {noun}", count(shown), count(all)) }
}

#[component]
fn Choose(run: LiveRun, view: RwSignal<TableView>, facet: Facet) -> impl IntoView {
    let chosen = Memo::new(move |_| view.with(|view| view.chosen(facet).map(ToOwned::to_owned)));
    let options = run.report(move |state| facet.options(state, chosen.get().as_deref()));
    // One value that all rows share is no choice.
    let is_choice = Memo::new(move |_| options.with(Vec::len) > 1 || chosen.with(Option::is_some));
    let label = facet.column().head(run.state.with_untracked(|state| state.plan.load()));
    let option = move |value: String| {
        let (own, words) = (value.clone(), value.clone());
        let selected = move || chosen.with(|chosen| chosen.as_ref() == Some(&own));
        view! { <option value=value prop:selected=selected>{words}</option> }
    };
    let choice = move || {
        view! {
            <label class="select">
                {label.clone()}
                <select
                    data-testid=format!("rows-{}", facet.key())
                    on:change=move |event| view.update(|view| view.choose(facet, event_target_value(&event)))
                >
                    <option value="" prop:selected=move || chosen.with(Option::is_none)>"All"</option>
                    {move || options.get().into_iter().map(option).collect_view()}
                </select>
            </label>
        }
    };
    move || is_choice.get().then(choice.clone())
}

#[component]
fn ShowAll(view: RwSignal<TableView>, class: &'static str) -> impl IntoView {
    let show = move |_| view.update(TableView::show_all_rows);
    view! { <button type="button" class=class data-testid="all-rows" on:click=show>"Show all rows"</button> }
}

#[component]
fn NoRow(view: RwSignal<TableView>) -> impl IntoView {
    view! {
        <div class="pad no-row" data-testid="no-row">
            <p>"No row matches what is searched and chosen."</p>
            <ShowAll view class="btn primary"/>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::sample;

    use super::*;

    #[test]
    fn the_file_holds_what_the_table_shows() {
        let state = sample::reference();
        let get = |key: &str| match key {
            "phase" => Some("Prefill".to_owned()),
            "sort" => Some("-context".to_owned()),
            "cols" => Some("ttft".to_owned()),
            _ => None,
        };
        let view = TableView::read(get);
        let (file, name) = as_file(&state, &Labels::default(), &view);
        let lines: Vec<&str> = file.lines().collect();
        assert_eq!(lines.first(), Some(&"Phase,Context,Requests at once,Status,TTFT"));
        assert_eq!(lines.get(1), Some(&"Prefill,1024K,1,Valid,\"164,864 ms\""));
        assert_eq!(lines.len(), 1 + view.places(&state).len());
        assert_eq!(name, "speedmatrix-deepseek-v4-flash-dspark-on-h200-nvl-141gb-2-reference-table.csv");
    }

    #[test]
    fn rows_are_counted_in_words() {
        assert_eq!(count_words(1, 1), "1 row");
        assert_eq!(count_words(2, 1_024), "2 of 1,024 rows");
    }
}
