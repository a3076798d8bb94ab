//! How many connections there are, in all and of each address.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Router,
    http::{StatusCode, header},
};

use crate::server::error::Refusal;

/// Connections beyond the limits that are told why, at once. Further ones are closed without a word.
const STANDING: usize = 32;
/// How often the log says that there are too many.
const SAY_EVERY: Duration = Duration::from_mins(1);

/// All places.
#[derive(Debug)]
pub(super) struct Seats {
    all: usize,
    per_address: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    seated: usize,
    standing: usize,
    of: HashMap<IpAddr, usize>,
    said: Option<Instant>,
}

/// Why a connection gets no answer to what it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// All places are taken.
    All,
    /// The client's address has as many as one may.
    Address,
}

impl Full {
    const fn words(self) -> &'static str {
        match self {
            Self::All => "this agent has as many connections as it takes: close pages that you don't need, or wait",
            Self::Address => "your address has as many connections to this agent as one may: close pages, or wait",
        }
    }

    /// Answers everything with why.
    pub(super) fn app(self) -> Router {
        let refuse = move || async move {
            let why = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_connections", self.words());
            ([(header::CONNECTION, "close")], why)
        };
        Router::new().fallback(refuse)
    }
}

/// A connection's place, for as long as it lives.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    counted_as: Option<IpAddr>,
    refusal: Option<Full>,
}

impl Seat {
    /// Why whoever sits here is only told that there is no place.
    pub(super) const fn refusal(&self) -> Option<Full> {
        self.refusal
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if self.refusal.is_some() {
            taken.standing -= 1;
            return;
        }
        taken.seated -= 1;
        if let Some(address) = self.counted_as
            && let Some(of) = taken.of.get_mut(&address)
        {
            *of -= 1;
            if *of == 0 {
                taken.of.remove(&address);
            }
        }
    }
}

impl Seats {
    pub(super) fn new(all: usize, per_address: usize) -> Self {
        Self { all, per_address, taken: Mutex::default() }
    }

    /// A place for a connection from `address`; none where not even a refusal can be told.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Seat> {
        let counted_as = counted_as(address);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of = counted_as.map_or(0, |address| taken.of.get(&address).copied().unwrap_or(0));
        let refusal = if taken.seated >= self.all {
            Some(Full::All)
        } else if of >= self.per_address {
            Some(Full::Address)
        } else {
            None
        };
        if let Some(why) = refusal {
            taken.say(why, address);
            if taken.standing >= STANDING {
                return None;
            }
            taken.standing += 1;
        } else {
            taken.seated += 1;
            if let Some(address) = counted_as {
                *taken.of.entry(address).or_default() += 1;
            }
        }
        Some(Seat { seats: Arc::clone(self), counted_as, refusal })
    }
}

impl Taken {
    fn say(&mut self, why: Full, address: IpAddr) {
        if self.is_time_to_say(Instant::now()) {
            let seated = self.seated;
            tracing::warn!("a connection of {address} was refused, {seated} are open ({why:?}); said once a minute");
        }
    }

    fn is_time_to_say(&mut self, now: Instant) -> bool {
        let is_time = self.said.is_none_or(|said| now.duration_since(said) >= SAY_EVERY);
        if is_time {
            self.said = Some(now);
        }
        is_time
    }
}

/// What an address is counted as. Whoever has one of IPv6 has a network of 2^64 of them.
fn counted_as(address: IpAddr) -> Option<IpAddr> {
    let address = address.to_canonical();
    let network = match address {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        IpAddr::V4(_) => address,
    };
    (!address.is_loopback()).then_some(network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Limits;

    #[test]
    fn places_are_counted_in_all_and_by_address_and_come_back() {
        let seats = Arc::new(Seats::new(3, 2));
        let take = |address: &str| seats.take(address.parse().unwrap());
        let one = take("192.0.2.1").unwrap();
        let two = take("::ffff:192.0.2.1").unwrap();
        assert_eq!((one.refusal(), two.refusal()), (None, None));
        assert_eq!(take("192.0.2.1").unwrap().refusal(), Some(Full::Address));
        let other = take("2001:db8::1").unwrap();
        assert_eq!(take("127.0.0.1").unwrap().refusal(), Some(Full::All));
        drop(one);
        assert_eq!(take("192.0.2.1").unwrap().refusal(), None);
        drop((two, other));
        assert!(seats.taken.lock().unwrap().of.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address_and_this_machine_as_none() {
        let seats = Arc::new(Seats::new(100, 1));
        let take = |address: &str| seats.take(address.parse().unwrap()).unwrap();
        let _kept = take("2001:db8::1");
        assert_eq!(take("2001:db8::2").refusal(), Some(Full::Address));
        assert_eq!(take("2001:db8:0:1::1").refusal(), None);
        let local = [take("127.0.0.1"), take("127.0.0.1"), take("::1")];
        assert!(local.iter().all(|seat| seat.refusal().is_none()));
    }

    #[test]
    fn an_address_has_half_of_all_places() {
        let limits = Limits::default();
        let seats = Arc::new(Seats::new(limits.connections, limits.per_address));
        let take = |address: &str| seats.take(address.parse().unwrap()).unwrap();
        let mut kept: Vec<Seat> = (0..256).map(|_| take("192.0.2.1")).collect();
        assert_eq!(take("192.0.2.1").refusal(), Some(Full::Address));
        kept.extend((0..256).map(|_| take("192.0.2.2")));
        assert!(kept.iter().all(|seat| seat.refusal().is_none()));
        assert_eq!(take("192.0.2.3").refusal(), Some(Full::All));
    }

    #[test]
    fn the_log_is_told_once_a_minute() {
        let (mut taken, start) = (Taken::default(), Instant::now());
        let at = [0, 1, 59, 60, 61, 119, 120];
        let told: Vec<u64> =
            at.into_iter().filter(|secs| taken.is_time_to_say(start + Duration::from_secs(*secs))).collect();
        assert_eq!(told, [0, 60, 120]);
    }

    #[test]
    fn those_that_are_refused_are_few() {
        let seats = Arc::new(Seats::new(0, 0));
        let kept: Vec<Option<Seat>> = (0..=STANDING).map(|_| seats.take("192.0.2.1".parse().unwrap())).collect();
        assert_eq!(kept.iter().flatten().count(), STANDING);
    }
}
