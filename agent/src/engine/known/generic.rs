//! A server of which only the protocol is known: what its model list says, under the names that others use.

use speedmatrix_shared::target::FactName;

use super::{Engine, MODELS_PATH, NOTHING, near};

pub(super) const ENGINE: Engine = Engine {
    name: "openai-compatible",
    places: &[
        near(FactName::MaxModelLen, MODELS_PATH, "/max_model_len"),
        near(FactName::MaxModelLen, MODELS_PATH, "/context_length"),
        near(FactName::MaxModelLen, MODELS_PATH, "/context_window"),
        near(FactName::MaxModelLen, MODELS_PATH, "/max_context_length"),
        near(FactName::MaxModelLen, MODELS_PATH, "/meta/n_ctx"),
        near(FactName::Model, MODELS_PATH, "/root"),
    ],
    ..NOTHING
};
