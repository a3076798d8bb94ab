//! A run as a file to keep.

use axum::{
    extract::{Path, Query, State, rejection::QueryRejection},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use speedmatrix_shared::{
    export::{ExportFormat, render_labelled},
    label::Labels,
    state::RunState,
};

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
    let unknown = || Refusal::new(StatusCode::BAD_REQUEST, "format_unknown", "say ?format=md, csv or json");
    let Query(wanted) = wanted.map_err(|_says_less| unknown())?;
    let format: ExportFormat = wanted.format.parse().map_err(|_says_less| unknown())?;
    let (run, labels) = (app.run(&id).await?, app.labels(&id).await?);
    let headers = [
        (header::CONTENT_TYPE, format.content_type().to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", file_name(&run, &labels, format))),
    ];
    Ok((headers, render_labelled(&run, &labels, format)).into_response())
}

/// `speedmatrix-deepseek-v4-flash-on-h200-2-018f….md`: from a title that a stranger may have chosen, only letters and
/// digits; with the id, so that no two runs share one.
fn file_name(run: &RunState, labels: &Labels, format: ExportFormat) -> String {
    const MAX_TITLE: usize = 60;
    let title = labels.title.clone().unwrap_or_else(|| run.title()).to_ascii_lowercase();
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let title: String = words.collect::<Vec<_>>().join("-").chars().take(MAX_TITLE).collect();
    format!("speedmatrix-{}-{}.{}", title.trim_matches('-'), run.id, format.extension())
}
