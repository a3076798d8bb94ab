//! What is drawn of a run while it runs: six charts on one axis of time. Which gauges they show stands in one table; how
//! they become lines is pure.

use speedmatrix_shared::{format, gauge::Gauge, gpu::HeldBy};

use super::{
    line::{Frame, Tick},
    scale::{Axis, Kind, Range, decimate, path, spread},
};
use crate::{
    live::series::{GaugeSeries, is_measuring},
    shell::Room,
    zoom::Zoom,
};

/// Room above the field: for half the height of a number.
const HEAD_PX: f64 = 6.0;
/// Height of the field.
const FIELD_PX: f64 = 62.0;
/// Room below the field: for the numbers of the time axis.
const FOOT_PX: f64 = 20.0;
/// Distance of two names of lines.
const LABEL_PX: f64 = 12.0;
/// Rows of a chart's table at most: each is a stretch of time.
const TABLE_ROWS: usize = 30;

/// A line of a chart.
#[derive(Debug, Clone, Copy)]
pub struct LiveLine {
    /// Its name, at its end and over its column.
    pub label: &'static str,
    /// Its look's class.
    pub class: &'static str,
    /// Its value; `None` where it was not told.
    pub read: fn(&Gauge) -> Option<f64>,
}

/// A chart.
#[derive(Debug, Clone, Copy)]
pub struct LiveChart {
    /// Stable name.
    pub key: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Its lines.
    pub lines: &'static [LiveLine],
    /// A value as text, with its unit.
    pub show: fn(Option<f64>) -> String,
    /// The same, short, for marks of the axis.
    pub tick: fn(Option<f64>) -> String,
    /// What holds the clocks of the GPUs back is marked in it.
    pub marks: Marks,
    /// Why there is nothing, where nothing is told.
    pub absent: &'static str,
}

/// What is marked in a chart beside its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// Nothing.
    None,
    /// Moments in which GPUs were held back.
    Throttle,
}

const fn line(label: &'static str, class: &'static str, read: fn(&Gauge) -> Option<f64>) -> LiveLine {
    LiveLine { label, class, read }
}

fn tok_s(value: Option<f64>) -> String {
    format!("{} tok/s", format::rate(value))
}

/// Requests of the client without a token yet: in the engine's queue, or being read.
fn unanswered(gauge: &Gauge) -> f64 {
    f64::from(gauge.in_flight.saturating_sub(gauge.decoding))
}

/// The charts, from top to bottom.
pub const CHARTS: [LiveChart; 6] = [
    LiveChart {
        key: "rate",
        title: "Token rate",
        lines: &[line("all requests", "know", |gauge| gauge.tok_s)],
        show: tok_s,
        tick: format::whole,
        marks: Marks::None,
        absent: "No tokens have come yet.",
    },
    LiveChart {
        key: "requests",
        title: "Requests",
        lines: &[
            line("in flight", "k-flight", |gauge| Some(f64::from(gauge.in_flight))),
            line("decoding", "know", |gauge| Some(f64::from(gauge.decoding))),
            line("no token yet", "k4", |gauge| Some(unanswered(gauge))),
            line("engine runs", "k-running", |gauge| gauge.running.map(f64::from)),
            line("engine queue", "k-waiting", |gauge| gauge.waiting.map(f64::from)),
        ],
        show: format::whole,
        tick: format::whole,
        marks: Marks::None,
        absent: "No request has been sent yet.",
    },
    LiveChart {
        key: "kv",
        title: "KV cache in use",
        lines: &[line("in use", "k-running", |gauge| gauge.kv_usage)],
        show: format::percent,
        tick: format::percent,
        marks: Marks::None,
        absent: "The engine has not told how full its KV cache is; the log says why, if it has no metrics page.",
    },
    LiveChart {
        key: "power",
        title: "GPU power (bar below: held back)",
        lines: &[line("all GPUs", "know", |gauge| gauge.gpu.and_then(|gpu| gpu.power_w))],
        show: format::watts,
        tick: format::watts,
        marks: Marks::Throttle,
        absent: NO_GPU,
    },
    LiveChart {
        key: "temperature",
        title: "GPU temperature",
        lines: &[line("hottest", "k-waiting", |gauge| gauge.gpu.and_then(|gpu| gpu.temperature_c))],
        show: format::celsius,
        tick: format::celsius,
        marks: Marks::None,
        absent: NO_GPU,
    },
    LiveChart {
        key: "lateness",
        title: "Client lateness",
        lines: &[line("a timer", "k-flight", |gauge| gauge.lateness_s)],
        show: format::lag,
        tick: format::lag,
        marks: Marks::None,
        absent: "The agent does not tell how punctual it is.",
    },
];

const NO_GPU: &str = "Not shown: the measuring machine sees no GPU that serves this model.";

impl LiveChart {
    /// Lines of which anything was told.
    fn told<'a>(&'a self, series: &'a GaugeSeries, part: Zoom) -> impl Iterator<Item = &'a LiveLine> {
        let any =
            move |line: &&LiveLine| series.within(part).any(|seen| seen.gauge.as_ref().and_then(line.read).is_some());
        self.lines.iter().filter(any)
    }

    /// Whether nothing at all was told.
    pub fn is_absent(&self, series: &GaugeSeries) -> bool {
        self.told(series, series.whole()).next().is_none()
    }

    /// `16 in flight, 12 decoding`, or the value alone where there is one line.
    pub fn words(&self, gauge: &Gauge) -> Option<String> {
        let value = |line: &LiveLine| {
            let text = (self.show)(Some((line.read)(gauge)?));
            Some(if self.lines.len() > 1 { format!("{} {text}", line.label) } else { text })
        };
        let values: Vec<String> = self.lines.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

/// The values of all charts at a moment: `1:02: 1,540.5 tok/s · in flight 16, decoding 16`.
pub fn values_at(series: &GaugeSeries, at_s: f64) -> Option<String> {
    let gauge = series.at(at_s)?;
    let values: Vec<String> = CHARTS.iter().filter_map(|chart| chart.words(gauge)).collect();
    let held = held_by(gauge).map(|by| format!(" · held back by {}", by.label())).unwrap_or_default();
    Some(format!("{}: {}{held}", format::clock(Some(gauge.at.as_secs_f64())), values.join(" · ")))
}

/// What holds the GPUs back.
fn held_by(gauge: &Gauge) -> Option<HeldBy> {
    gauge.gpu?.throttle?.held_by()
}

fn is_held(gauge: &Gauge) -> bool {
    held_by(gauge).is_some()
}

/// The frame of a live chart.
pub const fn frame_for(room: Room) -> Frame {
    let width = match room {
        Room::Narrow => 340.0,
        Room::Middle => 800.0,
        Room::Wide => 420.0,
    };
    let bottom = HEAD_PX + FIELD_PX;
    Frame { width, height: bottom + FOOT_PX, left: 58.0, right: width - 82.0, top: HEAD_PX, bottom }
}

/// A chart at a moment, in pixels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drawn {
    /// Each line's class and path.
    pub lines: Vec<(&'static str, String)>,
    /// Each line's class, name and place down.
    pub labels: Vec<(&'static str, &'static str, f64)>,
    /// From and to of each measuring window.
    pub windows: Vec<(f64, f64)>,
    /// From and to of each time in which GPUs were held back.
    pub held: Vec<(f64, f64)>,
    /// Both axes.
    pub axes: Option<[Axis; 2]>,
    /// Marks of the value axis.
    pub y_ticks: Vec<Tick>,
}

/// Draws a part of the time.
pub fn draw(chart: &LiveChart, series: &GaugeSeries, part: Zoom, frame: Frame) -> Drawn {
    let told: Vec<&LiveLine> = chart.told(series, part).collect();
    let values = told.iter().flat_map(|line| series.within(part).filter_map(|seen| (line.read)(seen.gauge.as_ref()?)));
    let Some(range) = Range::of(values) else { return Drawn::default() };
    let x = Axis::new(part.range(), frame.across(), Kind::Linear);
    // An axis of zeros alone still has a height.
    let hi = if range.hi > 0.0 { range.hi * 1.08 } else { 1.0 };
    let y = Axis::new(Range { lo: 0.0, hi }, frame.upwards(), Kind::Linear);
    let points = |line: &LiveLine| {
        let place = |value: Option<f64>| value.map(|value| y.at(value));
        let read = line.read;
        decimate(series.within(part).map(move |seen| (x.at(seen.at_s), place(seen.gauge.as_ref().and_then(read)))))
    };
    let lines: Vec<_> = told.iter().map(|line| (line.class, path(points(line)))).collect();
    let inside = |stretches: Vec<(f64, f64)>| {
        let [left, right] = frame.across();
        let clip = |at_s: f64| x.at(at_s).clamp(left, right);
        stretches.into_iter().map(|(from, to)| (clip(from), clip(to))).collect()
    };
    Drawn {
        lines,
        labels: labels(&told, series, part, y, frame),
        windows: inside(series.stretches(part, is_measuring)),
        held: match chart.marks {
            Marks::None => Vec::new(),
            Marks::Throttle => inside(series.stretches(part, is_held)),
        },
        axes: Some([x, y]),
        y_ticks: few(Tick::each(y.ticks(), chart.tick)),
    }
}

/// A low field has room for three marks.
fn few(ticks: Vec<Tick>) -> Vec<Tick> {
    let every = ticks.len().saturating_sub(1).div_ceil(2).max(1);
    let mut ticks: Vec<Tick> = ticks.into_iter().step_by(every).collect();
    // Half a request is none: marks between whole numbers would all read alike.
    ticks.dedup_by(|a, b| a.text == b.text);
    ticks
}

/// Where each line's name stands: at its last value. A single line has its name in the title.
fn labels(
    told: &[&LiveLine],
    series: &GaugeSeries,
    part: Zoom,
    y: Axis,
    frame: Frame,
) -> Vec<(&'static str, &'static str, f64)> {
    if told.len() < 2 {
        return Vec::new();
    }
    let last = |line: &LiveLine| {
        series.within(part).filter_map(|seen| (line.read)(seen.gauge.as_ref()?)).last().map(|value| y.at(value))
    };
    let ends: Vec<(&LiveLine, f64)> = told.iter().filter_map(|line| Some((*line, last(line)?))).collect();
    let places: Vec<f64> = ends.iter().map(|(_, place)| *place).collect();
    let places = spread(&places, LABEL_PX, frame.bottom);
    ends.into_iter().zip(places).map(|((line, _), place)| (line.class, line.label, place)).collect()
}

/// The rows of a chart's table: means over stretches of a part of the time.
pub fn rows(chart: &LiveChart, series: &GaugeSeries, part: Zoom) -> Vec<Vec<String>> {
    let part = Zoom { to_s: part.to_s.min(series.latest_s().unwrap_or(part.from_s)), ..part };
    let seen: Vec<(f64, &Gauge)> = series
        .within(part)
        .filter(|seen| (part.from_s..=part.to_s).contains(&seen.at_s))
        .filter_map(|seen| Some((seen.at_s, seen.gauge.as_ref()?)))
        .collect();
    let each = seen.len().div_ceil(TABLE_ROWS).max(1);
    let row = |stretch: &[(f64, &Gauge)]| {
        let time = |seen: Option<&(f64, &Gauge)>| format::clock(seen.map(|(at_s, _)| *at_s));
        let mean = |line: &LiveLine| {
            let (n, sum) = stretch
                .iter()
                .filter_map(|(_, gauge)| (line.read)(gauge))
                .fold((0_u32, 0.0), |(n, sum), value| (n + 1, sum + value));
            (chart.show)((n > 0).then(|| sum / f64::from(n)))
        };
        let held = stretch.iter().find_map(|(_, gauge)| held_by(gauge)).map(HeldBy::label);
        let held = (chart.marks == Marks::Throttle).then(|| held.unwrap_or("nothing").to_owned());
        let times = [time(stretch.first()), time(stretch.last())];
        times.into_iter().chain(chart.lines.iter().map(mean)).chain(held).collect()
    };
    seen.chunks(each).map(row).collect()
}

/// Heads of that table.
pub fn columns(chart: &LiveChart) -> Vec<&'static str> {
    let held = (chart.marks == Marks::Throttle).then_some("Held back by");
    ["From", "To"].into_iter().chain(chart.lines.iter().map(|line| line.label)).chain(held).collect()
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{
        gauge::{CellPhase, GpuGauge},
        gpu::Throttle,
    };

    use super::*;
    use crate::live::series::tests::gauge;

    fn chart(key: &str) -> LiveChart {
        CHARTS.into_iter().find(|chart| chart.key == key).unwrap()
    }

    fn series() -> GaugeSeries {
        let mut series = GaugeSeries::new(1.0);
        for tenth in 0..100_u64 {
            let phase = if tenth < 50 { CellPhase::Ramp } else { CellPhase::Measure };
            let throttle = Some(Throttle(if tenth < 20 { 4 } else { 0 }));
            let gpu = Some(GpuGauge { power_w: Some(500.0), temperature_c: None, throttle });
            series.push(Gauge { gpu, tok_s: Some(tenth as f64), ..gauge(tenth * 100, phase) });
        }
        series
    }

    #[test]
    fn only_what_was_told_is_drawn() {
        let absent: Vec<&str> =
            CHARTS.iter().filter(|chart| chart.is_absent(&series())).map(|chart| chart.key).collect();
        assert_eq!(absent, ["kv", "temperature", "lateness"]);
        let drawn = draw(&chart("requests"), &series(), series().whole(), frame_for(Room::Wide));
        assert_eq!(
            drawn.labels.iter().map(|label| label.1).collect::<Vec<_>>(),
            ["in flight", "decoding", "no token yet"]
        );
        assert_eq!(draw(&chart("kv"), &series(), series().whole(), frame_for(Room::Wide)), Drawn::default());
    }

    #[test]
    fn windows_and_throttling_are_marked_where_they_were() {
        let part = Zoom { from_s: 0.0, to_s: 10.0 };
        let frame = frame_for(Room::Wide);
        let drawn = draw(&chart("power"), &series(), part, frame);
        let [x, _] = drawn.axes.unwrap();
        let close = |stretch: (f64, f64), from: f64, to: f64| {
            assert!((stretch.0 - x.at(from)).abs() < 0.1 && (stretch.1 - x.at(to)).abs() < 0.1, "{stretch:?}");
        };
        close(drawn.windows[0], 5.0, 9.9);
        close(drawn.held[0], 0.0, 1.9);
        assert_eq!(draw(&chart("rate"), &series(), part, frame).held, []);
    }

    #[test]
    fn a_moment_is_read_out_in_words() {
        let words =
            "0:01: 10.0 tok/s · in flight 16, decoding 12, no token yet 4 · 500 W · held back by the power limit";
        assert_eq!(values_at(&series(), 1.0).as_deref(), Some(words));
        assert_eq!(values_at(&GaugeSeries::new(1.0), 1.0), None);
    }

    #[test]
    fn the_table_has_few_rows_with_the_means() {
        let power = rows(&chart("power"), &series(), series().whole());
        assert_eq!((power.len(), columns(&chart("power")).len()), (25, power[0].len()));
        assert_eq!(power[0], ["0:00", "0:00", "500 W", "the power limit"]);
        assert_eq!(power[24], ["0:09", "0:09", "500 W", "nothing"]);
        let rate = rows(&chart("rate"), &series(), Zoom { from_s: 1.0, to_s: 1.2 });
        assert_eq!(
            rate.iter().map(|row| row[2].as_str()).collect::<Vec<_>>(),
            ["10.0 tok/s", "11.0 tok/s", "12.0 tok/s"]
        );
    }
}
