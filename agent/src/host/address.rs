//! Whether a target is on this machine.

use std::{
    collections::BTreeSet,
    net::{IpAddr, ToSocketAddrs as _},
};

use nix::ifaddrs::getifaddrs;
use speedmatrix_shared::plan::TargetUrl;
use url::Host;

use super::process::Unknown;

/// Where a target is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Here {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) port: u16,
}

/// The target's addresses that are this machine's. Names are looked up, which may take its time.
pub(super) fn here(target: &TargetUrl) -> Result<Here, Unknown> {
    let url = url::Url::parse(target.as_str()).map_err(|_never_was_asked| Unknown::NotHere)?;
    let port = url.port_or_known_default().ok_or(Unknown::NotHere)?;
    let addresses: Vec<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(name)) => {
            (name, port).to_socket_addrs().into_iter().flatten().map(|address| address.ip()).collect()
        }
        None => Vec::new(),
    };
    let own = own();
    let is_own = |address: &IpAddr| address.is_unspecified() || address.is_loopback() || own.contains(address);
    let addresses: Vec<IpAddr> = addresses.into_iter().map(|address| address.to_canonical()).filter(is_own).collect();
    if addresses.is_empty() { Err(Unknown::NotHere) } else { Ok(Here { addresses, port }) }
}

/// The addresses of this machine's network cards.
pub(super) fn own() -> BTreeSet<IpAddr> {
    let cards = getifaddrs().into_iter().flatten().filter_map(|card| card.address);
    let address = |address: nix::sys::socket::SockaddrStorage| {
        let four = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        four.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    };
    cards.filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::plan::draft::parse_target;

    use super::*;

    #[test]
    fn a_target_is_here_or_elsewhere() {
        let check = |url: &str, wanted: Option<u16>| {
            assert_eq!(here(&parse_target(url).unwrap()).ok().map(|here| here.port), wanted, "{url}");
        };
        check("http://127.0.0.1:8000", Some(8_000));
        check("http://127.9.9.9", Some(80));
        check("http://[::1]:8000", Some(8_000));
        check("http://localhost:1234", Some(1_234));
        // Reserved for documentation (RFC 5737), and never a name (RFC 2606).
        check("http://192.0.2.7:8000", None);
        check("http://no-such-host.invalid", None);
    }
}
