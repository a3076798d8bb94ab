//! One file per page.

pub mod missing;
pub mod run;
pub mod runs;
pub mod setup;
