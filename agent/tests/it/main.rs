//! The one integration binary: whole rooms against the simulator, on port 0.

// `cfg(test)` tells the lints that helpers outside of test functions are tests too.
#[cfg(test)]
mod ab;
#[cfg(test)]
mod abort;
#[cfg(test)]
mod base;
#[cfg(test)]
mod captures;
#[cfg(test)]
mod cells;
#[cfg(test)]
mod chaos;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod compare;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod door;
#[cfg(test)]
mod engines;
#[cfg(test)]
mod exports;
#[cfg(test)]
mod foreign_sites;
#[cfg(test)]
mod health;
#[cfg(test)]
mod history;
#[cfg(test)]
mod host;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hostile_requests;
#[cfg(test)]
mod imports;
#[cfg(test)]
mod labels;
#[cfg(test)]
mod logging;
#[cfg(test)]
mod manner;
#[cfg(test)]
mod nearby;
#[cfg(test)]
mod nginx;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod raw;
#[cfg(test)]
#[path = "../recorded/mod.rs"]
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod secrecy;
#[cfg(test)]
mod server;
#[cfg(test)]
mod speculation;
#[cfg(test)]
mod spellings;
#[cfg(test)]
mod steer;
#[cfg(test)]
mod store;
#[cfg(test)]
mod store_labels;
#[cfg(test)]
mod stream;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod trouble;
#[cfg(test)]
mod truth;
#[cfg(test)]
mod upkeep;
#[cfg(test)]
mod virtual_modes;
#[cfg(test)]
mod virtual_rig;
#[cfg(test)]
mod virtual_run;
#[cfg(test)]
mod virtual_truth;
