//! What a chart tells in words: the values at the cross line, the names of many lines, and all of it as a table.

use leptos::prelude::*;
use speedmatrix_shared::format;

use super::{Chart, Title};
use crate::{
    chart::figure::{self, LABELS, Series},
    parts::cell::table::AsTable,
};

/// All values where the cross line stands: beside it for eyes, as a sentence for screen readers.
pub(super) fn read_out_of(chart: Chart) -> impl IntoView {
    let Chart { title, spec, series, at, field, .. } = chart;
    let told = Memo::new(move |_| {
        let stop = at.get()?;
        Some((stop, series.with(|series| figure::read_out(series, stop))))
    });
    let side = move || {
        let is_right = field.with(|field| {
            let Some((field, stop)) = field.as_ref().zip(at.get()) else { return false };
            spec.with(|spec| field.x.at(stop) > f64::midpoint(spec.frame.left, spec.frame.right))
        });
        if is_right { "values panel left" } else { "values panel right" }
    };
    let row = |(class, label, words): (&'static str, String, String)| {
        view! {
            <li class=class>
                <i></i>
                <b>{label}</b>
                <span>{words}</span>
            </li>
        }
    };
    let shown = move || {
        let (stop, rows) = told.get()?;
        let is_many = rows.len() > LABELS;
        Some(view! {
            <div class=side aria-hidden="true" data-testid="chart-values">
                <b>{format!("{} {}", title.place, (title.place_text)(stop))}</b>
                <ul class:many=is_many>{rows.into_iter().map(row).collect_view()}</ul>
            </div>
        })
    };
    let sentence = move || {
        told.get().map(|(stop, rows)| {
            let each = rows
                .into_iter()
                .map(|(_, label, words)| if label.is_empty() { words } else { format!("{label}: {words}") });
            format!("{} {}. {}", title.place, (title.place_text)(stop), each.collect::<Vec<_>>().join("; "))
        })
    };
    view! {
        {shown}
        <p class="sr" aria-live="polite">{sentence}</p>
    }
}

/// Names of lines that are too many to be labelled one by one.
pub(super) fn legend(chart: Chart) -> impl IntoView {
    let Chart { series, .. } = chart;
    move || {
        series.with(|series| {
            let one = |one: &Series| {
                let (class, label) = (one.curve.class, one.curve.label.clone());
                view! { <li class=class><i></i>{label}</li> }
            };
            (series.len() > LABELS)
                .then(|| view! { <ul class="lines-legend">{series.iter().map(one).collect_view()}</ul> })
        })
    }
}

/// The chart's numbers as a table: a row per place, a column per line.
pub(super) fn numbers(chart: Chart) -> impl IntoView {
    let Chart { title, series, .. } = chart;
    let heads = move || {
        let labels = series.with_untracked(|series| series.iter().map(|one| label_of(one, title)).collect::<Vec<_>>());
        std::iter::once(title.place.to_owned()).chain(labels).collect::<Vec<_>>()
    };
    let rows = move || series.with_untracked(|series| table(series, title.place_text));
    view! {
        <AsTable
            caption=title.words
            columns=UnsyncCallback::new(move |()| heads())
            rows=UnsyncCallback::new(move |()| rows())
            testid="figure-table"
        />
    }
}

fn label_of(one: &Series, title: Title) -> String {
    if one.curve.label.is_empty() { title.words.to_owned() } else { one.curve.label.clone() }
}

/// A row per place with the words of each line's point there; "—" where a line has none.
fn table(series: &[Series], place_text: fn(f64) -> String) -> Vec<Vec<String>> {
    let mut places: Vec<f64> = series.iter().flat_map(|one| one.curve.points.iter().map(|point| point.x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let text = |one: &Series, place: f64| {
        let point = one.curve.points.iter().find(|point| (point.x - place).abs() < 1e-9);
        point.map_or_else(|| format::MISSING.to_owned(), |point| point.title.clone())
    };
    let row =
        |place: f64| std::iter::once(place_text(place)).chain(series.iter().map(|one| text(one, place))).collect();
    places.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::curve::{Curve, Point};

    #[test]
    fn the_table_has_a_row_per_place() {
        let point = |x: f64, title: &str| Point { x, y: x, title: title.into(), ringed: false, text: String::new() };
        let line = |points: Vec<Point>| Series::bare(Curve { label: "8K".into(), class: "k0", points, filled: false });
        let series = [line(vec![point(1.0, "a"), point(2.0, "b")]), line(vec![point(2.0, "c")])];
        let rows = table(&series, |place| format::whole(Some(place)));
        assert_eq!(rows, [["1", "a", "—"], ["2", "b", "c"]]);
    }
}
