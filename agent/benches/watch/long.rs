//! A working day of measuring in minutes: twenty runs after each other, one agent, one store, one who watches.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use speedmatrix_agent::sim::Recording;
use speedmatrix_shared::{
    api::ServerMessage,
    event::RunEvent,
    id::RunId,
    plan::PlanDraft,
    state::{RunState, RunStatus},
};
use tokio_tungstenite::tungstenite::Message;

use super::{
    Outcome,
    agent::Agent,
    figure::{Figure, at_most},
    simulator, told, viewer,
};

/// A cell of some three simulated seconds takes a tenth of a second.
const CLOCK_FACTOR: f64 = 100.0;
/// Runs: a plan has at most 1,024 cells.
const RUNS: usize = 20;
/// Runs of the first tenth. With two of them the end of a run lies in it, which loads the whole run and is not seen before.
const FIRST: usize = RUNS / 10;
/// Requests at once, up to this.
const LEVELS: usize = 10;
/// Bound of the issue: memory is flat.
const GROWTH_PERCENT: f64 = 5.0;

/// What one run took.
#[derive(Default)]
struct Took {
    cells: usize,
    /// Most memory seen after any of its cells, bytes.
    memory: u64,
    /// Its length on its own clock.
    simulated: Duration,
}

/// Measures so many cells.
pub(crate) async fn run(cells: usize) -> Outcome<Vec<Figure>> {
    let sim = simulator(CLOCK_FACTOR, Recording::FirstAndLast).await?;
    let agent = Agent::start()?;
    let (begun, idle) = (Instant::now(), agent.memory());
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let run = agent.begin(plan(sim.base_url(), cells.div_ceil(RUNS * LEVELS))).await?;
        let took = watch(&agent, &run).await?;
        // Its whole state is asked for once more, which takes memory too.
        agent.ended(&run).await?;
        runs.push(Took { memory: took.memory.max(agent.memory()), ..took });
    }
    let measured: usize = runs.iter().map(|run| run.cells).sum();
    let hours = runs.iter().map(|run| run.simulated).sum::<Duration>().as_secs_f64() / 3_600.0;
    let most = |runs: &[Took]| runs.iter().map(|run| run.memory).max().unwrap_or(0);
    let (first, later) = runs.split_at(FIRST);
    let (first, later) = (most(first), most(later));
    let growth = 100.0 * (later as f64 / first as f64 - 1.0);
    let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let each: Vec<String> = runs.iter().map(|run| mb(run.memory)).collect();
    let name = format!("{measured} cells of {RUNS} runs, {hours:.1} simulated hours");
    Ok(vec![
        told(format!("{name}: took"), format!("{:.0} s", begun.elapsed().as_secs_f64())),
        told("the same: agent's memory before, MB".into(), mb(idle)),
        told("the same: most in each run, MB".into(), each.join(" ")),
        at_most("the same: memory grows after the first tenth".into(), GROWTH_PERCENT, "%", growth),
    ])
}

fn plan(target: String, contexts: usize) -> PlanDraft {
    let contexts: Vec<String> = (0..contexts.max(1)).map(|n| (1_000 + 100 * n).to_string()).collect();
    let levels: Vec<String> = (1..=LEVELS).map(|level| level.to_string()).collect();
    PlanDraft {
        target,
        contexts: contexts.join(","),
        concurrency: levels.join(","),
        prefill_contexts: "none".into(),
        duration: "1s".into(),
        max_output: "64".into(),
        client_check: "skip".into(),
        ..PlanDraft::default()
    }
}

/// Folds a run until it is over, and looks at the agent's memory after every cell.
async fn watch(agent: &Agent, run: &RunId) -> Outcome<Took> {
    let mut socket = viewer::open(&agent.live(run)).await?;
    let (mut took, mut state) = (Took::default(), None::<RunState>);
    while let Some(message) = socket.next().await {
        let Message::Text(text) = message? else { continue };
        let cell_done = match serde_json::from_str(&text)? {
            ServerMessage::Snapshot { state: now, .. } => {
                state = Some(*now);
                true
            }
            ServerMessage::Event { envelope } => {
                state.as_mut().ok_or("an event came before the snapshot")?.apply(&envelope)?;
                matches!(envelope.event, RunEvent::CellFinished { .. } | RunEvent::RunFinished { .. })
            }
            _ => false,
        };
        let Some(state) = state.as_ref().filter(|_| cell_done) else { continue };
        took.memory = took.memory.max(agent.memory());
        if state.status != RunStatus::Running {
            took.cells = state.cells.iter().filter(|cell| cell.result().is_some()).count();
            took.simulated = Duration::from_nanos(state.at.0);
            return Ok(took);
        }
    }
    Err("the agent closed the viewer's socket".into())
}
