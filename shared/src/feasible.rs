//! Whether a server with known limits can do what a cell asks for, before anything is sent (method §8). Pure; what is not
//! known is never guessed.

use crate::{
    event::SkipReason,
    format,
    id::{CellId, Phase},
    plan::{Load, PromptMode, RunPlan},
    target::Limits,
    units::{Context, size_label},
};

/// What may be expected of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Feasible {
    /// All limits are known and leave room for it.
    Fits,
    /// No known limit stands against it, but not all are known.
    Unknown {
        /// What the server does not tell.
        why: String,
    },
    /// It can be measured, but not all of its requests run at once: some wait in the engine's queue.
    WillQueue {
        /// The limit with its numbers.
        why: String,
    },
    /// Not even one of its requests can be answered.
    CantRun {
        /// Which limit.
        reason: SkipReason,
        /// That limit with its numbers.
        why: String,
    },
}

impl Feasible {
    /// Plain words.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Unknown { .. } => "unknown",
            Self::WillQueue { .. } => "will queue",
            Self::CantRun { .. } => "can't run",
        }
    }

    /// The reason in words and numbers; `None` for a cell that fits.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Fits => None,
            Self::Unknown { why } | Self::WillQueue { why } | Self::CantRun { why, .. } => Some(why),
        }
    }

    /// Of `cell` of this plan on a server with these limits.
    pub fn of(cell: CellId, plan: &RunPlan, limits: Limits) -> Self {
        let need = Need::of(cell, plan);
        if let Some(refusal) = need.refusal(limits) {
            return refusal;
        }
        if let Some(why) = need.queue(limits) {
            return Self::WillQueue { why };
        }
        let unknown = [
            ("its longest context", limits.max_model_len.is_none()),
            ("how many tokens its kv cache holds", limits.kv_tokens.is_none()),
            // One request always decodes.
            ("how many requests it decodes at once", limits.max_sequences.is_none() && need.at_once > 1),
        ];
        let unknown: Vec<&str> = unknown.into_iter().filter(|(_, is)| *is).map(|(what, _)| what).collect();
        match unknown.as_slice() {
            [] => Self::Fits,
            [one] => Self::Unknown { why: format!("the server does not tell {one}") },
            [most @ .., last] => {
                Self::Unknown { why: format!("the server does not tell {} and {last}", most.join(", ")) }
            }
        }
    }
}

/// What the requests of a cell take.
#[derive(Debug, Clone, Copy)]
struct Need {
    phase: Phase,
    context: Context,
    /// Tokens of one answer.
    answer: u64,
    /// Requests that are there at once; an open loop sends by a clock, so that only one is sure.
    at_once: u64,
    /// The share (0–1) of each prompt that all requests have in common.
    shared: f64,
    /// The cold prompt that arrives beside them in a mixed cell.
    beside: Option<Context>,
}

impl Need {
    fn of(cell: CellId, plan: &RunPlan) -> Self {
        let (answer, at_once) = match (cell.phase, plan.load()) {
            (Phase::Prefill, _) => (1, 1),
            (Phase::Decode, Load::Open(_)) => (u64::from(plan.max_output_tokens()), 1),
            (Phase::Decode, Load::Sustained | Load::Burst { .. } | Load::Mixed { .. }) => {
                (u64::from(plan.max_output_tokens()), u64::from(cell.concurrency.get()))
            }
        };
        let shared = match plan.prompts() {
            PromptMode::Shared => 1.0,
            PromptMode::Mixed(percent) => percent.share(),
            PromptMode::Unique | PromptMode::Cold => 0.0,
        };
        let (context, beside) = match (cell.phase, plan.load()) {
            (Phase::Decode, Load::Mixed { background }) => (background, Some(cell.context)),
            _ => (cell.context, None),
        };
        Self { phase: cell.phase, context, answer, at_once, shared, beside }
    }

    /// Tokens that all requests have in common, and tokens of one alone.
    fn parts(self) -> (u64, u64) {
        let context = self.context.tokens();
        let common = (context as f64 * self.shared).round() as u64;
        (common, context - common + self.answer)
    }

    /// Tokens of KV cache that so many requests take.
    fn kv_tokens(self, requests: u64) -> u64 {
        let (common, each) = self.parts();
        self.beside_tokens().saturating_add(common).saturating_add(requests.saturating_mul(each))
    }

    /// How many requests find room in so many tokens.
    fn fitting(self, kv_tokens: u64) -> u64 {
        let (common, each) = self.parts();
        kv_tokens.saturating_sub(common + self.beside_tokens()) / each.max(1)
    }

    /// Tokens of the cold prompt and its one token of answer.
    fn beside_tokens(self) -> u64 {
        self.beside.map_or(0, |context| context.tokens() + 1)
    }

    fn words(self) -> String {
        let one_token = |context: Context| format!("a prompt of {context} and one token of answer");
        match (self.phase, self.beside) {
            (Phase::Prefill, _) => one_token(self.context),
            (Phase::Decode, Some(beside)) if beside > self.context => one_token(beside),
            (Phase::Decode, _) => {
                format!("a prompt of {} and an answer of {} tokens", self.context, size_label(self.answer))
            }
        }
    }

    /// Whether even one request is too long.
    fn refusal(self, limits: Limits) -> Option<Feasible> {
        let one = self.context.tokens().saturating_add(self.answer).max(self.beside_tokens());
        let over = |limit: Option<u64>| limit.filter(|limit| one > *limit).map(size_label);
        if let Some(limit) = over(limits.max_model_len) {
            let why = format!("{} are more than the {limit} tokens that the model takes", self.words());
            return Some(Feasible::CantRun { reason: SkipReason::ModelLength, why });
        }
        let limit = over(limits.kv_tokens)?;
        let why = format!("{} are more than the {limit} tokens of the kv cache", self.words());
        Some(Feasible::CantRun { reason: SkipReason::KvCapacity, why })
    }

    /// Why not all of them run at once; the narrower limit counts.
    fn queue(self, limits: Limits) -> Option<String> {
        let by_sequences = limits.max_sequences.map(u64::from).filter(|most| self.at_once > *most);
        let by_kv = limits.kv_tokens.filter(|kv| self.kv_tokens(self.at_once) > *kv);
        let fitting = by_kv.map(|kv| self.fitting(kv).max(1));
        match (by_sequences, by_kv, fitting) {
            (sequences, Some(kv), Some(fitting)) if sequences.is_none_or(|most| fitting < most) => {
                let [need, kv, fitting] = [self.kv_tokens(self.at_once), kv, fitting].map(|n| format::count(Some(n)));
                Some(format!(
                    "{} requests at once need {need} tokens of kv cache and it holds {kv}: about {fitting} run, the others wait",
                    self.at_once
                ))
            }
            (Some(most), ..) => Some(format!(
                "{} requests at once are more than the {most} that the engine decodes at once: the others wait",
                self.at_once
            )),
            _ => None,
        }
    }
}

/// Cells of one phase and context of which the same may be expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Prefill or decode.
    pub phase: Phase,
    /// Their context.
    pub context: Context,
    /// Them, by concurrency.
    pub cells: Vec<CellId>,
    /// What may be expected; the numbers are those of the first.
    pub feasible: Feasible,
}

impl Group {
    /// `decode 16K × 8, 16: will queue: 8 requests at once …`, as a line for people.
    pub fn line(&self) -> String {
        let cells = match self.phase {
            Phase::Prefill => format!("prefill {}", self.context),
            Phase::Decode => {
                let levels: Vec<String> = self.cells.iter().map(|cell| cell.concurrency.to_string()).collect();
                format!("decode {} × {}", self.context, levels.join(", "))
            }
        };
        let why = self.feasible.why().map_or_else(String::new, |why| format!(": {why}"));
        format!("{cells}: {}{why}", self.feasible.label())
    }
}

/// All cells of a plan, by phase, context and what may be expected of them.
pub fn groups(plan: &RunPlan, limits: Limits) -> Vec<Group> {
    let mut cells = plan.cells();
    cells.sort_by_key(|cell| (cell.phase, cell.context, cell.concurrency));
    let mut groups: Vec<Group> = Vec::new();
    for cell in cells {
        let feasible = Feasible::of(cell, plan, limits);
        match groups.last_mut() {
            Some(group)
                if (group.phase, group.context, group.feasible.label())
                    == (cell.phase, cell.context, feasible.label()) =>
            {
                group.cells.push(cell);
            }
            _ => groups.push(Group { phase: cell.phase, context: cell.context, cells: vec![cell], feasible }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{plan::PlanDraft, units::Concurrency};

    fn plan(prompts: &str, concurrency: &str, max_output: u32) -> RunPlan {
        let draft = PlanDraft {
            target: "127.0.0.1:1".into(),
            contexts: "8K,16K,64K".into(),
            concurrency: concurrency.into(),
            max_output: max_output.to_string(),
            prompts: prompts.into(),
            ..PlanDraft::default()
        };
        draft.try_into().unwrap()
    }

    fn lines(prompts: &str, limits: Limits) -> String {
        let groups = groups(&plan(prompts, "1,4,16,64", 2_048), limits);
        let told = groups.iter().filter(|group| group.feasible != Feasible::Fits);
        told.map(Group::line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_will_queue_is_told_with_its_numbers() {
        let limits = Limits { max_model_len: Some(40_960), max_sequences: Some(48), kv_tokens: Some(100_000) };
        insta::assert_snapshot!(lines("shared", limits), @r#"
        prefill 64K: can't run: a prompt of 64K and one token of answer are more than the 40K tokens that the model takes
        decode 8K × 64: will queue: 64 requests at once need 139,264 tokens of kv cache and it holds 100,000: about 44 run, the others wait
        decode 16K × 64: will queue: 64 requests at once need 147,456 tokens of kv cache and it holds 100,000: about 40 run, the others wait
        decode 64K × 1, 4, 16, 64: can't run: a prompt of 64K and an answer of 2K tokens are more than the 40K tokens that the model takes
        "#);
        insta::assert_snapshot!(lines("unique", limits), @r#"
        prefill 64K: can't run: a prompt of 64K and one token of answer are more than the 40K tokens that the model takes
        decode 8K × 16, 64: will queue: 16 requests at once need 163,840 tokens of kv cache and it holds 100,000: about 9 run, the others wait
        decode 16K × 16, 64: will queue: 16 requests at once need 294,912 tokens of kv cache and it holds 100,000: about 5 run, the others wait
        decode 64K × 1, 4, 16, 64: can't run: a prompt of 64K and an answer of 2K tokens are more than the 40K tokens that the model takes
        "#);
        insta::assert_snapshot!(lines("mixed:50%", Limits { max_sequences: None, ..limits }), @r#"
        prefill 64K: can't run: a prompt of 64K and one token of answer are more than the 40K tokens that the model takes
        decode 8K × 4: unknown: the server does not tell how many requests it decodes at once
        decode 8K × 16, 64: will queue: 16 requests at once need 102,400 tokens of kv cache and it holds 100,000: about 15 run, the others wait
        decode 16K × 4: unknown: the server does not tell how many requests it decodes at once
        decode 16K × 16, 64: will queue: 16 requests at once need 172,032 tokens of kv cache and it holds 100,000: about 8 run, the others wait
        decode 64K × 1, 4, 16, 64: can't run: a prompt of 64K and an answer of 2K tokens are more than the 40K tokens that the model takes
        "#);
        let one = Limits { kv_tokens: Some(60_000), ..Limits::default() };
        insta::assert_snapshot!(lines("cold", one), @r#"
        prefill 8K: unknown: the server does not tell its longest context
        prefill 16K: unknown: the server does not tell its longest context
        prefill 64K: can't run: a prompt of 64K and one token of answer are more than the 60000 tokens of the kv cache
        decode 8K × 1, 4: unknown: the server does not tell its longest context
        decode 8K × 16, 64: will queue: 16 requests at once need 163,840 tokens of kv cache and it holds 60,000: about 5 run, the others wait
        decode 16K × 1: unknown: the server does not tell its longest context
        decode 16K × 4, 16, 64: will queue: 4 requests at once need 73,728 tokens of kv cache and it holds 60,000: about 3 run, the others wait
        decode 64K × 1, 4, 16, 64: can't run: a prompt of 64K and an answer of 2K tokens are more than the 60000 tokens of the kv cache
        "#);
    }

    #[test]
    fn an_open_loop_is_not_known_to_queue() {
        let draft = PlanDraft { load: "open:poisson".into(), ..PlanDraft::from(plan("unique", "600", 2_048)) };
        let limits = Limits { max_model_len: Some(200_000), max_sequences: Some(4), kv_tokens: Some(70_000) };
        let plan: RunPlan = draft.try_into().unwrap();
        assert!(plan.cells().into_iter().all(|cell| Feasible::of(cell, &plan, limits) == Feasible::Fits));
    }

    fn any_limits() -> impl Strategy<Value = Limits> {
        let limit = || prop::option::of(1..200_000_u64);
        (limit(), prop::option::of(1..100_u32), limit()).prop_map(|(max_model_len, max_sequences, kv_tokens)| Limits {
            max_model_len,
            max_sequences,
            kv_tokens,
        })
    }

    fn severity(feasible: &Feasible) -> u8 {
        match feasible {
            Feasible::Fits | Feasible::Unknown { .. } => 0,
            Feasible::WillQueue { .. } => 1,
            Feasible::CantRun { .. } => 2,
        }
    }

    fn need(prompts: &str, concurrency: u32, answer: u32) -> Need {
        let context = Context::new(16_384).unwrap();
        let cell = CellId { phase: Phase::Decode, context, concurrency: Concurrency::new(concurrency).unwrap() };
        Need::of(cell, &plan(prompts, "1", answer))
    }

    proptest! {
        #[test]
        fn more_load_never_fits_better(limits in any_limits(), mode in 0..4_usize, answer in 1..9_000_u32) {
            let mode = ["shared", "mixed:40%", "unique", "cold"][mode];
            let plan = plan(mode, "1,2,3,8,100,1000", answer);
            for context in plan.contexts() {
                let mut cells: Vec<CellId> = plan.cells().into_iter().filter(|cell| cell.context == *context).collect();
                cells.sort_by_key(|cell| cell.concurrency);
                let of_phase = cells.iter().filter(|cell| cell.phase == Phase::Decode);
                let grades: Vec<u8> = of_phase.map(|cell| severity(&Feasible::of(*cell, &plan, limits))).collect();
                prop_assert!(grades.is_sorted(), "{grades:?}");
                let one = context.tokens() + u64::from(answer);
                let refused = limits.max_model_len.is_some_and(|most| one > most) || limits.kv_tokens.is_some_and(|most| one > most);
                prop_assert!(grades.iter().all(|grade| (*grade == 2) == refused));
            }
        }

        #[test]
        fn sharing_saves_room(requests in 1..200_u32, answer in 1..9_000_u32, percent in 1..100_u32) {
            let of = |mode: &str| need(mode, requests, answer).kv_tokens(u64::from(requests));
            let mixed = of(&format!("mixed:{percent}%"));
            prop_assert!(of("shared") <= mixed && mixed <= of("unique"));
            prop_assert_eq!(of("unique"), of("cold"));
        }

        #[test]
        fn as_many_fit_as_have_room(kv in 0..10_000_000_u64, answer in 1..9_000_u32, percent in 1..100_u32) {
            let need = need(&format!("mixed:{percent}%"), 1, answer);
            let fitting = need.fitting(kv);
            prop_assert!(fitting == 0 || need.kv_tokens(fitting) <= kv);
            prop_assert!(need.kv_tokens(fitting + 1) > kv);
        }

        #[test]
        fn unknown_limits_stand_against_nothing(answer in 1..9_000_u32) {
            let plan = plan("unique", "1,1000", answer);
            let unknown = |cell| matches!(Feasible::of(cell, &plan, Limits::default()), Feasible::Unknown { .. });
            let all = plan.cells().into_iter().all(unknown);
            prop_assert!(all);
        }
    }
}
