//! LM Studio. The length with which a model is loaded counts, not the longest that it could be loaded with.

use speedmatrix_shared::target::{FactName, Sureness};

use super::{Ask, Engine, NOTHING, Sign, near, told};

const MODELS: &str = "/api/v0/models";

pub(super) const ENGINE: Engine = Engine {
    name: "lm-studio",
    asks: &[Ask { path: MODELS, rows: Some(("/data", "/id")) }],
    signs: &[
        (Sign::Has(MODELS, "/compatibility_type"), Sureness::Certain),
        (Sign::Owner("organization_owner"), Sureness::Likely),
        (Sign::Owner("organization-owner"), Sureness::Likely),
    ],
    places: &[
        told(FactName::Quantization, MODELS, "/quantization"),
        told(FactName::MaxModelLen, MODELS, "/loaded_context_length"),
        near(FactName::MaxModelLen, MODELS, "/max_context_length"),
    ],
    ..NOTHING
};
