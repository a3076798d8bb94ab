//! The report as Markdown.

use super::{REPORT_NOTES, origin_words, table};
use crate::{
    facts::{self, Fact},
    finding::{Finding, run::run_findings},
    label::Labels,
    state::RunState,
    typed::{self, TypedFact},
};

/// Title, facts, findings and all measurements.
pub fn render(state: &RunState) -> String {
    render_labelled(state, &Labels::default())
}

/// As [`render`], under the name that people gave the run and with their notes.
pub fn render_labelled(state: &RunState, labels: &Labels) -> String {
    let title = labels.title.clone().unwrap_or_else(|| state.title());
    let mut parts = vec![format!("# {}", escape(&title)), lead(state)];
    if !labels.notes.is_empty() {
        parts.push(format!("## Notes\n\n{}", fenced(&labels.notes)));
    }
    parts.push(bullets("Findings", &run_findings(state)));
    for (title, told) in [
        ("Hardware", facts::hardware_facts(state)),
        ("Engine", facts::engine_facts(state)),
        ("Run", facts::run_facts(state)),
    ] {
        parts.push(fact_table(title, &typed::filled(told, &labels.typed)));
    }
    if let Some(command) = facts::launch_command(state) {
        parts.push(format!("## Launch command\n\n{}", fenced(command)));
    } else if let Some(command) = labels.typed.get(&TypedFact::LaunchCommand) {
        parts.push(format!("## Launch command {}\n\n{}", typed::MARK, fenced(command)));
    }
    parts.push(format!("## All measurements\n\n{}", measurements(state)));
    parts.push(REPORT_NOTES.join("\n\n"));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn lead(state: &RunState) -> String {
    let engine = crate::api::engine_line(state.facts.as_ref());
    let lines = [escape(&engine), facts::subtitle(state), origin_words(state)];
    lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn bullets(title: &str, findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = findings.iter().map(|finding| format!("- {}", escape(&finding.text))).collect();
    format!("## {title}\n\n{}", lines.join("\n"))
}

fn fact_table(title: &str, told: &[Fact]) -> String {
    let rows: Vec<String> = told.iter().map(|(label, text)| format!("| {label} | {} |", escape(text))).collect();
    format!("## {title}\n\n| | |\n|---|---|\n{}", rows.join("\n"))
}

fn measurements(state: &RunState) -> String {
    let table = table(state);
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let head = line(table.columns.iter().map(ToString::to_string).collect());
    let rule = format!("|{}", "---|".repeat(table.columns.len()));
    let rows = table.rows.iter().map(|row| line(row.cells.iter().map(|cell| escape(cell)).collect()));
    [head, rule].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

/// Text of a server or a user on one line, without any meaning to Markdown or HTML: no link, no picture, no emphasis, nobody
/// who is called. Ordinary names stay readable.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let (mut rest, mut before) = (text.chars(), None);
    while let Some(c) = rest.next() {
        let after = rest.as_str();
        match c {
            '\\' | '|' | '`' | '[' | ']' => safe.extend(['\\', c]),
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            // Sites look for names and addresses after Markdown is done; a word joiner, which is not seen, keeps them off.
            '@' if after.starts_with(char::is_alphanumeric) => safe.push_str("@&#8288;"),
            '.' if safe.ends_with("www") => safe.push_str("\\."),
            c if c.is_control() => safe.push(' '),
            c if is_live(c, before, after) => safe.extend(['\\', c]),
            c => safe.push(c),
        }
        before = Some(c);
    }
    safe
}

/// Whether Markdown takes a character for a mark between these: emphasis, a strike, an address, or the beginning of a heading,
/// a quote or a list.
fn is_live(c: char, before: Option<char>, after: &str) -> bool {
    let next = after.chars().next();
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_gap = |c: Option<char>| c.is_some_and(char::is_whitespace);
    match c {
        '_' => !(is_word(before) && is_word(next)),
        '*' => !(is_gap(before) && is_gap(next)),
        '~' => before.is_some() && !is_gap(before),
        ':' => after.starts_with("//"),
        '#' | '>' => before.is_none(),
        '-' | '+' => before.is_none() && (is_gap(next) || after.chars().all(|next| next == c)),
        _ => false,
    }
}

/// A code block whose fence is longer than any row of backticks in it.
fn fenced(code: &str) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let clean: String = code.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    format!("{fence}\n{clean}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// The reference page's table, as it was published; where the materials lie beside the repository.
    const ORIGINAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/seed/all-measurements.md");

    #[test]
    fn the_reference_keeps_every_row_of_its_page() {
        let text = render(&sample::reference());
        let lines: Vec<&str> = text.lines().collect();
        let rows = include_str!("../sample/all-measurements.md");
        assert_eq!(rows.lines().count(), 75);
        let missing: Vec<&str> = rows.lines().filter(|row| !lines.contains(row)).collect();
        assert!(missing.is_empty(), "{missing:#?}");
        match std::fs::read_to_string(ORIGINAL) {
            Ok(original) => assert_eq!(original, rows),
            Err(error) => println!("the published table is not here, so only our copy was compared: {error}"),
        }
    }

    #[test]
    fn hostile_text_stays_text() {
        let check = |text: &str, wanted: &str| assert_eq!(escape(text), wanted);
        check("a|b\nc", "a\\|b c");
        check("<script>&", "&lt;script>&amp;");
        check("llama_3.1 at 2 * 3, ~5 ms, a-b #3 x@ 10:20", "llama_3.1 at 2 * 3, ~5 ms, a-b #3 x@ 10:20");
        check("*a* __b__ _c_ d*e", "\\*a\\* \\_\\_b\\_\\_ \\_c\\_ d\\*e");
        check("~~a~~", "~\\~a\\~\\~");
        check("https://evil.example HTTP://x www.x.org", "https\\://evil.example HTTP\\://x www\\.x.org");
        check("@everyone a@b.org", "@&#8288;everyone a@&#8288;b.org");
        check("# x", "\\# x");
        check("> x", "\\> x");
        check("- x", "\\- x");
        check("---", "\\---");
        check("-0.4 ms", "-0.4 ms");
        check("--max-model-len", "--max-model-len");
        check("[x](y) `z` \\", "\\[x\\](y) \\`z\\` \\\\");
        assert_eq!(fenced("a ``` b\u{7}"), "````\na ``` b\n````");
    }
}
