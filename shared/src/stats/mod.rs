//! From traces to numbers. Everything is pure: traces and a window go in, statistics come out.

pub mod cell;
pub mod interval;
pub mod request;
pub mod summary;
pub mod window;
