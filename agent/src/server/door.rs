//! Who is asking, and what they may. An agent on this machine alone trusts whoever reaches it; any other one asks for a
//! token, which allows to look or to act. Every route has a row in [`RULES`]; one without is closed.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    extract::{MatchedPath, RawPathParams, Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use speedmatrix_shared::{
    api::{Role, path},
    id::RunId,
};

use super::{AppState, error::Refusal, listen::Peer};
use crate::{
    runs::unix_ms,
    secret::{Digest, Token},
    store::{Store, StoreError},
};

/// Name of the cookie that holds a browser's token, of the agent that listens on `port`: browsers keep one cookie of a name
/// for all ports of a host.
pub(super) fn cookie_name(port: u16) -> String {
    format!("speedmatrix_pass_{port}")
}

/// Wrong tokens that are answered as such within [`FAILURES_WITHIN`]; further ones are told to wait. A right one always
/// opens.
const FAILURES: usize = 20;
/// See [`FAILURES`].
const FAILURES_WITHIN: Duration = Duration::from_mins(1);

/// What a route asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing, and nobody is asked who they are: not even the store is needed.
    NotEvenWho,
    /// Nothing.
    Nothing,
    /// To look at runs; what is told may depend on who asks.
    Look,
    /// To look at all runs.
    LookAtAll,
    /// To look at the run in the path.
    LookAtRun,
    /// To start, change or delete.
    Act,
}

/// What each route asks for. HEAD is GET.
pub const RULES: &[(Method, &str, Need)] = &[
    (Method::GET, path::HEALTH, Need::NotEvenWho),
    (Method::GET, path::READY, Need::NotEvenWho),
    (Method::GET, path::METRICS, Need::LookAtAll),
    (Method::GET, path::INFO, Need::Nothing),
    (Method::POST, path::ENTER, Need::Nothing),
    (Method::DELETE, path::ENTER, Need::Nothing),
    (Method::GET, path::RUNS, Need::Look),
    (Method::POST, path::RUNS, Need::Act),
    (Method::GET, path::RUN, Need::LookAtRun),
    (Method::PATCH, path::RUN, Need::Act),
    (Method::DELETE, path::RUN, Need::Act),
    (Method::GET, path::LIVE, Need::LookAtRun),
    (Method::POST, path::STOP, Need::Act),
    (Method::POST, path::STEER, Need::Act),
    (Method::POST, path::RESUME, Need::Act),
    (Method::GET, path::EXPORT, Need::LookAtRun),
    (Method::GET, path::CELL, Need::LookAtRun),
    (Method::GET, path::REQUESTS, Need::LookAtRun),
    (Method::GET, path::HISTORY, Need::LookAtAll),
    (Method::GET, path::LABELS, Need::LookAtRun),
    (Method::POST, path::RESTORE, Need::Act),
    (Method::POST, path::PROBE, Need::Act),
    (Method::POST, path::IMPORT, Need::Act),
    (Method::GET, path::SERVERS, Need::Act),
    (Method::GET, path::PASSES, Need::Act),
    (Method::POST, path::PASSES, Need::Act),
    (Method::DELETE, path::PASS, Need::Act),
];

/// Who is let in.
#[derive(Debug, Clone)]
pub enum Door {
    /// Whoever reaches the agent: only this machine does.
    Open,
    /// Who has a token.
    Guarded,
}

/// Who asks, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    /// What they may.
    pub(super) role: Role,
    /// The only run that they may look at; `None`: all.
    pub(super) run: Option<RunId>,
}

impl Caller {
    const OPERATOR: Self = Self { role: Role::Operator, run: None };

    /// Who may do to all runs what a role says.
    const fn of_all(role: Role) -> Self {
        Self { role, run: None }
    }

    /// Whether they may look at a run.
    pub(super) fn sees(&self, run: &str) -> bool {
        self.run.as_ref().is_none_or(|only| only.as_str() == run)
    }
}

/// Counts wrong tokens.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<Vec<Instant>>);

impl Failures {
    /// Notes one; whether it is one too many.
    fn note(&self, now: Instant) -> bool {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|at| now.duration_since(*at) < FAILURES_WITHIN);
        let too_many = recent.len() >= FAILURES;
        if !too_many {
            recent.push(now);
        }
        too_many
    }
}

/// Lets through who may; whoever asks is known to the handler as an `Option<Caller>` among the request's extensions.
pub(super) async fn check(
    State(app): State<AppState>,
    matched: MatchedPath,
    params: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    let need = need(request.method(), matched.as_str());
    let run = params.iter().find(|(name, _)| *name == "id").map(|(_, run)| run);
    let peer = request.extensions().get::<Peer>().copied();
    match app.admit(request.headers(), peer, need, run).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// What a route asks for; one without a rule asks for more than anybody has.
fn need(method: &Method, path: &str) -> Option<Need> {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    RULES.iter().find(|(of, at, _)| of == method && *at == path).map(|(_, _, need)| *need)
}

impl AppState {
    async fn admit(
        &self,
        headers: &HeaderMap,
        peer: Option<Peer>,
        need: Option<Need>,
        run: Option<&str>,
    ) -> Result<Option<Caller>, Refusal> {
        let Some(need) = need else { return Err(no_rule()) };
        if need == Need::NotEvenWho {
            return Ok(None);
        }
        let caller = match &self.door {
            Door::Open => Some(Caller::OPERATOR),
            Door::Guarded => self.caller(headers, peer, need).await?,
        };
        let Some(known) = &caller else {
            return if need == Need::Nothing { Ok(None) } else { Err(no_token()) };
        };
        match need {
            Need::Act if known.role != Role::Operator => Err(only_looks()),
            Need::LookAtRun if !run.is_some_and(|run| known.sees(run)) => Err(other_run()),
            Need::LookAtAll if known.run.is_some() => Err(other_run()),
            _ => Ok(caller),
        }
    }

    /// By the token that was sent, else by the word of a proxy.
    async fn caller(&self, headers: &HeaderMap, peer: Option<Peer>, need: Need) -> Result<Option<Caller>, Refusal> {
        let told = self.reached.proxy.as_ref().and_then(|proxy| proxy.role(headers, peer)).map(Caller::of_all);
        let found = match sent(headers, self.hosts.port()) {
            Sent::Nothing => return Ok(told),
            Sent::Nonsense => None,
            Sent::Token(token) => admitted(self.runs.store(), token.digest()).await?,
        };
        match found {
            Some(caller) => Ok(Some(caller)),
            None if told.is_some() => Ok(told),
            // An old cookie must not keep a page from asking for a new token.
            None if need == Need::Nothing => Ok(None),
            None => Err(self.wrong_token()),
        }
    }

    /// A token that opens nothing.
    pub(super) fn wrong_token(&self) -> Refusal {
        self.figures.tokens_rejected.inc();
        if self.failures.note(Instant::now()) {
            let detail = "too many wrong tokens were sent: wait a minute, then open the link you were given";
            return Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", detail);
        }
        let detail = "this token opens nothing here: it has run out or was taken back. Ask for a new link";
        Refusal::new(StatusCode::UNAUTHORIZED, "token_invalid", detail)
    }
}

/// Whom a token lets in now. All are looked at, whichever it is.
pub(super) async fn admitted(store: &Store, digest: Digest) -> Result<Option<Caller>, StoreError> {
    let now = unix_ms();
    let valid = store.passes().await?.into_iter().filter(|kept| kept.pass.is_valid(now));
    let found = valid.fold(None, |found, kept| if kept.digest == digest { Some(kept.pass) } else { found });
    Ok(found.map(|pass| Caller { role: pass.role, run: pass.run }))
}

/// What a request says of who sends it.
#[derive(Debug)]
enum Sent {
    Nothing,
    /// Something that can be no token.
    Nonsense,
    Token(Token),
}

impl Sent {
    fn read(text: Option<&str>) -> Self {
        text.and_then(Token::sent).map_or(Self::Nonsense, Self::Token)
    }
}

fn sent(headers: &HeaderMap, port: u16) -> Sent {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let bearer = value.to_str().ok().and_then(|value| value.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        return Sent::read(bearer.map(|(_, token)| token));
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let own = cookie_name(port);
    pairs.find(|(name, _)| *name == own).map_or(Sent::Nothing, |(_, token)| Sent::read(Some(token)))
}

/// What a caller watches goes on only while their token is valid; whom a proxy vouched for, while it keeps them.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    app: AppState,
    token: Option<Digest>,
    is_vouched_for: bool,
}

impl Visit {
    /// By the headers that opened it, and whom they came from.
    pub(super) fn of(app: &AppState, headers: &HeaderMap, peer: Option<Peer>) -> Self {
        let token = match sent(headers, app.hosts.port()) {
            Sent::Token(token) => Some(token.digest()),
            Sent::Nothing | Sent::Nonsense => None,
        };
        let proxy = app.reached.proxy.as_ref();
        let is_vouched_for = proxy.is_some_and(|proxy| proxy.role(headers, peer).is_some());
        Self { app: app.clone(), token, is_vouched_for }
    }

    /// Whether whoever opened it may still look.
    pub(super) async fn goes_on(&self) -> bool {
        match (&self.app.door, &self.token) {
            (Door::Open, _) => true,
            _ if self.is_vouched_for => true,
            (Door::Guarded, Some(token)) => matches!(admitted(self.app.runs.store(), *token).await, Ok(Some(_))),
            (Door::Guarded, None) => false,
        }
    }
}

fn no_rule() -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this can't be done with that method here")
}

fn no_token() -> Refusal {
    let detail = "this agent asks who you are: open the link that its operator gave you";
    Refusal::new(StatusCode::UNAUTHORIZED, "token_missing", detail)
}

fn only_looks() -> Refusal {
    let detail = "your link allows to look, not to change anything: ask the operator of this agent";
    Refusal::new(StatusCode::FORBIDDEN, "viewer_only", detail)
}

fn other_run() -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, "other_run", "your link is for another run: ask for one for this run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_tokens_are_told_to_wait_and_forgotten() {
        let (failures, start) = (Failures::default(), Instant::now());
        assert!((0..FAILURES).all(|_| !failures.note(start)));
        assert!(failures.note(start));
        assert!(!failures.note(start + FAILURES_WITHIN));
    }

    #[test]
    fn a_token_comes_as_bearer_or_cookie() {
        let check = |name: header::HeaderName, value: &str, wanted: &str| {
            let got = match sent(&HeaderMap::from_iter([(name, value.parse().unwrap())]), 7878) {
                Sent::Token(token) => token.expose().to_owned(),
                other => format!("{other:?}"),
            };
            assert_eq!(got, wanted, "{value}");
        };
        check(header::AUTHORIZATION, "Bearer abc", "abc");
        check(header::AUTHORIZATION, "bearer abc ", "abc");
        check(header::AUTHORIZATION, "Basic abc", "Nonsense");
        check(header::COOKIE, "a=b; speedmatrix_pass_7878=abc", "abc");
        check(header::COOKIE, "speedmatrix_pass_7879=xyz; speedmatrix_pass_7878=abc", "abc");
        check(header::COOKIE, "speedmatrix_pass_7879=abc", "Nothing");
        check(header::COOKIE, "xspeedmatrix_pass_7878=abc", "Nothing");
        check(header::COOKIE, "speedmatrix_pass_7878=a\"b", "Nonsense");
        check(header::ACCEPT, "abc", "Nothing");
    }
}
