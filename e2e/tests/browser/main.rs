//! What people do, in a real Chromium on the simulator. `cargo xtask test` sets `AGENT_BIN`, `CHROMEDRIVER`,
//! `CHROMIUM` and `AXE_JS`; `SHOTS=FOLDER` keeps screenshots.

mod base;
mod cell;
mod compare;
mod door;
mod history;
mod live;
mod looks;
mod odd;
mod reference;
mod relay;
mod report;
mod resume;
mod rig;
mod run;
mod runs;
mod runs_looks;
mod setup;
mod setup_ways;
mod steer;
