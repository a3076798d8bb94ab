//! The rules that make findings.

use super::Finding;
use crate::state::RunState;

/// What a reader should know about a whole run.
pub fn run_findings(_state: &RunState) -> Vec<Finding> {
    Vec::new()
}
