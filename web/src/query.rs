//! View state in the address: any view is a URL that opens the same view elsewhere. Pure: text in, text out.

use std::fmt::Write as _;

use speedmatrix_shared::{
    id::{CellId, RunId},
    metric::{self, Metric},
    plan::{Field, PlanDraft},
};

use crate::zoom::Zoom;

/// Which values a colour compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// All cells.
    #[default]
    All,
    /// The cells of a row.
    Row,
    /// The cells of a column.
    Column,
}

impl Scope {
    /// All of them, in the order of their buttons.
    pub const ALL: [Self; 3] = [Self::All, Self::Row, Self::Column];

    /// Its name in the address.
    pub const fn key(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Row => "row",
            Self::Column => "column",
        }
    }

    /// The words on its button.
    pub const fn label(self) -> &'static str {
        match self {
            Self::All => "Colour: all",
            Self::Row => "by row",
            Self::Column => "by column",
        }
    }

    fn read(text: &str) -> Self {
        Self::ALL.into_iter().find(|scope| scope.key() == text).unwrap_or_default()
    }
}

/// What the page of a run shows. Names that are unknown fall back to the default, so an old link still opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunView {
    /// Key of the metric in the heat map.
    pub metric: &'static str,
    /// What its colours compare.
    pub scope: Scope,
}

impl RunView {
    /// Reads `m` and `scope` from the address.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let metric = get("m").and_then(|key| metric::by_key(&key)).map_or(first_metric().key, |metric| metric.key);
        Self { metric, scope: get("scope").map_or(Scope::All, |text| Scope::read(&text)) }
    }

    /// The metric itself.
    pub fn metric(self) -> &'static Metric {
        metric::by_key(self.metric).unwrap_or_else(first_metric)
    }

    /// The query, with its question mark; empty for the default view.
    pub fn query(self) -> String {
        joined(&self.pairs())
    }

    fn pairs(self) -> Vec<(&'static str, &'static str)> {
        let mut pairs = Vec::new();
        if self.metric != first_metric().key {
            pairs.push(("m", self.metric));
        }
        if self.scope != Scope::All {
            pairs.push(("scope", self.scope.key()));
        }
        pairs
    }
}

/// What of a cell is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CellPart {
    /// The part of its time; all where there is none.
    pub zoom: Option<Zoom>,
    /// Which measurement of a repeated cell, from 1; the last where there is none.
    pub repeat: Option<usize>,
}

impl CellPart {
    /// Reads `t` and `repeat` from the address.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let repeat = get("repeat").and_then(|text| text.parse().ok()).filter(|repeat| *repeat > 0);
        Self { zoom: get("t").and_then(|text| Zoom::read(&text)), repeat }
    }

    fn pairs(self) -> Vec<(&'static str, String)> {
        let zoom = self.zoom.map(|zoom| ("t", zoom.text()));
        zoom.into_iter().chain(self.repeat.map(|repeat| ("repeat", repeat.to_string()))).collect()
    }
}

/// The address of a cell, over a report that shows `view`.
pub fn cell_address(run: &RunId, cell: CellId, view: RunView, shown: CellPart) -> String {
    let of_cell = shown.pairs();
    let pairs = view.pairs().into_iter().chain(of_cell.iter().map(|(key, value)| (*key, value.as_str())));
    format!("/runs/{run}/cells/{cell}{}", joined(&pairs.collect::<Vec<_>>()))
}

/// The address of all of a cell, over the report as it opens.
pub fn whole_cell(run: &RunId, cell: CellId) -> String {
    cell_address(run, cell, RunView::read(|_| None), CellPart::default())
}

fn first_metric() -> &'static Metric {
    metric::METRICS.first().expect("there are metrics")
}

/// A field's name in the address and in ids: its command line flag without the dashes.
pub fn field_key(field: Field) -> &'static str {
    field.flag().trim_start_matches('-')
}

/// Reads a half-made plan from the address.
pub fn read_draft(get: impl Fn(&str) -> Option<String>) -> PlanDraft {
    let mut draft = PlanDraft::default();
    for (field, _) in PlanDraft::default().fields() {
        if let Some(value) = get(field_key(field)) {
            *draft.field_mut(field) = value;
        }
    }
    draft
}

/// The query of a half-made plan, with its question mark; empty for an empty plan. The key of the server is no part of
/// a plan, so it never stands in an address.
pub fn draft_query(draft: &PlanDraft) -> String {
    let filled = draft.fields().into_iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<_> = filled.map(|(field, value)| (field_key(field), value)).collect();
    joined(&pairs)
}

/// A query of names and values, with its question mark; empty for none.
pub fn joined(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={}", encode(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// The query `search`, with or without its question mark, without the pairs of these names.
pub fn without(search: &str, names: &[&str]) -> String {
    let is_other = |pair: &&str| !pair.is_empty() && !names.contains(&pair.split('=').next().unwrap_or_default());
    let rest: Vec<&str> = search.trim_start_matches('?').split('&').filter(is_other).collect();
    if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) }
}

/// An address or a query with the pairs of the query `more` behind it.
pub fn appended(address: &str, more: &str) -> String {
    match more.strip_prefix('?') {
        None => address.to_owned(),
        Some(pairs) if address.contains('?') => format!("{address}&{pairs}"),
        Some(_) => format!("{address}{more}"),
    }
}

/// An address of a run's page with what `search` says of those parts that the address is not about.
pub fn kept(address: &str, search: &str) -> String {
    appended(address, &without(search, &["m", "scope", "t", "repeat"]))
}

/// Percent-encodes a value; commas, colons and slashes may stand in a query and stay readable.
fn encode(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~,:/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing into a text never fails.
            write!(text, "%{byte:02X}").ok();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn decode(value: &str) -> String {
        let mut bytes = Vec::new();
        let mut rest = value.bytes();
        while let Some(byte) = rest.next() {
            if byte == b'%' {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8(bytes).unwrap()
    }

    fn pairs(query: &str) -> BTreeMap<String, String> {
        let parts = query.trim_start_matches('?').split('&').filter_map(|pair| pair.split_once('='));
        parts.map(|(key, value)| (key.to_owned(), decode(value))).collect()
    }

    #[test]
    fn a_view_of_a_run_reads_back() {
        let check = |query: &str| {
            let found = pairs(query);
            assert_eq!(RunView::read(|key| found.get(key).cloned()).query(), query);
        };
        check("");
        check("?m=ttft");
        check("?scope=column");
        check("?m=time_between_tokens&scope=row");
    }

    #[test]
    fn unknown_names_open_the_default_view() {
        let view = RunView::read(|_| Some("nonsense".into()));
        assert_eq!(view.query(), "");
    }

    #[test]
    fn a_cell_has_an_address() {
        let (run, cell) = ("abc".parse().unwrap(), "decode-8K-16".parse().unwrap());
        let view = |query: &str| {
            let found = pairs(query);
            RunView::read(|key| found.get(key).cloned())
        };
        assert_eq!(cell_address(&run, cell, view(""), CellPart::default()), "/runs/abc/cells/decode-8K-16");
        let check = |query: &str, wanted: &str| {
            let found = pairs(query);
            let shown = CellPart::read(|key| found.get(key).cloned());
            assert_eq!(cell_address(&run, cell, view(query), shown), format!("/runs/abc/cells/decode-8K-16{wanted}"));
        };
        check("?m=ttft&t=1.5..20", "?m=ttft&t=1.5..20");
        check("?t=1.5..20&repeat=2", "?t=1.5..20&repeat=2");
        check("?repeat=0&t=20", "");
        check("?repeat=last", "");
    }

    #[test]
    fn what_other_parts_of_the_page_show_stays_in_the_address() {
        let check = |address: &str, search: &str, wanted: &str| assert_eq!(kept(address, search), wanted, "{search}");
        check("/runs/a", "", "/runs/a");
        check("/runs/a", "m=ttft&scope=row&t=1..2&repeat=2", "/runs/a");
        check("/runs/a?m=ttft", "?m=itl&sort=-ttft&find=a%26b", "/runs/a?m=ttft&sort=-ttft&find=a%26b");
        check("/runs/a", "sort=ttft", "/runs/a?sort=ttft");
        assert_eq!(without("?a=1&b=2", &["a"]), "?b=2");
        assert_eq!(without("a=1", &["a"]), "");
    }

    #[test]
    fn a_half_made_plan_reads_back() {
        let draft = PlanDraft {
            target: "http://127.0.0.1:8000".into(),
            name: "50 % é & more?".into(),
            contexts: "8K,16K".into(),
            prefill_contexts: "none".into(),
            ..PlanDraft::default()
        };
        let query = draft_query(&draft);
        assert!(query.starts_with("?target=http://127.0.0.1:8000&name=50%20%25"), "{query}");
        let found = pairs(&query);
        assert_eq!(read_draft(|key| found.get(key).cloned()), draft);
        assert_eq!(draft_query(&PlanDraft::default()), "");
    }
}
