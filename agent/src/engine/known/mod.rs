//! What is known about each engine before it is asked: by what it is recognised, where it tells its limits, and under
//! which names its gauges and counters are. One engine, one file, one constant; `facts` reads them.

mod facts;
mod generic;
mod litellm;
mod llama_cpp;
mod lm_studio;
mod ollama;
mod sglang;
mod simulator;
mod tgi;
mod trtllm;
mod vllm;

pub use speedmatrix_shared::raw::Counting;
use speedmatrix_shared::target::{FactName, Sureness};

pub use self::{
    facts::{Answers, Claim, Evidence, MODELS_PATH, Said, row},
    simulator::SIMULATOR_PATH,
};

/// Engines that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EngineKind {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// The llama.cpp server.
    LlamaCpp,
    /// Ollama.
    Ollama,
    /// Hugging Face's text-generation-inference.
    Tgi,
    /// TensorRT-LLM's `trtllm-serve`.
    TrtLlm,
    /// LM Studio.
    LmStudio,
    /// LiteLLM's proxy: no engine itself.
    LiteLlm,
    /// Anything else that speaks the protocol.
    Generic,
}

impl EngineKind {
    /// What is known about it.
    pub const fn engine(self) -> &'static Engine {
        match self {
            Self::Vllm => &vllm::ENGINE,
            Self::Sglang => &sglang::ENGINE,
            Self::LlamaCpp => &llama_cpp::ENGINE,
            Self::Ollama => &ollama::ENGINE,
            Self::Tgi => &tgi::ENGINE,
            Self::TrtLlm => &trtllm::ENGINE,
            Self::LmStudio => &lm_studio::ENGINE,
            Self::LiteLlm => &litellm::ENGINE,
            Self::Generic => &generic::ENGINE,
        }
    }

    /// The engine's name as facts carry it.
    pub const fn name(self) -> &'static str {
        self.engine().name
    }

    /// The engine of this name; [`EngineKind::Generic`] if none is called so.
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(Self::Generic)
    }

    /// All, those that can be recognised for sure first.
    pub const ALL: [Self; 9] = [
        Self::Vllm,
        Self::Sglang,
        Self::LlamaCpp,
        Self::Tgi,
        Self::TrtLlm,
        Self::Ollama,
        Self::LmStudio,
        Self::LiteLlm,
        Self::Generic,
    ];
}

/// What is known about an engine.
#[derive(Debug)]
pub struct Engine {
    /// Its name as facts carry it.
    pub name: &'static str,
    /// What it is asked for beside its model list. Only reads: nothing here may load a model or change a state.
    pub asks: &'static [Ask],
    /// By what it is recognised, and how surely.
    pub signs: &'static [(Sign, Sureness)],
    /// Where it tells its facts, the best place first.
    pub places: &'static [Place],
    /// Where it tells what it has switched on.
    pub switches: &'static [Switch],
    /// What stands before all its names on a metrics page, without the separator.
    pub prefix: Option<&'static str>,
    /// Its gauges and counters: exact names without prefix and without `_total`, newer ones before older ones.
    pub series: &'static [(&'static str, Meaning)],
    /// Whether it has counters of drafts only where it speculates, so that they tell it before the first draft.
    pub drafts_mean_speculation: bool,
    /// When its token counters move.
    pub counting: Counting,
    /// Whether it caches prompts' prefixes unless told otherwise.
    pub caches_prefixes: bool,
    /// How its tokenizer is asked.
    pub tokenizer: Tokenizer,
    /// Where it is told to end a request by its `rid`; `None`: a closed connection tells it.
    pub abort: Option<&'static str>,
    /// What everybody who measures it should know, as a sentence.
    pub beware: Option<&'static str>,
}

/// An engine of which nothing is known; each file names the rest.
const NOTHING: Engine = Engine {
    name: "",
    asks: &[],
    signs: &[],
    places: &[],
    switches: &[],
    prefix: None,
    series: &[],
    drafts_mean_speculation: false,
    counting: Counting::EachStep,
    caches_prefixes: false,
    tokenizer: Tokenizer::None,
    abort: None,
    beware: None,
};

/// A document to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Its path below the target's address.
    pub path: &'static str,
    /// If it lists models: where the list is, and where in a row its name; then only the row of the measured model counts.
    pub rows: Option<(&'static str, &'static str)>,
}

/// A document that is one whole.
const fn whole(path: &'static str) -> Ask {
    Ask { path, rows: None }
}

/// By what an engine is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The model list says that it owns the model.
    Owner(&'static str),
    /// The `Server` header begins like this.
    Server(&'static str),
    /// The model list comes with this header.
    Header(&'static str),
    /// The document at a path has something at a JSON pointer.
    Has(&'static str, &'static str),
}

/// Where a fact is told: path of a document ([`MODELS_PATH`]: the model's row of the list) and JSON pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    fact: FactName,
    path: &'static str,
    pointer: &'static str,
    sureness: Sureness,
}

/// A place where the engine tells the fact itself.
const fn told(fact: FactName, path: &'static str, pointer: &'static str) -> Place {
    Place { fact, path, pointer, sureness: Sureness::Certain }
}

/// A place that tells something near the fact.
const fn near(fact: FactName, path: &'static str, pointer: &'static str) -> Place {
    Place { fact, path, pointer, sureness: Sureness::Guess }
}

/// Where an engine tells whether something is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    what: Switched,
    path: &'static str,
    pointer: &'static str,
    on: On,
}

/// What may be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switched {
    /// Prefixes of prompts are cached.
    PrefixCache,
    /// Tokens are drafted and verified.
    Speculation,
}

/// At which value it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    /// `false`: it says what is off.
    False,
    /// Any text but this one and none.
    AllBut(&'static str),
}

/// What a series means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    /// Requests being worked on.
    Running,
    /// Requests that wait.
    Waiting,
    /// Used share of the KV cache.
    KvUsage,
    /// Tokens that the KV cache holds.
    KvTokens,
    /// vLLM's way to tell the capacity: in labels.
    CacheConfig,
    /// Blocks of the KV cache.
    KvBlocks,
    /// Tokens in one block.
    KvBlockTokens,
    /// Most requests decoding at once.
    MaxSequences,
    /// Output tokens, a counter.
    GenerationTokens,
    /// Prompt tokens, a counter.
    PromptTokens,
    /// Requests thrown out and started again, a counter.
    Preemptions,
    /// Prompt tokens looked up in the prefix cache, a counter.
    PrefixQueries,
    /// Of these, found, a counter.
    PrefixHits,
    /// Drafts that were verified, a counter.
    Drafts,
    /// Tokens in them, a counter.
    DraftTokens,
    /// Of these, accepted, a counter.
    AcceptedTokens,
    /// Tokens per step of late.
    AcceptLength,
    /// Output tokens per second of late.
    GenThroughput,
}

/// How an engine's tokenizer is asked for the length of a chat prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokenizer {
    /// It has none that is known; vLLM's way is tried, as others took it over.
    None,
    /// `/tokenize` takes model and messages and answers with `count`.
    Messages,
    /// `/apply-template` makes a text of the messages, `/tokenize` takes it as `content` and answers with `tokens`.
    TemplateFirst,
}

/// Prefixes that Ray puts in front of an engine's names.
const OUTER_PREFIXES: [&str; 3] = ["ray_serve_", "ray_", ""];
/// What OpenMetrics puts behind a counter's name.
const COUNTER_SUFFIX: &str = "_total";

/// Whose a series is, what it means, and how old its name is (0: the newest).
pub fn meaning(name: &str) -> Option<(EngineKind, Meaning, usize)> {
    let (kind, bare) = OUTER_PREFIXES.iter().find_map(|outer| {
        let rest = name.strip_prefix(outer)?;
        EngineKind::ALL.into_iter().find_map(|kind| {
            // Some collectors turn the colon into an underscore.
            rest.strip_prefix(kind.engine().prefix?)?.strip_prefix([':', '_']).map(|bare| (kind, bare))
        })
    })?;
    let without = bare.strip_suffix(COUNTER_SUFFIX);
    let series = kind.engine().series.iter().enumerate();
    let mut found =
        series.filter(|(_, (known, meaning))| *known == bare || (meaning.is_counter() && without == Some(*known)));
    found.next().map(|(rank, (_, meaning))| (kind, *meaning, rank))
}

impl Meaning {
    const fn is_counter(self) -> bool {
        matches!(
            self,
            Self::GenerationTokens
                | Self::PromptTokens
                | Self::Preemptions
                | Self::PrefixQueries
                | Self::PrefixHits
                | Self::Drafts
                | Self::DraftTokens
                | Self::AcceptedTokens
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact() {
        let check = |name: &str, wanted: Option<(EngineKind, Meaning)>| {
            assert_eq!(meaning(name).map(|(kind, meaning, _)| (kind, meaning)), wanted, "{name}");
        };
        check("vllm:num_requests_waiting", Some((EngineKind::Vllm, Meaning::Waiting)));
        check("ray_serve_vllm_num_requests_waiting", Some((EngineKind::Vllm, Meaning::Waiting)));
        check("vllm:generation_tokens_total", Some((EngineKind::Vllm, Meaning::GenerationTokens)));
        check("vllm:generation_tokens", Some((EngineKind::Vllm, Meaning::GenerationTokens)));
        check("vllm:num_requests_waiting_total", None);
        check("vllm:num_requests_waiting_by_reason", None);
        check("vllm:prefix_cache_queries_created", None);
        check("vllm:spec_decode_num_accepted_tokens_per_pos_total", None);
        check("myvllm:num_requests_running", None);
        check("trtllm_num_requests_running", Some((EngineKind::TrtLlm, Meaning::Running)));
        check("tgi_request_generated_tokens_sum", Some((EngineKind::Tgi, Meaning::GenerationTokens)));
        check("tgi_request_generated_tokens_count", None);
    }

    #[test]
    fn engines_are_found_by_their_names() {
        for kind in EngineKind::ALL {
            assert_eq!(EngineKind::named(kind.name()), kind);
        }
        assert_eq!(EngineKind::named("something new"), EngineKind::Generic);
    }
}
