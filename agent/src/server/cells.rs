//! A finished cell looked at closely: what its record tells beyond its numbers, and its requests one by one.

use axum::{
    Json,
    extract::{Path, Query, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, Serialize};
use speedmatrix_shared::{
    api::CellInRun,
    detail::{CellDetail, requests::Columns},
    event::{Origin, RunEvent},
    facts,
    id::{CellId, RunId},
    raw::{RawCell, codec},
    state::{CellState, RunState},
};

use super::{AppState, error::Refusal};
use crate::store::{StoreError, Which};

/// Records that are looked at in the same moment: each takes a core for a moment and some tens of megabytes, on the host
/// that may be measuring. Others wait for their turn.
pub(super) const AT_ONCE: usize = 1;

/// Which measurement of a repeated cell: from 1; the last unless said.
#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    repeat: Option<String>,
}

pub(super) async fn detail(
    State(app): State<AppState>,
    Path((run, cell)): Path<(String, String)>,
    Query(Asked { repeat }): Query<Asked>,
) -> Result<Response, Refusal> {
    app.look(&run, &cell, repeat, CellDetail::of).await
}

pub(super) async fn requests(
    State(app): State<AppState>,
    Path((run, cell)): Path<(String, String)>,
    Query(Asked { repeat }): Query<Asked>,
) -> Result<Response, Refusal> {
    app.look(&run, &cell, repeat, Columns::of).await
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
        repeat: Option<String>,
        view: fn(&RawCell) -> T,
    ) -> Result<Response, Refusal> {
        let cell: CellId = cell.parse()?;
        let run = self.run(run).await?;
        measured(&run, cell)?;
        let place = self.looks.clone().acquire_owned().await;
        let place = place.expect("nobody closes the places");
        let kept = match repeat {
            _ if run.id.as_str() == RunId::REFERENCE => None,
            None => self.runs.store().raw(&run.id, cell, Which::Last).await?,
            Some(repeat) => self.raw_of_repeat(&run, cell, &repeat).await?,
        };
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

    /// The record of one of a cell's measurements; `None` if it was not kept.
    async fn raw_of_repeat(&self, run: &RunState, cell: CellId, repeat: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let events = self.runs.store().events_from(&run.id, 0).await?;
        let mut told = events.iter().filter_map(|envelope| match &envelope.event {
            RunEvent::CellFinished { cell: of, .. } if *of == cell => Some(envelope.seq),
            _ => None,
        });
        let times = told.clone().count();
        let nth = repeat.parse().ok().and_then(|repeat: usize| told.nth(repeat.checked_sub(1)?));
        let Some(seq) = nth else {
            let detail = format!("{cell} was measured {times} times: there is no measurement {repeat:?}");
            return Err(Refusal::new(StatusCode::NOT_FOUND, "no_such_repeat", detail));
        };
        Ok(self.runs.store().raw(&run.id, cell, Which::ToldBy(seq)).await?)
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
