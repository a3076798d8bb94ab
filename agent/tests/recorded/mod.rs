//! NVIDIA's library as answers that were written down: one line for each question, `question = answer` or
//! `question -> ERROR`. What has no line is not supported.

use std::collections::BTreeMap;

use speedmatrix_agent::host::gpu::nvml::{Answer, Clock, Device, Link, Memory, Nvml, Refusal};
use speedmatrix_shared::gpu::Traffic;

/// Answers by device and question.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    answers: BTreeMap<(Option<Device>, String), Answer<String>>,
}

impl Recorded {
    /// Reads a recording: `device N` begins a GPU's lines, and `mig_device N` stands before those of a slice of it.
    pub(crate) fn read(text: &str) -> Self {
        let mut answers = BTreeMap::new();
        let mut gpu = None;
        for line in text.lines().map(str::trim) {
            if let Some(index) = line.strip_prefix("device ") {
                gpu = Some(index.parse().expect("a device has a number"));
                answers.insert((gpu.map(Device::Gpu), "here".to_owned()), Ok(String::new()));
                continue;
            }
            let (device, line) = match (gpu, line.strip_prefix("mig_device ")) {
                (Some(gpu), Some(rest)) => {
                    let (place, line) = rest.split_once(' ').expect("a slice has a place");
                    let place = place.parse().expect("a place is a number");
                    (Some(Device::Slice { gpu, place }), line)
                }
                (gpu, _) => (gpu.map(Device::Gpu), line),
            };
            if let Some((question, answer)) = line.split_once(" = ") {
                answers.insert((device, question.to_owned()), Ok(answer.to_owned()));
            } else if let Some((question, error)) = line.split_once(" -> ") {
                answers.insert((device, question.to_owned()), Err(refusal(error)));
            }
        }
        Self { answers }
    }

    fn text(&self, device: Option<Device>, question: &str) -> Answer<String> {
        self.answers.get(&(device, question.to_owned())).cloned().unwrap_or(Err(Refusal::NotSupported))
    }

    fn number(&self, device: Option<Device>, question: &str) -> Answer<u64> {
        let text = self.text(device, question)?;
        let word = text.split_whitespace().next().unwrap_or_default();
        let number = word.strip_prefix("0x").map_or_else(|| word.parse(), |hex| u64::from_str_radix(hex, 16));
        Ok(number.unwrap_or_else(|e| panic!("{question} = {text}: {e}")))
    }

    fn small(&self, device: Device, question: &str) -> Answer<u32> {
        self.number(Some(device), question).map(|number| u32::try_from(number).expect("a small number"))
    }
}

fn refusal(error: &str) -> Refusal {
    match error {
        "ERROR_NOT_SUPPORTED" => Refusal::NotSupported,
        "ERROR_NO_PERMISSION" => Refusal::NoPermission,
        "ERROR_GPU_IS_LOST" => Refusal::Lost,
        "ERROR_NOT_FOUND" => Refusal::NotFound,
        other => Refusal::Other(other.to_owned()),
    }
}

impl Nvml for Recorded {
    fn driver(&self) -> Answer<String> {
        self.text(None, "driver_version")
    }

    fn cuda(&self) -> Answer<u32> {
        self.number(None, "cuda_driver_version").map(|version| version as u32)
    }

    fn gpus(&self) -> Answer<u32> {
        Ok(self.answers.keys().filter(|(device, question)| device.is_some() && question == "here").count() as u32)
    }

    fn name(&self, device: Device) -> Answer<String> {
        self.text(Some(device), "name")
    }

    fn uuid(&self, device: Device) -> Answer<String> {
        self.text(Some(device), "uuid")
    }

    fn memory(&self, device: Device) -> Answer<Memory> {
        if let Err(refused) = self.text(Some(device), "memory_info")
            && refused != Refusal::NotSupported
        {
            return Err(refused);
        }
        let bytes = |question| self.number(Some(device), question).map(|mib| mib << 20);
        Ok(Memory { used: bytes("memory_used")?, total: bytes("memory_total")? })
    }

    fn utilisation_percent(&self, device: Device) -> Answer<u32> {
        self.small(device, "utilization_rates")
    }

    fn power_mw(&self, device: Device) -> Answer<u32> {
        self.small(device, "power_usage")
    }

    fn power_limit_mw(&self, device: Device) -> Answer<u32> {
        self.small(device, "enforced_power_limit")
    }

    fn energy_mj(&self, device: Device) -> Answer<u64> {
        self.number(Some(device), "total_energy_consumption")
    }

    fn clock_mhz(&self, device: Device, clock: Clock) -> Answer<u32> {
        self.small(
            device,
            match clock {
                Clock::Processors => "clock_sm",
                Clock::ProcessorsMax => "max_clock_sm",
                Clock::Memory => "clock_mem",
            },
        )
    }

    fn temperature_c(&self, device: Device) -> Answer<u32> {
        self.small(device, "temperature")
    }

    fn fan_percent(&self, device: Device) -> Answer<u32> {
        self.small(device, "fan_speed")
    }

    fn throttle_bits(&self, device: Device) -> Answer<u64> {
        self.number(Some(device), "throttle_reasons")
    }

    fn link(&self, device: Device, link: Link) -> Answer<u32> {
        self.small(
            device,
            match link {
                Link::Generation => "pcie_gen",
                Link::Width => "pcie_width",
                Link::MaxGeneration => "max_pcie_gen",
                Link::MaxWidth => "max_pcie_width",
            },
        )
    }

    fn pcie_traffic(&self, device: Device) -> Answer<Traffic> {
        let bytes = |question| self.number(Some(device), question);
        Ok(Traffic { received_bytes: bytes("pcie_rx_bytes")?, sent_bytes: bytes("pcie_tx_bytes")? })
    }

    fn has_links(&self, gpu: u32) -> bool {
        self.text(Some(Device::Gpu(gpu)), "nvlink").is_ok_and(|state| state == "active")
    }

    fn is_split(&self, device: Device) -> Answer<bool> {
        self.text(Some(device), "mig_mode").map(|mode| mode == "enabled")
    }

    fn places(&self, gpu: u32) -> Answer<u32> {
        self.is_split(Device::Gpu(gpu)).map(|_| 7)
    }

    fn processes(&self, device: Device) -> Answer<Vec<u32>> {
        let pids = self.text(Some(device), "compute_processes")?;
        Ok(pids.split(',').map(|pid| pid.trim().parse().expect("a process has a number")).collect())
    }
}
