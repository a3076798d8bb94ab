//! The fields of a plan and what can be wrong with each.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A field of the set-up form, flag of the command line, and key of a plan file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// The server's address.
    Target,
    /// The model's name.
    Model,
    /// The run's name.
    Name,
    /// Context lengths.
    Contexts,
    /// Requests at once.
    Concurrency,
    /// Cells to leave out.
    LeaveOut,
    /// Contexts of the prefill rows.
    PrefillContexts,
    /// Window length.
    Duration,
    /// Output limit.
    MaxOutput,
    /// Prompt mode.
    Prompts,
    /// How requests come.
    Load,
    /// Bounds of a good request.
    Slo,
    /// File that the prompts' text comes from.
    Corpus,
    /// Whether requests ask the same.
    Questions,
    /// Sampling temperature.
    Temperature,
    /// Share of the probability that is drawn from.
    TopP,
    /// What ends an answer.
    EndOfText,
    /// Fewest output tokens.
    MinOutput,
    /// Order of the cells.
    Order,
    /// How often each cell is measured.
    Repeats,
    /// Whether the client is checked.
    ClientCheck,
    /// Seed.
    Seed,
}

impl Field {
    /// The command line flag.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Target => "--target",
            Self::Model => "--model",
            Self::Name => "--name",
            Self::Contexts => "--contexts",
            Self::Concurrency => "--concurrency",
            Self::LeaveOut => "--leave-out",
            Self::PrefillContexts => "--prefill-contexts",
            Self::Duration => "--duration",
            Self::MaxOutput => "--max-output",
            Self::Prompts => "--prompts",
            Self::Load => "--load",
            Self::Slo => "--slo",
            Self::Corpus => "--corpus",
            Self::Questions => "--questions",
            Self::Temperature => "--temperature",
            Self::TopP => "--top-p",
            Self::EndOfText => "--end-of-text",
            Self::MinOutput => "--min-output",
            Self::Order => "--order",
            Self::Repeats => "--repeats",
            Self::ClientCheck => "--client-check",
            Self::Seed => "--seed",
        }
    }
}

/// One thing wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// Which field.
    pub field: Field,
    /// What is wrong and what to write instead.
    pub message: String,
}

/// Everything wrong with a draft, in the order of the fields; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanErrors(pub Vec<FieldError>);

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{}: {}", error.field.flag(), error.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for PlanErrors {}
