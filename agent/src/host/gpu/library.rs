//! The installed NVIDIA library. `nvml-wrapper` loads it while the program runs, so that the program needs none to start.

use std::{ffi::OsStr, fmt};

use nvml_wrapper::{
    Device as Handle, Nvml as Library,
    enum_wrappers::device::{Clock as ClockKind, TemperatureSensor},
    enums::device::SampleValue,
    error::NvmlError,
    structs::device::FieldId,
    sys_exports::field_id::{NVML_FI_DEV_PCIE_COUNT_RX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES},
};
use speedmatrix_shared::gpu::Traffic;

use super::nvml::{Answer, Clock, Device, Link, Memory, Nvml, Refusal};

/// Names under which drivers install it; the first is what Linux distributions link at run time.
const NAMES: &[&str] = &["libnvidia-ml.so.1", "libnvidia-ml.so", "nvml.dll"];

/// Most NVLinks of a GPU (`NVML_NVLINK_MAX_LINKS`).
const MOST_LINKS: u32 = 18;

/// The library of this machine.
pub(super) struct Installed(Library);

impl Installed {
    /// Loads it; an error tells that there is none, or that it has no driver to talk to.
    pub(super) fn load() -> Answer<Self> {
        let mut last = Refusal::NotFound;
        for name in NAMES {
            match Library::builder().lib_path(OsStr::new(name)).init() {
                Ok(library) => return Ok(Self(library)),
                Err(NvmlError::LibloadingError(_)) => {}
                Err(error) => last = refusal(error),
            }
        }
        Err(last)
    }

    fn ask<T>(&self, device: Device, question: impl FnOnce(&Handle<'_>) -> Result<T, NvmlError>) -> Answer<T> {
        let answer = match device {
            Device::Gpu(index) => self.0.device_by_index(index).and_then(|gpu| question(&gpu)),
            Device::Slice { gpu, place } => self
                .0
                .device_by_index(gpu)
                .and_then(|gpu| gpu.mig_device_by_index(place).and_then(|slice| question(&slice))),
        };
        answer.map_err(refusal)
    }
}

impl fmt::Debug for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Installed")
    }
}

fn refusal(error: NvmlError) -> Refusal {
    match error {
        NvmlError::NotSupported | NvmlError::FunctionNotFound | NvmlError::FailedToLoadSymbol(_) => {
            Refusal::NotSupported
        }
        NvmlError::NoPermission => Refusal::NoPermission,
        NvmlError::GpuLost | NvmlError::ResetRequired => Refusal::Lost,
        NvmlError::NotFound | NvmlError::InvalidArg => Refusal::NotFound,
        other => Refusal::Other(other.to_string()),
    }
}

#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the methods belong to a type with a lifetime: named, they fit only one, and the closure fits all"
)]
impl Nvml for Installed {
    fn driver(&self) -> Answer<String> {
        self.0.sys_driver_version().map_err(refusal)
    }

    fn cuda(&self) -> Answer<u32> {
        let version = self.0.sys_cuda_driver_version().map_err(refusal)?;
        u32::try_from(version).map_err(|_negative| Refusal::NotFound)
    }

    fn gpus(&self) -> Answer<u32> {
        self.0.device_count().map_err(refusal)
    }

    fn name(&self, device: Device) -> Answer<String> {
        self.ask(device, |handle| handle.name())
    }

    fn uuid(&self, device: Device) -> Answer<String> {
        self.ask(device, |handle| handle.uuid())
    }

    fn memory(&self, device: Device) -> Answer<Memory> {
        let memory = self.ask(device, |handle| handle.memory_info())?;
        Ok(Memory { used: memory.used, total: memory.total })
    }

    fn utilisation_percent(&self, device: Device) -> Answer<u32> {
        Ok(self.ask(device, |handle| handle.utilization_rates())?.gpu)
    }

    fn power_mw(&self, device: Device) -> Answer<u32> {
        self.ask(device, |handle| handle.power_usage())
    }

    fn power_limit_mw(&self, device: Device) -> Answer<u32> {
        self.ask(device, |handle| handle.enforced_power_limit())
    }

    fn energy_mj(&self, device: Device) -> Answer<u64> {
        self.ask(device, |handle| handle.total_energy_consumption())
    }

    fn clock_mhz(&self, device: Device, clock: Clock) -> Answer<u32> {
        self.ask(device, |handle| match clock {
            Clock::Processors => handle.clock_info(ClockKind::SM),
            Clock::ProcessorsMax => handle.max_clock_info(ClockKind::SM),
            Clock::Memory => handle.clock_info(ClockKind::Memory),
        })
    }

    fn temperature_c(&self, device: Device) -> Answer<u32> {
        self.ask(device, |handle| handle.temperature(TemperatureSensor::Gpu))
    }

    fn fan_percent(&self, device: Device) -> Answer<u32> {
        self.ask(device, |handle| handle.fan_speed(0))
    }

    fn throttle_bits(&self, device: Device) -> Answer<u64> {
        Ok(self.ask(device, |handle| handle.current_throttle_reasons())?.bits())
    }

    fn link(&self, device: Device, link: Link) -> Answer<u32> {
        self.ask(device, |handle| match link {
            Link::Generation => handle.current_pcie_link_gen(),
            Link::Width => handle.current_pcie_link_width(),
            Link::MaxGeneration => handle.max_pcie_link_gen(),
            Link::MaxWidth => handle.max_pcie_link_width(),
        })
    }

    fn pcie_traffic(&self, device: Device) -> Answer<Traffic> {
        let ways = [FieldId(NVML_FI_DEV_PCIE_COUNT_RX_BYTES), FieldId(NVML_FI_DEV_PCIE_COUNT_TX_BYTES)];
        let told = self.ask(device, |handle| handle.field_values_for(&ways))?;
        let bytes = |way: usize| match told.get(way) {
            Some(Ok(sample)) => match &sample.value {
                Ok(SampleValue::U64(bytes)) => Ok(*bytes),
                // Counters of 32 bits turn over within a second.
                Ok(_) | Err(_) => Err(Refusal::NotSupported),
            },
            _ => Err(Refusal::NotSupported),
        };
        Ok(Traffic { received_bytes: bytes(0)?, sent_bytes: bytes(1)? })
    }

    fn has_links(&self, gpu: u32) -> bool {
        let is_up = |link| self.ask(Device::Gpu(gpu), |handle| handle.link_wrapper_for(link).is_active());
        (0..MOST_LINKS).any(|link| is_up(link) == Ok(true))
    }

    fn is_split(&self, device: Device) -> Answer<bool> {
        Ok(self.ask(device, |handle| handle.mig_mode())?.current == 1)
    }

    fn places(&self, gpu: u32) -> Answer<u32> {
        self.ask(Device::Gpu(gpu), |handle| handle.mig_device_count())
    }

    fn processes(&self, device: Device) -> Answer<Vec<u32>> {
        let running = self.ask(device, |handle| handle.running_compute_processes())?;
        Ok(running.into_iter().map(|process| process.pid).collect())
    }
}
