//! A run in the terminal: a row as each cell ends, and the running cell in place below them. Fed by the same messages
//! and the same fold as the page.

use std::{collections::BTreeSet, io};

use speedmatrix_shared::{
    api::ServerMessage,
    event::{LogLevel, RunEvent, RunOutcome},
    export::{self, Table},
    format,
    gauge::Gauge,
    id::CellId,
    state::{Applied, Cell, CellState, RunState, RunStatus},
};

use super::{Terminal, printable};

/// Narrowest columns, in the order of the reference page's: they hold its values and the words of its heads.
const WIDTHS: [usize; 12] = [16, 7, 8, 15, 9, 8, 10, 7, 8, 9, 9, 8];
/// Between two columns.
const GAP: &str = "  ";

/// What was shown of a run so far.
#[derive(Debug, Default)]
pub struct LiveTable {
    state: Option<RunState>,
    shown: BTreeSet<CellId>,
    headed: Option<String>,
    told_end: Option<RunOutcome>,
}

impl LiveTable {
    /// Folds a message and prints what is new in it.
    pub fn take(&mut self, message: ServerMessage, terminal: &mut Terminal) -> io::Result<()> {
        match message {
            ServerMessage::Hello { .. } | ServerMessage::Presence { .. } => Ok(()),
            ServerMessage::Gauge { gauge } => match &self.state {
                Some(state) if state.status == RunStatus::Running => terminal.in_place(&running_line(state, &gauge)),
                _ => Ok(()),
            },
            ServerMessage::Snapshot { state, .. } => {
                self.state = Some(*state);
                self.print(terminal)
            }
            ServerMessage::Event { envelope } => {
                let Some(state) = &mut self.state else { return Ok(()) };
                // A gap can't be: the feed sends a snapshot instead. Were there one, the rows would still be right.
                if state.apply(&envelope) != Ok(Applied::New) {
                    return Ok(());
                }
                if let RunEvent::Log { level: LogLevel::Warning, text } = &envelope.event {
                    terminal.hint(&printable(text));
                }
                self.print(terminal)
            }
        }
    }

    /// Whether anything was shown.
    pub fn has_begun(&self) -> bool {
        self.state.is_some()
    }

    /// Whether the run's end was shown.
    pub fn is_over(&self) -> bool {
        self.told_end.is_some()
    }

    fn print(&mut self, terminal: &mut Terminal) -> io::Result<()> {
        let Some(state) = &self.state else { return Ok(()) };
        let title = title(state);
        // The name is known only after the probe, so a changed one is said again.
        if self.headed.as_ref() != Some(&title) {
            terminal.hint(&title);
            if self.headed.replace(title).is_none() {
                terminal.line(&head(&export::table(state)))?;
            }
        }
        let settled = state.cells.iter().filter(|cell| is_settled(cell)).map(|cell| cell.id);
        let new: Vec<CellId> = settled.filter(|id| self.shown.insert(*id)).collect();
        if !new.is_empty() {
            let table = export::table(state);
            for id in new {
                terminal.line(&row(&table, id))?;
            }
        }
        match &state.status {
            RunStatus::Ended { outcome } if self.told_end.as_ref() != Some(outcome) => {
                terminal.hint(&end(state, outcome));
                self.told_end = Some(outcome.clone());
            }
            _ => {}
        }
        Ok(())
    }
}

fn is_settled(cell: &Cell) -> bool {
    !matches!(cell.state, CellState::Planned | CellState::Running { .. })
}

pub(super) fn title(state: &RunState) -> String {
    let simulated = if state.is_simulated() { "simulated: " } else { "" };
    format!("{simulated}{}  {}", printable(&state.title()), state.id)
}

/// The reference page's heads, a word per line, so that the columns stay narrow.
fn head(table: &Table) -> String {
    let heads: Vec<Vec<&str>> = table.columns.iter().map(|head| head.split(' ').collect()).collect();
    let height = heads.iter().map(Vec::len).max().unwrap_or(0);
    let line = |y: usize| {
        let words = heads.iter().map(|words| (y + words.len()).checked_sub(height).and_then(|i| words.get(i)));
        joined(words.map(|word| word.copied().unwrap_or_default()))
    };
    (0..height).map(line).collect::<Vec<_>>().join("\n")
}

fn row(table: &Table, id: CellId) -> String {
    let row = table.rows.iter().find(|row| row.id == id);
    joined(row.iter().flat_map(|row| &row.cells).map(String::as_str))
}

/// Words and names to the left, numbers to the right.
fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let padded = texts.zip(WIDTHS).enumerate().map(|(column, (text, width))| match column {
        0 | 3 => format!("{text:<width$}"),
        _ => format!("{text:>width$}"),
    });
    padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
}

pub(super) fn running_line(state: &RunState, gauge: &Gauge) -> String {
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

pub(super) fn end(state: &RunState, outcome: &RunOutcome) -> String {
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

#[cfg(test)]
mod tests {
    use speedmatrix_shared::sample;

    use super::{super::tests::Page, *};

    #[test]
    fn the_reference_run_is_the_reference_table() {
        let page = Page::default();
        let mut table = LiveTable::default();
        let snapshot = ServerMessage::Snapshot { state: Box::new(sample::reference()), now_ns: 0 };
        table.take(snapshot.clone(), &mut page.piped()).unwrap();
        let text = page.text();
        let lines: Vec<&str> = text.lines().collect();
        insta::assert_snapshot!(lines[1..6].join("\n"), @"
                               Requests                                   Per                 Time   Average
                                     at                       Total   request              between    active  Completed     Output  Measured
    Phase             Context      once  Status               tok/s     tok/s        TTFT   tokens  requests   requests     tokens       for
    Prefill                8K         1  Valid                11.3K         —      726 ms        —         —          1          —         —
    Prefill               16K         1  Valid                11.6K         —    1,402 ms        —         —          1          —         —
    ");
        assert!(table.is_over());
        // A second snapshot, as after a lost connection, repeats nothing.
        table.take(snapshot, &mut page.piped()).unwrap();
        assert_eq!(page.text(), text);
    }
}
