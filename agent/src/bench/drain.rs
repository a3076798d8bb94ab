//! Waits until the engine is idle before a cell: requests that were cut may live on in it.

use speedmatrix_shared::units::Nanos;

use super::gauges::Scraper;
use crate::{client::prometheus::EngineGauges, clock::Clock};

/// Between two looks at the engine.
const LOOK_EVERY: Nanos = Nanos::from_millis(200);
/// How long it must have been idle.
const STABLE_FOR: Nanos = Nanos::from_millis(500);
/// Looks in a row without an answer after which the engine's gauges are given up for this cell.
const MOST_GAPS: u32 = 10;
/// Pause where the engine doesn't tell.
const BLIND_PAUSE: Nanos = Nanos::from_secs(1);

/// How the waiting ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drained {
    /// The engine says that it is idle.
    Idle,
    /// It doesn't tell; a pause was made instead.
    Unknown,
    /// It did not become idle in time.
    Busy {
        /// Requests being worked on at the end.
        running: f64,
        /// Requests that wait at the end.
        waiting: f64,
    },
}

/// Waits for an idle engine, at most `limit`.
pub(super) async fn drain(scraper: Option<&Scraper>, clock: Clock, limit: Nanos) -> Drained {
    let Some(scraper) = scraper else {
        clock.sleep(BLIND_PAUSE).await;
        return Drained::Unknown;
    };
    let mut watch = Watch::new(clock.now(), limit);
    loop {
        let look = scraper.look().await.ok();
        if let Some(end) = watch.look(clock.now(), look.as_ref()) {
            return end;
        }
        clock.sleep(LOOK_EVERY).await;
    }
}

/// The rule behind it, pure.
#[derive(Debug)]
pub struct Watch {
    deadline: Nanos,
    idle_since: Option<Nanos>,
    gaps: u32,
    busy: (f64, f64),
}

impl Watch {
    /// A watch that begins at `now` and lasts at most `limit`.
    pub const fn new(now: Nanos, limit: Nanos) -> Self {
        Self { deadline: Nanos(now.0.saturating_add(limit.0)), idle_since: None, gaps: 0, busy: (0.0, 0.0) }
    }

    /// Takes in a look at the engine; how the waiting ended, if it did.
    pub fn look(&mut self, now: Nanos, gauges: Option<&EngineGauges>) -> Option<Drained> {
        let told = gauges.filter(|gauges| gauges.running.is_some() || gauges.waiting.is_some());
        match told.map(|gauges| (gauges.running.unwrap_or(0.0), gauges.waiting.unwrap_or(0.0))) {
            None => {
                self.gaps += 1;
                self.idle_since = None;
                return (self.gaps >= MOST_GAPS).then_some(Drained::Unknown);
            }
            Some((running, waiting)) if running + waiting <= 0.0 => {
                let since = *self.idle_since.get_or_insert(now);
                if now.since(since) >= STABLE_FOR {
                    return Some(Drained::Idle);
                }
            }
            Some(load) => {
                self.busy = load;
                self.idle_since = None;
            }
        }
        self.gaps = 0;
        let (running, waiting) = self.busy;
        (now >= self.deadline && self.idle_since.is_none()).then_some(Drained::Busy { running, waiting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::prometheus::EngineKind;

    fn gauges(load: Option<(f64, f64)>) -> EngineGauges {
        EngineGauges {
            running: load.map(|(running, _)| running),
            waiting: load.map(|(_, waiting)| waiting),
            ..EngineGauges::unknown(EngineKind::Vllm)
        }
    }

    /// Feeds a look every 500 ms; returns when and how it ended.
    fn check(limit_secs: u64, loads: &[Option<(f64, f64)>]) -> Option<(u64, Drained)> {
        let mut watch = Watch::new(Nanos(0), Nanos::from_secs(limit_secs));
        loads.iter().zip(0..).find_map(|(load, n)| {
            let end = watch.look(Nanos::from_millis(n * 500), Some(&gauges(*load)))?;
            Some((n * 500, end))
        })
    }

    #[test]
    fn idle_must_last() {
        let (busy, idle) = (Some((8.0, 0.0)), Some((0.0, 0.0)));
        assert_eq!(check(10, &[busy, idle, idle]), Some((1_000, Drained::Idle)));
        assert_eq!(check(10, &[idle, busy, idle, idle]), Some((1_500, Drained::Idle)));
        assert_eq!(check(10, &[idle, None, idle]), None, "a gap is not idle");
        assert_eq!(check(10, &[Some((0.0, 3.0)), idle, idle]), Some((1_000, Drained::Idle)));
    }

    #[test]
    fn an_engine_that_stays_busy_is_given_up_at_the_limit() {
        let end = check(2, &[Some((2.0, 1.0)); 8]);
        assert_eq!(end, Some((2_000, Drained::Busy { running: 2.0, waiting: 1.0 })));
    }

    #[test]
    fn an_engine_that_tells_nothing_is_not_waited_for() {
        assert_eq!(check(300, &[None; 12]), Some((4_500, Drained::Unknown)));
    }
}
