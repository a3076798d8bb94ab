//! What people add to runs, and what they delete.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use speedmatrix_shared::{
    id::RunId,
    label::{LabelPatch, Labels},
};

use super::{
    AppState,
    error::{Body, Refusal},
};

pub(super) async fn labels(State(app): State<AppState>, Path(id): Path<String>) -> Result<Json<Labels>, Refusal> {
    Ok(Json(app.labels(&id).await?))
}

pub(super) async fn change(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Body(patch): Body<LabelPatch>,
) -> Result<Json<Labels>, Refusal> {
    Ok(Json(app.runs.relabel(&own(&id)?, patch).await?))
}

pub(super) async fn delete(State(app): State<AppState>, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    app.runs.delete(&own(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn restore(State(app): State<AppState>, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    app.runs.restore(&own(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The id of a run that may be changed.
fn own(id: &str) -> Result<RunId, Refusal> {
    let id: RunId = id.parse()?;
    if id.as_str() == RunId::REFERENCE {
        let detail = "the sample run can't be changed: it is a published page and belongs to the program";
        return Err(Refusal::new(StatusCode::CONFLICT, "run_read_only", detail));
    }
    Ok(id)
}

impl AppState {
    /// What people added to the run of this path; nothing for the sample.
    pub(super) async fn labels(&self, id: &str) -> Result<Labels, Refusal> {
        let id: RunId = id.parse()?;
        if id.as_str() == RunId::REFERENCE {
            return Ok(Labels::default());
        }
        Ok(self.runs.labels(&id).await?)
    }
}
