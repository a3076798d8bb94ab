//! One answer for a build: may this run take the baseline's place?

use std::str::FromStr;

use super::{Comparison, cell::CellVerdict};
use crate::state::RunStatus;

/// What a cell that the data can't tell about counts as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IfInconclusive {
    /// As itself: the answer is "inconclusive".
    #[default]
    Tell,
    /// As no regression.
    Pass,
    /// As a regression.
    Fail,
}

impl FromStr for IfInconclusive {
    type Err = UnknownAnswer;

    fn from_str(text: &str) -> Result<Self, UnknownAnswer> {
        match text {
            "tell" => Ok(Self::Tell),
            "pass" => Ok(Self::Pass),
            "fail" => Ok(Self::Fail),
            other => Err(UnknownAnswer(other.chars().take(80).collect())),
        }
    }
}

/// Not a way to count inconclusive cells.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no answer to what the data can't tell: choose tell, pass or fail")]
pub struct UnknownAnswer(String);

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// No cell is worse.
    Passed,
    /// At least one cell is worse, proven over repeats.
    Regressed,
    /// No cell is proven worse, but for at least one the data can't tell.
    Inconclusive,
    /// A cell of the baseline can't be compared, or there is none.
    NotComparable,
}

impl Gate {
    /// The answer to a comparison whose base is the baseline. A regression goes before all else, then what can't be
    /// compared: a cell that fails now must not pass. Cells outside of either matrix do not count, nor do cells that the
    /// baseline did not measure. What rests on one window proves no regression: run-to-run variation may have made it.
    pub fn of(comparison: &Comparison, if_inconclusive: IfInconclusive) -> Self {
        let cells = &comparison.cells;
        let is_running = [&comparison.a, &comparison.b].iter().any(|run| run.status == RunStatus::Running);
        let broken = |cell: &&super::ComparedCell| {
            cell.verdict == CellVerdict::NotComparable && cell.a.as_ref().is_some_and(|side| side.is_measured)
        };
        let worse = cells.iter().filter(|cell| cell.verdict == CellVerdict::Slower);
        let (likely, proven): (Vec<_>, Vec<_>) = worse.partition(|cell| cell.is_only_likely());
        let is_open = comparison.counts.inconclusive > 0 || !likely.is_empty();
        match if_inconclusive {
            _ if is_running => Self::NotComparable,
            _ if !proven.is_empty() => Self::Regressed,
            _ if comparison.counts.compared() == 0 || cells.iter().any(|cell| broken(&cell)) => Self::NotComparable,
            IfInconclusive::Tell if is_open => Self::Inconclusive,
            IfInconclusive::Fail if is_open => Self::Regressed,
            _ => Self::Passed,
        }
    }

    /// The exit status of `speedmatrix gate`.
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Regressed => 1,
            Self::Inconclusive => 2,
            Self::NotComparable => 3,
        }
    }

    /// Plain words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Regressed => "regressed",
            Self::Inconclusive => "inconclusive",
            Self::NotComparable => "not comparable",
        }
    }
}
