//! Two measurements of the same thing against each other (method §6): the ratio with its interval, and a verdict that
//! claims no more than the data hold. Cells are compared on the log scale, so that candidate ÷ base and base ÷ candidate
//! say the same; all verdicts of a page share one false discovery rate.

pub mod conditions;
pub mod delta;
pub mod medians;
pub mod multiple;
pub mod page;
pub mod repeats;
pub mod welch;

#[cfg(test)]
mod tests;

/// Ratios within ±3 % are of no practical importance; the default of a page.
pub const MARGIN: f64 = 0.03;
/// Share of false ones among all "faster" and "slower" of a page.
pub const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// The farthest ratio that is told, in either direction: near the largest number (1.8e308), with room for its percent.
const FARTHEST_RATIO: f64 = 1e300;

/// Whether a ratio can be told, and its inverse as well: numbers reach further down than up, and what is too far on one
/// side of 1 must be so on the other, or swapping the sides would change what is said.
pub fn can_be_told(ratio: f64) -> bool {
    ratio.max(ratio.recip()) <= FARTHEST_RATIO
}

/// What a comparison rests on, and so how much it may claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// At least two repeats on each side: run-to-run variation is in the interval.
    Repeats,
    /// One measurement on at least one side: only what scattered inside its window is known.
    OneWindow,
    /// Two lists of samples, compared by their medians.
    Samples,
}

impl Basis {
    /// What a reader must know beside the verdict, or nothing.
    pub const fn caveat(self) -> Option<&'static str> {
        match self {
            Self::OneWindow => Some("run-to-run variation unknown"),
            Self::Repeats | Self::Samples => None,
        }
    }
}

/// A two-sided 95 % interval of a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How two values differ, before any verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Candidate ÷ base.
    pub ratio: f64,
    /// How sure that is; `None` if nothing is known about the scatter of one side.
    pub scatter: Option<Scatter>,
    /// What it rests on.
    pub basis: Basis,
}

/// How sure a ratio is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scatter {
    /// The ratio's interval, not adjusted for other cells.
    pub interval: RatioInterval,
    /// Two-sided p value of "there is no difference", not adjusted for other cells.
    pub p: f64,
    /// The smallest change (as a share, 0.05 is 5 %) that a measurement like this one sees in four of five tries.
    pub smallest_seen: f64,
}

/// Which way a number is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Speeds.
    HigherIsFaster,
    /// Times.
    LowerIsFaster,
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The candidate is faster than the base.
    Faster,
    /// The candidate is slower than the base.
    Slower,
    /// Whatever the difference is, it is within the margin.
    NoDifference,
    /// The data can't tell.
    Inconclusive,
}

impl Verdict {
    /// The verdict on an effect whose p value was adjusted for all cells of its page. An effect that is surely within the
    /// margin is no difference, even where it is surely not zero: such a one has no practical importance.
    pub fn of(effect: &Effect, adjusted_p: f64, direction: Direction, margin: f64) -> Self {
        let Some(scatter) = effect.scatter else { return Self::Inconclusive };
        let within = |ratio: f64| ratio.ln().abs() <= margin.ln_1p();
        if within(scatter.interval.low) && within(scatter.interval.high) {
            return Self::NoDifference;
        }
        // Written so that a p value that is not a number proves nothing.
        let proven = adjusted_p <= FALSE_DISCOVERY_RATE;
        match (proven, effect.ratio > 1.0, direction) {
            (false, _, _) => Self::Inconclusive,
            (true, true, Direction::HigherIsFaster) | (true, false, Direction::LowerIsFaster) => Self::Faster,
            (true, ..) => Self::Slower,
        }
    }

    /// The verdict on two values of which nothing more is known: a change beyond a share is likely, anything else is not
    /// known.
    pub fn unsure(effect: &Effect, direction: Direction, beyond: f64) -> Self {
        let is_large = effect.ratio.ln().abs() > beyond.ln_1p();
        match (is_large, effect.ratio > 1.0, direction) {
            (false, ..) => Self::Inconclusive,
            (true, true, Direction::HigherIsFaster) | (true, false, Direction::LowerIsFaster) => Self::Faster,
            (true, ..) => Self::Slower,
        }
    }

    /// Plain words; what rests on one window is never more than likely.
    pub const fn label(self, basis: Basis) -> &'static str {
        match (self, basis) {
            (Self::Inconclusive, _) => "inconclusive",
            (Self::Faster, Basis::OneWindow) => "likely faster",
            (Self::Slower, Basis::OneWindow) => "likely slower",
            (Self::NoDifference, Basis::OneWindow) => "likely no difference",
            (Self::Faster, _) => "faster",
            (Self::Slower, _) => "slower",
            (Self::NoDifference, _) => "no difference",
        }
    }
}
