//! How values spread, as bars or as the cumulative share.

use leptos::{either::Either, prelude::*};
use speedmatrix_shared::{
    detail::distribution::{Distribution, Kind as Of, Scale},
    format,
};

use super::{
    line::{Frame, Tick, grid, thin_out, time_tick},
    scale::{Axis, Kind, Range, path, spread, time_ticks},
};

/// Which picture of a distribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shape {
    /// Bars.
    #[default]
    Histogram,
    /// The share of values that are not larger (ECDF).
    Cumulative,
}

impl Shape {
    /// Both, in the order of their buttons.
    pub const ALL: [Self; 2] = [Self::Histogram, Self::Cumulative];

    /// The words on its button.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Histogram => "Histogram",
            Self::Cumulative => "Cumulative (ECDF)",
        }
    }
}

/// A value as text, with as many digits as `step`, the distance of neighbouring values, needs.
pub fn value_text(of: Of, value: f64, step: f64) -> String {
    match of {
        Of::SlotRate if step >= 1.0 => format::whole(Some(value)),
        Of::SlotRate => format::rate(Some(value)),
        Of::TtftBurst | Of::TtftSteady | Of::TtftCold | Of::TokenGap => match step {
            0.001.. => format::millis(Some(value), 0),
            0.0001.. => format::millis(Some(value), 1),
            _ => format::millis(Some(value), 2),
        },
    }
}

/// The unit beside a distribution's axis; times carry theirs in each text.
pub const fn unit(of: Of) -> &'static str {
    match of {
        Of::SlotRate => "tok/s",
        Of::TtftBurst | Of::TtftSteady | Of::TtftCold | Of::TokenGap => "",
    }
}

fn value_axis(spread: &Distribution, frame: Frame) -> (Axis, Vec<Tick>) {
    let range = Range { lo: spread.summary.min, hi: spread.summary.max };
    let kind = if spread.scale == Scale::Log { Kind::Log } else { Kind::Linear };
    let axis = Axis::new(range, frame.across(), kind);
    let ticks = match (spread.scale, spread.kind) {
        (Scale::Log, Of::SlotRate) => Tick::each(axis.ticks(), format::whole),
        (Scale::Log, _) => Tick::each(time_ticks(range), time_tick),
        (Scale::Linear, of) => {
            let values = axis.ticks();
            let step = values.iter().zip(values.iter().skip(1)).map(|(a, b)| b - a).next().unwrap_or(range.hi);
            values.into_iter().map(|value| Tick { value, text: value_text(of, value, step) }).collect()
        }
    };
    (axis, thin_out(ticks, axis, 52.0))
}

/// The picture of a distribution.
pub fn draw(spread: &Distribution, shape: Shape, frame: Frame) -> impl IntoView + use<> {
    let (x, x_ticks) = value_axis(spread, frame);
    let marks = quantiles(spread, x, frame);
    let describes = format!("{}: {}", spread.kind.label(), words(spread));
    let (picture, y_word) = match shape {
        Shape::Histogram => (Either::Left(bars(spread, x, &x_ticks, frame)), spread.kind.counted()),
        Shape::Cumulative => (Either::Right(shares(spread, x, &x_ticks, frame)), "share that is not larger"),
    };
    view! {
        <svg class="plot" viewBox=frame.view_box() role="img" aria-label=describes>
            {picture}
            <text class="tick" x=frame.left y=12 text-anchor="start">{y_word}</text>
            {marks}
        </svg>
    }
}

/// `n 16, median 336 ms, 90 % below 402 ms`: only what enough values support.
pub fn words(spread: &Distribution) -> String {
    let summary = spread.summary;
    // A long tail must not take the digits of the median, nor a narrow spread give it more than it has.
    let step = ((summary.max - summary.min) / 40.0).min(summary.p50 / 50.0).max(summary.p50 * 1e-3);
    let text = |value: f64| {
        let text = value_text(spread.kind, value, step);
        let unit = unit(spread.kind);
        if unit.is_empty() { text } else { format!("{text} {unit}") }
    };
    let n = format!("n {}", format::count(Some(summary.n)));
    if summary.max <= summary.min {
        return format!("{n}, {}", text(summary.p50));
    }
    let mut words = vec![n, format!("median {}", text(summary.p50))];
    words.extend(summary.p90.map(|value| format!("90 % below {}", text(value))));
    words.extend(summary.p99.map(|value| format!("99 % below {}", text(value))));
    words.push(format!("{} to {}", text(summary.min), text(summary.max)));
    words.join(", ")
}

fn bars(spread: &Distribution, x: Axis, x_ticks: &[Tick], frame: Frame) -> impl IntoView + use<> {
    let highest = spread.bins.iter().copied().fold(0.0, f64::max);
    let y = Axis::new(Range { lo: 0.0, hi: highest * 1.05 }, frame.upwards(), Kind::Linear);
    let alone = spread.summary.max <= spread.summary.min;
    let bar = |(&(from, to), &count): (&(f64, f64), &f64)| {
        // Values that are all equal have one place and no width.
        let (left, right) = if alone { (x.at(from) - 8.0, x.at(from) + 8.0) } else { (x.at(from), x.at(to)) };
        let top = y.at(count);
        let width = (right - left - 1.0).max(1.0);
        let step = (to - from).max(spread.summary.max * 1e-3);
        let title = format!(
            "{} to {}: {} {}",
            value_text(spread.kind, from, step),
            value_text(spread.kind, to, step),
            format::whole(Some(count)),
            spread.kind.counted()
        );
        view! {
            <rect class="bin" x=left y=top width=width height=(frame.bottom - top).max(0.0)><title>{title}</title></rect>
        }
    };
    let bars: Vec<_> = spread.edges().iter().zip(&spread.bins).map(bar).collect();
    // Half a request is none: ticks between whole numbers would all read alike.
    let y_ticks = Tick::each(y.ticks().into_iter().filter(|tick| tick.fract() == 0.0), format::whole);
    view! { {grid(frame, [x, y], x_ticks, &y_ticks)} {bars} }
}

fn shares(spread: &Distribution, x: Axis, x_ticks: &[Tick], frame: Frame) -> impl IntoView + use<> {
    let y = Axis::new(Range { lo: 0.0, hi: 1.0 }, frame.upwards(), Kind::Linear);
    let mut before = 0.0;
    let steps = spread.ecdf.iter().flat_map(|&(value, share)| {
        let from = before;
        before = share;
        [Some((x.at(value), y.at(from))), Some((x.at(value), y.at(share)))]
    });
    let line = path(steps);
    let y_ticks = Tick::each([0.0, 0.25, 0.5, 0.75, 1.0], format::percent);
    view! {
        {grid(frame, [x, y], x_ticks, &y_ticks)}
        <g class="know"><path class="line" d=line></path></g>
    }
}

/// Lines at the median and the percentiles, with their names above.
fn quantiles(of: &Distribution, x: Axis, frame: Frame) -> Vec<AnyView> {
    let summary = of.summary;
    let marks = [("p50", Some(summary.p50)), ("p90", summary.p90), ("p99", summary.p99)];
    let marks: Vec<(&str, f64)> = marks.into_iter().filter_map(|(name, value)| Some((name, x.at(value?)))).collect();
    let places: Vec<f64> = marks.iter().map(|(_, place)| *place).collect();
    let places = spread(&places, 24.0, frame.right);
    let mark = |((name, at), word): ((&'static str, f64), f64)| {
        view! {
            <line class="quantile" x1=at x2=at y1=frame.top y2=frame.bottom></line>
            <text class="tick" x=word y=frame.top - 3.0 text-anchor="middle">{name}</text>
        }
        .into_any()
    };
    marks.into_iter().zip(places).map(mark).collect()
}

/// The rows of its table: each bin with what is in it and the share up to its end.
pub fn rows(spread: &Distribution) -> Vec<Vec<String>> {
    let total: f64 = spread.bins.iter().sum();
    let mut sum = 0.0;
    let row = |((from, to), &count): ((f64, f64), &f64)| {
        sum += count;
        let step = (to - from).max(spread.summary.max * 1e-3);
        let text = |value: f64| value_text(spread.kind, value, step);
        let share = (sum / total * 1_000.0).round() / 1_000.0;
        vec![text(from), text(to), format::whole(Some(count)), format::percent(Some(share))]
    };
    spread.edges().into_iter().zip(&spread.bins).map(row).collect()
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::detail::distribution::Values;

    use super::*;

    #[test]
    fn a_distribution_is_said_in_words_and_rows() {
        let of = |values: &[f64]| Distribution::of(Of::TtftBurst, Values::each(values.iter().copied())).unwrap();
        let one = of(&[0.336]);
        assert_eq!(words(&one), "n 1, 336.0 ms");
        assert_eq!(rows(&one), [["336.0 ms", "336.0 ms", "1", "100 %"]]);
        let many = of(&[0.1, 0.2, 0.2, 0.3]);
        assert_eq!(words(&many), "n 4, median 200 ms, 100 ms to 300 ms");
        assert_eq!(rows(&many).last().map(|row| row.join(" ")), Some("260 ms 300 ms 1 100 %".into()));
    }

    #[test]
    fn digits_follow_the_distance() {
        assert_eq!(value_text(Of::TokenGap, 0.020_04, 0.000_02), "20.04 ms");
        assert_eq!(value_text(Of::TokenGap, 0.020_04, 0.002), "20 ms");
        assert_eq!(value_text(Of::SlotRate, 50.3, 0.2), "50.3");
    }
}
