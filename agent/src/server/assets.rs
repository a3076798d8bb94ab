//! The page's files, embedded in a release. Addresses of the page itself answer with its index.

use axum::{
    Router,
    body::to_bytes,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use memory_serve::CacheControl;

use super::{base::BasePath, error::no_such_path, script_hashes::script_hashes};

/// Largest index that is moved to another path, bytes: the page's own has some 5 KB.
const MAX_INDEX_BYTES: usize = 1 << 20;

/// Scripts only from the agent itself; of inline ones exactly those that the index has, as their hashes say. Style
/// attributes carry the colours of the heat map.
fn policy(hashes: &str) -> HeaderValue {
    let text = format!(
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval' {hashes}; style-src 'self'; \
         style-src-attr 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; font-src 'self'; \
         manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(text).expect("hashes are plain letters")
}

/// The policy of everything but a page that was moved.
pub(super) fn fixed_policy() -> HeaderValue {
    policy(env!("CSP_SCRIPT_HASHES"))
}

/// Answers what no route of the interface does, for a page below `base`.
pub(super) fn page(base: BasePath) -> Router {
    memory_serve::load!()
        .index_file(Some("/index.html"))
        .fallback(Some("/index.html"))
        .fallback_status(StatusCode::OK)
        .html_cache_control(CacheControl::NoCache)
        // Trunk puts a hash into the names of the other files.
        .cache_control(CacheControl::Long)
        .into_router()
        .layer(from_fn_with_state(base, moved))
        .layer(from_fn(only_what_is_there))
}

/// The index with its addresses below the agent's path, and the policy that allows its script as it is then.
async fn moved(State(base): State<BasePath>, mut request: Request, next: Next) -> Response {
    if base.is_root() || is_file(request.uri().path()) {
        return next.run(request).await;
    }
    // What is changed must come as text, and whole.
    request.headers_mut().remove(header::ACCEPT_ENCODING);
    request.headers_mut().remove(header::IF_NONE_MATCH);
    let (mut head, body) = next.run(request).await.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_INDEX_BYTES).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let index = base.page(&String::from_utf8_lossy(&bytes));
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.remove(header::ETAG);
    head.headers.insert(header::CONTENT_SECURITY_POLICY, policy(&script_hashes(&index)));
    Response::from_parts(head, index.into())
}

/// The index stands for addresses of the page, not for files that are missing nor for the interface.
async fn only_what_is_there(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    if path.starts_with("/api/") {
        return no_such_path(&path).into_response();
    }
    let response = next.run(request).await;
    if is_file(&path) && is_html(response.headers()) {
        return no_such_path(&path).into_response();
    }
    response
}

/// Whether a path is that of a file other than the index.
fn is_file(path: &str) -> bool {
    let extension = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
    extension.is_some_and(|extension| extension != "html")
}

fn is_html(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/html"))
}
