//! Counters and gauges of the simulated engine, told in Prometheus text under vLLM's names.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::cache::BLOCK_TOKENS;
use super::config::MAX_DRAFT_TOKENS;
use super::sequence::{Load, What};

/// Written by the engine's task only, read by whoever scrapes.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    running: AtomicU64,
    waiting: AtomicU64,
    kv_tokens: AtomicU64,
    prompt_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    generated_tokens: AtomicU64,
    drafts: AtomicU64,
    draft_tokens: AtomicU64,
    accepted_tokens: AtomicU64,
    accepted_at: [AtomicU64; MAX_DRAFT_TOKENS as usize],
    prefill_ns: AtomicU64,
    prefills: AtomicU64,
    computed_tokens: AtomicU64,
    stopped: AtomicU64,
    length: AtomicU64,
    aborted: AtomicU64,
}

/// Why a request is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    Stop,
    Length,
    Abort,
}

/// What a scrape must know beside the counters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Labels<'a> {
    pub(super) model: &'a str,
    pub(super) kv_capacity_tokens: u64,
    pub(super) draft_tokens: u32,
}

impl Metrics {
    pub(super) fn set_load(&self, load: Load) {
        self.running.store(load.running, Relaxed);
        self.waiting.store(load.waiting, Relaxed);
        self.kv_tokens.store(load.kv_tokens, Relaxed);
    }

    pub(super) fn load(&self) -> Load {
        Load {
            running: self.running.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
            kv_tokens: self.kv_tokens.load(Relaxed),
        }
    }

    /// Counts what happened to a request of `prompt_tokens`.
    pub(super) fn count(&self, what: What, prompt_tokens: u64) {
        match what {
            What::Admitted { cached_tokens } => {
                self.prompt_tokens.fetch_add(prompt_tokens, Relaxed);
                self.cached_tokens.fetch_add(cached_tokens, Relaxed);
            }
            What::Prefilled { took_ns, computed_tokens } => {
                self.prefill_ns.fetch_add(took_ns, Relaxed);
                self.prefills.fetch_add(1, Relaxed);
                self.computed_tokens.fetch_add(computed_tokens, Relaxed);
            }
            What::Tokens { tokens, drafted, accepted, .. } => {
                self.generated_tokens.fetch_add(tokens, Relaxed);
                if drafted > 0 {
                    self.drafts.fetch_add(1, Relaxed);
                    self.draft_tokens.fetch_add(u64::from(drafted), Relaxed);
                    self.accepted_tokens.fetch_add(u64::from(accepted), Relaxed);
                    for position in self.accepted_at.iter().take(accepted as usize) {
                        position.fetch_add(1, Relaxed);
                    }
                }
            }
        }
    }

    pub(super) fn finish(&self, finish: Finish) {
        let counter = match finish {
            Finish::Stop => &self.stopped,
            Finish::Length => &self.length,
            Finish::Abort => &self.aborted,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// The whole `/metrics` page.
    pub(super) fn render(&self, labels: Labels<'_>) -> String {
        let mut page = Page { text: String::new(), model: labels.model };
        let kv_share = self.kv_tokens.load(Relaxed) as f64 / labels.kv_capacity_tokens as f64;
        page.one("num_requests_running", "gauge", &self.running.load(Relaxed).to_string());
        page.one("num_requests_waiting", "gauge", &self.waiting.load(Relaxed).to_string());
        page.one("kv_cache_usage_perc", "gauge", &kv_share.to_string());
        let counters = [
            ("prompt_tokens_total", &self.prompt_tokens),
            ("prompt_tokens_cached_total", &self.cached_tokens),
            ("generation_tokens_total", &self.generated_tokens),
            ("prefix_cache_queries_total", &self.prompt_tokens),
            ("prefix_cache_hits_total", &self.cached_tokens),
        ];
        for (name, counter) in counters {
            page.one(name, "counter", &counter.load(Relaxed).to_string());
        }
        // The simulated engine sets memory aside for whole outputs, so it never has to preempt.
        page.one("num_preemptions_total", "counter", "0");
        self.render_speculation(&mut page, labels.draft_tokens);
        page.kind("request_success_total", "counter");
        for (reason, counter) in [("stop", &self.stopped), ("length", &self.length), ("abort", &self.aborted)] {
            page.line(
                "request_success_total",
                &format!(",finished_reason=\"{reason}\""),
                &counter.load(Relaxed).to_string(),
            );
        }
        self.render_prefill(&mut page);
        page.kind("cache_config_info", "gauge");
        let cache = format!(
            ",block_size=\"{BLOCK_TOKENS}\",enable_prefix_caching=\"True\",kv_cache_size_tokens=\"{}\",num_gpu_blocks=\"{}\"",
            labels.kv_capacity_tokens,
            labels.kv_capacity_tokens / BLOCK_TOKENS
        );
        page.line("cache_config_info", &cache, "1");
        page.text
    }

    fn render_speculation(&self, page: &mut Page<'_>, draft_tokens: u32) {
        if draft_tokens == 0 {
            return;
        }
        let counters = [
            ("spec_decode_num_drafts_total", &self.drafts),
            ("spec_decode_num_draft_tokens_total", &self.draft_tokens),
            ("spec_decode_num_accepted_tokens_total", &self.accepted_tokens),
        ];
        for (name, counter) in counters {
            page.one(name, "counter", &counter.load(Relaxed).to_string());
        }
        page.kind("spec_decode_num_accepted_tokens_per_pos_total", "counter");
        for (position, counter) in self.accepted_at.iter().enumerate().take(draft_tokens as usize) {
            let label = format!(",position=\"{position}\"");
            page.line("spec_decode_num_accepted_tokens_per_pos_total", &label, &counter.load(Relaxed).to_string());
        }
    }

    fn render_prefill(&self, page: &mut Page<'_>) {
        let prefills = self.prefills.load(Relaxed).to_string();
        page.kind("request_prefill_time_seconds", "histogram");
        page.line("request_prefill_time_seconds_bucket", ",le=\"+Inf\"", &prefills);
        page.line("request_prefill_time_seconds_count", "", &prefills);
        page.line("request_prefill_time_seconds_sum", "", &(self.prefill_ns.load(Relaxed) as f64 / 1e9).to_string());
        page.kind("request_prefill_kv_computed_tokens", "histogram");
        page.line("request_prefill_kv_computed_tokens_bucket", ",le=\"+Inf\"", &prefills);
        page.line("request_prefill_kv_computed_tokens_count", "", &prefills);
        page.line("request_prefill_kv_computed_tokens_sum", "", &self.computed_tokens.load(Relaxed).to_string());
    }
}

struct Page<'a> {
    text: String,
    model: &'a str,
}

impl Page<'_> {
    fn one(&mut self, name: &str, kind: &str, value: &str) {
        self.kind(name, kind);
        self.line(name, "", value);
    }

    fn kind(&mut self, name: &str, kind: &str) {
        writeln!(self.text, "# HELP vllm:{name} Simulated.\n# TYPE vllm:{name} {kind}")
            .expect("a string takes all text");
    }

    fn line(&mut self, name: &str, labels: &str, value: &str) {
        let model = self.model.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
        writeln!(self.text, "vllm:{name}{{engine=\"0\",model_name=\"{model}\"{labels}}} {value}")
            .expect("a string takes all text");
    }
}

#[cfg(test)]
mod tests {
    use super::super::sequence::More;
    use super::*;

    #[test]
    fn the_page_speaks_vllms_names() {
        let metrics = Metrics::default();
        metrics.set_load(Load { running: 2, waiting: 1, kv_tokens: 512 });
        metrics.count(What::Admitted { cached_tokens: 256 }, 300);
        metrics.count(What::Prefilled { took_ns: 1_500_000_000, computed_tokens: 44 }, 300);
        metrics.count(What::Tokens { tokens: 3, drafted: 2, accepted: 2, more: More::Yes }, 300);
        metrics.finish(Finish::Length);
        let page = metrics.render(Labels { model: "m\"x", kv_capacity_tokens: 2048, draft_tokens: 2 });
        let values: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
        insta::assert_snapshot!(values.join("\n"), @r#"
        vllm:num_requests_running{engine="0",model_name="m\"x"} 2
        vllm:num_requests_waiting{engine="0",model_name="m\"x"} 1
        vllm:kv_cache_usage_perc{engine="0",model_name="m\"x"} 0.25
        vllm:prompt_tokens_total{engine="0",model_name="m\"x"} 300
        vllm:prompt_tokens_cached_total{engine="0",model_name="m\"x"} 256
        vllm:generation_tokens_total{engine="0",model_name="m\"x"} 3
        vllm:prefix_cache_queries_total{engine="0",model_name="m\"x"} 300
        vllm:prefix_cache_hits_total{engine="0",model_name="m\"x"} 256
        vllm:num_preemptions_total{engine="0",model_name="m\"x"} 0
        vllm:spec_decode_num_drafts_total{engine="0",model_name="m\"x"} 1
        vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m\"x"} 2
        vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m\"x"} 2
        vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m\"x",position="0"} 1
        vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m\"x",position="1"} 1
        vllm:request_success_total{engine="0",model_name="m\"x",finished_reason="stop"} 0
        vllm:request_success_total{engine="0",model_name="m\"x",finished_reason="length"} 1
        vllm:request_success_total{engine="0",model_name="m\"x",finished_reason="abort"} 0
        vllm:request_prefill_time_seconds_bucket{engine="0",model_name="m\"x",le="+Inf"} 1
        vllm:request_prefill_time_seconds_count{engine="0",model_name="m\"x"} 1
        vllm:request_prefill_time_seconds_sum{engine="0",model_name="m\"x"} 1.5
        vllm:request_prefill_kv_computed_tokens_bucket{engine="0",model_name="m\"x",le="+Inf"} 1
        vllm:request_prefill_kv_computed_tokens_count{engine="0",model_name="m\"x"} 1
        vllm:request_prefill_kv_computed_tokens_sum{engine="0",model_name="m\"x"} 44
        vllm:cache_config_info{engine="0",model_name="m\"x",block_size="256",enable_prefix_caching="True",kv_cache_size_tokens="2048",num_gpu_blocks="8"} 1
        "#);
    }
}
