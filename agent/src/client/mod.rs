//! Talking to the target. `stream` is the hot path; everything that isn't measured goes through reqwest in `probe`.

use speedmatrix_shared::plan::TargetUrl;

use crate::secret::Secret;

/// A server and the key for it.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its address.
    pub url: TargetUrl,
    /// Its bearer key, if it needs one.
    pub key: Option<Secret>,
}
