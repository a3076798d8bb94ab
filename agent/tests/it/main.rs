//! The one integration binary: whole rooms against the simulator, on port 0.

mod captures;
mod rig;
mod stream;
mod trouble;
mod truth;
