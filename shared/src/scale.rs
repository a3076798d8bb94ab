//! From numbers to places and colours: axes with their marks, and the steps of the colour scale. For the page and for
//! the charts of files.

use std::fmt::Write as _;

use crate::metric::Better;

/// Steps of the colour scale.
pub const STEPS: u8 = 9;

/// Smallest and largest of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Smallest.
    pub lo: f64,
    /// Largest.
    pub hi: f64,
}

impl Range {
    /// The range of `values`; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        values.into_iter().filter(|value| value.is_finite()).fold(None, |range, value| match range {
            None => Some(Self { lo: value, hi: value }),
            Some(Self { lo, hi }) => Some(Self { lo: lo.min(value), hi: hi.max(value) }),
        })
    }

    /// The same range, reaching down to zero.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { lo: self.lo.min(0.0), ..self }
    }
}

/// The colour step of a value: steps of equal *ratio* between the smallest and the largest value, so that each step
/// is the same factor; reversed where less is better, so that a stronger colour is always better. Zero and below, which
/// have no ratio, take the weakest end. One value alone takes the middle.
pub fn step(value: f64, range: Range, better: Better) -> u8 {
    let middle = STEPS / 2;
    if range.hi <= range.lo {
        return middle;
    }
    let lowest = if range.lo > 0.0 { range.lo } else { range.hi / 1_000.0 };
    if lowest <= 0.0 {
        return middle;
    }
    let share = ((value.max(lowest) / lowest).ln() / (range.hi / lowest).ln()).clamp(0.0, 1.0);
    let share = if better == Better::Lower { 1.0 - share } else { share };
    ((share * f64::from(STEPS)) as u8).min(STEPS - 1)
}

/// The value at which each colour step begins, in the order of the steps, weakest colour first.
pub fn step_starts(range: Range, better: Better) -> Vec<f64> {
    let lowest = if range.lo > 0.0 { range.lo } else { range.hi / 1_000.0 };
    let ratio = if lowest > 0.0 { range.hi / lowest } else { 1.0 };
    (0..STEPS)
        .map(|step| match better {
            Better::Lower => range.hi / ratio.powf(f64::from(step) / f64::from(STEPS)),
            Better::Higher | Better::Neither => lowest * ratio.powf(f64::from(step) / f64::from(STEPS)),
        })
        .collect()
}

/// How an axis runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Equal steps, equal distance.
    Linear,
    /// Equal factors, equal distance; only for values above zero.
    Log,
}

/// An axis: values to pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    range: Range,
    from_px: f64,
    to_px: f64,
    kind: Kind,
}

impl Axis {
    /// An axis over `range` from pixel `from_px` to `to_px`. A logarithmic one without a positive range becomes linear.
    pub fn new(range: Range, [from_px, to_px]: [f64; 2], kind: Kind) -> Self {
        let kind = if range.lo > 0.0 { kind } else { Kind::Linear };
        Self { range, from_px, to_px, kind }
    }

    /// The pixel of a value.
    pub fn at(&self, value: f64) -> f64 {
        let Range { lo, hi } = self.range;
        let share = match self.kind {
            _ if hi <= lo => 0.5,
            Kind::Linear => (value - lo) / (hi - lo),
            Kind::Log => (value.max(lo * 1e-9) / lo).ln() / (hi / lo).ln(),
        };
        self.from_px + share * (self.to_px - self.from_px)
    }

    /// The value at a pixel, kept within the axis.
    pub fn value(&self, px: f64) -> f64 {
        let Range { lo, hi } = self.range;
        let length = self.to_px - self.from_px;
        if length.abs() < f64::EPSILON || hi <= lo {
            return lo;
        }
        let share = ((px - self.from_px) / length).clamp(0.0, 1.0);
        match self.kind {
            Kind::Linear => lo + share * (hi - lo),
            Kind::Log => lo * (hi / lo).powf(share),
        }
    }

    /// How it runs.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Its ends, as values.
    pub const fn bounds(&self) -> [f64; 2] {
        [self.range.lo, self.range.hi]
    }

    /// Round values to mark, ascending.
    pub fn ticks(&self) -> Vec<f64> {
        match self.kind {
            Kind::Linear => linear_ticks(self.range),
            Kind::Log => log_ticks(self.range),
        }
    }
}

/// At most six round values within a range.
fn linear_ticks(Range { lo, hi }: Range) -> Vec<f64> {
    let span = hi - lo;
    if span <= 0.0 {
        return vec![lo];
    }
    let rough = span / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (lo / step).ceil() as i64;
    (first..first + 8).map(|n| n as f64 * step).take_while(|tick| *tick <= hi + step * 1e-6).collect()
}

/// Values of the form 1, 2, 5 × 10ⁿ within a range; only powers of ten where those are enough.
fn log_ticks(Range { lo, hi }: Range) -> Vec<f64> {
    let decades = lo.log10().floor() as i32..=hi.log10().ceil() as i32;
    let inside = |tick: &f64| *tick >= lo * 0.999 && *tick <= hi * 1.001;
    let tens: Vec<f64> = decades.clone().map(|n| 10_f64.powi(n)).filter(inside).collect();
    if tens.len() >= 3 {
        return tens;
    }
    decades.flat_map(|n| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(n))).filter(inside).collect()
}

/// Round lengths of time within a range, in seconds, for a logarithmic axis.
pub fn time_ticks(Range { lo, hi }: Range) -> Vec<f64> {
    const FEW: [f64; 9] = [0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 36_000.0];
    const MANY: [f64; 21] = [
        0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
        600.0, 1_800.0, 3_600.0,
    ];
    let inside = |tick: &f64| *tick >= lo * 0.999 && *tick <= hi * 1.001;
    let few: Vec<f64> = FEW.into_iter().filter(inside).collect();
    if few.len() >= 3 { few } else { MANY.into_iter().filter(inside).collect() }
}

/// Moves labels apart: same order, at least `gap` between them, none below `limit`; as near to their places as that
/// allows. Returns the new places in the order of the input.
pub fn spread(places: &[f64], gap: f64, limit: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
    let mut spread: Vec<f64> = order.iter().map(|i| places[*i]).collect();
    for i in 1..spread.len() {
        spread[i] = spread[i].max(spread[i - 1] + gap);
    }
    // What was pushed beyond the limit pushes back.
    let mut ceiling = limit;
    for place in spread.iter_mut().rev() {
        *place = place.min(ceiling);
        ceiling = *place - gap;
    }
    let mut result = vec![0.0; places.len()];
    for (place, i) in spread.into_iter().zip(order) {
        result[i] = place;
    }
    result
}

/// An SVG path through points; a missing one breaks the line.
pub fn path(points: impl IntoIterator<Item = Option<(f64, f64)>>) -> String {
    let mut text = String::new();
    let mut pen = "M";
    for point in points {
        match point {
            Some((x, y)) => {
                text.push_str(pen);
                tenths(&mut text, x);
                text.push(' ');
                tenths(&mut text, y);
                pen = "L";
            }
            None => pen = "M",
        }
    }
    text
}

/// Writes a number with one decimal. Live charts write thousands of them ten times a second, for which the way that
/// knows every number exactly is too slow.
fn tenths(text: &mut String, value: f64) {
    let tenths = (value * 10.0).round() as i64;
    let (sign, whole, rest) = (if tenths < 0 { "-" } else { "" }, tenths.abs() / 10, tenths.abs() % 10);
    // Writing into a text never fails.
    write!(text, "{sign}{whole}.{rest}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_steps_are_equal_ratios() {
        let range = Range { lo: 1.0, hi: 512.0 };
        let check = |value: f64, higher: u8, lower: u8| {
            assert_eq!(step(value, range, Better::Higher), higher, "{value}");
            assert_eq!(step(value, range, Better::Lower), lower, "{value}");
        };
        check(1.0, 0, 8);
        check(1.9, 0, 8);
        check(2.1, 1, 7);
        check(511.0, 8, 0);
        check(512.0, 8, 0);
        check(0.0, 0, 8);
        assert_eq!(step(5.0, Range { lo: 5.0, hi: 5.0 }, Better::Higher), 4);
        assert_eq!(step(0.0, Range { lo: 0.0, hi: 0.0 }, Better::Lower), 4);
        assert_eq!(step(0.0, Range { lo: 0.0, hi: 9.0 }, Better::Higher), 0);
    }

    #[test]
    fn each_step_begins_where_its_colour_begins() {
        let range = Range { lo: 180.0, hi: 4_201.0 };
        for better in [Better::Higher, Better::Lower] {
            for (n, start) in step_starts(range, better).into_iter().enumerate() {
                let inside = if better == Better::Lower { start * 0.999 } else { start * 1.001 };
                assert_eq!(usize::from(step(inside, range, better)), n, "{start}");
            }
        }
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let check = |lo: f64, hi: f64, kind, ticks: &[f64]| {
            assert_eq!(Axis::new(Range { lo, hi }, [0.0, 1.0], kind).ticks(), ticks);
        };
        check(0.0, 4_201.0, Kind::Linear, &[0.0, 1_000.0, 2_000.0, 3_000.0, 4_000.0]);
        check(0.0, 0.0, Kind::Linear, &[0.0]);
        check(1.0, 200.0, Kind::Log, &[1.0, 10.0, 100.0]);
        check(3.0, 60.0, Kind::Log, &[5.0, 10.0, 20.0, 50.0]);
    }

    #[test]
    fn times_are_marked_at_round_lengths() {
        assert_eq!(time_ticks(Range { lo: 0.726, hi: 164.9 }), [1.0, 10.0, 60.0]);
        assert_eq!(time_ticks(Range { lo: 0.003, hi: 0.04 }), [0.005, 0.01, 0.02]);
    }

    #[test]
    fn an_axis_maps_ends_to_ends() {
        let axis = Axis::new(Range { lo: 1.0, hi: 128.0 }, [48.0, 580.0], Kind::Log);
        assert!((axis.at(1.0) - 48.0).abs() < 1e-9);
        assert!((axis.at(128.0) - 580.0).abs() < 1e-9);
        assert!((axis.at(2.0) - 124.0).abs() < 1e-9);
        assert!((axis.value(124.0) - 2.0).abs() < 1e-9 && (axis.value(-9.0) - 1.0).abs() < 1e-9);
        let flat = Axis::new(Range { lo: 2.0, hi: 2.0 }, [0.0, 10.0], Kind::Log);
        assert!((flat.at(2.0) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn labels_keep_order_and_distance() {
        let places = spread(&[20.0, 10.0, 11.0, 99.0, 99.0], 12.0, 100.0);
        let mut sorted = places.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 12.0 - 1e-9), "{places:?}");
        assert!(places[1] < places[2] && places[2] < places[0]);
        assert!(sorted.last().is_some_and(|last| *last <= 100.0));
    }
}
