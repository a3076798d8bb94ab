//! The reference page's whole matrix in simulated time.

use speedmatrix_agent::sim::{BatchPhysics, Outputs, Physics, SimConfig, VirtualPlan};
use speedmatrix_shared::{
    stats::cell::CellStatus,
    units::{Concurrency, Context, K, Nanos},
};

use crate::virtual_rig::{VirtualCell, measure};

const CONTEXTS_K: [u64; 8] = [8, 16, 32, 64, 128, 256, 512, 1019];
const LEVELS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const WINDOW: Nanos = Nanos::from_secs(30);
/// The page's limit of an answer, tokens.
const PAGE_OUTPUT: u64 = 4_096;

fn reference() -> SimConfig {
    SimConfig::preset("reference").unwrap()
}

fn plan(context_k: u64, level: u32, outputs: Outputs) -> VirtualPlan {
    VirtualPlan::new(Concurrency::new(level).unwrap(), Context::new(context_k * K).unwrap(), outputs)
}

fn physics(config: &SimConfig) -> BatchPhysics {
    match config.physics {
        Physics::Batch(physics) => physics,
        Physics::Fixed { .. } => panic!("the reference is a batch"),
    }
}

/// Tokens per second of C requests that decode all the time: C ÷ time per token, at the contexts they have in the middle
/// of the window.
fn closed_form(config: &SimConfig, level: u32, cell: &VirtualCell) -> f64 {
    let before = |end: Nanos| -> u64 {
        let arrivals = cell.record.traces.iter().flat_map(|trace| &trace.arrivals);
        arrivals.filter(|arrival| arrival.at < end).count() as u64
    };
    let middle = cell.window.start + Nanos(WINDOW.0 / 2);
    let prompts = cell.stats().prompt_tokens.unwrap() * u64::from(level);
    let token_s = physics(config).token_time(level as usize, prompts + before(middle)).as_secs_f64();
    f64::from(level) / token_s
}

#[test]
fn every_steady_cell_of_the_page_has_the_speed_of_the_closed_form() {
    let mut config = reference();
    // Without anything drawn: a token per step, and no scatter. Room for answers that outlast ramp and window.
    config.speculation = None;
    config.kv_tokens = 1 << 28;
    if let Physics::Batch(physics) = &mut config.physics {
        physics.step_sigma = 0.0;
    }
    for context_k in CONTEXTS_K {
        for level in LEVELS {
            let cell = measure(&config, plan(context_k, level, Outputs::Exactly(1 << 20)), WINDOW);
            let (got, want) = (cell.total_tok_s(), closed_form(&config, level, &cell));
            assert!((got / want - 1.0).abs() < 0.01, "{context_k}K x {level}: {got} is not within 1 % of {want}");
            assert_eq!(cell.result.status, CellStatus::Valid, "{context_k}K x {level}");
        }
    }
}

/// The page marks two of its cells "Requests queued", and in neither was there a queue.
///
/// - 1019K x 2: with two slots, one that is admitted again after each answer is half of them. An admission of a million
///   cached tokens takes 1.7 s, so a slot without a token for more than 5 % of the window is the normal course there, and
///   the page's tool took it for a queue: 1.8 of 2 active, a TTFT of 3 s. Nobody waited for anybody else.
/// - 1019K x 128: the admissions of the start burst take 128 x 1.6 s = 209 s, one after the other (its median TTFT of 94 s
///   is about half of that). The tool's ramp was over before: 73.4 of 128 decoded in its window, the others were still
///   being admitted. A ramp that lasts until all slots had a token sees all of them decode.
#[test]
fn the_page_s_two_queues_are_none() {
    for context_k in CONTEXTS_K {
        for level in LEVELS {
            let name = format!("{context_k}K x {level}");
            let cell = measure(&reference(), plan(context_k, level, Outputs::Exactly(PAGE_OUTPUT)), WINDOW);
            assert!(
                matches!(cell.result.status, CellStatus::Valid | CellStatus::UnderFilled),
                "{name}: {:?}",
                cell.result
            );
            let decoding = cell.stats().decoding_requests.unwrap();
            match (context_k, level) {
                (1019, 2) => {
                    // The tool's rule would speak: a slot had no token for more than 5 % of the window.
                    assert!(f64::from(level) - decoding > 0.05, "{name}: {decoding}");
                    assert!(cell.stats().engine_waiting.unwrap().mean < 0.1, "{name}");
                }
                (1019, 128) => {
                    assert!(decoding > 0.98 * 128.0, "{name}: {decoding}");
                    assert!(cell.window.start.since(cell.record.ramp_start) > Nanos::from_secs(200), "{name}");
                }
                _ => {}
            }
        }
    }
}
