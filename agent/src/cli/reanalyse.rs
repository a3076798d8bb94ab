//! `reanalyse`: a stored run under the rules of this version.

use speedmatrix_shared::{
    format,
    id::RunId,
    stats::{RULES_VERSION, cell::CellResult},
};

use super::{CliError, Exit, args_of_runs::ReanalyseArgs};
use crate::{
    reanalysis::{Again, Now, Reanalysis},
    store::{Access, Store},
    terminal::Terminal,
};

/// Columns: what was stored and what is said now, side by side.
const HEADS: [&str; 8] = ["cell", "total tok/s", "now", "status", "now", "rules", "now", "changed"];

pub(super) async fn reanalyse(args: ReanalyseArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let id: RunId = args.run.parse().map_err(|e| CliError::Usage(format!("{e}")))?;
    let path = args.store.path()?;
    let store = Store::open(&path, Access::Read).await?;
    let again = Reanalysis::of(&store, &id).await?;
    for line in table(again.cells()) {
        terminal.line(&line)?;
    }
    terminal.line(&unchanged(again.cells()))?;
    let without: Vec<String> = again.cells().iter().filter(|cell| matches!(cell.now, Now::NoRaw)).map(name).collect();
    if !without.is_empty() {
        let cells = without.join(", ");
        terminal.hint(&format!("without raw arrivals, so their numbers stay as they were stored: {cells}"));
    }
    let mut exit = Exit::Done;
    for cell in again.cells() {
        if let Now::Damaged(error) = &cell.now {
            terminal.complain(&error.to_string());
            exit = Exit::SomeFailed;
        }
    }
    if args.save {
        drop(store);
        let new = again.save(&Store::open(&path, Access::Measure).await?).await?;
        terminal.hint(&format!("stored as {new}: `speedmatrix export {new} --format md` writes it as a file"));
    }
    Ok(exit)
}

fn name(again: &Again) -> String {
    let repeat = again.repeat.map_or_else(String::new, |number| format!(" #{number}"));
    format!("{}{repeat}", again.cell)
}

/// The changed cells below their heads; nothing if there are none.
fn table(cells: &[Again]) -> Vec<String> {
    let changed = cells.iter().filter(|again| again.is_changed());
    let mut rows: Vec<[String; 8]> = changed.filter_map(|again| Some(row(again, again.result()?))).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    rows.insert(0, HEADS.map(str::to_owned));
    let width = |column: usize| rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let line = |row: &[String; 8]| {
        let padded = row.iter().zip(&widths).enumerate().map(|(column, (text, width))| match column {
            0 | 3 | 4 | 7 => format!("{text:<width$}"),
            _ => format!("{text:>width$}"),
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn row(again: &Again, now: &CellResult) -> [String; 8] {
    let then = &again.then;
    let total = |result: &CellResult| format::rate(result.stats.total_tok_s);
    let rules = |result: &CellResult| format::count(result.rules.map(u64::from));
    [
        name(again),
        total(then),
        total(now),
        then.status.label(),
        now.status.label(),
        rules(then),
        rules(now),
        changes(then, now).join(", "),
    ]
}

/// The names of what differs, as the JSON export has them.
fn changes(then: &CellResult, now: &CellResult) -> Vec<String> {
    let mut names = Vec::new();
    let mut note = |name: &str, differs: bool| names.extend(differs.then(|| name.to_owned()));
    note("status", then.status != now.status);
    note("findings", then.findings != now.findings);
    note("failures", then.failures != now.failures);
    if let (Ok(serde_json::Value::Object(then)), Ok(serde_json::Value::Object(now))) =
        (serde_json::to_value(&then.stats), serde_json::to_value(&now.stats))
    {
        for (name, value) in &now {
            note(name, then.get(name) != Some(value));
        }
    }
    names
}

/// What did not change, in one line.
fn unchanged(cells: &[Again]) -> String {
    let again = cells.iter().filter(|again| again.result().is_some()).count();
    let changed = cells.iter().filter(|again| again.is_changed()).count();
    format!("{} of {again} analysed cells unchanged under rules {RULES_VERSION}", again - changed)
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{finding::Finding, stats::cell::CellStatus};

    use super::*;

    fn again(cell: &str, change: impl Fn(&mut CellResult)) -> Again {
        let then = CellResult { rules: None, findings: Vec::new(), ..CellResult::not_drained(0.0, 0.0) };
        let mut now = CellResult { rules: Some(RULES_VERSION), ..then.clone() };
        change(&mut now);
        Again { cell: cell.parse().unwrap(), seq: 0, repeat: None, then, now: Now::Result(Box::new(now)) }
    }

    #[test]
    fn only_changed_cells_have_a_row() {
        let same = again("decode-8K-1", |_| {});
        let other = again("decode-128K-16", |now| {
            (now.status, now.stats.total_tok_s) = (CellStatus::Valid, Some(1_234.5));
            now.findings.push(Finding::info("new", "New."));
        });
        let none = Again { now: Now::NoRaw, ..again("decode-8K-2", |_| {}) };
        assert!(table(std::slice::from_ref(&same)).is_empty());
        let cells = [same, other, none];
        insta::assert_snapshot!([table(&cells), vec![unchanged(&cells)]].concat().join("\n"), @"
        cell            total tok/s      now  status                   now    rules  now  changed
        decode-128K-16            —  1,234.5  Failed: engine not idle  Valid      —    2  status, findings, total_tok_s
        1 of 2 analysed cells unchanged under rules 2
        ");
    }
}
