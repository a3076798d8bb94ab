//! Hugging Face's text-generation-inference. `max_concurrent_requests` counts waiting requests too, so that it is no limit
//! of those decoding at once.

use speedmatrix_shared::target::{FactName, Sureness};

use super::{Counting, Engine, Meaning, NOTHING, Sign, near, told, whole};

const INFO: &str = "/info";

pub(super) const ENGINE: Engine = Engine {
    name: "tgi",
    asks: &[whole(INFO)],
    signs: &[
        (Sign::Has(INFO, "/max_total_tokens"), Sureness::Certain),
        (Sign::Has(INFO, "/max_concurrent_requests"), Sureness::Likely),
    ],
    places: &[
        told(FactName::Version, INFO, "/version"),
        told(FactName::Model, INFO, "/model_id"),
        told(FactName::Revision, INFO, "/model_sha"),
        told(FactName::Build, INFO, "/docker_label"),
        told(FactName::MaxModelLen, INFO, "/max_total_tokens"),
        near(FactName::KvTokens, INFO, "/max_batch_total_tokens"),
    ],
    prefix: Some("tgi"),
    series: &[
        ("batch_current_size", Meaning::Running),
        ("queue_size", Meaning::Waiting),
        ("request_generated_tokens_sum", Meaning::GenerationTokens),
        ("request_input_length_sum", Meaning::PromptTokens),
    ],
    counting: Counting::RequestEnd,
    ..NOTHING
};
