//! Names of runs and cells, as they stand in addresses, files and the store.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::units::{Concurrency, Context, UnitError};

/// Why a name is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// A run id is 1–64 of `a–z 0–9 -`.
    #[error("\"{0}\" is not a run id: expected 1 to 64 lower-case letters, digits and dashes")]
    Run(String),
    /// A cell id is `PHASE-CONTEXT-CONCURRENCY`.
    #[error("\"{0}\" is not a cell id: expected for example decode-8K-16")]
    Cell(String),
    /// A part of a cell id is out of range.
    #[error("cell id: {0}")]
    Unit(#[from] UnitError),
}

/// A run's id: 1–64 of `a–z 0–9 -`, so it is safe in a URL, a file name and a terminal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// The id of the read-only sample run.
    pub const REFERENCE: &'static str = "reference";

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if fits { Ok(Self(text.to_owned())) } else { Err(IdError::Run(text.chars().take(80).collect())) }
    }
}

impl TryFrom<String> for RunId {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What a cell measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Reading the prompt: cold requests of one output token.
    Prefill,
    /// Writing the answer with a fixed number of requests in flight.
    Decode,
}

impl Phase {
    /// The phase's name in tables: the reference page's words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Prefill => "Prefill",
            Self::Decode => "Sustained decode",
        }
    }

    const fn key(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        }
    }
}

/// One cell of the matrix: `decode-8K-16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CellId {
    /// What is measured.
    pub phase: Phase,
    /// Prompt tokens of each request.
    pub context: Context,
    /// Requests at once.
    pub concurrency: Concurrency,
}

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.phase.key(), self.context, self.concurrency)
    }
}

impl FromStr for CellId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError::Cell(text.chars().take(80).collect());
        let mut parts = text.split('-');
        let (Some(phase), Some(context), Some(concurrency), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let phase = match phase {
            "prefill" => Phase::Prefill,
            "decode" => Phase::Decode,
            _ => return Err(wrong()),
        };
        Ok(Self { phase, context: context.parse()?, concurrency: concurrency.parse()? })
    }
}

impl TryFrom<String> for CellId {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<CellId> for String {
    fn from(id: CellId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_what_they_write() {
        let check = |text: &str, ok: bool| {
            let back = text.parse::<CellId>().map(|id| id.to_string());
            assert_eq!(back.as_deref().ok(), ok.then_some(text), "{text}");
        };
        check("decode-8K-16", true);
        check("prefill-1019K-1", true);
        check("decode-8000-1024", true);
        check("decode-8K-0", false);
        check("decode-8K", false);
        check("decode-8K-16-1", false);
        check("burst-8K-16", false);
        assert!("Reference".parse::<RunId>().is_err());
        assert!("../x".parse::<RunId>().is_err());
        assert!(RunId::REFERENCE.parse::<RunId>().is_ok());
    }
}
