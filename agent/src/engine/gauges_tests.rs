//! Tests of the gauges: small pages in the shapes that engines really send.

use super::*;

fn check(text: &str) -> Option<EngineGauges> {
    EngineGauges::of(&Page::read(text))
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
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 100.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 300.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 150.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 90.0
vllm:cache_config_info{block_size="16",enable_prefix_caching="True",engine="0",kv_cache_size_tokens="5000",num_gpu_blocks="9999"} 1.0
"#;
    let want = EngineGauges {
        running: Some(8.0),
        waiting: Some(24.0),
        kv_usage: Some(0.4375),
        kv_usage_max: Some(0.4375),
        kv_tokens: Some(KvTokens::Told(5_000.0)),
        generation_tokens: Some(56_789.0),
        prompt_tokens: Some(120_000.0),
        preemptions: Some(3.0),
        prefix_queries: Some(120_000.0),
        prefix_hits: Some(30_000.0),
        drafts: Some(100.0),
        draft_tokens: Some(300.0),
        accepted_tokens: Some(150.0),
        prefix_cache: Some(true),
        ..EngineGauges::unknown(EngineKind::Vllm)
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
    assert_eq!((got.running, got.kv_usage, got.kv_usage_max), (Some(12.0), Some(0.6), Some(0.9)));
    assert_eq!((got.replicas, got.kv_tokens), (2, Some(KvTokens::FromBlocks(3_200.0))));
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
        replicas: 2,
        kv_usage: Some(0.5),
        kv_usage_max: Some(0.5),
        kv_tokens: Some(KvTokens::Told(570_979.0)),
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
fn pages_of_others_have_no_gauges() {
    assert_eq!(check(""), None);
    assert_eq!(check("python_gc_objects_collected_total{generation=\"0\"} 300\n"), None);
    assert_eq!(check("{\"error\":{\"code\":501,\"message\":\"metrics are off\"}}"), None);
    assert_eq!(check("myvllm:num_requests_running 3\nvllm:num_requests_running_max 9\n"), None);
}

#[test]
fn newer_names_stand_for_older_ones() {
    let page = "vllm:gpu_cache_usage_perc{engine=\"0\"} 0.9\n\
                vllm:kv_cache_usage_perc{engine=\"0\"} 0.2\n\
                vllm:gpu_prefix_cache_hits_total{engine=\"0\"} 7\n";
    let got = check(page).unwrap();
    assert_eq!((got.kv_usage, got.prefix_hits), (Some(0.2), Some(7.0)));
}

#[test]
fn engines_on_one_page_are_not_added_up() {
    let page = "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_waiting{engine=\"0\"} 1\n\
                sglang:num_running_reqs{tp_rank=\"0\"} 40\n";
    let got = check(page).unwrap();
    assert_eq!((got.engine, got.running, got.beside), (EngineKind::Vllm, Some(3.0), Some(EngineKind::Sglang)));
}

#[test]
fn blocks_of_tensorrt_llm_are_multiplied() {
    let page = "trtllm_kv_cache_max_blocks{model_name=\"m\"} 1000\n\
                trtllm_kv_cache_tokens_per_block{model_name=\"m\"} 32\n\
                trtllm_max_num_active_requests{model_name=\"m\"} 64\n";
    let got = check(page).unwrap();
    assert_eq!((got.kv_tokens, got.max_sequences), (Some(KvTokens::FromBlocks(32_000.0)), Some(64.0)));
}

#[test]
fn parts_are_not_added_to_their_whole() {
    let page = "sglang:num_running_reqs{priority=\"\",tp_rank=\"0\"} 5\n\
                sglang:num_running_reqs{priority=\"0\",tp_rank=\"0\"} 3\n\
                sglang:num_running_reqs{priority=\"1\",tp_rank=\"0\"} 2\n\
                sglang:prompt_tokens_total{is_streaming=\"True\"} 10\nsglang:prompt_tokens_total{is_streaming=\"False\"} 4\n";
    let got = check(page).unwrap();
    assert_eq!((got.running, got.replicas, got.prompt_tokens), (Some(5.0), 1, Some(14.0)));
}
