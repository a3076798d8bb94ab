//! What people ask of a run while it runs, beside stopping it at once.

use serde::{Deserialize, Serialize};

use crate::id::CellId;

/// What happens when the running cell is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// The next cell.
    #[default]
    Go,
    /// Nothing, until somebody asks for [`Next::Go`]: a pause in the middle of a window would spoil it.
    Pause,
    /// The end of the run; what is measured stays.
    Stop,
}

impl Next {
    /// As a line of the log.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Go => "the run goes on",
            Self::Pause => "the run pauses when the running cell is over",
            Self::Stop => "the run stops when the running cell is over",
        }
    }
}

/// A wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "wish")]
pub enum Steer {
    /// What happens when the running cell is over.
    Next {
        /// What.
        next: Next,
    },
    /// A cell that is planned or running is left out. What its earlier repeats measured stays.
    Skip {
        /// Which.
        cell: CellId,
    },
}
