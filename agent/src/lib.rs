//! The agent: measures a served language model, stores the run, and serves the page. `main` is thin;
//! everything that can be tested is here.

pub mod bench;
pub mod cli;
pub mod client;
pub mod clock;
pub mod engine;
pub mod framing;
pub mod host;
pub mod hub;
pub mod logging;
pub mod nearby;
pub mod prompt;
pub mod reanalysis;
pub mod runs;
pub mod secret;
pub mod server;
pub mod sim;
pub mod store;
pub mod terminal;
pub mod watch;
