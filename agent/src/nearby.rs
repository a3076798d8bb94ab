//! Model servers that already run on this machine: each port that is listened on is asked for its model list, few at a
//! time, briefly, and not again for some seconds. Nothing outside of this machine is ever asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use speedmatrix_shared::{
    found::{Access, FoundServer},
    plan::draft::parse_target,
};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};

use crate::{
    client::{
        Target,
        http::{Answer, Http},
        probe::probe,
    },
    engine::known::MODELS_PATH,
    host::listening::{NotShown, listening},
};

/// Ports that are asked at the same time.
const AT_ONCE: usize = 8;
/// Ports of one machine that are looked at, the lowest ones.
const MOST_PORTS: usize = 256;
/// How long a port may take to show that it has a model list.
const LIST_LIMIT: Duration = Duration::from_secs(2);
/// How long a server may take to tell what it is.
const PROBE_LIMIT: Duration = Duration::from_secs(4);
/// How long a look may take; who has not answered until then is asked the next time.
const LOOK_LIMIT: Duration = Duration::from_secs(8);
/// How long what was found at a port counts: a server may change its model at any time.
const SERVER_COUNTS: Duration = Duration::from_secs(5);
/// The same where there was no model server: what isn't one hardly becomes one, and may write each question to its log.
const OTHER_COUNTS: Duration = Duration::from_secs(15);
/// Ports of well-known services that speak no HTTP (IANA). Some of them shut out who talks to them wrongly.
const NOT_HTTP: &[u16] = &[
    21, 22, 23, 25, 53, 110, 111, 135, 139, 143, 389, 445, 465, 587, 636, 993, 995, 1_433, 1_521, 1_883, 2_049, 3_306,
    3_389, 5_432, 5_672, 5_900, 6_379, 9_092, 11_211, 27_017,
];

/// What is known of a port.
#[derive(Debug, Clone)]
struct Seen {
    at: Instant,
    address: IpAddr,
    server: Option<FoundServer>,
}

impl Seen {
    /// Whether it still counts for a listener at `address`.
    fn counts(&self, address: IpAddr, now: Instant) -> bool {
        let limit = if self.server.is_some() { SERVER_COUNTS } else { OTHER_COUNTS };
        self.address == address && now.duration_since(self.at) < limit
    }
}

/// Which ports may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All but the agent's own.
    Without(u16),
    /// These.
    Among(BTreeSet<u16>),
}

/// The model servers of this machine.
#[derive(Debug)]
pub struct Nearby {
    /// Ports that may be asked.
    scope: Scope,
    seen: RwLock<BTreeMap<u16, Seen>>,
    /// One look at a time.
    looking: tokio::sync::Mutex<()>,
}

impl Nearby {
    /// Nothing is known yet.
    pub fn new(scope: Scope) -> Self {
        Self { scope, seen: RwLock::default(), looking: tokio::sync::Mutex::default() }
    }

    /// What is known without asking anybody, by port.
    pub fn known(&self) -> Vec<FoundServer> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.values().filter_map(|seen| seen.server.clone()).collect()
    }

    /// Looks at every port that was not looked at in the last seconds, and tells the servers by port.
    pub async fn look(&self) -> Result<Vec<FoundServer>, NotShown> {
        let _alone = self.looking.lock().await;
        let listed = tokio::task::spawn_blocking(listening).await;
        let ports = listed.map_err(|_the_runtime_ends| NotShown)??;
        let ports: BTreeMap<u16, IpAddr> =
            ports.into_iter().filter(|(port, _)| self.is_asked(*port)).take(MOST_PORTS).collect();
        for (address, server) in ask_all(self.due(&ports)).await {
            let seen = Seen { at: Instant::now(), address: address.ip(), server };
            self.seen.write().unwrap_or_else(PoisonError::into_inner).insert(address.port(), seen);
        }
        Ok(self.known())
    }

    fn is_asked(&self, port: u16) -> bool {
        let in_scope = match &self.scope {
            Scope::Without(own) => port != *own,
            Scope::Among(ports) => ports.contains(&port),
        };
        in_scope && !NOT_HTTP.contains(&port)
    }

    /// Forgets ports that nobody listens on any more; gives those to be asked.
    fn due(&self, ports: &BTreeMap<u16, IpAddr>) -> Vec<SocketAddr> {
        let now = Instant::now();
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|port, _| ports.contains_key(port));
        let counts = |port: &u16, address: IpAddr| seen.get(port).is_some_and(|seen| seen.counts(address, now));
        let due = ports.iter().filter(|(port, address)| !counts(port, **address));
        due.map(|(port, address)| SocketAddr::new(*address, *port)).collect()
    }
}

/// Asks all of them, few at a time; those that did not get their turn in time are missing.
async fn ask_all(addresses: Vec<SocketAddr>) -> Vec<(SocketAddr, Option<FoundServer>)> {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut asked = JoinSet::new();
    for address in addresses {
        let places = Arc::clone(&places);
        asked.spawn(async move {
            // It is never closed.
            let _place = places.acquire().await.ok()?;
            Some((address, ask(address).await))
        });
    }
    let mut answers = Vec::new();
    let end = Instant::now() + LOOK_LIMIT;
    while let Ok(Some(answer)) = tokio::time::timeout_at(end, asked.join_next()).await {
        answers.extend(answer.ok().flatten());
    }
    answers
}

/// The model server at an address, if there is one. What has no model list gets this one question only.
async fn ask(address: SocketAddr) -> Option<FoundServer> {
    let url = parse_target(&format!("http://{address}")).ok()?;
    let target = Target { url, key: None };
    let list = Http::new(&target).ok()?.get_within(MODELS_PATH, LIST_LIMIT).await.ok()?;
    let url = target.url.as_str().to_owned();
    let unnamed = |access| FoundServer { url: url.clone(), port: address.port(), engine: None, model: None, access };
    match access(&list)? {
        Access::WantsKey => Some(unnamed(Access::WantsKey)),
        Access::Open => match tokio::time::timeout(PROBE_LIMIT, probe(&target, None)).await {
            Ok(found) => found.ok().map(|found| FoundServer::of(url.clone(), address.port(), found.facts)),
            // It has a model list; a busy server may be slow to tell the rest.
            Err(_) => Some(unnamed(Access::Open)),
        },
    }
}

/// Whether an answer is that of a model server; `None`: it is not.
fn access(answer: &Answer) -> Option<Access> {
    let is_json = answer.content_type.ends_with("json");
    match answer.status {
        200..=299 if is_json => Some(Access::Open),
        401 | 403 if is_json => Some(Access::WantsKey),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_in_json_is_a_model_servers() {
        let check = |status, kind: &str, wanted| {
            let answer = Answer {
                status,
                content_type: kind.into(),
                location: None,
                server: None,
                headers: BTreeSet::new(),
                body: String::new(),
            };
            assert_eq!(access(&answer), wanted, "{status} {kind}");
        };
        check(200, "application/json", Some(Access::Open));
        check(401, "application/json", Some(Access::WantsKey));
        check(200, "text/html", None);
        check(401, "text/html", None);
        check(404, "application/json", None);
    }

    #[test]
    fn a_port_is_asked_again_only_after_some_time_or_for_another_listener() {
        let nearby = Nearby::new(Scope::Without(7_878));
        assert!(!nearby.is_asked(7_878) && !nearby.is_asked(22) && nearby.is_asked(8_000));
        let [here, there]: [IpAddr; 2] = ["127.0.0.1", "10.0.0.5"].map(|address| address.parse().unwrap());
        let seen = Seen { at: Instant::now(), address: here, server: None };
        nearby.seen.write().unwrap().extend([(8_000, seen.clone()), (8_001, seen)]);
        let due = |ports: &[(u16, IpAddr)]| nearby.due(&ports.iter().copied().collect());
        assert_eq!(due(&[(8_000, here), (8_001, there)]), [SocketAddr::new(there, 8_001)]);
        assert_eq!(due(&[(8_000, here)]), []);
        assert!(!nearby.seen.read().unwrap().contains_key(&8_001), "nobody listens there any more");
    }
}
