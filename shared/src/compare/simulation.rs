//! What the statistics of a page do over many seeded pages: false alarms, power at the planned repeats, coverage.

use super::{Ranked, repeats::RepeatPlan, tests::run};
use crate::{
    id::Phase,
    plan::{Load, PromptMode, Sampling},
    stats::{
        cell::{CellResult, CellStats, CellStatus},
        compare::{
            Effect, MARGIN, Verdict,
            conditions::{Conditions, Side},
            page::{Measure, Pair, compare},
            welch::LogMean,
        },
    },
};

/// Numbers that depend on the seed only: SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    /// Above 0 and at most 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((z ^ (z >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Repeats of a speed that scatter by this share.
    fn repeats(&mut self, speed: f64, log_sd: f64, n: u32) -> Vec<f64> {
        (0..n).map(|_| speed * (log_sd * self.normal()).exp()).collect()
    }
}

fn results(speeds: &[f64]) -> Vec<CellResult> {
    let result = |total: &f64| CellResult {
        status: CellStatus::Valid,
        stats: CellStats { total_tok_s: Some(*total), ..CellStats::default() },
        findings: Vec::new(),
        failures: Vec::new(),
        rules: None,
    };
    speeds.iter().map(result).collect()
}

/// The verdicts of a page: repeats of each cell on both sides.
fn page(cells: &[(Vec<f64>, Vec<f64>)]) -> Vec<Option<Verdict>> {
    let results: Vec<[Vec<CellResult>; 2]> = cells.iter().map(|(a, b)| [results(a), results(b)]).collect();
    let refs: Vec<[Vec<&CellResult>; 2]> =
        results.iter().map(|[a, b]| [a.iter().collect(), b.iter().collect()]).collect();
    let conditions = Conditions {
        phase: Phase::Decode,
        load: Load::Sustained,
        prompts: PromptMode::Shared,
        sampling: Sampling::default(),
        max_output_tokens: 64,
    };
    let side = |repeats| Side { conditions, repeats };
    let pairs: Vec<Pair<'_>> =
        refs.iter().map(|[a, b]| Pair { base: side(a.as_slice()), candidate: side(b.as_slice()) }).collect();
    compare(&pairs, Measure::TOTAL_SPEED, MARGIN).into_iter().map(|outcome| outcome.verdict()).collect()
}

fn is_alarm(verdict: Option<Verdict>) -> bool {
    matches!(verdict, Some(Verdict::Faster | Verdict::Slower))
}

#[test]
fn pages_without_a_difference_raise_few_alarms() {
    const PAGES: usize = 200;
    let mut random = Random(1);
    let alarmed = (0..PAGES).filter(|_| {
        let cells: Vec<(Vec<f64>, Vec<f64>)> = (1..=64)
            .map(|cell| {
                let speed = 50.0 * f64::from(cell);
                (random.repeats(speed, 0.04, 4), random.repeats(speed, 0.04, 4))
            })
            .collect();
        page(&cells).into_iter().any(is_alarm)
    });
    let alarmed = alarmed.count();
    println!("{alarmed} of {PAGES} pages without a difference raised an alarm");
    assert!(alarmed * 20 <= PAGES, "{alarmed} of {PAGES} pages");
}

#[test]
fn the_planned_repeats_see_the_change() {
    const TRIES: u32 = 300;
    const SHARE: f64 = 0.05;
    let mut random = Random(2);
    let mut seen = 0;
    for _ in 0..TRIES {
        let pilot: Vec<Vec<f64>> = (1..=4).map(|cell| random.repeats(100.0 * f64::from(cell), 0.02, 3)).collect();
        let names = ["decode-8K-1", "decode-8K-2", "decode-16K-1", "decode-16K-2"];
        let cells: Vec<(&str, &[f64])> = names.into_iter().zip(pilot.iter().map(Vec::as_slice)).collect();
        let plan = RepeatPlan::of(&[&run("pilot", &cells)], Ranked::total_speed(), SHARE).unwrap();
        let n = plan.repeats.unwrap();
        let pair = (random.repeats(100.0, 0.02, n), random.repeats(100.0 * (1.0 + SHARE), 0.02, n));
        seen += u32::from(page(&[pair]) == [Some(Verdict::Faster)]);
    }
    println!("{seen} of {TRIES} comparisons with the planned repeats saw a change of 5 %");
    assert!(f64::from(seen) >= 0.8 * f64::from(TRIES), "{seen} of {TRIES}");
}

#[test]
fn intervals_hold_the_truth() {
    const TRIES: u32 = 1_500;
    let mut random = Random(3);
    let mut held = 0;
    for of in 0..TRIES {
        let truth = 1.0 + 0.1 * random.normal().tanh();
        let n = 3 + of % 4;
        let (base, candidate) = (random.repeats(80.0, 0.03, n), random.repeats(80.0 * truth, 0.05, n));
        let means = LogMean::new(&base, None).zip(LogMean::new(&candidate, None));
        let (base, candidate) = means.unwrap();
        let interval = Effect::of_means(base, candidate).scatter.unwrap().interval;
        held += u32::from((interval.low..=interval.high).contains(&truth));
    }
    println!("{held} of {TRIES} intervals held the true ratio");
    assert!(f64::from(held) >= 0.93 * f64::from(TRIES), "{held} of {TRIES}");
}
