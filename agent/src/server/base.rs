//! An agent below a path of its host, as behind a proxy that serves other things too. A proxy may leave that path on
//! what it passes on, or take it off.

use std::{fmt, str::FromStr};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, Uri, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};

/// The path below which an agent stands, such as `/speedmatrix`; empty for the root of its host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BasePath(String);

impl BasePath {
    /// Whether it is the root.
    pub const fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// What of a request's path is the agent's own, `/` first; `None` where this path does not lead to it.
    fn rest<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix(&self.0)?;
        rest.starts_with(['/', '?']).then_some(rest).or_else(|| rest.is_empty().then_some(rest))
    }

    /// The app below this path.
    pub(super) fn under(self, app: Router) -> Router {
        if self.is_root() {
            return app;
        }
        Router::new().fallback_service(app).layer(from_fn_with_state(self, take_off))
    }

    /// The page's index with addresses below this path: those that begin with a slash in attributes and in its script.
    pub(super) fn page(&self, index: &str) -> String {
        index.replace("=\"/", &format!("=\"{self}/")).replace("'/", &format!("'{self}/"))
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BasePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = text.trim_end_matches('/');
        let is_plain = |name: &str| {
            let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte));
            letters && !name.is_empty() && name != "." && name != ".."
        };
        match path.strip_prefix('/') {
            None if path.is_empty() => Ok(Self::default()),
            Some(names) if names.split('/').all(is_plain) => Ok(Self(path.to_owned())),
            _ => Err(format!(
                "\"{text}\" is no path: write it as /speedmatrix, of letters, digits, \"-\", \"_\", \".\" and \"~\""
            )),
        }
    }
}

/// Takes the path off, before anything is looked up.
async fn take_off(State(base): State<BasePath>, mut request: Request, next: Next) -> Response {
    let whole = request.uri().path_and_query().map_or("/", |whole| whole.as_str());
    match base.rest(whole) {
        Some(rest) if rest.starts_with('/') => {
            let Ok(own) = rest.parse() else { return StatusCode::BAD_REQUEST.into_response() };
            let mut parts = request.uri().clone().into_parts();
            parts.path_and_query = Some(own);
            // The rest of the address stays: its host is looked at too.
            let Ok(own) = Uri::from_parts(parts) else { return StatusCode::BAD_REQUEST.into_response() };
            *request.uri_mut() = own;
            next.run(request).await
        }
        // Relative to it all addresses of the page would be wrong.
        Some(rest) => match HeaderValue::try_from(format!("{base}/{rest}")) {
            Ok(place) => (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, place)]).into_response(),
            Err(_no_header) => StatusCode::BAD_REQUEST.into_response(),
        },
        None => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_of_plain_names() {
        for (text, wanted) in [("", ""), ("/", ""), ("/a", "/a"), ("/a/", "/a"), ("/a/b-c_d.e~1", "/a/b-c_d.e~1")] {
            assert_eq!(text.parse::<BasePath>().unwrap().to_string(), wanted);
        }
        for text in ["a", "//a", "/a//b", "/a/../b", "/.", "/a b", "/a?b", "/a\"b", "/a<b", "http://h/a", "/ä"] {
            assert!(text.parse::<BasePath>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_the_path_itself_is_taken_off() {
        let base: BasePath = "/a".parse().unwrap();
        let check = |path: &str, wanted: Option<&str>| assert_eq!(base.rest(path), wanted, "{path}");
        check("/a/runs?x=1", Some("/runs?x=1"));
        check("/a/", Some("/"));
        check("/a", Some(""));
        check("/a?x=1", Some("?x=1"));
        check("/ab", None);
        check("/runs", None);
        check("/", None);
    }

    #[test]
    fn every_address_of_the_index_is_moved() {
        let index = "<html data-base=\"/\"><script>import init from '/web-1.js';</script><link href=\"/web.css\" integrity=\"sha384-a/b\">";
        let moved = "/a".parse::<BasePath>().unwrap().page(index);
        assert_eq!(
            moved,
            "<html data-base=\"/a/\"><script>import init from '/a/web-1.js';</script><link href=\"/a/web.css\" integrity=\"sha384-a/b\">"
        );
    }
}
