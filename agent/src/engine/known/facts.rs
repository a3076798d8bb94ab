//! From what a server answered to whose it is and what it says about itself, each with the place where it stands. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use speedmatrix_shared::target::{FactName, Sureness};

use super::{Ask, EngineKind, On, Place, Sign, Switched, generic, simulator};
use crate::engine::gauges::{EngineGauges, KvTokens};

/// Path of the model list.
pub const MODELS_PATH: &str = "/v1/models";
/// How a model's name goes on where its tag is left out.
const DEFAULT_TAG: &str = ":latest";

/// What a server answered.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// The measured model's row of the model list.
    pub entry: Value,
    /// The `Server` header of the model list.
    pub server: Option<String>,
    /// Names of all its headers, lower case.
    pub headers: BTreeSet<String>,
    /// Documents by their path; of lists of models only the row of the measured one.
    pub documents: BTreeMap<&'static str, Value>,
    /// What its metrics page tells, and that page's path.
    pub gauges: Option<(&'static str, EngineGauges)>,
}

/// Why a server is taken for an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// The engine.
    pub kind: EngineKind,
    /// What gave it away.
    pub endpoint: &'static str,
    /// How surely.
    pub sureness: Sureness,
}

/// Something that a server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// About what.
    pub fact: FactName,
    /// What.
    pub said: Said,
    /// Where.
    pub endpoint: &'static str,
    /// How surely it is what it seems to be.
    pub sureness: Sureness,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A positive number.
    Number(u64),
    /// Some text.
    Text(String),
}

/// What of a document counts for `model`: all of it, or the row of a list.
pub fn row(document: &Value, ask: Ask, model: Option<&str>) -> Option<Value> {
    let Some((list, name)) = ask.rows else { return Some(document.clone()) };
    let rows = document.pointer(list)?.as_array()?;
    let is_it = |row: &&Value| {
        let called = row.pointer(name).and_then(Value::as_str);
        model.is_some_and(|model| {
            called.is_some_and(|called| called == model || called.strip_suffix(DEFAULT_TAG) == Some(model))
        })
    };
    rows.iter().find(is_it).cloned()
}

impl Answers {
    fn at(&self, path: &str, pointer: &str) -> Option<&Value> {
        let document = if path == MODELS_PATH { Some(&self.entry) } else { self.documents.get(path) };
        document?.pointer(pointer).filter(|value| !value.is_null())
    }

    /// Every engine that it may be, the surest first; never empty.
    pub fn recognised(&self) -> Vec<Evidence> {
        let mut found: Vec<Evidence> = EngineKind::ALL.into_iter().filter_map(|kind| self.evidence(kind)).collect();
        // Stable: of equally sure ones the order of the table decides.
        found.sort_by_key(|evidence| std::cmp::Reverse(evidence.sureness));
        if found.is_empty() {
            found.push(Evidence { kind: EngineKind::Generic, endpoint: MODELS_PATH, sureness: Sureness::Guess });
        }
        found
    }

    /// The best evidence for one engine. Two that are likely, from two places, are sure together.
    fn evidence(&self, kind: EngineKind) -> Option<Evidence> {
        let from_gauges = self.gauges.filter(|(_, gauges)| gauges.engine == kind || gauges.beside == Some(kind));
        let from_gauges = from_gauges.map(|(path, _)| (path, Sureness::Certain));
        let shown = kind.engine().signs.iter().filter_map(|(sign, sureness)| Some((self.shows(*sign)?, *sureness)));
        let all: Vec<(&'static str, Sureness)> = from_gauges.into_iter().chain(shown).collect();
        let (endpoint, best) = all.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        let places: BTreeSet<&str> = all.iter().map(|(endpoint, _)| *endpoint).collect();
        let sureness = if places.len() > 1 && best == Sureness::Likely { Sureness::Certain } else { best };
        Some(Evidence { kind, endpoint, sureness })
    }

    /// Where a sign shows, if it does.
    fn shows(&self, sign: Sign) -> Option<&'static str> {
        let (shows, endpoint) = match sign {
            Sign::Owner(owner) => {
                (self.at(MODELS_PATH, "/owned_by").and_then(Value::as_str) == Some(owner), MODELS_PATH)
            }
            Sign::Server(begins) => {
                (self.server.as_deref().is_some_and(|server| server.starts_with(begins)), MODELS_PATH)
            }
            Sign::Header(name) => (self.headers.contains(name), MODELS_PATH),
            Sign::Has(path, pointer) => (self.at(path, pointer).is_some(), path),
        };
        shows.then_some(endpoint)
    }

    /// All that is said about facts, the best places first.
    pub fn claims(&self, kind: EngineKind) -> Vec<Claim> {
        let gauges = self.gauges.iter().flat_map(|(path, gauges)| told_by(path, gauges));
        let places = simulator::PLACES.iter().chain(kind.engine().places);
        let own: Vec<Claim> = gauges.chain(places.filter_map(|place| self.claim(place))).collect();
        let known: BTreeSet<FactName> = own.iter().map(|claim| claim.fact).collect();
        let others = generic::ENGINE.places.iter().filter(|place| !known.contains(&place.fact));
        let others: Vec<Claim> = others.filter_map(|place| self.claim(place)).collect();
        own.into_iter().chain(others).collect()
    }

    fn claim(&self, place: &Place) -> Option<Claim> {
        let value = self.at(place.path, place.pointer)?;
        let said = if place.fact.is_number() {
            // 0 and negative numbers mean "unknown" where engines say them.
            Said::Number(value.as_u64().filter(|number| *number > 0)?)
        } else {
            // A router of llama.cpp writes "none" where it has no model itself.
            Said::Text(value.as_str().filter(|text| !text.is_empty() && *text != "none")?.to_owned())
        };
        Some(Claim { fact: place.fact, said, endpoint: place.path, sureness: place.sureness })
    }

    /// Whether something is on, as far as the engine says.
    pub fn is_on(&self, kind: EngineKind, what: Switched) -> Option<bool> {
        let gauges = self.gauges.map(|(_, gauges)| gauges);
        let from_gauges = match what {
            Switched::PrefixCache => gauges.and_then(|gauges| gauges.prefix_cache),
            Switched::Speculation => {
                let has_counters =
                    |gauges: &EngineGauges| kind.engine().drafts_mean_speculation && gauges.drafts.is_some();
                gauges.filter(|gauges| gauges.speculates() || has_counters(gauges)).map(|_| true)
            }
        };
        let mut switches = kind.engine().switches.iter().filter(|switch| switch.what == what);
        from_gauges.or_else(|| {
            switches.find_map(|switch| {
                let value = self.at(switch.path, switch.pointer)?;
                match switch.on {
                    On::False => value.as_bool().map(|value| !value),
                    On::AllBut(off) => value.as_str().map(|text| !text.is_empty() && text != off),
                }
            })
        })
    }
}

/// The limits on a metrics page.
fn told_by(path: &'static str, gauges: &EngineGauges) -> Vec<Claim> {
    let whole = |number: f64| (number >= 1.0).then_some(Said::Number(number as u64));
    let kv = gauges.kv_tokens.and_then(|tokens| {
        let sureness = match tokens {
            KvTokens::Told(_) => Sureness::Certain,
            KvTokens::FromBlocks(_) => Sureness::Guess,
        };
        Some(Claim { fact: FactName::KvTokens, said: whole(tokens.tokens())?, endpoint: path, sureness })
    });
    let sequences = gauges.max_sequences.and_then(|count| {
        Some(Claim { fact: FactName::MaxSequences, said: whole(count)?, endpoint: path, sureness: Sureness::Certain })
    });
    kv.into_iter().chain(sequences).collect()
}
