//! Findings: what a reader should know before trusting a number, as values with rules.

pub mod gpus;
pub mod rules;
pub mod run;

use serde::{Deserialize, Serialize};

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// The number may mislead.
    Warning,
}

/// One finding about a cell or a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A stable name such as `few_requests`.
    pub code: String,
    /// How much it weighs.
    pub severity: Severity,
    /// One sentence with the numbers in it.
    pub text: String,
}

impl Finding {
    /// Something that may mislead.
    pub fn warning(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), severity: Severity::Warning, text: text.into() }
    }

    /// Something good to know.
    pub fn info(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), severity: Severity::Info, text: text.into() }
    }
}
