//! The run's clock: monotonic nanoseconds since the run began. Against the simulator it runs at the
//! simulator's own factor, so every time and rate of such a run is a simulated one.

use std::time::{Duration, Instant};

use speedmatrix_shared::units::Nanos;

/// A clock that started with a run, or goes on where an ended one stopped.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    at_start: Nanos,
    factor: f64,
}

impl Clock {
    /// A clock that starts now and counts real time.
    pub fn start() -> Self {
        Self { start: Instant::now(), at_start: Nanos(0), factor: 1.0 }
    }

    /// The same start, with `factor` simulated seconds per real second. Not finite or not positive: real time.
    #[must_use]
    pub fn with_factor(self, factor: f64) -> Self {
        Self { factor: if factor.is_finite() && factor > 0.0 { factor } else { 1.0 }, ..self }
    }

    /// The same clock, on which the start is `time`: a run that goes on keeps one line of time.
    #[must_use]
    pub const fn starting_at(self, time: Nanos) -> Self {
        Self { at_start: time, ..self }
    }

    /// Clock seconds per real second.
    pub const fn factor(self) -> f64 {
        self.factor
    }

    /// Now.
    pub fn now(self) -> Nanos {
        self.at(Instant::now())
    }

    /// A moment of this process as a time of the run; before the start is the start.
    pub fn at(self, instant: Instant) -> Nanos {
        self.at_start + self.length(instant.saturating_duration_since(self.start))
    }

    /// A real length of time as a length on this clock.
    pub fn length(self, real: Duration) -> Nanos {
        let nanos = u64::try_from(real.as_nanos()).unwrap_or(u64::MAX);
        // Exact where the clock is the real one; a float holds 53 bits, 104 days of nanoseconds.
        if self.is_real() { Nanos(nanos) } else { Nanos((nanos as f64 * self.factor) as u64) }
    }

    /// The moment of this process that is `time` on this clock; before the start is the start.
    pub fn instant(self, time: Nanos) -> Instant {
        self.start + self.real(time.since(self.at_start))
    }

    /// A length on this clock as a real length of time.
    pub fn real(self, length: Nanos) -> Duration {
        if self.is_real() {
            Duration::from_nanos(length.0)
        } else {
            Duration::from_nanos((length.0 as f64 / self.factor) as u64)
        }
    }

    /// Sleeps for a length on this clock.
    pub async fn sleep(self, length: Nanos) {
        tokio::time::sleep(self.real(length)).await;
    }

    /// Sleeps until a time on this clock.
    pub async fn sleep_until(self, time: Nanos) {
        tokio::time::sleep_until(self.instant(time).into()).await;
    }

    fn is_real(self) -> bool {
        (self.factor - 1.0).abs() < f64::EPSILON
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaled_clock_goes_there_and_back() {
        let check = |factor: f64, start: Nanos, time: Nanos, wanted: Nanos| {
            let clock = Clock::start().with_factor(factor).starting_at(start);
            let back = clock.at(clock.instant(time));
            assert!(back.0.abs_diff(wanted.0) <= 1 + factor as u64, "factor {factor} from {start:?}: {back:?}");
            assert!(clock.now() >= start, "factor {factor} from {start:?}");
        };
        let (half, whole) = (Nanos::from_secs(30), Nanos::from_secs(60));
        check(1.0, Nanos(0), half, half);
        check(40.0, Nanos(0), half, half);
        check(f64::NAN, Nanos(0), half, half);
        check(1.0, half, whole, whole);
        check(40.0, half, whole, whole);
        check(40.0, whole, half, whole);
    }
}
