//! Which ports of this machine somebody listens on, and at which address each is reached from here.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;

/// This operating system does not show who listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this operating system does not show which ports are listened on: type the server's address")]
pub struct NotShown;

/// Ports that are listened on in this machine's own network, with an address of this machine that reaches each. Never an
/// address of another machine.
#[cfg(target_os = "linux")]
pub fn listening() -> Result<BTreeMap<u16, IpAddr>, NotShown> {
    use procfs::{net::TcpState, process::Process};

    let myself = Process::myself().map_err(|_no_proc_here| NotShown)?;
    // Version 6 may be switched off; version 4 hardly is.
    let tables = [myself.tcp(), myself.tcp6()];
    if tables.iter().all(Result::is_err) {
        return Err(NotShown);
    }
    let own = super::address::own();
    let entries = tables.into_iter().flatten().flatten().filter(|entry| entry.state == TcpState::Listen);
    Ok(reached(entries.map(|entry| (entry.local_address.ip(), entry.local_address.port())), &own))
}

/// See the one for Linux.
#[cfg(not(target_os = "linux"))]
pub fn listening() -> Result<BTreeMap<u16, IpAddr>, NotShown> {
    Err(NotShown)
}

/// By port: of several addresses the loopback's, version 4 first.
#[cfg(target_os = "linux")]
fn reached(bound: impl Iterator<Item = (IpAddr, u16)>, own: &BTreeSet<IpAddr>) -> BTreeMap<u16, IpAddr> {
    let mut ports: BTreeMap<u16, IpAddr> = BTreeMap::new();
    for (address, port) in bound {
        let Some(address) = reaching(address, own).filter(|_| port > 0) else { continue };
        let known = ports.entry(port).or_insert(address);
        if preference(address) < preference(*known) {
            *known = address;
        }
    }
    ports
}

/// From where a socket is reached that is bound to an address: one that listens everywhere, also on the loopback.
#[cfg(target_os = "linux")]
fn reaching(bound: IpAddr, own: &BTreeSet<IpAddr>) -> Option<IpAddr> {
    match bound.to_canonical() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Some(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Some(Ipv6Addr::LOCALHOST.into()),
        // A link-local address is none without the name of its network card.
        IpAddr::V6(address) if address.is_unicast_link_local() => None,
        address => (address.is_loopback() || own.contains(&address)).then_some(address),
    }
}

#[cfg(target_os = "linux")]
fn preference(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(four) if four.is_loopback() => 0,
        IpAddr::V6(six) if six.is_loopback() => 1,
        IpAddr::V4(_) => 2,
        IpAddr::V6(_) => 3,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn each_port_is_reached_at_an_address_of_this_machine() {
        let own = BTreeSet::from(["10.0.0.5".parse().unwrap()]);
        let check = |bound: &[&str], wanted: Option<&str>| {
            let bound = bound.iter().map(|address| (address.parse().unwrap(), 8_000));
            let found = reached(bound, &own).get(&8_000).map(ToString::to_string);
            assert_eq!(found.as_deref(), wanted);
        };
        check(&["0.0.0.0"], Some("127.0.0.1"));
        check(&["::"], Some("::1"));
        check(&["::", "0.0.0.0"], Some("127.0.0.1"));
        check(&["::ffff:127.0.0.1"], Some("127.0.0.1"));
        check(&["10.0.0.5"], Some("10.0.0.5"));
        check(&["10.0.0.5", "127.0.0.53"], Some("127.0.0.53"));
        check(&["192.0.2.7"], None);
        check(&["fe80::1"], None);
    }

    #[test]
    fn a_listener_of_this_program_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listening().unwrap().get(&port), Some(&Ipv4Addr::LOCALHOST.into()));
        drop(listener);
    }
}
