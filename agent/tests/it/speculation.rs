//! What a run says of speculation, against the simulator's own record of every chunk.

use speedmatrix_agent::sim::{Recording, SimConfig};
use speedmatrix_shared::{event::RunOutcome, units::Nanos};

use crate::rig::{Rig, draft, monotonic_ns, received, simulator};

/// Looks at the counters are between chunks, and requests begin with a step of one token: ratios over a window of some
/// hundred steps agree this well even on a busy machine.
const TOLERANCE: f64 = 0.02;

fn near(what: &str, got: Option<f64>, wanted: f64) {
    let got = got.unwrap_or_else(|| panic!("{what} is unknown"));
    assert!((got / wanted - 1.0).abs() <= TOLERANCE, "{what}: {got} is not {wanted}");
}

#[test]
fn acceptance_is_that_of_the_steps() {
    let preset = SimConfig::preset("exact-speculative").unwrap();
    let drafted_each = f64::from(preset.speculation.unwrap().draft_tokens);
    let sim = simulator(SimConfig { clock_factor: 4.0, recording: Recording::EveryChunk, ..preset });
    let seen = Rig::new(&sim.base_url()).run(draft("1K", "4", "10s", "4096"));
    assert_eq!(seen.outcome, RunOutcome::Finished);
    let (ramp, start) = seen.opened("decode-1K-4");
    let at = |time| monotonic_ns(seen.clock, time);
    let (from, to) = (at(start), at(start + Nanos::from_secs(10)));
    let requests = received(&sim.log(), at(ramp) - 2_000_000, to);
    let chunks = requests.iter().flat_map(|request| &request.chunk_log);
    let inside = chunks.filter(|chunk| (from..to).contains(&chunk.sent.monotonic_ns));
    let (steps, tokens) = inside.fold((0.0, 0.0), |(steps, sum), chunk| (steps + 1.0, sum + chunk.tokens as f64));
    let stats = &seen.result("decode-1K-4").stats;
    near("acceptance length", stats.acceptance_length, tokens / steps);
    near("acceptance rate", stats.acceptance_rate, (tokens - steps) / (steps * drafted_each));
    near("steps per second", stats.steps_per_s, stats.total_tok_s.unwrap() * steps / tokens);
    near("normalised speed", stats.normalised_tok_s, 2.0 * stats.steps_per_s.unwrap());
}

#[test]
fn without_drafts_nothing_is_said_of_speculation() {
    let sim = simulator(SimConfig { clock_factor: 4.0, ..SimConfig::preset("exact").unwrap() });
    let seen = Rig::new(&sim.base_url()).run(draft("1K", "2", "2s", "512"));
    let stats = &seen.result("decode-1K-2").stats;
    let told = [stats.acceptance_length, stats.acceptance_rate, stats.steps_per_s, stats.normalised_tok_s];
    assert_eq!(told, [None; 4]);
}
