//! What NVIDIA's library tells, question by question. [`Nvml`] is the library as it is asked here: the installed one
//! answers it ([`super::library`]), and so do answers that were written down. Each question may be refused by itself: on
//! shared memory, in containers, on slices, after a failure. What is refused is unknown and nothing more.

use std::fmt::Debug;

use speedmatrix_shared::gpu::{GpuMemory, GpuReading, GpuSlice, GpuState, Throttle, Traffic};

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// This device does not know.
    #[error("not supported")]
    NotSupported,
    /// Not for this user.
    #[error("no permission")]
    NoPermission,
    /// The device has fallen off the bus.
    #[error("the gpu is lost")]
    Lost,
    /// There is no such device.
    #[error("not found")]
    NotFound,
    /// Anything else, in the library's words.
    #[error("{0}")]
    Other(String),
}

/// An answer or none.
pub type Answer<T> = Result<T, Refusal>;

/// A device: a whole GPU, or a slice of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    /// A GPU by its index.
    Gpu(u32),
    /// A slice of a GPU by its place there.
    Slice {
        /// The GPU's index.
        gpu: u32,
        /// The slice's place: places may be empty.
        place: u32,
    },
}

/// A clock of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Of its processors, now.
    Processors,
    /// Of its processors, at most.
    ProcessorsMax,
    /// Of its memory, now.
    Memory,
}

/// A number of a device's PCIe link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Generation now.
    Generation,
    /// Lanes now.
    Width,
    /// Highest generation.
    MaxGeneration,
    /// Most lanes.
    MaxWidth,
}

/// Memory of a device, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// In use.
    pub used: u64,
    /// All of it.
    pub total: u64,
}

/// NVIDIA's management library, in its own units.
pub trait Nvml: Send + Sync + Debug {
    /// Version of the driver.
    fn driver(&self) -> Answer<String>;
    /// CUDA version as one number: 12040 is 12.4.
    fn cuda(&self) -> Answer<u32>;
    /// GPUs of the host, lost ones included.
    fn gpus(&self) -> Answer<u32>;
    /// Name of a device.
    fn name(&self, device: Device) -> Answer<String>;
    /// Its own number.
    fn uuid(&self, device: Device) -> Answer<String>;
    /// Its memory.
    fn memory(&self, device: Device) -> Answer<Memory>;
    /// Per cent of the last sample period in which a kernel ran.
    fn utilisation_percent(&self, device: Device) -> Answer<u32>;
    /// Power now, milliwatts.
    fn power_mw(&self, device: Device) -> Answer<u32>;
    /// Power limit in force, milliwatts.
    fn power_limit_mw(&self, device: Device) -> Answer<u32>;
    /// Energy since the driver was loaded, millijoules.
    fn energy_mj(&self, device: Device) -> Answer<u64>;
    /// A clock, MHz.
    fn clock_mhz(&self, device: Device, clock: Clock) -> Answer<u32>;
    /// Temperature of the die, °C.
    fn temperature_c(&self, device: Device) -> Answer<u32>;
    /// Speed of the first fan, per cent of the highest.
    fn fan_percent(&self, device: Device) -> Answer<u32>;
    /// Why the clocks are not higher, as bits.
    fn throttle_bits(&self, device: Device) -> Answer<u64>;
    /// A number of the PCIe link.
    fn link(&self, device: Device, link: Link) -> Answer<u32>;
    /// Bytes over PCIe since the driver was loaded.
    fn pcie_traffic(&self, device: Device) -> Answer<Traffic>;
    /// Whether a link of an NVLink generation is up.
    fn has_links(&self, gpu: u32) -> bool;
    /// Whether the GPU is split up.
    fn is_split(&self, device: Device) -> Answer<bool>;
    /// Places for slices on a GPU, filled or not.
    fn places(&self, gpu: u32) -> Answer<u32>;
    /// Processes that compute on a device, by their numbers on the host.
    fn processes(&self, device: Device) -> Answer<Vec<u32>>;
}

/// Most slices of a GPU; the hardware has seven.
const MOST_PLACES: u32 = 16;

/// GPUs that are asked at most, whatever the library says.
pub(super) const MOST_GPUS: u32 = 64;

/// All that a GPU tells.
pub fn reading(nvml: &dyn Nvml, index: u32) -> GpuReading {
    let gpu = Device::Gpu(index);
    let name = nvml.name(gpu);
    if name == Err(Refusal::Lost) {
        return GpuReading { index, state: GpuState::Lost, ..GpuReading::default() };
    }
    let name = name.ok();
    let memory = nvml.memory(gpu);
    let is_split = nvml.is_split(gpu).ok();
    let slices = if is_split == Some(true) { slices(nvml, index) } else { Vec::new() };
    let unified = memory == Err(Refusal::NotSupported) && name.as_deref().is_some_and(is_integrated);
    let memory = memory.ok();
    let integrated_link = |link| if unified { None } else { nvml.link(gpu, link).ok() };
    GpuReading {
        uuid: nvml.uuid(gpu).ok(),
        power_limit_w: nvml.power_limit_mw(gpu).ok().map(thousandth),
        max_clock_mhz: nvml.clock_mhz(gpu, Clock::ProcessorsMax).ok().map(f64::from),
        memory_clock_mhz: nvml.clock_mhz(gpu, Clock::Memory).ok().map(f64::from),
        fan: nvml.fan_percent(gpu).ok().map(share),
        memory: if unified { GpuMemory::Unified } else { GpuMemory::Own },
        vram_total_bytes: memory.map(|memory| memory.total),
        vram_used_bytes: memory.map(|memory| memory.used),
        pcie_gen: integrated_link(Link::Generation),
        pcie_width: integrated_link(Link::Width),
        pcie_max_gen: integrated_link(Link::MaxGeneration),
        pcie_max_width: integrated_link(Link::MaxWidth),
        is_split,
        slices,
        name,
        ..moment(nvml, index)
    }
}

/// What changes of a GPU: asked several times a second, so no more than is needed.
pub fn moment(nvml: &dyn Nvml, index: u32) -> GpuReading {
    let gpu = Device::Gpu(index);
    let power = nvml.power_mw(gpu);
    let clock = nvml.clock_mhz(gpu, Clock::Processors);
    let lost = power == Err(Refusal::Lost) || clock == Err(Refusal::Lost);
    if lost {
        return GpuReading { index, state: GpuState::Lost, ..GpuReading::default() };
    }
    GpuReading {
        index,
        power_w: power.ok().map(thousandth),
        energy_j: nvml.energy_mj(gpu).ok().map(|mj| mj as f64 / 1_000.0),
        clock_mhz: clock.ok().map(f64::from),
        utilisation: nvml.utilisation_percent(gpu).ok().map(share),
        temperature_c: nvml.temperature_c(gpu).ok().map(f64::from),
        vram_used_bytes: nvml.memory(gpu).ok().map(|memory| memory.used),
        throttle: nvml.throttle_bits(gpu).ok().map(Throttle),
        pcie: nvml.pcie_traffic(gpu).ok(),
        ..GpuReading::default()
    }
}

/// The processes that compute on a GPU or on a slice of it.
pub(super) fn processes(nvml: &dyn Nvml, index: u32) -> Vec<u32> {
    let mut pids = nvml.processes(Device::Gpu(index)).unwrap_or_default();
    if nvml.is_split(Device::Gpu(index)) == Ok(true) {
        pids.extend(filled(nvml, index).filter_map(|slice| nvml.processes(slice).ok()).flatten());
    }
    pids
}

fn slices(nvml: &dyn Nvml, gpu: u32) -> Vec<GpuSlice> {
    let slice = |device| {
        let memory = nvml.memory(device).ok();
        GpuSlice {
            profile: nvml.name(device).ok().as_deref().and_then(profile),
            vram_total_bytes: memory.map(|memory| memory.total),
            vram_used_bytes: memory.map(|memory| memory.used),
        }
    };
    filled(nvml, gpu).map(slice).collect()
}

fn filled(nvml: &dyn Nvml, gpu: u32) -> impl Iterator<Item = Device> {
    let places = nvml.places(gpu).unwrap_or(0).min(MOST_PLACES);
    let devices = (0..places).map(move |place| Device::Slice { gpu, place });
    devices.filter(|device| nvml.name(*device).is_ok())
}

/// `NVIDIA H100 80GB HBM3 MIG 3g.40gb` is of the profile `3g.40gb`.
fn profile(name: &str) -> Option<String> {
    name.rsplit_once("MIG ").map(|(_, profile)| profile.trim().to_owned()).filter(|profile| !profile.is_empty())
}

/// Chips whose GPU uses the machine's memory, by words of their names.
const INTEGRATED: &[&str] = &["GB10", "N1X", "Thor", "Orin", "Xavier", "Tegra", "Jetson"];

/// Whether a GPU of this name has no memory of its own.
pub(super) fn is_integrated(name: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| INTEGRATED.iter().any(|chip| word.eq_ignore_ascii_case(chip)))
}

fn thousandth(milli: u32) -> f64 {
    f64::from(milli) / 1_000.0
}

fn share(percent: u32) -> f64 {
    f64::from(percent) / 100.0
}
