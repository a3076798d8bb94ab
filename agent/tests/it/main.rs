//! The one integration binary: whole rooms against the simulator, on port 0.

mod captures;
mod cli;
mod rig;
mod server;
mod store;
mod stream;
mod trouble;
mod truth;
