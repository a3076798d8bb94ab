//! What somebody should know before measuring this server, in sentences. Pure.

use std::collections::BTreeMap;

use speedmatrix_shared::{
    format,
    target::{FactName, Sureness},
};

use crate::{
    client::prometheus::{EngineGauges, ScrapeError},
    engine::known::{Answers, Claim, EngineKind, Evidence, Said, Switched},
};

/// Facts of which different numbers at different places are told.
const LIMITS: [FactName; 3] = [FactName::MaxModelLen, FactName::MaxSequences, FactName::KvTokens];

/// All of them; `silence` says why there are no gauges.
pub(super) fn warnings(answers: &Answers, silence: Option<&ScrapeError>) -> Vec<String> {
    let recognised = answers.recognised();
    let kind = recognised.first().map_or(EngineKind::Generic, |evidence| evidence.kind);
    let gauges = answers.gauges.as_ref().map(|(_, gauges)| gauges);
    let mut all: Vec<String> = silence.map(|error| no_gauges(error, kind)).into_iter().collect();
    all.extend(several_engines(&recognised));
    all.extend(gauges.and_then(other_traffic));
    all.extend(gauges.and_then(several_replicas));
    all.extend(contradictions(&answers.claims(kind), gauges));
    all.extend(prefix_cache(answers, kind));
    all.extend(speculation(answers, kind));
    all.extend(kind.engine().beware.map(ToOwned::to_owned));
    all
}

fn no_gauges(error: &ScrapeError, kind: EngineKind) -> String {
    let has_none = kind != EngineKind::Generic && kind.engine().prefix.is_none();
    if has_none {
        format!("{} tells nothing about its queue and cache: they stay unknown", kind.name())
    } else {
        error.to_string()
    }
}

fn several_engines(recognised: &[Evidence]) -> Option<String> {
    let sure: Vec<&Evidence> = recognised.iter().filter(|evidence| evidence.sureness == Sureness::Certain).collect();
    let [first, second, ..] = sure.as_slice() else { return None };
    let shown = |evidence: &Evidence| format!("{} ({})", evidence.kind.name(), evidence.endpoint);
    Some(format!(
        "both {} and {} answer at this address: something stands before them or between them, and requests may not all \
         reach the same engine; give the address of one of them",
        shown(first),
        shown(second)
    ))
}

fn other_traffic(gauges: &EngineGauges) -> Option<String> {
    let (running, waiting) = (gauges.running.unwrap_or(0.0), gauges.waiting.unwrap_or(0.0));
    (running + waiting > 0.0).then(|| {
        let (running, waiting) = (format::whole(Some(running)), format::whole(Some(waiting)));
        format!(
            "the server works on {running} requests and {waiting} wait: somebody else uses it, and cells are measured only \
             once it is idle"
        )
    })
}

fn several_replicas(gauges: &EngineGauges) -> Option<String> {
    (gauges.replicas > 1).then(|| {
        format!(
            "{} replicas answer together: counts are sums over all of them, and the kv cache use is that of the fullest",
            gauges.replicas
        )
    })
}

/// Numbers of one limit that differ from place to place, and which one is used.
fn contradictions(claims: &[Claim], gauges: Option<&EngineGauges>) -> Vec<String> {
    let several = gauges.is_some_and(|gauges| gauges.replicas > 1);
    let about = |fact: FactName| {
        // A page of all replicas and a page of one don't contradict each other.
        if several && fact != FactName::MaxModelLen {
            return None;
        }
        let mut said: BTreeMap<u64, &str> = BTreeMap::new();
        for claim in claims.iter().filter(|claim| claim.fact == fact && claim.sureness == Sureness::Certain) {
            if let Said::Number(number) = claim.said {
                said.entry(number).or_insert(claim.endpoint);
            }
        }
        if said.len() < 2 {
            return None;
        }
        let each: Vec<String> =
            said.iter().map(|(number, endpoint)| format!("{} ({endpoint})", format::count(Some(*number)))).collect();
        let used = if fact == FactName::MaxModelLen { "the smallest is used" } else { "the first place's is used" };
        Some(format!(
            "the server contradicts itself about \"{}\": {}; {used}, check which is right",
            fact.label().to_lowercase(),
            each.join(", ")
        ))
    };
    LIMITS.into_iter().filter_map(about).collect()
}

fn prefix_cache(answers: &Answers, kind: EngineKind) -> Option<String> {
    match answers.is_on(kind, Switched::PrefixCache) {
        Some(true) => None,
        Some(false) => Some(
            "the engine's prefix cache is off: every prompt is computed again, so that decode cells begin with the prefill of \
             all their prompts; turn it on, or measure with cold prompts"
                .to_owned(),
        ),
        None if kind.engine().caches_prefixes => None,
        None => Some(
            "whether the engine caches the prefixes of prompts is not told: each decode cell checks it by its second request"
                .to_owned(),
        ),
    }
}

fn speculation(answers: &Answers, kind: EngineKind) -> Option<String> {
    let on = answers.is_on(kind, Switched::Speculation) == Some(true);
    on.then(|| {
        let measured = answers.gauges.is_some_and(|(_, gauges)| gauges.draft_tokens.or(gauges.accept_length).is_some());
        let how = if measured {
            "how many tokens a step makes is measured beside it"
        } else {
            "the engine does not count them"
        };
        format!("speculative decoding is on: the speed depends on how well the text can be guessed; {how}")
    })
}
