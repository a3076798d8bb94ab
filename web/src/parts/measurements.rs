//! All measurements: one row per planned cell with the reference page's columns, to be sorted by any of them.

use std::cmp::Ordering;

use leptos::prelude::*;
use speedmatrix_shared::{
    export::{self, TableRow},
    id::Phase,
    metric,
    state::{Cell, RunState},
};

use crate::live::LiveRun;

/// Columns before those of METRICS: phase, context, requests at once, status.
const LEADING: usize = 4;

/// How the rows are ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Order {
    column: usize,
    direction: Direction,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Direction {
    #[default]
    Ascending,
    Descending,
}

impl Order {
    /// The order after a press on a column's head.
    fn pressed(self, column: usize) -> Self {
        let direction = match (self.column == column, self.direction) {
            (true, Direction::Ascending) => Direction::Descending,
            _ => Direction::Ascending,
        };
        Self { column, direction }
    }

    fn aria(self, column: usize) -> Option<&'static str> {
        (self.column == column).then_some(match self.direction {
            Direction::Ascending => "ascending",
            Direction::Descending => "descending",
        })
    }

    fn arrow(self, column: usize) -> &'static str {
        match self.aria(column) {
            Some("ascending") => " ↑",
            Some(_) => " ↓",
            None => "",
        }
    }
}

/// A row with what it is sorted by.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    row: TableRow,
    numbers: Vec<Option<f64>>,
}

fn rows(state: &RunState) -> Vec<Row> {
    let with_numbers = |row: TableRow| {
        let result = state.cell(row.id).and_then(Cell::result);
        let numbers = metric::reference_columns().iter().map(|metric| result.and_then(metric.get)).collect();
        Row { row, numbers }
    };
    export::table(state).rows.into_iter().map(with_numbers).collect()
}

/// Rows come in their natural order, and sorting is stable. What was not measured goes last, whatever the direction.
fn sort(rows: &mut [Row], order: Order) {
    let turned = |ordering: Ordering| match order.direction {
        Direction::Ascending => ordering,
        Direction::Descending => ordering.reverse(),
    };
    rows.sort_by(|a, b| match order.column {
        0 => turned(a.row.id.cmp(&b.row.id)),
        1 => turned(a.row.id.context.cmp(&b.row.id.context)),
        2 => turned(a.row.id.concurrency.cmp(&b.row.id.concurrency)),
        3 => turned(a.row.cells.get(3).cmp(&b.row.cells.get(3))),
        column => {
            let value = |row: &Row| row.numbers.get(column - LEADING).copied().flatten();
            match (value(a), value(b)) {
                (Some(a), Some(b)) => turned(a.total_cmp(&b)),
                (a, b) => b.is_some().cmp(&a.is_some()),
            }
        }
    });
}

/// The stable name of a column, for tests.
fn column_key(column: usize) -> &'static str {
    match column {
        0 => "phase",
        1 => "context",
        2 => "concurrency",
        3 => "status",
        _ => metric::reference_columns().get(column - LEADING).map_or("", |metric| metric.key),
    }
}

/// The section.
#[component]
pub fn MeasurementsSection(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let order = RwSignal::new(Order::default());
    let rows = Memo::new(move |_| run.state.with(rows));
    let sorted = Memo::new(move |_| {
        let mut rows = rows.get();
        sort(&mut rows, order.get());
        rows
    });
    let columns = run.state.with_untracked(|state| export::table(state).columns);
    let head = move |(n, name): (usize, &'static str)| {
        view! {
            <th scope="col" class=align(n) aria-sort=move || order.get().aria(n) data-col=column_key(n)>
                <button type="button" on:click=move |_| order.update(|order| *order = order.pressed(n))>
                    {name}
                    {move || order.get().arrow(n)}
                </button>
            </th>
        }
    };
    view! {
        <section id="all" aria-labelledby="all-title">
            <div class="section-head">
                <div>
                    <h2 id="all-title">"All measurements"</h2>
                    <p class="say">"Latencies are medians of n requests. Total tok/s is output across all requests at once, with its 95 % interval."</p>
                </div>
            </div>
            <div class="panel table-scroll" tabindex="0" role="region" aria-label="Table of all measurements">
                <table class="table" data-testid="measurements">
                    <thead>
                        <tr>{columns.into_iter().enumerate().map(head).collect_view()}</tr>
                    </thead>
                    <tbody>
                        <For each=move || sorted.get() key=|row| (row.row.id, row.row.cells.clone(), row.row.precision.clone()) let:row>
                            {move || table_row(&row.row)}
                        </For>
                    </tbody>
                </table>
            </div>
        </section>
    }
}

const fn align(column: usize) -> &'static str {
    match column {
        0 | 3 => "text",
        4 => "strong",
        _ => "",
    }
}

fn table_row(row: &TableRow) -> impl IntoView + use<> {
    let class = (row.id.phase == Phase::Decode).then_some("decode");
    let cell = |(n, (text, precision)): (usize, (&String, &String))| {
        let sure = (!precision.is_empty()).then(|| view! { <small class="sure">{precision.clone()}</small> });
        view! { <td class=align(n) data-col=column_key(n)>{text.clone()}{sure}</td> }
    };
    view! {
        <tr class=class data-cell=row.id.to_string()>
            {row.cells.iter().zip(&row.precision).enumerate().map(cell).collect_view()}
        </tr>
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::sample;

    use super::*;

    fn check(order: Order, first: &str, last: &str) {
        let mut rows = rows(&sample::reference());
        sort(&mut rows, order);
        let id = |row: Option<&Row>| row.map(|row| row.row.id.to_string());
        assert_eq!((id(rows.first()).as_deref(), id(rows.last()).as_deref()), (Some(first), Some(last)));
    }

    #[test]
    fn rows_sort_by_numbers_and_put_missing_ones_last() {
        check(Order::default(), "prefill-8K-1", "decode-1019K-128");
        check(Order { column: 4, direction: Direction::Descending }, "prefill-16K-1", "decode-1019K-1");
        check(Order { column: 7, direction: Direction::Ascending }, "decode-32K-1", "prefill-1024K-1");
        check(Order { column: 7, direction: Direction::Descending }, "decode-1019K-128", "prefill-1024K-1");
        check(Order { column: 3, direction: Direction::Ascending }, "decode-1019K-2", "decode-1019K-64");
    }

    #[test]
    fn a_second_press_turns_the_order() {
        let once = Order::default().pressed(4);
        assert_eq!(
            (once.aria(4), once.pressed(4).aria(4), once.aria(0)),
            (Some("ascending"), Some("descending"), None)
        );
    }
}
