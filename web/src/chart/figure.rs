//! Where the things of a curve chart lie: pure geometry of lines, bands, stops and zoom, for [`crate::parts::figure`].

use speedmatrix_shared::format;

use super::{
    curve::{Curve, Point, Spec, Values},
    line::{Frame, Tick, time_tick},
    scale::{Axis, Kind, Range, time_ticks},
};

/// More lines than these get a legend below instead of a label each.
pub const LABELS: usize = 8;
/// Least drag that is a wish to zoom, in pixels of the picture; less is a click.
pub const LEAST_DRAG: f64 = 8.0;

/// A line with the interval of each of its points, where it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The line.
    pub curve: Curve,
    /// Low and high end of the interval; as many as there are points.
    pub bands: Vec<Option<[f64; 2]>>,
}

impl Series {
    /// A line of points whose intervals are not known.
    pub fn bare(curve: Curve) -> Self {
        let bands = vec![None; curve.points.len()];
        Self { curve, bands }
    }
}

/// How a chart is looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// How its value axis runs.
    pub kind: Kind,
    /// The part of the horizontal axis that is shown; `None` for all of it.
    pub zoom: Option<Range>,
}

/// Axes with their marks, and where a reader can stop.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The horizontal axis.
    pub x: Axis,
    /// The value axis.
    pub y: Axis,
    /// Marks of the horizontal axis.
    pub x_ticks: Vec<Tick>,
    /// Marks of the value axis.
    pub y_ticks: Vec<Tick>,
    /// Places of the horizontal axis at which something was measured, ascending, within the zoom.
    pub stops: Vec<f64>,
}

/// The kind of value axis a chart begins with.
pub const fn first_kind(values: Values) -> Kind {
    match values {
        Values::Rate => Kind::Linear,
        Values::Time => Kind::Log,
    }
}

/// The field of a chart; `None` if nothing is measured.
pub fn field(spec: &Spec, series: &[Series], look: Look) -> Option<Field> {
    let points = || series.iter().flat_map(|one| one.curve.points.iter().zip(&one.bands));
    let whole = Range::of(points().map(|(point, _)| point.x).chain(spec.x_ticks.iter().map(|tick| tick.value)))?;
    let whole = if spec.x_ticks.is_empty() { Range { lo: whole.lo * 0.9, hi: whole.hi * 1.1 } } else { whole };
    let shown = look.zoom.unwrap_or(whole);
    let is_shown = |x: f64| x >= shown.lo * (1.0 - 1e-9) && x <= shown.hi * (1.0 + 1e-9);
    let seen = || points().filter(|(point, _)| is_shown(point.x));
    let ends = |(point, band): (&Point, &Option<[f64; 2]>)| band.unwrap_or([point.y, point.y]);
    let y = Range::of(seen().flat_map(ends)).or_else(|| Range::of(points().map(|(point, _)| point.y)))?;
    let mut stops: Vec<f64> = seen().map(|(point, _)| point.x).collect();
    stops.sort_by(f64::total_cmp);
    stops.dedup();
    let x = Axis::new(shown, spec.frame.across(), Kind::Log);
    let x_ticks = if spec.x_ticks.is_empty() {
        marks(&x, Values::Rate)
    } else {
        spec.x_ticks.iter().filter(|tick| is_shown(tick.value)).cloned().collect()
    };
    let y = value_axis(y, spec.frame, look.kind);
    let y_ticks = marks(&y, spec.values);
    Some(Field { x, y, x_ticks, y_ticks, stops })
}

/// A linear axis begins at zero, so that lengths compare; a logarithmic one has air on both sides.
fn value_axis(range: Range, frame: Frame, kind: Kind) -> Axis {
    let range = match kind {
        Kind::Log if range.lo > 0.0 => Range { lo: range.lo * 0.8, hi: range.hi * 1.25 },
        _ => Range { hi: range.hi * 1.1, ..range }.from_zero(),
    };
    Axis::new(range, frame.upwards(), kind)
}

fn marks(axis: &Axis, values: Values) -> Vec<Tick> {
    let [lo, hi] = axis.bounds();
    match (values, axis.kind()) {
        (Values::Time, Kind::Log) => Tick::each(time_ticks(Range { lo, hi }), time_tick),
        (Values::Time, Kind::Linear) => Tick::each(axis.ticks(), time_tick),
        (Values::Rate, _) => {
            let ticks = axis.ticks();
            let texts = format::marks(&ticks);
            ticks.into_iter().zip(texts).map(|(value, text)| Tick { value, text }).collect()
        }
    }
}

/// The band around a line as a closed path: pieces between neighbours whose intervals are both known.
pub fn band(one: &Series, x: Axis, y: Axis) -> String {
    let known: Vec<(f64, [f64; 2])> =
        one.curve.points.iter().zip(&one.bands).filter_map(|(point, band)| Some((point.x, (*band)?))).collect();
    if known.len() < 2 {
        return String::new();
    }
    let upper = known.iter().map(|(at, [_, hi])| (x.at(*at), y.at(*hi)));
    let lower = known.iter().rev().map(|(at, [lo, _])| (x.at(*at), y.at(*lo)));
    super::scale::path(upper.chain(lower).map(Some)) + "Z"
}

/// The stop that is nearest to a pixel.
pub fn nearest(field: &Field, px: f64) -> Option<f64> {
    let away = |stop: &f64| (field.x.at(*stop) - px).abs();
    field.stops.iter().copied().min_by(|a, b| away(a).total_cmp(&away(b)))
}

/// The stop to which a key leads; `None` if the key means nothing here.
pub fn step(field: &Field, at: Option<f64>, key: &str) -> Option<f64> {
    let place = at.and_then(|at| field.stops.iter().position(|stop| (stop - at).abs() < 1e-9));
    let last = field.stops.len().checked_sub(1)?;
    let next = match (key, place) {
        ("ArrowRight", Some(place)) => (place + 1).min(last),
        ("ArrowLeft", Some(place)) => place.saturating_sub(1),
        ("ArrowRight" | "Home", _) => 0,
        ("ArrowLeft" | "End", _) => last,
        _ => return None,
    };
    field.stops.get(next).copied()
}

/// The part of the horizontal axis between two pixels; `None` for a click.
pub fn dragged(field: &Field, [from, to]: [f64; 2]) -> Option<Range> {
    ((to - from).abs() >= LEAST_DRAG).then(|| {
        let (a, b) = (field.x.value(from), field.x.value(to));
        Range { lo: a.min(b), hi: a.max(b) }
    })
}

/// Half or twice as much of a logarithmic axis, around a place; `None` once it is all of it.
pub fn zoomed(field: &Field, whole: Range, at: f64, factor: f64) -> Option<Range> {
    let [lo, hi] = field.x.bounds();
    let part = Range { lo: at * (lo / at).powf(factor), hi: at * (hi / at).powf(factor) };
    let part = Range { lo: part.lo.max(whole.lo), hi: part.hi.min(whole.hi) };
    let is_part = part.hi > part.lo && (part.lo > whole.lo * (1.0 + 1e-9) || part.hi < whole.hi * (1.0 - 1e-9));
    is_part.then_some(part)
}

/// What is measured at a stop: each line's label and the words of its point, the highest first.
pub fn read_out(series: &[Series], stop: f64) -> Vec<(&'static str, String, String)> {
    let at = |one: &Series| {
        let point = one.curve.points.iter().find(|point| (point.x - stop).abs() < 1e-9)?.clone();
        Some((point.y, (one.curve.class, one.curve.label.clone(), point.title)))
    };
    let mut found: Vec<_> = series.iter().filter_map(at).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, told)| told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, title: format!("{y}"), ringed: false, text: String::new() }
    }

    fn series(points: &[(f64, f64)]) -> Series {
        let points = points.iter().map(|(x, y)| point(*x, *y)).collect();
        Series::bare(Curve { label: "8K".into(), class: "k0", points, filled: false })
    }

    fn spec() -> Spec {
        Spec {
            describes: String::new(),
            y_word: "",
            x_word: "",
            x_ticks: Tick::each([1.0, 2.0, 4.0], format::whole),
            values: Values::Rate,
            frame: Frame { width: 120.0, height: 120.0, left: 0.0, right: 100.0, top: 0.0, bottom: 100.0 },
        }
    }

    fn whole() -> Field {
        let look = Look { kind: Kind::Linear, zoom: None };
        field(&spec(), &[series(&[(1.0, 10.0), (4.0, 100.0)]), series(&[(2.0, 50.0)])], look).unwrap()
    }

    #[test]
    fn a_zoom_shows_a_part_and_its_values() {
        let look = Look { kind: Kind::Linear, zoom: Some(Range { lo: 1.0, hi: 2.0 }) };
        let part = field(&spec(), &[series(&[(1.0, 10.0), (4.0, 100.0)])], look).unwrap();
        assert_eq!((part.stops.as_slice(), part.y.bounds()), (&[1.0][..], [0.0, 11.0]));
        assert_eq!(part.x_ticks.len(), 2);
        assert_eq!(whole().stops, [1.0, 2.0, 4.0]);
        assert!(field(&spec(), &[], look).is_none());
    }

    #[test]
    fn the_value_axis_runs_as_it_is_asked() {
        let look = Look { kind: Kind::Log, zoom: None };
        let log = field(&spec(), &[series(&[(1.0, 10.0), (4.0, 100.0)])], look).unwrap();
        assert_eq!((log.y.kind(), log.y.bounds()), (Kind::Log, [8.0, 125.0]));
        let zero = field(&spec(), &[series(&[(1.0, 0.0), (4.0, 100.0)])], look).unwrap();
        assert_eq!(zero.y.kind(), Kind::Linear, "zero has no place on a logarithmic axis");
    }

    #[test]
    fn pointers_and_keys_find_stops() {
        let check = |at, key: &str, to| assert_eq!(step(&whole(), at, key), to, "{key}");
        check(None, "ArrowRight", Some(1.0));
        check(Some(1.0), "ArrowRight", Some(2.0));
        check(Some(4.0), "ArrowRight", Some(4.0));
        check(Some(2.0), "ArrowLeft", Some(1.0));
        check(Some(2.0), "End", Some(4.0));
        check(Some(2.0), "x", None);
        assert_eq!((nearest(&whole(), 40.0), nearest(&whole(), 90.0)), (Some(2.0), Some(4.0)));
    }

    #[test]
    fn a_drag_zooms_and_a_click_does_not() {
        assert_eq!(dragged(&whole(), [40.0, 43.0]), None);
        let part = dragged(&whole(), [100.0, 50.0]).unwrap();
        assert!((part.lo - 2.0).abs() < 1e-9 && (part.hi - 4.0).abs() < 1e-9, "{part:?}");
        let all = Range { lo: 1.0, hi: 4.0 };
        let half = zoomed(&whole(), all, 2.0, 0.5).unwrap();
        assert!((half.lo - 2_f64.sqrt()).abs() < 1e-9 && (half.hi - 8_f64.sqrt()).abs() < 1e-9, "{half:?}");
        assert_eq!(zoomed(&whole(), all, 2.0, 2.0), None);
    }

    #[test]
    fn a_stop_tells_all_its_points_from_high_to_low() {
        let lines = [series(&[(1.0, 10.0)]), series(&[(1.0, 90.0), (2.0, 5.0)])];
        let told: Vec<String> = read_out(&lines, 1.0).into_iter().map(|(_, _, words)| words).collect();
        assert_eq!(told, ["90", "10"]);
    }

    #[test]
    fn a_band_needs_two_neighbours() {
        let mut one = series(&[(1.0, 10.0), (4.0, 100.0)]);
        let Field { x, y, .. } = whole();
        assert_eq!(band(&one, x, y), "");
        one.bands = vec![Some([0.0, 22.0]), Some([88.0, 110.0])];
        assert_eq!(band(&one, x, y), "M0.0 80.0L100.0 0.0L100.0 20.0L0.0 100.0Z");
    }
}
