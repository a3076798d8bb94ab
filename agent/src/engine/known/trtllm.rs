//! TensorRT-LLM's `trtllm-serve`. Its `/metrics` are steps of the engine as JSON, which reading takes away; the series are
//! at `/prometheus/metrics`, and only if iteration statistics are on. Tokens are counted when a request ends.

use speedmatrix_shared::target::{FactName, Sureness};

use super::{Counting, Engine, MODELS_PATH, Meaning, NOTHING, Sign, told, whole};

const VERSION: &str = "/version";

pub(super) const ENGINE: Engine = Engine {
    name: "tensorrt-llm",
    asks: &[whole(VERSION)],
    signs: &[(Sign::Owner("tensorrt_llm"), Sureness::Certain)],
    places: &[told(FactName::Version, VERSION, "/version"), told(FactName::MaxModelLen, MODELS_PATH, "/max_model_len")],
    prefix: Some("trtllm"),
    series: &[
        ("num_requests_running", Meaning::Running),
        ("num_requests_waiting", Meaning::Waiting),
        ("kv_cache_utilization", Meaning::KvUsage),
        ("kv_cache_max_blocks", Meaning::KvBlocks),
        ("kv_cache_tokens_per_block", Meaning::KvBlockTokens),
        ("max_num_active_requests", Meaning::MaxSequences),
        ("generation_tokens", Meaning::GenerationTokens),
        ("prompt_tokens", Meaning::PromptTokens),
        ("spec_decode_num_draft_tokens", Meaning::DraftTokens),
        ("spec_decode_num_accepted_tokens", Meaning::AcceptedTokens),
        ("spec_decode_acceptance_length", Meaning::AcceptLength),
    ],
    counting: Counting::RequestEnd,
    ..NOTHING
};
