//! The waterfall: one line for each slot, and on it its requests. Pure: requests in, pixels out. Work and picture are
//! bounded by the pixels and the visible requests, so that 100,000 of them can be moved smoothly.

use super::{
    lanes::{Bar, Lanes, visible},
    scale::Range,
};

/// Bytes of a pixel: red, green, blue, opacity.
const PIXEL: usize = 4;
/// From this height of a line on, in pixels, the lowest one stays empty, so that lines can be told apart.
const GAP_FROM: usize = 4;
/// Least opacity of a pixel that holds anything, of 255.
const FAINTEST: f32 = 90.0;
/// What a failure weighs where all else in a pixel weighs no more than its lines: it always shows.
const OUTWEIGHS: f32 = 1e6;

/// What a request does at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is due and not sent yet.
    Queued,
    /// It is sent and has no text yet: the server's queue, and prefill.
    Prefill,
    /// Text flows.
    Decode,
    /// It has failed.
    Failed,
}

impl Stage {
    /// All of them, in the order of the legend.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Prefill, Self::Decode, Self::Failed];

    /// Plain words for the legend.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Queued => "due, not sent yet",
            Self::Prefill => "waiting for its first token (server's queue and prefill)",
            Self::Decode => "text flows (decode)",
            Self::Failed => "failed",
        }
    }

    /// Its class in the style sheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Failed => "failed",
        }
    }
}

/// A colour: red, green, blue.
pub type Rgb = [u8; 3];

/// The colours of the stages, in the order of [`Stage::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colours(pub [Rgb; 4]);

/// The size of a picture, in its own pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Across.
    pub width: usize,
    /// Down.
    pub height: usize,
}

/// The picture: `range` of time across, the lines one below the other. Each pixel holds the mix of what happened in
/// its time on its lines, and a failure always shows.
pub fn paint(lanes: &Lanes, range: Range, size: Size, colours: &Colours) -> Vec<u8> {
    let mut pixels = vec![0; size.width * size.height * PIXEL];
    let bands = lanes.count().min(size.height);
    if bands == 0 || size.width == 0 || range.hi <= range.lo {
        return pixels;
    }
    let inks = colours.0.map(|colour| colour.map(f32::from));
    let mut mix = vec![Mix::default(); size.width];
    for band in 0..bands {
        mix.fill(Mix::default());
        let from = |band: usize| band * lanes.count() / bands;
        for bar in lanes.between(from(band), from(band + 1)).iter().flat_map(|lane| visible(lane, range)) {
            add(bar, range, &inks, &mut mix);
        }
        let line: Vec<[u8; PIXEL]> = mix.iter().map(Mix::pixel).collect();
        let (top, bottom) = (band * size.height / bands, (band + 1) * size.height / bands);
        let gap = usize::from(bottom - top >= GAP_FROM);
        for y in top..bottom - gap {
            let row = pixels.get_mut(y * size.width * PIXEL..(y + 1) * size.width * PIXEL);
            if let Some(row) = row {
                row.copy_from_slice(line.as_flattened());
            }
        }
    }
    pixels
}

/// A colour to mix with: red, green, blue.
type Ink = [f32; 3];

/// What happened in the time of a pixel: the sum of the colours, each times its share of the time, and of the shares.
#[derive(Debug, Clone, Copy, Default)]
struct Mix {
    red: f32,
    green: f32,
    blue: f32,
    weight: f32,
}

// Small steps without closures: the page is compiled for size, which leaves loops as they are written.
impl Mix {
    const fn add(&mut self, [red, green, blue]: Ink, share: f32) {
        self.red += red * share;
        self.green += green * share;
        self.blue += blue * share;
        self.weight += share;
    }

    /// The mean of the colours, more opaque the more of the time is filled. Rounded by a half, as there is no
    /// instruction for `round`.
    fn pixel(&self) -> [u8; PIXEL] {
        if self.weight <= 0.0 {
            return [0; PIXEL];
        }
        let one = 1.0 / self.weight;
        // Casts of floats saturate.
        let filled = (self.weight * 255.0).max(FAINTEST);
        [(self.red * one + 0.5) as u8, (self.green * one + 0.5) as u8, (self.blue * one + 0.5) as u8, filled as u8]
    }
}

/// Adds to each pixel the share of its time that each stage of a request takes.
fn add(bar: &Bar, range: Range, inks: &[Ink; 4], line: &mut [Mix]) {
    let width = line.len() as f64;
    let per_s = width / (range.hi - range.lo);
    let mut from = ((bar.due_s - range.lo) * per_s).max(0.0);
    for (end_s, ink) in [(bar.sent_s, inks[0]), (bar.first_s, inks[1]), (bar.ended_s, inks[2])] {
        let to = ((end_s - range.lo) * per_s).min(width);
        if to > from {
            fill(line, from, to, ink);
            from = to;
        }
    }
    if bar.failed && (range.lo..=range.hi).contains(&bar.ended_s) {
        // Two pixels are seen also where a request failed at once.
        let end = (((bar.ended_s - range.lo) * per_s) as usize).min(line.len().saturating_sub(1));
        for mix in line.get_mut(end.saturating_sub(1)..=end).unwrap_or_default() {
            mix.add(inks[3], OUTWEIGHS);
        }
    }
}

/// Adds an ink between two places of a line, in pixels.
fn fill(line: &mut [Mix], from: f64, to: f64, ink: Ink) {
    let (first, last) = (from as usize, to as usize);
    let Some(pixels) = line.get_mut(first..) else { return };
    if first == last {
        if let Some(mix) = pixels.first_mut() {
            mix.add(ink, (to - from) as f32);
        }
        return;
    }
    for (nth, mix) in pixels.iter_mut().take(last - first + 1).enumerate() {
        let share = match first + nth {
            pixel if pixel == first => (first + 1) as f64 - from,
            pixel if pixel == last => to - last as f64,
            _ => 1.0,
        };
        mix.add(ink, share as f32);
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{
        detail::requests::{Row, RowEnd},
        plan::Load,
    };

    use super::*;

    const COLOURS: Colours = Colours([[1, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0]]);

    fn row(slot: u32, [due_s, sent_s, first_s, ended_s]: [f64; 4], end: RowEnd) -> Row {
        let (sent_s, first_s) = (Some(sent_s), Some(first_s));
        Row { slot, due_s, sent_s, first_s, last_s: Some(ended_s), ended_s, end, tokens: 9 }
    }

    fn done(slot: u32, times: [f64; 4]) -> Row {
        row(slot, times, RowEnd::Completed)
    }

    /// The red channel of each pixel, line by line; `.` where nothing is.
    fn picture(lanes: &Lanes, range: (f64, f64), width: usize, height: usize) -> Vec<String> {
        let pixels = paint(lanes, Range { lo: range.0, hi: range.1 }, Size { width, height }, &COLOURS);
        let letter = |pixel: &[u8]| if pixel[3] == 0 { ".".to_owned() } else { pixel[0].to_string() };
        pixels.chunks(width * PIXEL).map(|line| line.chunks(PIXEL).map(letter).collect()).collect()
    }

    fn small() -> Vec<Row> {
        vec![
            done(7, [0.0, 1.0, 3.0, 6.0]),
            row(2, [1.0, 1.0, 2.0, 4.0], RowEnd::Failed(0)),
            done(7, [6.0, 6.0, 7.0, 10.0]),
        ]
    }

    #[test]
    fn lines_show_their_requests() {
        let lanes = Lanes::of(&small(), Load::Sustained);
        assert_eq!(picture(&lanes, (0.0, 10.0), 10, 2), [".2344.....", "1223332333"]);
        // Lines of four pixels leave the lowest one empty.
        assert_eq!(picture(&lanes, (0.0, 10.0), 10, 8)[3], "..........");
        // A part of the time takes all the width; where a stage changes inside a pixel it is a mix.
        assert_eq!(picture(&lanes, (2.0, 4.0), 4, 2), ["3344", "2233"]);
        // More lines than pixels share them.
        assert_eq!(picture(&lanes, (0.0, 10.0), 10, 1), ["1234432333"]);
        assert_eq!(picture(&Lanes::default(), (0.0, 1.0), 2, 1), [".."]);
    }

    /// Whole numbers below `below` that look random (a linear congruence).
    fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    #[test]
    fn every_visible_request_leaves_a_mark_and_nothing_else_does() {
        for seed in 0..300 {
            let mut number = numbers(seed);
            let rows: Vec<Row> = (0..=number(60) as u32)
                .map(|slot| {
                    let (due, length) = (number(1_000) as f64 / 10.0, (1 + number(200)) as f64 / 10.0);
                    done(slot, [due, due, due + length / 3.0, due + length])
                })
                .collect();
            let (width, height) = (1 + number(80) as usize, 1 + number(40) as usize);
            let range = Range { lo: 20.0, hi: 60.0 };
            let pixels = paint(&Lanes::of(&rows, Load::Sustained), range, Size { width, height }, &COLOURS);
            assert_eq!(pixels.len(), width * height * PIXEL);
            let filled = |share: f64| {
                let column = ((share * width as f64) as usize).min(width - 1);
                pixels.chunks(PIXEL).skip(column).step_by(width).any(|pixel| pixel[3] > 0)
            };
            let seen = |row: &&Row| row.due_s < range.hi && row.ended_s > range.lo;
            for row in rows.iter().filter(seen) {
                let middle = f64::midpoint(row.due_s.max(range.lo), row.ended_s.min(range.hi));
                assert!(filled((middle - range.lo) / (range.hi - range.lo)), "{seed}: {row:?}");
            }
            assert_eq!(pixels.chunks(PIXEL).any(|pixel| pixel[3] > 0), rows.iter().any(|row| seen(&row)), "{seed}");
        }
    }
}
