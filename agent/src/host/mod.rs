//! What this machine tells about a target that runs on it: the process behind its port, the GPUs that it uses, the
//! machine itself. Everything is optional, everything read is bounded, and what is not known has its reason.

mod address;
mod bounded;
pub mod gpu;
pub mod listening;
pub mod machine;
mod process;

use std::{collections::BTreeSet, path::Path};

use speedmatrix_shared::{
    gpu::{GpuMemory, GpuReading},
    plan::TargetUrl,
    target::{HardwareFacts, TargetFacts},
};

pub use self::process::Unknown;
use self::{
    gpu::{
        Source, Watched,
        used::{Server, choose},
    },
    machine::Machine,
    process::Found,
};

/// Where a machine shows that it has something that computes, besides what is asked here.
const OTHER_DEVICES: &[&str] = &["/dev/dri/renderD128", "/dev/kfd", "/dev/nvidiactl", "/dev/accel", "/dev/hl0"];
/// Bytes in what vendors call a GB of a card's memory: 81,559 MiB are sold as 80 GB, 143,771 MiB as 141 GB.
const VENDOR_GB: u64 = 1 << 30;

const APPLE: &str = "Apple silicon";
const CPU_ONLY: &str = "CPU only";

/// A target with what its machine tells.
#[derive(Debug)]
pub struct Described {
    /// All that is known of it.
    pub facts: TargetFacts,
    /// Its GPUs, to be watched while it is measured.
    pub gpus: Option<Watched>,
}

/// Adds what this machine tells about a target to what the target itself told.
pub async fn describe(facts: TargetFacts, target: &TargetUrl) -> Described {
    let url = target.clone();
    let kept = facts.clone();
    let looked = tokio::task::spawn_blocking(move || look(facts, &url));
    // A fault in here must not stop a run: then the machine has told nothing.
    looked.await.unwrap_or_else(|fault| {
        tracing::error!("this machine could not be looked at: {fault}");
        Described { facts: kept, gpus: None }
    })
}

fn look(mut facts: TargetFacts, target: &TargetUrl) -> Described {
    // A simulator's machine is made up: this one has no part in its numbers.
    if facts.simulated.is_some() {
        return Described { facts, gpus: None };
    }
    let found = address::here(target).and_then(|here| process::find(&here.addresses, here.port));
    let (is_here, why) = match &found {
        Ok(found) => (true, found.command.as_ref().err().cloned()),
        // Somebody here serves it; whatever else may be behind the port, this machine's GPUs are not.
        Err(why @ (Unknown::NoPermission { .. } | Unknown::Ambiguous { .. } | Unknown::Gone)) => {
            (true, Some(why.clone()))
        }
        Err(why) => (false, Some(why.clone())),
    };
    if facts.launch_command.is_none() {
        facts.launch_command = found.as_ref().ok().and_then(|found| found.command.clone().ok());
        // A server within this program was not started at all.
        let told = why.filter(|why| *why != Unknown::Own).map(|why| ("launch_command".to_owned(), why.to_string()));
        facts.unknown.extend(told);
    }
    let found = found.ok();
    let gpus = if is_here { look_at_machine(&mut facts, found.as_ref()) } else { None };
    facts.process = found.map(|found| found.facts);
    Described { facts, gpus }
}

fn look_at_machine(facts: &mut TargetFacts, found: Option<&Found>) -> Option<Watched> {
    let Machine { os, kernel, cpu, cores, ram_bytes } = Machine::this();
    let hardware = &mut facts.hardware;
    hardware.os = hardware.os.take().or(os);
    (hardware.kernel, hardware.cpu, hardware.cpu_cores, hardware.ram_bytes) = (kernel, cpu, cores, ram_bytes);
    let Some((source, all)) = Source::find() else {
        match without_gpus() {
            Ok(kind) => hardware.kind = Some(kind.to_owned()),
            Err(why) => drop(facts.unknown.insert("gpus".into(), why.into())),
        }
        if hardware.kind.as_deref() == Some(APPLE) {
            hardware.gpu.clone_from(&hardware.cpu);
        }
        return None;
    };
    let versions = source.versions();
    (hardware.driver, hardware.cuda) = (versions.driver, versions.cuda);
    hardware.gpus_on_host = u32::try_from(all.len()).ok();
    let environment = found.map(|found| found.facts.environment.clone()).unwrap_or_default();
    let pids = found.map(|found| found.pids.as_slice()).unwrap_or_default();
    let choice = choose(&all, &source.computing(&all), Server { pids, environment: &environment });
    let used: Vec<GpuReading> = all.into_iter().filter(|gpu| choice.indexes.contains(&gpu.index)).collect();
    hardware.gpus_known_by = Some(choice.known_by);
    name_gpus(hardware, &used);
    Watched::new(source, used)
}

/// What a machine is whose GPUs nobody tells of.
fn without_gpus() -> Result<&'static str, &'static str> {
    if machine::is_apple_silicon() {
        return Ok(APPLE);
    }
    if OTHER_DEVICES.iter().any(|path| Path::new(path).exists()) {
        return Err(
            "there is a device that computes, and neither NVML, nvidia-smi, AMD's driver nor amd-smi tells of it",
        );
    }
    Ok(CPU_ONLY)
}

/// The words of the hardware card for the GPUs that a server uses.
fn name_gpus(hardware: &mut HardwareFacts, used: &[GpuReading]) {
    let unified = !used.is_empty() && used.iter().all(|gpu| gpu.memory == GpuMemory::Unified);
    let kind = match (used, unified) {
        ([], _) => CPU_ONLY,
        (_, true) => "Unified memory",
        (_, false) => "Discrete GPU",
    };
    hardware.kind = Some(kind.to_owned());
    if used.is_empty() {
        return;
    }
    let names: BTreeSet<&str> = used.iter().filter_map(|gpu| gpu.name.as_deref()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    hardware.gpu = Some(names.join(" and ")).filter(|names| !names.is_empty());
    hardware.gpu_count = u32::try_from(used.len()).ok();
    hardware.gpus = used.to_vec();
    let sizes: Option<Vec<u64>> = used.iter().map(|gpu| gpu.vram_total_bytes.map(vendor_gb)).collect();
    let Some(sizes) = sizes else { return };
    hardware.vram_total_gb = Some(sizes.iter().sum::<u64>() as f64);
    let alike = sizes.first().filter(|first| sizes.iter().all(|size| size == *first));
    hardware.vram_each_gb = alike.map(|each| *each as f64);
}

fn vendor_gb(bytes: u64) -> u64 {
    bytes.div_ceil(VENDOR_GB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_named_as_it_is_sold() {
        let check = |mib: u64, gb: u64| assert_eq!(vendor_gb(mib << 20), gb);
        check(81_559, 80); // H100
        check(143_771, 141); // H200
        check(97_887, 96); // RTX PRO 6000
        check(40_960, 40); // A100
        check(196_592, 192); // MI300X
    }

    #[test]
    fn the_card_names_what_is_used() {
        let gpu = |name: &str, memory, gib: Option<u64>| GpuReading {
            name: Some(name.into()),
            memory,
            vram_total_bytes: gib.map(|gib| gib << 30),
            ..GpuReading::default()
        };
        let check = |used: &[GpuReading], wanted: &str| {
            let mut hardware = HardwareFacts::default();
            name_gpus(&mut hardware, used);
            let HardwareFacts { kind, gpu, gpu_count, vram_total_gb, vram_each_gb, .. } = hardware;
            assert_eq!(format!("{kind:?} {gpu:?} {gpu_count:?} {vram_total_gb:?} {vram_each_gb:?}"), wanted);
        };
        let (own, unified) = (GpuMemory::Own, GpuMemory::Unified);
        check(&[], "Some(\"CPU only\") None None None None");
        let two = [gpu("H200", own, Some(141)), gpu("H200", own, Some(141))];
        check(&two, "Some(\"Discrete GPU\") Some(\"H200\") Some(2) Some(282.0) Some(141.0)");
        let mixed = [gpu("B", own, Some(24)), gpu("A", own, Some(48))];
        check(&mixed, "Some(\"Discrete GPU\") Some(\"A and B\") Some(2) Some(72.0) None");
        check(&[gpu("GB10", unified, None)], "Some(\"Unified memory\") Some(\"GB10\") Some(1) None None");
    }

    #[test]
    fn another_machine_tells_nothing_here() {
        let target = speedmatrix_shared::plan::draft::parse_target("http://192.0.2.7:8000").unwrap();
        let Described { facts, gpus } = look(TargetFacts::default(), &target);
        assert_eq!(facts.unknown["launch_command"], "not on this host");
        assert_eq!((facts.process, facts.hardware), (None, HardwareFacts::default()));
        assert!(gpus.is_none());
    }
}
