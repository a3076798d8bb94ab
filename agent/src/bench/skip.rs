//! Which planned cells are not measured, and why. Pure.

use std::collections::BTreeMap;

use speedmatrix_shared::{
    event::SkipReason,
    feasible::Feasible,
    id::{CellId, Phase},
    plan::RunPlan,
    target::Limits,
    units::Context,
};

/// Contexts that the server refused as too long, with its words.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// The shortest one by phase.
    shortest: BTreeMap<Phase, (Context, String)>,
}

impl Refused {
    /// `cell` was refused.
    pub(super) fn note(&mut self, cell: CellId, said: String) {
        let shortest = self.shortest.entry(cell.phase).or_insert_with(|| (cell.context, said.clone()));
        if cell.context < shortest.0 {
            *shortest = (cell.context, said);
        }
    }

    fn about(&self, cell: CellId) -> Option<&(Context, String)> {
        // A decode request asks for more output than a prefill one: what refuses the latter refuses the former.
        let phases: &[Phase] = match cell.phase {
            Phase::Prefill => &[Phase::Prefill],
            Phase::Decode => &[Phase::Prefill, Phase::Decode],
        };
        phases.iter().filter_map(|phase| self.shortest.get(phase)).find(|(context, _)| *context <= cell.context)
    }
}

/// Why `cell` is not measured, with the numbers; `None`: it is.
pub(super) fn skip(cell: CellId, plan: &RunPlan, limits: Limits, refused: &Refused) -> Option<(SkipReason, String)> {
    if let Feasible::CantRun { reason, why } = Feasible::of(cell, plan, limits) {
        return Some((reason, why));
    }
    let (context, said) = refused.about(cell)?;
    Some((SkipReason::ContextRefused, format!("the server already refused {context} as too long ({said})")))
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::plan::PlanDraft;

    use super::*;

    fn plan() -> RunPlan {
        let draft = PlanDraft {
            target: "127.0.0.1:1".into(),
            contexts: "8K,16K,32K".into(),
            concurrency: "1".into(),
            max_output: "2048".into(),
            ..PlanDraft::default()
        };
        draft.try_into().unwrap()
    }

    fn check(cell: &str, limits: Limits, refused: &Refused) -> Option<String> {
        skip(cell.parse().unwrap(), &plan(), limits, refused)
            .map(|(reason, text)| format!("{}: {text}", reason.label()))
    }

    #[test]
    fn limits_are_named_with_their_numbers() {
        let limits = Limits { max_model_len: Some(16_384), max_sequences: Some(1), kv_tokens: Some(12_288) };
        let none = Refused::default();
        assert_eq!(check("decode-8K-1", limits, &none), None);
        assert_eq!(check("prefill-8K-1", limits, &none), None);
        insta::assert_snapshot!(check("decode-16K-1", limits, &none).unwrap(), @"longer than the model's context: a prompt of 16K and an answer of 2K tokens are more than the 16K tokens that the model takes");
        insta::assert_snapshot!(check("prefill-16K-1", Limits { max_model_len: None, ..limits }, &none).unwrap(), @"does not fit the KV cache: a prompt of 16K and one token of answer are more than the 12K tokens of the kv cache");
        assert_eq!(check("decode-32K-1", Limits::default(), &none), None, "unknown limits skip nothing");
    }

    #[test]
    fn a_refusal_skips_longer_contexts() {
        let mut refused = Refused::default();
        refused.note("decode-16K-4".parse().unwrap(), "maximum is 16384".into());
        let check = |cell: &str| check(cell, Limits::default(), &refused).is_some();
        assert!(!check("decode-8K-4"));
        assert!(check("decode-16K-8"));
        assert!(check("decode-32K-1"));
        assert!(!check("prefill-32K-1"), "a prefill request asks for one token only");
        let mut refused = Refused::default();
        refused.note("prefill-16K-1".parse().unwrap(), "too long".into());
        let text = super::skip("decode-32K-1".parse().unwrap(), &plan(), Limits::default(), &refused).unwrap().1;
        insta::assert_snapshot!(text, @"the server already refused 16K as too long (too long)");
    }
}
