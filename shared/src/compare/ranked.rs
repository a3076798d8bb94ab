//! The numbers by which two runs can be compared: those of METRICS that are better one way.

use std::str::FromStr;

use crate::{
    metric::{self, Better, METRICS, Metric},
    stats::{
        cell::CellResult,
        compare::{Direction, page::Measure, welch::Inside},
    },
};

/// Units of speeds and times: less waiting is faster. Everything else is better or worse.
const UNITS_OF_SPEED: [&str; 4] = ["tok/s", "ms", "s", "1/s"];
/// How these are named that tell of the client, not the server: it is no faster for them.
const OF_THE_CLIENT: [&str; 3] = ["client_", "timer_", "ttft_error"];

/// A metric that is good one way.
#[derive(Debug, Clone, Copy)]
pub struct Ranked {
    metric: &'static Metric,
    direction: Direction,
}

/// No metric to compare by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{key}\" is no number to compare by: choose one of {known}")]
pub struct NotRanked {
    key: String,
    known: String,
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.metric.key == other.metric.key
    }
}

impl Ranked {
    /// The metric, if it is good one way.
    pub fn of(metric: &'static Metric) -> Option<Self> {
        let direction = match metric.better {
            Better::Higher => Direction::HigherIsFaster,
            Better::Lower => Direction::LowerIsFaster,
            Better::Neither => return None,
        };
        Some(Self { metric, direction })
    }

    /// All of them, in the order of METRICS.
    pub fn all() -> impl Iterator<Item = Self> {
        METRICS.iter().filter_map(Self::of)
    }

    /// Tokens per second of all requests: what a comparison begins with.
    pub fn total_speed() -> Self {
        Self::all().next().expect("METRICS begins with the total speed, which is better higher")
    }

    /// The metric.
    pub const fn metric(self) -> &'static Metric {
        self.metric
    }

    /// Which way it is good.
    pub const fn direction(self) -> Direction {
        self.direction
    }

    /// What a better value is called: `faster` of speeds and times, else `better`.
    pub fn better(self) -> &'static str {
        if self.is_speed() { "faster" } else { "better" }
    }

    /// What a worse value is called.
    pub fn worse(self) -> &'static str {
        if self.is_speed() { "slower" } else { "worse" }
    }

    fn is_speed(self) -> bool {
        UNITS_OF_SPEED.contains(&self.metric.unit) && !OF_THE_CLIENT.iter().any(|it| self.metric.key.starts_with(it))
    }

    /// What the statistics need of it. Only the total speed tells of its error inside one window.
    pub(super) fn measure(self) -> Measure {
        let inside: fn(&CellResult) -> Option<Inside> =
            if self == Self::total_speed() { Measure::TOTAL_SPEED.inside } else { |_| None };
        Measure { value: self.metric.get, inside, direction: self.direction, unsure_beyond: None }
    }
}

impl FromStr for Ranked {
    type Err = NotRanked;

    fn from_str(key: &str) -> Result<Self, NotRanked> {
        metric::by_key(key).and_then(Self::of).ok_or_else(|| NotRanked {
            key: key.chars().take(80).collect(),
            known: Self::all().map(|it| it.metric.key).collect::<Vec<_>>().join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_good_one_way_can_be_compared() {
        let check = |key: &str, words: Option<(&str, &str)>| {
            assert_eq!(key.parse::<Ranked>().ok().map(|it| (it.better(), it.worse())), words, "{key}");
        };
        check("total_tok_s", Some(("faster", "slower")));
        check("ttft", Some(("faster", "slower")));
        check("energy_per_token", Some(("better", "worse")));
        check("client_lag_p99", Some(("better", "worse")));
        check("ttft_error_bound", Some(("better", "worse")));
        check("completed_requests", None);
        check("speed", None);
        assert_eq!(Ranked::total_speed().metric().key, "total_tok_s");
        let refusal = "speed".parse::<Ranked>().unwrap_err().to_string();
        assert!(refusal.starts_with("\"speed\" is no number to compare by: choose one of total_tok_s, "), "{refusal}");
    }
}
