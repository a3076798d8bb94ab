//! All cells of a page, compared at once: one false discovery rate over all of them.

use super::{
    Basis, Direction, Effect, Verdict,
    conditions::{Condition, Difference, Side, differences},
    multiple,
    welch::{Inside, LogMean},
};
use crate::stats::cell::CellResult;

/// Which number of the cells is compared.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// The number.
    pub value: fn(&CellResult) -> Option<f64>,
    /// What one window tells about its error, where it does.
    pub inside: fn(&CellResult) -> Option<Inside>,
    /// Which way it is good.
    pub direction: Direction,
    /// Where nothing is known of the scatter: the share beyond which a change is likely all the same; `None`: never.
    pub unsure_beyond: Option<f64>,
}

impl Measure {
    /// Tokens per second of all slots.
    pub const TOTAL_SPEED: Self = Self {
        value: |result| result.stats.total_tok_s,
        inside: |result| {
            let (blocks, slots) = result.stats.total_tok_s_interval.zip(result.stats.slot_spread)?;
            Some(Inside { blocks, slots })
        },
        direction: Direction::HigherIsFaster,
        unsure_beyond: None,
    };

    /// Median time to first token. It has no interval inside one window.
    pub const TTFT: Self = Self {
        value: |result| result.stats.ttft_s.map(|ttft| ttft.p50),
        inside: |_| None,
        direction: Direction::LowerIsFaster,
        unsure_beyond: None,
    };
}

/// The same cell, measured on two sides.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// What it is compared with.
    pub base: Side<'a>,
    /// What is judged.
    pub candidate: Side<'a>,
}

/// What became of a pair.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The conditions differ, by these.
    NotComparable(Vec<Difference>),
    /// It was compared.
    Compared {
        /// What the data hold.
        verdict: Verdict,
        /// How the sides differ.
        effect: Effect,
    },
}

impl Outcome {
    /// The verdict in words.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::NotComparable(_) => "not comparable",
            Self::Compared { verdict, effect } => verdict.label(effect.basis),
        }
    }

    /// The verdict, if the pair could be compared.
    pub const fn verdict(&self) -> Option<Verdict> {
        match self {
            Self::NotComparable(_) => None,
            Self::Compared { verdict, .. } => Some(*verdict),
        }
    }

    /// What the verdict rests on, if the pair could be compared.
    pub const fn basis(&self) -> Option<Basis> {
        match self {
            Self::NotComparable(_) => None,
            Self::Compared { effect, .. } => Some(effect.basis),
        }
    }
}

/// Compares all pairs of a page, in their order; `margin` is the share within which a difference is none.
pub fn compare(pairs: &[Pair<'_>], measure: Measure, margin: f64) -> Vec<Outcome> {
    let effects: Vec<Result<Effect, Vec<Difference>>> = pairs.iter().map(|pair| effect(pair, measure)).collect();
    let p_value = |effect: &Result<Effect, _>| {
        effect.as_ref().ok().and_then(|effect: &Effect| effect.scatter).map_or(f64::NAN, |scatter| scatter.p)
    };
    let adjusted = multiple::adjusted(&effects.iter().map(p_value).collect::<Vec<f64>>());
    let judge = |(effect, p): (Result<Effect, Vec<Difference>>, f64)| match effect {
        Ok(effect) => {
            let unsure = measure.unsure_beyond.filter(|_| effect.scatter.is_none());
            let verdict = match unsure {
                Some(beyond) => Verdict::unsure(&effect, measure.direction, beyond),
                None => Verdict::of(&effect, p, measure.direction, margin),
            };
            Outcome::Compared { verdict, effect }
        }
        Err(differences) => Outcome::NotComparable(differences),
    };
    effects.into_iter().zip(adjusted).map(judge).collect()
}

fn effect(pair: &Pair<'_>, measure: Measure) -> Result<Effect, Vec<Difference>> {
    let differences = differences(&pair.base, &pair.candidate);
    if !differences.is_empty() {
        return Err(differences);
    }
    let means = mean(&pair.base, measure).zip(mean(&pair.candidate, measure));
    means.map(|(base, candidate)| Effect::of_means(base, candidate)).ok_or_else(|| {
        let word = |side: &Side<'_>| {
            let is_zero = side.repeats.iter().any(|result| (measure.value)(result) == Some(0.0));
            let is_there = mean(side, measure).is_some();
            if is_there {
                "yes"
            } else if is_zero {
                "zero"
            } else {
                "no"
            }
            .to_owned()
        };
        let (base, candidate) = (word(&pair.base), word(&pair.candidate));
        vec![Difference { condition: Condition::Measured, base, candidate }]
    })
}

fn mean(side: &Side<'_>, measure: Measure) -> Option<LogMean> {
    // A repeat without the number leaves the others as they are.
    let values: Vec<f64> = side.repeats.iter().filter_map(|result| (measure.value)(result)).collect();
    let inside = side.repeats.iter().find_map(|result| (measure.inside)(result));
    LogMean::new(&values, inside)
}
