//! From traces to numbers. Everything is pure: traces and a window go in, statistics come out.

pub mod cell;
pub mod compare;
pub mod counter;
pub mod decode;
pub mod first;
pub mod interval;
pub mod prefill;
pub mod queue;
pub mod request;
pub mod summary;
pub mod verdict;
pub mod window;

#[cfg(test)]
mod tests;
