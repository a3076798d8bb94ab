//! Cases about statistics and comparing.

use serde_json::{Value, json};
use speedmatrix_shared::{
    id::Phase,
    plan::{Load, PromptMode, Sampling},
    stats::{
        cell::{CellResult, CellStats, CellStatus},
        compare::{
            Direction, Effect, MARGIN, Verdict,
            conditions::{Condition, Conditions, Side},
            delta::Delta,
            medians::median_absolute_deviation,
            page::{Measure, Outcome, Pair, compare},
        },
        counter::paired_ratios,
        summary::Summary,
    },
    trace::TokenSource,
};

use super::{Case, Wrong, numbers, pairs};

/// K01: zero is a value, missing is none, and no percentage is infinite.
pub(super) fn deltas(case: &Case, wrong: &mut Wrong) -> &'static str {
    let given = case.given("pairs").as_array().into_iter().flatten();
    for (pair, expected) in given.zip(case.expect("delta").as_array().into_iter().flatten()) {
        let delta = Delta::new(pair["base"].as_f64(), pair["cand"].as_f64());
        wrong.number("difference", delta.absolute(), &expected["abs"]);
        wrong.number("percent", delta.share().map(|share| share * 100.0), &expected["pct"]);
        wrong.same("reason", delta.reason(), &expected["reason"]);
    }
    ""
}

/// K03: a median is judged by a band of its own.
pub(super) fn medians(case: &Case, wrong: &mut Wrong) -> &'static str {
    let (base, candidate) = (numbers(case.given("base")), numbers(case.given("cand")));
    let effect = Effect::of_medians(&base, &candidate);
    wrong.number("median change", effect.map(|it| (it.ratio - 1.0) * 100.0), case.expect("median_change_pct"));
    let verdict = effect.and_then(|effect| {
        let p = effect.scatter?.p;
        Some(Verdict::of(&effect, p, Direction::LowerIsFaster, MARGIN).label(effect.basis))
    });
    wrong.same("verdict", verdict, case.expect("verdict"));
    wrong.number("deviation", median_absolute_deviation(&base), case.expect("mad_base"));
    let mean = |values: &[f64]| Summary::of(values.iter().copied()).map(|summary| summary.mean);
    let change = Delta::new(mean(&base), mean(&candidate)).share().map(|share| share * 100.0);
    wrong.number("mean change", change, case.expect("mean_change_pct"));
    ""
}

/// K04: percentiles that too few values support are left out.
pub(super) fn percentiles(case: &Case, wrong: &mut Wrong) -> &'static str {
    for (n, key) in numbers(case.given("n")).into_iter().zip(["n10", "n200"]) {
        let expected = case.expect(key);
        let summary = Summary::of((1..=n as u32).map(f64::from));
        wrong.number("p50", summary.map(|s| s.p50), &expected["p50"]);
        wrong.number("p90", summary.and_then(|s| s.p90), &expected["p90"]);
        let p99 = summary.and_then(|s| s.p99);
        wrong.same("p99 marked", p99.is_none(), &expected["p99_marked"]);
        if p99.is_some() {
            wrong.number("p99", p99, &expected["p99"]);
        }
    }
    "a percentile without enough values is left out"
}

/// K07: other conditions are named, and there is no percentage.
pub(super) fn other_conditions(case: &Case, wrong: &mut Wrong) -> &'static str {
    let side = |given: &Value| {
        let usage = given["token_source"] == "usage";
        let stats = CellStats {
            total_tok_s: given["tok_s"].as_f64(),
            token_source: Some(if usage { TokenSource::ServerPerRequest } else { TokenSource::Chunks }),
            ..CellStats::default()
        };
        let conditions = Conditions {
            phase: Phase::Decode,
            load: if given["layer"] == "sustained" { Load::Sustained } else { Load::Burst { requests: 64 } },
            prompts: PromptMode::Shared,
            sampling: Sampling::default(),
            max_output_tokens: given["max_tokens"].as_u64().unwrap_or_default() as u32,
        };
        let result =
            CellResult { status: CellStatus::Valid, stats, findings: Vec::new(), failures: Vec::new(), rules: None };
        (conditions, result)
    };
    let (a, b) = (side(case.given("a")), side(case.given("b")));
    let pair = Pair {
        base: Side { conditions: a.0, repeats: &[&a.1] },
        candidate: Side { conditions: b.0, repeats: &[&b.1] },
    };
    let named: Option<Vec<&str>> = match compare(&[pair], Measure::TOTAL_SPEED, MARGIN).first() {
        Some(Outcome::NotComparable(differences)) => Some(differences.iter().map(|it| word(it.condition)).collect()),
        _ => None,
    };
    wrong.must(named.as_ref().map(|_| ()), "the cells were compared");
    wrong.same("differences", json!(named), case.expect("differences_named"));
    ""
}

/// A condition in the cases' words.
const fn word(condition: Condition) -> &'static str {
    match condition {
        Condition::Phase => "layer",
        Condition::TokenSource => "token_source",
        Condition::MaxOutput => "max_tokens",
        other => other.label(),
    }
}

/// K09: pairs of the same look, never the last look alone.
pub(super) fn paired_gauges(case: &Case, wrong: &mut Wrong) -> &'static str {
    let ratios = paired_ratios(&pairs(case.given("samples")));
    for (got, expected) in ratios.iter().zip(case.expect("steps_per_s").as_array().into_iter().flatten()) {
        wrong.number("steps per second", Some(*got), expected);
    }
    let median = Summary::of(ratios.iter().copied()).map(|summary| summary.p50);
    wrong.number("median", median, case.expect("median_steps_per_s"));
    ""
}
