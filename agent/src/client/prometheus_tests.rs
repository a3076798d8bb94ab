//! Tests of the Prometheus reader: small pages in the shapes that engines really send.

use proptest::prelude::*;

use super::*;

fn check(text: &str) -> Option<EngineGauges> {
    gauges(&parse(text))
}

#[test]
fn vllm_names_are_exact() {
    let page = r#"
# HELP vllm:num_requests_running Requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 8.0
vllm:num_requests_waiting{engine="0",model_name="m"} 24.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 24.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.4375
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 120000.0
vllm:prefix_cache_queries_created{engine="0",model_name="m"} 1.76e+09
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 30000.0
vllm:num_preemptions_total{engine="0",model_name="m"} 3.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 120000.0
vllm:generation_tokens_total{engine="0",model_name="m"} 56789.0
vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="5000",num_gpu_blocks="9999"} 1.0
"#;
    let want = EngineGauges {
        engine: EngineKind::Vllm,
        running: Some(8.0),
        waiting: Some(24.0),
        kv_usage: Some(0.4375),
        kv_tokens: Some(5_000.0),
        generation_tokens: Some(56_789.0),
        prompt_tokens: Some(120_000.0),
        preemptions: Some(3.0),
        prefix_queries: Some(120_000.0),
        prefix_hits: Some(30_000.0),
    };
    assert_eq!(check(page), Some(want));
}

#[test]
fn replicas_are_summed_and_mirrors_are_not() {
    let replicas = r#"
vllm:num_requests_running{engine="0"} 7
vllm:num_requests_running{engine="1"} 5
vllm:kv_cache_usage_perc{engine="0"} 0.9
vllm:kv_cache_usage_perc{engine="1"} 0.3
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1.0
vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="100"} 1.0
"#;
    let got = check(replicas).unwrap();
    assert_eq!((got.running, got.kv_usage, got.kv_tokens), (Some(12.0), Some(0.6), Some(3_200.0)));
    let mirrors = r#"
sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 5.0
sglang:num_running_reqs{dp_rank="0",tp_rank="1"} 5.0
sglang:num_running_reqs{dp_rank="1",tp_rank="0"} 3.0
sglang:num_running_reqs{dp_rank="1",tp_rank="1"} 3.0
sglang:num_queue_reqs{dp_rank="0",tp_rank="0"} 1.0
sglang:num_queue_reqs{dp_rank="1",tp_rank="1"} 0.0
sglang:token_usage{dp_rank="0",tp_rank="0"} 0.5
sglang:max_total_num_tokens{dp_rank="0",tp_rank="0"} 570979.0
"#;
    let want = EngineGauges {
        running: Some(8.0),
        waiting: Some(1.0),
        kv_usage: Some(0.5),
        kv_tokens: Some(570_979.0),
        ..EngineGauges::unknown(EngineKind::Sglang)
    };
    assert_eq!(check(mirrors), Some(want));
}

#[test]
fn llama_cpp_has_no_labels_and_gaps() {
    let page = "llamacpp:prompt_tokens_total 143\n\
                llamacpp:tokens_predicted_total 673\n\
                llamacpp:n_busy_slots_per_decode -nan\n\
                llamacpp:requests_processing 2\n\
                llamacpp:requests_deferred inf\n";
    let want = EngineGauges {
        running: Some(2.0),
        generation_tokens: Some(673.0),
        prompt_tokens: Some(143.0),
        ..EngineGauges::unknown(EngineKind::LlamaCpp)
    };
    assert_eq!(check(page), Some(want));
}

#[test]
fn a_gap_in_one_replica_leaves_the_sum_unknown() {
    let got = check("vllm:num_requests_running{engine=\"0\"} 7\nvllm:num_requests_running{engine=\"1\"} NaN\n");
    assert_eq!(got.unwrap().running, None);
}

#[test]
fn ray_puts_its_name_in_front() {
    let page = r#"
ray_vllm:num_requests_running{WorkerId="w1",engine="0"} 2.0
ray_vllm:num_requests_running{WorkerId="w2",engine="0"} 1.0
ray_vllm_num_requests_waiting{WorkerId="w1",engine="0"} 4.0
ray_serve_vllm_kv_cache_usage_perc{WorkerId="w1",engine="0"} 0.2
ray_node_cpu_utilization{ip="127.0.0.1"} 55.0
"#;
    let got = check(page).unwrap();
    assert_eq!((got.running, got.waiting, got.kv_usage), (Some(3.0), Some(4.0), Some(0.2)));
}

#[test]
fn hard_lines_are_read_and_bad_ones_skipped() {
    let text = "# Service=api\r\n\r\n\
        vllm:num_requests_running{model_name=\"C:\\\\a \\\"b\\\" {x,y} = \\n n\",engine=\"0\",} 1.2E1\r\n\
        vllm:generation_tokens_total {engine = \"0\" , model_name = \"plain\"} 1e3 1700000000123\r\n\
        vllm:num_requests_waiting{model_name=\"plain\"} +Inf\n\
        broken line without value\n\
        vllm:kv_cache_usage_perc{model_name=\"unterminated} 0.5\n\
        vllm:num_preemptions_total{model_name=\"plain\"} 5";
    let page = parse(text);
    assert_eq!(page.skipped_lines, 2);
    assert_eq!(page.samples[0].labels[0].1, "C:\\a \"b\" {x,y} = \n n");
    let want = EngineGauges {
        running: Some(12.0),
        generation_tokens: Some(1_000.0),
        preemptions: Some(5.0),
        ..EngineGauges::unknown(EngineKind::Vllm)
    };
    assert_eq!(gauges(&page), Some(want));
}

#[test]
fn pages_of_others_have_no_gauges() {
    assert_eq!(check(""), None);
    assert_eq!(check("python_gc_objects_collected_total{generation=\"0\"} 300\n"), None);
    assert_eq!(check("{\"error\":{\"code\":501,\"message\":\"metrics are off\"}}"), None);
    assert_eq!(check("myvllm:num_requests_running 3\nvllm:num_requests_running_max 9\n"), None);
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "(vllm:num_requests_running|\\{|\\}|\"|\\\\|=|,| |\n|#|1|é|[ -~]){0,60}") {
        gauges(&parse(&text));
    }

    #[test]
    fn label_values_come_back(value in "[ -~\n]{0,40}") {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let line = format!("name{{key=\"{escaped}\"}} 4.5");
        let read = sample(&line).unwrap();
        prop_assert_eq!(read.labels[0].1.as_ref(), value.as_str());
        prop_assert_eq!(read.value, Some(4.5));
    }
}
