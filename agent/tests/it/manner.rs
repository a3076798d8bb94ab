//! How cells are measured, as the plan has it: repeats, order, mixed prompts, and the check of the client.

use speedmatrix_agent::{prompt::corpus::Corpus, sim::SimConfig};
use speedmatrix_shared::{
    event::{RunEvent, RunOutcome},
    id::{CellId, Phase},
    plan::PlanDraft,
    stats::{
        cell::{CellResult, CellStatus},
        interval::IntervalKind,
    },
};

use crate::rig::{Rig, Seen, draft, exact, simulator};

fn run(draft: PlanDraft) -> Seen {
    let sim = simulator(SimConfig { ..exact(10.0) });
    let seen = Rig::new(&sim.base_url()).run(draft);
    assert_eq!(seen.outcome, RunOutcome::Finished);
    seen
}

fn finished(seen: &Seen) -> Vec<(CellId, &CellResult)> {
    let told = seen.events.iter().filter_map(|(_, event)| match event {
        RunEvent::CellFinished { cell, result } if cell.phase == Phase::Decode => Some((*cell, result.as_ref())),
        _ => None,
    });
    told.collect()
}

#[test]
fn interleaved_repeats_measure_every_cell_once_a_round() {
    let draft = draft("1K", "1,2", "1s", "128");
    let seen = run(PlanDraft { order: "interleaved".into(), repeats: "3".into(), ..draft });
    let told = finished(&seen);
    assert_eq!(told.len(), 6);
    for round in told.chunks(2) {
        assert_ne!(round[0].0, round[1].0, "both in each round");
    }
    for name in ["decode-1K-1", "decode-1K-2"] {
        let repeats: Vec<CellResult> =
            told.iter().filter(|(cell, _)| cell.to_string() == name).map(|(_, result)| (*result).clone()).collect();
        let combined = CellResult::combined(&repeats).unwrap();
        let interval = combined.stats.total_tok_s_interval.unwrap();
        assert_eq!((combined.stats.repeats_tok_s.len(), interval.kind, interval.n), (3, IntervalKind::Repeats, 3));
    }
}

#[test]
fn a_cell_is_repeated_in_its_place_until_it_is_known() {
    let seen = run(PlanDraft { repeats: "3,50%".into(), ..draft("1K", "1,2", "1s", "128") });
    let order: Vec<String> = finished(&seen).iter().map(|(cell, _)| cell.to_string()).collect();
    let [one, two] = ["decode-1K-1", "decode-1K-2"];
    assert_eq!(order, [one, one, one, two, two, two]);
}

#[test]
fn mixed_prompts_share_their_part_and_no_more() {
    let seen = run(PlanDraft { prompts: "mixed:50%".into(), ..draft("8K", "2", "2s", "64") });
    let result = seen.result("decode-8K-2");
    let cached = result.stats.cached_share.unwrap();
    assert!((0.45..=0.5).contains(&cached), "{cached}");
    let codes: Vec<&str> = result.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert!(!codes.contains(&"partly_cached") && !codes.contains(&"cache_not_proven"), "{codes:?}");
}

#[test]
fn the_client_is_checked_before_the_run() {
    let seen = run(draft("1K", "1,4", "1s", "128"));
    let check = seen.events.iter().find_map(|(_, event)| match event {
        RunEvent::Certified { check } => Some(check),
        _ => None,
    });
    let check = check.unwrap();
    assert_eq!(check.streams, 4);
    assert!(check.ttft_bias_s.abs() <= check.ttft_error_p99_s && check.events_per_s > 0.0, "{check:?}");
    let bound = seen.result("decode-1K-4").stats.ttft_error_bound_s.unwrap();
    assert!(bound >= check.ttft_bias_s.abs(), "{bound}");
}

#[test]
fn a_burst_is_all_of_its_requests_and_their_time() {
    let seen = run(PlanDraft { load: "burst:10".into(), ..draft("1K", "4", "1s", "50") });
    let result = seen.result("decode-1K-4");
    let stats = &result.stats;
    let counts = stats.requests.unwrap();
    assert_eq!((result.status, counts.started, counts.completed), (CellStatus::Valid, 10, 10), "{result:#?}");
    assert_eq!(stats.output_tokens, Some(500));
    // Three rounds of 50 ms and 49 steps of 10 ms: 1.62 s at least.
    let secs = stats.measured_for_s.unwrap();
    assert!(secs >= 1.6, "{secs}");
    assert_eq!(stats.total_tok_s.map(|rate| (rate * secs).round()), Some(500.0));
    assert_eq!(stats.e2e_latency_s.map(|latency| latency.n), Some(10));
    assert_eq!(stats.total_tok_s_interval, None, "its parts are no repeats of each other");
}

#[test]
fn an_open_loop_counts_from_when_each_request_was_due() {
    // Ten requests of 0.54 s in 5 s, and room for one at a time: they queue before the server takes them.
    let sim = simulator(SimConfig { max_sequences: 1, ..exact(4.0) });
    let plan = PlanDraft { load: "open:constant".into(), slo: "ttft:350ms".into(), ..draft("1K", "180", "5s", "50") };
    let seen = Rig::new(&sim.base_url()).run(plan);
    let result = seen.result("decode-1K-180");
    let stats = &result.stats;
    assert_eq!(stats.requests.map(|counts| counts.started), Some(15), "180 a minute for 5 s");
    let due = stats.ttft_scheduled_s.unwrap();
    // Only the first two are in time: the third waits for 0.4 s.
    assert_eq!(stats.slo.map(|slo| (slo.met, slo.judged)), Some((2, 15)));
    assert_eq!(stats.goodput, Some(2.0 / 5.0));
    assert_eq!(due.n, 15);
    // One takes 0.54 s and the next comes after 0.333 s: the 15th waits for 14 × 0.2 s and more.
    assert!(due.max >= 2.5 && due.min >= 0.049, "{due:?}");
    assert_eq!((stats.ttft_burst_s, stats.per_user_tok_s), (None, None));
    assert_eq!(result.status, CellStatus::RequestsQueued, "{:?}", result.findings);
}

#[test]
fn cold_prompts_come_beside_decoding_requests() {
    let plan = PlanDraft { load: "mixed:1K".into(), prefill_contexts: "none".into(), ..draft("4K", "2", "3s", "4096") };
    let seen = run(plan);
    let result = seen.result("decode-4K-2");
    let stats = &result.stats;
    assert_eq!(result.status, CellStatus::Valid, "{:?}", result.findings);
    assert_eq!((stats.ttft_alone_s.map(|s| s.n), stats.ttft_loaded_s.map(|s| s.n)), (Some(1), Some(5)));
    assert!(stats.ttft_alone_s.unwrap().p50 >= 0.05 && stats.ttft_loaded_s.unwrap().min >= 0.05);
    // This simulator's requests do not disturb each other: 100 tok/s each, all along. A part of the window begins and ends
    // where it likes between their tokens, and so holds up to one more of each than its length has room for: two in half
    // a second, which is the first part, and in each of the five that make the last two seconds.
    for rate in [stats.tok_s_before_prefill, stats.tok_s_after_prefill] {
        assert!((190.0..=205.0).contains(&rate.unwrap()), "{stats:#?}");
    }
    assert!(stats.tok_s_during_prefill.is_some());
    // The slots hold the background's prompts, not the cell's.
    assert!(stats.prompt_tokens.unwrap().abs_diff(1_024) <= 16, "{:?}", stats.prompt_tokens);
}

#[test]
fn sampling_is_sent_as_planned_and_the_check_can_be_skipped() {
    let plan = PlanDraft {
        temperature: "server".into(),
        top_p: "0.9".into(),
        min_output: "64".into(),
        client_check: "skip".into(),
        ..draft("1K", "1", "1s", "128")
    };
    let seen = run(plan);
    assert!(seen.logged("requests carry max_tokens, stream_options, top_p, seed, ignore_eos, min_tokens"));
    assert!(!seen.events.iter().any(|(_, event)| matches!(event, RunEvent::Certified { .. })));
    assert_eq!(seen.result("decode-1K-1").stats.ttft_error_bound_s, None);
}

#[test]
fn a_persons_own_text_is_what_is_sent() {
    let text = "Der Bär sagt: \"Grüß Gott\".\n漢字 and 🚀, too \\ here.\n";
    let corpus = Corpus::of(&text.repeat(2_000));
    let sim = simulator(SimConfig { ..exact(10.0) });
    let rig = Rig::new(&sim.base_url()).with_corpus(corpus);
    let seen = rig.run(PlanDraft { prompts: "mixed:50%".into(), ..draft("2K", "2", "1s", "128") });
    let result = seen.result("decode-2K-2");
    assert_eq!(result.stats.requests.map(|counts| counts.failed), Some(0), "{:?}", result.failures);
    assert!(result.stats.prompt_tokens.unwrap().abs_diff(2_048) <= 16, "{:?}", result.stats.prompt_tokens);
}
