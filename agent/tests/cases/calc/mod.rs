//! The cases that give numbers to a pure function: each is brought into the words of the product's own function, and what
//! that says is compared. Nothing is computed here.

mod engine;
mod prompts;
mod requests;
mod statistics;

use std::{io, path::Path};

use serde_json::Value;

use super::Verdict;

/// Numbers may be off by 0.5 %, as the cases say.
const TOLERANCE: f64 = 0.005;

/// Checks one case.
pub(crate) fn check(path: &Path) -> io::Result<Verdict> {
    let case = Case(serde_json::from_slice(&std::fs::read(path)?)?);
    let mut wrong = Wrong::default();
    let remark = match case.0["id"].as_str().unwrap_or_default() {
        "C07" => requests::window_ends_at_its_end(&case, &mut wrong),
        "C08" => requests::cold_first_request(&case, &mut wrong),
        "F01" => prompts::lengths_are_hit(&case, &mut wrong),
        "F04" => prompts::contexts_that_fit(&case, &mut wrong),
        "F07" => prompts::words_that_merge(&case, &mut wrong),
        "G01" => engine::effective_concurrency(&case, &mut wrong),
        "G03" => engine::preemptions(&case, &mut wrong),
        "G04" => engine::drained(&case, &mut wrong),
        "G08" => engine::own_tokens(&case, &mut wrong),
        "H07" => return Ok(Verdict::NotApplicable("counters that wrap: none narrower than 64 bits is read")),
        "K01" => statistics::deltas(&case, &mut wrong),
        "K03" => statistics::medians(&case, &mut wrong),
        "K04" => statistics::percentiles(&case, &mut wrong),
        "K05" => requests::failed_requests(&case, &mut wrong),
        "K07" => statistics::other_conditions(&case, &mut wrong),
        "K09" => statistics::paired_gauges(&case, &mut wrong),
        "K10" => requests::tiny_interval(&case, &mut wrong),
        _ => return Ok(Verdict::NotApplicable("no adapter for this calculation")),
    };
    Ok(if wrong.0.is_empty() { Verdict::Ok(remark.to_owned()) } else { Verdict::Failed(wrong.0) })
}

/// A case as it is written down.
pub(crate) struct Case(Value);

impl Case {
    fn given(&self, key: &str) -> &Value {
        &self.0["given"][key]
    }

    fn expect(&self, key: &str) -> &Value {
        &self.0["expect"][key]
    }
}

/// All numbers of a list.
fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// All pairs of a list.
fn pairs(value: &Value) -> Vec<(f64, f64)> {
    let rows = value.as_array().into_iter().flatten().map(numbers);
    rows.filter_map(|row| row.first().copied().zip(row.get(1).copied())).collect()
}

/// All that differs.
#[derive(Default)]
pub(crate) struct Wrong(pub(crate) Vec<String>);

impl Wrong {
    /// A number, within the tolerance or the range that is expected; null is none.
    pub(crate) fn number(&mut self, what: &str, got: Option<f64>, expected: &Value) {
        let fine = match (got, expected) {
            (None, Value::Null) => true,
            (Some(got), Value::Array(range)) => match range.as_slice() {
                [low, high] => low.as_f64() <= Some(got) && Some(got) <= high.as_f64(),
                _ => false,
            },
            (Some(got), expected) => {
                expected.as_f64().is_some_and(|wanted| (got - wanted).abs() <= TOLERANCE * wanted.abs())
            }
            _ => false,
        };
        if !fine {
            self.0.push(format!("{what} is {got:?}, not {expected}"));
        }
    }

    /// Anything else.
    pub(crate) fn same(&mut self, what: &str, got: impl Into<Value>, expected: &Value) {
        let got = got.into();
        if got != *expected {
            self.0.push(format!("{what} is {got}, not {expected}"));
        }
    }

    /// Something that must hold.
    pub(crate) fn must(&mut self, holds: Option<()>, what: &str) {
        if holds.is_none() {
            self.0.push(what.to_owned());
        }
    }
}
