//! What a benchmark run *is*: its plan, its traces, its statistics, its events and its state, and the
//! texts and files they become. This crate does no IO, has no clock and no threads, so it runs the
//! same in the agent, the command line, the browser and the tests.

pub mod api;
pub mod compare;
pub mod detail;
pub mod event;
pub mod export;
pub mod facts;
pub mod feasible;
pub mod finding;
pub mod format;
pub mod found;
pub mod gauge;
pub mod gpu;
pub mod host;
pub mod id;
pub mod import;
pub mod label;
pub mod metric;
pub mod plan;
pub mod raw;
pub mod sample;
pub mod scale;
pub mod state;
pub mod stats;
pub mod steer;
pub mod target;
pub mod trace;
pub mod trust;
pub mod typed;
pub mod units;
