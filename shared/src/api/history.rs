//! One cell in other runs: what they measured there, so that it can be followed over time.

use serde::{Deserialize, Serialize};

use crate::{
    event::Origin,
    facts,
    id::{CellId, RunId},
    metric::{self, Metric},
    state::RunState,
    target::engine_line,
};

/// As many other runs are told of at most.
pub const MOST_OTHER_RUNS: u32 = 50;

/// What another run measured in a cell. Its list begins with the runs of the same model, each time newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellInRun {
    /// Which run.
    pub run: RunId,
    /// Its name.
    pub name: String,
    /// Wall time of its start, milliseconds since 1970 UTC; 0 where it is not known.
    pub started_unix_ms: u64,
    /// Where its numbers come from.
    pub origin: Option<Origin>,
    /// Its model, as far as known.
    pub model: Option<String>,
    /// `vllm · 0.25.0 · MXFP4+FP8`, as far as known.
    pub engine: String,
    /// The cell's status in words.
    pub status: String,
    /// Total tokens per second; of this and the following ones a failed cell has none.
    pub total_tok_s: Option<f64>,
    /// Median tokens per second of one request.
    pub per_request_tok_s: Option<f64>,
    /// Median time to the first token, seconds.
    pub ttft_s: Option<f64>,
    /// Median time between tokens, seconds.
    pub time_between_tokens_s: Option<f64>,
}

/// A number of a cell in another run, by the metric it is a value of.
type Told = (&'static str, fn(&CellInRun) -> Option<f64>);

const TOLD: [Told; 4] = [
    ("total_tok_s", |cell| cell.total_tok_s),
    ("per_request_tok_s", |cell| cell.per_request_tok_s),
    ("ttft", |cell| cell.ttft_s),
    ("time_between_tokens", |cell| cell.time_between_tokens_s),
];

impl CellInRun {
    /// What a run itself found in a cell; `None` where it has not measured it.
    pub fn of(run: &RunState, cell: CellId) -> Option<Self> {
        let cell = run.cell(cell)?;
        let result = cell.result().filter(|result| !result.status.is_failed());
        let [total_tok_s, per_request_tok_s, ttft_s, time_between_tokens_s] =
            TOLD.map(|(key, _)| (metric::by_key(key)?.get)(result?));
        cell.result().map(|_measured| Self {
            run: run.id.clone(),
            name: run.title(),
            started_unix_ms: run.started_unix_ms,
            origin: run.origin,
            model: facts::model(run),
            engine: engine_line(run.facts.as_ref()),
            status: cell.status_label(),
            total_tok_s,
            per_request_tok_s,
            ttft_s,
            time_between_tokens_s,
        })
    }

    /// The metrics that are told of other runs.
    pub fn metrics() -> impl Iterator<Item = &'static Metric> {
        TOLD.iter().filter_map(|(key, _)| metric::by_key(key))
    }

    /// Its value of one of [`CellInRun::metrics`], in the unit of the metric's own values.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        let (_, value) = TOLD.iter().find(|(key, _)| *key == metric.key)?;
        value(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_json_is_a_format_and_its_numbers_are_metrics() {
        let cell = CellInRun {
            run: "abc".parse().unwrap(),
            name: "After the update".into(),
            started_unix_ms: 1_790_000_000_000,
            origin: Some(Origin::Measured),
            model: None,
            engine: "vllm · 0.25.0".into(),
            status: "Valid".into(),
            total_tok_s: Some(223.5),
            per_request_tok_s: Some(222.3),
            ttft_s: Some(0.092),
            time_between_tokens_s: None,
        };
        insta::assert_snapshot!(serde_json::to_string(&cell).unwrap(), @r#"{"run":"abc","name":"After the update","started_unix_ms":1790000000000,"origin":{"from":"measured"},"model":null,"engine":"vllm · 0.25.0","status":"Valid","total_tok_s":223.5,"per_request_tok_s":222.3,"ttft_s":0.092,"time_between_tokens_s":null}"#);
        let shown: Vec<String> = CellInRun::metrics().map(|metric| (metric.show)(cell.value(metric))).collect();
        assert_eq!(shown, ["223.5", "222.3", "92 ms", "—"]);
    }
}
