//! One run: the thread that measures, and the task that tells what it says.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::available_parallelism,
    time::Duration,
};

use speedmatrix_shared::{
    event::{LogLevel, Origin, RunEvent, RunOutcome},
    id::RunId,
    plan::RunPlan,
    raw::{RawCell, codec},
    target::TargetFacts,
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot, watch},
};
use tokio_util::sync::CancellationToken;

use super::{Active, Looked, Reserved, Runs, Slot, StartError, unix_ms};
use crate::{
    bench::{self, Fact, Job, Outlets, Patience, client_watch::THREAD_NAME, turns::Seat},
    client::Target,
    clock::Clock,
    hub::{TellError, Teller},
    prompt::corpus::Corpus,
    store::RawKept,
};

/// Folder of people's own texts, beside the store's file.
const CORPORA: &str = "corpora";
/// Facts that the measuring side may be ahead of the store. While the store takes nothing, a cell starts only where half of
/// these places are free: memory holds some ten cells with their raw arrivals, and then the run waits.
const WAITING_FACTS: usize = 64;
/// Threads of the measuring runtime at most: 1,024 streams need no more.
const MAX_WORKERS: usize = 8;
/// How long the measuring runtime may take to let go of its sockets.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// A run whose beginning is stored.
pub(super) struct Begun {
    pub(super) teller: Teller,
    pub(super) job: Job,
}

/// Begins a run whose target answered. It still has to be launched.
pub(super) async fn begin(
    runs: &Arc<Runs>,
    _place: &Reserved,
    plan: RunPlan,
    target: Target,
    Looked { facts, gpus, model }: Looked,
) -> Result<Begun, StartError> {
    let corpus = corpus(runs, &plan).await?;
    let clock = clock(&facts);
    let run: RunId = uuid::Uuid::now_v7().to_string().parse().expect("a UUID is lower-case letters, digits and dashes");
    let started = RunEvent::RunStarted {
        plan: plan.clone(),
        started_unix_ms: unix_ms(),
        tool: concat!("speedmatrix ", env!("CARGO_PKG_VERSION")).into(),
    };
    if !matches!(*runs.slot(), Slot::Starting) {
        return Err(StartError::Stopping);
    }
    let mut teller = Teller::begin(runs.store.clone(), run.clone(), started, clock).await?;
    teller.tell(teller.now(), RunEvent::Probed { facts: Box::new(facts.clone()), origin: origin(&facts) }).await?;
    let (patience, serving) = (Patience::default(), Handle::current());
    let (settled, seat) = (Vec::new(), Seat::alone());
    let job = Job { plan, settled, run, target, facts, model, clock, corpus, patience, serving, gpus, seat };
    Ok(Begun { teller, job })
}

/// Measures on a thread of its own, and tells what it says.
pub(super) fn launch(runs: &Arc<Runs>, Begun { teller, job }: Begun) {
    let (facts_in, facts_out) = mpsc::channel(WAITING_FACTS);
    let stop = CancellationToken::new();
    let (running, ended) = watch::channel(());
    let hub = Arc::clone(teller.hub());
    let steering = watch::Sender::default();
    let outlets = Outlets { facts: facts_in, gauge: hub.gauge(), stop: stop.clone(), steering: steering.subscribe() };
    let run = hub.id().clone();
    runs.slot().take(Active { hub, stop: stop.clone(), steering, ended });
    let outcome = on_own_thread(move || measure(job, outlets));
    let runs = Arc::clone(runs);
    tokio::spawn(async move {
        let hub = Arc::clone(teller.hub());
        tell_all(teller, facts_out, outcome, stop).await;
        runs.keep_if_lost(hub);
        runs.slot().leave(&run);
        drop(running);
    });
}

/// The text that the plan names, from the folder beside the store.
pub(super) async fn corpus(runs: &Runs, plan: &RunPlan) -> Result<Option<Corpus>, StartError> {
    let Some(name) = plan.corpus().cloned() else { return Ok(None) };
    let folder = runs.store.path().with_file_name(CORPORA);
    let read = tokio::task::spawn_blocking(move || Corpus::read(&folder, &name)).await;
    read.map_err(|_the_runtime_ends| StartError::Stopping)?.map(Some).map_err(StartError::Corpus)
}

/// Stores and tells every fact, and at last how the run ended. Where the store fails for a while, this waits; for good, the
/// run ends.
async fn tell_all(
    mut teller: Teller,
    mut facts: mpsc::Receiver<Fact>,
    outcome: oneshot::Receiver<RunOutcome>,
    stop: CancellationToken,
) {
    let hub = Arc::clone(teller.hub());
    let outcome = tokio::spawn(async move {
        let gone = |_| RunOutcome::Failed { reason: "the measuring thread ended without a word".into() };
        let outcome = outcome.await.unwrap_or_else(gone);
        hub.measured(outcome.clone());
        outcome
    });
    let mut untold: Option<TellError> = None;
    while let Some(fact) = facts.recv().await {
        if untold.is_none()
            && let Err(error) = tell(&mut teller, fact).await
        {
            tracing::error!("{error}");
            untold = Some(error);
        }
        // What can't be told or stored is nothing to measure on for.
        if untold.is_some() || teller.hub().lost().is_some() {
            stop.cancel();
        }
    }
    let outcome = match (untold, teller.hub().lost(), outcome.await) {
        (Some(error), ..) => RunOutcome::Failed { reason: error.to_string() },
        (None, Some(reason), _) => RunOutcome::Failed { reason: reason.into() },
        (None, None, Ok(outcome)) => outcome,
        (None, None, Err(panic)) => RunOutcome::Failed { reason: panic.to_string() },
    };
    let at = teller.now();
    if let Err(error) = teller.tell(at, RunEvent::RunFinished { outcome }).await {
        tracing::error!("the end of the run could not be stored: {error}");
    }
}

async fn tell(teller: &mut Teller, fact: Fact) -> Result<(), TellError> {
    let Fact { at, event, raw } = fact;
    let (RunEvent::CellFinished { cell, .. }, Some(raw)) = (&event, raw) else {
        return teller.tell(at, event).await;
    };
    let cell = *cell;
    let lost = match packed(raw).await {
        Ok(bytes) => match teller.tell_cell(at, event, bytes).await? {
            RawKept::Kept => return Ok(()),
            RawKept::Lost(error) => error.to_string(),
        },
        Err(reason) => {
            teller.tell(at, event).await?;
            reason
        }
    };
    let text = format!("the raw arrivals of {cell} were not kept, so it can't be analysed again later: {lost}");
    tracing::warn!("{text}");
    teller.tell(at, RunEvent::Log { level: LogLevel::Warning, text }).await
}

/// Packs a record. It takes a core for some hundredths of a second: the serving side's, away from tasks that answer.
async fn packed(raw: Box<RawCell>) -> Result<Vec<u8>, String> {
    let packing = tokio::task::spawn_blocking(move || codec::encode(*raw));
    packing.await.map_err(|panic| panic.to_string())?.map_err(|error| error.to_string())
}

/// Works on a thread of its own. A panic there is a failed run, not the agent's end.
fn on_own_thread(work: impl FnOnce() -> RunOutcome + Send + 'static) -> oneshot::Receiver<RunOutcome> {
    let (sender, outcome) = oneshot::channel();
    let guarded = move || {
        let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let words = words(panic.as_ref());
            RunOutcome::Failed { reason: format!("a fault in Speedmatrix ended the run ({words}): please report it") }
        });
        drop(sender.send(outcome));
    };
    // Without a thread the sender is dropped, which `tell_all` takes for a failed run.
    if let Err(error) = std::thread::Builder::new().name("measure".into()).spawn(guarded) {
        tracing::error!("no thread to measure on: {error}");
    }
    outcome
}

/// Measures on a runtime of its own, so that no browser can delay a stamp.
fn measure(job: Job, outlets: Outlets) -> RunOutcome {
    let workers = available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1)).clamp(1, MAX_WORKERS);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name(THREAD_NAME)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(bench::run(job, outlets));
            runtime.shutdown_timeout(CLOSE_LIMIT);
            outcome
        }
        Err(error) => {
            RunOutcome::Failed { reason: format!("no threads to measure on ({error}): close other programs") }
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// The clock of a run on this target, which starts now: against the simulator it runs at the simulator's factor.
pub(super) fn clock(facts: &TargetFacts) -> Clock {
    Clock::start().with_factor(facts.simulated.as_ref().map_or(1.0, |s| s.clock_factor))
}

/// Where a run's numbers come from.
fn origin(facts: &TargetFacts) -> Origin {
    match &facts.simulated {
        Some(simulated) => Origin::Simulated { clock_factor: simulated.clock_factor },
        None => Origin::Measured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fault_while_measuring_is_a_failed_run() {
        let check = async |work: fn() -> RunOutcome, wanted: &str| {
            assert_eq!(format!("{:?}", on_own_thread(work).await.unwrap()), wanted);
        };
        check(|| RunOutcome::Finished, "Finished").await;
        let said = "Failed { reason: \"a fault in Speedmatrix ended the run (broken): please report it\" }";
        check(|| panic!("broken"), said).await;
        check(|| panic!("bro{}", "ken"), said).await;
    }
}
