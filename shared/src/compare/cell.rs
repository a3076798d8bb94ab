//! One cell of two runs: both values, how they differ, and what that is worth.

use super::{matching, ranked::Ranked};
use crate::{
    event::Origin,
    id::CellId,
    metric::Metric,
    state::{Cell, RunState},
    stats::{
        cell::CellResult,
        compare::{
            Basis, Effect, Verdict, can_be_told,
            conditions::{Condition, Conditions, Difference, Side},
            delta::Delta,
            page::{self, Outcome, Pair},
        },
    },
};

/// Numbers that all tools take alike. Of the others each tool has its own: over other requests, or from another moment on.
const ALIKE_IN_ALL_TOOLS: [&str; 3] = ["total_tok_s", "per_user_tok_s", "output_tokens"];

/// Files of other tools give no interval. A change of a speed beyond this share is then called likely, a smaller one
/// inconclusive: repeats of the reference tool lie within a few per cent of each other, but for the cells it marks.
pub const UNSURE_BEYOND: f64 = 0.10;

/// What can be said of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellVerdict {
    /// B is better than A.
    Faster,
    /// B is worse than A.
    Slower,
    /// Whatever the difference is, it is within the margin.
    NoDifference,
    /// The data can't tell.
    Inconclusive,
    /// The sides are not measurements of the same thing.
    NotComparable,
    /// The cell is not in B's matrix.
    OnlyA,
    /// The cell is not in A's matrix.
    OnlyB,
}

impl CellVerdict {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 7] = [
        Self::Faster,
        Self::Slower,
        Self::NoDifference,
        Self::Inconclusive,
        Self::NotComparable,
        Self::OnlyA,
        Self::OnlyB,
    ];

    /// The name in files and addresses.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no_difference",
            Self::Inconclusive => "inconclusive",
            Self::NotComparable => "not_comparable",
            Self::OnlyA => "only_a",
            Self::OnlyB => "only_b",
        }
    }

    /// Plain words: `faster`, or `better` where the number is no speed.
    pub fn label(self, metric: Ranked) -> &'static str {
        match self {
            Self::Faster => metric.better(),
            Self::Slower => metric.worse(),
            Self::NoDifference => "no difference",
            Self::Inconclusive => "inconclusive",
            Self::NotComparable => "not comparable",
            Self::OnlyA => "only in A",
            Self::OnlyB => "only in B",
        }
    }

    /// The sign that tells verdicts apart without colour.
    pub const fn glyph(self) -> &'static str {
        match self {
            Self::Faster => "▲",
            Self::Slower => "▼",
            Self::NoDifference => "=",
            Self::Inconclusive => "?",
            Self::NotComparable => "≠",
            Self::OnlyA => "A",
            Self::OnlyB => "B",
        }
    }

    /// What the verdict is with the sides swapped.
    #[must_use]
    pub const fn swapped(self) -> Self {
        match self {
            Self::Faster => Self::Slower,
            Self::Slower => Self::Faster,
            Self::OnlyA => Self::OnlyB,
            Self::OnlyB => Self::OnlyA,
            other => other,
        }
    }

    /// Whether two values were compared.
    pub const fn is_compared(self) -> bool {
        matches!(self, Self::Faster | Self::Slower | Self::NoDifference | Self::Inconclusive)
    }
}

impl From<Verdict> for CellVerdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Faster => Self::Faster,
            Verdict::Slower => Self::Slower,
            Verdict::NoDifference => Self::NoDifference,
            Verdict::Inconclusive => Self::Inconclusive,
        }
    }
}

/// The cell in one of the runs.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSide {
    /// Its name there: the contexts of a pair may differ by 2 %.
    pub id: CellId,
    /// Its status in words.
    pub status: String,
    /// The number: of repeats their geometric mean, so that the ratio is that of the values shown.
    pub value: Option<f64>,
    /// Measurements that have the number.
    pub measurements: usize,
    /// Whether it was measured, well or not.
    pub is_measured: bool,
}

/// A cell, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedCell {
    /// Its name in A, or in B where only B has it.
    pub id: CellId,
    /// The cell in A.
    pub a: Option<CellSide>,
    /// The cell in B.
    pub b: Option<CellSide>,
    /// What can be said.
    pub verdict: CellVerdict,
    /// Ratio, interval and smallest change that could have been seen; only where the cell was compared.
    pub effect: Option<Effect>,
    /// The difference of the values, whatever it is worth.
    pub delta: Delta,
    /// Why it is not comparable, in words; empty where it is.
    pub reasons: Vec<String>,
}

impl ComparedCell {
    /// B ÷ A, where the cell was compared.
    pub fn ratio(&self) -> Option<f64> {
        self.effect.map(|effect| effect.ratio)
    }

    /// What a reader must know beside the verdict, or nothing.
    pub fn caveat(&self) -> Option<&'static str> {
        self.effect.and_then(|effect| effect.basis.caveat())
    }

    /// Whether the verdict is no more than likely: it rests on one window.
    pub fn is_only_likely(&self) -> bool {
        self.effect.is_some_and(|effect| effect.basis == Basis::OneWindow) && self.verdict != CellVerdict::Inconclusive
    }

    /// The verdict in words: `likely faster`.
    pub fn label(&self, metric: Ranked) -> String {
        let likely = if self.is_only_likely() { "likely " } else { "" };
        format!("{likely}{}", self.verdict.label(metric))
    }
}

/// A pair that both runs have, with what was measured.
struct Measured<'a> {
    a: Vec<&'a CellResult>,
    b: Vec<&'a CellResult>,
}

/// All cells of both runs that can have the number.
pub(super) fn compared(a: &RunState, b: &RunState, metric: Ranked, margin: f64) -> Vec<ComparedCell> {
    let mut matched = matching::matched(a, b);
    matched.retain(|cell| metric.metric().applies_to(cell.id().phase));
    let measured: Vec<Option<Measured<'_>>> = matched
        .iter()
        .map(|cell| {
            let (a, b) = (measurements(cell.a), measurements(cell.b));
            (!a.is_empty() && !b.is_empty()).then_some(Measured { a, b })
        })
        .collect();
    let of_tools = tools_apart(a, b, metric.metric());
    let pairs: Vec<Pair<'_>> = matched
        .iter()
        .zip(&measured)
        .filter(|_| of_tools.is_none())
        .filter_map(|(cell, measured)| {
            let (one, other, measured) = (cell.a?, cell.b?, measured.as_ref()?);
            let side = |state: &RunState, cell: &Cell| Conditions::of(&state.plan, cell.id.phase);
            Some(Pair {
                base: Side { conditions: side(a, one), repeats: &measured.a },
                candidate: Side { conditions: side(b, other), repeats: &measured.b },
            })
        })
        .collect();
    let mut measure = metric.measure();
    let is_told_alike = ALIKE_IN_ALL_TOOLS.contains(&metric.metric().key);
    measure.unsure_beyond = (is_told_alike && [a, b].iter().any(|run| is_foreign(run))).then_some(UNSURE_BEYOND);
    let mut outcomes = page::compare(&pairs, measure, margin).into_iter();
    let judge = |(cell, measured): (&matching::Matched<'_>, &Option<Measured<'_>>)| {
        let sides = [cell.a, cell.b].map(|cell| cell.map(|cell| side(cell, metric.metric())));
        match (&of_tools, measured) {
            (None, Some(_)) => of_outcome(cell.id(), sides, outcomes.next()),
            (Some(reason), Some(_)) => not_compared(cell.id(), sides, vec![reason.clone()]),
            (_, None) => unmeasured(cell.id(), sides),
        }
    };
    matched.iter().zip(&measured).map(judge).collect()
}

/// The repeats of a cell, or its one result; nothing while it is not finished.
fn measurements(cell: Option<&Cell>) -> Vec<&CellResult> {
    let Some((cell, result)) = cell.and_then(|cell| Some((cell, cell.result()?))) else { return Vec::new() };
    if cell.repeats.is_empty() { vec![result] } else { cell.repeats.iter().collect() }
}

fn side(cell: &Cell, metric: &Metric) -> CellSide {
    let all = measurements(Some(cell));
    let values: Vec<f64> = all.iter().filter_map(|result| (metric.get)(result)).filter(|it| it.is_finite()).collect();
    let is_log = values.len() > 1 && values.iter().all(|value| *value > 0.0);
    let mean_log = values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64;
    let value = if is_log { Some(mean_log.exp()) } else { cell.result().and_then(metric.get) };
    CellSide {
        id: cell.id,
        status: cell.status_label(),
        value: value.filter(|value| value.is_finite()),
        measurements: values.len(),
        is_measured: cell.result().is_some(),
    }
}

type Sides = [Option<CellSide>; 2];

fn not_compared(id: CellId, sides: Sides, reasons: Vec<String>) -> ComparedCell {
    let [a, b] = sides;
    let delta = Delta::new(a.as_ref().and_then(|side| side.value), b.as_ref().and_then(|side| side.value));
    ComparedCell { id, a, b, verdict: CellVerdict::NotComparable, effect: None, delta, reasons }
}

fn of_outcome(id: CellId, sides: Sides, outcome: Option<Outcome>) -> ComparedCell {
    match outcome {
        // Values at both ends of what a number can hold have a ratio that none can.
        Some(Outcome::Compared { effect, .. }) if !can_be_told(effect.ratio) => {
            not_compared(id, sides, vec!["the values are too far apart for a ratio".to_owned()])
        }
        Some(Outcome::Compared { verdict, effect }) => {
            ComparedCell { verdict: verdict.into(), effect: Some(effect), ..not_compared(id, sides, Vec::new()) }
        }
        Some(Outcome::NotComparable(differences)) => {
            let reasons = differences.iter().map(|difference| reason(difference, &sides)).collect();
            not_compared(id, sides, reasons)
        }
        None => unmeasured(id, sides),
    }
}

fn reason(difference: &Difference, sides: &Sides) -> String {
    if difference.condition != Condition::Measured {
        return difference.to_string();
    }
    let of = |name: &str, side: &Option<CellSide>| match side.as_ref().and_then(|side| side.value) {
        None => Some(format!("{name} has no value")),
        Some(value) if value > 0.0 => None,
        Some(_) => Some(format!("{name} is 0, of which there is no ratio")),
    };
    let [a, b] = sides;
    let said: Vec<String> = [of("A", a), of("B", b)].into_iter().flatten().collect();
    if said.is_empty() { "a repeat is 0, of which there is no ratio".to_owned() } else { said.join("; ") }
}

/// A cell that at least one side did not measure.
fn unmeasured(id: CellId, sides: Sides) -> ComparedCell {
    let verdict = match &sides {
        [Some(_), None] => CellVerdict::OnlyA,
        [None, Some(_)] => CellVerdict::OnlyB,
        _ => CellVerdict::NotComparable,
    };
    let missing = |name: &str, side: &Option<CellSide>| {
        let status = side.as_ref().filter(|side| !side.is_measured)?.status.as_str();
        Some(format!("{name} was not measured ({status})"))
    };
    let [a, b] = &sides;
    let reasons = [missing("A", a), missing("B", b)].into_iter().flatten().collect();
    ComparedCell { verdict, ..not_compared(id, sides, reasons) }
}

/// Why the number of one tool is not that of the other, if so.
fn tools_apart(a: &RunState, b: &RunState, metric: &Metric) -> Option<String> {
    let (one, other) = (tool(a), tool(b));
    let apart =
        [a, b].iter().any(|state| is_foreign(state)) && one != other && !ALIKE_IN_ALL_TOOLS.contains(&metric.key);
    apart.then(|| format!("definition of {}: {one} and {other} take it over other requests or moments", metric.column))
}

/// Whether the run came from another tool's file.
pub(super) fn is_foreign(state: &RunState) -> bool {
    state.origin == Some(Origin::Imported)
}

/// The name of the tool without its version.
pub(super) fn tool(state: &RunState) -> String {
    state.tool.split_whitespace().next().unwrap_or("an unknown tool").to_owned()
}
