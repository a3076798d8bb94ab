//! A whole run at once, as an import brings it.

use speedmatrix_shared::{event::Envelope, label::Labels, state::RunState};

use super::{
    MAX_EVENT_BYTES,
    database::Database,
    error::{StoreError, refused},
    labels,
    rows::{Entry, write_event, write_run},
};

/// A run that was made elsewhere.
#[derive(Debug)]
pub struct Foreign {
    /// What its events fold to.
    pub state: RunState,
    /// All its events.
    pub events: Vec<Envelope>,
    /// What people added to it, and where it came from.
    pub labels: Labels,
}

impl Database {
    /// Stores the run whole or not at all.
    pub(super) fn import(&mut self, run: &Foreign) -> Result<(), StoreError> {
        let id = &run.state.id;
        if self.is_taken(id)? {
            return Err(StoreError::Taken(id.clone()));
        }
        let jsons: Vec<String> = run
            .events
            .iter()
            .map(|envelope| {
                let json = serde_json::to_string(&envelope.event).map_err(|e| refused(id, e))?;
                let fits = json.len() <= MAX_EVENT_BYTES;
                if fits { Ok(json) } else { Err(refused(id, format!("it has over {MAX_EVENT_BYTES} bytes"))) }
            })
            .collect::<Result<_, StoreError>>()?;
        self.change(|change| {
            write_run(change, &run.state)?;
            for (envelope, json) in run.events.iter().zip(&jsons) {
                write_event(change, &run.state, Entry { envelope, json, raw: None })?;
            }
            labels::write(change, id, &run.labels)
        })
    }
}
