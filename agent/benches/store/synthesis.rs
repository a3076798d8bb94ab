//! A run as large as the largest seed run: 64 decode cells, each of 128 streams for 30 s at 3,750 tokens per second
//! together, a token per chunk. Every stamp has its own jitter, so nothing in the times is easy to pack.

use std::num::NonZeroU32;

use rand::SeedableRng as _;
use rand_chacha::{ChaCha8Rng, rand_core::Rng as _};
use speedmatrix_shared::{
    finding::rules::Asked,
    id::CellId,
    plan::{PlanDraft, PromptMode, RunPlan},
    raw::{Course, Decode, Engine, Prompts, RawCell},
    stats::{
        verdict::{Proof, RampEnd},
        window::Window,
    },
    trace::{Arrival, RequestEnd, RequestTrace, StampSource, Usage},
    trust::ClientWatch,
    units::{Concurrency, Nanos},
};

/// Requests at once in every cell.
pub(crate) const STREAMS: u32 = 128;
/// Cells.
const CELLS: u64 = 64;
/// Tokens per second of a whole cell: the fastest one of the reference page.
const TOK_S: f64 = 3_750.0;
/// Tokens of an answer: some requests end and begin in every window.
const ANSWER: u32 = 600;
/// From sending to the first token.
const TTFT: Nanos = Nanos::from_millis(400);
const RAMP: Nanos = Nanos::from_secs(2);
const WINDOW: Nanos = Nanos::from_secs(30);
/// An arrival comes up to this much before or after its time.
const JITTER: Nanos = Nanos::from_millis(2);
/// This process reads it so much later, at most.
const LATE: Nanos = Nanos(100_000);

/// A plan of as many cells, all at the same number of requests at once.
pub(crate) fn plan() -> RunPlan {
    let contexts: Vec<String> = (1..=CELLS).map(|k| format!("{k}K")).collect();
    let draft = PlanDraft {
        target: "http://127.0.0.1:8000".into(),
        name: "seed size".into(),
        contexts: contexts.join(","),
        concurrency: STREAMS.to_string(),
        prefill_contexts: "none".into(),
        ..PlanDraft::default()
    };
    draft.try_into().expect("the plan is right")
}

/// What would have been recorded of one cell.
pub(crate) fn cell(cell: CellId, seed: u64) -> RawCell {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let start = Nanos::from_secs(40 * (seed + 1));
    let window = Window::new(start + RAMP, WINDOW);
    let mut traces: Vec<RequestTrace> = Vec::new();
    for slot in 0..STREAMS {
        // Streams are somewhere in their first answer when the window opens.
        let first = ANSWER - slot * (ANSWER / 2) / STREAMS;
        let (mut sent, mut answer) = (start, first);
        while sent < window.end {
            let trace = request(slot, (sent, window.end), answer, &mut random);
            sent = trace.ended;
            answer = ANSWER;
            traces.push(trace);
        }
    }
    let looks = (0..33).map(|second| start + Nanos::from_secs(second));
    let series = |value: f64| looks.clone().map(|at| (at, value)).collect();
    let decode = Decode {
        concurrency: Concurrency::new(STREAMS).expect("it is in range"),
        scouts: vec![request(0, (start - RAMP, start), 1, &mut random)],
        proof: Proof::Shown,
        ramp_start: start,
        ramp: RampEnd::Ready,
        window,
        engine: Engine { running: series(128.0), waiting: series(0.0), kv_usage: series(0.437), ..Engine::default() },
        client: ClientWatch::default(),
        prompts: Prompts::default(),
    };
    RawCell {
        asked: Asked::new(cell.context, PromptMode::Shared),
        traces,
        course: Course::Decode(Box::new(decode)),
        gpus: None,
    }
}

/// A request sent at `sent`, cut at `end` if it isn't over by then.
fn request(slot: u32, (sent, end): (Nanos, Nanos), answer: u32, random: &mut ChaCha8Rng) -> RequestTrace {
    let gap = Nanos::from_secs_f64(f64::from(STREAMS) / TOK_S);
    let mut below = |bound: Nanos| Nanos(random.next_u64() % bound.0);
    let mut arrivals = Vec::new();
    for n in 0..answer {
        let due = sent + TTFT + Nanos(gap.0 * u64::from(n));
        if due >= end {
            break;
        }
        arrivals.push(Arrival {
            at: due + below(JITTER + JITTER) - JITTER,
            usage_tokens: NonZeroU32::new(n + 1),
            text_events: 1,
            late_ns: below(LATE).0 as u32,
        });
    }
    let tokens = arrivals.len() as u32;
    let whole = tokens == answer;
    let usage = Usage {
        prompt_tokens: Some(8_190 + u64::from(slot)),
        completion_tokens: Some(u64::from(tokens)),
        reasoning_tokens: None,
        cached_tokens: Some(8_100),
    };
    RequestTrace {
        slot,
        scheduled: sent,
        send_started: Some(sent + below(LATE)),
        send_finished: Some(sent + LATE + below(LATE)),
        headers_at: Some(sent + Nanos::from_millis(3) + below(LATE)),
        first_content_at: arrivals.first().map(|arrival| arrival.at),
        ended: if whole { arrivals.last().map_or(end, |last| last.at) + below(LATE) } else { end },
        arrivals,
        usage: whole.then_some(usage),
        usage_raw_completion_tokens: whole.then_some(u64::from(tokens)),
        coalesced_reads: 0,
        skipped_events: 0,
        stamps: StampSource::Kernel,
        notes: Vec::new(),
        end: if whole { RequestEnd::Completed { finish_reason: Some("length".into()) } } else { RequestEnd::Cut },
    }
}
