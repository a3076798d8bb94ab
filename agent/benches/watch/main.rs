//! What watching costs, and what a long time of it leaves behind.
//!
//! `cargo bench --bench watch` prints the figures of "Watching is free" and of the long run: asked, reached. The agent is
//! a process of its own, so that its processor time and memory are its own; the simulator and those who watch are this
//! one. Run it on an idle machine of at least two cores. `--cells N` makes the long run shorter, `--seconds N` the crowd's,
//! `--rounds N` the comparison with nobody.

mod agent;
mod cost;
mod crowd;
#[path = "../figure/mod.rs"]
mod figure;
mod long;
mod viewer;

use figure::{Figure, table};
use speedmatrix_agent::sim::{Recording, Sim, SimConfig, SimThread};
use speedmatrix_shared::stats::summary::quantile_sorted;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How much is measured.
struct Size {
    /// Cells of the long run.
    cells: usize,
    /// How long a crowd watches, seconds.
    seconds: u64,
    /// Runs with and without viewers.
    rounds: usize,
}

impl Size {
    /// By the words of the command line; `None` for words that are not understood.
    fn read(words: &[String]) -> Option<Self> {
        let mut size = Self { cells: 10_000, seconds: 60, rounds: 8 };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let number = words.next()?.parse().ok()?;
            match word.as_str() {
                "--cells" => size.cells = number,
                "--seconds" => size.seconds = number as u64,
                "--rounds" => size.rounds = number,
                _ => return None,
            }
        }
        Some(size)
    }
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    // A test runner that lists tests: there is nothing but the table here.
    let Some(size) = Size::read(&words) else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let figures = runtime.block_on(async {
        let mut figures = Vec::new();
        if size.seconds > 0 {
            figures.extend(crowd::watch(size.seconds).await?);
        }
        if size.rounds > 0 {
            figures.extend(cost::compare(size.rounds).await?);
        }
        if size.cells > 0 {
            figures.extend(long::run(size.cells).await?);
        }
        Outcome::Ok(figures)
    })?;
    Ok(table(&figures)?)
}

/// A simulator of exact times.
async fn simulator(clock_factor: f64, recording: Recording) -> Outcome<SimThread> {
    let config = SimConfig { clock_factor, recording, ..SimConfig::preset("exact")? };
    Ok(tokio::task::spawn_blocking(|| Sim::start_on_thread(config, ([127, 0, 0, 1], 0).into())).await??)
}

/// A figure that nothing is asked of.
fn told(name: String, reached: String) -> Figure {
    Figure { name, asked: "-".into(), reached, ok: true }
}

/// The value below which a share of these lie; NaN, which is no bound kept, for nothing.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile_sorted(values, share).unwrap_or(f64::NAN)
}
