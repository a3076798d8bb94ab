//! The figures: what is asked, what is reached.

use std::{collections::HashMap, io};

use speedmatrix_shared::stats::summary::quantile_sorted;

use super::{
    figure::{Figure, at_most},
    job::{Detail, Job, Report, Row, in_process},
    simulator::{Simulator, Truth},
};

/// Streams, requests of each, tokens of each: at least some hundred requests a row, some seconds each.
const LOADS: [(u32, u32, u32); 4] = [(1, 100, 5), (100, 3, 100), (500, 2, 100), (1_000, 2, 100)];
/// Bounds of the brief.
const STAMP_P50_MS: f64 = 0.1;
const STAMP_P99_MS: f64 = 0.3;
const COALESCED_PERCENT: f64 = 5.0;
const CPU_RATIO: f64 = 1.3;
/// Times that a load is read by both readers; the middle one of their cost ratios counts.
const ROUNDS: usize = 3;
/// Distance of two tokens in the simulator's `exact` preset.
const TOKEN_MS: u32 = 10;
/// Load from which the cost is asked for: at one stream each event is a wake-up and a fifth of a whole request.
const CPU_STREAMS: u32 = 100;
const MEMORY_MB: f64 = 60.0;
const RATE_PERCENT: f64 = 0.1;
const START_SPREAD_MS: f64 = 15.0;
/// The window of the rate, nanoseconds after the first send: all streams run in it.
const WINDOW: std::ops::Range<u64> = 500_000_000..2_500_000_000;

/// Measures all of them.
pub(crate) fn all() -> io::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (streams, requests, tokens) in LOADS {
        stamps(&mut figures, (streams, requests, tokens))?;
    }
    exact_counts(&mut figures)?;
    long_prompts(&mut figures)?;
    Ok(figures)
}

fn failures(figures: &mut Vec<Figure>, name: &str, report: &Report) {
    let failed: Vec<&str> = report.requests.iter().filter_map(|row| row.failure.as_deref()).collect();
    if let Some(first) = failed.first() {
        let reached = format!("{}: {first}", failed.len());
        figures.push(Figure { name: format!("{name}: failed requests"), asked: "0".into(), reached, ok: false });
    }
}

/// What one load showed, all rounds together.
struct Rounds {
    ours: Vec<Row>,
    bare: Vec<Row>,
    truth: HashMap<String, Truth>,
    /// Processor time per event, microseconds: the client's and the bare reader's, of each round.
    costs_us: Vec<(f64, f64)>,
    memory_bytes: u64,
}

/// Reads a load with both readers in turns: what a reader costs swings with the machine, so that pairs are compared.
fn rounds(figures: &mut Vec<Figure>, (streams, requests, tokens): (u32, u32, u32)) -> io::Result<Rounds> {
    let sim = Simulator::start("exact", "ends")?;
    let job = Job { url: sim.url.clone(), streams, requests, tokens, prompt_bytes: 500, detail: Detail::Ends };
    let mut all =
        Rounds { ours: Vec::new(), bare: Vec::new(), truth: HashMap::new(), costs_us: Vec::new(), memory_bytes: 0 };
    for _ in 0..if streams < CPU_STREAMS { 1 } else { ROUNDS } {
        let bare = in_process("bare", &job)?;
        let ours = in_process("client", &job)?;
        failures(figures, &format!("{streams} streams"), &ours);
        let events = sum(|row| row.events, &ours.requests);
        let cost = |report: &Report| report.cpu_nanos as f64 / events / 1e3;
        all.costs_us.push((cost(&ours), cost(&bare)));
        all.memory_bytes = all.memory_bytes.max(ours.memory_bytes);
        all.ours.extend(ours.requests);
        all.bare.extend(bare.requests);
    }
    all.truth = sim.log()?;
    Ok(all)
}

fn stamps(figures: &mut Vec<Figure>, load: (u32, u32, u32)) -> io::Result<()> {
    let Rounds { ours, bare, truth, mut costs_us, memory_bytes } = rounds(figures, load)?;
    let (streams, _, tokens) = load;
    let name = format!("{streams} streams");
    figures.push(distance(&name, &truth, tokens));
    let ends: [(&str, End); 2] = [
        ("first token", |row, truth| Some((row.first, truth.first_token.as_ref()?.monotonic_ns))),
        ("last token", |row, truth| Some((row.last, truth.last_token.as_ref()?.monotonic_ns))),
    ];
    for (end, of) in ends {
        let (errors, floor) = (errors(&ours, &truth, of), errors(&bare, &truth, of));
        for (share, bound) in [(0.5, STAMP_P50_MS), (0.99, STAMP_P99_MS)] {
            let floor = quantile(&floor, share);
            let name = format!("{name}: {end} stamp error p{:.0}, a bare reader's {floor:.3} ms", share * 100.0);
            figures.push(at_most(name, bound, "ms", quantile(&errors, share)));
        }
    }
    let coalesced = |rows: &[Row]| 100.0 * sum(|row| row.coalesced, rows) / sum(|row| row.reads, rows);
    let name_of = format!("{name}: coalesced reads, a bare reader's {:.2} %", coalesced(&bare));
    figures.push(at_most(name_of, COALESCED_PERCENT, "%", coalesced(&ours)));
    let late_firsts = |rows: &[Row]| 100.0 * sum(|row| u64::from(row.first_with > 1), rows) / rows.len() as f64;
    figures.push(told(
        format!("{name}: first tokens read with a later one, a bare reader's {:.2} %", late_firsts(&bare)),
        format!("{:.2} %", late_firsts(&ours)),
    ));
    costs_us.sort_by(|a, b| f64::total_cmp(&(a.0 / a.1), &(b.0 / b.1)));
    let (ours_us, bare_us) = costs_us[costs_us.len() / 2];
    let mut cost = at_most(
        format!("{name}: cpu per event, {ours_us:.2} us against a bare reader's {bare_us:.2} us"),
        CPU_RATIO,
        "x",
        ours_us / bare_us,
    );
    if streams < CPU_STREAMS {
        (cost.asked, cost.ok) = ("-".to_owned(), true);
    }
    figures.push(cost);
    figures.push(at_most(format!("{name}: memory"), MEMORY_MB, "MB", memory_bytes as f64 / 1e6));
    Ok(())
}

/// The distance of two tokens of a stream as the simulator sent them: longer than meant, the machine was too small for
/// the load, and what waits in a socket is read together.
fn distance(name: &str, truth: &HashMap<String, Truth>, tokens: u32) -> Figure {
    let lengths = truth.values().filter_map(|request| {
        let (first, last) = (request.first_token.as_ref()?, request.last_token.as_ref()?);
        Some(millis(last.monotonic_ns, first.monotonic_ns) / f64::from(tokens - 1))
    });
    let lengths: Vec<f64> = lengths.collect();
    let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
    told(format!("{name}: distance of tokens as sent, meant to be {TOKEN_MS} ms"), format!("{mean:.2} ms"))
}

/// A figure that nothing is asked of: it explains others.
fn told(name: String, reached: String) -> Figure {
    Figure { name, asked: "-".to_owned(), reached, ok: true }
}

fn sum(of: impl Fn(&Row) -> u64, rows: &[Row]) -> f64 {
    rows.iter().map(of).sum::<u64>() as f64
}

fn exact_counts(figures: &mut Vec<Figure>) -> io::Result<()> {
    let sim = Simulator::start("exact-speculative", "chunks")?;
    let job = Job {
        url: sim.url.clone(),
        streams: 128,
        requests: 1,
        tokens: 1_500,
        prompt_bytes: 500,
        detail: Detail::Arrivals,
    };
    let ours = in_process("client", &job)?;
    let truth = sim.log()?;
    let name = "128 streams, several tokens per chunk";
    failures(figures, name, &ours);
    let (mut tokens, mut server_tokens) = (0, 0);
    let start = ours.requests.iter().map(|row| row.sent).min().unwrap_or(0);
    let window = start + WINDOW.start..start + WINDOW.end;
    let (mut in_window, mut server_in_window) = (0_u64, 0_u64);
    for row in &ours.requests {
        tokens += row.tokens;
        let mut before = 0;
        for (at, total) in &row.arrivals {
            in_window += if window.contains(at) { total - before } else { 0 };
            before = *total;
        }
        let Some(truth) = truth.get(&row.id) else { continue };
        server_tokens += truth.output_tokens;
        let sent = truth.chunk_log.iter().filter(|chunk| window.contains(&chunk.sent.monotonic_ns));
        server_in_window += sent.map(|chunk| chunk.tokens).sum::<u64>();
    }
    figures.push(Figure {
        name: format!("{name}: total"),
        asked: server_tokens.to_string(),
        reached: tokens.to_string(),
        ok: tokens == server_tokens && tokens > 0,
    });
    let off = 100.0 * (in_window as f64 / server_in_window as f64 - 1.0).abs();
    figures.push(at_most(format!("{name}: rate of a window of {server_in_window} tokens"), RATE_PERCENT, "%", off));
    Ok(())
}

fn long_prompts(figures: &mut Vec<Figure>) -> io::Result<()> {
    let sim = Simulator::start("exact", "ends")?;
    let job = Job {
        url: sim.url.clone(),
        streams: 128,
        requests: 1,
        tokens: 2,
        prompt_bytes: 5_000_000,
        detail: Detail::Ends,
    };
    let ours = in_process("client", &job)?;
    let name = "128 prompts of a million tokens";
    failures(figures, name, &ours);
    let sent = || ours.requests.iter().map(|row| row.sent);
    let spread = millis(sent().max().unwrap_or(0), sent().min().unwrap_or(0));
    figures.push(at_most(format!("{name}: all started within"), START_SPREAD_MS, "ms", spread));
    figures.push(at_most(format!("{name}: memory"), MEMORY_MB, "MB", ours.memory_bytes as f64 / 1e6));
    Ok(())
}

/// A reader's time of an end of a stream, and the simulator's.
type End = fn(&Row, &Truth) -> Option<(u64, u64)>;

fn errors(rows: &[Row], truth: &HashMap<String, Truth>, end: End) -> Vec<f64> {
    let pairs = rows.iter().filter_map(|row| end(row, truth.get(&row.id)?));
    let mut errors: Vec<f64> = pairs.map(|(read, sent)| millis(read, sent).abs()).collect();
    errors.sort_by(f64::total_cmp);
    errors
}

fn millis(later: u64, earlier: u64) -> f64 {
    (later as f64 - earlier as f64) / 1e6
}

/// NaN, which is no bound kept, for nothing.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    quantile_sorted(sorted, share).unwrap_or(f64::NAN)
}
