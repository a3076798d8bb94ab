//! The laws of comparing, and what keeps cells from being compared.

use proptest::prelude::*;

use super::{
    Basis, Direction, Effect, MARGIN, Verdict, can_be_told,
    conditions::{Condition, Conditions, Side},
    page::{Measure, Outcome, Pair, compare},
    welch::{Inside, LogMean},
};
use crate::{
    id::Phase,
    plan::{Load, PromptMode, Sampling, sampling::EndOfText},
    stats::{
        cell::{CellResult, CellStats, CellStatus, SlotSpread},
        interval::{Interval, IntervalKind},
    },
    trace::TokenSource,
};

const DECODE: Conditions = Conditions {
    phase: Phase::Decode,
    prompts: PromptMode::Shared,
    sampling: Sampling { temperature: None, top_p: None, end_of_text: EndOfText::Ignored, min_output_tokens: None },
    max_output_tokens: 4_096,
    load: Load::Sustained,
};

fn cell(total_tok_s: f64) -> CellResult {
    let stats = CellStats {
        total_tok_s: Some(total_tok_s),
        total_tok_s_interval: Some(Interval { half_width: total_tok_s * 0.01, n: 32, kind: IntervalKind::Blocks }),
        slot_spread: Some(SlotSpread { slots: 64, variation: 0.02 }),
        token_source: Some(TokenSource::ServerPerChunk),
        prompt_tokens: Some(8_190),
        ..CellStats::default()
    };
    CellResult { status: CellStatus::Valid, stats, findings: Vec::new(), failures: Vec::new(), rules: None }
}

fn cells(rates: &[f64]) -> Vec<CellResult> {
    rates.iter().map(|rate| cell(*rate)).collect()
}

fn outcome(base: &[CellResult], candidate: &[CellResult]) -> Outcome {
    let (base, candidate): (Vec<&CellResult>, Vec<&CellResult>) = (base.iter().collect(), candidate.iter().collect());
    let side = |repeats| Side { conditions: DECODE, repeats };
    let pair = Pair { base: side(&base), candidate: side(&candidate) };
    compare(&[pair], Measure::TOTAL_SPEED, MARGIN).remove(0)
}

#[test]
fn verdicts_say_what_the_data_hold() {
    let check = |base: &[f64], candidate: &[f64], wanted: &str| {
        assert_eq!(outcome(&cells(base), &cells(candidate)).label(), wanted, "{base:?} {candidate:?}");
    };
    check(&[100.0, 101.0, 99.0], &[110.0, 111.0, 109.0], "faster");
    check(&[110.0, 111.0, 109.0], &[100.0, 101.0, 99.0], "slower");
    check(&[100.0, 100.5, 99.5], &[100.2, 100.6, 100.0], "no difference");
    // Surely one percent apart: of no importance.
    check(&[100.0, 100.01, 99.99], &[101.0, 101.01, 100.99], "no difference");
    check(&[100.0, 120.0], &[105.0, 130.0], "inconclusive");
    check(&[100.0], &[110.0], "likely faster");
    check(&[100.0], &[110.0, 111.0, 109.0], "likely faster");
    check(&[100.0], &[100.2], "likely no difference");
    check(&[100.0], &[102.5], "likely faster");
    check(&[100.0], &[0.0], "not comparable");
}

#[test]
fn an_interval_beyond_all_numbers_is_told_from_neither_side() {
    let (near, far) = ([10.0, 0.0113], [1e-299; 3]);
    let mean = |values: &[f64]| LogMean::new(values, None).unwrap();
    let there = Effect::of_means(mean(&near), mean(&far));
    let back = Effect::of_means(mean(&far), mean(&near));
    assert!(can_be_told(there.ratio) && can_be_told(back.ratio));
    assert_eq!((there.scatter, back.scatter), (None, None), "{there:?}");
}

#[test]
fn inconclusive_says_what_could_have_been_seen() {
    let Outcome::Compared { verdict, effect } = outcome(&cells(&[100.0, 104.0, 96.0]), &cells(&[101.0, 105.0, 97.0]))
    else {
        panic!("not compared");
    };
    assert_eq!(verdict, Verdict::Inconclusive);
    let smallest = effect.scatter.unwrap().smallest_seen;
    // (2.776 + 0.941) · 4 % · √(2/3) on the log scale.
    assert!((smallest - 0.129).abs() < 0.003, "{smallest}");
}

#[test]
fn a_window_that_knows_half_of_its_error_proves_nothing() {
    let check = |change: fn(&mut CellStats)| {
        let mut alone = cell(100.0);
        change(&mut alone.stats);
        let outcome = outcome(&[alone], &cells(&[200.0]));
        assert_eq!((outcome.label(), outcome.basis()), ("inconclusive", Some(Basis::OneWindow)));
        assert_eq!(outcome.basis().and_then(Basis::caveat), Some("run-to-run variation unknown"));
    };
    check(|stats| stats.total_tok_s_interval = None);
    check(|stats| stats.slot_spread = None);
    // Two slots on texts that differ by a third: anything could be their sum.
    check(|stats| stats.slot_spread = Some(SlotSpread { slots: 2, variation: 0.3 }));
}

#[test]
fn one_false_discovery_rate_for_the_page() {
    // p = 0.028 alone is proof; among 40 cells without a difference it is none.
    let (a, b) = (cells(&[100.0, 103.0, 97.0]), cells(&[109.0, 112.0, 106.0]));
    let same = cells(&[100.0, 110.0, 91.0]);
    let refs = |cells: &'static [CellResult]| cells.iter().collect::<Vec<&CellResult>>();
    let [a, b, same] = [a, b, same].map(|cells| refs(Vec::leak(cells)));
    let side = |repeats| Side { conditions: DECODE, repeats };
    let mut pairs = vec![Pair { base: side(&a), candidate: side(&b) }];
    assert_eq!(compare(&pairs, Measure::TOTAL_SPEED, MARGIN)[0].label(), "faster");
    pairs.extend([Pair { base: side(&same), candidate: side(&same) }; 40]);
    assert_eq!(compare(&pairs, Measure::TOTAL_SPEED, MARGIN)[0].label(), "inconclusive");
}

#[track_caller]
fn check_differs(change: impl Fn(&mut Conditions, &mut CellResult), wanted: &[Condition]) {
    let (base, mut candidate) = (cell(100.0), cell(100.0));
    let mut conditions = DECODE;
    change(&mut conditions, &mut candidate);
    let pair = Pair {
        base: Side { conditions: DECODE, repeats: &[&base, &base] },
        candidate: Side { conditions, repeats: &[&candidate, &base] },
    };
    let found = match compare(&[pair], Measure::TOTAL_SPEED, MARGIN).remove(0) {
        Outcome::NotComparable(differences) => differences.into_iter().map(|it| it.condition).collect(),
        Outcome::Compared { .. } => Vec::new(),
    };
    assert_eq!(found, wanted);
}

#[test]
fn different_conditions_are_named() {
    check_differs(|_, _| {}, &[]);
    check_differs(|c, _| c.phase = Phase::Prefill, &[Condition::Phase]);
    check_differs(|c, _| c.prompts = PromptMode::Cold, &[Condition::PromptMode]);
    check_differs(|c, _| c.sampling.temperature = "0".parse().ok(), &[Condition::Sampling]);
    check_differs(|c, _| c.max_output_tokens = 16, &[Condition::MaxOutput]);
    check_differs(|_, cell| cell.status = CellStatus::RequestsQueued, &[Condition::Status]);
    check_differs(|_, cell| cell.status = CellStatus::ClientLimited, &[Condition::Status, Condition::ClientLimited]);
    check_differs(|_, cell| cell.status = CellStatus::NotDrained, &[Condition::Status]);
    check_differs(|_, cell| cell.stats.token_source = Some(TokenSource::Chunks), &[Condition::TokenSource]);
    check_differs(|_, cell| cell.stats.token_source = None, &[]);
    check_differs(|_, cell| cell.stats.prompt_tokens = Some(8_353), &[]);
    check_differs(|_, cell| cell.stats.prompt_tokens = Some(8_354), &[Condition::PromptTokens]);
    check_differs(|_, cell| cell.stats.prompt_tokens = Some(8_000), &[Condition::PromptTokens]);
}

#[test]
fn cells_that_failed_alike_are_not_compared() {
    let failed = CellResult::not_drained(1.0, 0.0);
    let failed = [failed];
    let outcome = outcome(&failed, &failed);
    let Outcome::NotComparable(differences) = outcome else { panic!("{outcome:?}") };
    insta::assert_snapshot!(differences[0], @"status: Failed: engine not idle and Failed: engine not idle");
}

fn rates() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(10.0..1_000.0_f64, 1..6)
}

fn swapped(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Faster => Verdict::Slower,
        Verdict::Slower => Verdict::Faster,
        other => other,
    }
}

proptest! {
    #[test]
    fn swapping_the_sides_turns_everything_around(a in rates(), b in rates()) {
        let blocks = Interval { half_width: 1.0, n: 24, kind: IntervalKind::Blocks };
        let inside = Inside { blocks, slots: SlotSpread { slots: 8, variation: 0.1 } };
        let mean = |rates: &[f64]| LogMean::new(rates, Some(inside)).unwrap();
        let there = Effect::of_means(mean(&a), mean(&b));
        let back = Effect::of_means(mean(&b), mean(&a));
        prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
        let (x, y) = (there.scatter.unwrap(), back.scatter.unwrap());
        prop_assert!((x.interval.low * y.interval.high - 1.0).abs() < 1e-9);
        prop_assert!((x.p - y.p).abs() < 1e-12);
        for direction in [Direction::HigherIsFaster, Direction::LowerIsFaster] {
            let verdict = Verdict::of(&there, x.p, direction, MARGIN);
            prop_assert_eq!(verdict, swapped(Verdict::of(&back, y.p, direction, MARGIN)));
        }
    }

    #[test]
    fn a_run_against_itself_is_neither_faster_nor_slower(rates in rates()) {
        let cells = cells(&rates);
        let verdict = outcome(&cells, &cells).verdict();
        prop_assert!(matches!(verdict, Some(Verdict::NoDifference | Verdict::Inconclusive)));
    }

    #[test]
    fn samples_swapped_turn_around_too(a in prop::collection::vec(0.1..9.0_f64, 5..40), b in prop::collection::vec(0.1..9.0_f64, 5..40)) {
        let (there, back) = (Effect::of_medians(&a, &b).unwrap(), Effect::of_medians(&b, &a).unwrap());
        prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
        prop_assert!((there.scatter.unwrap().p - back.scatter.unwrap().p).abs() < 1e-12);
        let itself = Effect::of_medians(&a, &a).unwrap();
        prop_assert!(itself.scatter.unwrap().p > 0.999);
    }
}
