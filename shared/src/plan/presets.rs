//! Ready-made matrices for the set-up form and the command line.

use super::PlanDraft;

/// A matrix by name. It sets what is measured and for how long, and leaves target, model, prompts and seed alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Stable name.
    pub key: &'static str,
    /// What people call it.
    pub label: &'static str,
    /// One sentence about it.
    pub about: &'static str,
    contexts: &'static str,
    concurrency: &'static str,
    prefill_contexts: &'static str,
    duration: &'static str,
}

const ALL_CONTEXTS: &str = "8K,16K,32K,64K,128K,256K,512K,1019K";

/// All presets, the shortest first.
pub static PRESETS: &[Preset] = &[
    Preset {
        key: "quick",
        label: "Quick look",
        about: "Two contexts at three levels: a first idea in a few minutes.",
        contexts: "8K,32K",
        concurrency: "1,4,16",
        prefill_contexts: "",
        duration: "15s",
    },
    Preset {
        key: "prefill",
        label: "Just prefill",
        about: "How fast prompts are read, from 8K to 1019K, each cold.",
        contexts: "",
        concurrency: "",
        prefill_contexts: ALL_CONTEXTS,
        duration: "30s",
    },
    Preset {
        key: "long",
        label: "Long context",
        about: "Few requests at once with very long prompts.",
        contexts: "128K,256K,512K,1019K",
        concurrency: "1,2,4,8",
        prefill_contexts: "",
        duration: "30s",
    },
    Preset {
        key: "crowd",
        label: "High concurrency",
        about: "Many requests at once with short prompts.",
        contexts: "8K,16K",
        concurrency: "32,64,128,256,512,1024",
        prefill_contexts: "",
        duration: "30s",
    },
    Preset {
        key: "standard",
        label: "Standard",
        about: "The reference page's matrix: 8 contexts at 8 levels, and prefill.",
        contexts: ALL_CONTEXTS,
        concurrency: "1,2,4,8,16,32,64,128",
        prefill_contexts: "",
        duration: "30s",
    },
];

/// The preset of that key.
pub fn by_key(key: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.key == key)
}

impl Preset {
    /// The draft with this matrix in it.
    pub fn apply(&self, draft: &PlanDraft) -> PlanDraft {
        PlanDraft {
            contexts: self.contexts.to_owned(),
            concurrency: self.concurrency.to_owned(),
            prefill_contexts: self.prefill_contexts.to_owned(),
            duration: self.duration.to_owned(),
            ..draft.clone()
        }
    }
}
