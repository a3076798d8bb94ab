//! What was seen live on this page: bounded, so that a page left open for days stays small. Pure.

use std::collections::VecDeque;

use speedmatrix_shared::gauge::{CellPhase, Gauge};

use crate::zoom::Zoom;

/// Gauges that are kept: ten minutes at ten a second.
const KEPT: usize = 6_000;
/// How far back the charts look, seconds of real time.
const SHOWN_S: f64 = 600.0;
/// Without a gauge for so long, seconds of real time, nobody knows what was: between two cells there are none.
const GAP_S: f64 = 2.0;
/// Least time on the axis, seconds of real time, so that the first seconds do not look like hours.
const LEAST_S: f64 = 10.0;

/// One moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// On the run's clock, seconds.
    pub at_s: f64,
    /// What the gauge told; `None` where the line breaks, because no cell ran or the connection was lost.
    pub gauge: Option<Gauge>,
}

/// The gauges over time.
#[derive(Debug, Clone, PartialEq)]
pub struct GaugeSeries {
    seen: VecDeque<Seen>,
    clock_factor: f64,
}

impl GaugeSeries {
    /// Nothing yet. `clock_factor` is how many seconds of the run's clock pass in a real one.
    pub const fn new(clock_factor: f64) -> Self {
        Self { seen: VecDeque::new(), clock_factor }
    }

    /// Adds a gauge; one that is not later than the last is dropped.
    pub fn push(&mut self, gauge: Gauge) {
        let at_s = gauge.at.as_secs_f64();
        if self.latest_s().is_some_and(|last_s| last_s >= at_s) {
            return;
        }
        if self.latest_s().is_some_and(|last_s| at_s - last_s > GAP_S * self.clock_factor) {
            self.interrupt();
        }
        self.add(Seen { at_s, gauge: Some(gauge) });
    }

    /// Breaks the lines: between here and the next gauge nobody looked.
    pub fn interrupt(&mut self) {
        if let Some(&Seen { at_s, gauge: Some(_) }) = self.seen.back() {
            self.add(Seen { at_s, gauge: None });
        }
    }

    fn add(&mut self, seen: Seen) {
        let from_s = seen.at_s - SHOWN_S * self.clock_factor;
        while self.seen.len() >= KEPT || self.seen.front().is_some_and(|first| first.at_s < from_s) {
            self.seen.pop_front();
        }
        self.seen.push_back(seen);
    }

    /// Time of the latest gauge, seconds.
    pub fn latest_s(&self) -> Option<f64> {
        self.seen.back().map(|seen| seen.at_s)
    }

    /// The latest gauge.
    pub fn latest(&self) -> Option<&Gauge> {
        self.seen.iter().rev().find_map(|seen| seen.gauge.as_ref())
    }

    /// All the time that can be shown.
    pub fn whole(&self) -> Zoom {
        let first_s = self.seen.front().map_or(0.0, |first| first.at_s);
        let least_s = first_s + LEAST_S * self.clock_factor;
        Zoom { from_s: first_s, to_s: self.latest_s().unwrap_or(first_s).max(least_s) }
    }

    /// What was seen in a part of the time, and the moments next to it, so that lines reach its edges.
    pub fn within(&self, part: Zoom) -> impl Iterator<Item = &Seen> + Clone {
        let from = self.seen.partition_point(|seen| seen.at_s < part.from_s).saturating_sub(1);
        let to = (self.seen.partition_point(|seen| seen.at_s <= part.to_s) + 1).min(self.seen.len());
        self.seen.range(from..to.max(from))
    }

    /// The gauge nearest to a moment.
    pub fn at(&self, at_s: f64) -> Option<&Gauge> {
        let told =
            self.within(Zoom { from_s: at_s, to_s: at_s }).filter_map(|seen| Some((seen.at_s, seen.gauge.as_ref()?)));
        told.min_by(|a, b| (a.0 - at_s).abs().total_cmp(&(b.0 - at_s).abs())).map(|(_, gauge)| gauge)
    }

    /// Stretches of a part of the time, as (from, to) in seconds, in which something of a gauge holds.
    pub fn stretches(&self, part: Zoom, holds: impl Fn(&Gauge) -> bool) -> Vec<(f64, f64)> {
        let mut stretches: Vec<(f64, f64)> = Vec::new();
        let mut open = false;
        for seen in self.within(part) {
            let now = seen.gauge.as_ref().is_some_and(&holds);
            match stretches.last_mut() {
                Some(stretch) if open && now => stretch.1 = seen.at_s,
                _ if now => stretches.push((seen.at_s, seen.at_s)),
                _ => {}
            }
            open = now;
        }
        stretches
    }
}

/// Whether a measuring window was open.
pub fn is_measuring(gauge: &Gauge) -> bool {
    gauge.phase == CellPhase::Measure
}

#[cfg(test)]
pub(crate) mod tests {
    use speedmatrix_shared::units::Nanos;

    use super::*;

    pub(crate) fn gauge(at_ms: u64, phase: CellPhase) -> Gauge {
        Gauge {
            at: Nanos::from_millis(at_ms),
            cell: "decode-8K-16".parse().unwrap(),
            phase,
            phase_for_s: 0.0,
            tok_s: Some(10.0),
            in_flight: 16,
            decoding: 12,
            waiting: None,
            window_tok_s: None,
            running: None,
            kv_usage: None,
            gpu: None,
            lateness_s: None,
        }
    }

    fn all() -> Zoom {
        Zoom { from_s: 0.0, to_s: 1e9 }
    }

    #[test]
    fn it_stays_bounded_and_in_order() {
        let mut series = GaugeSeries::new(1.0);
        for tenth in 0..7_000 {
            series.push(gauge(tenth * 100, CellPhase::Measure));
        }
        series.push(gauge(5, CellPhase::Measure));
        assert_eq!((series.seen.len(), series.latest_s()), (KEPT, Some(699.9)));
        // Gauges that came seldom reach no further back.
        let mut seldom = GaugeSeries::new(1.0);
        (0..2_000).for_each(|second| seldom.push(gauge(second * 1_000, CellPhase::Measure)));
        assert_eq!((seldom.seen.len(), seldom.whole().from_s), (601, 1_399.0));
    }

    #[test]
    fn windows_are_the_stretches_of_measuring() {
        let mut series = GaugeSeries::new(10.0);
        for (second, phase) in
            [CellPhase::Ramp, CellPhase::Measure, CellPhase::Measure, CellPhase::Stop].iter().enumerate()
        {
            series.push(gauge(second as u64 * 1_000, *phase));
        }
        series.push(gauge(9_000, CellPhase::Measure));
        assert_eq!(series.stretches(all(), is_measuring), [(1.0, 2.0), (9.0, 9.0)]);
        assert_eq!(series.stretches(Zoom { from_s: 0.0, to_s: 0.5 }, is_measuring), [(1.0, 1.0)]);
    }

    #[test]
    fn lines_break_where_nobody_looked() {
        let breaks = |series: &GaugeSeries| series.within(all()).filter(|seen| seen.gauge.is_none()).count();
        let mut series = GaugeSeries::new(1.0);
        series.interrupt();
        series.push(gauge(100, CellPhase::Ramp));
        series.interrupt();
        series.interrupt();
        assert_eq!(breaks(&series), 1);
        series.push(gauge(200, CellPhase::Ramp));
        series.push(gauge(900, CellPhase::Ramp));
        assert_eq!(breaks(&series), 1);
        // A silence is a break too.
        series.push(gauge(5_000, CellPhase::Ramp));
        assert_eq!(breaks(&series), 2);
    }

    #[test]
    fn a_moment_is_read_at_its_nearest_gauge() {
        let mut series = GaugeSeries::new(1.0);
        assert!(series.at(3.0).is_none());
        for at_ms in [1_000, 1_400, 2_000] {
            series.push(gauge(at_ms, CellPhase::Ramp));
        }
        let check = |at_s: f64, wanted: u64| {
            assert_eq!(series.at(at_s).map(|gauge| gauge.at), Some(Nanos::from_millis(wanted)), "{at_s}");
        };
        check(0.0, 1_000);
        check(1.25, 1_400);
        check(9.0, 2_000);
    }
}
