//! Facts of a run: numbered without gaps, stored before they are told, never dropped.

use serde::{Deserialize, Serialize};

use crate::{
    id::CellId, plan::RunPlan, stats::cell::CellResult, steer::Next, target::TargetFacts, trust::ClientCheck,
    units::Nanos,
};

/// Where a run's numbers come from. Shown wherever the run is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Origin {
    /// Measured against a real server.
    Measured,
    /// Measured against the simulator; times and rates are on its clock.
    Simulated {
        /// Simulated seconds per real second.
        clock_factor: f64,
    },
    /// Read from a published page or a file.
    Imported,
}

/// Why a planned cell was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Prompt and answer are longer than the model's context.
    ModelLength,
    /// The KV cache can't hold even one such request.
    KvCapacity,
    /// A shorter context was already refused as too long.
    ContextRefused,
    /// The user skipped it.
    User,
}

impl SkipReason {
    /// Plain words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::ModelLength => "longer than the model's context",
            Self::KvCapacity => "does not fit the KV cache",
            Self::ContextRefused => "a shorter context was already refused",
            Self::User => "skipped by the user",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum RunOutcome {
    /// Every planned cell has a row.
    Finished,
    /// Stopped by a person or by Ctrl-C; finished cells are kept.
    Cancelled,
    /// It could not be measured at all.
    Failed {
        /// What was tried, what came, what to do.
        reason: String,
    },
    /// The agent ended in the middle; written when it next starts.
    Interrupted,
}

/// How a log line weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Progress.
    Info,
    /// Something to look at.
    Warning,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum RunEvent {
    /// The first fact.
    RunStarted {
        /// What is to be measured.
        plan: RunPlan,
        /// Wall time, milliseconds since 1970 UTC: the only wall time of a run.
        started_unix_ms: u64,
        /// Name and version of the measuring program.
        tool: String,
    },
    /// What the target is.
    Probed {
        /// Everything found.
        facts: Box<TargetFacts>,
        /// Real server or simulator.
        origin: Origin,
    },
    /// The client was checked against the built-in simulator.
    Certified {
        /// What was found.
        check: ClientCheck,
    },
    /// A prompt length was adjusted to the target's tokenizer.
    Calibrated {
        /// Tokens asked for.
        context_tokens: u64,
        /// Tokens the server really counted; `None` if it does not tell.
        real_tokens: Option<u64>,
    },
    /// A planned cell will not be measured.
    CellSkipped {
        /// Which.
        cell: CellId,
        /// Why.
        reason: SkipReason,
        /// The reason with its numbers.
        text: String,
    },
    /// A cell began.
    CellStarted {
        /// Which.
        cell: CellId,
    },
    /// The ramp of the running cell is over and its window opens.
    RampDone {
        /// Which.
        cell: CellId,
        /// First send to window, seconds.
        ramp_s: f64,
    },
    /// A cell is measured.
    CellFinished {
        /// Which.
        cell: CellId,
        /// Its numbers.
        result: Box<CellResult>,
    },
    /// People asked what is to happen when the running cell is over.
    Steered {
        /// What.
        next: Next,
    },
    /// A line for the log.
    Log {
        /// Weight.
        level: LogLevel,
        /// One sentence.
        text: String,
    },
    /// After an end too early the run goes on: what was not measured is open again.
    RunResumed {
        /// Wall time, milliseconds since 1970 UTC.
        resumed_unix_ms: u64,
    },
    /// The last fact, unless the run goes on later.
    RunFinished {
        /// How it ended.
        outcome: RunOutcome,
    },
}

/// A fact with its number and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// 0, 1, 2 … without gaps.
    pub seq: u64,
    /// When, since the run began.
    pub at: Nanos,
    /// What.
    pub event: RunEvent,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        finding::Finding,
        plan::PlanDraft,
        stats::{
            cell::{CellStats, CellStatus, FailureGroup, GaugeSummary, RequestCounts},
            interval::{Interval, IntervalKind},
            summary::Summary,
        },
        trace::{FailureKind, StampSource, TokenSource},
    };

    /// The stored format of one fact; a change of it needs a new version.
    #[track_caller]
    fn json(event: &RunEvent) -> String {
        let text = serde_json::to_string(event).unwrap();
        assert_eq!(&serde_json::from_str::<RunEvent>(&text).unwrap(), event);
        text
    }

    fn cell() -> CellId {
        "decode-8K-16".parse().unwrap()
    }

    #[test]
    fn small_facts_are_pinned() {
        let draft = PlanDraft {
            target: "host".into(),
            contexts: "8K".into(),
            concurrency: "16".into(),
            ..PlanDraft::default()
        };
        let events = [
            RunEvent::RunStarted {
                plan: draft.try_into().unwrap(),
                started_unix_ms: 1_796_160_600_000,
                tool: "speedmatrix 0.1.0".into(),
            },
            RunEvent::Probed { facts: Box::default(), origin: Origin::Measured },
            RunEvent::Certified {
                check: ClientCheck {
                    streams: 16,
                    events_per_s: 1_600.0,
                    ttft_bias_s: 4e-6,
                    ttft_error_p99_s: 1e-5,
                    gap_sigma_s: Some(1e-6),
                    cpu_per_event_s: None,
                    stamps: StampSource::Kernel,
                },
            },
            RunEvent::Calibrated { context_tokens: 8_192, real_tokens: Some(8_190) },
            RunEvent::CellSkipped { cell: cell(), reason: SkipReason::ModelLength, text: "too long".into() },
            RunEvent::CellStarted { cell: cell() },
            RunEvent::RampDone { cell: cell(), ramp_s: 1.5 },
            RunEvent::Log { level: LogLevel::Warning, text: "look".into() },
            RunEvent::RunResumed { resumed_unix_ms: 1_796_160_700_000 },
            RunEvent::RunFinished { outcome: RunOutcome::Finished },
            RunEvent::RunFinished { outcome: RunOutcome::Cancelled },
            RunEvent::RunFinished { outcome: RunOutcome::Failed { reason: "no answer".into() } },
            RunEvent::RunFinished { outcome: RunOutcome::Interrupted },
        ];
        let lines: Vec<String> = events.iter().map(json).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
{"type":"run_started","plan":{"target":"http://host","contexts":"8K","concurrency":"16","duration":"30s","max_output":"4096","prompts":"shared","load":"sustained","questions":"varied","temperature":"1","top_p":"server","end_of_text":"ignore","order":"rows","repeats":"1","client_check":"run","seed":"0"},"started_unix_ms":1796160600000,"tool":"speedmatrix 0.1.0"}
{"type":"probed","facts":{"base_url":"","served_model":null,"model":null,"revision":null,"models":[],"engine":{"engine":null,"version":null,"quantization":null,"backend":null,"repository":null,"build":null},"hardware":{"kind":null,"gpu":null,"gpu_count":null,"vram_total_gb":null,"vram_each_gb":null,"os":null},"limits":{"max_model_len":null,"max_sequences":null,"kv_tokens":null},"launch_command":null,"simulated":null,"warnings":[]},"origin":{"from":"measured"}}
{"type":"certified","check":{"streams":16,"events_per_s":1600.0,"ttft_bias_s":4e-6,"ttft_error_p99_s":0.00001,"gap_sigma_s":1e-6,"cpu_per_event_s":null,"stamps":"kernel"}}
{"type":"calibrated","context_tokens":8192,"real_tokens":8190}
{"type":"cell_skipped","cell":"decode-8K-16","reason":"model_length","text":"too long"}
{"type":"cell_started","cell":"decode-8K-16"}
{"type":"ramp_done","cell":"decode-8K-16","ramp_s":1.5}
{"type":"log","level":"warning","text":"look"}
{"type":"run_resumed","resumed_unix_ms":1796160700000}
{"type":"run_finished","outcome":{"outcome":"finished"}}
{"type":"run_finished","outcome":{"outcome":"cancelled"}}
{"type":"run_finished","outcome":{"outcome":"failed","reason":"no answer"}}
{"type":"run_finished","outcome":{"outcome":"interrupted"}}
"#);
        let origins =
            [Origin::Simulated { clock_factor: 60.0 }, Origin::Imported].map(|o| serde_json::to_string(&o).unwrap());
        insta::assert_snapshot!(origins.join("\n"), @r#"
{"from":"simulated","clock_factor":60.0}
{"from":"imported"}
"#);
    }

    #[test]
    fn a_finished_cell_is_pinned() {
        let requests = RequestCounts { started: 20, completed: 4, cut: 16, failed: 1 };
        let stats = CellStats {
            total_tok_s: Some(1_540.5),
            total_tok_s_interval: Some(Interval { half_width: 4.1, n: 64, kind: IntervalKind::Blocks }),
            ttft_s: Some(Summary::point(0.336)),
            requests: Some(requests),
            token_source: Some(TokenSource::ServerPerChunk),
            engine_waiting: Some(GaugeSummary { n: 30, mean: 0.0, max: 0.0 }),
            stamps: Some(StampSource::Kernel),
            ..CellStats::default()
        };
        let failures = vec![FailureGroup { kind: FailureKind::RateLimited, text: "slow down".into(), count: 1 }];
        let findings = vec![Finding::warning("failed_requests", "1 of 20 requests failed.")];
        let result = CellResult { status: CellStatus::Valid, stats, findings, failures, rules: Some(1) };
        let unknown = CellResult { rules: None, ..result.clone() };
        let event = RunEvent::CellFinished { cell: cell(), result: Box::new(result) };
        insta::assert_snapshot!(json(&event), @r#"{"type":"cell_finished","cell":"decode-8K-16","result":{"status":{"status":"valid"},"stats":{"total_tok_s":1540.5,"total_tok_s_interval":{"half_width":4.1,"n":64,"kind":"blocks"},"slot_spread":null,"per_request_tok_s":null,"per_user_tok_s":null,"ttft_s":{"n":1,"min":0.336,"mean":0.336,"p50":0.336,"p90":null,"p99":null,"max":0.336},"ttft_burst_s":null,"ttft_steady_s":null,"ttft_cold_s":null,"time_between_tokens_s":null,"itl_s":null,"chunk_gap_s":null,"e2e_latency_s":null,"ttft_scheduled_s":null,"e2e_scheduled_s":null,"request_rate":null,"slo":null,"goodput":null,"ttft_alone_s":null,"ttft_loaded_s":null,"tok_s_before_prefill":null,"tok_s_during_prefill":null,"tok_s_after_prefill":null,"upload_s":null,"requests":{"started":20,"completed":4,"cut":16,"failed":1},"active_requests":null,"decoding_requests":null,"output_tokens":null,"measured_for_s":null,"token_source":"server_per_chunk","tokens_per_chunk":null,"prompt_tokens":null,"cached_share":null,"engine_running":null,"engine_waiting":{"n":30,"mean":0.0,"max":0.0},"engine_kv_usage":null,"stamps":"kernel","client_lag_s":null,"coalesced_share":null,"client_cpu_share":null,"timer_lag_p99_s":null,"ttft_error_bound_s":null,"acceptance_length":null,"acceptance_rate":null,"steps_per_s":null,"normalised_tok_s":null,"gpu":null},"findings":[{"code":"failed_requests","severity":"warning","text":"1 of 20 requests failed."}],"failures":[{"kind":"rate_limited","text":"slow down","count":1}],"rules":1}}"#);
        // What was stored before results said under which rules they were made.
        let (text, wanted) = (json(&event), RunEvent::CellFinished { cell: cell(), result: Box::new(unknown) });
        let old: RunEvent = serde_json::from_str(&text.replace(",\"rules\":1", "")).unwrap();
        assert_eq!(old, wanted);
        let verdicts = [CellStatus::Failed(FailureKind::Stalled), CellStatus::RequestsQueued];
        let verdicts = verdicts.map(|verdict| serde_json::to_string(&verdict).unwrap());
        insta::assert_snapshot!(verdicts.join("\n"), @r#"
{"status":"failed","kind":"stalled"}
{"status":"requests_queued"}
"#);
    }
}
