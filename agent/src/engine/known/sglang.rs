//! SGLang. Its information page holds its own keys in clear: only the places below are read from it. `max_running_requests`
//! there is what was asked for at the start, `effective_max_running_requests_per_dp` what came of it.

use speedmatrix_shared::target::{FactName, Sureness};

use super::{
    Counting, Engine, MODELS_PATH, Meaning, NOTHING, On, Sign, Switch, Switched, Tokenizer, near, told, whole,
};

const INFO: &str = "/server_info";
/// Its older name.
const OLD_INFO: &str = "/get_server_info";

const CAPACITY: &str = "/max_total_num_tokens";
const AT_ONCE: &str = "/internal_states/0/effective_max_running_requests_per_dp";

pub(super) const ENGINE: Engine = Engine {
    name: "sglang",
    asks: &[whole(INFO), whole(OLD_INFO)],
    signs: &[
        (Sign::Has(INFO, CAPACITY), Sureness::Certain),
        (Sign::Has(OLD_INFO, CAPACITY), Sureness::Certain),
        (Sign::Owner("sglang"), Sureness::Likely),
    ],
    places: &[
        told(FactName::Version, INFO, "/version"),
        told(FactName::Version, OLD_INFO, "/version"),
        told(FactName::Model, INFO, "/model_path"),
        told(FactName::Model, OLD_INFO, "/model_path"),
        told(FactName::Model, MODELS_PATH, "/root"),
        told(FactName::Revision, INFO, "/revision"),
        told(FactName::Revision, OLD_INFO, "/revision"),
        told(FactName::Quantization, INFO, "/quantization"),
        told(FactName::Quantization, OLD_INFO, "/quantization"),
        told(FactName::MaxModelLen, MODELS_PATH, "/max_model_len"),
        told(FactName::MaxModelLen, INFO, "/context_length"),
        told(FactName::MaxModelLen, OLD_INFO, "/context_length"),
        told(FactName::MaxSequences, INFO, AT_ONCE),
        told(FactName::MaxSequences, OLD_INFO, AT_ONCE),
        near(FactName::MaxSequences, INFO, "/max_running_requests"),
        near(FactName::MaxSequences, OLD_INFO, "/max_running_requests"),
        told(FactName::KvTokens, INFO, CAPACITY),
        told(FactName::KvTokens, OLD_INFO, CAPACITY),
    ],
    switches: &[
        Switch { what: Switched::PrefixCache, path: INFO, pointer: "/disable_radix_cache", on: On::False },
        Switch { what: Switched::PrefixCache, path: OLD_INFO, pointer: "/disable_radix_cache", on: On::False },
        Switch { what: Switched::Speculation, path: INFO, pointer: "/speculative_algorithm", on: On::AllBut("NONE") },
        Switch {
            what: Switched::Speculation,
            path: OLD_INFO,
            pointer: "/speculative_algorithm",
            on: On::AllBut("NONE"),
        },
    ],
    prefix: Some("sglang"),
    series: &[
        ("num_running_reqs", Meaning::Running),
        ("num_queue_reqs", Meaning::Waiting),
        ("token_usage", Meaning::KvUsage),
        ("max_total_num_tokens", Meaning::KvTokens),
        ("generation_tokens", Meaning::GenerationTokens),
        ("prompt_tokens", Meaning::PromptTokens),
        ("cached_tokens", Meaning::PrefixHits),
        ("num_retracted_requests", Meaning::Preemptions),
        ("spec_accept_length", Meaning::AcceptLength),
        ("gen_throughput", Meaning::GenThroughput),
    ],
    // A request's tokens are added when it is finished.
    counting: Counting::RequestEnd,
    caches_prefixes: true,
    // Newer versions take vLLM's question.
    tokenizer: Tokenizer::Messages,
    // It goes on generating for nobody after its client has hung up.
    abort: Some("/abort_request"),
    ..NOTHING
};
