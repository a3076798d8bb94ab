//! The llama.cpp server. Its contexts are per slot. As a router it lists models that are not loaded; asking for their
//! properties would load them, so that no question here names a model.

use speedmatrix_shared::target::{FactName, Sureness};

use super::{Counting, Engine, MODELS_PATH, Meaning, NOTHING, On, Sign, Switch, Switched, Tokenizer, told, whole};

const PROPS: &str = "/props";

pub(super) const ENGINE: Engine = Engine {
    name: "llama.cpp",
    asks: &[whole(PROPS)],
    signs: &[
        (Sign::Server("llama.cpp"), Sureness::Certain),
        (Sign::Has(PROPS, "/total_slots"), Sureness::Certain),
        (Sign::Owner("llamacpp"), Sureness::Likely),
    ],
    places: &[
        told(FactName::Model, PROPS, "/model_path"),
        told(FactName::Quantization, PROPS, "/model_ftype"),
        told(FactName::Quantization, MODELS_PATH, "/meta/ftype"),
        told(FactName::Build, PROPS, "/build_info"),
        told(FactName::MaxModelLen, MODELS_PATH, "/meta/n_ctx"),
        told(FactName::MaxModelLen, PROPS, "/default_generation_settings/n_ctx"),
        told(FactName::MaxSequences, PROPS, "/total_slots"),
    ],
    switches: &[Switch {
        what: Switched::Speculation,
        path: PROPS,
        pointer: "/default_generation_settings/params/speculative.types",
        on: On::AllBut("none"),
    }],
    prefix: Some("llamacpp"),
    series: &[
        ("requests_processing", Meaning::Running),
        ("requests_deferred", Meaning::Waiting),
        ("kv_cache_usage_ratio", Meaning::KvUsage),
        ("tokens_predicted", Meaning::GenerationTokens),
        ("prompt_tokens", Meaning::PromptTokens),
        ("prompt_tokens_cached", Meaning::PrefixHits),
        ("spec_decode_num_drafts", Meaning::Drafts),
        ("spec_decode_num_draft_tokens", Meaning::DraftTokens),
        ("spec_decode_num_accepted_tokens", Meaning::AcceptedTokens),
    ],
    // A slot's numbers are added up when it is reset.
    counting: Counting::RequestEnd,
    caches_prefixes: true,
    tokenizer: Tokenizer::TemplateFirst,
    ..NOTHING
};
