//! Counters of the engine over a window. A counter tells by how much it rose, a gauge what it was between its looks; the
//! last look alone explains nothing about the window before it.

use super::{
    cell::{CellResult, CellStatus},
    window::Window,
};
use crate::{finding::Finding, format, trace::TokenSource, units::Nanos};

/// More tokens made by the server than arrived here, as a share of these, are somebody else's.
const FOREIGN_TOKENS_SHARE: f64 = 0.05;

/// By how much a counter rose in the window, from its looks in order of time. Between two looks it rises evenly; after a
/// fall it began anew from 0. `None` unless the looks reach over the whole window.
pub fn increase(looks: &[(Nanos, f64)], window: Window) -> Option<f64> {
    let (first, last) = (looks.first()?, looks.last()?);
    if first.0 > window.start || last.0 < window.end {
        return None;
    }
    let steps = looks.iter().zip(looks.iter().skip(1));
    let rises = steps.filter(|((from, _), (to, _))| to > from).map(|(&(from, before), &(to, after))| {
        let rise = if after >= before { after - before } else { after };
        rise * window.overlap(from, to).as_secs_f64() / to.since(from).as_secs_f64()
    });
    Some(rises.sum())
}

/// What a counter rose by at least in the window: between the first and the last look inside of it. Where a busy machine
/// looks seldom or late, what is added for the edges may be wrong; this claims nothing about them.
pub fn least_increase(looks: &[(Nanos, f64)], window: Window) -> Option<f64> {
    let is_inside = |look: &&(Nanos, f64)| window.start <= look.0 && look.0 <= window.end;
    let inside: Vec<(Nanos, f64)> = looks.iter().filter(is_inside).copied().collect();
    let (first, last) = (inside.first()?.0, inside.last()?.0);
    if last > first { increase(&inside, Window { start: first, end: last }) } else { None }
}

/// How fast a counter rose from look to look, per second; `None` over a fall, where it began anew: nobody knows how far it
/// had come before.
pub fn rates(looks: &[(Nanos, f64)]) -> Vec<Option<f64>> {
    let steps = looks.iter().zip(looks.iter().skip(1));
    let rate = |((from, before), (to, after)): (&(Nanos, f64), &(Nanos, f64))| {
        let secs = to.since(*from).as_secs_f64();
        (secs > 0.0 && after >= before).then(|| (after - before) / secs)
    };
    steps.map(rate).collect()
}

/// Whether a counter fell between two looks that reach into the window: the engine was started anew.
pub fn falls(looks: &[(Nanos, f64)], window: Window) -> bool {
    let mut steps = looks.iter().zip(looks.iter().skip(1));
    steps.any(|((from, before), (to, after))| after < before && window.overlap(*from, *to) > Nanos(0))
}

/// What one gauge is per unit of another that was looked at in the same instant, look by look; looks without a quotient are
/// left out.
pub fn paired_ratios(looks: &[(f64, f64)]) -> Vec<f64> {
    looks.iter().map(|(value, per)| value / per).filter(|ratio| ratio.is_finite()).collect()
}

/// Rises of the engine's counters over a window; `None`: it does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EngineRises {
    /// Requests thrown out and started again.
    pub preemptions: Option<f64>,
    /// Output tokens for all its users, at least.
    pub output_tokens: Option<f64>,
    /// Whether its counters began anew.
    pub restarted: bool,
}

impl CellResult {
    /// The result, checked by the engine's own counters: requests were thrown out, or somebody else got tokens too. The
    /// speed stays what arrived here: another user's tokens are never ours.
    #[must_use]
    pub fn checked_by(mut self, rises: EngineRises) -> Self {
        if let Some(preempted) = rises.preemptions.filter(|count| *count > 0.0) {
            let text =
                format!("The engine threw out {} requests and started them again.", format::whole(Some(preempted)));
            self.add(CellStatus::Preempted, Finding::warning("preempted", text));
        }
        if rises.restarted {
            let text = "The engine was started anew in the window: its own counts of it are incomplete.";
            self.findings.push(Finding::warning("server_restarted", text));
        }
        // Chunks may carry several tokens: counted as one each, they say nothing about whose the others are.
        let counted = self.stats.token_source != Some(TokenSource::Chunks);
        let own = self.stats.output_tokens.filter(|_| counted).map(|tokens| tokens as f64);
        if let Some((own, all)) = own.zip(rises.output_tokens)
            && all > own * (1.0 + FOREIGN_TOKENS_SHARE)
        {
            let (own, all) = (format::whole(Some(own)), format::whole(Some(all)));
            let text =
                format!("The server made {all} tokens in the window and {own} came here: somebody else used it.");
            self.add(CellStatus::Contaminated, Finding::warning("server_shared", text));
        }
        self
    }

    /// Statuses are ordered, the most severe first: a lighter one never replaces it.
    fn add(&mut self, status: CellStatus, finding: Finding) {
        self.status = self.status.min(status);
        self.findings.push(finding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::cell::CellStats;

    const WINDOW: Window = Window { start: Nanos::from_secs(10), end: Nanos::from_secs(40) };

    #[test]
    fn counters_rise_between_their_looks() {
        let check = |looks: &[(u64, f64)], wanted: Option<f64>| {
            let looks: Vec<_> = looks.iter().map(|(secs, value)| (Nanos::from_secs(*secs), *value)).collect();
            assert_eq!(increase(&looks, WINDOW), wanted, "{looks:?}");
        };
        check(&[(10, 412.0), (40, 431.0)], Some(19.0));
        check(&[(0, 0.0), (20, 100.0), (60, 500.0)], Some(250.0));
        // A restart at 20 s: what it had counted before is kept.
        check(&[(10, 100.0), (20, 110.0), (30, 5.0), (40, 7.0)], Some(17.0));
        check(&[(11, 0.0), (40, 9.0)], None);
        check(&[(10, 0.0), (39, 9.0)], None);
        check(&[], None);
    }

    #[test]
    fn edges_are_not_claimed() {
        let looks =
            [(5, 0.0), (12, 70.0), (38, 330.0), (45, 900.0)].map(|(secs, value)| (Nanos::from_secs(secs), value));
        assert_eq!(least_increase(&looks, WINDOW), Some(260.0));
        assert_eq!(least_increase(&looks[..2], WINDOW), None);
        assert_eq!(least_increase(&[], WINDOW), None);
    }

    #[test]
    fn a_fall_is_a_restart() {
        let looks = |values: [f64; 4]| (0..).map(|n| Nanos::from_secs(n + 10)).zip(values).collect::<Vec<_>>();
        let restarted = looks([1_000.0, 1_500.0, 20.0, 320.0]);
        assert_eq!(rates(&restarted), [Some(500.0), None, Some(300.0)]);
        assert!(falls(&restarted, WINDOW));
        assert!(!falls(&restarted, Window { start: Nanos::from_secs(12), end: Nanos::from_secs(40) }));
        assert!(!falls(&looks([1.0, 1.0, 2.0, 3.0]), WINDOW));
        assert_eq!(rates(&[(Nanos(5), 1.0), (Nanos(5), 2.0)]), [None]);
    }

    #[test]
    fn counters_add_to_the_verdict_and_never_take_from_it() {
        let result = |status, own| CellResult {
            status,
            stats: CellStats { output_tokens: Some(own), total_tok_s: Some(100.0), ..CellStats::default() },
            findings: Vec::new(),
            failures: Vec::new(),
            rules: None,
        };
        let check = |status, rises: (f64, f64), wanted, codes: &[&str]| {
            let rises = EngineRises { preemptions: Some(rises.0), output_tokens: Some(rises.1), restarted: false };
            let checked = result(status, 3_000).checked_by(rises);
            assert_eq!((checked.status, checked.stats.total_tok_s), (wanted, Some(100.0)));
            assert_eq!(checked.findings.iter().map(|it| it.code.as_str()).collect::<Vec<_>>(), codes);
        };
        check(CellStatus::Valid, (0.0, 3_149.0), CellStatus::Valid, &[]);
        check(CellStatus::Valid, (19.0, 3_000.0), CellStatus::Preempted, &["preempted"]);
        check(CellStatus::UnderFilled, (1.0, 3_151.0), CellStatus::Contaminated, &["preempted", "server_shared"]);
        check(CellStatus::RequestsQueued, (1.0, 0.0), CellStatus::RequestsQueued, &["preempted"]);
        let unknown = result(CellStatus::Valid, 0).checked_by(EngineRises::default());
        assert_eq!(unknown.status, CellStatus::Valid);
    }

    #[test]
    fn pairs_are_of_the_same_look() {
        assert_eq!(paired_ratios(&[(286.0, 4.0), (1.0, 0.0), (143.0, 2.0)]), [71.5, 71.5]);
    }
}
