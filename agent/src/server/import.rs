//! A file from elsewhere becomes runs.

use std::sync::Arc;

use axum::{
    Json,
    body::Bytes,
    extract::{FromRequest as _, Query, Request, State, rejection::QueryRejection},
    http::StatusCode,
};
use serde::Deserialize;
use speedmatrix_shared::{
    api::Imported,
    import::{self, ImportError},
};

use super::{
    AppState,
    error::{Refusal, body_slow, is_too_slow},
};

/// Longest name of a file that is kept, in characters: what file systems allow.
const MAX_FILE_NAME_CHARS: usize = 255;

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    name: Option<String>,
}

pub(super) async fn file(
    State(app): State<AppState>,
    named: Result<Query<Named>, QueryRejection>,
    request: Request,
) -> Result<(StatusCode, Json<Vec<Imported>>), Refusal> {
    let turn = Arc::clone(&app.reading).acquire_owned().await.expect("nobody closes the turns");
    let bytes = Bytes::from_request(request, &app).await.map_err(|cut| match cut.status() {
        StatusCode::PAYLOAD_TOO_LARGE => refused(ImportError::TooLarge),
        _ if is_too_slow(&cut) => body_slow(),
        status => Refusal::new(status, "body_invalid", "the file did not arrive whole: send it again"),
    })?;
    // The turn goes with the reading: who leaves in the middle of it makes no room for the next file.
    let read = tokio::task::spawn_blocking(move || (import::read(&bytes), turn));
    let (read, _turn) = match read.await {
        Ok((read, turn)) => (read, Some(turn)),
        Err(fault) => (Err(ImportError::Damaged(fault.to_string())), None),
    };
    let name = named.ok().and_then(file_name);
    let mut imported = Vec::new();
    for run in read.map_err(refused)? {
        imported.push(app.runs.import(run, name.clone(), &[&app.reference]).await?);
    }
    let status = if imported.iter().all(|run| run.known) { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(imported)))
}

fn file_name(Query(named): Query<Named>) -> Option<String> {
    let name: String = named.name?.chars().filter(|c| !c.is_control()).take(MAX_FILE_NAME_CHARS).collect();
    (!name.is_empty()).then_some(name)
}

fn refused(error: ImportError) -> Refusal {
    let (status, code) = match error {
        ImportError::TooLarge | ImportError::TooMany | ImportError::TooManyCells { .. } => {
            (StatusCode::PAYLOAD_TOO_LARGE, "file_too_large")
        }
        ImportError::Foreign => (StatusCode::UNPROCESSABLE_ENTITY, "file_foreign"),
        ImportError::Newer { .. } | ImportError::ForeignVersion { .. } => {
            (StatusCode::UNPROCESSABLE_ENTITY, "file_newer")
        }
        _ => (StatusCode::UNPROCESSABLE_ENTITY, "file_broken"),
    };
    Refusal::new(status, code, error)
}
