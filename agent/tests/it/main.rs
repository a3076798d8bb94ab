//! The one integration binary: whole rooms against the simulator, on port 0.

mod store;
