//! The rows of METRICS: the reference page's columns first, in its order; then what it does not have.

use super::{Better, Metric};
use crate::{
    format,
    id::Phase,
    stats::{
        cell::{CellResult, GaugeSummary, RequestCounts},
        summary::Summary,
    },
};

const BOTH: &[Phase] = &[Phase::Prefill, Phase::Decode];
const DECODE: &[Phase] = &[Phase::Decode];

/// What most rows say; each row names the rest.
const ROW: Metric = Metric {
    key: "",
    column: "",
    csv: "",
    label: "",
    standard: "",
    unit: "",
    better: Better::Neither,
    phases: DECODE,
    get: |_| None,
    show: format::decimal1,
    interval: None,
    samples: None,
    formula: "",
    population: "requests that did not fail",
    source: "arrivals, stamped by the client",
    caveat: "",
};

fn median(summary: Option<Summary>) -> Option<f64> {
    summary.map(|s| s.p50)
}

fn n(summary: Option<Summary>) -> Option<u64> {
    summary.map(|s| s.n)
}

fn requests(result: &CellResult, pick: fn(RequestCounts) -> u64) -> Option<f64> {
    result.stats.requests.map(|counts| pick(counts) as f64)
}

/// Counts that imported pages do not tell: no cell ends without a request started, so 0 started means unknown.
fn told(result: &CellResult, pick: fn(RequestCounts) -> u64) -> Option<f64> {
    result.stats.requests.filter(|counts| counts.started > 0).map(|counts| pick(counts) as f64)
}

fn mean(gauge: Option<GaugeSummary>) -> Option<f64> {
    gauge.map(|g| g.mean)
}

fn scrapes(gauge: Option<GaugeSummary>) -> Option<u64> {
    gauge.map(|g| u64::from(g.n))
}

/// Every number of a cell, once.
pub static METRICS: &[Metric] = &[
    Metric {
        key: "total_tok_s",
        column: "Total tok/s",
        csv: "total_tok_s",
        label: "Total speed",
        standard: "output throughput",
        unit: "tok/s",
        better: Better::Higher,
        phases: BOTH,
        get: |r| r.stats.total_tok_s,
        show: format::rate,
        interval: Some(|r| r.stats.total_tok_s_interval),
        formula: "decode: tokens that arrived in [t0, t0 + D) ÷ D; prefill: real prompt tokens ÷ median TTFT",
        population: "all slots; tokens of failed requests are left out",
        caveat: "The interval of one window holds no run-to-run variation. Prefill speed is apparent: queue, \
                 tokenizing, network and one step are in it.",
        ..ROW
    },
    Metric {
        key: "per_request_tok_s",
        column: "Per request tok/s",
        csv: "per_request_tok_s",
        label: "Speed of one request",
        standard: "per-request output speed",
        unit: "tok/s",
        better: Better::Higher,
        get: |r| median(r.stats.per_request_tok_s),
        show: format::rate,
        samples: Some(|r| n(r.stats.per_request_tok_s)),
        formula: "per slot: tokens in the window that are not in a request's first arrival ÷ time in the window \
                  between a request's first and last arrival; median over slots",
        population: "slots with at least 2 s or 32 tokens of it",
        caveat: "What one user sees while text flows: waiting for the first token is not in it.",
        ..ROW
    },
    Metric {
        key: "ttft",
        column: "TTFT",
        csv: "ttft_s",
        label: "Time to first token",
        standard: "TTFT",
        unit: "ms",
        better: Better::Lower,
        phases: BOTH,
        get: |r| median(r.stats.ttft_s),
        show: format::ttft,
        samples: Some(|r| n(r.stats.ttft_s)),
        formula: "first arrival − first byte sent; median",
        population: "requests whose first arrival falls in ramp or window",
        caveat: "In decode cells the prompt cache is warm, and most samples come from the start burst, in which \
                 C requests arrive at once.",
        ..ROW
    },
    Metric {
        key: "time_between_tokens",
        column: "Time between tokens",
        csv: "time_between_tokens_s",
        label: "Time between tokens",
        standard: "TPOT",
        unit: "ms",
        better: Better::Lower,
        get: |r| median(r.stats.time_between_tokens_s),
        show: format::between_tokens,
        samples: Some(|r| n(r.stats.time_between_tokens_s)),
        formula: "per request: (last − first arrival in the window) ÷ tokens after that first arrival; median",
        population: "requests with at least 2 arrivals in the window",
        caveat: "An average over each request: it hides pauses; see gaps per token.",
        ..ROW
    },
    Metric {
        key: "active_requests",
        column: "Average active requests",
        csv: "active_requests",
        label: "Average active requests",
        unit: "requests",
        get: |r| r.stats.active_requests,
        formula: "time integral of requests in flight over the window ÷ D",
        population: "all requests",
        source: "send and end times of the client",
        ..ROW
    },
    Metric {
        key: "completed_requests",
        column: "Completed requests",
        csv: "completed_requests",
        label: "Completed requests",
        unit: "requests",
        phases: BOTH,
        get: |r| requests(r, |c| c.completed),
        show: format::whole,
        formula: "requests that the server finished inside the window; prefill: cold requests finished",
        population: "all requests",
        source: "ends of the streams",
        caveat: "With none, latencies come from requests that were still running.",
        ..ROW
    },
    Metric {
        key: "output_tokens",
        column: "Output tokens",
        csv: "output_tokens",
        label: "Output tokens",
        unit: "tokens",
        get: |r| r.stats.output_tokens.map(|tokens| tokens as f64),
        show: format::whole,
        formula: "tokens that arrived in the window",
        source: "the server's usage where it tells, else events with text",
        ..ROW
    },
    Metric {
        key: "measured_for",
        column: "Measured for",
        csv: "measured_for_s",
        label: "Length of the window",
        standard: "D",
        unit: "s",
        get: |r| r.stats.measured_for_s,
        show: format::seconds,
        formula: "end − start of the window",
        population: "the window",
        source: "the client's monotonic clock",
        ..ROW
    },
    Metric {
        key: "per_user_tok_s",
        column: "Per user tok/s",
        csv: "per_user_tok_s",
        label: "Share of one user",
        unit: "tok/s",
        better: Better::Higher,
        get: |r| r.stats.per_user_tok_s,
        show: format::rate,
        formula: "total tok/s ÷ C",
        population: "all slots",
        caveat: "Restarts and waiting are in it, unlike in the speed of one request.",
        ..ROW
    },
    Metric {
        key: "ttft_burst",
        column: "TTFT, start burst",
        csv: "ttft_burst_s",
        label: "Time to first token in the start burst",
        standard: "TTFT",
        unit: "ms",
        better: Better::Lower,
        get: |r| median(r.stats.ttft_burst_s),
        show: format::ttft,
        samples: Some(|r| n(r.stats.ttft_burst_s)),
        formula: "first arrival − first byte sent; median",
        population: "the first request of each slot, all sent at once",
        ..ROW
    },
    Metric {
        key: "ttft_steady",
        column: "TTFT, restarts",
        csv: "ttft_steady_s",
        label: "Time to first token of restarts",
        standard: "TTFT",
        unit: "ms",
        better: Better::Lower,
        get: |r| median(r.stats.ttft_steady_s),
        show: format::ttft,
        samples: Some(|r| n(r.stats.ttft_steady_s)),
        formula: "first arrival − first byte sent; median",
        population: "later requests of each slot whose first arrival falls in the window",
        ..ROW
    },
    Metric {
        key: "ttft_cold",
        column: "TTFT, cold",
        csv: "ttft_cold_s",
        label: "Time to first token with a cold cache",
        standard: "TTFT",
        unit: "ms",
        better: Better::Lower,
        phases: BOTH,
        get: |r| median(r.stats.ttft_cold_s),
        show: format::ttft,
        samples: Some(|r| n(r.stats.ttft_cold_s)),
        formula: "first arrival − first byte sent; median",
        population: "prefill requests, and the scouts that fill the cache before a decode cell",
        ..ROW
    },
    Metric {
        key: "itl",
        column: "Gap per token",
        csv: "itl_s",
        label: "Gap per token",
        standard: "ITL",
        unit: "ms",
        better: Better::Lower,
        get: |r| median(r.stats.itl_s),
        show: format::between_tokens,
        samples: Some(|r| n(r.stats.itl_s)),
        formula: "gap between two arrivals ÷ k tokens of the later one, counted k times; median",
        population: "arrivals in the window after a request's first",
        caveat: "Tokens of one arrival share its gap equally: what really lay between them is not seen.",
        ..ROW
    },
    Metric {
        key: "itl_p99",
        column: "Gap per token, p99",
        csv: "itl_p99_s",
        label: "Gap per token, 99th percentile",
        standard: "ITL p99",
        unit: "ms",
        better: Better::Lower,
        get: |r| r.stats.itl_s.and_then(|s| s.p99),
        show: format::between_tokens,
        samples: Some(|r| n(r.stats.itl_s)),
        formula: "as gap per token, 99th percentile (type 7)",
        population: "arrivals in the window after a request's first; hidden below 100 tokens",
        ..ROW
    },
    Metric {
        key: "chunk_gap",
        column: "Gap per chunk",
        csv: "chunk_gap_s",
        label: "Gap between chunks",
        unit: "ms",
        better: Better::Lower,
        get: |r| median(r.stats.chunk_gap_s),
        show: format::between_tokens,
        samples: Some(|r| n(r.stats.chunk_gap_s)),
        formula: "gap between two arrivals; median",
        population: "arrivals in the window after a request's first",
        ..ROW
    },
    Metric {
        key: "chunk_gap_p99",
        column: "Gap per chunk, p99",
        csv: "chunk_gap_p99_s",
        label: "Gap between chunks, 99th percentile",
        unit: "ms",
        better: Better::Lower,
        get: |r| r.stats.chunk_gap_s.and_then(|s| s.p99),
        show: format::between_tokens,
        samples: Some(|r| n(r.stats.chunk_gap_s)),
        formula: "gap between two arrivals, 99th percentile (type 7)",
        population: "arrivals in the window after a request's first; hidden below 100 gaps",
        ..ROW
    },
    Metric {
        key: "e2e_latency",
        column: "Request latency",
        csv: "e2e_latency_s",
        label: "Time of a whole request",
        standard: "E2E latency",
        unit: "s",
        better: Better::Lower,
        get: |r| median(r.stats.e2e_latency_s),
        show: format::seconds,
        samples: Some(|r| n(r.stats.e2e_latency_s)),
        formula: "last arrival − first byte sent; median",
        population: "completed requests only",
        caveat: "Depends on the length of the answers.",
        ..ROW
    },
    Metric {
        key: "upload",
        column: "Upload",
        csv: "upload_s",
        label: "Time to send the prompt",
        unit: "ms",
        better: Better::Lower,
        phases: BOTH,
        get: |r| median(r.stats.upload_s),
        show: format::between_tokens,
        samples: Some(|r| n(r.stats.upload_s)),
        formula: "last − first byte handed to the kernel; median",
        source: "the client's send times",
        caveat: "It is part of the time to first token.",
        ..ROW
    },
    Metric {
        key: "started_requests",
        column: "Started requests",
        csv: "started_requests",
        label: "Started requests",
        unit: "requests",
        phases: BOTH,
        get: |r| told(r, |c| c.started),
        show: format::whole,
        formula: "requests started in ramp or window",
        population: "all requests",
        source: "the client",
        ..ROW
    },
    Metric {
        key: "cut_requests",
        column: "Cut requests",
        csv: "cut_requests",
        label: "Requests cut at the end",
        unit: "requests",
        phases: BOTH,
        get: |r| told(r, |c| c.cut),
        show: format::whole,
        formula: "requests that the client closed when the window was over",
        population: "all requests",
        source: "the client",
        ..ROW
    },
    Metric {
        key: "failed_requests",
        column: "Failed requests",
        csv: "failed_requests",
        label: "Failed requests",
        unit: "requests",
        better: Better::Lower,
        phases: BOTH,
        get: |r| told(r, |c| c.failed),
        show: format::whole,
        formula: "requests that ended in a failure",
        population: "all requests",
        source: "answers of the server",
        caveat: "They are in no latency and no throughput.",
        ..ROW
    },
    Metric {
        key: "decoding_requests",
        column: "Average decoding requests",
        csv: "decoding_requests",
        label: "Average decoding requests",
        unit: "requests",
        better: Better::Higher,
        get: |r| r.stats.decoding_requests,
        formula: "time integral of requests between first token and end over the window ÷ D",
        population: "all requests",
        ..ROW
    },
    Metric {
        key: "tokens_per_chunk",
        column: "Tokens per chunk",
        csv: "tokens_per_chunk",
        label: "Tokens per chunk",
        get: |r| r.stats.tokens_per_chunk,
        formula: "output tokens ÷ events with text",
        source: "the server's usage and the events counted by the client",
        caveat: "Above 1 with speculative decoding or servers that batch chunks.",
        ..ROW
    },
    Metric {
        key: "prompt_tokens",
        column: "Prompt tokens",
        csv: "prompt_tokens",
        label: "Real prompt tokens",
        unit: "tokens",
        phases: BOTH,
        get: |r| r.stats.prompt_tokens.map(|tokens| tokens as f64),
        show: format::whole,
        formula: "median of the prompt tokens that the server counted",
        population: "requests that tell",
        source: "the server's usage",
        ..ROW
    },
    Metric {
        key: "cached_share",
        column: "Cached share of prompt",
        csv: "cached_share",
        label: "Share of the prompt from the cache",
        unit: "%",
        phases: BOTH,
        get: |r| r.stats.cached_share,
        show: format::percent,
        formula: "cached prompt tokens ÷ prompt tokens",
        population: "requests that tell both",
        source: "the server's usage",
        ..ROW
    },
    Metric {
        key: "engine_running",
        column: "Engine running",
        csv: "engine_running",
        label: "Running requests, as the engine says",
        unit: "requests",
        get: |r| mean(r.stats.engine_running),
        samples: Some(|r| scrapes(r.stats.engine_running)),
        formula: "mean of the engine's gauge",
        population: "scrapes inside the window",
        source: "the engine's metrics",
        ..ROW
    },
    Metric {
        key: "engine_waiting",
        column: "Engine waiting",
        csv: "engine_waiting",
        label: "Waiting requests, as the engine says",
        unit: "requests",
        better: Better::Lower,
        get: |r| mean(r.stats.engine_waiting),
        samples: Some(|r| scrapes(r.stats.engine_waiting)),
        formula: "mean of the engine's gauge",
        population: "scrapes inside the window",
        source: "the engine's metrics",
        ..ROW
    },
    Metric {
        key: "engine_kv_usage",
        column: "KV cache use",
        csv: "engine_kv_usage_share",
        label: "Use of the KV cache",
        unit: "%",
        get: |r| mean(r.stats.engine_kv_usage),
        show: format::percent,
        samples: Some(|r| scrapes(r.stats.engine_kv_usage)),
        formula: "mean of the engine's gauge",
        population: "scrapes inside the window",
        source: "the engine's metrics",
        ..ROW
    },
    Metric {
        key: "client_lag_p50",
        column: "Client lag",
        csv: "client_lag_p50_s",
        label: "Lateness of the client",
        unit: "ms",
        better: Better::Lower,
        phases: BOTH,
        get: |r| median(r.stats.client_lag_s),
        show: format::lag,
        samples: Some(|r| n(r.stats.client_lag_s)),
        formula: "time of reading − time of the stamp; median",
        population: "reads in the window",
        source: "the client",
        caveat: "With kernel stamps it is not part of any latency.",
        ..ROW
    },
    Metric {
        key: "client_lag_p99",
        column: "Client lag, p99",
        csv: "client_lag_p99_s",
        label: "Lateness of the client, 99th percentile",
        unit: "ms",
        better: Better::Lower,
        phases: BOTH,
        get: |r| r.stats.client_lag_s.and_then(|s| s.p99),
        show: format::lag,
        samples: Some(|r| n(r.stats.client_lag_s)),
        formula: "time of reading − time of the stamp, 99th percentile (type 7)",
        population: "reads in the window; hidden below 100",
        source: "the client",
        caveat: "With kernel stamps it is not part of any latency.",
        ..ROW
    },
    Metric {
        key: "coalesced_share",
        column: "Coalesced reads",
        csv: "coalesced_share",
        label: "Reads whose stamp several events share",
        unit: "%",
        better: Better::Lower,
        get: |r| r.stats.coalesced_share,
        show: format::percent,
        formula: "reads that completed several events while the client was late ÷ reads",
        population: "reads of requests that did not fail",
        source: "the client",
        ..ROW
    },
    Metric {
        key: "ttft_error_bound",
        column: "TTFT error bound",
        csv: "ttft_error_bound_s",
        label: "Bound of the client's error of a TTFT",
        unit: "ms",
        better: Better::Lower,
        get: |r| r.stats.ttft_error_bound_s,
        show: format::lag,
        formula: "size of the bias that the check before the run found + lateness p99 (process stamps) or coalesced share × median gap (kernel stamps)",
        population: "the cell",
        source: "the client, checked against the built-in simulator",
        ..ROW
    },
    Metric {
        key: "client_cpu",
        column: "Client CPU",
        csv: "client_cpu_share",
        label: "Processor time of the client",
        unit: "%",
        better: Better::Lower,
        get: |r| r.stats.client_cpu_share,
        show: format::percent,
        formula: "processor time of the measuring threads in the window ÷ (D × threads)",
        population: "the window, in real time",
        source: "the operating system",
        caveat: "Above 90 % the cell is Client limited.",
        ..ROW
    },
    Metric {
        key: "timer_lag_p99",
        column: "Timer lag, p99",
        csv: "timer_lag_p99_s",
        label: "Lateness of a timer on the measuring threads, 99th percentile",
        unit: "ms",
        better: Better::Lower,
        get: |r| r.stats.timer_lag_p99_s,
        show: format::lag,
        formula: "wake-up − due time of a timer every 10 ms, 99th percentile (type 7)",
        population: "the window, in real time",
        source: "the client",
        caveat: "Timers count in whole milliseconds: about 1 ms is punctual.",
        ..ROW
    },
];
