//! The plan as a grid that is painted: which cells are measured, and what is known about each before it is. A click takes a
//! cell in or leaves it out, dragging and Shift paint several, a head paints its row or column, the keyboard does the same.

use leptos::{
    ev::{KeyboardEvent, PointerEvent},
    prelude::*,
};
use speedmatrix_shared::{
    feasible::Feasible,
    id::{CellId, Phase},
    plan::{Field, LeaveOut, RunPlan},
    target::Limits,
    units::{Concurrency, Context},
};

use super::{
    feasible::{class, expected, mark, words},
    field::Form,
};
use crate::{
    browser,
    chart::{
        cell::cell_words,
        heat::{Ctrl, step_to},
    },
};

/// Columns that are drawn; wider plans say how many more there are.
pub const COLUMNS_DRAWN: usize = 16;
/// Rows that are drawn.
pub const ROWS_DRAWN: usize = 24;

type Place = (usize, usize);

/// The cell that the pointer or the focus is on.
pub type Pointed = RwSignal<Option<CellId>>;

/// What a stroke does to cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ink {
    TakeIn,
    LeaveOut,
}

/// The matrix that is painted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Canvas {
    contexts: Vec<Context>,
    levels: Vec<Concurrency>,
}

impl Canvas {
    fn of(plan: &RunPlan) -> Self {
        Self { contexts: plan.contexts().to_vec(), levels: plan.concurrency().to_vec() }
    }

    fn drawn(&self) -> Place {
        (self.contexts.len().min(ROWS_DRAWN), self.levels.len().min(COLUMNS_DRAWN))
    }

    fn cell(&self, (row, column): Place) -> Option<(Context, Concurrency)> {
        Some((*self.contexts.get(row)?, *self.levels.get(column)?))
    }

    /// All places between two corners.
    fn between(a: Place, b: Place) -> Vec<Place> {
        let rows = a.0.min(b.0)..=a.0.max(b.0);
        rows.flat_map(|row| (a.1.min(b.1)..=a.1.max(b.1)).map(move |column| (row, column))).collect()
    }

    /// `left_out` after a stroke over `places`; unchanged if nothing would be left to measure.
    fn painted(&self, left_out: &LeaveOut, places: &[Place], ink: Ink) -> LeaveOut {
        let mut after = left_out.clone();
        for (context, level) in places.iter().filter_map(|place| self.cell(*place)) {
            if after.has(context, level) != (ink == Ink::LeaveOut) {
                after.toggle(context, level);
            }
        }
        let all = self.contexts.len() * self.levels.len();
        if after.count() < all { after } else { left_out.clone() }
    }

    /// A head leaves its cells out if all are in, and takes them all in otherwise.
    fn ink_of_head(&self, left_out: &LeaveOut, places: &[Place]) -> Ink {
        let all_in = places.iter().filter_map(|p| self.cell(*p)).all(|(context, level)| !left_out.has(context, level));
        if all_in { Ink::LeaveOut } else { Ink::TakeIn }
    }
}

/// What the cells of the grid share.
#[derive(Clone, Copy)]
struct Grid {
    form: Form,
    canvas: StoredValue<Canvas>,
    left_out: Memo<LeaveOut>,
    /// The tab stop.
    stop: RwSignal<Place>,
    /// The stroke that is being drawn.
    stroke: RwSignal<Option<Ink>>,
    /// Where the last stroke began: Shift paints from there.
    anchor: RwSignal<Place>,
    pointed: Pointed,
}

impl Grid {
    fn is_out(self, place: Place) -> bool {
        let cell = self.canvas.with_value(|canvas| canvas.cell(place));
        cell.is_some_and(|(context, level)| self.left_out.with(|left_out| left_out.has(context, level)))
    }

    fn paint(self, places: &[Place], ink: Ink) {
        let before = self.left_out.get_untracked();
        let after = self.canvas.with_value(|canvas| canvas.painted(&before, places, ink));
        if after != before {
            self.form.set(Field::LeaveOut, after.to_string());
        }
    }

    /// The opposite of what a cell is.
    fn ink_at(self, place: Place) -> Ink {
        if untrack(|| self.is_out(place)) { Ink::TakeIn } else { Ink::LeaveOut }
    }

    fn press(self, place: Place, event: &PointerEvent) {
        if event.button() != 0 {
            return;
        }
        if event.shift_key() {
            let anchor = self.anchor.get_untracked();
            // As the anchor became: the stroke goes on from there.
            let ink = if untrack(|| self.is_out(anchor)) { Ink::LeaveOut } else { Ink::TakeIn };
            return self.paint(&Canvas::between(anchor, place), ink);
        }
        let ink = self.ink_at(place);
        // A finger scrolls when it moves: only a mouse or a pen draws on.
        if event.pointer_type() != "touch" {
            self.stroke.set(Some(ink));
        }
        self.anchor.set(place);
        self.stop.set(place);
        self.paint(&[place], ink);
    }

    fn enter(self, place: Place, event: &PointerEvent) {
        if event.buttons() != 1 {
            self.stroke.set(None);
        } else if let Some(ink) = self.stroke.get_untracked() {
            self.paint(&[place], ink);
        }
    }

    fn head(self, places: &[Place]) {
        let left_out = self.left_out.get_untracked();
        let ink = self.canvas.with_value(|canvas| canvas.ink_of_head(&left_out, places));
        self.paint(places, ink);
    }

    fn on_key(self, event: &KeyboardEvent) {
        let here = self.stop.get_untracked();
        if matches!(event.key().as_str(), " " | "Enter") {
            event.prevent_default();
            self.anchor.set(here);
            return self.paint(&[here], self.ink_at(here));
        }
        let ctrl = if event.ctrl_key() || event.meta_key() { Ctrl::Down } else { Ctrl::Up };
        let size = self.canvas.with_value(Canvas::drawn);
        let Some(to) = step_to(&event.key(), ctrl, here, size) else { return };
        event.prevent_default();
        if event.shift_key() {
            let ink = if untrack(|| self.is_out(here)) { Ink::LeaveOut } else { Ink::TakeIn };
            self.paint(&[to], ink);
        }
        self.stop.set(to);
        browser::focus(&cell_id(to));
    }
}

fn cell_id((row, column): Place) -> String {
    format!("plan-cell-{row}-{column}")
}

/// The grid of the form's plan. It is built anew only when its rows or columns change, so a painted cell keeps the focus.
#[component]
pub fn PlanGrid(
    /// The form.
    form: Form,
    /// What is known of the server, once it was looked at.
    limits: Memo<Option<Limits>>,
    /// The cell whose reason is shown.
    pointed: Pointed,
) -> impl IntoView {
    // While the plan is incomplete the last matrix is not drawn: its cells could not be judged.
    let canvas = Memo::new(move |_| form.plan.with(|plan| plan.as_ref().ok().map(Canvas::of)));
    let left_out = Memo::new(move |_| form.text(Field::LeaveOut).parse().unwrap_or_default());
    move || {
        let canvas = canvas.get().filter(|canvas| !canvas.contexts.is_empty())?;
        let grid = Grid {
            form,
            canvas: StoredValue::new(canvas),
            left_out,
            stop: RwSignal::new((0, 0)),
            stroke: RwSignal::new(None),
            anchor: RwSignal::new((0, 0)),
            pointed,
        };
        Some(table(grid, limits))
    }
}

fn table(grid: Grid, limits: Memo<Option<Limits>>) -> impl IntoView {
    let (contexts, levels) = grid.canvas.with_value(|canvas| (canvas.contexts.clone(), canvas.levels.clone()));
    let (rows, columns) = grid.canvas.with_value(Canvas::drawn);
    let column_head = move |(column, level): (usize, &Concurrency)| {
        let places: Vec<Place> = (0..contexts_of(grid)).map(|row| (row, column)).collect();
        let title = format!("All cells with {level} requests at once: in or out");
        view! {
            <th scope="col" role="columnheader">
                <button type="button" title=title data-head=format!("x{level}") on:click=move |_| grid.head(&places)>
                    {level.to_string()}
                </button>
            </th>
        }
    };
    let row = move |(row, context): (usize, &Context)| {
        let places: Vec<Place> = (0..levels_of(grid)).map(|column| (row, column)).collect();
        let title = format!("All cells of {context}: in or out");
        let cells: Vec<_> = (0..columns).map(|column| cell(grid, limits, (row, column))).collect();
        view! {
            <tr role="row">
                <th scope="row" role="rowheader">
                    <button type="button" title=title data-head=context.to_string() on:click=move |_| grid.head(&places)>
                        {context.to_string()}
                    </button>
                </th>
                {cells}
            </tr>
        }
    };
    let heads: Vec<_> = levels.iter().take(columns).enumerate().map(column_head).collect();
    let body: Vec<_> = contexts.iter().take(rows).enumerate().map(row).collect();
    let least_width = format!("{}px", 76 + 44 * columns);
    view! {
        <div class="matrix-scroll" data-testid="preview">
            <table
                class="matrix small paint"
                role="grid"
                aria-multiselectable="true"
                aria-label="Cells to measure: rows are context length, columns are requests at once. Space takes a cell in or leaves it out."
                style=("--matrix-min", least_width)
                on:keydown=move |event| grid.on_key(&event)
                on:pointerup=move |_| grid.stroke.set(None)
            >
                <colgroup><col class="heads"/></colgroup>
                <thead><tr role="row"><th scope="col" role="columnheader" class="axis">"Context"</th>{heads}</tr></thead>
                <tbody>{body}</tbody>
            </table>
        </div>
    }
}

fn contexts_of(grid: Grid) -> usize {
    grid.canvas.with_value(|canvas| canvas.contexts.len())
}

fn levels_of(grid: Grid) -> usize {
    grid.canvas.with_value(|canvas| canvas.levels.len())
}

fn cell(grid: Grid, limits: Memo<Option<Limits>>, place: Place) -> impl IntoView {
    let id = grid.canvas.with_value(|canvas| canvas.cell(place));
    let id = id.map(|(context, concurrency)| CellId { phase: Phase::Decode, context, concurrency });
    let out = Memo::new(move |_| grid.is_out(place));
    let verdict = Memo::new(move |_| {
        let (id, limits) = (id?, limits.get());
        grid.form.plan.with(|plan| plan.as_ref().ok().map(|plan| expected(plan, id, limits)))
    });
    let shown = move |show: fn(&Feasible) -> &'static str, otherwise: &'static str| {
        if out.get() { otherwise } else { verdict.with(|verdict| verdict.as_ref().map_or(otherwise, show)) }
    };
    let fate = move || {
        let judged = verdict.with(|verdict| verdict.as_ref().map(words));
        if out.get() { "left out".to_owned() } else { judged.unwrap_or_default() }
    };
    let words = move || format!("{}: {}", id.map(cell_words).unwrap_or_default(), fate());
    let point = move || grid.pointed.set(id);
    view! {
        <td
            role="gridcell"
            id=cell_id(place)
            data-cell=id.map(|id| id.to_string())
            class=move || shown(class, "out")
            aria-selected=move || (!out.get()).to_string()
            tabindex=move || if grid.stop.get() == place { "0" } else { "-1" }
            title=words
            on:pointerdown=move |event| grid.press(place, &event)
            on:pointerenter=move |event| {
                point();
                grid.enter(place, &event);
            }
            on:focus=move |_| {
                point();
                grid.stop.set(place);
            }
        >
            <span class="v" aria-hidden="true">{move || shown(mark, "–")}</span>
            <span class="sr">{words}</span>
        </td>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canvas() -> Canvas {
        let levels = [1, 2, 4].map(|level| Concurrency::new(level).unwrap()).to_vec();
        Canvas { contexts: ["8K", "16K"].map(|text| text.parse().unwrap()).to_vec(), levels }
    }

    #[test]
    fn strokes_take_cells_in_and_leave_them_out() {
        let check = |before: &str, places: &[Place], ink, after: &str| {
            let painted = canvas().painted(&before.parse().unwrap(), places, ink);
            assert_eq!(painted.to_string(), after, "{before} {places:?}");
        };
        check("", &[(0, 2)], Ink::LeaveOut, "8Kx4");
        check("8Kx4", &[(0, 2)], Ink::LeaveOut, "8Kx4");
        check("8Kx4", &[(0, 2), (0, 1)], Ink::TakeIn, "");
        check("", &Canvas::between((1, 2), (0, 1)), Ink::LeaveOut, "8Kx2,8Kx4,16Kx2,16Kx4");
        check("", &[(7, 7)], Ink::LeaveOut, "");
        check("8Kx1", &Canvas::between((0, 0), (1, 2)), Ink::LeaveOut, "8Kx1");
    }

    #[test]
    fn a_head_empties_what_is_full_and_fills_what_is_not() {
        let row = [(0, 0), (0, 1), (0, 2)];
        assert_eq!(canvas().ink_of_head(&LeaveOut::default(), &row), Ink::LeaveOut);
        assert_eq!(canvas().ink_of_head(&"8Kx2".parse().unwrap(), &row), Ink::TakeIn);
        assert_eq!(canvas().ink_of_head(&"16Kx2".parse().unwrap(), &row), Ink::LeaveOut);
    }
}
