//! The biggest changes, and all cells as a table: both values, the change with its interval, the verdict and why.

use leptos::prelude::*;
use speedmatrix_shared::{
    compare::{ComparedCell, Comparison, export},
    format,
    id::CellId,
};

use super::{Compared, cell::side_words, heat::cell_address, others::Other};
use crate::{
    base::at,
    compare_view::{Column, CompareView},
    table_view::Direction,
};

/// As many of the biggest changes are told.
const BIGGEST: usize = 6;

/// A cell in one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Row {
    id: CellId,
    name: String,
    address: String,
    a: String,
    b: String,
    /// What the further runs found.
    others: Vec<String>,
    change: String,
    interval: String,
    glyph: &'static str,
    verdict: String,
    why: String,
}

impl Row {
    fn of(comparison: &Comparison, others: &[Other], cell: &ComparedCell) -> Self {
        let metric = comparison.metric;
        Self {
            id: cell.id,
            name: export::name(cell),
            address: cell_address(comparison, cell),
            a: side_words(cell.a.as_ref(), metric),
            b: side_words(cell.b.as_ref(), metric),
            others: others.iter().map(|other| side_words(other.side(cell.id), metric)).collect(),
            change: if cell.verdict.is_compared() { export::change(cell) } else { format::MISSING.to_owned() },
            interval: export::interval(cell),
            glyph: cell.verdict.glyph(),
            verdict: cell.label(metric),
            why: export::why(cell),
        }
    }
}

/// The biggest changes; nothing where there is none.
#[component]
pub fn Biggest(
    /// The runs.
    compared: Compared,
) -> impl IntoView {
    let rows = Memo::new(move |_| {
        compared
            .comparison
            .with(|it| it.biggest(BIGGEST).into_iter().map(|cell| Row::of(it, &[], cell)).collect::<Vec<_>>())
    });
    let one = |row: Row| {
        let interval = (row.interval != format::MISSING).then(|| format!("{}, ", row.interval));
        view! {
            <li>
                <span class="by"><i class="glyph" aria-hidden="true">{row.glyph}</i>" "{row.change}</span>
                <span class="cell"><a href=at(&row.address)>{row.name}</a></span>
                <span class="muted">{interval}{row.verdict}</span>
                <span>{row.a}" → "{row.b}</span>
            </li>
        }
    };
    let has_any = Memo::new(move |_| rows.with(|rows| !rows.is_empty()));
    move || {
        has_any.get().then(|| {
            view! {
                <section id="biggest" aria-labelledby="biggest-title">
                    <div class="section-head"><h2 id="biggest-title">"Biggest changes"</h2></div>
                    <ol class="panel biggest" data-testid="biggest">{move || rows.get().into_iter().map(one).collect_view()}</ol>
                </section>
            }
        })
    }
}

fn rows(comparison: &Comparison, others: &[Other], view: &CompareView) -> Vec<Row> {
    let mut cells: Vec<&ComparedCell> = comparison.cells.iter().filter(|cell| view.shows(cell.verdict)).collect();
    cells.sort_by(|one, other| view.order.of(one, other));
    cells.into_iter().map(|cell| Row::of(comparison, others, cell)).collect()
}

/// All cells that the filter lets through.
#[component]
pub fn TableSection(
    /// The runs.
    compared: Compared,
    /// The further ones.
    others: Memo<Vec<Other>>,
) -> impl IntoView {
    let Compared { view, comparison, .. } = compared;
    let rows = Memo::new(move |_| others.with(|others| comparison.with(|it| view.with(|view| rows(it, others, view)))));
    let letters = Memo::new(move |_| others.with(|others| others.iter().map(|other| other.letter).collect::<Vec<_>>()));
    let heads = move || letters.get().into_iter().map(|letter| view! { <th scope="col">{letter}</th> }).collect_view();
    let count = move || {
        let (shown, all) = (rows.with(Vec::len), comparison.with(|it| it.cells.len()));
        let [shown, total] = [shown, all].map(|count| format::count(Some(count as u64)));
        if shown == total { format!("{total} cells") } else { format!("{shown} of {total} cells") }
    };
    let is_empty = Memo::new(move |_| rows.with(Vec::is_empty));
    let nothing = move || {
        is_empty.get().then(|| {
            view! {
                <div class="pad no-row" data-testid="no-row">
                    <p>"No cell has a verdict that is chosen above."</p>
                    <button type="button" class="btn primary" on:click=move |_| view.update(CompareView::show_all)>"Show all"</button>
                </div>
            }
        })
    };
    view! {
        <section id="cells" aria-labelledby="cells-title">
            <div class="section-head">
                <h2 id="cells-title">"All cells"</h2>
                <p class="muted" role="status" data-testid="row-count">{count}</p>
            </div>
            <div class="panel table-scroll tall" tabindex="0" role="region" aria-label="Table of all cells">
                <table class="table compared" data-testid="cells">
                    <thead>
                        <tr>
                            {[Column::Cell, Column::A, Column::B].map(|column| head(column, view)).collect_view()}
                            {heads}
                            {head(Column::Change, view)}
                            <th scope="col">"95 % interval"</th>
                            {head(Column::Verdict, view)}
                            <th scope="col" class="text">"To know"</th>
                        </tr>
                    </thead>
                    <tbody>
                        <For each=move || rows.get() key=Row::clone let:row>{table_row(row)}</For>
                    </tbody>
                </table>
                {nothing}
            </div>
        </section>
    }
}

fn head(column: Column, view: RwSignal<CompareView>) -> impl IntoView {
    let order = move || view.with(|view| view.order);
    let arrow = move || match (order().column == column, order().direction) {
        (false, _) => "",
        (true, Direction::Ascending) => " ↑",
        (true, Direction::Descending) => " ↓",
    };
    let class = matches!(column, Column::Cell | Column::Verdict).then_some("text");
    let press = move |_| view.update(|view| view.order = view.order.pressed(column));
    view! {
        <th scope="col" class=class aria-sort=move || order().aria(column) data-col=column.key()>
            <button type="button" on:click=press>
                {column.label()}
                <span aria-hidden="true">{arrow}</span>
            </button>
        </th>
    }
}

fn table_row(row: Row) -> impl IntoView {
    view! {
        <tr data-cell=row.id.to_string()>
            <th scope="row" class="text"><a href=at(&row.address)>{row.name}</a></th>
            <td>{row.a}</td>
            <td>{row.b}</td>
            {row.others.into_iter().map(|words| view! { <td>{words}</td> }).collect_view()}
            <td class="strong">{row.change}</td>
            <td>{row.interval}</td>
            <td class="text"><i class="glyph" aria-hidden="true">{row.glyph}</i>" "{row.verdict}</td>
            <td class="text why">{row.why}</td>
        </tr>
    }
}
