//! The figures: what is asked, what is reached.

use std::{collections::HashMap, io};

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

fn stamps(figures: &mut Vec<Figure>, (streams, requests, tokens): (u32, u32, u32)) -> io::Result<()> {
    let sim = Simulator::start("exact", "ends")?;
    let job = Job { url: sim.url.clone(), streams, requests, tokens, prompt_bytes: 500, detail: Detail::Ends };
    let bare = in_process("bare", &job)?;
    let ours = in_process("client", &job)?;
    let truth = sim.log()?;
    let name = format!("{streams} streams");
    failures(figures, &name, &ours);
    let first = errors(&ours, &truth, |row, truth| Some(millis(row.first, truth.first_token.as_ref()?.monotonic_ns)));
    let last = errors(&ours, &truth, |row, truth| Some(millis(row.last, truth.last_token.as_ref()?.monotonic_ns)));
    for (end, errors) in [("first token", first), ("last token", last)] {
        let mut row = |share, bound| {
            let name = format!("{name}: {end} stamp error p{:.0}", share * 100.0);
            figures.push(at_most(name, bound, "ms", quantile(&errors, share)));
        };
        row(0.5, STAMP_P50_MS);
        row(0.99, STAMP_P99_MS);
    }
    let sum = |of: fn(&Row) -> u64, report: &Report| report.requests.iter().map(of).sum::<u64>() as f64;
    let coalesced = 100.0 * sum(|row| row.coalesced, &ours) / sum(|row| row.reads, &ours);
    figures.push(at_most(format!("{name}: coalesced reads"), COALESCED_PERCENT, "%", coalesced));
    // The same events for both: the bare reader takes role and finish for text too.
    let per_event = |report: &Report| report.cpu_nanos as f64 / sum(|row| row.events, &ours) / 1e3;
    let (ours_us, bare_us) = (per_event(&ours), per_event(&bare));
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
    figures.push(at_most(format!("{name}: memory"), MEMORY_MB, "MB", ours.memory_bytes as f64 / 1e6));
    Ok(())
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

fn errors(report: &Report, truth: &HashMap<String, Truth>, error: impl Fn(&Row, &Truth) -> Option<f64>) -> Vec<f64> {
    let pairs = report.requests.iter().filter_map(|row| error(row, truth.get(&row.id)?));
    let mut errors: Vec<f64> = pairs.map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    errors
}

fn millis(later: u64, earlier: u64) -> f64 {
    (later as f64 - earlier as f64) / 1e6
}

/// Linear interpolation between order statistics (type 7); NaN, which is no bound kept, for nothing.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let low = sorted.get(place.floor() as usize);
    let high = sorted.get(place.ceil() as usize);
    match (low, high) {
        (Some(low), Some(high)) => low + (high - low) * place.fract(),
        _ => f64::NAN,
    }
}
