//! The requests of a cell as a table, page by page, to be sorted and filtered.

use std::{cmp::Ordering, sync::Arc};

use leptos::prelude::*;
use speedmatrix_shared::{
    detail::requests::{Columns, Row, RowEnd},
    format,
    plan::Load,
};

use crate::chart::lanes::Lanes;

/// Rows of a page.
const PAGE: usize = 50;

/// The requests of a cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Requests {
    /// One by one, in the order in which they were due.
    pub rows: Vec<Row>,
    /// The same on lines.
    pub lanes: Lanes,
    /// As they came.
    columns: Columns,
}

impl Requests {
    /// Requests as the agent sent them.
    pub fn of(columns: Columns, load: Load) -> Self {
        let rows = columns.rows();
        Self { lanes: Lanes::of(&rows, load), rows, columns }
    }

    /// How many there are beyond those that were sent.
    fn left_out(&self) -> u64 {
        self.columns.total.saturating_sub(self.rows.len() as u64)
    }

    /// A request in words.
    pub fn words(&self, row: usize) -> String {
        let Some(request) = self.rows.get(row) else { return String::new() };
        let waited = request.sent_s.map(|sent| sent - request.due_s).filter(|secs| *secs >= 0.001);
        let parts = [
            Some(format!("Slot {}", request.slot)),
            Some(format!("due at {}", format::moment(request.due_s, 0.01))),
            waited.map(|secs| format!("sent {} later", format::duration_words(Some(secs)))),
            request.ttft_s().map(|secs| format!("first token after {}", format::duration_words(Some(secs)))),
            text_s(request).map(|secs| format!("text for {}", format::duration_words(Some(secs)))),
            Some(format::tokens(Some(request.tokens))),
            request.tok_s().map(|rate| format!("{} tok/s", format::rate(Some(rate)))),
            Some(self.columns.failure_words(request.end).unwrap_or_else(|| request.end.label().to_owned())),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

fn text_s(request: &Row) -> Option<f64> {
    Some(request.last_s? - request.first_s?)
}

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Slot,
    Due,
    Sent,
    Ttft,
    Text,
    Tokens,
    Rate,
    End,
}

impl Column {
    const ALL: [Self; 8] =
        [Self::Due, Self::Slot, Self::Sent, Self::Ttft, Self::Text, Self::Tokens, Self::Rate, Self::End];

    const fn head(self) -> &'static str {
        match self {
            Self::Due => "Due at",
            Self::Slot => "Slot",
            Self::Sent => "Sent after",
            Self::Ttft => "TTFT",
            Self::Text => "Text for",
            Self::Tokens => "Tokens",
            Self::Rate => "tok/s",
            Self::End => "End",
        }
    }

    fn number(self, row: &Row) -> Option<f64> {
        match self {
            Self::Due => Some(row.due_s),
            Self::Slot => Some(f64::from(row.slot)),
            Self::Sent => row.sent_s.map(|sent| sent - row.due_s),
            Self::Ttft => row.ttft_s(),
            Self::Text => text_s(row),
            Self::Tokens => Some(row.tokens as f64),
            Self::Rate => row.tok_s(),
            Self::End => Some(match row.end {
                RowEnd::Failed(place) => place as f64,
                RowEnd::Completed => 1e9,
                RowEnd::Cut => 2e9,
            }),
        }
    }

    fn text(self, row: &Row) -> String {
        let number = self.number(row);
        match self {
            Self::Due => format::moment(row.due_s, 0.001),
            Self::Slot | Self::Tokens => format::whole(number),
            Self::Sent | Self::Ttft => format::between_tokens(number),
            Self::Text => format::seconds(number),
            Self::Rate => format::rate(number),
            Self::End => row.end.label().to_owned(),
        }
    }

    const fn align(self) -> &'static str {
        match self {
            Self::End => "text",
            _ => "",
        }
    }
}

/// Which requests are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Wanted {
    #[default]
    All,
    Completed,
    Cut,
    Failed,
}

impl Wanted {
    const ALL: [Self; 4] = [Self::All, Self::Completed, Self::Cut, Self::Failed];

    const fn label(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::Completed => "Completed",
            Self::Cut => "Closed at the end",
            Self::Failed => "Failed",
        }
    }

    const fn holds(self, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::Completed => matches!(row.end, RowEnd::Completed),
            Self::Cut => matches!(row.end, RowEnd::Cut),
            Self::Failed => matches!(row.end, RowEnd::Failed(_)),
        }
    }
}

/// How the rows are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Order {
    column: Column,
    falling: Ordering,
}

impl Order {
    fn pressed(self, column: Column) -> Self {
        let same = self.column == column;
        Self { column, falling: if same { self.falling.reverse() } else { Ordering::Less } }
    }

    fn aria(self, column: Column) -> Option<&'static str> {
        let word = if self.falling == Ordering::Less { "ascending" } else { "descending" };
        (self.column == column).then_some(word)
    }

    fn arrow(self, column: Column) -> &'static str {
        match self.aria(column) {
            None => "",
            Some("ascending") => " ↑",
            Some(_) => " ↓",
        }
    }
}

/// Places of the wanted rows in order. What was not measured goes last, whatever the direction.
fn ordered(rows: &[Row], wanted: Wanted, order: Order) -> Vec<usize> {
    let held = rows.iter().enumerate().filter(|(_, row)| wanted.holds(row));
    let mut places: Vec<(usize, Option<f64>)> = held.map(|(place, row)| (place, order.column.number(row))).collect();
    places.sort_by(|(_, a), (_, b)| match (a, b) {
        (Some(a), Some(b)) if order.falling == Ordering::Less => a.total_cmp(b),
        (Some(a), Some(b)) => b.total_cmp(a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    places.into_iter().map(|(place, _)| place).collect()
}

/// The table.
#[component]
pub fn RequestList(
    /// The requests.
    requests: Arc<Requests>,
) -> impl IntoView {
    let wanted = RwSignal::new(Wanted::default());
    let order = RwSignal::new(Order { column: Column::Due, falling: Ordering::Less });
    let page = RwSignal::new(0_usize);
    let places = {
        let requests = Arc::clone(&requests);
        Memo::new(move |_| ordered(&requests.rows, wanted.get(), order.get()))
    };
    let filters = filters(&requests, wanted, page);
    let head = move |column: Column| {
        let press = move |_| {
            order.update(|order| *order = order.pressed(column));
            page.set(0);
        };
        view! {
            <th scope="col" class=column.align() aria-sort=move || order.get().aria(column)>
                <button type="button" on:click=press>{column.head()}{move || order.get().arrow(column)}</button>
            </th>
        }
    };
    let left_out = requests.left_out();
    let rows = move || {
        let from = page.get() * PAGE;
        let row = |&place: &usize| {
            let row = requests.rows.get(place)?;
            let failed = requests.columns.failure_words(row.end);
            let cell = |column: Column| {
                let text = failed.clone().filter(|_| column == Column::End).unwrap_or_else(|| column.text(row));
                view! { <td class=column.align()>{text}</td> }
            };
            Some(view! { <tr>{Column::ALL.map(cell).collect_view()}</tr> })
        };
        places.with(|places| places.iter().skip(from).take(PAGE).filter_map(row).collect::<Vec<_>>())
    };
    view! {
        <section class="part" aria-labelledby="list-title" data-testid="requests">
            <header>
                <h2 id="list-title">"Requests"</h2>
                <p>{(left_out > 0).then(|| format!("The first ones; {} more are not listed.", format::count(Some(left_out))))}</p>
                <div class="seg" role="group" aria-label="Which requests">{filters}</div>
            </header>
            <div class="table-scroll" tabindex="0" role="region" aria-label="Table of requests">
                <table class="table" data-testid="request-table">
                    <caption class="sr">"Requests of the cell; times count from the begin of the ramp"</caption>
                    <thead><tr>{Column::ALL.map(head).collect_view()}</tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
            {pages(page, places)}
        </section>
    }
}

/// A button for each kind of request that there is, with its number.
fn filters(requests: &Requests, wanted: RwSignal<Wanted>, page: RwSignal<usize>) -> impl IntoView + use<> {
    let count = |wanted: Wanted| requests.rows.iter().filter(|row| wanted.holds(row)).count();
    let there = Wanted::ALL.map(|this| (this, count(this))).into_iter().filter(|(_, count)| *count > 0);
    let filter = |(this, count): (Wanted, usize)| {
        let choose = move |_| {
            wanted.set(this);
            page.set(0);
        };
        let words = format!("{} {}", this.label(), format::count(Some(count as u64)));
        view! {
            <button type="button" aria-pressed=move || (wanted.get() == this).to_string() on:click=choose>{words}</button>
        }
    };
    there.map(filter).collect::<Vec<_>>()
}

/// From page to page.
fn pages(page: RwSignal<usize>, places: Memo<Vec<usize>>) -> impl IntoView {
    let pages = move || places.with(Vec::len).div_ceil(PAGE).max(1);
    let words = move || {
        let count = |number: usize| format::count(Some(number as u64));
        format!("Page {} of {}", count(page.get() + 1), count(pages()))
    };
    let earlier = move |_| page.update(|page| *page = page.saturating_sub(1));
    view! {
        <div class="btns pages">
            <button type="button" class="btn" disabled=move || page.get() == 0 on:click=earlier>"Earlier page"</button>
            <span data-testid="page">{words}</span>
            <button
                type="button"
                class="btn"
                disabled=move || { page.get() + 1 >= pages() }
                on:click=move |_| page.update(|page| *page += 1)
            >
                "Next page"
            </button>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Columns {
        Columns {
            total: 5,
            slot: vec![0, 1, 0],
            due: vec![0, 5_000, 2_000_000],
            sent: vec![Some(10), None, Some(2_000)],
            first: vec![Some(336_000), None, Some(90_000)],
            last: vec![Some(2_000_000), None, Some(500_000)],
            ended: vec![2_336_500, 1_000, 600_000],
            end: vec![0, 2, 1],
            tokens: vec![101, 0, 21],
            failures: vec![speedmatrix_shared::trace::RequestFailure {
                kind: speedmatrix_shared::trace::FailureKind::Connect,
                http_status: None,
                text: "refused".into(),
            }],
        }
    }

    #[test]
    fn a_request_is_said_in_words() {
        let requests = Requests::of(columns(), Load::Sustained);
        assert_eq!(
            requests.words(0),
            "Slot 0, due at 0.00 s, first token after 336 ms, text for 2 s, 101 tokens, 50.0 tok/s, completed"
        );
        assert_eq!(requests.words(1), "Slot 1, due at 0.01 s, 0 tokens, could not connect: refused");
        assert!(requests.words(2).contains("sent 2 ms later"), "{}", requests.words(2));
        assert_eq!((requests.left_out(), requests.words(9)), (2, String::new()));
    }

    #[test]
    fn rows_sort_and_what_is_missing_goes_last() {
        let rows = columns().rows();
        let check = |wanted, column, falling, places: &[usize]| {
            assert_eq!(ordered(&rows, wanted, Order { column, falling }), places, "{column:?}");
        };
        check(Wanted::All, Column::Due, Ordering::Less, &[0, 1, 2]);
        check(Wanted::All, Column::Ttft, Ordering::Less, &[2, 0, 1]);
        check(Wanted::All, Column::Ttft, Ordering::Greater, &[0, 2, 1]);
        check(Wanted::Failed, Column::Due, Ordering::Less, &[1]);
        let order = Order { column: Column::Due, falling: Ordering::Less };
        assert_eq!(order.pressed(Column::Due).aria(Column::Due), Some("descending"));
        assert_eq!(order.pressed(Column::Rate).aria(Column::Due), None);
    }
}
