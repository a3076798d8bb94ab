//! Ollama. It has no metrics page; what it has loaded, and with how long a context, is in its process list.

use speedmatrix_shared::target::{FactName, Sureness};

use super::{Ask, Engine, NOTHING, Sign, near, told, whole};

const VERSION: &str = "/api/version";
const PROCESSES: &str = "/api/ps";

pub(super) const ENGINE: Engine = Engine {
    name: "ollama",
    asks: &[whole(VERSION), Ask { path: PROCESSES, rows: Some(("/models", "/name")) }],
    signs: &[
        (Sign::Has(PROCESSES, "/digest"), Sureness::Certain),
        (Sign::Has(VERSION, "/version"), Sureness::Likely),
        (Sign::Owner("library"), Sureness::Likely),
    ],
    places: &[
        told(FactName::Version, VERSION, "/version"),
        told(FactName::Model, PROCESSES, "/model"),
        told(FactName::Quantization, PROCESSES, "/details/quantization_level"),
        told(FactName::MaxModelLen, PROCESSES, "/context_length"),
        near(FactName::MaxModelLen, PROCESSES, "/num_ctx"),
    ],
    caches_prefixes: true,
    beware: Some(
        "ollama cuts prompts that are longer than its context without a word: set OLLAMA_CONTEXT_LENGTH to the longest \
         context that is measured, and OLLAMA_NUM_PARALLEL to the most requests at once",
    ),
    ..NOTHING
};
