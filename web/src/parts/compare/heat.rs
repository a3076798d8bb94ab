//! The matrix of differences: prefill above, decode below. Each has one tab stop; the arrow keys move inside, and every
//! cell has a sentence as its name. What it says is read out below with the way into both runs.

use leptos::{ev::KeyboardEvent, prelude::*};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use speedmatrix_shared::{
    compare::{CellSide, CellVerdict, ComparedCell, Comparison, export},
    format,
    id::CellId,
    stats::compare::Direction,
};

use super::{
    Compared,
    cell::{self, CLIP, DeltaView, STEPS},
    maps::Maps,
    matrix::Matrix,
};
use crate::{
    base::at,
    browser,
    chart::heat::{Ctrl, step_to},
    query,
};

/// The section.
#[component]
pub fn MatrixSection(
    /// The runs.
    compared: Compared,
) -> impl IntoView {
    let Compared { comparison, .. } = compared;
    let prefill = Memo::new(move |_| comparison.with(|it| Matrix::prefill(&it.cells)));
    let decode = Memo::new(move |_| comparison.with(|it| Matrix::decode(&it.cells)));
    let prefill_grid = move || {
        let matrix = prefill.get();
        let over = "Context";
        (!matrix.is_empty()).then(|| view! { <Grid compared matrix kind=Kind::Prefill over/> })
    };
    let level_label = Memo::new(move |_| {
        let [a, _] = compared.sides();
        a.state.with(|state| state.plan.load().level_label())
    });
    let decode_grid = move || {
        let matrix = decode.get();
        let over = level_label.get();
        (!matrix.is_empty()).then(|| view! { <Grid compared matrix kind=Kind::Decode over/> })
    };
    let label = move || comparison.with(|it| it.metric.metric().label);
    view! {
        <section id="matrix" aria-labelledby="matrix-title">
            <div class="section-head">
                <div>
                    <h2 id="matrix-title">"Differences"</h2>
                    <p class="say">{label}": B against A in each cell, with its 95 % interval in percent of A. The small maps show both runs in one colour scale."</p>
                </div>
            </div>
            <div class="panel deltas">
                <div class="grids">
                    {prefill_grid}
                    {decode_grid}
                </div>
                <ReadOut compared/>
                <Legend compared/>
                <Maps compared prefill decode/>
            </div>
        </section>
    }
}

/// Which of the two grids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Prefill,
    Decode,
}

impl Kind {
    const fn label(self) -> &'static str {
        match self {
            Self::Prefill => "Prefill",
            Self::Decode => "Sustained decode",
        }
    }

    const fn testid(self) -> &'static str {
        match self {
            Self::Prefill => "delta-prefill",
            Self::Decode => "delta-decode",
        }
    }

    /// Ids of cells; the key `m` goes to the first one of the decode matrix.
    fn cell_id(self, row: usize, column: usize) -> String {
        match self {
            Self::Prefill => format!("prefill-cell-{row}-{column}"),
            Self::Decode => format!("matrix-cell-{row}-{column}"),
        }
    }
}

/// The address of a cell's page: in B, or in A where only A has it.
pub fn cell_address(comparison: &Comparison, cell: &ComparedCell) -> String {
    let (run, id) = match (&cell.b, &cell.a) {
        (Some(side), _) => (&comparison.b.id, side.id),
        (None, Some(side)) => (&comparison.a.id, side.id),
        (None, None) => (&comparison.b.id, cell.id),
    };
    query::whole_cell(run, id)
}

/// What the cells of a grid share.
#[derive(Clone, Copy)]
struct Shared {
    compared: Compared,
    matrix: StoredValue<Matrix>,
    kind: Kind,
    /// The tab stop.
    stop: RwSignal<(usize, usize)>,
    /// Goes to an address.
    go: UnsyncCallback<String>,
}

impl Shared {
    fn cell<T>(&self, row: usize, column: usize, look: impl Fn(&Comparison, &ComparedCell) -> T) -> Option<T> {
        let place = self.matrix.with_value(|matrix| matrix.place(row, column))?;
        self.compared.comparison.with(|it| it.cells.get(place).map(|cell| look(it, cell)))
    }

    fn view(&self, row: usize, column: usize) -> DeltaView {
        self.cell(row, column, |it, cell| cell::view(cell, it.metric)).unwrap_or_default()
    }

    fn is_left_out(&self, row: usize, column: usize) -> bool {
        let verdict = self.cell(row, column, |_, cell| cell.verdict);
        verdict.is_some_and(|verdict| !self.compared.view.with(|view| view.shows(verdict)))
    }

    fn on_key(&self, event: &KeyboardEvent) {
        let (row, column) = self.stop.get_untracked();
        if event.key() == "Enter" {
            event.prevent_default();
            if let Some(address) = untrack(|| self.cell(row, column, cell_address)) {
                self.go.run(address);
            }
            return;
        }
        let size = self.matrix.with_value(|matrix| (matrix.rows.len(), matrix.columns.len()));
        let ctrl = if event.ctrl_key() || event.meta_key() { Ctrl::Down } else { Ctrl::Up };
        if let Some((row, column)) = step_to(&event.key(), ctrl, (row, column), size) {
            event.prevent_default();
            self.stop.set((row, column));
            browser::focus(&self.kind.cell_id(row, column));
        }
    }
}

#[component]
fn Grid(compared: Compared, matrix: Matrix, kind: Kind, over: &'static str) -> impl IntoView {
    let navigate = use_navigate();
    let go = UnsyncCallback::new(move |address: String| navigate(&address, NavigateOptions::default()));
    let (rows, columns) = (matrix.rows.clone(), matrix.columns.clone());
    let grid = Shared { compared, matrix: StoredValue::new(matrix), kind, stop: RwSignal::new((0, 0)), go };
    let stops = Selector::new(move || grid.stop.get());
    let read = Selector::new(move || compared.read.get());
    let count = columns.len();
    let heads: Vec<_> =
        columns.iter().map(|head| view! { <th scope="col" role="columnheader">{head.clone()}</th> }).collect();
    let corner = match kind {
        Kind::Prefill => "At once",
        Kind::Decode => "Context",
    };
    let row_view = |(row, head): (usize, String)| {
        let cells: Vec<_> = (0..count).map(|column| cell_view(&grid, (&stops, &read), row, column)).collect();
        view! {
            <tr role="row">
                <th scope="row" role="rowheader">{head}</th>
                {cells}
            </tr>
        }
    };
    let rows: Vec<_> = rows.into_iter().enumerate().map(row_view).collect();
    let label =
        move || compared.comparison.with(|it| format!("{}: {}, B against A", kind.label(), it.metric.metric().label));
    view! {
        <div class="matrix-scroll">
            <table
                class="matrix"
                role="grid"
                data-testid=kind.testid()
                style=("--matrix-min", format!("{}px", 92 + 84 * count))
                style=("--levels", count.to_string())
                aria-label=label
                on:keydown=move |event| grid.on_key(&event)
            >
                <colgroup>
                    <col class="heads"/>
                    <col span=count.to_string()/>
                </colgroup>
                <thead>
                    <tr class="over" role="row">
                        <th class="axis" aria-hidden="true"></th>
                        <th colspan=count.to_string() role="columnheader">{format!("{} · {over}", kind.label())}</th>
                    </tr>
                    <tr role="row">
                        <th scope="col" role="columnheader" class="axis">{corner}</th>
                        {heads}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

/// Which cell the Tab key reaches, and which one is read out.
type Marks<'a> = (&'a Selector<(usize, usize)>, &'a Selector<Option<CellId>>);

fn cell_view(&grid: &Shared, (stops, read): Marks<'_>, row: usize, column: usize) -> impl IntoView + use<> {
    let shown = Memo::new(move |_| grid.view(row, column));
    let is_left_out = Memo::new(move |_| grid.is_left_out(row, column));
    let (stops, read) = (stops.clone(), read.clone());
    let here = (row, column);
    let id = untrack(|| grid.cell(row, column, |_, cell| cell.id));
    let class = move || {
        let out = if is_left_out.get() { " out" } else { "" };
        let read = if id.is_some() && read.selected(&id) { " read" } else { "" };
        shown.with(|cell| format!("{}{out}{read}", if cell.class.is_empty() { "nothing" } else { cell.class }))
    };
    view! {
        <td
            role="gridcell"
            id=grid.kind.cell_id(row, column)
            data-cell=id.map(|id| id.to_string())
            class=class
            tabindex=move || if stops.selected(&here) { "0" } else { "-1" }
            on:focus=move |_| {
                grid.stop.set(here);
                grid.compared.read.set(id);
            }
            on:mouseenter=move |_| grid.compared.read.set(id)
        >
            {move || inner(&shown.get())}
        </td>
    }
}

fn inner(cell: &DeltaView) -> impl IntoView + use<> {
    let sentence = if cell.sentence.is_empty() { "in neither run".to_owned() } else { cell.sentence.clone() };
    view! {
        <span class="sr">{sentence}</span>
        <span aria-hidden="true">
            <span class="v"><i class="glyph">{cell.glyph}</i>" "{cell.value.clone()}</span>
            <span class="s">{cell.second.clone()}</span>
        </span>
    }
}

/// The cell under the pointer or the focus in numbers, and the way into both runs.
#[component]
fn ReadOut(compared: Compared) -> impl IntoView {
    let told = Memo::new(move |_| {
        let id = compared.read.get()?;
        compared.comparison.with(|it| {
            let cell = it.cells.iter().find(|cell| cell.id == id)?;
            let address = |run, side: &Option<CellSide>| side.as_ref().map(|side| query::whole_cell(run, side.id));
            let ways = [("A", address(&it.a.id, &cell.a)), ("B", address(&it.b.id, &cell.b))];
            Some((export::name(cell), cell::facts(cell, it.metric), ways))
        })
    });
    let fact = |(name, text): (&'static str, String)| view! { <div><dt>{name}</dt><dd>{text}</dd></div> };
    let way = |(name, address): (&'static str, Option<String>)| {
        address.map(|address| {
            view! { <a class="btn" href=at(&address) data-testid=format!("open-in-{name}")>{format!("Open in {name}")}</a> }
        })
    };
    let shown = move || {
        match told.get() {
        None => view! {
            <p class="muted">"Point at a cell, or move with the arrow keys, to read its numbers. Enter opens it in B's run."</p>
        }
        .into_any(),
        Some((name, facts, ways)) => view! {
            <div class="told">
                <b>{name}</b>
                <div class="btns">{ways.map(way).collect_view()}</div>
            </div>
            <dl>{facts.into_iter().map(fact).collect_view()}</dl>
        }
        .into_any(),
    }
    };
    view! { <div class="delta-note" data-testid="cell-note">{shown}</div> }
}

/// What the colours and signs mean.
#[component]
fn Legend(compared: Compared) -> impl IntoView {
    let words = Memo::new(move |_| {
        compared.comparison.with(|it| {
            let (more, less) = (format::change(Some(CLIP - 1.0)), format::change(Some(1.0 / CLIP - 1.0)));
            let ends = match it.metric.direction() {
                Direction::HigherIsFaster => [less, more],
                Direction::LowerIsFaster => [more, less],
            };
            (ends, CellVerdict::ALL.map(|verdict| (verdict.glyph(), verdict.label(it.metric))))
        })
    });
    let ends = move || {
        let [worse, better] = words.get().0;
        let (said_worse, said_better) = compared.comparison.with(|it| (it.metric.worse(), it.metric.better()));
        view! {
            <span>{format!("{worse} or more, {said_worse}")}</span>
            <span>{format!("{better} or more, {said_better}")}</span>
        }
    };
    let keys = move || {
        let key = |(glyph, label): (&'static str, &'static str)| {
            view! { <span class="key"><i class="glyph" aria-hidden="true">{glyph}</i>{label}</span> }
        };
        words.get().1.map(key).collect_view()
    };
    view! {
        <div class="legend">
            <div class="delta-ramp">
                <div class="ramp" aria-hidden="true">{STEPS.map(|class| view! { <i class=class></i> }).collect_view()}</div>
                <p>{ends}</p>
            </div>
            {keys}
        </div>
    }
}
