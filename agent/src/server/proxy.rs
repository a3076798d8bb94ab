//! A proxy that tells by headers who asks, and whether they asked encrypted. Only its own word counts: anybody can send a
//! header.

use std::{net::IpAddr, str::FromStr};

use axum::http::{HeaderMap, HeaderName, header};
use speedmatrix_shared::api::Role;

use super::listen::Peer;

/// What every client sends says nothing of who asks.
const SENT_BY_ALL: [HeaderName; 14] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::AUTHORIZATION,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::HOST,
    header::ORIGIN,
    header::REFERER,
    header::TE,
    header::UPGRADE,
    header::USER_AGENT,
];

/// By which header proxies say how they were asked: `https`, or `http`.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// A proxy whose word is taken for how it is asked, and maybe for who asks.
#[derive(Debug, Clone)]
pub struct TrustedProxy {
    from: Vec<Network>,
    names: Option<Names>,
}

/// How it tells who asks.
#[derive(Debug, Clone)]
struct Names {
    header: HeaderName,
    role: Role,
}

impl TrustedProxy {
    /// A proxy that asks from one of `from`.
    pub const fn new(from: Vec<Network>) -> Self {
        Self { from, names: None }
    }

    /// Whoever it names by `header` has `role` for all runs.
    pub fn naming(self, header: HeaderName, role: Role) -> Result<Self, String> {
        if SENT_BY_ALL.contains(&header) {
            return Err(format!(
                "{header} is sent by everybody: give the header that your proxy sets after it knows who asks"
            ));
        }
        Ok(Self { names: Some(Names { header, role }), ..self })
    }

    /// What whoever asks may do by its word: one name in the header, from the proxy itself.
    pub(super) fn role(&self, headers: &HeaderMap, peer: Option<Peer>) -> Option<Role> {
        let names = self.names.as_ref()?;
        let name = self.word(&names.header, headers, peer)?;
        name.iter().any(|byte| !byte.is_ascii_whitespace()).then_some(names.role)
    }

    /// Whether it says that it was asked encrypted.
    pub(super) fn is_encrypted(&self, headers: &HeaderMap, peer: Option<Peer>) -> bool {
        self.word(&FORWARDED_PROTO, headers, peer).is_some_and(|proto| proto.eq_ignore_ascii_case(b"https"))
    }

    /// What it says by a header that is there once: two are the client's and the proxy's, and nobody knows which is which.
    fn word<'a>(&self, header: &HeaderName, headers: &'a HeaderMap, peer: Option<Peer>) -> Option<&'a [u8]> {
        let Peer(peer) = peer?;
        let mut values = headers.get_all(header).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        self.from.iter().any(|network| network.holds(peer)).then_some(value.as_bytes())
    }
}

/// An address, or a network of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// Leading bits that all its addresses have in common.
    bits: u8,
}

impl Network {
    fn holds(self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(of), IpAddr::V4(one)) => common(32, self.bits, (of.to_bits() ^ one.to_bits()).into()),
            (IpAddr::V6(of), IpAddr::V6(one)) => common(128, self.bits, of.to_bits() ^ one.to_bits()),
            _ => false,
        }
    }
}

/// Whether of numbers with `width` bits, which differ as `difference` says, the first `bits` are the same.
const fn common(width: u8, bits: u8, difference: u128) -> bool {
    bits == 0 || difference >> (width - bits) == 0
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no address: write 127.0.0.1, ::1, or a network as 10.0.0.0/8");
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_no_address| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), str::parse).map_err(|_no_number| wrong())?;
        if bits > width {
            return Err(wrong());
        }
        Ok(Self { address, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_addresses_only() {
        let check = |network: &str, address: &str, wanted: bool| {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.holds(address.parse().unwrap()), wanted, "{network:?} {address}");
        };
        check("127.0.0.1", "127.0.0.1", true);
        check("127.0.0.1", "::ffff:127.0.0.1", true);
        check("127.0.0.1", "127.0.0.2", false);
        check("127.0.0.1", "::1", false);
        check("10.1.0.0/16", "10.1.255.255", true);
        check("10.1.0.0/16", "10.2.0.0", false);
        check("10.1.2.3/8", "10.200.0.1", true);
        check("0.0.0.0/0", "192.0.2.1", true);
        check("0.0.0.0/0", "2001:db8::1", false);
        check("2001:db8::/32", "2001:db8:1::1", true);
        check("2001:db8::/32", "2001:db9::1", false);
        check("::/0", "2001:db9::1", true);
        for wrong in ["", "localhost", "10.0.0.0/33", "::1/129", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8/8", "1.2.3"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_every_client_sends_names_nobody() {
        let from: Vec<Network> = vec!["127.0.0.1".parse().unwrap()];
        let proxy = TrustedProxy::new(from);
        let wrong = proxy.clone().naming(header::USER_AGENT, Role::Viewer).unwrap_err();
        assert_eq!(
            wrong,
            "user-agent is sent by everybody: give the header that your proxy sets after it knows who asks"
        );
        assert!(proxy.naming(HeaderName::from_static("x-remote-user"), Role::Viewer).is_ok());
    }
}
