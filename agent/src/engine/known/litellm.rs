//! LiteLLM's proxy. What it says of limits comes from its own list of models, not from the engine behind it.

use speedmatrix_shared::target::{FactName, Sureness};

use super::{Ask, Engine, NOTHING, Sign, near};

const MODELS: &str = "/v1/model/info";

pub(super) const ENGINE: Engine = Engine {
    name: "litellm",
    asks: &[Ask { path: MODELS, rows: Some(("/data", "/model_name")) }],
    signs: &[
        (Sign::Header("x-litellm-version"), Sureness::Certain),
        (Sign::Header("x-litellm-call-id"), Sureness::Certain),
        (Sign::Has(MODELS, "/litellm_params"), Sureness::Certain),
    ],
    places: &[near(FactName::MaxModelLen, MODELS, "/model_info/max_input_tokens")],
    beware: Some(
        "this is a proxy: what it adds, holds back or counts itself is measured too, and it may spread requests over \
         several engines; give an engine's own address to measure that engine",
    ),
    ..NOTHING
};
