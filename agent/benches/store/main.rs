//! How small a run with all its raw arrivals is, how fast it opens again, and how fast a long history lists.
//!
//! `cargo bench --bench store` prints every row of the brief's figures for the store: asked, reached. The run is made up
//! ([`synthesis`]) and goes the way of a measured one: records, results, packing, one transaction per event.

#[path = "../figure/mod.rs"]
mod figure;
mod history;
mod synthesis;

use std::{
    fs, io,
    path::Path,
    time::{Duration, Instant},
};

use figure::{Figure, at_most, table};
use speedmatrix_agent::store::{Access, RawKept, Store, Which};
use speedmatrix_shared::{
    event::{Envelope, RunEvent, RunOutcome},
    id::RunId,
    raw::codec,
    units::Nanos,
};

/// Bounds of the brief.
const RUN_MB: f64 = 200.0;
const REOPEN_S: f64 = 1.0;
const LIST_MS: f64 = 100.0;
/// Runs of a long history.
const RUNS: u32 = 1_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    // A test runner that lists tests: there is nothing but the table here.
    if std::env::args().skip(1).any(|word| word != "--bench") {
        return Ok(());
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("runs.sqlite3");
    let run: RunId = "seed-size".parse()?;
    let mut figures = runtime.block_on(store_run(&path, &run))?;
    figures.push(at_most("the same: size of the store".into(), RUN_MB, "MB", size(folder.path())? as f64 / 1e6));
    figures.push(runtime.block_on(reopen(&path, &run))?);
    history::copy(&path, &run, RUNS)?;
    figures.push(runtime.block_on(list(&path))?);
    Ok(table(&figures)?)
}

/// What it took altogether to store the run.
#[derive(Default)]
struct Took {
    arrivals: usize,
    packed: usize,
    packing: Duration,
    storing: Duration,
}

async fn store_run(path: &Path, run: &RunId) -> Outcome<Vec<Figure>> {
    let store = Store::open(path, Access::Measure).await?;
    let plan = synthesis::plan();
    let cells = plan.cells();
    let (mut seq, mut took) = (0, Took::default());
    let mut next = |event: RunEvent| {
        seq += 1;
        Envelope { seq: seq - 1, at: Nanos::from_secs(seq), event }
    };
    let started = RunEvent::RunStarted { plan, started_unix_ms: 1_796_160_600_000, tool: "speedmatrix bench".into() };
    store.append(run, next(started)).await?;
    for (number, cell) in cells.iter().copied().enumerate() {
        let raw = synthesis::cell(cell, number as u64);
        took.arrivals += raw.traces.iter().map(|trace| trace.arrivals.len()).sum::<usize>();
        store.append(run, next(RunEvent::CellStarted { cell })).await?;
        let event = RunEvent::CellFinished { cell, result: Box::new(raw.result()) };
        let begun = Instant::now();
        let bytes = codec::encode(raw)?;
        took.packing += begun.elapsed();
        took.packed += bytes.len();
        let begun = Instant::now();
        if let RawKept::Lost(error) = store.append_cell(run, next(event), bytes.into()).await? {
            return Err(error.into());
        }
        took.storing += begun.elapsed();
    }
    store.append(run, next(RunEvent::RunFinished { outcome: RunOutcome::Finished })).await?;
    let name = format!("{} cells of 30 s, {} streams, {} arrivals", cells.len(), synthesis::STREAMS, took.arrivals);
    let each = |total: Duration| format!("{:.1} ms", total.as_secs_f64() * 1e3 / cells.len() as f64);
    let per_arrival = format!("{:.2} B", took.packed as f64 / took.arrivals as f64);
    Ok(vec![
        told(format!("{name}: packed, per arrival"), per_arrival),
        told("the same: packing a cell".into(), each(took.packing)),
        told("the same: storing a packed cell".into(), each(took.storing)),
    ])
}

/// A figure that nothing is asked of.
fn told(name: String, reached: String) -> Figure {
    Figure { name, asked: "-".into(), reached, ok: true }
}

fn size(folder: &Path) -> io::Result<u64> {
    fs::read_dir(folder)?.map(|file| Ok(file?.metadata()?.len())).sum()
}

/// As an agent that starts: the list, the run, and one cell's raw arrivals.
async fn reopen(path: &Path, run: &RunId) -> Outcome<Figure> {
    let begun = Instant::now();
    let store = Store::open(path, Access::Serve).await?;
    let listed = store.list().await?;
    let state = store.load(run).await?;
    let last = state.cells.last().ok_or("the run has no cells")?;
    let bytes = store.raw(run, last.id, Which::Last).await?.ok_or("the cell has no record")?;
    let raw = codec::decode(&bytes)?;
    let took = begun.elapsed();
    if listed.len() != 1 || Some(&raw.result()) != last.result() {
        return Err("the run that was opened is not the one that was stored".into());
    }
    Ok(at_most("the same: open, list, load, one cell unpacked".into(), REOPEN_S, "s", took.as_secs_f64()))
}

async fn list(path: &Path) -> Outcome<Figure> {
    let store = Store::open(path, Access::Serve).await?;
    let begun = Instant::now();
    let listed = store.list().await?;
    let took = begun.elapsed();
    if listed.len() != RUNS as usize {
        return Err(format!("{} runs are listed, not {RUNS}", listed.len()).into());
    }
    Ok(at_most(format!("history of {RUNS} runs: list"), LIST_MS, "ms", took.as_secs_f64() * 1e3))
}
