//! Misbehaviour on purpose: which requests the simulator treats badly, and how.

use std::str::FromStr;

use super::text::{Purpose, seeded, uniform};

/// One kind of misbehaviour. Kinds that change different things can be combined by several rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misbehaviour {
    /// `stall-after:K`: after K tokens nothing more comes; the connection stays open.
    Stall {
        /// Tokens sent before.
        after_tokens: u64,
    },
    /// `reset-after:K`: after K tokens the connection is reset.
    Reset {
        /// Tokens sent before.
        after_tokens: u64,
    },
    /// `close-after:K`: after K tokens the connection is closed in the middle of the body.
    Close {
        /// Tokens sent before.
        after_tokens: u64,
    },
    /// `error-after:K`: after K tokens an error object is sent as an event, then `[DONE]`.
    ErrorEvent {
        /// Tokens sent before.
        after_tokens: u64,
    },
    /// `no-done`: the body ends properly but without `data: [DONE]`.
    NoDone,
    /// `429:S`: status 429 with `Retry-After: S` (1 if left out).
    TooManyRequests {
        /// Seconds told to the client.
        retry_after_secs: u64,
    },
    /// `503`: status 503, as a server that loads its model.
    Unavailable,
    /// `html`: status 200 and a web page, as a captive proxy.
    Html,
    /// `slow-header:MS`: the response head comes MS real milliseconds late.
    SlowHeader {
        /// Real milliseconds.
        millis: u64,
    },
    /// `never-answer`: the request is read, and that is all.
    NeverAnswer,
    /// `comments`: a keep-alive comment before every event.
    Comments,
    /// `split`: every event is cut at a changing position and written in two pieces.
    Split,
    /// `glue:N`: N events go out in one write.
    Glue {
        /// Events per write.
        events: u64,
    },
    /// `early-role`: the role-only chunk is sent at once, long before the first token.
    EarlyRole,
    /// `zero-usage`: every usage says 0.
    ZeroUsage,
    /// `reasoning:K`: the first K tokens are `reasoning_content`.
    Reasoning {
        /// Tokens of reasoning.
        tokens: u64,
    },
    /// `tool-calls`: all tokens are arguments of a tool call.
    ToolCalls,
}

/// Which requests a rule is for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    Always,
    /// `nth:N`: requests N, 2N, 3N …, counted from 1.
    Nth(u64),
    /// `at:N`: request N only.
    At(u64),
    /// `p:P`: each with probability P, drawn from the simulator's seed.
    Probability(f64),
}

/// Rules, written `kind[:number][,condition]` and joined by `;`, e.g. `stall-after:5,nth:3; comments`. Conditions are
/// `nth:N` (every Nth request), `at:N` (the Nth only) and `p:P` (each with probability P); kinds are those of
/// [`Misbehaviour`]. Empty = behaves well.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Script {
    rules: Vec<(Misbehaviour, When)>,
}

/// A script that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadScript {
    /// No such misbehaviour.
    #[error("`{0}` is no misbehaviour; use one of: {KINDS}")]
    Kind(String),
    /// No such condition.
    #[error("`{0}` is no condition; use nth:N, at:N or p:P with N of at least 1 and P from 0 to 1")]
    Condition(String),
    /// A number is missing or can't be read.
    #[error("`{0}` needs a whole number after a colon, as in `{0}:5`")]
    Number(String),
}

const KINDS: &str = "stall-after:K, reset-after:K, close-after:K, error-after:K, no-done, 429[:S], 503, html, \
                     slow-header:MS, never-answer, comments, split, glue:N, early-role, zero-usage, reasoning:K, tool-calls";

impl Script {
    /// A script of one rule for every request.
    pub fn always(misbehaviour: Misbehaviour) -> Self {
        Self { rules: vec![(misbehaviour, When::Always)] }
    }

    /// What request `number` (counted from 1) gets; the same for the same seed.
    pub(super) fn behaviour(&self, number: u64, seed: u64) -> Behaviour {
        let mut rng = seeded([seed, number, 0, Purpose::Script as u64]);
        let chosen = self.rules.iter().filter(|(_, when)| {
            let draw = uniform(&mut rng);
            match when {
                When::Always => true,
                When::Nth(n) => number.is_multiple_of(*n),
                When::At(n) => number == *n,
                When::Probability(p) => draw < *p,
            }
        });
        Behaviour(chosen.map(|(misbehaviour, _)| *misbehaviour).collect())
    }
}

/// The misbehaviour that one request gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Behaviour(Vec<Misbehaviour>);

/// How a stream breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Stall,
    Reset,
    Close,
    ErrorEvent,
}

impl Behaviour {
    pub(super) fn has(&self, misbehaviour: Misbehaviour) -> bool {
        self.0.contains(&misbehaviour)
    }

    pub(super) fn all(&self) -> &[Misbehaviour] {
        &self.0
    }

    /// The first break, and after how many tokens.
    pub(super) fn cut(&self) -> Option<(u64, Cut)> {
        let cuts = self.0.iter().filter_map(|misbehaviour| match *misbehaviour {
            Misbehaviour::Stall { after_tokens } => Some((after_tokens, Cut::Stall)),
            Misbehaviour::Reset { after_tokens } => Some((after_tokens, Cut::Reset)),
            Misbehaviour::Close { after_tokens } => Some((after_tokens, Cut::Close)),
            Misbehaviour::ErrorEvent { after_tokens } => Some((after_tokens, Cut::ErrorEvent)),
            _ => None,
        });
        cuts.min_by_key(|(after, _)| *after)
    }

    /// Events per write.
    pub(super) fn glued_events(&self) -> u64 {
        let glue = self.0.iter().find_map(|misbehaviour| match *misbehaviour {
            Misbehaviour::Glue { events } => Some(events),
            _ => None,
        });
        glue.unwrap_or(1)
    }

    /// Tokens of reasoning before the content.
    pub(super) fn reasoning_tokens(&self) -> u64 {
        let reasoning = self.0.iter().find_map(|misbehaviour| match *misbehaviour {
            Misbehaviour::Reasoning { tokens } => Some(tokens),
            _ => None,
        });
        reasoning.unwrap_or(0)
    }
}

impl FromStr for Script {
    type Err = BadScript;

    fn from_str(text: &str) -> Result<Self, BadScript> {
        let rules = text.split(';').map(str::trim).filter(|rule| !rule.is_empty());
        Ok(Self { rules: rules.map(rule).collect::<Result<_, _>>()? })
    }
}

fn rule(text: &str) -> Result<(Misbehaviour, When), BadScript> {
    match text.split_once(',') {
        Some((kind, condition)) => Ok((misbehaviour(kind.trim())?, when(condition.trim())?)),
        None => Ok((misbehaviour(text)?, When::Always)),
    }
}

fn misbehaviour(text: &str) -> Result<Misbehaviour, BadScript> {
    let (kind, number) = text.split_once(':').map_or((text, None), |(kind, number)| (kind, Some(number)));
    let count = || {
        let parsed = number.and_then(|number| number.trim().parse().ok());
        parsed.ok_or_else(|| BadScript::Number(kind.to_owned()))
    };
    Ok(match kind {
        "stall-after" => Misbehaviour::Stall { after_tokens: count()? },
        "reset-after" => Misbehaviour::Reset { after_tokens: count()? },
        "close-after" => Misbehaviour::Close { after_tokens: count()? },
        "error-after" => Misbehaviour::ErrorEvent { after_tokens: count()? },
        "no-done" => Misbehaviour::NoDone,
        "429" if number.is_none() => Misbehaviour::TooManyRequests { retry_after_secs: 1 },
        "429" => Misbehaviour::TooManyRequests { retry_after_secs: count()? },
        "503" => Misbehaviour::Unavailable,
        "html" => Misbehaviour::Html,
        "slow-header" => Misbehaviour::SlowHeader { millis: count()? },
        "never-answer" => Misbehaviour::NeverAnswer,
        "comments" => Misbehaviour::Comments,
        "split" => Misbehaviour::Split,
        "glue" => Misbehaviour::Glue { events: count()?.max(1) },
        "early-role" => Misbehaviour::EarlyRole,
        "zero-usage" => Misbehaviour::ZeroUsage,
        "reasoning" => Misbehaviour::Reasoning { tokens: count()? },
        "tool-calls" => Misbehaviour::ToolCalls,
        _ => return Err(BadScript::Kind(kind.to_owned())),
    })
}

fn when(text: &str) -> Result<When, BadScript> {
    let parsed = text.split_once(':').and_then(|(kind, number)| {
        let count = || number.parse().ok().filter(|count| *count >= 1);
        match kind {
            "nth" => count().map(When::Nth),
            "at" => count().map(When::At),
            "p" => number.parse().ok().filter(|p| (0.0..=1.0).contains(p)).map(When::Probability),
            _ => None,
        }
    });
    parsed.ok_or_else(|| BadScript::Condition(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, number: u64, want: &[Misbehaviour]) {
        let script: Script = script.parse().unwrap();
        assert_eq!(script.behaviour(number, 1).all(), want, "{script:?}, request {number}");
    }

    #[test]
    fn rules_choose_requests() {
        let stall = Misbehaviour::Stall { after_tokens: 5 };
        check("stall-after:5,nth:3", 2, &[]);
        check("stall-after:5,nth:3", 6, &[stall]);
        check("stall-after:5, at:3 ; comments", 3, &[stall, Misbehaviour::Comments]);
        check("stall-after:5, at:3 ; comments", 6, &[Misbehaviour::Comments]);
        check("429; 429:7", 1, &[1, 7].map(|retry_after_secs| Misbehaviour::TooManyRequests { retry_after_secs }));
        check("", 1, &[]);
        check("html,p:1", 1, &[Misbehaviour::Html]);
        check("html,p:0", 1, &[]);
    }

    #[test]
    fn probability_is_seeded_and_about_right() {
        let script: Script = "503,p:0.25".parse().unwrap();
        let hit = |seed| (1..=4_000).filter(|n| script.behaviour(*n, seed) != Behaviour::default()).collect::<Vec<_>>();
        assert_eq!(hit(1), hit(1));
        assert_ne!(hit(1), hit(2));
        assert!((900..1_100).contains(&hit(1).len()), "{}", hit(1).len());
    }

    #[test]
    fn the_earliest_cut_wins() {
        let script: Script = "stall-after:5; reset-after:3".parse().unwrap();
        assert_eq!(script.behaviour(1, 1).cut(), Some((3, Cut::Reset)));
    }

    #[test]
    fn errors_say_what_to_do() {
        let errors = ["stal-after:5", "stall-after", "stall-after:x", "html,every:3", "html,nth:0"]
            .map(|text| text.parse::<Script>().unwrap_err().to_string());
        insta::assert_snapshot!(errors.join("\n"), @"
        `stal-after` is no misbehaviour; use one of: stall-after:K, reset-after:K, close-after:K, error-after:K, no-done, 429[:S], 503, html, slow-header:MS, never-answer, comments, split, glue:N, early-role, zero-usage, reasoning:K, tool-calls
        `stall-after` needs a whole number after a colon, as in `stall-after:5`
        `stall-after` needs a whole number after a colon, as in `stall-after:5`
        `every:3` is no condition; use nth:N, at:N or p:P with N of at least 1 and P from 0 to 1
        `nth:0` is no condition; use nth:N, at:N or p:P with N of at least 1 and P from 0 to 1
        ");
    }
}
