//! The matrix: the plan before the run, the progress during it, the result after it. One tab stop; the arrow keys move
//! inside, and every cell has a sentence as its name.

use leptos::{ev::KeyboardEvent, prelude::*};
use leptos_router::{
    NavigateOptions,
    hooks::{use_location, use_navigate},
};
use speedmatrix_shared::{
    finding::run::{OutOfOrder, out_of_order},
    id::{CellId, Phase},
    state::{CellState, RunState},
    units::{Concurrency, Context},
};

use super::cell::{self, CellView, Look, Ranges};
use crate::{
    browser,
    live::LiveRun,
    parts::icon::icon,
    query::{self, CellPart, RunView, Scope},
};

/// Id of the cell that the Tab key reaches first; the key `m` goes there.
pub const FIRST_CELL: &str = "matrix-cell-0-0";

/// Where the cells of the matrix lie among the cells of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Rows.
    pub contexts: Vec<Context>,
    /// Columns.
    pub levels: Vec<Concurrency>,
    /// For each row and column: the cell's place in [`RunState::cells`].
    places: Vec<Vec<Option<usize>>>,
}

impl Layout {
    /// The decode matrix of a run. A run's plan never changes, so it is made once.
    pub fn of(state: &RunState) -> Self {
        let (contexts, levels) = (state.plan.contexts().to_vec(), state.plan.concurrency().to_vec());
        let place = |context, concurrency| {
            let id = CellId { phase: Phase::Decode, context, concurrency };
            state.cells.iter().position(|cell| cell.id == id)
        };
        let places = contexts.iter().map(|c| levels.iter().map(|n| place(*c, *n)).collect()).collect();
        Self { contexts, levels, places }
    }

    /// The ranges that colours compare within.
    pub fn ranges(&self, state: &RunState, view: RunView) -> Ranges {
        let metric = view.metric();
        let value = |place: &Option<usize>| {
            let result = place.and_then(|place| state.cells.get(place)).and_then(|cell| cell.result())?;
            if result.status.is_failed() { None } else { (metric.get)(result) }
        };
        let rows: Vec<Vec<_>> = self.places.iter().map(|row| row.iter().map(value).collect()).collect();
        Ranges::of(&rows)
    }

    fn place(&self, row: usize, column: usize) -> Option<usize> {
        self.places.get(row)?.get(column).copied().flatten()
    }
}

/// Where a key leads from a cell; `None` if the key means nothing here.
pub fn step_to(
    key: &str,
    with_ctrl: Ctrl,
    (row, column): (usize, usize),
    (rows, columns): (usize, usize),
) -> Option<(usize, usize)> {
    let (last_row, last_column) = (rows.saturating_sub(1), columns.saturating_sub(1));
    Some(match (key, with_ctrl) {
        ("ArrowRight", _) => (row, (column + 1).min(last_column)),
        ("ArrowLeft", _) => (row, column.saturating_sub(1)),
        ("ArrowDown", _) => ((row + 1).min(last_row), column),
        ("ArrowUp", _) => (row.saturating_sub(1), column),
        ("Home", Ctrl::Up) => (row, 0),
        ("Home", Ctrl::Down) => (0, 0),
        ("End", Ctrl::Up) => (row, last_column),
        ("End", Ctrl::Down) => (last_row, last_column),
        ("PageDown", _) => (last_row, column),
        ("PageUp", _) => (0, column),
        _ => return None,
    })
}

/// Whether the control key is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ctrl {
    /// It is not.
    Up,
    /// It is.
    Down,
}

/// What the cells of one matrix share.
#[derive(Clone, Copy)]
struct Grid {
    run: LiveRun,
    view: Memo<RunView>,
    layout: StoredValue<Layout>,
    /// What is shown, and the ranges of its colours. One source: every cell listens to it.
    look: Memo<(RunView, Ranges)>,
    /// Cells that break the expected order; those of which this changes are told.
    orders: Memo<Vec<OutOfOrder>>,
    /// The tab stop.
    stop: RwSignal<(usize, usize)>,
    /// The cell that is read out below the matrix.
    read: RwSignal<Option<(usize, usize)>>,
    /// The query of the address.
    search: Memo<String>,
    /// Goes to an address.
    go: UnsyncCallback<String>,
}

impl Grid {
    fn cell_view(&self, row: usize, column: usize) -> CellView {
        let (metric, range) = self.look.with(|(view, ranges)| {
            let range = match view.scope {
                Scope::All => ranges.all,
                Scope::Row => ranges.rows.get(row).copied().flatten(),
                Scope::Column => ranges.columns.get(column).copied().flatten(),
            };
            (view.metric(), range)
        });
        let place = self.layout.with_value(|layout| layout.place(row, column));
        let view = place.and_then(|place| {
            self.run.cell(place, |_, cell| {
                // Only the running cell listens to the gauge: it alone changes ten times a second.
                let gauge = matches!(cell.state, CellState::Running { .. }).then(|| self.run.gauge.get()).flatten();
                let order = self.orders.with_untracked(|orders| order_of(orders, cell.id));
                cell::view(cell, Look { metric, range, gauge: gauge.as_ref(), order })
            })
        });
        view.unwrap_or_default()
    }

    /// Tells the cells that break the order now and did not before, or the other way round.
    fn follow_orders(self) {
        Effect::new(move |before: Option<Vec<OutOfOrder>>| {
            let (before, now) = (before.unwrap_or_default(), self.orders.get());
            let changed = |one: &&OutOfOrder| order_of(&before, one.cell) != order_of(&now, one.cell);
            for order in before.iter().chain(&now).filter(changed) {
                self.run.look_again_at(order.cell);
            }
            now
        });
    }

    /// Looks at a cell closely.
    fn open(&self, (row, column): (usize, usize)) {
        let place = self.layout.with_value(|layout| layout.place(row, column));
        let address = self.run.state.with_untracked(|state| {
            let cell = state.cells.get(place?)?.id;
            Some(query::cell_address(&state.id, cell, self.view.get_untracked(), CellPart::default()))
        });
        if let Some(address) = address {
            self.go.run(query::kept(&address, &self.search.get_untracked()));
        }
    }

    fn on_key(&self, event: &KeyboardEvent) {
        if event.key() == "Enter" {
            event.prevent_default();
            self.open(self.stop.get_untracked());
            return;
        }
        let size = self.layout.with_value(|layout| (layout.contexts.len(), layout.levels.len()));
        let ctrl = if event.ctrl_key() || event.meta_key() { Ctrl::Down } else { Ctrl::Up };
        if let Some((row, column)) = step_to(&event.key(), ctrl, self.stop.get_untracked(), size) {
            event.prevent_default();
            self.stop.set((row, column));
            browser::focus(&cell_id(row, column));
        }
    }
}

fn order_of(orders: &[OutOfOrder], cell: CellId) -> Option<OutOfOrder> {
    let place = orders.binary_search_by_key(&cell, |order| order.cell).ok()?;
    orders.get(place).copied()
}

fn cell_id(row: usize, column: usize) -> String {
    format!("matrix-cell-{row}-{column}")
}

/// The decode matrix of a run.
#[component]
pub fn Heat(
    /// The run.
    run: LiveRun,
    /// What the page shows.
    view: Memo<RunView>,
) -> impl IntoView {
    let layout = StoredValue::new(run.state.with_untracked(Layout::of));
    let look = run.report(move |state| {
        let view = view.get();
        (view, layout.with_value(|layout| layout.ranges(state, view)).within(view.scope))
    });
    let orders = run.report(out_of_order);
    let navigate = use_navigate();
    let stay = || NavigateOptions { scroll: false, ..NavigateOptions::default() };
    let go = UnsyncCallback::new(move |address: String| navigate(&address, stay()));
    let (stop, read, search) = (RwSignal::new((0, 0)), RwSignal::new(None), use_location().search);
    let grid = Grid { run, view, layout, look, orders, stop, read, search, go };
    grid.follow_orders();
    let (contexts, levels) = layout.with_value(|layout| (layout.contexts.clone(), layout.levels.clone()));
    let least_width = format!("{}px", 92 + 96 * levels.len());
    let stops = Selector::new(move || grid.stop.get());
    let heads: Vec<_> =
        levels.iter().map(|level| view! { <th scope="col" role="columnheader">{level.to_string()}</th> }).collect();
    let span = levels.len().to_string();
    let columns = levels.len();
    let row_of = |(row, context): (usize, &Context)| {
        let cells: Vec<_> = (0..columns).map(|column| cell_view(grid, &stops, row, column)).collect();
        view! { <tr role="row"><th scope="row" role="rowheader">{context.to_string()}</th>{cells}</tr> }
    };
    let rows: Vec<_> = contexts.iter().enumerate().map(row_of).collect();
    let load = grid.run.state.with_untracked(|state| state.plan.load());
    let level_label = load.level_label();
    let label = move || format!("{}: {}", load.phase_label(Phase::Decode), view.get().metric().label);
    view! {
        <div class="matrix-scroll">
            <table
                class="matrix"
                role="grid"
                data-testid="matrix"
                style=("--matrix-min", least_width)
                style=("--levels", columns.to_string())
                aria-label=label
                on:keydown=move |event| grid.on_key(&event)
            >
                <colgroup>
                    <col class="heads"/>
                    <col span=span.clone()/>
                </colgroup>
                <thead>
                    <tr class="over" role="row">
                        <th class="axis" aria-hidden="true"></th>
                        <th colspan=span role="columnheader">{level_label}</th>
                    </tr>
                    <tr role="row">
                        <th scope="col" role="columnheader" class="axis">"Context"</th>
                        {heads}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        <ReadOut grid/>
    }
}

fn cell_view(grid: Grid, stops: &Selector<(usize, usize)>, row: usize, column: usize) -> impl IntoView + use<> {
    let shown = Memo::new(move |_| grid.cell_view(row, column));
    let stops = stops.clone();
    let id = grid.layout.with_value(|layout| Some(cell_name(layout, row, column)));
    let here = (row, column);
    view! {
        <td
            role="gridcell"
            id=cell_id(row, column)
            data-cell=id
            class=move || shown.with(|cell| cell.class)
            tabindex=move || if stops.selected(&here) { "0" } else { "-1" }
            on:focus=move |_| {
                grid.stop.set(here);
                grid.read.set(Some(here));
            }
            on:mouseenter=move |_| grid.read.set(Some(here))
            on:click=move |_| grid.open(here)
        >
            {move || inner(&shown.get())}
        </td>
    }
}

fn cell_name(layout: &Layout, row: usize, column: usize) -> String {
    let (Some(context), Some(level)) = (layout.contexts.get(row), layout.levels.get(column)) else {
        return String::new();
    };
    CellId { phase: Phase::Decode, context: *context, concurrency: *level }.to_string()
}

fn inner(cell: &CellView) -> impl IntoView + use<> {
    let running = cell.class == "running";
    let flag = cell.flag.clone().map(|flag| {
        view! {
            <span class=flag.class>
                {icon(flag.icon)}
                <span class="words">{flag.text}</span>
            </span>
        }
    });
    view! {
        <span class="sr">{cell.sentence.clone()}</span>
        <span aria-hidden="true">
            {cell.odd.then(|| view! { <span class="odd"></span> })}
            {cell.few.then(|| view! { <span class="few"></span> })}
            <span class="v">
                {(running && cell.value.is_empty()).then(|| view! { <span class="dot"></span> })}
                {cell.value.clone()}
            </span>
            {flag}
            <span class="s">{cell.second.clone()}</span>
        </span>
    }
}

/// The sentence of the cell under the pointer or the focus, and what is to know about it.
#[component]
fn ReadOut(grid: Grid) -> impl IntoView {
    let sentence = Memo::new(move |_| {
        grid.read
            .get()
            .map(|(row, column)| grid.cell_view(row, column).sentence)
            .filter(|sentence| !sentence.is_empty())
    });
    let findings = Memo::new(move |_| {
        let place = grid.read.get().and_then(|(row, column)| grid.layout.with_value(|l| l.place(row, column)))?;
        grid.run.state.with(|state| {
            let result = state.cells.get(place)?.result()?;
            let texts = result.findings.iter().map(|finding| finding.text.clone());
            let failures = result.failures.iter().map(|group| format!("{}: {}", group.kind.label(), group.text));
            Some(texts.chain(failures).collect::<Vec<_>>())
        })
    });
    view! {
        <div class="cell-note" data-testid="cell-note" aria-hidden="true">
            <p>
                <b>{move || sentence.get()}</b>
                {move || sentence.with(Option::is_none).then_some("Point at a cell, or move with the arrow keys, to read it in words. Enter or a click looks at it closely.")}
            </p>
            {move || findings.get().unwrap_or_default().into_iter().map(|text| view! { <p>{text}</p> }).collect::<Vec<_>>()}
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_move_inside_the_matrix() {
        let check = |key: &str, ctrl, to| assert_eq!(step_to(key, ctrl, (1, 1), (3, 4)), to, "{key}");
        check("ArrowRight", Ctrl::Up, Some((1, 2)));
        check("ArrowUp", Ctrl::Up, Some((0, 1)));
        check("Home", Ctrl::Up, Some((1, 0)));
        check("End", Ctrl::Down, Some((2, 3)));
        check("PageDown", Ctrl::Up, Some((2, 1)));
        check("Tab", Ctrl::Up, None);
        assert_eq!(step_to("ArrowRight", Ctrl::Up, (2, 3), (3, 4)), Some((2, 3)));
    }
}
