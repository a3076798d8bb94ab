//! The comparison as Markdown: the verdict, what differs, the biggest changes, all cells.

use super::{change, interval, name, why};
use crate::{
    compare::{ArgumentChange, CellSide, ComparedCell, Comparison, RunSide},
    event::Origin,
    export::markdown::escape,
    format,
};

/// As many of the biggest changes are told.
const BIGGEST: usize = 5;

pub(super) fn render(comparison: &Comparison) -> String {
    let metric = comparison.metric.metric();
    let title = format!("# {}: B against A", escape(metric.label));
    let lead = format!("**{}**", comparison.sentence());
    let runs = [("A", &comparison.a), ("B", &comparison.b)].map(|(name, side)| run(name, side)).join("\n");
    let notes: Vec<String> = comparison.notes.iter().map(|note| format!("- {}", escape(note))).collect();
    let margin = format!(
        "Change: B ÷ A − 1 with its 95 % interval. Within ±{} is no difference. Faster and slower hold a false discovery \
         rate of 5 % over all cells.",
        format::percent(Some(comparison.margin))
    );
    let mut parts = vec![title, lead, runs, notes.join("\n"), conditions(comparison), command(comparison)];
    parts.push(section("Biggest changes", &cells(comparison, &comparison.biggest(BIGGEST))));
    let all: Vec<&ComparedCell> = comparison.cells.iter().collect();
    parts.push(section("All cells", &cells(comparison, &all)));
    parts.push(margin);
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn run(name: &str, side: &RunSide) -> String {
    let origin = match side.origin {
        Some(Origin::Simulated { .. }) => ", simulated",
        Some(Origin::Imported) => ", imported",
        Some(Origin::Measured) | None => "",
    };
    let started = format::wall_time(side.started_unix_ms);
    format!("- {name}: {} (`{}`, started {started}{origin})", escape(&side.title), side.id)
}

fn section(title: &str, rows: &str) -> String {
    if rows.is_empty() { String::new() } else { format!("## {title}\n\n{rows}") }
}

/// A table, or nothing without rows. Every text in it is escaped here.
fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let escaped = rows.iter().map(|row| line(&row.iter().map(|cell| escape(cell)).collect::<Vec<_>>()));
    let head = [format!("| {} |", head.join(" | ")), format!("|{}", "---|".repeat(N))];
    head.into_iter().chain(escaped).collect::<Vec<_>>().join("\n")
}

fn conditions(comparison: &Comparison) -> String {
    let told = |side: &Option<String>| side.clone().unwrap_or_else(|| format::MISSING.to_owned());
    let rows: Vec<[String; 5]> = comparison
        .differences()
        .into_iter()
        .filter_map(|it| {
            let severity = it.severity?.label().to_owned();
            Some([severity, it.group.label().to_owned(), it.label.to_owned(), told(&it.a), told(&it.b)])
        })
        .collect();
    section("Conditions that differ", &table(["Severity", "Of", "What", "A", "B"], &rows))
}

fn command(comparison: &Comparison) -> String {
    let told = |side: &Option<String>| side.clone().unwrap_or_else(|| format::MISSING.to_owned());
    let rows: Vec<[String; 4]> = comparison
        .command
        .iter()
        .filter(|argument| argument.change != ArgumentChange::Same)
        .map(|it| [it.name.clone(), it.change.label().to_owned(), told(&it.a), told(&it.b)])
        .collect();
    section("Launch command", &table(["Argument", "Change", "A", "B"], &rows))
}

fn cells(comparison: &Comparison, cells: &[&ComparedCell]) -> String {
    let metric = comparison.metric.metric();
    let value = |side: &Option<CellSide>| (metric.show)(side.as_ref().and_then(|side| side.value));
    let rows: Vec<[String; 7]> = cells
        .iter()
        .map(|cell| {
            let verdict = format!("{} {}", cell.verdict.glyph(), cell.label(comparison.metric));
            [name(cell), value(&cell.a), value(&cell.b), change(cell), interval(cell), verdict, why(cell)]
        })
        .collect();
    table(["Cell", "A", "B", "Change", "Interval", "Verdict", "Why"], &rows)
}
