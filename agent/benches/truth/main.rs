//! How true the client is: its stamps against the simulator's own, its cost against a bare socket reader's.
//!
//! `cargo bench --bench truth` prints every row of the brief's "Client truth": asked, reached. The simulator, the client
//! and the bare reader are processes of their own (this program, started again), so that each one's processor time and
//! memory are its own. Run it on an idle machine of at least two cores.

mod bare;
#[path = "../figure/mod.rs"]
mod figure;
mod figures;
mod job;
mod ours;
mod simulator;

use std::io;

use figure::table;
use figures::all;
use job::{Job, Report};

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve-sim", preset, recording] => simulator::serve(preset, recording),
        ["client", job] => work(job, ours::run),
        ["bare", job] => work(job, bare::run),
        [] => table(&all()?),
        // A test runner that lists tests, or a word too much: there is nothing but the table here.
        _ => Ok(()),
    }
}

fn work(job: &str, run: impl FnOnce(&Job) -> io::Result<Report>) -> io::Result<()> {
    let report = run(&serde_json::from_str(job)?)?;
    serde_json::to_writer(io::stdout().lock(), &report)?;
    Ok(())
}
