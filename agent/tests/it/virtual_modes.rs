//! Each prompt mode, each way of counting, with and without speculation, and every status that a scheduler alone can
//! bring about: counts exactly, rates within 1 %. What sockets and the client add is in `truth`.

use std::time::Duration;

use speedmatrix_agent::sim::{Breaks, Outputs, Physics, SimConfig, UsageStyle, VirtualPlan};
use speedmatrix_shared::{
    plan::PromptMode,
    stats::cell::CellStatus,
    trace::{FailureKind, TokenSource},
    units::{Concurrency, Context, Nanos},
};

use crate::virtual_rig::{VirtualCell, measure};

const WINDOW: Nanos = Nanos::from_secs(30);
/// Tokens per step of the speculative preset.
const MEAN_LENGTH: f64 = 3.5;
/// The exact presets' steps per second.
const STEPS_PER_S: f64 = 100.0;

fn plan(level: u32, outputs: Outputs) -> VirtualPlan {
    VirtualPlan::new(Concurrency::new(level).unwrap(), Context::new(4_096).unwrap(), outputs)
}

fn check_within(what: &str, got: f64, want: f64, share: f64) {
    assert!((got / want - 1.0).abs() <= share, "{what}: {got} is not within {share} of {want}");
}

/// Tokens and chunks in the window by a count of its own, on the cell whose chunks carry the running total.
fn counted(cell: &VirtualCell) -> (u64, u64) {
    let (mut tokens, mut chunks) = (0, 0);
    for trace in &cell.record.traces {
        let mut before = 0;
        for arrival in &trace.arrivals {
            let now = u64::from(arrival.usage_tokens.unwrap().get());
            if arrival.at >= cell.window.start && arrival.at < cell.window.end {
                tokens += now - before;
                chunks += 1;
            }
            before = now;
        }
    }
    (tokens, chunks)
}

#[test]
fn every_mode_counts_what_came() {
    for (preset, length) in [("exact", 1.0), ("exact-speculative", MEAN_LENGTH)] {
        let mixed = "mixed:50%".parse().unwrap();
        for prompts in [PromptMode::Shared, PromptMode::Unique, mixed, PromptMode::Cold] {
            let mut config = SimConfig::preset(preset).unwrap();
            config.speculation.iter_mut().for_each(|speculation| speculation.text_sigma = 0.0);
            // Answers of 9.6 s and more: the 50 ms of an admission stay below 1 %.
            let plan = VirtualPlan { prompts, ..plan(8, Outputs::Exactly((960.0 * length) as u64)) };
            let truth = measure(&config, plan, WINDOW);
            let (tokens, chunks) = counted(&truth);
            for usage in [UsageStyle::EveryChunk, UsageStyle::FinalOnly, UsageStyle::None] {
                let what = format!("{preset}, {prompts:?}, {usage:?}");
                check_counts(&SimConfig { usage, ..config.clone() }, plan, &what, (tokens, chunks));
            }
            check_within(preset, truth.total_tok_s(), 8.0 * length * STEPS_PER_S, 0.01);
        }
    }
}

fn check_counts(config: &SimConfig, plan: VirtualPlan, what: &str, (tokens, chunks): (u64, u64)) {
    let cell = measure(config, plan, WINDOW);
    let stats = cell.stats();
    assert_eq!(cell.result.status, CellStatus::Valid, "{what}: {stats:#?}");
    let got = stats.output_tokens.unwrap();
    let source = match config.usage {
        UsageStyle::EveryChunk => {
            assert_eq!(got, tokens, "{what}");
            TokenSource::ServerPerChunk
        }
        UsageStyle::FinalOnly => {
            // A total per request, spread over its chunks: right to the share of the window that its edges are.
            check_within(what, got as f64, tokens as f64, 0.01);
            TokenSource::ServerPerRequest
        }
        UsageStyle::None => {
            assert_eq!(got, chunks, "{what}");
            TokenSource::Chunks
        }
    };
    assert_eq!(stats.token_source, Some(source), "{what}");
    let cached = match (config.usage, plan.prompts) {
        (UsageStyle::None, _) => None,
        (_, PromptMode::Cold) => Some(0.0),
        // 4,096 tokens less the question, in whole blocks of 256.
        (_, PromptMode::Shared | PromptMode::Unique) => Some(0.9375),
        // 7 of its 15 blocks.
        (_, PromptMode::Mixed(_)) => Some(0.4375),
    };
    assert_eq!(stats.cached_share, cached, "{what}");
    // Client's and engine's own count of what runs agree.
    check_within(what, stats.engine_running.unwrap().mean, stats.active_requests.unwrap(), 0.01);
}

/// A cell on the exact preset, changed; its status, and its total speed where it has one.
fn check_status(change: impl Fn(&mut SimConfig, &mut VirtualPlan), wanted: CellStatus, tok_s: Option<f64>) {
    let mut config = SimConfig::preset("exact").unwrap();
    let mut plan = plan(4, Outputs::Exactly(1_000));
    change(&mut config, &mut plan);
    let cell = measure(&config, plan, Nanos::from_millis(29_800));
    assert_eq!(cell.result.status, wanted, "{:#?}", cell.result);
    if let Some(tok_s) = tok_s {
        check_within(&wanted.label(), cell.total_tok_s(), tok_s, 0.01);
    }
}

#[test]
fn every_status_has_its_cause() {
    let first_token = |config: &mut SimConfig, millis| {
        config.physics = Physics::Fixed { first_token: Duration::from_millis(millis), step: Duration::from_millis(10) };
    };
    check_status(|_, _| {}, CellStatus::Valid, Some(4.0 * STEPS_PER_S));
    // Two of four run, the others wait for them.
    check_status(|config, _| config.max_sequences = 2, CellStatus::RequestsQueued, Some(2.0 * STEPS_PER_S));
    // 500 ms of admission before each second of text: 100 tokens in 1.49 s, twenty times in the window.
    check_status(
        |config, plan| {
            first_token(config, 500);
            plan.outputs = Outputs::Exactly(100);
        },
        CellStatus::UnderFilled,
        Some(4.0 * 100.0 / 1.49),
    );
    // The first tokens come after the ramp's budget of a minute, and nobody queues for them.
    let slow = |config: &mut SimConfig, plan: &mut VirtualPlan| {
        first_token(config, 70_000);
        plan.prompts = PromptMode::Cold;
    };
    check_status(slow, CellStatus::RampIncomplete, None);
    check_status(|_, plan| plan.foreign = 4, CellStatus::Contaminated, Some(4.0 * STEPS_PER_S));
    let lag = |_: &mut SimConfig, plan: &mut VirtualPlan| plan.process_lag_ns = Some(3_000_000);
    check_status(lag, CellStatus::ClientLimited, Some(4.0 * STEPS_PER_S));
    let breaks = |_: &mut SimConfig, plan: &mut VirtualPlan| plan.breaks = Some(Breaks { every: 3, after_tokens: 10 });
    check_status(breaks, CellStatus::Failed(FailureKind::ConnectionReset), None);
}
