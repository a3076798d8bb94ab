//! A run as a file to keep.

use axum::{
    extract::{Path, Query, State, rejection::QueryRejection},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use speedmatrix_shared::export::{ExportFormat, file_stem, render_labelled};

use super::{AppState, error::Refusal};

#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    format: String,
}

pub(super) async fn file(
    State(app): State<AppState>,
    Path(id): Path<String>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Response, Refusal> {
    let unknown = || Refusal::new(StatusCode::BAD_REQUEST, "format_unknown", "say ?format=md, html, csv or json");
    let Query(wanted) = wanted.map_err(|_says_less| unknown())?;
    let format: ExportFormat = wanted.format.parse().map_err(|_says_less| unknown())?;
    let (run, labels) = (app.run(&id).await?, app.labels(&id).await?);
    let headers = [
        (header::CONTENT_TYPE, format.content_type().to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}.{}\"", file_stem(&run, &labels), format.extension()),
        ),
    ];
    Ok((headers, render_labelled(&run, &labels, format)).into_response())
}
