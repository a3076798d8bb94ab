//! Answers that are asked for again and again: sent once, then only when they are another.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;

/// `what` as JSON with a tag of its bytes; 304 without a body where the caller says with `If-None-Match` that it has the
/// same. The tag is weak (`W/"…"`), as packing changes the bytes on their way and not what they say.
pub(super) fn answer(asked: &HeaderMap, what: &impl Serialize) -> Response {
    let Ok(body) = serde_json::to_vec(what) else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let tag = format!("W/\"{:016x}\"", hasher.finish());
    let is_known = asked.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut answer = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    answer
}

#[cfg(test)]
mod tests {
    use axum::{
        body::HttpBody as _,
        http::{HeaderMap, HeaderValue, header},
        response::Response,
    };

    use super::answer;

    fn tag_of(answer: &Response) -> HeaderValue {
        answer.headers()[header::ETAG].clone()
    }

    #[track_caller]
    fn check(known: Option<HeaderValue>, status: u16, bytes: u64) {
        let asked: HeaderMap = known.map(|tag| (header::IF_NONE_MATCH, tag)).into_iter().collect();
        let answer = answer(&asked, &["one", "two"]);
        assert_eq!((answer.status().as_u16(), answer.body().size_hint().exact()), (status, Some(bytes)));
    }

    #[test]
    fn the_same_is_sent_once() {
        let none = HeaderMap::new();
        let tag = tag_of(&answer(&none, &["one", "two"]));
        assert_eq!(tag, tag_of(&answer(&none, &["one", "two"])));
        check(None, 200, 13);
        check(Some(tag), 304, 0);
        check(Some(tag_of(&answer(&none, &["one"]))), 200, 13);
        check(Some(HeaderValue::from_static("W/\"\"")), 200, 13);
        check(Some(HeaderValue::from_bytes(b"\xff").unwrap()), 200, 13);
    }
}
