//! Bytes to frames: pure, incremental, indifferent to where reads cut.

mod sse;

pub use self::sse::{Event, Sse};

/// Bytes that no reader of event streams could hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// One event, or what is none, outgrew the bound.
    #[error("over {limit_bytes} bytes came without an event's end: the stream was given up")]
    EventTooLarge {
        /// The bound.
        limit_bytes: usize,
    },
}
