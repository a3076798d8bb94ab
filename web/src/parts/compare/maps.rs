//! Both runs as small maps of their own values: the same cells as the map of differences, and one colour scale for both.

use leptos::prelude::*;
use speedmatrix_shared::{
    compare::{CellSide, ComparedCell, Comparison, export},
    id::CellId,
    metric::{Better, Metric},
    state::{Cell, RunState},
};

use super::{Compared, cell::side_words, matrix::Matrix};
use crate::chart::{
    cell::{Ranges, step_class, with_unit},
    scale::{Range, STEPS, step},
};

/// A run's letter and its side of a compared cell.
type Side = (&'static str, fn(&ComparedCell) -> Option<&CellSide>);

const SIDES: [Side; 2] = [("A", |cell| cell.a.as_ref()), ("B", |cell| cell.b.as_ref())];

/// A cell of a small map.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Square {
    /// The cell's name in the comparison; `None` where neither run has it.
    id: Option<CellId>,
    /// Its colour step or its state.
    class: &'static str,
    /// What the pointer reads.
    title: String,
}

/// The values of both runs in the cells of one phase.
#[derive(Debug, Clone, PartialEq)]
struct Pair {
    /// `Prefill` or `Sustained decode`.
    phase: &'static str,
    /// From the smallest to the largest value of both runs.
    range: Option<Range>,
    /// Heads of the rows.
    rows: Vec<String>,
    /// Heads of the columns.
    columns: Vec<String>,
    /// Of A and of B: the cells, row by row.
    squares: [Vec<Vec<Square>>; 2],
}

impl Pair {
    fn of(comparison: &Comparison, states: [&RunState; 2], phase: &'static str, matrix: &Matrix) -> Self {
        let metric = comparison.metric.metric();
        let cell = |row: usize, column: usize| comparison.cells.get(matrix.place(row, column)?);
        let (rows, columns) = (matrix.rows.len(), matrix.columns.len());
        let value = |side: usize, row: usize, column: usize| value(states[side], SIDES[side].1(cell(row, column)?)?);
        let of_side = |side: usize| {
            (0..rows).map(move |row| (0..columns).map(|column| value(side, row, column)).collect::<Vec<_>>())
        };
        let range = Ranges::of(&of_side(0).chain(of_side(1)).collect::<Vec<_>>()).all;
        let square = |side: usize, row: usize, column: usize| {
            let Some(cell) = cell(row, column) else {
                return Square { id: None, class: "nothing", title: String::new() };
            };
            let (letter, of) = SIDES[side];
            let class = match (of(cell), value(side, row, column), range) {
                (None, ..) => "nothing",
                (_, Some(value), Some(range)) => step_class(step(value, range, metric.better)),
                _ => "none",
            };
            let words = side_words(of(cell), comparison.metric);
            Square { id: Some(cell.id), class, title: format!("{letter}, {}: {words}", export::name(cell)) }
        };
        let squares = [0, 1].map(|side| {
            let line = |row| (0..columns).map(|column| square(side, row, column)).collect();
            (0..rows).map(line).collect()
        });
        Self { phase, range, rows: matrix.rows.clone(), columns: matrix.columns.clone(), squares }
    }

    /// The values at the weakest and at the strongest colour.
    fn ends(&self, metric: &Metric) -> Option<[String; 2]> {
        let Range { lo, hi } = self.range?;
        let ends = if metric.better == Better::Lower { [hi, lo] } else { [lo, hi] };
        Some(ends.map(|end| (metric.show)(Some(end))))
    }
}

/// A side's value; a failed cell has none.
fn value(state: &RunState, side: &CellSide) -> Option<f64> {
    let result = state.cell(side.id).and_then(Cell::result)?;
    if result.status.is_failed() { None } else { side.value }
}

/// Both maps and their scale. A cell that is pointed at is read out, as in the map of differences.
#[component]
pub fn Maps(
    /// The runs.
    compared: Compared,
    /// Their prefill cells.
    prefill: Memo<Matrix>,
    /// Their decode cells.
    decode: Memo<Matrix>,
) -> impl IntoView {
    let pairs = Memo::new(move |_| {
        let [a, b] = compared.sides();
        let pair = |phase, matrix: &Matrix| {
            let of = |it: &Comparison| a.state.with(|a| b.state.with(|b| Pair::of(it, [a, b], phase, matrix)));
            (!matrix.is_empty()).then(|| compared.comparison.with(of))
        };
        let prefill = prefill.with(|matrix| pair("Prefill", matrix));
        let decode = decode.with(|matrix| pair("Sustained decode", matrix));
        [prefill, decode].into_iter().flatten().collect::<Vec<Pair>>()
    });
    let metric = move || compared.comparison.with(|it| it.metric.metric());
    let map = move |side: usize| {
        let (letter, _) = SIDES[side];
        let grids = move || pairs.with(|pairs| pairs.iter().map(|pair| squares(compared, pair, side)).collect_view());
        view! {
            <figure class="absolute" data-testid=format!("map-{letter}")>
                <figcaption><b class="letter">{letter}</b>" "{move || metric().label}</figcaption>
                {grids}
            </figure>
        }
    };
    let scales = move || {
        let metric = metric();
        pairs.with(|pairs| pairs.iter().filter_map(|pair| Some(scale(pair.phase, pair.ends(metric)?))).collect_view())
    };
    view! {
        <div class="absolutes" data-testid="maps">
            {map(0)}
            {map(1)}
            <div class="scales">{scales}</div>
        </div>
    }
}

/// One grid of a map. To who can't see it it is a picture with a sentence: its values stand in the table of all cells.
fn squares(compared: Compared, pair: &Pair, side: usize) -> impl IntoView + use<> {
    let read = Selector::new(move || compared.read.get());
    let square = |square: &Square| {
        let (id, read) = (square.id, read.clone());
        let point = move |_| compared.read.set(id);
        let is_read = move || id.is_some() && read.selected(&id);
        view! {
            <i
                class=square.class
                class:read=is_read
                title=square.title.clone()
                data-cell=id.map(|id| id.to_string())
                on:mouseenter=point
                on:click=move |_| compared.read.set(id)
            ></i>
        }
    };
    let line = |(head, line): (&String, &Vec<Square>)| {
        view! { <b class="row">{head.clone()}</b> {line.iter().map(square).collect_view()} }
    };
    let lines: Vec<_> = pair.rows.iter().zip(&pair.squares[side]).map(line).collect();
    let heads: Vec<_> = pair.columns.iter().map(|head| view! { <b>{head.clone()}</b> }).collect();
    let (letter, _) = SIDES[side];
    let metric = compared.comparison.with_untracked(|it| it.metric.metric());
    let span = pair.range.map_or_else(
        || "no values".to_owned(),
        |Range { lo, hi }| format!("colours from {} to {}", with_unit(metric, Some(lo)), with_unit(metric, Some(hi))),
    );
    let label =
        format!("{letter}, {}: {}, {span}. All values are in the table of all cells.", pair.phase, metric.label);
    view! {
        <div class="squares" role="img" aria-label=label style=("--levels", pair.columns.len().to_string())>
            <b></b>
            {heads}
            {lines}
        </div>
    }
}

/// What the colours of a phase mean.
fn scale(phase: &'static str, [weakest, strongest]: [String; 2]) -> impl IntoView {
    let steps = (0..STEPS).map(|step| view! { <i class=step_class(step)></i> }).collect_view();
    view! {
        <p>
            <span>{phase}</span>
            <span>{weakest}</span>
            <span class="ramp" aria-hidden="true">{steps}</span>
            <span>{strongest}</span>
        </p>
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{compare::Ranked, sample, stats::compare::MARGIN};

    use super::*;

    fn decode(metric: &str) -> (Comparison, Pair) {
        let state = sample::reference();
        let metric: Ranked = metric.parse().unwrap();
        let same = Comparison::of(&state, &state, metric, MARGIN);
        let pair = Pair::of(&same, [&state, &state], "Sustained decode", &Matrix::decode(&same.cells));
        (same, pair)
    }

    #[test]
    fn both_maps_have_the_cells_of_the_differences_and_one_scale() {
        let (same, pair) = decode("total_tok_s");
        assert_eq!((pair.squares[0].len(), pair.squares[1][7].len()), (8, 8));
        let first = &pair.squares[0][0][0];
        assert_eq!(first.id.map(|id| id.to_string()).as_deref(), Some("decode-8K-1"));
        assert_eq!(first.title, "A, Sustained decode, 8K × 1: 223.5 tok/s");
        assert_eq!(pair.squares[1][0][0].class, first.class);
        let strongest = pair.squares.iter().flatten().flatten().filter(|square| square.class == "q8").count();
        assert!(strongest >= 2, "{strongest}");
        let [weakest, strongest] = pair.ends(same.metric.metric()).unwrap();
        assert!(weakest.len() <= strongest.len(), "{weakest} {strongest}");
    }

    #[test]
    fn the_strongest_colour_is_the_shortest_time() {
        let (same, pair) = decode("ttft");
        let Range { lo, hi } = pair.range.unwrap();
        let metric = same.metric.metric();
        assert_eq!(pair.ends(metric), Some([(metric.show)(Some(hi)), (metric.show)(Some(lo))]));
    }

    #[test]
    fn what_a_run_lacks_has_no_colour() {
        let state = sample::reference();
        let mut other = state.clone();
        other.cells.retain(|cell| cell.id.to_string() != "decode-8K-1");
        let pair = Comparison::of(&state, &other, Ranked::total_speed(), MARGIN);
        let shown = Pair::of(&pair, [&state, &other], "Sustained decode", &Matrix::decode(&pair.cells));
        let classes = [0, 1].map(|side: usize| shown.squares[side][0][0].class);
        assert!(classes[0].starts_with('q') && classes[1] == "nothing", "{classes:?}");
        assert_eq!(shown.squares[1][0][0].title, "B, Sustained decode, 8K × 1: not in its matrix");
    }
}
