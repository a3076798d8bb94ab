//! A finished cell looked at closely: what its record tells beyond its numbers, and its requests one by one.

use axum::{
    Json,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use speedmatrix_shared::{
    api::CellInRun,
    detail::{CellDetail, requests::Columns},
    event::Origin,
    facts,
    id::{CellId, RunId},
    raw::{RawCell, codec},
    state::{CellState, RunState},
};

use super::{AppState, error::Refusal};
use crate::store::StoreError;

/// Records that are looked at in the same moment: each takes a core for a moment and some tens of megabytes, on the host
/// that may be measuring. Others wait for their turn.
pub(super) const AT_ONCE: usize = 1;

pub(super) async fn detail(
    State(app): State<AppState>,
    Path((run, cell)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    app.look(&run, &cell, CellDetail::of).await
}

pub(super) async fn requests(
    State(app): State<AppState>,
    Path((run, cell)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    app.look(&run, &cell, Columns::of).await
}

/// What other stored runs measured in the cell of that name; whether this run did so is no matter.
pub(super) async fn history(
    State(app): State<AppState>,
    Path((run, cell)): Path<(String, String)>,
) -> Result<Json<Vec<CellInRun>>, Refusal> {
    let cell: CellId = cell.parse()?;
    let run = app.run(&run).await?;
    if run.cell(cell).is_none() {
        return Err(no_such_cell(&run, cell));
    }
    Ok(Json(app.runs.store().cell_in_others(&run.id, cell, facts::model(&run)).await?))
}

impl AppState {
    /// What `view` makes of a cell's record, as JSON.
    async fn look<T: Serialize + 'static>(
        &self,
        run: &str,
        cell: &str,
        view: fn(&RawCell) -> T,
    ) -> Result<Response, Refusal> {
        let cell: CellId = cell.parse()?;
        let run = self.run(run).await?;
        measured(&run, cell)?;
        let place = self.looks.clone().acquire_owned().await;
        let place = place.expect("nobody closes the places");
        let kept = if run.id.as_str() == RunId::REFERENCE { None } else { self.runs.raw(&run.id, cell).await? };
        let bytes = kept.ok_or_else(|| not_kept(&run, cell))?;
        // On a thread of its own: it computes for a while, and what a stranger wrote into the file can't end the program.
        let work = tokio::task::spawn_blocking(move || {
            // The place is free when the work is done, also if who asked has gone.
            let _held_until_done = place;
            let raw = codec::decode(&bytes).map_err(|error| error.to_string())?;
            serde_json::to_vec(&view(&raw)).map_err(|error| error.to_string())
        });
        let damaged = |detail| StoreError::DamagedRaw { run: run.id.clone(), cell, detail };
        let json = work.await.map_err(|fault| damaged(format!("nothing can be computed from it: {fault}")))?;
        let json = json.map_err(damaged)?;
        Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
    }
}

/// Only finished cells have a record; of the others it is said what is so.
fn measured(run: &RunState, cell: CellId) -> Result<(), Refusal> {
    let Some(found) = run.cell(cell) else {
        return Err(no_such_cell(run, cell));
    };
    let so = match &found.state {
        CellState::Finished { .. } => return Ok(()),
        CellState::Planned => "is not measured yet: its turn is still to come".to_owned(),
        CellState::Running { .. } => "is being measured: its requests can be looked at when it is done".to_owned(),
        CellState::Skipped { text, .. } => format!("was skipped, so there are no requests to look at: {text}"),
        CellState::NotReached => "was not measured: the run ended before its turn".to_owned(),
        CellState::Cancelled => "was not measured to its end: the run was stopped in it".to_owned(),
    };
    Err(Refusal::new(StatusCode::CONFLICT, "cell_not_measured", format!("{cell} {so}")))
}

fn no_such_cell(run: &RunState, cell: CellId) -> Refusal {
    let detail = format!("run {} has no cell {cell}: open the run to see its cells", run.id);
    Refusal::new(StatusCode::NOT_FOUND, "no_such_cell", detail)
}

fn not_kept(run: &RunState, cell: CellId) -> Refusal {
    let why = if run.origin == Some(Origin::Imported) {
        "its run was imported from a page that tells only numbers"
    } else {
        "it was measured before they were kept, or they could not be stored"
    };
    let detail = format!("the requests of {cell} were not kept: {why}. Measure the cell again to look at them");
    Refusal::new(StatusCode::NOT_FOUND, "record_not_kept", detail)
}
