//! Which runs of the list are shown, and in which order: search and filters as they stand in the address. Pure.

use std::collections::{BTreeMap, BTreeSet};

use speedmatrix_shared::{api::RunSummary, id::RunId, state::RunStatus};

use crate::{parts::badge::status_words, query};

/// Key of the searched words in the address.
const SEARCH: &str = "q";
/// Lengths of time to look back: as in the address, in words, in milliseconds.
const PERIODS: [(&str, &str, u64); 3] =
    [("1d", "Last 24 hours", DAY_MS), ("7d", "Last 7 days", 7 * DAY_MS), ("30d", "Last 30 days", 30 * DAY_MS)];
const DAY_MS: u64 = 24 * 3_600 * 1_000;

/// What runs can be chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Facet {
    /// The model.
    Model,
    /// The GPU.
    Gpu,
    /// The engine, whatever its version.
    Engine,
    /// A tag.
    Tag,
    /// Where the run stands.
    Status,
    /// How long ago it began.
    Date,
}

impl Facet {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 6] = [Self::Model, Self::Gpu, Self::Engine, Self::Tag, Self::Status, Self::Date];

    /// Its name in the address.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Gpu => "gpu",
            Self::Engine => "engine",
            Self::Tag => "tag",
            Self::Status => "status",
            Self::Date => "since",
        }
    }

    /// Its word.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Model => "Model",
            Self::Gpu => "GPU",
            Self::Engine => "Engine",
            Self::Tag => "Tag",
            Self::Status => "Status",
            Self::Date => "Date",
        }
    }

    /// What a run holds of it. Dates are compared, not listed.
    fn values(self, run: &RunSummary) -> Vec<&str> {
        match self {
            Self::Model => run.model.as_deref().into_iter().collect(),
            Self::Gpu => run.gpu.as_deref().into_iter().collect(),
            Self::Engine => run.engine_name.as_deref().into_iter().collect(),
            Self::Tag => run.labels.tags.iter().map(String::as_str).collect(),
            Self::Status => vec![status_words(&run.status)],
            Self::Date => Vec::new(),
        }
    }

    /// What can be chosen among these runs: value and words. What is chosen already is among it, even if no run has it.
    pub fn options(self, runs: &[RunSummary], chosen: Option<&str>) -> Vec<(String, String)> {
        if self == Self::Date {
            return PERIODS.iter().map(|(key, words, _)| ((*key).to_owned(), (*words).to_owned())).collect();
        }
        let values: BTreeSet<&str> = runs.iter().flat_map(|run| self.values(run)).chain(chosen).collect();
        values.into_iter().map(|value| (value.to_owned(), value.to_owned())).collect()
    }

    fn allows(self, value: &str, run: &RunSummary, now_unix_ms: u64) -> bool {
        if self == Self::Date {
            let period = PERIODS.iter().find(|(key, ..)| *key == value);
            return period.is_none_or(|(.., ms)| run.started_unix_ms >= now_unix_ms.saturating_sub(*ms));
        }
        self.values(run).contains(&value)
    }
}

/// What a person searches and has chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Words that must all be found.
    pub text: String,
    chosen: BTreeMap<Facet, String>,
}

impl RunFilter {
    /// Reads the filter from the address; a period that is none is passed over.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let chosen = Facet::ALL.into_iter().filter_map(|facet| Some((facet, get(facet.key())?)));
        let is_known = |(facet, value): &(Facet, String)| {
            !value.is_empty() && (*facet != Facet::Date || PERIODS.iter().any(|(key, ..)| key == value))
        };
        Self { text: get(SEARCH).unwrap_or_default(), chosen: chosen.filter(is_known).collect() }
    }

    /// The query, with its question mark; empty where everything is shown.
    pub fn query(&self) -> String {
        let text = (!self.text.is_empty()).then_some((SEARCH, self.text.as_str()));
        let chosen = self.chosen.iter().map(|(facet, value)| (facet.key(), value.as_str()));
        query::joined(&text.into_iter().chain(chosen).collect::<Vec<_>>())
    }

    /// What is chosen of a facet.
    pub fn chosen(&self, facet: Facet) -> Option<&str> {
        self.chosen.get(&facet).map(String::as_str)
    }

    /// How many facets are chosen.
    pub fn count(&self) -> usize {
        self.chosen.len()
    }

    /// Whether everything is shown.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.chosen.is_empty()
    }

    /// Chooses a value; an empty one stands for all.
    pub fn choose(&mut self, facet: Facet, value: String) {
        if value.is_empty() {
            self.chosen.remove(&facet);
        } else {
            self.chosen.insert(facet, value);
        }
    }

    /// Whether a run is shown.
    pub fn allows(&self, run: &RunSummary, now_unix_ms: u64) -> bool {
        self.chosen.iter().all(|(facet, value)| facet.allows(value, run, now_unix_ms)) && has_words(run, &self.text)
    }

    /// The filter in words: `"night", Model: x`.
    pub fn words(&self) -> String {
        let text = self.text.trim();
        let text = (!text.is_empty()).then(|| format!("“{text}”"));
        let chosen = self.chosen.iter().map(|(facet, value)| {
            let period = PERIODS.iter().find(|(key, ..)| *facet == Facet::Date && key == value);
            format!("{}: {}", facet.label(), period.map_or(value.as_str(), |(_, words, _)| words))
        });
        text.into_iter().chain(chosen).collect::<Vec<_>>().join(", ")
    }
}

/// Whether all words stand somewhere in the texts of a run, in whatever case.
fn has_words(run: &RunSummary, text: &str) -> bool {
    let labels = &run.labels;
    let parts = [run.name(), &run.title, &run.engine, &labels.notes, run.id.as_str(), status_words(&run.status)];
    let more = [&run.model, &run.gpu].into_iter().flatten().map(String::as_str);
    let file = labels.imported.as_ref().and_then(|note| note.file.as_deref());
    let texts = parts.into_iter().chain(more).chain(labels.tags.iter().map(String::as_str)).chain(file);
    let texts: Vec<String> = texts.map(str::to_lowercase).collect();
    text.split_whitespace().map(str::to_lowercase).all(|word| texts.iter().any(|text| text.contains(&word)))
}

/// Running runs first, then pinned ones, then the newest; the sample last.
pub fn arranged(mut runs: Vec<RunSummary>) -> Vec<RunSummary> {
    runs.sort_by_key(place);
    runs
}

/// Where a run stands among the others; runs of one place keep the agent's order.
fn place(run: &RunSummary) -> u8 {
    if run.status == RunStatus::Running {
        0
    } else if run.labels.pinned {
        1
    } else if run.id.as_str() == RunId::REFERENCE {
        3
    } else {
        2
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{facts, label::Labels, sample};

    use super::*;

    fn run(id: &str, labels: Labels) -> RunSummary {
        RunSummary { id: id.parse().unwrap(), labels, ..facts::summary(&sample::reference()) }
    }

    fn labelled() -> RunSummary {
        let (tags, notes) = (vec!["night".into(), "new driver".into()], "After the reboot\n<b>fan</b>".into());
        run("abc", Labels { title: Some("Émile's run".into()), tags, notes, ..Labels::default() })
    }

    #[test]
    fn words_are_looked_for_in_every_text() {
        let check = |text: &str, found: bool| {
            let filter = RunFilter { text: text.into(), ..RunFilter::default() };
            assert_eq!(filter.allows(&labelled(), 0), found, "{text}");
        };
        for text in ["", " ", "émile", "RUN night", "<B>", "h200 vllm deepseek", "finished", "abc", "driver mxfp4"] {
            check(text, true);
        }
        check("night day", false);
        check("sglang", false);
    }

    #[test]
    fn facets_choose() {
        let check = |facet: Facet, value: &str, found: bool| {
            let mut filter = RunFilter::default();
            filter.choose(facet, value.into());
            let started = RunSummary { started_unix_ms: 10 * DAY_MS, ..labelled() };
            assert_eq!(filter.allows(&started, 12 * DAY_MS), found, "{value}");
        };
        check(Facet::Gpu, "H200 NVL", true);
        check(Facet::Gpu, "H200", false);
        check(Facet::Tag, "night", true);
        check(Facet::Status, "Finished", true);
        check(Facet::Status, "Failed", false);
        check(Facet::Date, "7d", true);
        check(Facet::Date, "1d", false);
        check(Facet::Model, "", true);
    }

    #[test]
    fn options_hold_what_there_is_and_what_is_chosen() {
        let runs = [labelled(), run("b", Labels { tags: vec!["day".into()], ..Labels::default() })];
        let values = |facet: Facet, chosen| facet.options(&runs, chosen).into_iter().map(|(value, _)| value);
        assert_eq!(values(Facet::Tag, Some("gone")).collect::<Vec<_>>(), ["day", "gone", "new driver", "night"]);
        assert_eq!(values(Facet::Gpu, None).collect::<Vec<_>>(), ["H200 NVL"]);
        assert_eq!(values(Facet::Date, None).count(), 3);
    }

    #[test]
    fn a_filter_reads_back_from_the_address() {
        let mut filter = RunFilter { text: "50 % é".into(), ..RunFilter::default() };
        filter.choose(Facet::Tag, "a&b".into());
        filter.choose(Facet::Date, "7d".into());
        assert_eq!(filter.query(), "?q=50%20%25%20%C3%A9&tag=a%26b&since=7d");
        assert_eq!(filter.words(), "“50 % é”, Tag: a&b, Date: Last 7 days");
        let get = |key: &str| match key {
            "q" => Some("50 % é".to_owned()),
            "tag" => Some("a&b".to_owned()),
            "since" => Some("7d".to_owned()),
            _ => None,
        };
        assert_eq!(RunFilter::read(get), filter);
        assert!(RunFilter::read(|key| (key == "since").then(|| "ever".to_owned())).is_empty());
        assert_eq!(RunFilter::default().query(), "");
    }

    #[test]
    fn running_runs_stand_above_pinned_ones() {
        let pinned = run("pinned", Labels { pinned: true, ..Labels::default() });
        let running = RunSummary { status: RunStatus::Running, ..run("running", Labels::default()) };
        let sample = facts::summary(&sample::reference());
        let runs = arranged(vec![sample, run("new", Labels::default()), pinned, running]);
        let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
        assert_eq!(ids, ["running", "pinned", "new", "reference"]);
    }
}
