//! Two runs that take turns, in the terminal: a line as each measurement ends, and the running cell in place below them.

use std::{collections::BTreeMap, io};

use speedmatrix_shared::{
    api::ServerMessage,
    format,
    id::CellId,
    plan::Side,
    state::{Cell, CellState},
    stats::cell::CellResult,
};

use super::{
    Terminal,
    followed::{Followed, News},
};

/// What was shown of both runs so far.
#[derive(Debug)]
pub struct LivePair {
    runs: BTreeMap<Side, Shown>,
}

/// What was shown of one of them.
#[derive(Debug, Default)]
struct Shown {
    run: Followed,
    /// Measurements of each cell that have a line.
    lines: BTreeMap<CellId, usize>,
}

impl Default for LivePair {
    fn default() -> Self {
        Self { runs: Side::BOTH.map(|side| (side, Shown::default())).into() }
    }
}

impl LivePair {
    /// Folds a message of one run and says what is new in it, beside the results: they are the comparison.
    pub fn take(&mut self, side: Side, message: ServerMessage, terminal: &mut Terminal) -> io::Result<()> {
        let shown = self.runs.entry(side).or_default();
        let name = side.label();
        match shown.run.take(message) {
            News::Nothing => {}
            News::Running(line) => terminal.in_place(&format!("{name}  {line}"))?,
            News::Changed { warning } => {
                for line in warning.into_iter().chain(shown.news()) {
                    terminal.hint(&format!("{name}  {line}"));
                }
            }
        }
        Ok(())
    }
}

impl Shown {
    /// What was not said yet.
    fn news(&mut self) -> Vec<String> {
        let mut news: Vec<String> = self.run.new_title().into_iter().collect();
        for cell in self.run.state().iter().flat_map(|state| &state.cells) {
            let lines = self.lines.entry(cell.id).or_default();
            let all = lines_of(cell);
            news.extend(all.iter().skip(*lines).cloned());
            *lines = all.len().max(*lines);
        }
        news.extend(self.run.new_end());
        news
    }
}

/// A line for each measurement of a cell, or one that says why there is none.
fn lines_of(cell: &Cell) -> Vec<String> {
    let measured = match &cell.state {
        CellState::Finished { result } if cell.repeats.is_empty() => std::slice::from_ref(result.as_ref()),
        CellState::Skipped { .. } => return vec![format!("{:<18}  {}", cell.id.to_string(), cell.status_label())],
        _ => cell.repeats.as_slice(),
    };
    (1..).zip(measured).map(|(number, result)| line(cell.id, number, result)).collect()
}

fn line(cell: CellId, number: usize, result: &CellResult) -> String {
    let (rate, ttft) = (format::rate(result.stats.total_tok_s), format::ttft(result.stats.ttft_s.map(|it| it.p50)));
    format!("{:<18}  #{number:<3} {rate:>9} tok/s  TTFT {ttft:>9}  {}", cell.to_string(), result.status.label())
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::sample;

    use super::{super::tests::Page, *};

    #[test]
    fn each_measurement_is_said_once_and_whose_it_is() {
        let mut run = sample::reference();
        let cell = run.cells.iter_mut().find(|cell| cell.id.to_string() == "decode-8K-4").unwrap();
        let result = cell.result().unwrap().clone();
        cell.repeats = vec![result.clone(), result];
        let (page, mut pair) = (Page::default(), LivePair::default());
        let snapshot = || ServerMessage::Snapshot { state: Box::new(run.clone()), now_ns: 0 };
        for (side, times) in [(Side::A, 1), (Side::B, 1), (Side::A, 2)] {
            for _ in 0..times {
                pair.take(side, snapshot(), &mut page.piped()).unwrap();
            }
        }
        let text = page.text();
        let few = text
            .lines()
            .filter(|line| ["reference", "-8K-1 ", "-8K-4 ", "measured"].iter().any(|part| line.contains(part)));
        insta::assert_snapshot!(few.collect::<Vec<_>>().join("\n"), @"
A  DeepSeek-V4-Flash-DSpark on H200 NVL 141GB ×2  reference
A  prefill-8K-1        #1       11.3K tok/s  TTFT    726 ms  Valid
A  decode-8K-1         #1       223.5 tok/s  TTFT     92 ms  Valid
A  decode-8K-4         #1       854.7 tok/s  TTFT    143 ms  Valid
A  decode-8K-4         #2       854.7 tok/s  TTFT    143 ms  Valid
A  finished: 73 of 73 cells measured, 0 failed
B  DeepSeek-V4-Flash-DSpark on H200 NVL 141GB ×2  reference
B  prefill-8K-1        #1       11.3K tok/s  TTFT    726 ms  Valid
B  decode-8K-1         #1       223.5 tok/s  TTFT     92 ms  Valid
B  decode-8K-4         #1       854.7 tok/s  TTFT    143 ms  Valid
B  decode-8K-4         #2       854.7 tok/s  TTFT    143 ms  Valid
B  finished: 73 of 73 cells measured, 0 failed
");
    }
}
