//! The page's files, embedded in a release. Addresses of the page itself answer with its index.

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
};
use memory_serve::CacheControl;

use super::error::no_such_path;

/// Scripts only from the agent itself; of inline ones exactly those that the index has. Style attributes carry the
/// colours of the heat map.
pub(super) const CONTENT_SECURITY_POLICY: &str = concat!(
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval' ",
    env!("CSP_SCRIPT_HASHES"),
    "; style-src 'self'; style-src-attr 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; font-src 'self'; ",
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
);

/// Answers what no route of the interface does.
pub(super) fn page() -> Router {
    memory_serve::load!()
        .index_file(Some("/index.html"))
        .fallback(Some("/index.html"))
        .fallback_status(StatusCode::OK)
        .html_cache_control(CacheControl::NoCache)
        // Trunk puts a hash into the names of the other files.
        .cache_control(CacheControl::Long)
        .into_router()
        .layer(from_fn(only_what_is_there))
}

/// The index stands for addresses of the page, not for files that are missing nor for the interface.
async fn only_what_is_there(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    if path.starts_with("/api/") {
        return no_such_path(&path).into_response();
    }
    let response = next.run(request).await;
    let extension = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
    if extension.is_some_and(|extension| extension != "html") && is_html(response.headers()) {
        return no_such_path(&path).into_response();
    }
    response
}

fn is_html(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/html"))
}
