//! Lists, shows, starts and stops runs, and looks at targets.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use speedmatrix_shared::{
    api::{Info, PROTOCOL, ProbeRequest, ResumeRun, Role, RunSummary, StartRun, Started},
    facts,
    id::RunId,
    label::{LabelPatch, Labels},
    plan::draft::parse_target,
    state::RunState,
    steer::Steer,
    target::TargetFacts,
};

use super::{
    AppState,
    door::{Caller, Door},
    error::{Body, Refusal},
    tag,
};
use crate::{
    client::Target,
    runs::{look, unix_ms},
    secret::Secret,
    store::StoreError,
};

pub(super) async fn info(State(app): State<AppState>, Extension(caller): Extension<Option<Caller>>) -> Json<Info> {
    let is_operator = caller.as_ref().is_some_and(|caller| caller.role == Role::Operator);
    Json(Info {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        now_unix_ms: unix_ms(),
        targets: if is_operator { app.targets.to_vec() } else { Vec::new() },
        role: caller.as_ref().map(|caller| caller.role),
        run: caller.and_then(|caller| caller.run),
        is_guarded: matches!(app.door, Door::Guarded),
    })
}

/// The stored runs, and below them the sample run, so that the first page is never empty. Every page asks for it again
/// and again, so it is sent only to those who have another.
pub(super) async fn list(
    State(app): State<AppState>,
    Extension(caller): Extension<Option<Caller>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let mut runs: Vec<RunSummary> = app.runs.list().await?;
    runs.push(facts::summary(&app.reference));
    runs.retain(|run| caller.as_ref().is_some_and(|caller| caller.sees(run.id.as_str())));
    Ok(tag::answer(&headers, &runs))
}

pub(super) async fn state(State(app): State<AppState>, Path(id): Path<String>) -> Result<Response, Refusal> {
    Ok(Json(app.run(&id).await?).into_response())
}

pub(super) async fn start(
    State(app): State<AppState>,
    Body(request): Body<StartRun>,
) -> Result<(StatusCode, Json<Started>), Refusal> {
    let key = request.api_key.as_deref().and_then(Secret::new);
    let typed = (!request.typed.is_empty()).then_some(request.typed);
    let wanted = LabelPatch { typed, ..LabelPatch::default() };
    Labels::default().changed(&wanted).map_err(StoreError::Label)?;
    let id = app.runs.start(request.plan, key).await?;
    if wanted.typed.is_some()
        && let Err(error) = app.runs.relabel(&id, wanted).await
    {
        // The run goes on: the facts can be typed again on its page.
        tracing::warn!("what was typed about the server of run {id} could not be stored: {error}");
    }
    Ok((StatusCode::CREATED, Json(Started { id })))
}

pub(super) async fn stop(State(app): State<AppState>, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    app.runs.stop(&measurable(&id)?).await?;
    Ok(StatusCode::ACCEPTED)
}

pub(super) async fn resume(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Body(request): Body<ResumeRun>,
) -> Result<StatusCode, Refusal> {
    let key = request.api_key.as_deref().and_then(Secret::new);
    app.runs.resume(&measurable(&id)?, key).await?;
    Ok(StatusCode::ACCEPTED)
}

pub(super) async fn steer(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Body(wish): Body<Steer>,
) -> Result<StatusCode, Refusal> {
    app.runs.steer(&measurable(&id)?, wish).await?;
    Ok(StatusCode::ACCEPTED)
}

/// The id of a run that may be running.
fn measurable(id: &str) -> Result<RunId, Refusal> {
    let id: RunId = id.parse()?;
    if id.as_str() != RunId::REFERENCE {
        return Ok(id);
    }
    let text = "the sample run can't be stopped or changed: it is a finished page";
    Err(Refusal::new(StatusCode::CONFLICT, "run_over", text))
}

pub(super) async fn probe(Body(request): Body<ProbeRequest>) -> Result<Json<TargetFacts>, Refusal> {
    let wrong = |message| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "target_invalid", message);
    let url = parse_target(&request.target).map_err(wrong)?;
    let target = Target { url, key: request.api_key.as_deref().and_then(Secret::new) };
    let found = look(&target, request.model.as_deref()).await;
    Ok(Json(found.map_err(|e| Refusal::new(StatusCode::BAD_GATEWAY, "target_unreachable", e))?.facts))
}

impl AppState {
    /// A run by the id in the path: a stored one, or the sample.
    pub(super) async fn run(&self, id: &str) -> Result<RunState, Refusal> {
        let id: RunId = id.parse()?;
        if id.as_str() == RunId::REFERENCE {
            return Ok(self.reference.as_ref().clone());
        }
        Ok(self.runs.state(&id).await?)
    }
}
