//! The built-in simulator. It speaks as vLLM does, and has one page beside, on which it says what it is.

use speedmatrix_shared::target::FactName;

use super::{Place, told};

/// Where it says what it is.
pub const SIMULATOR_PATH: &str = "/sim/info";

/// It knows its limits better than the engine whose words it uses.
pub(super) const PLACES: &[Place] = &[
    told(FactName::MaxModelLen, SIMULATOR_PATH, "/max_model_len"),
    told(FactName::MaxSequences, SIMULATOR_PATH, "/max_sequences"),
];
