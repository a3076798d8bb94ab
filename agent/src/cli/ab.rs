//! `ab`: two live servers measured in turns, and their comparison.

use std::sync::Arc;

use speedmatrix_shared::{
    compare::{
        Comparison,
        export::{self, ComparisonFormat},
    },
    format,
    id::RunId,
    plan::{PlanDraft, RunPlan, Side, draft::parse_target},
};

use super::{
    CliError, Exit, Interrupts,
    args_of_runs::AbArgs,
    compare::Source,
    measure::{plan_file, verdict},
    target::key_from,
};
use crate::{
    runs::{Opponent, Runs},
    secret::Secret,
    store::{Access, Store},
    terminal::{LivePair, Terminal},
};

/// How often each cell is measured on each side where the plan doesn't say: enough for an interval between repeats, and
/// for a difference of a few times the scatter.
const DEFAULT_REPEATS: &str = "5";

/// Whether the two sides are the same server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Two,
    Null,
}

pub(super) async fn ab(mut args: AbArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let kind = if args.null { Kind::Null } else { Kind::Two };
    let plan = plan(&mut args)?;
    let opponents = opponents(&args, &plan)?;
    // Before the store is made: a plan that can't run leaves nothing behind.
    drop(RunPlan::try_from(PlanDraft { target: args.a.clone(), ..plan.clone() })?);
    let store = Store::open(&args.store.clone().path()?, Access::Measure).await?;
    let runs = Runs::new(store);
    let ids = runs.start_pair(&plan, opponents).await?;
    let shown = show(&runs, &ids, terminal).await;
    if shown.is_err() {
        // Nobody reads the output any more, so nobody waits for the runs.
        runs.shutdown().await;
    }
    let mut exit = shown?;
    let [a, b] = &ids;
    let comparison = Source::new(args.store).compared(a.as_str(), b.as_str(), &args.measure).await?;
    let text = export::render(&comparison, ComparisonFormat::Markdown);
    terminal.data(text.trim_end_matches(['\r', '\n']))?;
    if kind == Kind::Null {
        let (passed, said) = null(&comparison);
        terminal.hint(&said);
        exit = if exit == Exit::Done { passed } else { exit };
    }
    for line in hints(&comparison, &args.page) {
        terminal.hint(&line);
    }
    if exit == Exit::Cancelled {
        terminal.hint(&go_on(&ids));
    }
    Ok(exit)
}

/// `resume A B`: both runs of a pair go on, in turns again.
pub(super) async fn resume(
    runs: &Arc<Runs>,
    [(a, key_a), (b, key_b)]: [(RunId, Option<Secret>); 2],
    terminal: &mut Terminal,
) -> Result<Exit, CliError> {
    runs.resume_pair([(&a, key_a), (&b, key_b)]).await?;
    let ids = [a, b];
    let shown = show(runs, &ids, terminal).await;
    if shown.is_err() {
        runs.shutdown().await;
    }
    let exit = shown?;
    let [a, b] = &ids;
    terminal.hint(&match exit {
        Exit::Cancelled => go_on(&ids),
        _ => format!("to compare both: `speedmatrix compare {a} {b}`"),
    });
    Ok(exit)
}

/// How a pair that was stopped goes on.
fn go_on([a, b]: &[RunId; 2]) -> String {
    format!("to go on with both, in turns again: `speedmatrix resume {a} {b}`")
}

/// The plan of both runs; it names no server.
fn plan(args: &mut AbArgs) -> Result<PlanDraft, CliError> {
    let file = plan_file(&mut args.plan)?;
    let mut plan = args.plan.over(PlanDraft { target: String::new(), ..file });
    if plan.repeats.trim().is_empty() {
        DEFAULT_REPEATS.clone_into(&mut plan.repeats);
    }
    Ok(plan)
}

fn opponents(args: &AbArgs, plan: &PlanDraft) -> Result<[Opponent; 2], CliError> {
    let checked = |name: &str, url: &str| match parse_target(url) {
        Ok(_) => Ok(url.to_owned()),
        Err(error) => Err(CliError::Usage(format!("{name}: {error}"))),
    };
    let key = || key_from("--api-key-env", args.plan.api_key_env.as_deref());
    let a = Opponent { target: checked("A", &args.a)?, model: plan.model.clone(), key: key()? };
    let b = match &args.b {
        Some(b) => Opponent {
            target: checked("B", b)?,
            model: args.model_b.clone().unwrap_or_else(|| plan.model.clone()),
            key: key_from("--api-key-env-b", args.api_key_env_b.as_deref())?,
        },
        None => Opponent { target: a.target.clone(), model: a.model.clone(), key: key()? },
    };
    Ok([a, b])
}

/// Says what both runs tell, to the end of both. Ctrl-C stops both.
async fn show(runs: &Arc<Runs>, ids: &[RunId; 2], terminal: &mut Terminal) -> Result<Exit, CliError> {
    let [a, b] = ids;
    let (mut one, mut other) = (runs.subscribe(a).await?, runs.subscribe(b).await?);
    let mut interrupts = Interrupts::listen()?;
    let mut live = LivePair::default();
    let mut stopping = false;
    while !(one.is_over() && other.is_over()) {
        let (side, message) = tokio::select! {
            message = one.next(), if !one.is_over() => (Side::A, message),
            message = other.next(), if !other.is_over() => (Side::B, message),
            () = interrupts.next() => {
                if stopping {
                    return Ok(Exit::Cancelled);
                }
                stopping = true;
                terminal.hint("stopping both: what was measured is kept; Ctrl-C again leaves at once");
                for id in ids {
                    // An error means that it is over, which the next message says too.
                    drop(runs.stop(id).await);
                }
                continue;
            }
        };
        live.take(side, message, terminal)?;
    }
    let mut exits = Vec::new();
    for id in ids {
        runs.ended(id).await;
        exits.push(verdict(&runs.state(id).await?));
    }
    // One that was stopped says more than one that failed.
    let worst = [Exit::Cancelled, Exit::SomeFailed].into_iter().find(|exit| exits.contains(exit));
    Ok(worst.unwrap_or(Exit::Done))
}

/// What a null test came to. Its two sides are one server, so a verdict is a false one.
fn null(comparison: &Comparison) -> (Exit, String) {
    let counts = comparison.counts;
    let (found, compared) = (counts.faster + counts.slower, counts.compared());
    let cells = |number: usize| if number == 1 { "1 cell".to_owned() } else { format!("{number} cells") };
    match (compared, found) {
        (0, _) => (Exit::SomeFailed, "null test: no cell could be compared, so it says nothing".into()),
        (_, 0) => (Exit::Done, format!("null test passed: no verdict of faster or slower in {}", cells(compared))),
        _ => {
            let said = format!(
                "warning: null test failed: {} of {compared} differ although both sides are the same server. This machine \
                 or the server is not steady enough: end what else runs on it, fix its clocks, or measure longer \
                 (--duration, --repeats)",
                cells(found)
            );
            (Exit::SomeFailed, said)
        }
    }
}

/// Where to look, and what to do where the data can't tell.
fn hints(comparison: &Comparison, page: &str) -> Vec<String> {
    let (a, b) = (&comparison.a.id, &comparison.b.id);
    let page = page.trim_end_matches('/');
    let mut hints = vec![format!("on the page, where an agent serves this store: {page}/compare?a={a}&b={b}")];
    if comparison.counts.inconclusive > 0 {
        let percent = format::plain(Some(comparison.margin * 100.0));
        hints.push(format!(
            "to see a change of {percent} %: `speedmatrix plan-repeats {a} {b} --see {percent}` says how many repeats it takes"
        ));
    }
    hints
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{compare::Ranked, sample};

    use super::*;

    #[test]
    fn a_null_test_with_a_verdict_fails() {
        let run = sample::reference();
        let mut comparison = Comparison::of(&run, &run, Ranked::total_speed(), 0.03);
        let mut check = |faster, slower, inconclusive, exit, wanted: &str| {
            let counts = &mut comparison.counts;
            (counts.faster, counts.slower, counts.inconclusive, counts.no_difference) =
                (faster, slower, inconclusive, 0);
            let (got, said) = null(&comparison);
            assert!(got == exit && said.starts_with(wanted), "{got:?}: {said}");
        };
        check(0, 0, 0, Exit::SomeFailed, "null test: no cell could be compared");
        check(0, 0, 1, Exit::Done, "null test passed: no verdict of faster or slower in 1 cell");
        check(
            0,
            1,
            1,
            Exit::SomeFailed,
            "warning: null test failed: 1 cell of 2 differ although both sides are the same server.",
        );
        check(2, 1, 0, Exit::SomeFailed, "warning: null test failed: 3 cells of 3 differ");
    }
}
