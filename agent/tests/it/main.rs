//! The one integration binary: whole rooms against the simulator, on port 0.

mod cli;
mod rig;
mod server;
mod store;
mod trouble;
mod truth;
