//! From numbers to places and colours, and what only charts over time need of it. Pure: no drawing in here.

pub use speedmatrix_shared::scale::{Axis, Kind, Range, STEPS, path, spread, step, step_starts, time_ticks};

/// Round moments within a range of a clock, in seconds; about five.
pub fn clock_ticks(Range { lo, hi }: Range) -> Vec<f64> {
    const STEPS_S: [f64; 12] = [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0];
    let rough = (hi - lo) / 5.0;
    let step = STEPS_S.into_iter().find(|step| *step >= rough).unwrap_or(36_000.0);
    let first = (lo / step).ceil() as i64;
    (first..first + 8).map(|n| n as f64 * step).take_while(|tick| *tick <= hi).collect()
}

/// Thins points out to at most a low and a high one per pixel column, so that no peak is lost. Missing points stay.
pub fn decimate(points: impl IntoIterator<Item = (f64, Option<f64>)>) -> Vec<Option<(f64, f64)>> {
    let mut thin: Vec<Option<(f64, f64)>> = Vec::new();
    let mut column: Option<(f64, f64, f64)> = None;
    let flush = |thin: &mut Vec<Option<(f64, f64)>>, column: &mut Option<(f64, f64, f64)>| {
        if let Some((x, lo, hi)) = column.take() {
            thin.push(Some((x, lo)));
            if hi > lo {
                thin.push(Some((x, hi)));
            }
        }
    };
    for (x, y) in points {
        let Some(y) = y else {
            flush(&mut thin, &mut column);
            thin.push(None);
            continue;
        };
        match &mut column {
            Some((at, lo, hi)) if at.floor() as i64 == x.floor() as i64 => {
                *lo = lo.min(y);
                *hi = hi.max(y);
            }
            _ => {
                flush(&mut thin, &mut column);
                column = Some((x, y, y));
            }
        }
    }
    flush(&mut thin, &mut column);
    thin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_marked_at_round_times() {
        assert_eq!(clock_ticks(Range { lo: 100.0, hi: 700.0 }), [120.0, 240.0, 360.0, 480.0, 600.0]);
    }

    #[test]
    fn thinning_keeps_peaks_and_gaps() {
        let thin = decimate([(0.1, Some(1.0)), (0.5, Some(9.0)), (0.9, Some(3.0)), (1.2, None), (2.0, Some(4.0))]);
        assert_eq!(thin, [Some((0.1, 1.0)), Some((0.1, 9.0)), None, Some((2.0, 4.0))]);
        assert_eq!(path(thin), "M0.1 1.0L0.1 9.0M2.0 4.0");
    }
}
