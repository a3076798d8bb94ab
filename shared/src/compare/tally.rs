//! Cells by verdict, and the one sentence that says what came out.

use super::{
    cell::{CellVerdict, ComparedCell},
    ranked::Ranked,
};
use crate::stats::compare::Basis;

/// Cells by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// B is better.
    pub faster: usize,
    /// B is worse.
    pub slower: usize,
    /// Within the margin.
    pub no_difference: usize,
    /// The data can't tell.
    pub inconclusive: usize,
    /// The sides are not measurements of the same thing.
    pub not_comparable: usize,
    /// Not in B's matrix.
    pub only_a: usize,
    /// Not in A's matrix.
    pub only_b: usize,
}

impl Counts {
    pub(super) fn of(cells: &[ComparedCell]) -> Self {
        let count = |verdict: CellVerdict| cells.iter().filter(|cell| cell.verdict == verdict).count();
        Self {
            faster: count(CellVerdict::Faster),
            slower: count(CellVerdict::Slower),
            no_difference: count(CellVerdict::NoDifference),
            inconclusive: count(CellVerdict::Inconclusive),
            not_comparable: count(CellVerdict::NotComparable),
            only_a: count(CellVerdict::OnlyA),
            only_b: count(CellVerdict::OnlyB),
        }
    }

    /// Of one verdict.
    pub const fn of_verdict(&self, verdict: CellVerdict) -> usize {
        match verdict {
            CellVerdict::Faster => self.faster,
            CellVerdict::Slower => self.slower,
            CellVerdict::NoDifference => self.no_difference,
            CellVerdict::Inconclusive => self.inconclusive,
            CellVerdict::NotComparable => self.not_comparable,
            CellVerdict::OnlyA => self.only_a,
            CellVerdict::OnlyB => self.only_b,
        }
    }

    /// Cells whose values were compared.
    pub const fn compared(&self) -> usize {
        self.faster + self.slower + self.no_difference + self.inconclusive
    }
}

/// `B is faster in 12 cells, slower in 3, no difference in 30, inconclusive in 15, not comparable in 4.`
pub(super) fn sentence(cells: &[ComparedCell], metric: Ranked) -> String {
    let counts = Counts::of(cells);
    if cells.is_empty() {
        return "Neither run has a cell with this number.".to_owned();
    }
    if cells.len() == counts.only_a + counts.only_b {
        let (a, b) = (counts.only_a, counts.only_b);
        return format!("The runs have no cell in common: {a} only in A, {b} only in B.");
    }
    let told: Vec<CellVerdict> = CellVerdict::ALL.into_iter().filter(|it| counts.of_verdict(*it) > 0).collect();
    let parts: Vec<String> = told.iter().map(|verdict| part(cells, *verdict, metric)).collect();
    let lead = match (counts.faster + counts.slower, counts.compared()) {
        (0, 0) => "No cell can be compared: ".to_owned(),
        (0, _) => format!("B is in no cell {} or {}: ", metric.better(), metric.worse()),
        _ => "B is ".to_owned(),
    };
    // Only the first number needs to say of what.
    let all = told.first().map_or(0, |verdict| counts.of_verdict(*verdict));
    let first = parts.first().map(|part| {
        let noun = if all == 1 { "cell" } else { "cells" };
        part.replacen(&format!(" in {all}"), &format!(" in {all} {noun}"), 1)
    });
    let parts: Vec<String> = first.into_iter().chain(parts.iter().skip(1).cloned()).collect();
    format!("{lead}{}.{}", parts.join(", "), variation(cells))
}

fn part(cells: &[ComparedCell], verdict: CellVerdict, metric: Ranked) -> String {
    let of_it = || cells.iter().filter(|cell| cell.verdict == verdict);
    let (all, likely) = (of_it().count(), of_it().filter(|cell| cell.is_only_likely()).count());
    let label = verdict.label(metric);
    match verdict {
        CellVerdict::OnlyA | CellVerdict::OnlyB => format!("{all} {label}"),
        _ if likely == all => format!("likely {label} in {all}"),
        _ if likely > 0 => format!("{label} in {all} ({likely} of them only likely)"),
        _ => format!("{label} in {all}"),
    }
}

/// What is not known of the cells that one window stands for.
fn variation(cells: &[ComparedCell]) -> String {
    let compared = cells.iter().filter_map(|cell| cell.effect).count();
    let alone = cells.iter().filter_map(|cell| cell.effect).filter(|effect| effect.basis == Basis::OneWindow).count();
    match alone {
        0 => String::new(),
        _ if alone == compared => " Run-to-run variation unknown: no cell was repeated on both sides.".to_owned(),
        _ => format!(" Run-to-run variation unknown in {alone} of {compared} compared cells."),
    }
}
