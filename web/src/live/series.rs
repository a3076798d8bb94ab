//! The token rate as it was seen on this page: bounded, so that a page left open for days stays small.

use std::collections::VecDeque;

use speedmatrix_shared::gauge::{CellPhase, Gauge};

/// Points that are kept: ten minutes at ten gauges a second.
const KEPT: usize = 6_000;
/// How far back the chart looks, on the run's clock, in seconds.
pub const SHOWN_S: f64 = 600.0;

/// The rate at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePoint {
    /// On the run's clock, seconds.
    pub at_s: f64,
    /// Tokens per second; `None` where nothing was measured or the connection was lost.
    pub tok_s: Option<f64>,
    /// Whether a measuring window was open.
    pub measuring: bool,
}

/// The rate over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RateSeries {
    points: VecDeque<RatePoint>,
}

impl RateSeries {
    /// Adds a gauge; one that is not later than the last is dropped.
    pub fn push(&mut self, gauge: &Gauge) {
        let at_s = gauge.at.as_secs_f64();
        if self.points.back().is_none_or(|last| last.at_s < at_s) {
            self.add(RatePoint { at_s, tok_s: gauge.tok_s, measuring: gauge.phase == CellPhase::Measure });
        }
    }

    /// Breaks the line: between here and the next point nobody looked.
    pub fn interrupt(&mut self) {
        if let Some(last) = self.points.back().copied().filter(|last| last.tok_s.is_some()) {
            self.add(RatePoint { tok_s: None, measuring: false, ..last });
        }
    }

    fn add(&mut self, point: RatePoint) {
        if self.points.len() == KEPT {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    /// Time of the latest point, seconds.
    pub fn latest_s(&self) -> Option<f64> {
        self.points.back().map(|point| point.at_s)
    }

    /// The points of the last [`SHOWN_S`] seconds, in order of time.
    pub fn shown(&self) -> impl Iterator<Item = &RatePoint> {
        let from_s = self.latest_s().unwrap_or(0.0) - SHOWN_S;
        self.points.iter().skip_while(move |point| point.at_s < from_s)
    }

    /// Stretches of time, as (from, to) in seconds, in which a window was open.
    pub fn windows(&self) -> Vec<(f64, f64)> {
        let mut windows: Vec<(f64, f64)> = Vec::new();
        let mut open = false;
        for point in self.shown() {
            match (open, point.measuring) {
                (false, true) => windows.push((point.at_s, point.at_s)),
                (true, true) => {
                    if let Some(window) = windows.last_mut() {
                        window.1 = point.at_s;
                    }
                }
                _ => {}
            }
            open = point.measuring;
        }
        windows
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::units::Nanos;

    use super::*;

    fn gauge(at_s: u64, phase: CellPhase) -> Gauge {
        Gauge {
            at: Nanos::from_secs(at_s),
            cell: "decode-8K-1".parse().unwrap(),
            phase,
            phase_for_s: 0.0,
            tok_s: Some(1.0),
            in_flight: 1,
            decoding: 1,
            waiting: None,
            window_tok_s: None,
        }
    }

    #[test]
    fn it_stays_bounded_and_in_order() {
        let mut series = RateSeries::default();
        for second in 0..7_000 {
            series.push(&gauge(second, CellPhase::Measure));
        }
        series.push(&gauge(5, CellPhase::Measure));
        assert_eq!(series.points.len(), KEPT);
        assert_eq!(series.latest_s(), Some(6_999.0));
        assert_eq!(series.shown().count(), 601);
    }

    #[test]
    fn windows_are_the_stretches_of_measuring() {
        let mut series = RateSeries::default();
        for (second, phase) in
            [CellPhase::Ramp, CellPhase::Measure, CellPhase::Measure, CellPhase::Stop].iter().enumerate()
        {
            series.push(&gauge(second as u64, *phase));
        }
        series.push(&gauge(9, CellPhase::Measure));
        assert_eq!(series.windows(), [(1.0, 2.0), (9.0, 9.0)]);
    }

    #[test]
    fn an_interruption_breaks_the_line_once() {
        let mut series = RateSeries::default();
        series.interrupt();
        series.push(&gauge(1, CellPhase::Measure));
        series.interrupt();
        series.interrupt();
        assert_eq!(series.shown().filter(|point| point.tok_s.is_none()).count(), 1);
    }
}
