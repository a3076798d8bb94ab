//! A run as its messages tell it, and what of it was said: what every way of showing it in the terminal shares.

use speedmatrix_shared::{
    api::ServerMessage,
    event::{LogLevel, RunEvent, RunOutcome},
    format,
    gauge::Gauge,
    state::{Applied, Cell, RunState, RunStatus},
};

use super::printable;

/// A run that is followed.
#[derive(Debug, Default)]
pub(super) struct Followed {
    state: Option<RunState>,
    said_title: Option<String>,
    said_unstored: Option<String>,
    said_end: Option<RunOutcome>,
}

/// What a message brought.
pub(super) enum News {
    /// Nothing to show.
    Nothing,
    /// How the running cell is now: a line to update in place.
    Running(String),
    /// The run is another one than before; with a warning, if that is what was told.
    Changed { warning: Option<String> },
}

impl Followed {
    /// Folds a message.
    pub(super) fn take(&mut self, message: ServerMessage) -> News {
        match message {
            ServerMessage::Hello { .. } => News::Nothing,
            ServerMessage::Presence { unstored, .. } => {
                let is_news = unstored != self.said_unstored;
                self.said_unstored.clone_from(&unstored);
                unstored.filter(|_| is_news).map_or(News::Nothing, |words| News::Changed { warning: Some(words) })
            }
            ServerMessage::Gauge { gauge } => match &self.state {
                Some(state) if state.status == RunStatus::Running => News::Running(running_line(state, &gauge)),
                _ => News::Nothing,
            },
            ServerMessage::Snapshot { state, .. } => {
                self.state = Some(*state);
                News::Changed { warning: None }
            }
            ServerMessage::Event { envelope } => {
                let Some(state) = &mut self.state else { return News::Nothing };
                // A gap can't be: the feed sends a snapshot instead. Were there one, what is shown would still be right.
                if state.apply(&envelope) != Ok(Applied::New) {
                    return News::Nothing;
                }
                let warning = match &envelope.event {
                    RunEvent::Log { level: LogLevel::Warning, text } => Some(printable(text)),
                    _ => None,
                };
                News::Changed { warning }
            }
        }
    }

    /// The run, once anything of it was told.
    pub(super) const fn state(&self) -> Option<&RunState> {
        self.state.as_ref()
    }

    /// Whether the run's end was said.
    pub(super) const fn is_over(&self) -> bool {
        self.said_end.is_some()
    }

    /// The run's title, if it was not said yet. The name is known only after the probe, so a changed one is said again.
    pub(super) fn new_title(&mut self) -> Option<String> {
        let title = self.state.as_ref().map(title).filter(|title| self.said_title.as_ref() != Some(title))?;
        self.said_title = Some(title.clone());
        Some(title)
    }

    /// How the run ended, if it did and that was not said yet.
    pub(super) fn new_end(&mut self) -> Option<String> {
        let state = self.state.as_ref()?;
        match &state.status {
            RunStatus::Ended { outcome } if self.said_end.as_ref() != Some(outcome) => {
                self.said_end = Some(outcome.clone());
                Some(end(state, outcome))
            }
            _ => None,
        }
    }
}

fn title(state: &RunState) -> String {
    let simulated = if state.is_simulated() { "simulated: " } else { "" };
    format!("{simulated}{}  {}", printable(&state.title()), state.id)
}

fn running_line(state: &RunState, gauge: &Gauge) -> String {
    let (done, all) = state.progress();
    let rate = gauge.window_tok_s.or(gauge.tok_s);
    format!(
        "{}  {} {}  {} tok/s  {} in flight, {} decoding  [{done}/{all} cells, {}]",
        gauge.cell,
        gauge.phase.label(),
        format::seconds(Some(gauge.phase_for_s)),
        format::rate(rate),
        gauge.in_flight,
        gauge.decoding,
        format::clock(Some(gauge.at.as_secs_f64())),
    )
}

fn end(state: &RunState, outcome: &RunOutcome) -> String {
    let measured = state.cells.iter().filter_map(Cell::result);
    let failed = measured.clone().filter(|result| result.status.is_failed()).count();
    let (measured, all) = (measured.count() - failed, state.cells.len());
    let cells = format!("{measured} of {all} cells measured, {failed} failed");
    match outcome {
        RunOutcome::Finished => format!("finished: {cells}"),
        RunOutcome::Cancelled => format!("cancelled: {cells}"),
        RunOutcome::Interrupted => format!("interrupted, the agent ended in the middle: {cells}"),
        RunOutcome::Failed { reason } => format!("failed: {}; {cells}", printable(reason)),
    }
}
