//! Whether the statistics keep their word: intervals, verdicts and plans on cells whose truth is known.

use speedmatrix_agent::sim::{Outputs, Physics, SimConfig, Speculation, VirtualPlan};
use speedmatrix_shared::{
    id::Phase,
    plan::{Load, PromptMode, Sampling, sampling::EndOfText},
    stats::{
        cell::CellResult,
        compare::{
            Basis, MARGIN, Verdict,
            conditions::{Conditions, Side},
            page::{Measure, Outcome, Pair, compare},
            repeats::{Spread, repeats_to_see},
        },
        interval::Interval,
    },
    units::{Concurrency, Context, Nanos},
};

use crate::virtual_rig::{VirtualCell, measure};

const CONDITIONS: Conditions = Conditions {
    load: Load::Sustained,
    phase: Phase::Decode,
    prompts: PromptMode::Shared,
    sampling: Sampling { temperature: None, top_p: None, end_of_text: EndOfText::Ignored, min_output_tokens: None },
    max_output_tokens: 4_096,
};

/// The reference's engine with its scatter of steps and acceptance, and texts that differ by `text_sigma`. The context
/// costs nothing, so that steady cells have one speed all along: C ÷ time per token.
fn noisy(text_sigma: f64) -> SimConfig {
    let mut config = SimConfig::preset("reference").unwrap();
    config.kv_tokens = 1 << 28;
    config.speculation = Some(Speculation { draft_tokens: 7, mean_length: 3.5, text_sigma });
    if let Physics::Batch(physics) = &mut config.physics {
        physics.token_time.context_ms = 0.0;
        physics.token_time.product_ms = 0.0;
    }
    config
}

/// The same engine, faster by `share`.
fn faster(mut config: SimConfig, share: f64) -> SimConfig {
    if let Physics::Batch(physics) = &mut config.physics {
        let time = &mut physics.token_time;
        for part in [&mut time.base_ms, &mut time.sqrt_ms, &mut time.streams_ms] {
            *part /= 1.0 + share;
        }
    }
    config
}

/// A kind of cell: how many slots, how long the answers, how long the window.
#[derive(Clone, Copy)]
struct Kind {
    text_sigma: f64,
    level: u32,
    outputs: Outputs,
    secs: u64,
}

impl Kind {
    fn measure(self, config: &SimConfig, seed: u64) -> VirtualCell {
        let config = SimConfig { seed, ..config.clone() };
        let context = Context::new(8_192).unwrap();
        measure(
            &config,
            VirtualPlan::new(Concurrency::new(self.level).unwrap(), context, self.outputs),
            Nanos::from_secs(self.secs),
        )
    }

    fn results(self, config: &SimConfig, seeds: std::ops::Range<u64>) -> Vec<CellResult> {
        seeds.map(|seed| self.measure(config, seed).result).collect()
    }

    /// The speed over a time in which everything has averaged out.
    fn long_run(self) -> f64 {
        Self { secs: 1_500, ..self }.measure(&noisy(self.text_sigma), 1 << 40).total_tok_s()
    }

    /// Cells of the seeds that have a block interval, and those of them whose interval holds the truth.
    fn coverage(self, truth: f64, seeds: std::ops::Range<u64>) -> (usize, usize) {
        let config = noisy(self.text_sigma);
        let with: Vec<bool> = seeds
            .filter_map(|seed| {
                let cell = self.measure(&config, seed);
                let half = cell.stats().total_tok_s_interval?.half_width;
                Some((cell.total_tok_s() - truth).abs() <= half)
            })
            .collect();
        (with.len(), with.iter().filter(|held| **held).count())
    }
}

/// Answers that outlast every window.
const ENDLESS: Outputs = Outputs::Exactly(1 << 20);

#[test]
fn block_intervals_hold_the_truth_as_often_as_they_say() {
    let kinds = [
        Kind { text_sigma: 0.0, level: 1, outputs: ENDLESS, secs: 6 },
        Kind { text_sigma: 0.0, level: 2, outputs: ENDLESS, secs: 6 },
        Kind { text_sigma: 0.0, level: 2, outputs: Outputs::Drawn { at_most: 900 }, secs: 8 },
        Kind { text_sigma: 0.25, level: 1, outputs: Outputs::Exactly(100), secs: 12 },
    ];
    let (mut with, mut held) = (0, 0);
    for (number, kind) in (0..).zip(kinds) {
        let (some, right) = kind.coverage(kind.long_run(), number * 250..(number + 1) * 250);
        assert!(right as f64 >= 0.91 * some as f64, "kind {number}: {right} of {some}");
        (with, held) = (with + some, held + right);
    }
    assert!(with >= 900, "only {with} of 1,000 cells have an interval");
    assert!(held as f64 >= 0.93 * with as f64, "{held} of {with}");
}

/// Where each slot holds one request all along, what its text does to speculation never shows as a change inside of the
/// window: no block can know. Only repeats do; so a comparison of two windows is never more than likely.
#[test]
fn only_repeats_know_what_long_requests_hide() {
    let kind = Kind { text_sigma: 0.25, level: 2, outputs: Outputs::Exactly(4_096), secs: 4 };
    let truth = kind.long_run();
    let cells = kind.results(&noisy(kind.text_sigma), 5_000..5_180);
    let rate = |cell: &CellResult| cell.stats.total_tok_s.unwrap();
    let by_blocks = cells.iter().filter(|cell| {
        cell.stats.total_tok_s_interval.is_some_and(|interval| (rate(cell) - truth).abs() <= interval.half_width)
    });
    let by_blocks = by_blocks.count();
    let groups: Vec<Vec<f64>> = cells.chunks(3).map(|group| group.iter().map(rate).collect()).collect();
    let by_repeats = groups.iter().filter(|rates| {
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        Interval::of_repeats(rates).is_some_and(|interval| (mean - truth).abs() <= interval.half_width)
    });
    let by_repeats = by_repeats.count();
    assert!(by_blocks < 90, "{by_blocks} of 180");
    assert!(by_repeats as f64 >= 0.9 * groups.len() as f64, "{by_repeats} of {}", groups.len());
}

/// Compares neighbours of `repeats` cells each, in pages of `page` pairs.
fn outcomes(base: &[CellResult], candidate: &[CellResult], repeats: usize, page: usize) -> Vec<Outcome> {
    let refs = |cells: &'static [CellResult]| -> Vec<Vec<&'static CellResult>> {
        cells.chunks(repeats).map(|group| group.iter().collect()).collect()
    };
    let (base, candidate) = (refs(Vec::leak(base.to_vec())), refs(Vec::leak(candidate.to_vec())));
    let side = |repeats| Side { conditions: CONDITIONS, repeats };
    let pairs: Vec<Pair<'_>> =
        base.iter().zip(&candidate).map(|(a, b)| Pair { base: side(a), candidate: side(b) }).collect();
    pairs.chunks(page).flat_map(|page| compare(page, Measure::TOTAL_SPEED, MARGIN)).collect()
}

fn count(outcomes: &[Outcome], wanted: impl Fn(Verdict) -> bool) -> usize {
    outcomes.iter().filter_map(Outcome::verdict).filter(|verdict| wanted(*verdict)).count()
}

#[test]
fn a_run_against_its_twin_is_no_news() {
    let kind = Kind { text_sigma: 0.25, level: 2, outputs: Outputs::Exactly(1_500), secs: 4 };
    let config = noisy(kind.text_sigma);
    let (base, candidate) = (kind.results(&config, 10_000..10_600), kind.results(&config, 20_000..20_600));
    let news = |verdict| matches!(verdict, Verdict::Faster | Verdict::Slower);
    let pages = outcomes(&base, &candidate, 3, 8);
    assert_eq!(count(&pages, |_| true), 200);
    let alone = outcomes(&base, &candidate, 3, 1);
    let windows = outcomes(&base[..200], &candidate[..200], 1, 8);
    assert!(count(&pages, news) <= 10, "{} of 200", count(&pages, news));
    // Without the page's adjustment one in twenty is expected to be false; 16 of 200 leaves room for chance.
    assert!(count(&alone, news) <= 16, "{} of 200", count(&alone, news));
    // One window per side never claims to know; what texts do to its slots is in its error all the same.
    assert!(count(&windows, news) <= 10, "{} of 200", count(&windows, news));
    assert!(windows.iter().all(|outcome| outcome.basis() == Some(Basis::OneWindow)));
}

/// With many slots, each on a text of its own, one window shows how much texts differ.
#[test]
fn one_window_of_many_slots_sees_a_large_change_and_no_other() {
    let kind = Kind { text_sigma: 0.25, level: 16, outputs: Outputs::Exactly(1_500), secs: 4 };
    let config = noisy(kind.text_sigma);
    let base = kind.results(&config, 50_000..50_100);
    let twin = outcomes(&base, &kind.results(&config, 60_000..60_100), 1, 1);
    let false_news = count(&twin, |verdict| matches!(verdict, Verdict::Faster | Verdict::Slower));
    assert!(false_news <= 10, "{false_news} of 100");
    let changed = outcomes(&base, &kind.results(&faster(config, 0.4), 70_000..70_100), 1, 1);
    let found = changed.iter().filter(|outcome| outcome.label() == "likely faster").count();
    assert!(found >= 80, "{found} of 100");
}

#[test]
fn a_planted_change_is_found_with_as_many_repeats_as_planned() {
    let kind = Kind { text_sigma: 0.05, level: 2, outputs: Outputs::Exactly(1_500), secs: 4 };
    let config = noisy(kind.text_sigma);
    let pilot = kind.results(&config, 30_000..30_010);
    let rates: Vec<f64> = pilot.iter().filter_map(|cell| cell.stats.total_tok_s).collect();
    let spread = Spread::of_repeats(&[&rates]).unwrap();
    let repeats = repeats_to_see(0.05, spread).unwrap() as usize;
    let tries = 50;
    let cells = (tries * repeats) as u64;
    let base = kind.results(&config, 31_000..31_000 + cells);
    let candidate = kind.results(&faster(config, 0.05), 41_000..41_000 + cells);
    let found = outcomes(&base, &candidate, repeats, 1);
    let right = count(&found, |verdict| verdict == Verdict::Faster);
    assert!(right * 5 >= tries * 4, "{right} of {tries} with {repeats} repeats");
    assert_eq!(count(&found, |verdict| verdict == Verdict::Slower), 0);
}
