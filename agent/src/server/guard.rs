//! Who may ask. A page of another site must reach nothing here, neither under a foreign name that was made to point
//! to this machine (DNS rebinding), nor by sending a request across sites.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use speedmatrix_shared::api::path;

use super::error::Refusal;

/// Names under which this agent may be asked: this machine's own, the bound address, and those that were allowed.
#[derive(Debug, Clone)]
pub struct AllowedHosts {
    bound: IpAddr,
    port: u16,
    names: Vec<String>,
    schemes: &'static [&'static str],
}

impl AllowedHosts {
    /// An agent at `bound` that may also be asked under `names` (without a port).
    pub fn new(bound: SocketAddr, names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter().map(|name| name.trim().trim_end_matches('.').to_ascii_lowercase()).collect();
        Self { bound: bound.ip(), port: bound.port(), names, schemes: &["http", "https"] }
    }

    /// Of an agent that encrypts: a page that came openly is not its own, whoever is between may have made it.
    #[must_use]
    pub(super) fn encrypted(self) -> Self {
        Self { schemes: &["https"], ..self }
    }

    /// The port that this agent listens on.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Ports are not looked at: behind a tunnel they differ, and a rebound name can choose its port anyway.
    fn allows(&self, authority: &Authority) -> bool {
        let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
        if host == "localhost" || self.names.contains(&host) {
            return true;
        }
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            // An agent that listens everywhere is bound to each of its addresses; an address can't be rebound.
            Ok(address) => address.is_loopback() || address == self.bound || self.bound.is_unspecified(),
            Err(_) => false,
        }
    }

    /// Browsers name the origin of whatever acts; what is no browser names none and can't be misled.
    fn is_own_page(&self, headers: &HeaderMap, host: &Authority) -> bool {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = origins.next() else { return true };
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        let own = origin.filter(|(scheme, _)| self.schemes.contains(scheme));
        own.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host.as_str())) && origins.next().is_none()
    }
}

/// Refuses a foreign host name on every path, and a foreign origin on whatever acts or listens.
pub(super) async fn check(State(hosts): State<Arc<AllowedHosts>>, request: Request, next: Next) -> Response {
    match verdict(&hosts, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn verdict(hosts: &AllowedHosts, request: &Request) -> Result<(), Refusal> {
    let foreign = |name: &str| {
        let detail = format!("this agent is not asked under the name \"{name}\": start it with --allow-host NAME");
        Refusal::new(StatusCode::MISDIRECTED_REQUEST, "host_not_allowed", detail)
    };
    let headers = request.headers();
    let named = headers.get_all(header::HOST).iter().map(|host| host.to_str().ok().and_then(|h| h.parse().ok()));
    let named: Vec<Option<Authority>> = named.chain(request.uri().authority().cloned().map(Some)).collect();
    let mut host = None;
    for name in named {
        let name = name.ok_or_else(|| foreign("?"))?;
        if !hosts.allows(&name) {
            return Err(foreign(name.host()));
        }
        host = Some(name);
    }
    let host = host.ok_or_else(|| foreign(""))?;
    let acts = !matches!(*request.method(), Method::GET | Method::HEAD) || headers.contains_key(header::UPGRADE);
    // Nobody who leads here from elsewhere needs more than the page: even what only tells may cost, or look around.
    let is_page = !["/api/", path::METRICS].iter().any(|tells| request.uri().path().starts_with(tells));
    if (acts && !hosts.is_own_page(headers, &host)) || (!is_page && is_of_another_site(headers)) {
        let detail = "a page of another site may not do this: open the agent's own page";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "origin_not_allowed", detail));
    }
    Ok(())
}

/// Whether a browser says that another site's page asks, also one of the same host at another port (Fetch Metadata).
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let sites = headers.get_all("sec-fetch-site").iter();
    sites.into_iter().any(|site| matches!(site.as_bytes(), b"cross-site" | b"same-site"))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn hosts(bound: &str) -> AllowedHosts {
        AllowedHosts::new(bound.parse().unwrap(), ["Bench.Example.org".to_owned()])
    }

    fn status(bound: &str, request: axum::http::request::Builder) -> u16 {
        status_of(&hosts(bound), request)
    }

    fn status_of(hosts: &AllowedHosts, request: axum::http::request::Builder) -> u16 {
        match verdict(hosts, &request.body(Body::empty()).unwrap()) {
            Ok(()) => 200,
            Err(refusal) => refusal.into_response().status().as_u16(),
        }
    }

    #[test]
    fn only_known_names_are_answered() {
        let check = |bound: &str, host: &str, wanted: u16| {
            assert_eq!(status(bound, Request::get("/").header("host", host)), wanted, "{host}");
        };
        for host in ["127.0.0.1:7878", "localhost:7878", "[::1]:7878", "LOCALHOST", "127.0.0.2", "bench.example.org"] {
            check("127.0.0.1:7878", host, 200);
        }
        for host in ["evil.example:7878", "localhost.evil.example", "192.168.1.5:7878", "", "a b", "127.0.0.1.evil.com"]
        {
            check("127.0.0.1:7878", host, 421);
        }
        check("192.168.1.5:7878", "192.168.1.5:7878", 200);
        check("0.0.0.0:7878", "192.168.1.5:7878", 200);
        check("0.0.0.0:7878", "evil.example", 421);
        assert_eq!(status("127.0.0.1:1", Request::get("/")), 421);
        let two = Request::get("/").header("host", "localhost").header("host", "evil.example");
        assert_eq!(status("127.0.0.1:1", two), 421);
        assert_eq!(status("127.0.0.1:1", Request::get("http://evil.example/").header("host", "localhost")), 421);
    }

    #[test]
    fn only_the_own_page_acts_and_listens() {
        let check = |request: axum::http::request::Builder, origin: &str, wanted: u16| {
            let request = request.header("host", "localhost:7878").header("origin", origin);
            assert_eq!(status("127.0.0.1:7878", request), wanted, "{origin}");
        };
        let socket = || Request::get("/").header("upgrade", "websocket");
        check(Request::post("/"), "http://localhost:7878", 200);
        check(socket(), "http://LOCALHOST:7878", 200);
        check(Request::get("/"), "http://evil.example", 200);
        for foreign in ["http://evil.example", "http://localhost:80", "null", "http://localhost:7878.evil.example", ""]
        {
            check(Request::post("/"), foreign, 403);
            check(socket(), foreign, 403);
        }
        assert_eq!(status("127.0.0.1:7878", Request::post("/").header("host", "localhost:7878")), 200);
    }

    #[test]
    fn an_agent_that_encrypts_has_no_page_that_came_openly() {
        let acting = |origin: &str| {
            let request = Request::post("/").header("host", "localhost:7878").header("origin", origin);
            status_of(&hosts("127.0.0.1:7878").encrypted(), request)
        };
        assert_eq!([acting("https://localhost:7878"), acting("http://localhost:7878")], [200, 403]);
    }
}
