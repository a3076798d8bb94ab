//! Why a cell has the status that it has: what the status means, and the numbers that speak for and against it. From the
//! result alone, so that imported cells say what they can.

use crate::{
    format,
    id::{CellId, Phase},
    plan::Load,
    stats::{
        cell::{CellResult, CellStats, CellStatus},
        gpu::Cause,
    },
};

/// What a status means, in a sentence.
pub const fn meaning(status: CellStatus) -> &'static str {
    match status {
        CellStatus::Failed(_) => {
            "Too many requests failed, or a slot gave nothing for too long: there is no number to stand on."
        }
        CellStatus::NotDrained => "The engine still worked on other requests before the cell, so it was not measured.",
        CellStatus::Contaminated => {
            "Somebody else used the server in the window: the speed is what was left for this run."
        }
        CellStatus::LoopingOutput => {
            "Answers repeated themselves, and repeated text is faster to write than other text."
        }
        CellStatus::RampIncomplete => "The window opened before every slot had a token.",
        CellStatus::RequestsQueued => "Some requests waited for a place in the server for more than 5 % of the window.",
        CellStatus::Preempted => "The engine threw requests out to make room, and started them again.",
        CellStatus::UnderFilled => {
            "Fewer than 95 % of the requests decoded at once, because answers ended and began anew."
        }
        CellStatus::ClientLimited => "This client could not keep up, so the times are partly its own.",
        CellStatus::Valid => "Nothing is known that speaks against these numbers.",
    }
}

/// The numbers behind a status, one short sentence each; only what was measured.
pub fn evidence(cell: CellId, load: Load, result: &CellResult) -> Vec<String> {
    let stats = &result.stats;
    let lines = [
        requests(cell.phase, stats),
        filled(cell, load, stats),
        waiting(stats),
        cache(stats),
        counting(stats),
        stamps(stats),
        energy(cell.phase, stats),
        held_back(stats),
    ];
    lines.into_iter().flatten().collect()
}

/// `40 requests: 12 completed in the window, 28 closed at its end, 0 failed.`
fn requests(phase: Phase, stats: &CellStats) -> Option<String> {
    let counts = stats.requests?;
    let count = |number: u64| format::count(Some(number));
    if counts.started == 0 {
        // Imported pages tell only this.
        return Some(format!("{} completed in the window.", with_noun(counts.completed)));
    }
    let closed = if counts.cut > 0 { format!(", {} closed at its end", count(counts.cut)) } else { String::new() };
    let (started, completed, failed) = (with_noun(counts.started), count(counts.completed), count(counts.failed));
    // Only decode cells have a window.
    let within = if phase == Phase::Decode { " in the window" } else { "" };
    Some(format!("{started} sent: {completed} completed{within}{closed}, {failed} failed."))
}

fn with_noun(requests: u64) -> String {
    let noun = if requests == 1 { "request" } else { "requests" };
    format!("{} {noun}", format::count(Some(requests)))
}

/// `15.9 of 16 requests decoded on average (99 %).`
fn filled(cell: CellId, load: Load, stats: &CellStats) -> Option<String> {
    let decoding = stats.decoding_requests.filter(|_| cell.phase == Phase::Decode)?;
    if !load.is_sustained() {
        return Some(format!("{} requests decoded at once on average.", format::decimal1(Some(decoding))));
    }
    let asked = f64::from(cell.concurrency.get());
    let share = format::percent(Some((decoding / asked * 100.0).round() / 100.0));
    Some(format!("{} of {} requests decoded on average ({share}).", format::decimal1(Some(decoding)), cell.concurrency))
}

fn waiting(stats: &CellStats) -> Option<String> {
    let waiting = stats.engine_waiting?;
    let (mean, max) = (format::decimal1(Some(waiting.mean)), format::whole(Some(waiting.max)));
    Some(format!("The engine counted {mean} waiting requests on average, {max} at most, in {} looks.", waiting.n))
}

fn cache(stats: &CellStats) -> Option<String> {
    let share = stats.cached_share?;
    let share = format::percent(Some((share * 1_000.0).round() / 1_000.0));
    Some(format!("{share} of the prompt tokens came from the server's prefix cache."))
}

fn counting(stats: &CellStats) -> Option<String> {
    Some(format!("Tokens: {}.", stats.token_source?.label()))
}

/// `Times: stamped by kernel, each first token at most 0.31 ms off.`
fn stamps(stats: &CellStats) -> Option<String> {
    let source = stats.stamps?.label();
    let bound =
        stats.ttft_error_bound_s.map(|bound| format!(", each first token at most {} off", format::lag(Some(bound))));
    Some(format!("Times: {source}{}.", bound.unwrap_or_default()))
}

/// `0.42 J for each output token: 2 GPUs drew 512 W, of 1,400 W allowed.`
fn energy(phase: Phase, stats: &CellStats) -> Option<String> {
    let gpu = stats.gpu.as_ref()?;
    let power = gpu.power_w?;
    let gpus =
        if gpu.gpus == 1 { "1 GPU".to_owned() } else { format!("{} GPUs", format::count(Some(gpu.gpus.into()))) };
    let limit = gpu.power_limit_w.map(|limit| format!(", of {} allowed", format::watts(Some(limit))));
    let drew = format!("{gpus} drew {}{}.", format::watts(Some(power)), limit.unwrap_or_default());
    let token = if phase == Phase::Prefill { "prompt" } else { "output" };
    Some(match gpu.energy_per_token_j {
        Some(joules) => format!("{} for each {token} token: {drew}", format::joules(Some(joules))),
        None => drew,
    })
}

/// That nothing held the GPUs back. What did is a finding.
fn held_back(stats: &CellStats) -> Option<String> {
    let gpu = stats.gpu.as_ref()?;
    gpu.cause_sentence().filter(|_| gpu.cause() == Some(Cause::Free))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::gpu::GpuStats;

    #[test]
    fn gpus_are_told_with_their_energy() {
        let gpu = GpuStats {
            gpus: 2,
            power_w: Some(512.0),
            power_limit_w: Some(1_400.0),
            energy_per_token_j: Some(0.42),
            power_capped: Some(0.0),
            ..GpuStats::default()
        };
        let check = |gpu: GpuStats, wanted: [Option<&str>; 2]| {
            let stats = CellStats { gpu: Some(gpu), ..CellStats::default() };
            assert_eq!([energy(Phase::Decode, &stats), held_back(&stats)].each_ref().map(Option::as_deref), wanted);
        };
        let drew = "0.420 J for each output token: 2 GPUs drew 512 W, of 1,400 W allowed.";
        check(gpu.clone(), [Some(drew), Some("Neither power limit nor heat held the GPUs back.")]);
        check(GpuStats { power_capped: Some(0.5), ..gpu.clone() }, [Some(drew), None]);
        let unknown = GpuStats { power_w: None, power_capped: None, ..gpu };
        check(unknown, [None, None]);
    }
}
