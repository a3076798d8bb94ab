//! Model servers on this machine.

use axum::{Json, extract::State, http::StatusCode};
use speedmatrix_shared::found::{FoundServers, Looked};

use super::{AppState, error::Refusal};

/// What is found now; while a run is measured, only what is known.
pub(super) async fn found(State(app): State<AppState>) -> Result<Json<FoundServers>, Refusal> {
    if app.runs.is_measuring() {
        return Ok(Json(FoundServers { servers: app.nearby.known(), looked: Looked::NotWhileMeasuring }));
    }
    let found = app.nearby.look().await;
    let servers = found.map_err(|error| Refusal::new(StatusCode::NOT_IMPLEMENTED, "not_shown", error))?;
    Ok(Json(FoundServers { servers, looked: Looked::Now }))
}
