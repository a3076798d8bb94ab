//! Tests of the engine's schedule in simulated time, without a clock.

use std::time::Duration;

use super::super::config::SimConfig;
use super::*;

const MS: u64 = 1_000_000;

fn laws(preset: &str) -> Laws {
    let config = SimConfig::preset(preset).unwrap();
    Laws {
        physics: config.physics,
        speculation: config.speculation,
        max_sequences: config.max_sequences,
        kv_tokens: config.kv_tokens,
        seed: config.seed,
    }
}

fn quiet_reference() -> Laws {
    let mut laws = laws("reference");
    if let Physics::Batch(batch) = &mut laws.physics {
        batch.step_sigma = 0.0;
    }
    laws.speculation = laws.speculation.map(|speculation| Speculation { text_sigma: 0.0, ..speculation });
    laws
}

fn order(id: u64, received_ms: u64, prompt_tokens: u64, output_tokens: u64) -> Order {
    Order {
        id,
        received: SimTime::from_nanos(received_ms * MS),
        prompt_tokens,
        blocks: Vec::new(),
        output_tokens,
        rng: seeded([1, id, 0, Purpose::Steps as u64]),
    }
}

/// The same document of `blocks` blocks for everyone who asks for it.
fn document(count: u64) -> Vec<u64> {
    (1..=count).collect()
}

fn run(scheduler: &mut Scheduler, until_ms: u64) -> Vec<Happening> {
    let mut all = VecDeque::new();
    scheduler.advance(SimTime::from_nanos(until_ms * MS), usize::MAX, &mut all);
    all.into()
}

fn token_times_ms(happenings: &[Happening], wanted: u64) -> Vec<f64> {
    let tokens = happenings.iter().filter(|h| h.id == wanted && matches!(h.what, What::Tokens { .. }));
    tokens.map(|h| h.due.as_nanos() as f64 / MS as f64).collect()
}

fn tokens_of(happenings: &[Happening], wanted: u64) -> u64 {
    let counts = happenings.iter().filter(|h| h.id == wanted).map(|h| match h.what {
        What::Tokens { tokens, .. } => tokens,
        _ => 0,
    });
    counts.sum()
}

fn admitted_ms(happenings: &[Happening], wanted: u64) -> Option<u64> {
    let admitted = happenings.iter().find(|h| h.id == wanted && matches!(h.what, What::Admitted { .. }));
    admitted.map(|h| h.due.as_nanos() / MS)
}

#[test]
fn exact_streams_keep_their_own_time() {
    let mut scheduler = Scheduler::new(&laws("exact"));
    scheduler.submit(order(1, 100, 10, 4));
    scheduler.submit(order(2, 103, 10, 2));
    let all = run(&mut scheduler, 1_000);
    assert_eq!(token_times_ms(&all, 1), [150.0, 160.0, 170.0, 180.0]);
    assert_eq!(token_times_ms(&all, 2), [153.0, 163.0]);
    assert_eq!(scheduler.load(), Load::default());
}

#[test]
fn late_processing_shifts_nothing() {
    let mut in_time = Scheduler::new(&laws("reference"));
    let mut late = Scheduler::new(&laws("reference"));
    for scheduler in [&mut in_time, &mut late] {
        for id in 1..=5 {
            scheduler.submit(order(id, id * 10, 9_000, 200));
        }
    }
    let stepwise: Vec<_> = (0..60_000).flat_map(|ms| run(&mut in_time, ms)).collect();
    assert_eq!(stepwise, run(&mut late, 60_000));
}

#[test]
fn full_slots_make_a_first_in_first_out_queue() {
    let mut scheduler = Scheduler::new(&Laws { max_sequences: 2, ..laws("exact") });
    for id in 1..=4 {
        scheduler.submit(order(id, id, 10, 6));
    }
    let all = run(&mut scheduler, 100);
    assert_eq!((1..=4).map(|id| admitted_ms(&all, id)).collect::<Vec<_>>(), [Some(1), Some(2), None, None]);
    assert_eq!(scheduler.load(), Load { running: 2, waiting: 2, kv_tokens: 20 + 10 });
    let rest = run(&mut scheduler, 1_000);
    // Request 1 has its sixth token at 1 + 50 + 5 · 10 ms, request 2 a millisecond later.
    assert_eq!([3, 4].map(|id| admitted_ms(&rest, id)), [Some(101), Some(102)]);
}

#[test]
fn kv_memory_queues_and_shares_documents() {
    let small = Laws { kv_tokens: 4 * BLOCK_TOKENS, ..laws("exact") };
    let mut scheduler = Scheduler::new(&small);
    for id in 1..=3 {
        let blocks = if id < 3 { document(2) } else { vec![91, 92] };
        scheduler.submit(Order { blocks, ..order(id, id, 2 * BLOCK_TOKENS, 100) });
    }
    let all = run(&mut scheduler, 100);
    let cached: Vec<_> = all
        .iter()
        .filter_map(|h| match h.what {
            What::Admitted { cached_tokens } => Some(cached_tokens),
            _ => None,
        })
        .collect();
    assert_eq!(cached, [0, 511], "the last prompt token is computed always");
    assert_eq!(scheduler.load().waiting, 1, "512 + 2 · 100 + 512 + 100 tokens don't fit 1,024");
    let mut freed = VecDeque::new();
    scheduler.abort(1, SimTime::from_nanos(200 * MS), &mut freed);
    scheduler.abort(2, SimTime::from_nanos(201 * MS), &mut freed);
    assert_eq!(admitted_ms(freed.make_contiguous(), 3), Some(201));
}

#[test]
fn prefills_run_one_after_the_other_and_a_hit_costs_its_ingest() {
    let mut scheduler = Scheduler::new(&quiet_reference());
    let tokens = 32 * 1024;
    for id in 1..=3 {
        scheduler.submit(Order { blocks: document(128), ..order(id, 0, tokens + 200, 1) });
    }
    let all = run(&mut scheduler, 60_000);
    let first: Vec<_> = (1..=3).map(|id| token_times_ms(&all, id)[0]).collect();
    let Physics::Batch(physics) = quiet_reference().physics else { panic!("a batch") };
    let cold = (physics.frontend() + physics.prefill_time(tokens + 200, 0)).as_secs_f64() * 1e3;
    let ingest = tokens as f64 / 640.0;
    for (got, want) in first.iter().zip([cold, cold + ingest, cold + 2.0 * ingest]) {
        assert!((got - want).abs() < 0.01, "{got} {want}");
    }
}

#[test]
fn a_batch_steps_together_at_the_formulas_pace() {
    let mut scheduler = Scheduler::new(&quiet_reference());
    for id in 1..=16 {
        scheduler.submit(Order { blocks: document(32), ..order(id, 0, 8 * 1024, 100_000) });
    }
    run(&mut scheduler, 5_000);
    let window = run(&mut scheduler, 35_000);
    let tokens: u64 = (1..=16).map(|id| tokens_of(&window, id)).sum();
    let ms_per_token = 30_000.0 * 16.0 / tokens as f64;
    // The context grows from 8K to about 12K meanwhile, which adds 0.03 ms.
    let formula = 1.363 + 1.795 * 4.0 + 0.0507 * 16.0 + 0.001_377 * 10.0 + 0.000_397 * 160.0;
    assert!((ms_per_token / formula - 1.0).abs() < 0.02, "{ms_per_token} against {formula}");
    assert_eq!(token_times_ms(&window, 1), token_times_ms(&window, 16));
}

#[test]
fn decoding_slows_down_while_a_cold_prefill_runs() {
    let mut scheduler = Scheduler::new(&quiet_reference());
    scheduler.submit(order(1, 0, 1_000, 100_000));
    run(&mut scheduler, 10_000);
    let alone = token_times_ms(&run(&mut scheduler, 20_000), 1).len();
    scheduler.submit(order(2, 20_000, 400_000, 1));
    let beside = token_times_ms(&run(&mut scheduler, 30_000), 1).len();
    let share = alone as f64 / beside as f64;
    assert!((1.4..1.6).contains(&share), "{share}");
}

#[test]
fn an_aborted_request_leaves_at_once_wherever_it_is() {
    let mut scheduler = Scheduler::new(&quiet_reference());
    for id in 1..=3 {
        scheduler.submit(Order { blocks: document(4), ..order(id, 0, 1_100, 50) });
    }
    let mut out = VecDeque::new();
    scheduler.abort(3, SimTime::from_nanos(MS), &mut out);
    run(&mut scheduler, 85);
    assert_eq!(scheduler.load(), Load { running: 1, waiting: 1, kv_tokens: 1_100 });
    scheduler.abort(1, SimTime::from_nanos(90 * MS), &mut out);
    let next = out.pop_front().unwrap();
    assert_eq!((next.id, next.what), (2, What::Admitted { cached_tokens: 0 }), "an aborted prefill caches nothing");
    scheduler.abort(2, SimTime::from_nanos(91 * MS), &mut out);
    assert_eq!(scheduler.load(), Load::default());
    assert!(run(&mut scheduler, 60_000).is_empty());
}

#[test]
fn speculation_depends_on_the_request_alone() {
    let steps = |others: u64| {
        let mut scheduler = Scheduler::new(&laws("reference"));
        for id in 1..=1 + others {
            scheduler.submit(order(id, 0, 500, 300));
        }
        let all = run(&mut scheduler, 600_000);
        let tokens = all.iter().filter(|h| h.id == 1).filter_map(|h| match h.what {
            What::Tokens { tokens, .. } => Some(tokens),
            _ => None,
        });
        tokens.collect::<Vec<_>>()
    };
    assert_eq!(steps(0), steps(7));
    assert_eq!(steps(0).iter().sum::<u64>(), 300);
    assert!(steps(0).iter().any(|tokens| *tokens > 1));
}

#[test]
fn counters_of_speculation_add_up() {
    let mut scheduler = Scheduler::new(&laws("exact-speculative"));
    scheduler.submit(order(1, 0, 500, 1_000));
    let (mut drafts, mut kept, mut output, mut first) = (0, 0, 0, 0);
    for happening in run(&mut scheduler, 60_000) {
        if let What::Tokens { tokens, drafted, accepted, .. } = happening.what {
            drafts += u64::from(drafted > 0);
            first += u64::from(drafted == 0);
            kept += u64::from(accepted);
            output += tokens;
        }
    }
    assert_eq!((output, first), (1_000, 1));
    assert_eq!(output, first + drafts + kept);
}

#[test]
fn a_request_is_never_admitted_before_it_came() {
    let mut scheduler = Scheduler::new(&laws("exact"));
    scheduler.submit(order(1, 500, 10, 1));
    assert!(run(&mut scheduler, 499).is_empty());
    assert_eq!(scheduler.next_due(), Some(SimTime::from_nanos(500 * MS)));
    assert_eq!(admitted_ms(&run(&mut scheduler, 500), 1), Some(500));
    assert_eq!(scheduler.next_due().unwrap().since(SimTime::from_nanos(500 * MS)), Duration::from_millis(50));
}
