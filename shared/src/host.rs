//! What a machine tells about the process that serves the model, and the lines in which a report tells it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    facts::Fact,
    format,
    gpu::{GpuReading, GpuState},
    target::{HardwareFacts, TargetFacts},
};

/// The server's main process, seen from its own machine. Secrets are removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessFacts {
    /// Its number on the host.
    pub pid: Option<u32>,
    /// When it started, milliseconds since 1970 UTC.
    pub started_unix_ms: Option<u64>,
    /// Its program file.
    pub executable: Option<String>,
    /// Variables that change how engines work.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Versions of the engine's Python packages.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub packages: BTreeMap<String, String>,
    /// Number of the container that it runs in.
    pub container: Option<String>,
    /// Processes that belong to it, itself included.
    pub processes: Option<u32>,
}

/// What is known of a machine only from within, as far as it is.
pub fn machine_facts(hardware: &HardwareFacts) -> impl Iterator<Item = Fact> {
    let whole = |number: u32| format::count(Some(u64::from(number)));
    let of_host = hardware.gpus_on_host.zip(hardware.gpu_count).filter(|(all, used)| all != used);
    let chosen = of_host.map(|(all, used)| {
        let by = hardware.gpus_known_by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
        format!("{} of {}{by}", whole(used), whole(all))
    });
    let numbers = Some(list(hardware.gpus.iter().map(|gpu| gpu.index.to_string()))).filter(|_| of_host.is_some());
    let limits: Option<Vec<f64>> = hardware.gpus.iter().map(|gpu| gpu.power_limit_w).collect();
    let limit = limits.filter(|limits| !limits.is_empty()).map(|limits| format::watts(Some(limits.iter().sum())));
    let links: BTreeSet<String> = hardware.gpus.iter().filter_map(link).collect();
    let lost: Vec<String> =
        hardware.gpus.iter().filter(|gpu| gpu.state == GpuState::Lost).map(|gpu| gpu.index.to_string()).collect();
    let cpu = hardware.cpu.as_ref().map(|cpu| match hardware.cpu_cores {
        Some(cores) => format!("{cpu}, {} cores", whole(cores)),
        None => cpu.clone(),
    });
    let known = [
        ("GPUs used", chosen),
        ("GPU numbers", numbers),
        ("GPUs lost", Some(list(lost.into_iter()))),
        ("GPU parts", Some(list(parts(&hardware.gpus)))),
        ("Power limit", limit),
        ("PCIe", Some(list(links.into_iter()))),
        ("Driver", hardware.driver.clone()),
        ("CUDA", hardware.cuda.clone()),
        ("CPU", cpu),
        ("Memory", hardware.ram_bytes.map(|bytes| format::memory(Some(bytes as f64)))),
        ("Kernel", hardware.kernel.clone()),
    ];
    known.into_iter().filter_map(|(label, value)| Some((label, value.filter(|value| !value.is_empty())?)))
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// `Gen 5 × 16`: what card and slot can do, as the link sleeps while the GPU does.
fn link(gpu: &GpuReading) -> Option<String> {
    let generation = gpu.pcie_max_gen.or(gpu.pcie_gen)?;
    let width = gpu.pcie_max_width.or(gpu.pcie_width)?;
    let now = gpu.pcie_width.filter(|now| *now < width).map(|now| format!(" (runs × {now})")).unwrap_or_default();
    Some(format!("Gen {generation} × {width}{now}"))
}

/// The profiles of GPUs that are split up.
fn parts(gpus: &[GpuReading]) -> impl Iterator<Item = String> {
    let split = gpus.iter().filter(|gpu| gpu.is_split == Some(true));
    split.map(|gpu| {
        let profiles = list(gpu.slices.iter().filter_map(|slice| slice.profile.clone()));
        let profiles = if profiles.is_empty() { "not readable".to_owned() } else { profiles };
        format!("GPU {}: MIG {profiles}", gpu.index)
    })
}

/// What is known of the server's process, or why nothing is.
pub fn process_facts(facts: &TargetFacts) -> impl Iterator<Item = Fact> {
    let process = facts.process.clone().unwrap_or_default();
    let pairs = |pairs: &BTreeMap<String, String>, sign: &str| {
        Some(list(pairs.iter().map(|(name, value)| format!("{name}{sign}{value}")))).filter(|text| !text.is_empty())
    };
    let known = [
        ("Packages", pairs(&process.packages, " ")),
        ("Environment", pairs(&process.environment, "=")),
        ("Container", process.container),
        ("Server started", process.started_unix_ms.map(format::wall_time)),
        ("Executable", process.executable),
        ("Launch command", facts.unknown.get("launch_command").map(|why| format!("Unknown: {why}"))),
    ];
    known.into_iter().filter_map(|(label, value)| Some((label, value?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        facts::{engine_facts, hardware_facts},
        gpu::GpuMemory,
        sample,
    };

    #[test]
    fn a_machine_seen_from_within_tells_more() {
        let mut state = sample::reference();
        let facts = state.facts.as_mut().unwrap();
        let gpu = |index| GpuReading {
            index,
            power_limit_w: Some(600.0),
            pcie_gen: Some(1),
            pcie_width: Some(8),
            pcie_max_gen: Some(5),
            pcie_max_width: Some(16),
            ..GpuReading::default()
        };
        facts.hardware = HardwareFacts {
            cpu: Some("EPYC 9575F".into()),
            cpu_cores: Some(128),
            ram_bytes: Some(1 << 40),
            driver: Some("580.95".into()),
            gpu_count: Some(2),
            gpus_on_host: Some(16),
            gpus_known_by: Some("its processes".into()),
            gpus: vec![gpu(4), gpu(5)],
            ..HardwareFacts::default()
        };
        facts.process = Some(ProcessFacts {
            packages: BTreeMap::from([("torch".into(), "2.9".into()), ("vllm".into(), "0.25".into())]),
            started_unix_ms: Some(1_796_160_600_000),
            ..ProcessFacts::default()
        });
        facts.unknown = BTreeMap::from([("launch_command".into(), "not on this host".into())]);
        let more = hardware_facts(&state).into_iter().skip(5).chain(engine_facts(&state).into_iter().skip(6));
        let lines: Vec<String> = more.map(|(label, text)| format!("{label}: {text}")).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        GPUs used: 2 of 16, by its processes
        GPU numbers: 4, 5
        Power limit: 1,200 W
        PCIe: Gen 5 × 16 (runs × 8)
        Driver: 580.95
        CPU: EPYC 9575F, 128 cores
        Memory: 1,024 GB
        Packages: torch 2.9, vllm 0.25
        Server started: 2026-12-01 21:30 UTC
        Launch command: Unknown: not on this host
        ");
    }

    #[test]
    fn shared_memory_is_named_as_such() {
        let mut state = sample::reference();
        let facts = state.facts.as_mut().unwrap();
        let gpu = GpuReading { memory: GpuMemory::Unified, ..GpuReading::default() };
        facts.hardware =
            HardwareFacts { ram_bytes: Some(127_600_748 << 10), gpus: vec![gpu], ..HardwareFacts::default() };
        let vram = hardware_facts(&state).into_iter().find(|(label, _)| *label == "VRAM");
        assert_eq!(vram.unwrap().1, "121.7 GB, shared with the CPU");
    }
}
