//! Entering with a token, and the links that an operator gives away.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{AppendHeaders, IntoResponse},
};
use speedmatrix_shared::api::{Enter, NewPass, Pass, Shared};

use super::{
    AppState,
    door::admitted,
    error::{Body, Refusal},
    listen::Peer,
};
use crate::{
    runs::unix_ms,
    secret::Token,
    server::door::cookie_name,
    store::{KeptPass, Store, StoreError},
};

/// How long a browser keeps its token, seconds: it may run out or be taken back before.
const COOKIE_SECS: u32 = 400 * 24 * 3_600;
const MS_PER_HOUR: u64 = 3_600_000;
/// Longest time of a pass, hours: ten years.
pub const MAX_HOURS: u32 = 10 * 366 * 24;
/// Longest name of a pass, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Where a request came from.
type PeerOf = Option<Extension<Peer>>;
type Cookie = AppendHeaders<[(HeaderName, String); 1]>;

/// For the browser that asks with these headers, from there.
fn cookie(app: &AppState, by: (&HeaderMap, PeerOf), token: &str, secs: u32) -> Cookie {
    let (headers, peer) = by;
    let base = &app.reached.base;
    let is_encrypted = app.reached.is_encrypted_for(headers, peer.map(|Extension(peer)| peer));
    let secure = if is_encrypted { "; Secure" } else { "" };
    let name = cookie_name(app.hosts.port());
    let text = format!("{name}={token}; Path={base}/; Max-Age={secs}; HttpOnly; SameSite=Strict{secure}");
    AppendHeaders([(header::SET_COOKIE, text)])
}

/// A browser's token goes into a cookie that no script can read.
pub(super) async fn enter(
    State(app): State<AppState>,
    headers: HeaderMap,
    peer: PeerOf,
    Body(request): Body<Enter>,
) -> Result<(StatusCode, Cookie), Refusal> {
    let token = Token::sent(&request.token).ok_or_else(|| app.wrong_token())?;
    if admitted(app.runs.store(), token.digest()).await?.is_none() {
        return Err(app.wrong_token());
    }
    Ok((StatusCode::NO_CONTENT, cookie(&app, (&headers, peer), token.expose(), COOKIE_SECS)))
}

pub(super) async fn leave(State(app): State<AppState>, headers: HeaderMap, peer: PeerOf) -> impl IntoResponse {
    (StatusCode::NO_CONTENT, cookie(&app, (&headers, peer), "", 0))
}

pub(super) async fn list(State(app): State<AppState>) -> Result<Json<Vec<Pass>>, Refusal> {
    let passes = app.runs.store().passes().await?;
    let now = unix_ms();
    Ok(Json(passes.into_iter().map(|kept| kept.pass).filter(|pass| pass.is_valid(now)).collect()))
}

/// A new token; this answer is the only place where it ever stands.
pub(super) async fn give(
    State(app): State<AppState>,
    Body(request): Body<NewPass>,
) -> Result<(StatusCode, Json<Shared>), Refusal> {
    let wrong = |detail: String| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "pass_invalid", detail);
    if request.hours.is_some_and(|hours| !(1..=MAX_HOURS).contains(&hours)) {
        return Err(wrong(format!("a link is valid for 1 to {MAX_HOURS} hours")));
    }
    if request.name.chars().count() > MAX_NAME_CHARS {
        return Err(wrong(format!("a link's name has at most {MAX_NAME_CHARS} characters")));
    }
    if let Some(run) = &request.run {
        app.run(run.as_str()).await?;
    }
    let (token, pass) = new_pass(app.runs.store(), request).await.map_err(|error| match error {
        NewPassError::Store(error) => error.into(),
        NewPassError::Random(error) => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", error),
    })?;
    Ok((StatusCode::CREATED, Json(Shared { token: token.expose().to_owned(), pass })))
}

pub(super) async fn revoke(State(app): State<AppState>, Path(number): Path<u64>) -> Result<StatusCode, Refusal> {
    if app.runs.store().revoke_pass(number).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Refusal::new(
        StatusCode::NOT_FOUND,
        "not_found",
        format!("there is no link {number}: it may be taken back already"),
    ))
}

/// Why there is no new pass.
#[derive(Debug, thiserror::Error)]
pub enum NewPassError {
    /// It could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no random numbers.
    #[error("no token could be made, as the system gives no random numbers ({0})")]
    Random(#[from] getrandom::Error),
}

/// Makes a token and keeps its digest.
pub async fn new_pass(store: &Store, asked: NewPass) -> Result<(Token, Pass), NewPassError> {
    let token = Token::new()?;
    let now = unix_ms();
    let NewPass { role, run, name, hours } = asked;
    let until_unix_ms = hours.map(|hours| now.saturating_add(u64::from(hours) * MS_PER_HOUR));
    let pass = Pass { number: 0, role, run, name, created_unix_ms: now, until_unix_ms };
    let pass = store.add_pass(KeptPass { digest: token.digest(), pass }, now).await?;
    Ok((token, pass))
}
