//! One file per page.

pub mod compare;
pub mod enter;
pub mod missing;
pub mod run;
pub mod runs;
pub mod settings;
pub mod setup;
