//! What the page of a comparison shows, as it stands in the address. Pure.

use std::cmp::Ordering;

use speedmatrix_shared::{
    compare::{CellVerdict, ComparedCell, Ranked},
    units::{Concurrency, Context},
};

use crate::{query, table_view::Direction};

/// What the table of cells can be sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Column {
    /// Phase, context and requests at once.
    #[default]
    Cell,
    /// The value in A.
    A,
    /// The value in B.
    B,
    /// B against A.
    Change,
    /// What can be said.
    Verdict,
}

impl Column {
    /// All of them, from left to right.
    pub const ALL: [Self; 5] = [Self::Cell, Self::A, Self::B, Self::Change, Self::Verdict];

    /// Its name in the address.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Cell => "cell",
            Self::A => "a",
            Self::B => "b",
            Self::Change => "change",
            Self::Verdict => "verdict",
        }
    }

    /// Its head.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Cell => "Cell",
            Self::A => "A",
            Self::B => "B",
            Self::Change => "Change",
            Self::Verdict => "Verdict",
        }
    }

    fn read(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.key() == key)
    }
}

/// How the table of cells is sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Order {
    /// By which column.
    pub column: Column,
    /// Which way.
    pub direction: Direction,
}

impl Order {
    fn read(text: &str) -> Option<Self> {
        let (key, direction) = match text.strip_prefix('-') {
            Some(key) => (key, Direction::Descending),
            None => (text, Direction::Ascending),
        };
        Column::read(key).map(|column| Self { column, direction })
    }

    fn text(self) -> String {
        let sign = if self.direction == Direction::Descending { "-" } else { "" };
        format!("{sign}{}", self.column.key())
    }

    /// The order after a press on a column's head.
    #[must_use]
    pub fn pressed(self, column: Column) -> Self {
        let direction = match (self.column == column, self.direction) {
            (true, Direction::Ascending) => Direction::Descending,
            _ => Direction::Ascending,
        };
        Self { column, direction }
    }

    /// What `aria-sort` says of a column.
    pub fn aria(self, column: Column) -> Option<&'static str> {
        (self.column == column).then_some(match self.direction {
            Direction::Ascending => "ascending",
            Direction::Descending => "descending",
        })
    }

    /// The order of two cells. What has no number stands last, whichever way.
    pub fn of(self, one: &ComparedCell, other: &ComparedCell) -> Ordering {
        let number = |cell: &ComparedCell| match self.column {
            Column::A => cell.a.as_ref().and_then(|side| side.value),
            Column::B => cell.b.as_ref().and_then(|side| side.value),
            _ => cell.ratio(),
        };
        let turned = |order: Ordering| if self.direction == Direction::Descending { order.reverse() } else { order };
        let first = match self.column {
            Column::Cell => return turned(one.id.cmp(&other.id)),
            Column::Verdict => turned(one.verdict.cmp(&other.verdict)),
            Column::A | Column::B | Column::Change => match (number(one), number(other)) {
                (Some(one), Some(other)) => turned(one.total_cmp(&other)),
                (one, other) => other.is_some().cmp(&one.is_some()),
            },
        };
        first.then_with(|| one.id.cmp(&other.id))
    }
}

/// As many runs can be shown beside the two that are compared.
pub const MOST_OTHERS: usize = 4;

/// What the page shows. Names that are unknown fall back to the default, so an old link still opens.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareView {
    /// Id of the base as it is typed in the address; empty: not chosen.
    pub a: String,
    /// Id of what is judged.
    pub b: String,
    /// Ids of further runs, shown beside them.
    pub others: Vec<String>,
    /// The number that is compared.
    pub metric: Ranked,
    /// The verdicts that are shown; none chosen shows all.
    shown: Vec<CellVerdict>,
    /// How the table is sorted.
    pub order: Order,
    /// The context whose curves are shown; `None` for the first.
    pub context: Option<Context>,
    /// The requests at once whose curves are shown; `None` for the first.
    pub level: Option<Concurrency>,
}

impl CompareView {
    /// Reads the view from the address.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let verdict = |key: &str| CellVerdict::ALL.into_iter().find(|verdict| verdict.key() == key);
        let mut shown: Vec<CellVerdict> =
            get("v").map(|text| text.split(',').filter_map(verdict).collect()).unwrap_or_default();
        shown.sort();
        shown.dedup();
        let mut view = Self {
            a: get("a").unwrap_or_default(),
            b: get("b").unwrap_or_default(),
            others: Vec::new(),
            metric: get("m").and_then(|key| key.parse().ok()).unwrap_or_else(Ranked::total_speed),
            shown,
            order: get("sort").and_then(|text| Order::read(&text)).unwrap_or_default(),
            context: get("context").and_then(|text| text.parse().ok()),
            level: get("level").and_then(|text| text.parse().ok()),
        };
        for id in get("c").unwrap_or_default().split(',') {
            view.add(id.to_owned());
        }
        view
    }

    /// The query, with its question mark; empty where nothing is chosen.
    pub fn query(&self) -> String {
        let metric = (self.metric != Ranked::total_speed()).then(|| self.metric.metric().key.to_owned());
        let shown = (!self.shown.is_empty())
            .then(|| self.shown.iter().map(|verdict| verdict.key()).collect::<Vec<_>>().join(","));
        let told = |text: &String| (!text.is_empty()).then(|| text.clone());
        let own = [
            ("a", told(&self.a)),
            ("b", told(&self.b)),
            ("c", told(&self.others.join(","))),
            ("m", metric),
            ("v", shown),
            ("sort", (self.order != Order::default()).then(|| self.order.text())),
            ("context", self.context.map(|context| context.to_string())),
            ("level", self.level.map(|level| level.to_string())),
        ];
        let pairs: Vec<(&str, &str)> = own.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?))).collect();
        query::joined(&pairs)
    }

    /// Shows one more run, if there is room for it and it is not shown already.
    pub fn add(&mut self, id: String) {
        if !id.is_empty() && !self.names(&id) && self.others.len() < MOST_OTHERS {
            self.others.push(id);
        }
    }

    /// Whether a run is shown already.
    pub fn names(&self, id: &str) -> bool {
        self.a == id || self.b == id || self.others.iter().any(|other| other == id)
    }

    /// Both ids in an order that swapping does not change; `None` until both are chosen.
    pub fn pair(&self) -> Option<[String; 2]> {
        let mut pair = [self.a.clone(), self.b.clone()];
        pair.sort();
        pair.iter().all(|id| !id.is_empty()).then_some(pair)
    }

    /// Turns the sides around, and with them what is chosen: what was faster is now slower.
    pub fn swap(&mut self) {
        std::mem::swap(&mut self.a, &mut self.b);
        self.shown = self.shown.iter().map(|verdict| verdict.swapped()).collect();
        self.shown.sort();
    }

    /// Whether cells of a verdict are shown.
    pub fn shows(&self, verdict: CellVerdict) -> bool {
        self.shown.is_empty() || self.is_chosen(verdict)
    }

    /// Whether a verdict is chosen by itself.
    pub fn is_chosen(&self, verdict: CellVerdict) -> bool {
        self.shown.contains(&verdict)
    }

    /// Whether some verdicts are left out.
    pub fn is_filtered(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Chooses a verdict, or takes it back.
    pub fn toggle(&mut self, verdict: CellVerdict) {
        match self.shown.iter().position(|one| *one == verdict) {
            Some(place) => drop(self.shown.remove(place)),
            None => self.shown.push(verdict),
        }
        self.shown.sort();
    }

    /// Shows all verdicts.
    pub fn show_all(&mut self) {
        self.shown.clear();
    }
}

/// The address of a comparison of `b` with `a`, or of one whose other side is still to be chosen.
pub fn address(a: &str, b: &str) -> String {
    let pairs: Vec<(&str, &str)> = [("a", a), ("b", b)].into_iter().filter(|(_, id)| !id.is_empty()).collect();
    format!("/compare{}", query::joined(&pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> CompareView {
        let pairs: Vec<(&str, &str)> =
            query.trim_start_matches('?').split('&').filter_map(|pair| pair.split_once('=')).collect();
        CompareView::read(|key| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_view_reads_back_from_the_address() {
        let check = |query: &str| assert_eq!(read(query).query(), query);
        check("");
        check("?a=one");
        check("?a=one&b=two&c=three,four");
        check("?a=one&b=two&m=ttft&v=faster,slower&sort=-change&context=8K&level=16");
        assert_eq!(read("?a=x&m=nonsense&v=best,faster&sort=size&context=-1").query(), "?a=x&v=faster");
        assert_eq!(read("?a=x&b=y&c=x,,z,z,y,1,2,3,4").query(), "?a=x&b=y&c=z,1,2,3");
        assert_eq!(address("one", "two"), "/compare?a=one&b=two");
        assert_eq!(address("one", ""), "/compare?a=one");
    }

    #[test]
    fn swapping_turns_the_filter_with_the_sides() {
        let mut view = read("?a=one&b=two&v=faster,only_a");
        let pair = view.pair();
        view.swap();
        assert_eq!(view.query(), "?a=two&b=one&v=slower,only_b");
        assert_eq!(view.pair(), pair);
        assert_eq!(read("?a=one").pair(), None);
    }

    #[test]
    fn verdicts_are_chosen_and_taken_back() {
        let mut view = read("?a=x&b=y");
        assert!(view.shows(CellVerdict::OnlyA) && !view.is_filtered());
        view.toggle(CellVerdict::Slower);
        view.toggle(CellVerdict::Faster);
        assert_eq!(view.query(), "?a=x&b=y&v=faster,slower");
        assert!(view.shows(CellVerdict::Slower) && !view.shows(CellVerdict::OnlyA));
        view.toggle(CellVerdict::Slower);
        view.toggle(CellVerdict::Faster);
        assert_eq!(view.query(), "?a=x&b=y");
    }

    #[test]
    fn a_second_press_on_a_head_turns_the_order() {
        let once = Order::default().pressed(Column::Change);
        assert_eq!((once.text().as_str(), once.aria(Column::Change)), ("change", Some("ascending")));
        assert_eq!(once.pressed(Column::Change).text(), "-change");
        assert_eq!(once.aria(Column::A), None);
    }
}
