//! What the GPUs did over a whole run, in sentences: what held them back, and what a token cost.

use crate::{
    format,
    id::{CellId, Phase},
    state::RunState,
    stats::gpu::{Cause, GpuStats},
};

/// Causes that hold a clock back, with their words.
const CAUSES: [(Cause, &str); 4] = [
    (Cause::Lost, "one was lost"),
    (Cause::Thermal, "heat held them back"),
    (Cause::Hardware, "their hardware slowed them down"),
    (Cause::PowerCap, "their power limit held them back"),
];

/// A note on the GPUs of a run; `None` where nothing was seen of them.
pub fn gpu_note(run: &RunState) -> Option<String> {
    let seen: Vec<(CellId, &GpuStats)> =
        run.cells.iter().filter_map(|cell| Some((cell.id, cell.result()?.stats.gpu.as_ref()?))).collect();
    let sentences: Vec<String> = [causes(&seen), energy(&seen)].into_iter().flatten().collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// `In 12 of 64 cells their power limit held them back.`
fn causes(seen: &[(CellId, &GpuStats)]) -> Option<String> {
    let known: Vec<Cause> = seen.iter().filter_map(|(_, gpu)| gpu.cause()).collect();
    if known.is_empty() {
        return None;
    }
    let all = format::count(Some(known.len() as u64));
    let counted = CAUSES.iter().filter_map(|(cause, words)| {
        let n = known.iter().filter(|known| *known == cause).count() as u64;
        (n > 0).then(|| format!("in {} of {all} cells {words}", format::count(Some(n))))
    });
    let counted: Vec<String> = counted.collect();
    Some(if counted.is_empty() {
        "Neither power limit nor heat held them back in any cell.".to_owned()
    } else {
        format!("They were not free to run as they can: {}.", counted.join(", "))
    })
}

/// `An output token took 0.12 J (8K × 128) to 2.1 J (1019K × 1).`
fn energy(seen: &[(CellId, &GpuStats)]) -> Option<String> {
    let mut costs: Vec<(f64, CellId)> = seen
        .iter()
        .filter(|(id, _)| id.phase == Phase::Decode)
        .filter_map(|(id, gpu)| Some((gpu.energy_per_token_j?, *id)))
        .collect();
    costs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (costs.first()?, costs.last()?);
    let words = |(joules, id): &(f64, CellId)| {
        format!("{} ({} × {})", format::joules(Some(*joules)), id.context, id.concurrency)
    };
    let range = if costs.len() == 1 { words(least) } else { format!("{} to {}", words(least), words(most)) };
    Some(format!("An output token took {range} of all GPUs together."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{sample, state::CellState};

    fn put(run: &mut RunState, id: &str, stats: GpuStats) {
        let cell = run.cells.iter_mut().find(|cell| cell.id == id.parse().unwrap()).unwrap();
        let CellState::Finished { result } = &mut cell.state else { panic!("{id} is not finished") };
        result.stats.gpu = Some(stats);
    }

    #[test]
    fn a_run_tells_what_its_gpus_did() {
        let mut run = sample::reference();
        assert_eq!(gpu_note(&run), None);
        let gpu = |power_capped, energy| GpuStats {
            power_capped: Some(power_capped),
            energy_per_token_j: Some(energy),
            ..GpuStats::default()
        };
        put(&mut run, "decode-8K-1", gpu(0.0, 2.1));
        insta::assert_snapshot!(gpu_note(&run).unwrap(), @"Neither power limit nor heat held them back in any cell. An output token took 2.10 J (8K × 1) of all GPUs together.");
        put(&mut run, "decode-8K-16", gpu(0.4, 0.12));
        insta::assert_snapshot!(gpu_note(&run).unwrap(), @"They were not free to run as they can: in 1 of 2 cells their power limit held them back. An output token took 0.120 J (8K × 16) to 2.10 J (8K × 1) of all GPUs together.");
    }
}
