//! Cases about the length of prompts.

use serde_json::Value;
use speedmatrix_agent::prompt::calibrate::{Aim, Counted, Fit, Verdict};
use speedmatrix_shared::{
    id::{CellId, Phase},
    plan::{PlanDraft, RunPlan},
    target::Limits,
    units::{Concurrency, Context},
};

use super::{Case, Wrong, numbers, pairs};

/// A server's count of a text of so many words.
type Count<'a> = &'a dyn Fn(f64) -> f64;

/// What a calibration came to.
struct Calibrated {
    words: usize,
    tokens: Option<u64>,
    probes: u64,
    verdict: Verdict,
}

/// Calibrates a context as a run does, with words in the place of characters: two sizes, then corrections.
fn calibrate(context: u64, sizes: [usize; 2], count: Count<'_>) -> Calibrated {
    let tokens = |words: usize| count(words as f64).round() as u64;
    let [small, large] = sizes.map(|chars| Counted { chars, tokens: tokens(chars) });
    let fit = Fit::through(small, large).unwrap_or_else(Fit::estimated);
    let mut aim = Aim::new(Context::new(context).expect("the cases ask for contexts"), fit);
    let mut probes = 2;
    loop {
        probes += 1;
        let words = aim.chars();
        let verdict = aim.counted(tokens(words));
        if verdict != Verdict::Corrected {
            return Calibrated { words, tokens: aim.real_tokens(), probes, verdict };
        }
    }
}

/// F01: the lengths asked for are hit, in few tries, by the server's own count.
pub(super) fn lengths_are_hit(case: &Case, wrong: &mut Wrong) -> &'static str {
    let tolerance = case.given("tolerance").as_f64().unwrap_or_default();
    let near = |wanted: f64| Value::from(vec![wanted * (1.0 - tolerance), wanted * (1.0 + tolerance)]);
    let words = numbers(case.expect("words"));
    let reported = numbers(case.expect("reported_prompt_tokens"));
    for (target, (words, reported)) in numbers(case.given("targets")).into_iter().zip(words.into_iter().zip(reported)) {
        let got = calibrate(target as u64, [100, 1_000], &|words| (words * 1.37).round() + 11.0);
        wrong.number("words", Some(got.words as f64), &near(words));
        wrong.number("tokens", got.tokens.map(|tokens| tokens as f64), &near(reported));
        wrong.number("tokens", got.tokens.map(|tokens| tokens as f64), &near(target));
        let most = case.expect("probes_at_most").as_u64().unwrap_or_default();
        wrong.must((got.probes <= most).then_some(()), "too many probes");
    }
    "aims 8 tokens below the target, within the case's tolerance"
}

/// F04: what fits is known before the run.
pub(super) fn contexts_that_fit(case: &Case, wrong: &mut Wrong) -> &'static str {
    let draft = PlanDraft {
        target: "http://localhost".to_owned(),
        contexts: "8K".to_owned(),
        concurrency: "1".to_owned(),
        max_output: case.given("max_tokens").to_string(),
        ..PlanDraft::default()
    };
    let Ok(plan) = RunPlan::try_from(draft) else {
        wrong.must(None, "the plan is refused");
        return "";
    };
    let limits = Limits { max_model_len: case.given("max_model_len").as_u64(), ..Limits::default() };
    let check = |key: &str, wanted: bool, wrong: &mut Wrong| {
        for tokens in numbers(case.expect(key)) {
            // No plan has an empty prompt: the least one is a token.
            let context = Context::new((tokens as u64).max(1)).expect("the cases ask for contexts");
            let cell = CellId { phase: Phase::Decode, context, concurrency: Concurrency::ONE };
            wrong.same(&format!("{context} fits"), plan.fits_model_length(cell, limits), &Value::from(wanted));
        }
    };
    check("fits", true, wrong);
    check("does_not_fit", false, wrong);
    "the template's overhead is part of the context"
}

/// F07: a tokenizer that merges a repeated word is found out by the check at the target's length.
pub(super) fn words_that_merge(case: &Case, wrong: &mut Wrong) -> &'static str {
    let target = case.given("target").as_u64().unwrap_or_default();
    let usable = |table: &Value| {
        let table = pairs(table);
        let calibrated = calibrate(target, [100, 1_000], &|words| on_the_line(&table, words));
        (calibrated.verdict == Verdict::Right, calibrated.words)
    };
    let (repeated, _) = usable(case.given("table_repeated_word"));
    let (varied, words) = usable(case.given("table_varied_words"));
    wrong.same("repeated word usable", repeated, case.expect("repeated_word_usable"));
    wrong.same("varied words usable", varied, case.expect("varied_words_usable"));
    wrong.number("words", Some(words as f64), case.expect("words"));
    ""
}

/// A table's value between and beyond its rows.
fn on_the_line(table: &[(f64, f64)], words: f64) -> f64 {
    let mut segments = table.iter().zip(table.iter().skip(1));
    let segment = segments.clone().find(|(_, (to, _))| words <= *to).or(segments.next_back());
    segment.map_or(0.0, |(&(from, a), &(to, b))| a + (words - from) * (b - a) / (to - from))
}
