//! Records: what is packed is unpacked, whatever comes from outside, and the same record gives the same result.

use std::num::NonZeroU32;

use miniz_oxide::deflate::compress_to_vec_zlib;
use proptest::prelude::*;

use super::{
    codec::{RawError, decode, encode},
    varint::put,
    *,
};
use crate::{
    gpu::{GpuSample, GpuSeries},
    plan::PromptMode,
    stats::RULES_VERSION,
    trace::{Arrival, FailureKind, RequestEnd, StampSource, StreamNote, Usage},
    units::Context,
};

/// A record of format 1 as it was first written: [`small`].
const FORMAT_1: &[u8] = include_bytes!("format1.bin");

fn asked() -> Asked {
    Asked::new(Context::new(8_192).unwrap(), PromptMode::Shared)
}

/// A request with an arrival every 20 ms or so.
fn request(slot: u32, sent_ms: u64, tokens: u32, end: RequestEnd) -> RequestTrace {
    let arrival = |n: u32| Arrival {
        at: Nanos::from_millis(sent_ms + 200 + 20 * u64::from(n)) + Nanos(u64::from(n * n % 17) * 54_321),
        usage_tokens: NonZeroU32::new(n + 1),
        text_events: 1,
        late_ns: 9_000 + n % 7 * 1_000,
    };
    let arrivals: Vec<Arrival> = (0..tokens).map(arrival).collect();
    let completed = matches!(end, RequestEnd::Completed { .. });
    RequestTrace {
        slot,
        scheduled: Nanos::from_millis(sent_ms),
        send_started: Some(Nanos::from_millis(sent_ms) + Nanos(40_000)),
        send_finished: Some(Nanos::from_millis(sent_ms) + Nanos(90_000)),
        headers_at: Some(Nanos::from_millis(sent_ms + 3)),
        first_content_at: arrivals.first().map(|arrival| arrival.at),
        ended: arrivals.last().map_or(Nanos::from_millis(sent_ms), |last| last.at) + Nanos::from_millis(1),
        arrivals,
        usage: completed.then_some(Usage {
            prompt_tokens: Some(8_190),
            completion_tokens: Some(u64::from(tokens)),
            reasoning_tokens: None,
            cached_tokens: Some(8_000),
        }),
        usage_raw_completion_tokens: None,
        coalesced_reads: 1,
        skipped_events: 0,
        stamps: StampSource::Kernel,
        notes: Vec::new(),
        end,
    }
}

fn done() -> RequestEnd {
    RequestEnd::Completed { finish_reason: Some("length".into()) }
}

fn failure() -> RequestFailure {
    RequestFailure { kind: FailureKind::RateLimited, http_status: Some(429), text: "slow down".into() }
}

/// A decode cell of two requests at once, with one of each kind of end.
fn small() -> RawCell {
    let traces = vec![
        request(0, 0, 60, done()),
        request(1, 0, 150, RequestEnd::Cut),
        request(0, 1_500, 40, done()),
        request(0, 2_600, 0, RequestEnd::Failed(failure())),
    ];
    let engine = Engine {
        running: vec![(Nanos::from_millis(900), 2.0), (Nanos::from_millis(1_900), 1.0)],
        waiting: vec![(Nanos::from_millis(900), 0.0), (Nanos::from_millis(1_900), 0.0)],
        kv_usage: vec![(Nanos::from_millis(900), 0.1)],
        ..Engine::default()
    };
    let decode = Decode {
        concurrency: Concurrency::new(2).unwrap(),
        scouts: vec![request(0, 0, 1, done())],
        proof: Proof::Shown,
        ramp_start: Nanos(0),
        ramp: RampEnd::Ready,
        window: Window::new(Nanos::from_millis(700), Nanos::from_secs(2)),
        engine,
        client: ClientWatch::default(),
        prompts: Prompts::default(),
    };
    RawCell { asked: asked(), traces, course: Course::Decode(Box::new(decode)), gpus: None }
}

#[test]
fn the_first_format_is_read_for_ever() {
    assert_eq!(decode(FORMAT_1).unwrap(), small());
    assert_eq!(decode(&encode(small()).unwrap()).unwrap(), small());
}

/// Rules and their number go together: whoever sees another result here raises [`RULES_VERSION`].
#[test]
fn a_fixed_record_has_this_result_under_this_number() {
    assert_eq!(RULES_VERSION, 2);
    insta::assert_snapshot!(serde_json::to_string(&small().result()).unwrap(), @r#"{"status":{"status":"failed","kind":"rate_limited"},"stats":{"total_tok_s":87.5,"total_tok_s_interval":{"half_width":19.32105779163406,"n":12,"kind":"blocks"},"slot_spread":{"slots":2,"variation":0.20203050891044216},"per_request_tok_s":{"n":2,"min":50.0,"mean":50.32268039742518,"p50":50.32268039742518,"p90":null,"p99":null,"max":50.64536079485036},"per_user_tok_s":43.75,"ttft_s":{"n":3,"min":0.19996,"mean":0.19996,"p50":0.19996,"p90":null,"p99":null,"max":0.19996},"ttft_burst_s":{"n":2,"min":0.19996,"mean":0.19996,"p50":0.19996,"p90":null,"p99":null,"max":0.19996},"ttft_steady_s":{"n":1,"min":0.19996,"mean":0.19996,"p50":0.19996,"p90":null,"p99":null,"max":0.19996},"ttft_cold_s":{"n":1,"min":0.19996,"mean":0.19996,"p50":0.19996,"p90":null,"p99":null,"max":0.19996},"time_between_tokens_s":{"n":3,"min":0.019997256515151513,"mean":0.02000279976146076,"p50":0.02,"p90":null,"p99":null,"max":0.02001114276923077},"itl_s":{"n":174,"min":0.019293827,"mean":0.019999687810344845,"p50":0.02,"p90":0.020434568,"p99":0.020706173,"max":0.020706173},"chunk_gap_s":{"n":174,"min":0.019293827,"mean":0.019999687810344845,"p50":0.02,"p90":0.020434568,"p99":0.020706173,"max":0.020706173},"e2e_latency_s":{"n":2,"min":0.980394568,"mean":1.1805303705,"p50":1.1805303705,"p90":null,"p99":null,"max":1.380666173},"ttft_scheduled_s":null,"e2e_scheduled_s":null,"request_rate":1.0,"slo":null,"goodput":null,"ttft_alone_s":null,"ttft_loaded_s":null,"tok_s_before_prefill":null,"tok_s_during_prefill":null,"tok_s_after_prefill":null,"upload_s":{"n":3,"min":0.00005,"mean":0.00005,"p50":0.00005,"p90":null,"p99":null,"max":0.00005},"requests":{"started":4,"completed":2,"cut":1,"failed":1},"active_requests":1.8320303705,"decoding_requests":1.7315703705,"output_tokens":175,"measured_for_s":2.0,"token_source":"server_per_chunk","tokens_per_chunk":1.0,"prompt_tokens":8190,"cached_share":0.9768009768009768,"engine_running":{"n":2,"mean":1.5,"max":2.0},"engine_waiting":{"n":2,"mean":0.0,"max":0.0},"engine_kv_usage":{"n":1,"mean":0.1,"max":0.1},"stamps":"kernel","client_lag_s":{"n":175,"min":9e-6,"mean":0.000011988571428571417,"p50":0.000012,"p90":0.000015,"p99":0.000015,"max":0.000015},"coalesced_share":0.012,"client_cpu_share":null,"timer_lag_p99_s":null,"ttft_error_bound_s":null,"acceptance_length":null,"acceptance_rate":null,"steps_per_s":null,"normalised_tok_s":null,"gpu":null},"findings":[{"code":"failed_requests","severity":"warning","text":"1 of 4 requests failed. They are in no latency and no throughput."},{"code":"few_requests","severity":"info","text":"Only 2 requests were completed in the window. Most latencies come from running ones."},{"code":"wide_interval","severity":"warning","text":"The total speed is uncertain: 87.5 ± 19.3 tok/s."},{"code":"coalesced_reads","severity":"warning","text":"1.2 % of the reads brought several events under one stamp: gaps are blurred."}],"failures":[{"kind":"rate_limited","text":"slow down","count":1}],"rules":2}"#);
}

#[test]
fn cells_without_a_window_have_results_too() {
    let check = |course: Course, traces: Vec<RequestTrace>, wanted: &str| {
        let raw = RawCell { asked: asked(), traces, course, gpus: None };
        assert_eq!(decode(&encode(raw.clone()).unwrap()).unwrap(), raw);
        let result = raw.result();
        assert_eq!(result.rules, Some(RULES_VERSION));
        let said = result.findings.iter().map(|finding| finding.text.clone());
        let failed = result.failures.iter().map(|group| format!("{} × {}", group.count, group.text));
        let all: Vec<String> = [result.status.label()].into_iter().chain(said).chain(failed).collect();
        assert_eq!(all.join(" | "), wanted);
    };
    let busy = Course::NotDrained { running: 3.0, waiting: 1.0 };
    let said = "Before the cell the engine still worked on 3 requests and 1 waited. Stop other traffic.";
    check(busy, Vec::new(), &format!("Failed: engine not idle | {said}"));
    let given_up = Course::GivenUp { failure: failure() };
    check(given_up.clone(), Vec::new(), "Failed: rate limited | 1 × slow down");
    let twice = vec![request(0, 0, 0, RequestEnd::Failed(failure())); 2];
    check(given_up, twice, "Failed: rate limited | 2 × slow down");
    check(
        Course::Prefill,
        vec![request(0, 0, 1, RequestEnd::Failed(failure()))],
        "Failed: rate limited | 1 of 1 requests failed. They are in no latency and no throughput. | 1 × slow down",
    );
}

#[test]
fn what_is_no_record_is_said_in_words() {
    let check = |bytes: &[u8], wanted: &str| assert_eq!(decode(bytes).unwrap_err().to_string(), wanted);
    let packed = |plain: &[u8]| [&[1], compress_to_vec_zlib(plain, 6).as_slice()].concat();
    let good = encode(small()).unwrap();
    check(&[], "there are no bytes");
    check(&[9, 1, 2, 3], "its format is 9 and this version reads 1: update Speedmatrix");
    check(&[1, 1, 2, 3], "it can't be unpacked: it is damaged");
    check(&good[..good.len() - 1], "it can't be unpacked: it ends too early");
    let mut changed = good.clone();
    *changed.last_mut().unwrap() ^= 1;
    check(&changed, "it can't be unpacked: its checksum is wrong");
    check(&packed(&[]), "a part of it ends too early");
    check(&packed(&[0]), "its JSON can't be read: EOF while parsing a value at line 1 column 0");
    // A part that says it has 2^63 bytes, and a request that says it has 2^60 arrivals: neither is believed.
    check(&packed(&[128, 128, 128, 128, 128, 128, 128, 128, 128, 1]), "a part of it ends too early");
    let mut record = small();
    record.traces.truncate(1);
    record.traces[0].arrivals.clear();
    record.course = Course::Prefill;
    let record = serde_json::to_vec(&record).unwrap();
    let mut plain = Vec::new();
    let mut part = |bytes: &[u8]| {
        put(&mut plain, bytes.len() as u64);
        plain.extend_from_slice(bytes);
    };
    part(&record);
    part(&[128, 128, 128, 128, 128, 128, 128, 128, 16]);
    (0..4).for_each(|_| part(&[0, 0, 0]));
    check(&packed(&plain), "a part of it ends too early");
    let mut odd = small();
    odd.course = Course::NotDrained { running: f64::NAN, waiting: 0.0 };
    assert_eq!(encode(odd), Err(RawError::NotFinite));
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival =
        (any::<u64>(), any::<u32>(), any::<u16>(), any::<u32>()).prop_map(|(at, usage, text_events, late_ns)| {
            Arrival { at: Nanos(at), usage_tokens: NonZeroU32::new(usage), text_events, late_ns }
        });
    prop::collection::vec(arrival, 0..20)
}

fn end() -> impl Strategy<Value = RequestEnd> {
    prop_oneof![
        prop::option::of(".{0,12}").prop_map(|finish_reason| RequestEnd::Completed { finish_reason }),
        Just(RequestEnd::Cut),
        (prop::option::of(any::<u16>()), ".{0,40}").prop_map(|(http_status, text)| {
            RequestEnd::Failed(RequestFailure { kind: FailureKind::Stalled, http_status, text })
        }),
    ]
}

fn any_trace() -> impl Strategy<Value = RequestTrace> {
    let times = (any::<u64>(), prop::array::uniform4(prop::option::of(any::<u64>())), any::<u64>());
    let usage = prop::option::of(prop::array::uniform4(prop::option::of(any::<u64>())));
    (any::<u32>(), times, arrivals(), usage, any::<[u32; 2]>(), end()).prop_map(
        |(slot, (scheduled, [started, finished, headers, content], ended), arrivals, usage, counts, end)| {
            RequestTrace {
                slot,
                scheduled: Nanos(scheduled),
                send_started: started.map(Nanos),
                send_finished: finished.map(Nanos),
                headers_at: headers.map(Nanos),
                arrivals,
                first_content_at: content.map(Nanos),
                ended: Nanos(ended),
                usage: usage.map(|[prompt_tokens, completion_tokens, reasoning_tokens, cached_tokens]| Usage {
                    prompt_tokens,
                    completion_tokens,
                    reasoning_tokens,
                    cached_tokens,
                }),
                usage_raw_completion_tokens: started,
                coalesced_reads: counts[0],
                skipped_events: counts[1],
                stamps: if slot % 2 == 0 { StampSource::Kernel } else { StampSource::Process },
                notes: if slot % 3 == 0 {
                    vec![StreamNote::ModelMismatch, StreamNote::UsageMissing]
                } else {
                    Vec::new()
                },
                end,
            }
        },
    )
}

fn any_cell() -> impl Strategy<Value = RawCell> {
    let traces = || prop::collection::vec(any_trace(), 0..5);
    let series = || prop::collection::vec((any::<u64>().prop_map(Nanos), -1e12..1e12_f64), 0..5);
    let engine = (series(), series(), series());
    (traces(), traces(), engine, any::<[u64; 3]>()).prop_map(|(traces, scouts, (running, waiting, kv_usage), times)| {
        let decode = Decode {
            concurrency: Concurrency::ONE,
            scouts,
            proof: Proof::Missing,
            ramp_start: Nanos(times[0]),
            ramp: RampEnd::BudgetSpent,
            window: Window { start: Nanos(times[1]), end: Nanos(times[2]) },
            engine: Engine { running, waiting, kv_usage, ..Engine::default() },
            client: ClientWatch { ttft_bias_s: Some(1e-5), cpu_share: None, timer_lag_p99_s: Some(0.001) },
            prompts: Prompts::default(),
        };
        let sample = GpuSample { at: Nanos(times[0]), power_w: Some(0.5), ..GpuSample::default() };
        let series = GpuSeries { index: 3, samples: vec![sample; traces.len()], ..GpuSeries::default() };
        let gpus = GpuRecord { gpus: vec![series], idle_power_w: Some(1e-3) };
        let gpus = (times[2] % 2 == 0).then(|| Box::new(gpus));
        RawCell { asked: asked(), traces, course: Course::Decode(Box::new(decode)), gpus }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn what_is_packed_is_unpacked(raw in any_cell()) {
        prop_assert_eq!(decode(&encode(raw.clone()).unwrap()).unwrap(), raw);
    }

    #[test]
    fn what_is_cut_short_is_an_error(raw in any_cell(), share in 0.0..1.0_f64) {
        let bytes = encode(raw).unwrap();
        let length = (bytes.len() as f64 * share) as usize;
        prop_assert!(decode(&bytes[..length]).is_err());
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(decode(&bytes).is_err());
        // The same behind the checksum, where only a stranger could put them.
        let packed = compress_to_vec_zlib(&bytes, 1);
        prop_assert!(decode(&[&[1], packed.as_slice()].concat()).is_err());
    }

    #[test]
    fn changed_columns_are_read_without_panic(raw in any_cell(), changes in prop::collection::vec(any::<(usize, u8)>(), 1..9)) {
        let bytes = encode(raw).unwrap();
        let mut plain = miniz_oxide::inflate::decompress_to_vec_zlib(&bytes[1..]).unwrap();
        for (place, byte) in changes {
            let place = place % plain.len();
            plain[place] = byte;
        }
        drop(decode(&[&[1], compress_to_vec_zlib(&plain, 1).as_slice()].concat()));
    }
}
