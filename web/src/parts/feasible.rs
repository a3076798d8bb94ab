//! How the set-up page shows what may be expected of a cell: glyph, class, and the words for it.

use speedmatrix_shared::{
    feasible::Feasible,
    id::{CellId, Phase},
    plan::RunPlan,
    target::Limits,
};

use crate::chart::cell::cell_words;

/// What may be expected of a cell. `limits` is `None` before anybody has looked at the server.
pub fn expected(plan: &RunPlan, cell: CellId, limits: Option<Limits>) -> Feasible {
    match (Feasible::of(cell, plan, limits.unwrap_or_default()), limits) {
        (Feasible::Unknown { .. }, None) => Feasible::Unknown { why: "nobody has looked at the server yet".to_owned() },
        (feasible, _) => feasible,
    }
}

/// The same; `None` for a cell that the plan does not measure.
pub fn judged(plan: &RunPlan, cell: CellId, limits: Option<Limits>) -> Option<Feasible> {
    let is_measured = match cell.phase {
        Phase::Prefill => plan.prefill_contexts().contains(&cell.context),
        Phase::Decode => !plan.leave_out().has(cell.context, cell.concurrency),
    };
    is_measured.then(|| expected(plan, cell, limits))
}

/// Its class in the grid.
pub const fn class(feasible: &Feasible) -> &'static str {
    match feasible {
        Feasible::Fits => "fits",
        Feasible::Unknown { .. } => "unknown",
        Feasible::WillQueue { .. } => "queue",
        Feasible::CantRun { .. } => "none",
    }
}

/// Its mark in the grid.
pub const fn mark(feasible: &Feasible) -> &'static str {
    match feasible {
        Feasible::Fits => "✓",
        Feasible::Unknown { .. } => "?",
        Feasible::WillQueue { .. } => "≋",
        Feasible::CantRun { .. } => "✕",
    }
}

/// What becomes of the cell in a run.
const fn fate(feasible: &Feasible) -> &'static str {
    match feasible {
        Feasible::Fits | Feasible::Unknown { .. } => "",
        Feasible::WillQueue { .. } => " It is measured all the same.",
        Feasible::CantRun { .. } => " It will be skipped.",
    }
}

/// Verdict and reason, to be read after the cell's name.
pub fn words(feasible: &Feasible) -> String {
    let why = feasible.why().map_or_else(String::new, |why| format!(": {why}"));
    let stop = if why.is_empty() { "" } else { "." };
    format!("{}{why}{stop}{}", feasible.label(), fate(feasible))
}

/// A cell's name, as a line begins with it.
pub fn name(cell: CellId) -> String {
    match cell.phase {
        Phase::Prefill => format!("Prefill of {}", cell.context),
        Phase::Decode => cell_words(cell),
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::plan::PlanDraft;

    use super::*;

    #[test]
    fn each_verdict_has_a_glyph_and_says_what_becomes_of_the_cell() {
        let draft = PlanDraft {
            target: "host".into(),
            contexts: "8K,64K,128K".into(),
            concurrency: "1,8".into(),
            ..PlanDraft::default()
        };
        let plan = RunPlan::try_from(draft).unwrap();
        let check = |cell: &str, limits, wanted: &str| {
            let feasible = expected(&plan, cell.parse().unwrap(), limits);
            assert_eq!(format!("{} {} {}", class(&feasible), mark(&feasible), words(&feasible)), wanted, "{cell}");
        };
        let limits = Some(Limits { max_model_len: Some(131_072), max_sequences: Some(4), kv_tokens: Some(60_000) });
        check("decode-8K-1", limits, "fits ✓ fits");
        check(
            "decode-8K-8",
            limits,
            "queue ≋ will queue: 8 requests at once are more than the 4 that the engine decodes at once: the others \
             wait. It is measured all the same.",
        );
        check(
            "decode-64K-1",
            limits,
            "none ✕ can't run: a prompt of 64K and an answer of 4K tokens are more than the 60000 tokens of the kv \
             cache. It will be skipped.",
        );
        check("decode-8K-1", None, "unknown ? unknown: nobody has looked at the server yet.");
        check(
            "prefill-8K-1",
            Some(Limits { kv_tokens: Some(60_000), ..Limits::default() }),
            "unknown ? unknown: the server does not tell its longest context.",
        );
    }
}
