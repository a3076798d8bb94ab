//! What the server's GPUs did over the time of a cell, together: on the same axis as everything else, and bounded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Extent, timeline::thin};
use crate::{
    gpu::{GpuRecord, GpuSample, HeldBy, Throttle},
    units::Nanos,
};

/// Most stretches of being held back; more are told as one, so that none is lost.
const MOST_STRETCHES: usize = 600;

/// The GPUs together: seconds and values, in order of time; empty where they do not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuLines {
    /// Power of all, watts; only moments at which each told its own.
    pub power_w: Vec<(f64, f64)>,
    /// Power that all may draw, watts.
    pub power_limit_w: Option<f64>,
    /// Temperature of the hottest, °C.
    pub temperature_c: Vec<(f64, f64)>,
    /// From and to of each time in which one was held back, and by what.
    pub held: Vec<(f64, f64, HeldBy)>,
}

impl GpuLines {
    /// The lines of a record over the time of a cell.
    pub fn of(record: &GpuRecord, extent: Extent) -> Self {
        let power = together(record, extent, |sample| sample.power_w, |a, b| a + b);
        let all = record.gpus.len();
        let line = |values: BTreeMap<Nanos, (f64, usize)>, least: usize| {
            let told = values.into_iter().filter(|(_, (_, n))| *n >= least);
            thin(told.map(|(at, (value, _))| (extent.secs(at), value)).collect())
        };
        Self {
            power_w: line(power, all),
            power_limit_w: record.gpus.iter().map(|gpu| gpu.power_limit_w).sum::<Option<f64>>().filter(|_| all > 0),
            temperature_c: line(together(record, extent, |sample| sample.temperature_c, f64::max), 1),
            held: held(record, extent),
        }
    }

    /// Whether nothing was told.
    pub fn is_silent(&self) -> bool {
        self.power_w.is_empty() && self.temperature_c.is_empty() && self.held.is_empty()
    }

    /// What held one of them back at a moment.
    pub fn held_at(&self, at_s: f64) -> Option<HeldBy> {
        self.held.iter().find(|(from, to, _)| (*from..=*to).contains(&at_s)).map(|(_, _, by)| *by)
    }
}

fn samples(record: &GpuRecord, extent: Extent) -> impl Iterator<Item = &GpuSample> {
    let inside = move |sample: &&GpuSample| (extent.zero..=extent.end).contains(&sample.at);
    record.gpus.iter().flat_map(|gpu| &gpu.samples).filter(inside)
}

/// A number of all GPUs at each moment, and of how many it is.
fn together(
    record: &GpuRecord,
    extent: Extent,
    of: fn(&GpuSample) -> Option<f64>,
    join: fn(f64, f64) -> f64,
) -> BTreeMap<Nanos, (f64, usize)> {
    let mut values: BTreeMap<Nanos, (f64, usize)> = BTreeMap::new();
    for sample in samples(record, extent) {
        let Some(value) = of(sample).filter(|value| value.is_finite()) else { continue };
        values.entry(sample.at).and_modify(|(all, n)| (*all, *n) = (join(*all, value), *n + 1)).or_insert((value, 1));
    }
    values
}

fn held(record: &GpuRecord, extent: Extent) -> Vec<(f64, f64, HeldBy)> {
    let mut reasons: BTreeMap<Nanos, u64> = BTreeMap::new();
    for sample in samples(record, extent) {
        if let Some(throttle) = sample.throttle {
            *reasons.entry(sample.at).or_default() |= throttle.0;
        }
    }
    let mut stretches: Vec<(f64, f64, HeldBy)> = Vec::new();
    let mut before = None;
    for (at, bits) in reasons {
        let (at_s, now) = (extent.secs(at), Throttle(bits).held_by());
        let goes_on = now.is_some() && (before == now || stretches.len() >= MOST_STRETCHES);
        match (stretches.last_mut(), now) {
            (Some(last), _) if goes_on => last.1 = at_s,
            (_, Some(by)) => stretches.push((at_s, at_s, by)),
            (_, None) => {}
        }
        before = now;
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::GpuSeries;

    fn gpu(index: u32, power: fn(u64) -> Option<f64>) -> GpuSeries {
        let sample = |second: u64| GpuSample {
            at: Nanos::from_secs(second),
            power_w: power(second),
            temperature_c: Some(60.0 + f64::from(index)),
            throttle: Some(Throttle(if (3..=5).contains(&second) { 4 } else { 0 })),
            ..GpuSample::default()
        };
        let samples = (0..10).map(sample).collect();
        GpuSeries { index, power_limit_w: Some(700.0), samples, ..GpuSeries::default() }
    }

    #[test]
    fn gpus_stand_together_on_the_time_of_the_cell() {
        let extent = Extent { zero: Nanos::from_secs(2), end: Nanos::from_secs(8) };
        let silent = |second| (second != 4).then_some(200.0);
        let record = GpuRecord { gpus: vec![gpu(0, |_| Some(300.0)), gpu(1, silent)], idle_power_w: None };
        let lines = GpuLines::of(&record, extent);
        // At second 4 one did not tell: the power of the other is not that of all.
        let wanted = [0.0, 1.0, 3.0, 4.0, 5.0, 6.0].map(|at| (at, 500.0));
        assert_eq!((lines.power_w.as_slice(), lines.power_limit_w), (wanted.as_slice(), Some(1_400.0)));
        assert_eq!(lines.temperature_c.first(), Some(&(0.0, 61.0)));
        assert_eq!(lines.held, [(1.0, 3.0, HeldBy::PowerLimit)]);
        assert_eq!((lines.held_at(2.0), lines.held_at(4.0)), (Some(HeldBy::PowerLimit), None));
        assert!(GpuLines::of(&GpuRecord::default(), extent).is_silent());
    }
}
