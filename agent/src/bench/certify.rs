//! The check of the client before a run (method §2.2): the same code that measures, against the built-in simulator's own
//! stamps on this machine, at as many streams as the plan's largest cell.

use std::time::Duration;

use speedmatrix_shared::{
    event::{LogLevel, RunEvent},
    id::{Phase, RunId},
    plan::{CheckClient, Questions, Sampling, draft::parse_target},
    stats::summary::Summary,
    trace::{RequestTrace, StampSource},
    trust::ClientCheck,
    units::{Context, Nanos},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Bench, Halt, client_watch, supply::Recipe};
use crate::{
    client::{Ask, Connection, KeepText, Outcome, SlotCounters, Target},
    clock::Clock,
    prompt::{
        request::{CHAT_PATH, Dialect, Requests},
        text::{Library, Purpose},
    },
    sim::{Sim, SimConfig, SimLog, SimThread, monotonic_now_ns},
};

/// The preset with exact times: 50 ms to the first token, 10 ms per token.
const PRESET: &str = "exact";
/// Streams at most: beyond them the simulator, not the client, is what is short of time on a small machine.
const MOST_STREAMS: u32 = 256;
/// Output tokens of each stream: one second.
const OUTPUT_TOKENS: u32 = 100;
/// Characters of the prompt: reading it is not what is checked.
const PROMPT_CHARS: usize = 500;
/// Longest silence of the simulator.
const IDLE_LIMIT: Nanos = Nanos::from_secs(10);

impl Bench {
    /// Checks the client and tells what was found. A check that can't be made is a line of the log.
    pub(super) async fn certify(&mut self) -> Result<(), Halt> {
        if self.plan.check_client() == CheckClient::Skip {
            return Ok(());
        }
        let decode = self.plan.cells().into_iter().filter(|cell| cell.phase == Phase::Decode);
        let Some(streams) = decode.map(|cell| cell.concurrency.get()).max() else { return Ok(()) };
        // Starting it waits for its thread: not on the measuring runtime.
        let started = self.serving.spawn_blocking(start).await.map_err(std::io::Error::other).flatten();
        let checked = match started {
            Ok(sim) => check(&sim, streams.min(MOST_STREAMS)).await,
            Err(error) => Err(error.to_string()),
        };
        match checked {
            Ok(check) => {
                self.ttft_bias_s = Some(check.ttft_bias_s);
                self.teller.tell(RunEvent::Certified { check }).await
            }
            Err(reason) => {
                let text = format!("the client could not be checked against the built-in simulator: {reason}");
                self.teller.log(LogLevel::Warning, text).await
            }
        }
    }
}

fn start() -> std::io::Result<SimThread> {
    let config = SimConfig::preset(PRESET).map_err(std::io::Error::other)?;
    Sim::start_on_thread(config, ([127, 0, 0, 1], 0).into())
}

async fn check(sim: &SimThread, streams: u32) -> Result<ClientCheck, String> {
    let clock = Clock::start();
    // The two clocks are read side by side: what lies between is below a microsecond.
    let zero_ns = monotonic_now_ns();
    let url = parse_target(&sim.base_url())?;
    let target = Target { url, key: None };
    let recipe = recipe();
    let mut running = JoinSet::new();
    let before = client_watch::processor_time();
    for slot in 0..streams {
        let mut connection = Connection::new(&target, clock).map_err(|error| error.to_string())?;
        let mark = recipe.mark(Purpose::Calibration, u64::from(slot));
        let ask = Ask {
            slot,
            scheduled: clock.now(),
            path: CHAT_PATH,
            body: recipe.body(&recipe.document(mark), mark, 0),
            keep_text: KeepText::No,
            idle_limit: IDLE_LIMIT,
        };
        running.spawn(async move {
            let (counters, cut) = (SlotCounters::default(), CancellationToken::new());
            connection.open().await.map_err(|failure| failure.text)?;
            Ok::<Outcome, String>(connection.stream(ask, &counters, &cut).await)
        });
    }
    let mut outcomes = Vec::new();
    while let Some(outcome) = running.join_next().await {
        outcomes.push(outcome.map_err(|error| error.to_string())??);
    }
    let used = before.zip(client_watch::processor_time()).map(|(before, after)| after.saturating_sub(before));
    summed_up(&outcomes, &sim.log(), zero_ns, used).ok_or_else(|| "no stream came to its end".to_owned())
}

fn recipe() -> Recipe {
    let run: RunId = "client-check".parse().expect("small letters and a dash are a run's id");
    Recipe {
        library: Library::new(0, run).into(),
        requests: Requests::new(PRESET, Sampling::default(), Dialect::default()).into(),
        context: Context::new(1).expect("1 is a context"),
        chars: PROMPT_CHARS,
        max_output_tokens: OUTPUT_TOKENS,
        questions: Questions::Varied,
    }
}

/// What the streams say beside the simulator's log; its clock showed `zero_ns` when the traces' began.
fn summed_up(outcomes: &[Outcome], log: &SimLog, zero_ns: u64, used: Option<Duration>) -> Option<ClientCheck> {
    let traces = || outcomes.iter().map(|outcome| &outcome.trace);
    let (mut errors, mut gaps) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        let (trace, record) = (&outcome.trace, log.record(&outcome.request_id)?);
        let (first, last) = (trace.first_arrival()?, trace.last_arrival()?);
        let (sim_first, sim_last) = (record.first_token?.monotonic_ns, record.last_token?.monotonic_ns);
        errors.push((first.0 as f64 - sim_first.saturating_sub(zero_ns) as f64) / 1e9);
        let steps = trace.text_events().saturating_sub(1).max(1) as f64;
        gaps.push((last.since(first).0 as f64 - (sim_last - sim_first) as f64) / 1e9 / steps);
    }
    let bias = Summary::of(errors.iter().copied())?;
    let sizes = Summary::of(errors.iter().map(|error| error.abs()))?;
    let events: u64 = traces().map(RequestTrace::text_events).sum();
    let secs = traces().filter_map(|trace| Some(trace.last_arrival()?.since(trace.send_started?).as_secs_f64()));
    let by_process = traces().any(|trace| trace.stamps == StampSource::Process);
    Some(ClientCheck {
        streams: u32::try_from(outcomes.len()).ok()?,
        events_per_s: events as f64 / secs.max_by(f64::total_cmp).filter(|secs| *secs > 0.0)?,
        ttft_bias_s: bias.p50,
        ttft_error_p99_s: sizes.p99.unwrap_or(sizes.max),
        gap_sigma_s: sigma(&gaps),
        cpu_per_event_s: used.map(|used| used.as_secs_f64() / events as f64),
        stamps: if by_process { StampSource::Process } else { StampSource::Kernel },
    })
}

/// Standard deviation; `None` below two values.
fn sigma(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}
