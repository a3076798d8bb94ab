//! Several measurements of one cell as one result (method §6).
//!
//! Counts and times are summed, so the total speed is that of all windows together, with the interval between repeats.
//! Distributions are those of the repeat in the middle: quantiles of several windows have no common sample.

use super::{
    cell::{CellResult, CellStats, FailureGroup, RequestCounts},
    goodput::SloCount,
    interval::Interval,
};

impl CellResult {
    /// The result of all `repeats` of a cell; `None` without any.
    pub fn combined(repeats: &[Self]) -> Option<Self> {
        let middle = middle(repeats)?;
        let mut numbers = middle.stats.clone();
        numbers.repeats_tok_s = repeats.iter().filter_map(|repeat| repeat.stats.total_tok_s).collect();
        if repeats.len() > 1 {
            numbers.sum_up(repeats);
        }
        let mut findings = middle.findings.clone();
        for finding in repeats.iter().flat_map(|repeat| &repeat.findings) {
            if !findings.iter().any(|known| known.code == finding.code) {
                findings.push(finding.clone());
            }
        }
        // The most severe one: a number is as good as the worst window in it.
        let status = repeats.iter().map(|repeat| repeat.status).min()?;
        Some(Self { status, stats: numbers, findings, failures: failures(repeats), rules: middle.rules })
    }
}

/// The repeat whose total speed is the (lower) median; one without a speed comes before all others.
fn middle(repeats: &[CellResult]) -> Option<&CellResult> {
    let mut sorted: Vec<&CellResult> = repeats.iter().collect();
    let speed = |repeat: &CellResult| repeat.stats.total_tok_s.unwrap_or(f64::NEG_INFINITY);
    sorted.sort_by(|a, b| speed(a).total_cmp(&speed(b)));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

impl CellStats {
    fn sum_up(&mut self, repeats: &[CellResult]) {
        let sum = |of: fn(&Self) -> Option<f64>| {
            let values: Vec<f64> = repeats.iter().filter_map(|repeat| of(&repeat.stats)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>())
        };
        let mean = |of: fn(&Self) -> Option<f64>| {
            let values: Vec<f64> = repeats.iter().filter_map(|repeat| of(&repeat.stats)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        self.total_tok_s = mean(|stats| stats.total_tok_s);
        // Below three repeats there is no interval that contains their variation, and any other would understate it.
        self.total_tok_s_interval = Interval::of_repeats(&self.repeats_tok_s);
        self.goodput = mean(|stats| stats.goodput);
        self.slo = repeats.iter().filter_map(|repeat| repeat.stats.slo).reduce(SloCount::plus);
        self.tok_s_before_prefill = mean(|stats| stats.tok_s_before_prefill);
        self.tok_s_during_prefill = mean(|stats| stats.tok_s_during_prefill);
        self.tok_s_after_prefill = mean(|stats| stats.tok_s_after_prefill);
        self.per_user_tok_s = mean(|stats| stats.per_user_tok_s);
        self.active_requests = mean(|stats| stats.active_requests);
        self.decoding_requests = mean(|stats| stats.decoding_requests);
        self.output_tokens = sum(|stats| stats.output_tokens.map(|tokens| tokens as f64)).map(|tokens| tokens as u64);
        self.measured_for_s = sum(|stats| stats.measured_for_s);
        self.token_source = repeats.iter().filter_map(|repeat| repeat.stats.token_source).max();
        let counts = repeats.iter().filter_map(|repeat| repeat.stats.requests);
        self.requests = counts.reduce(|a, b| RequestCounts {
            started: a.started + b.started,
            completed: a.completed + b.completed,
            cut: a.cut + b.cut,
            failed: a.failed + b.failed,
        });
    }
}

fn failures(repeats: &[CellResult]) -> Vec<FailureGroup> {
    let mut groups: Vec<FailureGroup> = Vec::new();
    for group in repeats.iter().flat_map(|repeat| &repeat.failures) {
        match groups.iter_mut().find(|known| known.kind == group.kind && known.text == group.text) {
            Some(known) => known.count += group.count,
            None => groups.push(group.clone()),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups.truncate(super::verdict::FAILURE_ROWS);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{finding::Finding, stats::cell::CellStatus};

    fn repeat(tok_s: f64, status: CellStatus) -> CellResult {
        let numbers = CellStats {
            total_tok_s: Some(tok_s),
            output_tokens: Some((tok_s * 10.0) as u64),
            measured_for_s: Some(10.0),
            requests: Some(RequestCounts { started: 3, completed: 2, cut: 1, failed: 0 }),
            ..CellStats::default()
        };
        CellResult { status, stats: numbers, findings: Vec::new(), failures: Vec::new(), rules: None }
    }

    #[test]
    fn repeats_are_one_result() {
        let mut repeats = vec![
            repeat(100.0, CellStatus::Valid),
            repeat(130.0, CellStatus::UnderFilled),
            repeat(115.0, CellStatus::Valid),
        ];
        repeats[1].findings.push(Finding::info("few_requests", "few"));
        let result = CellResult::combined(&repeats).unwrap();
        assert_eq!(result.status, CellStatus::UnderFilled, "the worst one");
        let stats = &result.stats;
        assert_eq!(
            (stats.total_tok_s, stats.output_tokens, stats.measured_for_s),
            (Some(115.0), Some(3_450), Some(30.0))
        );
        assert_eq!(stats.requests.map(|counts| counts.completed), Some(6));
        assert_eq!(stats.repeats_tok_s, [100.0, 130.0, 115.0]);
        assert_eq!(
            stats.total_tok_s_interval.map(|interval| (interval.n, interval.half_width.round())),
            Some((3, 37.0))
        );
        assert_eq!(result.findings.len(), 1);
    }

    #[test]
    fn one_measurement_is_itself_and_two_have_no_interval() {
        let one = repeat(100.0, CellStatus::Valid);
        let combined = CellResult::combined(std::slice::from_ref(&one)).unwrap();
        assert_eq!(combined.stats.total_tok_s, one.stats.total_tok_s);
        let two = CellResult::combined(&[one.clone(), one]).unwrap();
        assert_eq!(two.stats.total_tok_s_interval, None);
        assert_eq!(CellResult::combined(&[]), None);
    }
}
