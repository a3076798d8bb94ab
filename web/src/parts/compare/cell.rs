//! What a compared cell shows: its change, its colour step, and the sentence that says it in words. Pure.

use speedmatrix_shared::{
    compare::{CellSide, CellVerdict, ComparedCell, Ranked, export},
    format,
    stats::compare::Direction,
};

use crate::chart::cell::with_unit;

/// Ratios at and beyond this one, or its inverse, have the strongest colour.
pub const CLIP: f64 = 1.5;
/// Classes of the colour steps, from much worse to much better.
pub const STEPS: [&str; 9] = ["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8"];
/// The step of no change.
const MIDDLE: i32 = 4;

/// What a cell shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeltaView {
    /// Class in the style sheet.
    pub class: &'static str,
    /// First line, behind the verdict's sign.
    pub value: String,
    /// The verdict's sign.
    pub glyph: &'static str,
    /// Second line: how sure the change is, or why there is none.
    pub second: String,
    /// All of it as a sentence.
    pub sentence: String,
}

/// What a cell shows.
pub fn view(cell: &ComparedCell, metric: Ranked) -> DeltaView {
    let value = if cell.verdict.is_compared() { export::change(cell) } else { String::new() };
    DeltaView {
        class: class(cell, metric),
        value,
        glyph: cell.verdict.glyph(),
        second: second(cell),
        sentence: sentence(cell, metric),
    }
}

/// The colour of what is proven; a paler look for the rest.
fn class(cell: &ComparedCell, metric: Ranked) -> &'static str {
    match (cell.verdict, cell.ratio()) {
        (CellVerdict::Faster | CellVerdict::Slower, Some(ratio)) => step(ratio, metric.direction()),
        (CellVerdict::NoDifference, _) => "even",
        (CellVerdict::Inconclusive, _) => "open",
        (CellVerdict::OnlyA | CellVerdict::OnlyB, _) => "lone",
        _ => "apart",
    }
}

/// The colour step of a ratio: symmetric in its logarithm, so that B ÷ A and A ÷ B are as far from the middle, and never
/// the middle itself.
fn step(ratio: f64, direction: Direction) -> &'static str {
    let better = match direction {
        Direction::HigherIsFaster => ratio.ln(),
        Direction::LowerIsFaster => -ratio.ln(),
    };
    let steps = (better.abs() / CLIP.ln() * f64::from(MIDDLE)).ceil().clamp(1.0, f64::from(MIDDLE)) as i32;
    let step = if better < 0.0 { MIDDLE - steps } else { MIDDLE + steps };
    usize::try_from(step).ok().and_then(|step| STEPS.get(step)).copied().unwrap_or("d4")
}

fn second(cell: &ComparedCell) -> String {
    match (cell.verdict, half_width(cell)) {
        (CellVerdict::OnlyA | CellVerdict::OnlyB | CellVerdict::NotComparable, _) => short(cell.verdict).to_owned(),
        (_, Some(half)) => format!("±{half}"),
        (_, None) => "± not known".to_owned(),
    }
}

const fn short(verdict: CellVerdict) -> &'static str {
    match verdict {
        CellVerdict::OnlyA => "only in A",
        CellVerdict::OnlyB => "only in B",
        _ => "not comparable",
    }
}

/// Half of the interval in percent of A's value, as text.
fn half_width(cell: &ComparedCell) -> Option<String> {
    let interval = cell.effect?.scatter?.interval;
    Some(format::decimal1(Some((interval.high - interval.low) * 50.0)))
}

/// A side's value, or why it has none.
pub fn side_words(side: Option<&CellSide>, metric: Ranked) -> String {
    match side {
        None => "not in its matrix".to_owned(),
        Some(side) if side.value.is_none() => side.status.to_lowercase(),
        Some(side) => with_unit(metric.metric(), side.value),
    }
}

fn sentence(cell: &ComparedCell, metric: Ranked) -> String {
    let verdict = cell.label(metric);
    let change = if cell.verdict.is_compared() { format!(", {}", export::change(cell)) } else { String::new() };
    let interval = export::interval(cell);
    let interval = if interval == format::MISSING { String::new() } else { format!(" ({interval})") };
    let sides =
        [("A", &cell.a), ("B", &cell.b)].map(|(name, side)| format!("{name} {}", side_words(side.as_ref(), metric)));
    let why = export::why(cell);
    let why = if why.is_empty() { why } else { format!(" {why}.") };
    format!("{}: {verdict}{change}{interval}. {}.{why}", export::name(cell), sides.join(", "))
}

/// What the cell is read out with: names and texts.
pub fn facts(cell: &ComparedCell, metric: Ranked) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("A", side_words(cell.a.as_ref(), metric)),
        ("B", side_words(cell.b.as_ref(), metric)),
        ("B against A", format!("{}, {}", export::change(cell), cell.label(metric))),
    ];
    if cell.verdict.is_compared() {
        facts.push(("95 % interval", export::interval(cell)));
        facts.push(("Smallest change to be seen", export::smallest_seen(cell)));
    }
    let why = export::why(cell);
    if !why.is_empty() {
        facts.push(("To know", why));
    }
    facts
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{compare::Comparison, sample, stats::compare::MARGIN};

    use super::*;

    #[test]
    fn colours_are_symmetric_in_the_ratio_and_clipped() {
        let check = |ratio: f64, higher: &str, lower: &str| {
            let seen = (step(ratio, Direction::HigherIsFaster), step(ratio, Direction::LowerIsFaster));
            assert_eq!(seen, (higher, lower), "{ratio}");
        };
        check(1.001, "d5", "d3");
        check(1.0 / 1.001, "d3", "d5");
        check(1.2, "d6", "d2");
        check(1.0 / 1.2, "d2", "d6");
        check(1.6, "d8", "d0");
        check(1000.0, "d8", "d0");
        check(0.001, "d0", "d8");
    }

    #[test]
    fn a_cell_says_itself_in_words() {
        let state = sample::reference();
        let same = Comparison::of(&state, &state, Ranked::total_speed(), MARGIN);
        let cell = same.cells.iter().find(|cell| cell.id.to_string() == "decode-8K-1").unwrap();
        let shown = view(cell, same.metric);
        assert_eq!(
            (shown.glyph, shown.value.as_str(), shown.second.as_str(), shown.class),
            ("?", "0.0 %", "± not known", "open")
        );
        assert_eq!(
            shown.sentence,
            "Sustained decode, 8K × 1: inconclusive, 0.0 %. A 223.5 tok/s, B 223.5 tok/s. the scatter of a side is not known; \
             run-to-run variation unknown."
        );
    }
}
