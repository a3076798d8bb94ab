//! vLLM. `--max-num-seqs` is told nowhere: the concurrency that its cache page mentions is capacity ÷ context.

use speedmatrix_shared::target::{FactName, Sureness};

use super::{Engine, MODELS_PATH, Meaning, NOTHING, Sign, Tokenizer, told, whole};

const VERSION: &str = "/version";

pub(super) const ENGINE: Engine = Engine {
    name: "vllm",
    asks: &[whole(VERSION)],
    signs: &[(Sign::Owner("vllm"), Sureness::Likely)],
    places: &[
        told(FactName::Version, VERSION, "/version"),
        told(FactName::Model, MODELS_PATH, "/root"),
        told(FactName::MaxModelLen, MODELS_PATH, "/max_model_len"),
    ],
    prefix: Some("vllm"),
    series: &[
        ("num_requests_running", Meaning::Running),
        ("num_requests_waiting", Meaning::Waiting),
        ("kv_cache_usage_perc", Meaning::KvUsage),
        ("gpu_cache_usage_perc", Meaning::KvUsage),
        ("cache_config_info", Meaning::CacheConfig),
        ("generation_tokens", Meaning::GenerationTokens),
        ("prompt_tokens", Meaning::PromptTokens),
        ("num_preemptions", Meaning::Preemptions),
        ("prefix_cache_queries", Meaning::PrefixQueries),
        ("gpu_prefix_cache_queries", Meaning::PrefixQueries),
        ("prefix_cache_hits", Meaning::PrefixHits),
        ("gpu_prefix_cache_hits", Meaning::PrefixHits),
        ("spec_decode_num_drafts", Meaning::Drafts),
        ("spec_decode_num_draft_tokens", Meaning::DraftTokens),
        ("spec_decode_num_accepted_tokens", Meaning::AcceptedTokens),
    ],
    drafts_mean_speculation: true,
    tokenizer: Tokenizer::Messages,
    ..NOTHING
};
