//! Two hundred watch one run, and fifty of them read nothing.

use std::time::{Duration, Instant};

use speedmatrix_agent::sim::Recording;
use speedmatrix_shared::plan::PlanDraft;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    Outcome,
    agent::Agent,
    figure::{Figure, at_most},
    quantile, simulator, told,
    viewer::{self, Seen, Stamps},
};

/// Viewers that read, and that don't.
const READING: usize = 150;
/// See [`READING`].
const SILENT: usize = 50;
/// With windows of a second the run tells some twenty facts per second of real time.
const CLOCK_FACTOR: f64 = 10.0;
/// Bounds of the brief and of the issue it belongs to.
const DELAY_MS: f64 = 250.0;
const LEAST_HZ: f64 = 10.0;
/// What the agent may take beside its usual memory: 200 times two of the largest messages, a snapshot of some 150 KB each.
const MEMORY_MB: f64 = 64.0;

/// Lets them watch for so long.
pub(crate) async fn watch(seconds: u64) -> Outcome<Vec<Figure>> {
    let sim = simulator(CLOCK_FACTOR, Recording::FirstAndLast).await?;
    let agent = Agent::start()?;
    let run = agent.begin(plan(sim.base_url())).await?;
    let (begin, end, url) = (Instant::now(), CancellationToken::new(), agent.live(&run));
    // Alone, until the run does what it does all the time.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = agent.memory();
    let mut reading = JoinSet::new();
    let mut silent = JoinSet::new();
    for _ in 0..READING {
        reading.spawn(viewer::note(url.clone(), begin, end.clone()));
    }
    for _ in 0..SILENT {
        silent.spawn(viewer::ignore(url.clone(), end.clone()));
    }
    let half = Duration::from_millis(seconds * 500);
    tokio::time::sleep(half).await;
    let middle = agent.memory();
    tokio::time::sleep(half).await;
    let (last, most) = (agent.memory(), agent.most_memory());
    let let_go = agent.counted("speedmatrix_live_viewers_let_go_total").await?;
    let skipped = agent.counted("speedmatrix_live_events_skipped_total").await?;
    end.cancel();
    let mut seen = Vec::new();
    for viewer in reading.join_all().await {
        seen.push(viewer?);
    }
    silent.join_all().await.into_iter().collect::<Outcome<Vec<()>>>()?;
    agent.stop(&run).await?;
    let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let mut figures = delays(&seen, seconds)?;
    figures.extend([
        told("the same: agent's memory before them".into(), mb(before)),
        told("the same: after half of the time".into(), mb(middle)),
        told("the same: at the end".into(), mb(last)),
        at_most("the same: most memory, beside that before them".into(), MEMORY_MB, "MB", (most - before) as f64 / 1e6),
        told("the same: let go as they read nothing".into(), let_go.to_string()),
        told("the same: events told by a snapshot instead".into(), skipped.to_string()),
    ]);
    Ok(figures)
}

/// More than anybody waits for.
fn plan(target: String) -> PlanDraft {
    let contexts: Vec<String> = (10..50).map(|hundreds| format!("{hundreds}00")).collect();
    PlanDraft {
        target,
        contexts: contexts.join(","),
        concurrency: "1,2,3,4".into(),
        duration: "1s".into(),
        max_output: "64".into(),
        client_check: "skip".into(),
        repeats: "10".into(),
        ..PlanDraft::default()
    }
}

fn delays(seen: &[Seen], seconds: u64) -> Outcome<Vec<Figure>> {
    // Where the run's clock began, on this one: no message can come before it was sent, and the fastest comes at once.
    let began = |stamps: &Stamps| stamps.here as f64 - stamps.run as f64 / CLOCK_FACTOR;
    let clocks = seen.iter().flat_map(|seen| &seen.clocks);
    let origin = clocks.map(began).min_by(f64::total_cmp).ok_or("no viewer heard anything")?;
    let delays = |of: fn(&Seen) -> &Vec<Stamps>| -> Vec<f64> {
        seen.iter().flat_map(of).map(|stamps| (began(stamps) - origin) / 1e6).collect()
    };
    let (mut events, mut gauges) = (delays(|seen| &seen.events), delays(|seen| &seen.gauges));
    let rate = |of: fn(&Seen) -> &Vec<Stamps>| {
        seen.iter().map(|seen| of(seen).len()).min().unwrap_or(0) as f64 / seconds as f64
    };
    let name = format!("{READING} viewers and {SILENT} that don't read");
    let hz = rate(|seen| &seen.events);
    Ok(vec![
        Figure {
            name: format!("{name}: events to each"),
            asked: format!(">= {LEAST_HZ} Hz"),
            reached: format!("{hz:.1} Hz"),
            ok: hz >= LEAST_HZ,
        },
        at_most("the same: delay of an event, p99".into(), DELAY_MS, "ms", quantile(&mut events, 0.99)),
        told("the same: p50, most".into(), spread(&mut events)),
        told("the same: gauges to each".into(), format!("{:.1} Hz", rate(|seen| &seen.gauges))),
        at_most("the same: delay of a gauge, p99".into(), DELAY_MS, "ms", quantile(&mut gauges, 0.99)),
    ])
}

fn spread(delays: &mut [f64]) -> String {
    format!("{:.1}, {:.1} ms", quantile(delays, 0.5), quantile(delays, 1.0))
}
