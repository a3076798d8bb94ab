//! From traces to numbers. Everything is pure: traces and a window go in, statistics come out.

pub mod cell;
pub mod compare;
pub mod counter;
pub mod decode;
pub mod first;
pub mod first_tokens;
pub mod goodput;
pub mod gpu;
pub mod interval;
pub mod looping;
pub mod mixed;
pub mod prefill;
pub mod queue;
pub mod repeats;
pub mod request;
pub mod speculation;
pub mod summary;
pub mod verdict;
pub mod window;

/// Under which rules a number was made: it is stamped into every result.
///
/// Raise it by one in the change after which the same raw arrivals give another [`cell::CellResult`]: another formula,
/// threshold, status, finding, or words of a finding. A new field that was absent before counts too. What only shows
/// results (formats, tables, colours) is no rule. Stored runs then keep their numbers and their stamp, and
/// `speedmatrix reanalyse` shows what the new rules say about them. A test of `raw` holds the result of a fixed cell
/// beside this number, so that a change of the one without the other does not go unseen.
pub const RULES_VERSION: u32 = 2;

#[cfg(test)]
mod tests;
