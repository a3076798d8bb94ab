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
/// Least opacity of a pixel that holds anything.
const FAINTEST: f32 = 0.35;

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
    let mut mix = vec![[0.0_f32; 4]; size.width];
    for band in 0..bands {
        mix.fill([0.0; 4]);
        let from = |band: usize| band * lanes.count() / bands;
        for bar in lanes.between(from(band), from(band + 1)).iter().flat_map(|lane| visible(lane, range)) {
            add(bar, range, &mut mix);
        }
        let line: Vec<[u8; PIXEL]> = mix.iter().map(|parts| blend(parts, colours)).collect();
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

/// Adds to each pixel the share of its time that each stage takes.
fn add(bar: &Bar, range: Range, mix: &mut [[f32; 4]]) {
    let width = mix.len();
    let per_s = width as f64 / (range.hi - range.lo);
    let place = |at_s: f64| ((at_s - range.lo) * per_s).clamp(0.0, width as f64);
    for (stage, from_s, to_s) in stages(bar) {
        let (from, to) = (place(from_s), place(to_s));
        if to <= from {
            continue;
        }
        let (first, last) = (from as usize, (to.ceil() as usize).min(width));
        let cells = mix.get_mut(first..last).unwrap_or_default();
        for (pixel, parts) in (first..).zip(cells) {
            let share = to.min((pixel + 1) as f64) - from.max(pixel as f64);
            if let Some(part) = parts.get_mut(stage) {
                *part += share as f32;
            }
        }
    }
    if bar.failed && (range.lo..=range.hi).contains(&bar.ended_s) {
        // Two pixels are seen also where a request failed at once.
        let end = (place(bar.ended_s) as usize).min(width.saturating_sub(1));
        for parts in mix.get_mut(end.saturating_sub(1)..=end).unwrap_or_default() {
            parts[3] = 1.0;
        }
    }
}

/// The stages of a request with their begin and end, in the order of [`Stage::ALL`].
const fn stages(bar: &Bar) -> [(usize, f64, f64); 3] {
    [(0, bar.due_s, bar.sent_s), (1, bar.sent_s, bar.first_s), (2, bar.first_s, bar.ended_s)]
}

fn blend(parts: &[f32; 4], Colours(colours): &Colours) -> [u8; PIXEL] {
    let [.., failed] = *parts;
    if failed > 0.0 {
        let [red, green, blue] = colours[3];
        return [red, green, blue, u8::MAX];
    }
    let sum: f32 = parts.iter().sum();
    if sum <= 0.0 {
        return [0; PIXEL];
    }
    let channel = |n: usize| {
        let mixed: f32 = parts.iter().zip(colours).map(|(part, colour)| part * f32::from(colour[n])).sum();
        (mixed / sum).round() as u8
    };
    [channel(0), channel(1), channel(2), (sum.clamp(FAINTEST, 1.0) * 255.0) as u8]
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
            let rows: Vec<Row> = (0..1 + number(60) as u32)
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
