//! The simulator's clock: simulated time, stamps of the real clocks, and an alarm that is precise below a millisecond.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// A moment in simulated time: nanoseconds since the simulator started, `clock_factor` of them per real nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(transparent)]
pub struct SimTime(u64);

impl SimTime {
    /// The moment `nanos` simulated nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Simulated nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This moment plus `span` of simulated time.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Simulated time since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// One moment on the three clocks that a test may want to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stamp {
    /// `CLOCK_REALTIME`, nanoseconds since 1970: the clock of the kernel's receive stamps.
    pub realtime_ns: u64,
    /// `CLOCK_MONOTONIC`, nanoseconds: the clock behind `std::time::Instant` on Linux.
    pub monotonic_ns: u64,
    /// The simulator's own clock.
    pub simulated: SimTime,
}

/// Turns the machine's monotonic clock into simulated time.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimClock {
    start_ns: u64,
    factor: f64,
}

impl SimClock {
    /// Starts at simulated time zero; `factor` simulated seconds pass per real second.
    pub(super) fn start(factor: f64) -> Self {
        Self { start_ns: read(ClockId::CLOCK_MONOTONIC), factor }
    }

    pub(super) fn now(&self) -> SimTime {
        self.at(read(ClockId::CLOCK_MONOTONIC))
    }

    pub(super) fn stamp(&self) -> Stamp {
        let monotonic_ns = read(ClockId::CLOCK_MONOTONIC);
        Stamp { realtime_ns: read(ClockId::CLOCK_REALTIME), monotonic_ns, simulated: self.at(monotonic_ns) }
    }

    /// The `CLOCK_MONOTONIC` nanosecond at which simulated time has surely reached `time`.
    pub(super) fn monotonic_ns(&self, time: SimTime) -> u64 {
        self.start_ns.saturating_add((time.0 as f64 / self.factor).ceil() as u64)
    }

    /// Real nanoseconds by which `stamp` is after `due`.
    pub(super) fn lateness_ns(&self, stamp: &Stamp, due: SimTime) -> u64 {
        stamp.monotonic_ns.saturating_sub(self.monotonic_ns(due))
    }

    fn at(&self, monotonic_ns: u64) -> SimTime {
        SimTime((monotonic_ns.saturating_sub(self.start_ns) as f64 * self.factor) as u64)
    }
}

/// The machine's `CLOCK_MONOTONIC` now, in nanoseconds.
pub fn monotonic_now_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Seconds since 1970, for the `created` field of answers.
pub(super) fn unix_secs() -> u64 {
    read(ClockId::CLOCK_REALTIME) / 1_000_000_000
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("every unix has this clock");
    u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
}

/// Waits for a moment of `CLOCK_MONOTONIC`. The runtime's own timer rounds up to whole milliseconds, ten times the
/// lateness that the benchmarks allow, so Linux uses a timer file descriptor.
#[derive(Debug)]
pub(super) struct Alarm {
    #[cfg(target_os = "linux")]
    timer: tokio::io::unix::AsyncFd<linux::Timer>,
}

#[cfg(target_os = "linux")]
mod linux {
    //! The timer file descriptor behind the alarm.

    use std::io;
    use std::os::fd::{AsFd as _, AsRawFd, RawFd};
    use std::time::Duration;

    use nix::sys::time::TimeSpec;
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
    use tokio::io::unix::AsyncFd;

    #[derive(Debug)]
    pub(super) struct Timer(TimerFd);

    impl AsRawFd for Timer {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_fd().as_raw_fd()
        }
    }

    impl super::Alarm {
        #[expect(
            deprecated,
            reason = "its successor is unsafe for types that may swap their descriptor; `Timer` is private and never does"
        )]
        pub(in super::super) fn new() -> io::Result<Self> {
            let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
            let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
            let timer = AsyncFd::new(Timer(timer))?;
            Ok(Self { timer })
        }

        pub(super) async fn ring_at(&self, monotonic_ns: u64) -> io::Result<()> {
            // A zero time would switch the timer off.
            let moment = TimeSpec::from(Duration::from_nanos(monotonic_ns.max(1)));
            self.timer.get_ref().0.set(Expiration::OneShot(moment), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            loop {
                let mut ready = self.timer.readable().await?;
                if let Ok(result) = ready.try_io(|timer| timer.get_ref().0.wait().map_err(io::Error::from)) {
                    return result;
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {})
    }

    async fn ring_at(&self, _monotonic_ns: u64) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

impl Alarm {
    /// Returns at `monotonic_ns`, at once when that has passed; without a timer descriptor up to a millisecond later.
    /// Dropping the future is fine: the next call sets the timer anew, which also forgets an expiry that nobody read.
    pub(super) async fn until(&self, monotonic_ns: u64) {
        if self.ring_at(monotonic_ns).await.is_err() {
            let wait = monotonic_ns.saturating_sub(monotonic_now_ns());
            tokio::time::sleep(Duration::from_nanos(wait)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_runs_by_the_factor() {
        let clock = SimClock { start_ns: 1_000, factor: 20.0 };
        assert_eq!(clock.at(1_500), SimTime::from_nanos(10_000));
        assert_eq!(clock.monotonic_ns(SimTime::from_nanos(10_000)), 1_500);
        assert_eq!(clock.at(clock.monotonic_ns(SimTime::from_nanos(10_000))), SimTime::from_nanos(10_000));
        assert_eq!(clock.at(3), SimTime::from_nanos(0));
    }

    #[tokio::test]
    async fn the_alarm_never_rings_early() {
        let alarm = Alarm::new().unwrap();
        for wait_ns in [0, 300_000, 2_500_000] {
            let due = monotonic_now_ns() + wait_ns;
            alarm.until(due).await;
            assert!(monotonic_now_ns() >= due);
        }
    }

    #[tokio::test]
    async fn an_abandoned_alarm_can_be_set_again() {
        let alarm = Alarm::new().unwrap();
        let start = monotonic_now_ns();
        tokio::select! {
            biased;
            () = alarm.until(start + 3_600_000_000_000) => panic!("rang an hour early"),
            () = tokio::task::yield_now() => {}
        }
        alarm.until(start + 1_000_000).await;
        assert!(monotonic_now_ns() >= start + 1_000_000);
    }
}
