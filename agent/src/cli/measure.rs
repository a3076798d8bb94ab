//! `run`: one run in this terminal, into the same store that an agent may be serving.

use std::{fs, path::Path};

use speedmatrix_shared::{
    api::ServerMessage,
    event::RunOutcome,
    feasible::{self, Feasible, Group},
    id::RunId,
    plan::{PlanDraft, RunPlan},
    state::{RunState, RunStatus},
};

use super::{
    CliError, Exit, Interrupts, ab,
    args::{PlanArgs, RunArgs},
    args_of_runs::ResumeArgs,
    target::key_from,
};
use crate::{
    hub::Subscription,
    runs::Runs,
    store::{Access, Store},
    terminal::{LiveTable, Terminal},
};

pub(super) async fn run(mut args: RunArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let mut file = plan_file(&mut args.plan)?;
    file.target = args.target.take().unwrap_or(file.target);
    let draft = args.plan.over(file);
    // Before the store is made: a plan that can't run leaves nothing behind.
    drop(RunPlan::try_from(draft.clone())?);
    let key = key_from("--api-key-env", args.plan.api_key_env.as_deref())?;
    let store = Store::open(&args.store.path()?, Access::Measure).await?;
    let runs = Runs::new(store.clone());
    let id = runs.start(draft, key).await?;
    let state = runs.state(&id).await?;
    if !args.json {
        for line in expected(&state) {
            terminal.hint(&line);
        }
    }
    let subscription = runs.subscribe(&id).await?;
    let printer = if args.json { Printer::Json { store, next_seq: 0 } } else { Printer::Table(Box::default()) };
    let shown = show(&runs, &id, subscription, printer, terminal).await;
    if shown.is_err() {
        // Nobody reads the output any more, so nobody waits for the run.
        runs.shutdown().await;
    }
    shown
}

/// `resume`: goes on with a run that ended too early.
pub(super) async fn resume(args: ResumeArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let named = |id: &str| id.parse::<RunId>().map_err(|e| CliError::Usage(format!("{e}")));
    let id = named(&args.run)?;
    let key = key_from("--api-key-env", args.api_key_env.as_deref())?;
    let other = args.other.as_deref().map(named).transpose()?;
    let other_key = key_from("--api-key-env-b", args.api_key_env_b.as_deref())?;
    let runs = Runs::new(Store::open(&args.store.path()?, Access::Measure).await?);
    if let Some(other) = other {
        return ab::resume(&runs, [(id, key), (other, other_key)], terminal).await;
    }
    runs.resume(&id, key).await?;
    let subscription = runs.subscribe(&id).await?;
    let shown = show(&runs, &id, subscription, Printer::Table(Box::default()), terminal).await;
    if shown.is_err() {
        runs.shutdown().await;
    }
    shown
}

/// Cells that will queue or can't run, by the limits that the server told.
fn expected(state: &RunState) -> Vec<String> {
    let limits = state.facts.as_ref().map(|facts| facts.limits).unwrap_or_default();
    let groups = feasible::groups(&state.plan, limits);
    let told =
        groups.iter().filter(|group| matches!(group.feasible, Feasible::WillQueue { .. } | Feasible::CantRun { .. }));
    told.map(Group::line).collect()
}

/// The plan in the file that was named; without one nothing is asked yet.
pub(super) fn plan_file(args: &mut PlanArgs) -> Result<PlanDraft, CliError> {
    args.file.take().map_or_else(|| Ok(PlanDraft::default()), |path| read_plan(&path))
}

fn read_plan(path: &Path) -> Result<PlanDraft, CliError> {
    let wrong = |error: &dyn ToString| CliError::Usage(format!("--plan {}: {}", path.display(), error.to_string()));
    let text = fs::read_to_string(path).map_err(|e| wrong(&e))?;
    serde_json::from_str(&text).map_err(|e| wrong(&e))
}

/// What is printed while the run goes on.
enum Printer {
    Table(Box<LiveTable>),
    /// Every event, from the store: a snapshot has no events in it.
    Json {
        store: Store,
        next_seq: u64,
    },
}

impl Printer {
    async fn print(&mut self, run: &RunId, message: ServerMessage, terminal: &mut Terminal) -> Result<(), CliError> {
        match self {
            Self::Table(table) => table.take(message, terminal)?,
            Self::Json { store, next_seq } => {
                if matches!(message, ServerMessage::Snapshot { .. } | ServerMessage::Event { .. }) {
                    for envelope in store.events_from(run, *next_seq).await? {
                        terminal.data(&serde_json::to_string(&envelope).map_err(std::io::Error::from)?)?;
                        *next_seq = envelope.seq + 1;
                    }
                }
            }
        }
        Ok(())
    }
}

async fn show(
    runs: &Runs,
    id: &RunId,
    mut subscription: Subscription,
    mut printer: Printer,
    terminal: &mut Terminal,
) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::listen()?;
    let mut stopping = false;
    loop {
        let message = tokio::select! {
            message = subscription.next() => message,
            () = interrupts.next() => {
                if stopping {
                    return Ok(Exit::Cancelled);
                }
                stopping = true;
                terminal.hint("stopping: what was measured is kept; Ctrl-C again leaves at once");
                // An error means that it is over, which the next message says too.
                drop(runs.stop(id).await);
                continue;
            }
        };
        printer.print(id, message, terminal).await?;
        if subscription.is_over() {
            break;
        }
    }
    runs.ended(id).await;
    let state = runs.state(id).await?;
    if matches!(printer, Printer::Table(_)) {
        terminal.hint(&format!("stored as {id}: `speedmatrix export {id} --format md` writes it as a file"));
    }
    Ok(verdict(&state))
}

/// How a run that is over came out.
pub(super) fn verdict(state: &RunState) -> Exit {
    let failed = state.cells.iter().filter_map(|cell| cell.result()).any(|result| result.status.is_failed());
    match &state.status {
        RunStatus::Ended { outcome: RunOutcome::Finished } if !failed => Exit::Done,
        RunStatus::Ended { outcome: RunOutcome::Finished | RunOutcome::Failed { .. } } => Exit::SomeFailed,
        RunStatus::Ended { outcome: RunOutcome::Cancelled | RunOutcome::Interrupted } | RunStatus::Running => {
            Exit::Cancelled
        }
    }
}
