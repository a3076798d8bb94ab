//! A run in the terminal: a row as each cell ends, and the running cell in place below them. Fed by the same messages
//! and the same fold as the page.

use std::{collections::BTreeSet, io};

use speedmatrix_shared::{
    api::ServerMessage,
    export::{self, Table},
    id::CellId,
    state::{Cell, CellState},
};

use super::{
    Terminal,
    followed::{Followed, News},
};

/// Narrowest columns, in the order of the reference page's: they hold its values and the words of its heads.
const WIDTHS: [usize; 12] = [16, 7, 8, 15, 9, 8, 10, 7, 8, 9, 9, 8];
/// Between two columns.
const GAP: &str = "  ";

/// What was shown of a run so far.
#[derive(Debug, Default)]
pub struct LiveTable {
    run: Followed,
    shown: BTreeSet<CellId>,
    has_head: bool,
}

impl LiveTable {
    /// Folds a message and prints what is new in it.
    pub fn take(&mut self, message: ServerMessage, terminal: &mut Terminal) -> io::Result<()> {
        match self.run.take(message) {
            News::Nothing => Ok(()),
            News::Running(line) => terminal.in_place(&line),
            News::Changed { warning } => {
                if let Some(warning) = warning {
                    terminal.hint(&warning);
                }
                self.print(terminal)
            }
        }
    }

    /// Whether anything was shown.
    pub fn has_begun(&self) -> bool {
        self.run.state().is_some()
    }

    /// Whether the run's end was shown.
    pub fn is_over(&self) -> bool {
        self.run.is_over()
    }

    fn print(&mut self, terminal: &mut Terminal) -> io::Result<()> {
        if let Some(title) = self.run.new_title() {
            terminal.hint(&title);
        }
        let Some(state) = self.run.state() else { return Ok(()) };
        let settled = state.cells.iter().filter(|cell| is_settled(cell)).map(|cell| cell.id);
        let new: Vec<CellId> = settled.filter(|id| self.shown.insert(*id)).collect();
        if !self.has_head || !new.is_empty() {
            let table = export::table(state);
            if !std::mem::replace(&mut self.has_head, true) {
                terminal.line(&head(&table))?;
            }
            for id in new {
                terminal.line(&row(&table, id))?;
            }
        }
        if let Some(end) = self.run.new_end() {
            terminal.hint(&end);
        }
        Ok(())
    }
}

fn is_settled(cell: &Cell) -> bool {
    !matches!(cell.state, CellState::Planned | CellState::Running { .. })
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
