//! The same run with nobody who watches and with twenty, in turns.

use std::time::{Duration, Instant};

use speedmatrix_agent::sim::Recording;
use speedmatrix_shared::plan::PlanDraft;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    Outcome,
    agent::Agent,
    figure::{Figure, at_most},
    quantile, simulator, told, viewer,
};

/// Bounds of the brief.
const SHIFT_MS: f64 = 0.2;
const CPU_PERCENT: f64 = 3.0;
/// Those who watch.
const VIEWERS: usize = 20;

/// What one run showed.
struct Shown {
    /// Gap per token as the agent measured it, p99, ms.
    gap_ms: f64,
    /// As the simulator made it.
    made_ms: f64,
    /// Processor time of the agent, in percent of one core.
    cpu_percent: f64,
}

/// So many runs of each kind.
pub(crate) async fn compare(rounds: usize) -> Outcome<Vec<Figure>> {
    let agent = Agent::start()?;
    let (mut alone, mut watched) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // What drifts meets both kinds alike.
        for viewers in if round % 2 == 0 { [0, VIEWERS] } else { [VIEWERS, 0] } {
            let shown = once(&agent, viewers).await?;
            if viewers == 0 { &mut alone } else { &mut watched }.push(shown);
        }
    }
    let median = |of: &[Shown], what: fn(&Shown) -> f64| quantile(&mut of.iter().map(what).collect::<Vec<_>>(), 0.5);
    let shift = |what: fn(&Shown) -> f64| {
        let pairs = watched.iter().zip(&alone).map(|(with, without)| what(with) - what(without));
        quantile(&mut pairs.collect::<Vec<_>>(), 0.5)
    };
    let name = format!("{VIEWERS} viewers against none, {rounds} runs each");
    let both = |what: fn(&Shown) -> f64| format!("{:.3}, {:.3}", median(&watched, what), median(&alone, what));
    Ok(vec![
        at_most(format!("{name}: token gap p99 shifts by"), SHIFT_MS, "ms", shift(|shown| shown.gap_ms).abs()),
        told("the same: token gap p99 with and without, ms".into(), both(|shown| shown.gap_ms)),
        told("the same: as the simulator made it, ms".into(), both(|shown| shown.made_ms)),
        at_most("the same: the agent's processor time".into(), CPU_PERCENT, "%", shift(|shown| shown.cpu_percent)),
        told("the same: with and without, % of a core".into(), both(|shown| shown.cpu_percent)),
    ])
}

async fn once(agent: &Agent, viewers: usize) -> Outcome<Shown> {
    let sim = simulator(1.0, Recording::EveryChunk).await?;
    let (cpu, begun) = (agent.cpu(), Instant::now());
    let run = agent.begin(plan(sim.base_url())).await?;
    let end = CancellationToken::new();
    let mut watching = JoinSet::new();
    for _ in 0..viewers {
        watching.spawn(viewer::read(agent.live(&run), end.clone()));
    }
    let state = agent.ended(&run).await?;
    let spent = agent.cpu().saturating_sub(cpu).as_secs_f64() / begun.elapsed().as_secs_f64();
    end.cancel();
    watching.join_all().await.into_iter().collect::<Outcome<Vec<()>>>()?;
    let result = state.cells.first().and_then(|cell| cell.result()).ok_or("the run has no result")?;
    let gap = result.stats.itl_s.as_ref().and_then(|gaps| gaps.p99).ok_or("the result has no gaps")?;
    let mut made = Vec::new();
    for record in sim.log().records() {
        let gaps = record.chunk_log.windows(2).map(|pair| pair[1].sent.monotonic_ns - pair[0].sent.monotonic_ns);
        made.extend(gaps.map(|gap| Duration::from_nanos(gap).as_secs_f64() * 1e3));
    }
    Ok(Shown { gap_ms: gap * 1e3, made_ms: quantile(&mut made, 0.99), cpu_percent: spent * 100.0 })
}

/// One cell, whose requests outlast its window.
fn plan(target: String) -> PlanDraft {
    PlanDraft {
        target,
        contexts: "1K".into(),
        concurrency: "16".into(),
        prefill_contexts: "none".into(),
        duration: "10s".into(),
        max_output: "4096".into(),
        client_check: "skip".into(),
        ..PlanDraft::default()
    }
}
