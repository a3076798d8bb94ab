//! The report as one page that opens from disk, without a network and without a script: headline numbers, facts,
//! findings, tables, and charts as drawings.

mod chart;
mod matrix;

use super::{REPORT_NOTES, origin_words, table};
use crate::{
    event::RunOutcome,
    facts::{self, Fact, Kpi},
    finding::run::run_findings,
    format,
    id::Phase,
    label::Labels,
    state::{RunState, RunStatus},
};

/// Colours and sizes: those of the app, so that a page and its file look alike.
const TOKENS: &str = include_str!("../../../../web/style/tokens.css");
/// Where things stand in the file.
const STYLE: &str = include_str!("report.css");
/// Nothing is loaded and nothing runs, whatever a text in the page may try.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The page.
pub fn render(state: &RunState) -> String {
    render_labelled(state, &Labels::default())
}

/// As [`render`], under the name that people gave the run and with their notes.
pub fn render_labelled(state: &RunState, labels: &Labels) -> String {
    let title = labels.title.clone().unwrap_or_else(|| state.title());
    let parts = [
        head(state, &title),
        kpis(&facts::kpis(state)),
        findings(state),
        cards(state),
        prefill(state),
        decode(state),
        charts(state),
        measurements(state),
        notes(labels),
        foot(state),
    ];
    let body: String = parts.concat();
    let (title, style) = (escape(&title), style());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"{POLICY}\">\n<title>{title} · Speedmatrix</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
         <main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// The style sheet. The app's font is a file of its own and stays out: the system's stands in for it.
fn style() -> String {
    let tokens = match (TOKENS.find("@font-face"), TOKENS.find(":root")) {
        (Some(from), Some(to)) if from < to => [&TOKENS[..from], &TOKENS[to..]].concat(),
        _ => TOKENS.to_owned(),
    };
    format!("{tokens}\n{STYLE}")
}

/// Text of a server or a user, without any meaning to HTML. What can't be seen is left out, except line breaks.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' => safe.push('\n'),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// Foreign text, kept from turning the direction of what stands beside it.
fn foreign(text: &str) -> String {
    format!("<bdi>{}</bdi>", escape(text))
}

fn section(id: &str, title: &str, says: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    let says = if says.is_empty() { String::new() } else { format!("<p class=\"say\">{}</p>\n", escape(says)) };
    format!("<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{}</h2>\n{says}{body}</section>\n", escape(title))
}

fn head(state: &RunState, title: &str) -> String {
    let engine = crate::api::engine_line(state.facts.as_ref());
    let lines =
        [foreign(&engine), escape(&facts::subtitle(state)), escape(&origin_words(state)), escape(&ending(state))];
    let lines = lines.into_iter().filter(|line| !line.is_empty() && line != "<bdi></bdi>");
    let lines = concat(lines.map(|line| format!("<p class=\"say\">{line}</p>\n")));
    format!("<header>\n<h1>{}</h1>\n{lines}</header>\n", foreign(title))
}

/// How the run ended, where that is not as planned.
fn ending(state: &RunState) -> String {
    let (done, all) = state.progress();
    match &state.status {
        RunStatus::Running => format!("The run was not over: {done} of {all} cells were measured."),
        RunStatus::Ended { outcome: RunOutcome::Finished } => String::new(),
        RunStatus::Ended { outcome: RunOutcome::Cancelled } => {
            format!("The run was stopped. {done} of {all} cells were measured.")
        }
        RunStatus::Ended { outcome: RunOutcome::Interrupted } => {
            format!("The agent ended in the middle of this run. {done} of {all} cells were measured.")
        }
        RunStatus::Ended { outcome: RunOutcome::Failed { reason } } => format!("The run failed: {reason}"),
    }
}

fn kpis(kpis: &[Kpi]) -> String {
    let one = |kpi: &Kpi| {
        let (label, value, unit, at) = (kpi.label, escape(&kpi.value), escape(&kpi.unit), escape(&kpi.at));
        format!(
            "<div><dt>{label}</dt><dd class=\"value\">{value} <small>{unit}</small></dd><dd class=\"at\">{at}</dd></div>\n"
        )
    };
    format!("<dl class=\"kpis\">\n{}</dl>\n", kpis.iter().map(one).collect::<String>())
}

fn findings(state: &RunState) -> String {
    let items = concat(run_findings(state).iter().map(|finding| format!("<li>{}</li>\n", escape(&finding.text))));
    let list = if items.is_empty() { items } else { format!("<ul class=\"findings\">\n{items}</ul>\n") };
    section("findings", "What to know before you read the numbers", "", &list)
}

fn cards(state: &RunState) -> String {
    let row = |(label, text): &Fact| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(label), foreign(text));
    let card = |title: &str, told: &[Fact]| {
        format!(
            "<div class=\"panel\"><h3>{title}</h3>\n<dl>\n{}</dl></div>\n",
            told.iter().map(row).collect::<String>()
        )
    };
    let cards = [
        card("Hardware", &facts::hardware_facts(state)),
        card("Engine", &facts::engine_facts(state)),
        card("Run", &facts::run_facts(state)),
    ];
    let command = facts::launch_command(state)
        .map(|command| format!("<div class=\"panel\"><h3>Launch command</h3>\n<pre>{}</pre></div>\n", escape(command)));
    let body = format!("<div class=\"cards\">\n{}</div>\n{}", cards.concat(), command.unwrap_or_default());
    section("conditions", "Conditions", "", &body)
}

fn prefill(state: &RunState) -> String {
    let charts = [chart::prefill_rate(state), chart::prefill_time(state)].concat();
    let body = if charts.is_empty() { charts } else { format!("<div class=\"charts\">\n{charts}</div>\n") };
    section("prefill", Phase::Prefill.label(), "By context length, cold cache", &body)
}

fn decode(state: &RunState) -> String {
    let title = state.plan.load().phase_label(Phase::Decode);
    section("decode", title, "Total tokens per second; a stronger colour is better", &matrix::render(state))
}

fn charts(state: &RunState) -> String {
    let charts = chart::decode(state);
    let body = if charts.is_empty() { charts } else { format!("<div class=\"charts\">\n{charts}</div>\n") };
    section("charts", "Charts", "One line per context length; bands are 95 % intervals", &body)
}

/// Parts of a page, one after the other.
fn concat<T: AsRef<str>>(parts: impl IntoIterator<Item = T>) -> String {
    parts.into_iter().fold(String::new(), |text, part| text + part.as_ref())
}

fn measurements(state: &RunState) -> String {
    let table = table(state);
    let heads = concat(table.columns.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape(name))));
    let mut rows = String::new();
    for row in &table.rows {
        rows.push_str("<tr>");
        for (text, sure) in row.cells.iter().zip(&row.precision) {
            let sure = if sure.is_empty() { String::new() } else { format!("<small>{}</small>", escape(sure)) };
            rows += &concat(["<td>", &escape(text), &sure, "</td>"]);
        }
        rows.push_str("</tr>\n");
    }
    let body = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of all measurements\"><table class=\"rows\">\n\
         <thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    );
    section("all", "All measurements", "", &body)
}

fn notes(labels: &Labels) -> String {
    let own = if labels.notes.is_empty() {
        String::new()
    } else {
        format!("<p class=\"own\" dir=\"auto\">{}</p>\n", escape(&labels.notes))
    };
    let fixed = concat(REPORT_NOTES.iter().map(|note| format!("<p>{}</p>\n", escape(note))));
    section("notes", "Notes", "", &(own + &fixed))
}

fn foot(state: &RunState) -> String {
    let started = format::wall_time(state.started_unix_ms);
    let parts = [format!("Run {}", state.id), state.tool.clone(), format!("Started {started}")];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    format!("<footer>{}</footer>\n", parts.map(|part| foreign(&part)).collect::<Vec<_>>().join(" · "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan::PlanDraft, sample};

    #[test]
    fn the_page_needs_nothing_but_itself() {
        let page = render(&sample::reference());
        for outside in ["<script", "src=", "url(", "@import", "<link", "href=", "javascript:"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("<tr>").count(), 1 + 73 + 9, "the table with its head, the matrix with its head");
        assert_eq!(page.matches("<svg").count(), 6);
        assert!(page.contains("<td>163,008 ms</td>") && page.contains("4,201.1 <small>tok/s</small>"));
        assert!(page.contains("--api-key &lt;redacted&gt;"));
        assert!(!page.contains("NaN"));
    }

    #[test]
    fn whatever_a_name_holds_is_text() {
        let mut state = sample::reference();
        let hostile = "</title><script>alert(1)</script><img src=x onerror='x'>\u{202e}";
        let draft = PlanDraft { name: hostile.into(), ..PlanDraft::from(state.plan.clone()) };
        state.plan = draft.try_into().unwrap();
        if let Some(facts) = &mut state.facts {
            facts.launch_command = Some("</pre><script>".into());
            facts.hardware.os = Some("<b onclick=x>".into());
        }
        state.status = RunStatus::Ended { outcome: RunOutcome::Failed { reason: "<i>reason</i>".into() } };
        let labels = Labels { notes: "<script>\u{7}\nline".into(), ..Labels::default() };
        let page = render_labelled(&state, &labels);
        for markup in ["<script", "<img", "<b ", "<i>", "</title><", "</pre><s", "\u{7}"] {
            assert!(!page.contains(markup), "{markup}");
        }
        assert!(page.contains("&lt;script&gt; \nline") && page.contains("&lt;i&gt;reason"));
    }

    #[test]
    fn a_run_that_has_hardly_begun_is_a_page_too() {
        let log = sample::reference_events();
        for events in [1, 2, 5] {
            let id = crate::id::RunId::REFERENCE.parse().unwrap();
            let state = RunState::fold(id, log.iter().take(events)).unwrap().unwrap();
            let page = render(&state);
            assert!(page.contains("The run was not over") && !page.contains("NaN"), "{events}");
        }
    }
}
