//! The numbers of one cell (method §5). Not measured is `None`; nothing here is ever NaN.

use serde::{Deserialize, Serialize};

use crate::{
    finding::Finding,
    format,
    stats::{goodput::SloCount, gpu::GpuStats, interval::Interval, summary::Summary},
    trace::{FailureKind, StampSource, TokenSource},
    units::Concurrency,
};

/// Below this share of C decoding, a cell is under-filled.
const MIN_FILLED_SHARE: f64 = 0.95;

/// Mean and maximum of a scraped engine gauge inside the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GaugeSummary {
    /// Scrapes inside the window.
    pub n: u32,
    /// Mean of them.
    pub mean: f64,
    /// Largest of them.
    pub max: f64,
}

/// Requests of a cell by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Started in ramp or window; 0 in imported cells, whose pages tell only `completed`.
    pub started: u64,
    /// Completed inside the window.
    pub completed: u64,
    /// Closed by us at the end.
    pub cut: u64,
    /// Failed.
    pub failed: u64,
}

/// How much the slots of one window differ: each works on texts of its own, which no block of the window's time shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SlotSpread {
    /// Slots, at least 2.
    pub slots: u32,
    /// Standard deviation of their tokens ÷ the mean of them.
    pub variation: f64,
}

impl SlotSpread {
    /// Of the tokens of each slot; `None` below two slots or without tokens.
    pub fn of(tokens: &[f64]) -> Option<Self> {
        let n = tokens.len() as f64;
        let mean = tokens.iter().sum::<f64>() / n;
        let squares: f64 = tokens.iter().map(|tokens| (tokens - mean).powi(2)).sum();
        let variation = (squares / (n - 1.0)).sqrt() / mean;
        let slots = u32::try_from(tokens.len()).ok().filter(|slots| *slots >= 2)?;
        variation.is_finite().then_some(Self { slots, variation })
    }
}

/// All numbers of one cell. Times in seconds, rates in tokens per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CellStats {
    /// Decode: tokens in the window ÷ D, all slots. Prefill: real prompt tokens ÷ median TTFT.
    pub total_tok_s: Option<f64>,
    /// 95 % interval of `total_tok_s`.
    pub total_tok_s_interval: Option<Interval>,
    /// `total_tok_s` of each measurement of the cell, where it was repeated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeats_tok_s: Vec<f64>,
    /// How much the slots' tokens in the window differ.
    pub slot_spread: Option<SlotSpread>,
    /// What one user sees while text flows; one sample per slot.
    pub per_request_tok_s: Option<Summary>,
    /// `total_tok_s` ÷ C.
    pub per_user_tok_s: Option<f64>,
    /// First arrival − sent, over all requests whose first arrival falls in ramp or window.
    pub ttft_s: Option<Summary>,
    /// TTFT of the ramp's simultaneous C.
    pub ttft_burst_s: Option<Summary>,
    /// TTFT of restarts whose first arrival falls in the window.
    pub ttft_steady_s: Option<Summary>,
    /// TTFT with a cold prompt cache: prefill requests and scouts.
    pub ttft_cold_s: Option<Summary>,
    /// Time per output token (TPOT), one sample per request.
    pub time_between_tokens_s: Option<Summary>,
    /// Gap per token (ITL): gap ÷ k, counted k times.
    pub itl_s: Option<Summary>,
    /// Gap per arrival.
    pub chunk_gap_s: Option<Summary>,
    /// Sent to last arrival, completed requests only.
    pub e2e_latency_s: Option<Summary>,
    /// First arrival − when the request was due: with open loop the wait that its user sees.
    pub ttft_scheduled_s: Option<Summary>,
    /// Last arrival − when the request was due, completed requests only.
    pub e2e_scheduled_s: Option<Summary>,
    /// Requests completed in the window ÷ D, per second.
    pub request_rate: Option<f64>,
    /// Requests that kept the plan's bounds, of those that were judged.
    pub slo: Option<SloCount>,
    /// Requests that kept the plan's bounds ÷ D, per second.
    pub goodput: Option<f64>,
    /// TTFT of cold prompts sent to the idle server before a mixed cell.
    pub ttft_alone_s: Option<Summary>,
    /// TTFT of cold prompts that arrived while the background of a mixed cell decoded.
    pub ttft_loaded_s: Option<Summary>,
    /// Speed of a mixed cell's background before the first cold prompt came.
    pub tok_s_before_prefill: Option<f64>,
    /// The same while a cold prompt was read.
    pub tok_s_during_prefill: Option<f64>,
    /// The same after one, until the next or the end.
    pub tok_s_after_prefill: Option<f64>,
    /// First byte to last byte handed to the kernel.
    pub upload_s: Option<Summary>,
    /// Requests by how they ended.
    pub requests: Option<RequestCounts>,
    /// Requests in flight: time integral over the window ÷ D.
    pub active_requests: Option<f64>,
    /// Requests past their first token: time integral over the window ÷ D.
    pub decoding_requests: Option<f64>,
    /// Output tokens in the window.
    pub output_tokens: Option<u64>,
    /// D, the window's length in seconds.
    pub measured_for_s: Option<f64>,
    /// Where tokens were counted.
    pub token_source: Option<TokenSource>,
    /// Output tokens ÷ events with text.
    pub tokens_per_chunk: Option<f64>,
    /// Real prompt tokens, median over requests that tell.
    pub prompt_tokens: Option<u64>,
    /// Share (0–1) of prompt tokens that came from the server's prefix cache, over requests that tell.
    pub cached_share: Option<f64>,
    /// The engine's own count of running requests in the window.
    pub engine_running: Option<GaugeSummary>,
    /// The engine's own count of waiting requests in the window.
    pub engine_waiting: Option<GaugeSummary>,
    /// The engine's KV cache use (0–1) in the window.
    pub engine_kv_usage: Option<GaugeSummary>,
    /// Who stamped the arrivals.
    pub stamps: Option<StampSource>,
    /// How late this process read the bytes: with process stamps the bound of the client's error.
    pub client_lag_s: Option<Summary>,
    /// Share (0–1) of reads whose stamp several events share because this process was late.
    pub coalesced_share: Option<f64>,
    /// Processor time of the measuring threads ÷ what they could have had (0–1).
    pub client_cpu_share: Option<f64>,
    /// Lateness of a timer on the measuring threads, 99th percentile, of real time.
    pub timer_lag_p99_s: Option<f64>,
    /// Bound of the client's error of a TTFT.
    pub ttft_error_bound_s: Option<f64>,
    /// Tokens per step of the engine where it speculates.
    pub acceptance_length: Option<f64>,
    /// Accepted ÷ drafted tokens (0–1).
    pub acceptance_rate: Option<f64>,
    /// Steps per second of an engine that speculates, over all requests.
    pub steps_per_s: Option<f64>,
    /// `steps_per_s` × a fixed number of tokens per step.
    pub normalised_tok_s: Option<f64>,
    /// What the GPUs did meanwhile.
    pub gpu: Option<GpuStats>,
}

impl CellStats {
    /// How many requests really ran at once: the engine's own count, else those past their first token here.
    pub fn effective_concurrency(&self) -> Option<f64> {
        self.engine_running.map(|running| running.mean).or(self.decoding_requests)
    }

    /// What ran of what was asked for, as `7.9/32`; "—" where neither side tells.
    pub fn occupancy(&self, asked: Concurrency) -> String {
        format!("{}/{asked}", format::decimal1(self.effective_concurrency()))
    }

    /// Whether fewer than 95 % of the asked requests decoded on average.
    pub fn is_underfilled(&self, asked: Concurrency) -> bool {
        self.decoding_requests.is_some_and(|decoding| decoding < MIN_FILLED_SHARE * f64::from(asked.get()))
    }
}

/// The verdict on a finished cell (method §5), most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status", content = "kind")]
pub enum CellStatus {
    /// Too many requests failed, or a slot was dead too long; the most frequent reason.
    Failed(FailureKind),
    /// The engine would not become idle before the cell.
    NotDrained,
    /// Other traffic ran on the engine.
    Contaminated,
    /// Outputs repeated themselves.
    LoopingOutput,
    /// The window opened before every slot had a token.
    RampIncomplete,
    /// Requests waited for more than 5 % of the window.
    RequestsQueued,
    /// The engine threw requests out and started them again.
    Preempted,
    /// Fewer than 95 % of C decoded, only because of restarts.
    UnderFilled,
    /// This client could not keep up.
    ClientLimited,
    /// Nothing against the numbers is known.
    Valid,
}

/// What the labels of failed cells begin with.
const FAILED: &str = "Failed: ";

impl CellStatus {
    /// The status in tables: the reference page's words where it has them.
    pub fn label(self) -> String {
        match self {
            Self::Failed(kind) => format!("{FAILED}{}", kind.label()),
            Self::NotDrained => format!("{FAILED}engine not idle"),
            Self::Contaminated => "Contaminated".into(),
            Self::LoopingOutput => "Looping output".into(),
            Self::RampIncomplete => "Ramp incomplete".into(),
            Self::RequestsQueued => "Requests queued".into(),
            Self::Preempted => "Preempted".into(),
            Self::UnderFilled => "Under-filled".into(),
            Self::ClientLimited => "Client limited".into(),
            Self::Valid => "Valid".into(),
        }
    }

    /// Whether the cell has no numbers to stand on.
    pub const fn is_failed(self) -> bool {
        matches!(self, Self::Failed(_) | Self::NotDrained)
    }

    /// The same of a status of which only the label is known.
    pub fn is_failed_label(label: &str) -> bool {
        label.starts_with(FAILED)
    }
}

/// A finished cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The verdict.
    pub status: CellStatus,
    /// The numbers.
    pub stats: CellStats,
    /// What a reader should know.
    pub findings: Vec<Finding>,
    /// Requests that failed, by kind and text, with their count; at most 10 rows.
    pub failures: Vec<FailureGroup>,
    /// The [`RULES_VERSION`](super::RULES_VERSION) that made it; `None`: unknown, as in imported runs and in runs stored
    /// before there was such a number.
    #[serde(default)]
    pub rules: Option<u32>,
}

/// Failed requests that said the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureGroup {
    /// The class.
    pub kind: FailureKind,
    /// What came, in words.
    pub text: String,
    /// How many requests.
    pub count: u64,
}
