//! Two runs of one plan on two live servers, cell by cell in turns (method §6, interleaved A/B). They are two ordinary runs
//! with a tag in common.

use std::sync::Arc;

use speedmatrix_shared::{
    event::{RunEvent, RunOutcome},
    id::RunId,
    label::LabelPatch,
    plan::{PlanDraft, RunPlan, Side},
    state::RunState,
};

use super::{
    Runs, StartError,
    measure::{self, Begun},
    met, resume, to_its_end,
};
use crate::{bench::turns::Seat, secret::Secret};

/// Digits of a run's id that its pair is named by: the random end of a UUID.
const MARK_DIGITS: usize = 8;

/// One of the servers of a pair.
#[derive(Debug)]
pub struct Opponent {
    /// Its address; the plan's is not looked at.
    pub target: String,
    /// Model to ask for; empty: the first one the server offers.
    pub model: String,
    /// Its key.
    pub key: Option<Secret>,
}

impl Opponent {
    /// The plan for this server; a name is told apart from the other run's.
    fn plan(&self, plan: &PlanDraft, side: Side) -> Result<RunPlan, StartError> {
        let name = plan.name.trim();
        let name = if name.is_empty() { String::new() } else { format!("{name} ({})", side.label()) };
        let draft = PlanDraft { target: self.target.clone(), model: self.model.clone(), name, ..plan.clone() };
        Ok(RunPlan::try_from(draft)?)
    }
}

impl Runs {
    /// Checks the plan, looks at both servers and starts to measure them in turns; the ids of A and B. The runs go on by
    /// themselves, and each of them after the other one's end.
    pub async fn start_pair(
        self: &Arc<Self>,
        plan: &PlanDraft,
        [a, b]: [Opponent; 2],
    ) -> Result<[RunId; 2], StartError> {
        let plans = [a.plan(plan, Side::A)?, b.plan(plan, Side::B)?];
        let reserved = self.reserve()?;
        let [one, other] = plans;
        let (target, looked) = met(&one, a.key).await?;
        let (other_target, other_looked) = met(&other, b.key).await?;
        let runs = Arc::clone(self);
        to_its_end(async move {
            let a = measure::begin(&runs, &reserved, one, target, looked).await?;
            let b = measure::begin(&runs, &reserved, other, other_target, other_looked).await;
            let pair = seated(a, b)?;
            let ids = pair.each_ref().map(|begun| begun.job.run.clone());
            let told = tell_apart(&runs, &ids).await;
            for begun in pair {
                measure::launch(&runs, begun);
            }
            // Without tags they are still two runs.
            if let Err(error) = told {
                tracing::warn!("the two runs could not be tagged: {error}");
            }
            Ok(ids)
        })
        .await
    }

    /// Goes on with both runs of a pair that ended too early, in turns again, if both servers are still the same. A cell
    /// that one of them has and the other one lacks is measured on both sides once more: pairs stay pairs.
    pub async fn resume_pair(
        self: &Arc<Self>,
        [(a, key_a), (b, key_b)]: [(&RunId, Option<Secret>); 2],
    ) -> Result<(), StartError> {
        let reserved = self.reserve()?;
        let (one, other) = (resume::open(self, a).await?, resume::open(self, b).await?);
        if a == b || in_common(&one) != in_common(&other) {
            return Err(StartError::NotAPair([a.clone(), b.clone()]));
        }
        let (one, other) = (resume::same(one, key_a).await?, resume::same(other, key_b).await?);
        let runs = Arc::clone(self);
        to_its_end(async move {
            let a = resume::begin_again(&runs, &reserved, one).await?;
            let b = resume::begin_again(&runs, &reserved, other).await;
            for begun in seated(a, b)? {
                measure::launch(&runs, begun);
            }
            Ok(())
        })
        .await
    }
}

/// What the plans of a pair have in common: all but the server, its model and the run's name.
fn in_common(state: &RunState) -> PlanDraft {
    let none = String::new;
    PlanDraft { target: none(), model: none(), name: none(), ..PlanDraft::from(state.plan.clone()) }
}

/// Both take turns; the first one is given up where the second one can't begin.
fn seated(mut a: Begun, b: Result<Begun, StartError>) -> Result<[Begun; 2], StartError> {
    let mut b = match b {
        Ok(begun) => begun,
        Err(error) => return Err(given_up(a, error)),
    };
    [a.job.seat, b.job.seat] = Seat::pair();
    Ok([a, b])
}

/// Ends the run that has begun when the other one can't.
fn given_up(Begun { mut teller, .. }: Begun, error: StartError) -> StartError {
    let reason = format!("the other run of the pair did not begin: {error}");
    // A store that takes nothing is waited for; who asked is not kept.
    tokio::spawn(async move {
        let at = teller.now();
        if let Err(error) = teller.tell(at, RunEvent::RunFinished { outcome: RunOutcome::Failed { reason } }).await {
            tracing::error!("the end of the run could not be stored: {error}");
        }
    });
    error
}

/// Tags by which people find both runs, and know which is which.
async fn tell_apart(runs: &Runs, ids: &[RunId; 2]) -> Result<(), StartError> {
    let [a, _] = ids;
    let start = a.as_str().len().saturating_sub(MARK_DIGITS);
    let mark = format!("ab:{}", a.as_str().get(start..).unwrap_or(a.as_str()));
    for (run, side) in ids.iter().zip(Side::BOTH) {
        let tags = Some(vec![mark.clone(), side.label().to_owned()]);
        runs.relabel(run, LabelPatch { tags, ..LabelPatch::default() }).await?;
    }
    Ok(())
}
