//! What a GPU tells about itself at one moment. Every field may be missing by itself: drivers refuse them one by one.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Why the clocks are not higher, as NVML's bits say (nvml.h, "Clocks Event Reasons").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Throttle(pub u64);

impl Throttle {
    /// The power limit set by software.
    pub const POWER_CAP: Self = Self(0x04);
    /// Slowed down by the hardware itself, for heat or power.
    pub const HARDWARE: Self = Self(0x08);
    /// Too hot, as the driver finds.
    pub const SOFTWARE_THERMAL: Self = Self(0x20);
    /// Too hot, as the hardware finds.
    pub const HARDWARE_THERMAL: Self = Self(0x40);
    /// The power supply pulled the brake.
    pub const POWER_BRAKE: Self = Self(0x80);

    /// Whether one of `reasons` holds.
    pub const fn has(self, reasons: Self) -> bool {
        self.0 & reasons.0 != 0
    }

    /// Held back by its power limit.
    pub const fn is_power_capped(self) -> bool {
        self.has(Self::POWER_CAP)
    }

    /// Held back by heat.
    pub const fn is_thermal(self) -> bool {
        self.has(Self(Self::SOFTWARE_THERMAL.0 | Self::HARDWARE_THERMAL.0))
    }

    /// Slowed down by the hardware for another reason than heat: a fast power peak or the supply's brake.
    pub const fn is_hardware(self) -> bool {
        self.has(Self::POWER_BRAKE) || self.has(Self::HARDWARE) && !self.has(Self::HARDWARE_THERMAL)
    }
}

/// What holds a clock back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    /// Heat.
    Heat,
    /// The hardware itself, for another reason than heat.
    Hardware,
    /// The power limit.
    PowerLimit,
}

impl HeldBy {
    /// Plain words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Heat => "heat",
            Self::Hardware => "the hardware",
            Self::PowerLimit => "the power limit",
        }
    }
}

impl Throttle {
    /// The gravest of its reasons that says anything of the server; `None` if there is none.
    pub const fn held_by(self) -> Option<HeldBy> {
        match self {
            _ if self.is_thermal() => Some(HeldBy::Heat),
            _ if self.is_hardware() => Some(HeldBy::Hardware),
            _ if self.is_power_capped() => Some(HeldBy::PowerLimit),
            _ => None,
        }
    }
}

/// Whether a GPU is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuState {
    /// It answers.
    #[default]
    Present,
    /// It was there and has fallen off the bus: what runs on it is lost too.
    Lost,
}

/// Bytes that went over a link, since its counters began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// Received by the GPU.
    pub received_bytes: u64,
    /// Sent by it.
    pub sent_bytes: u64,
}

/// Whose memory a GPU has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuMemory {
    /// Its own.
    #[default]
    Own,
    /// The machine's: CPU and GPU share it, and the GPU counts none of its own.
    Unified,
}

/// A part of a GPU that is split up (MIG).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuSlice {
    /// Its size in the vendor's words: `3g.40gb`.
    pub profile: Option<String>,
    /// Its memory, bytes.
    pub vram_total_bytes: Option<u64>,
    /// Its memory in use, bytes.
    pub vram_used_bytes: Option<u64>,
}

/// All that one GPU tells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuReading {
    /// Its number on this host, as the driver counts.
    pub index: u32,
    /// Whether it answers.
    pub state: GpuState,
    /// Its name.
    pub name: Option<String>,
    /// Its own number, the same on every host.
    pub uuid: Option<String>,
    /// Power drawn by the whole card, watts.
    pub power_w: Option<f64>,
    /// Power that it may draw, watts.
    pub power_limit_w: Option<f64>,
    /// Energy drawn since the driver was loaded, joules.
    pub energy_j: Option<f64>,
    /// Clock of the processors, MHz.
    pub clock_mhz: Option<f64>,
    /// Highest clock of the processors, MHz.
    pub max_clock_mhz: Option<f64>,
    /// Clock of the memory, MHz.
    pub memory_clock_mhz: Option<f64>,
    /// Share (0–1) of the last moments in which anything ran.
    pub utilisation: Option<f64>,
    /// Temperature, °C.
    pub temperature_c: Option<f64>,
    /// Speed of its fan, as a share (0–1) of the highest.
    pub fan: Option<f64>,
    /// Whose memory it has.
    pub memory: GpuMemory,
    /// Memory in use, bytes.
    pub vram_used_bytes: Option<u64>,
    /// Memory, bytes.
    pub vram_total_bytes: Option<u64>,
    /// Why its clocks are not higher.
    pub throttle: Option<Throttle>,
    /// PCIe generation of the link now; it is lower while idle.
    pub pcie_gen: Option<u32>,
    /// PCIe lanes of the link now.
    pub pcie_width: Option<u32>,
    /// Highest PCIe generation of card and slot.
    pub pcie_max_gen: Option<u32>,
    /// Most PCIe lanes of card and slot.
    pub pcie_max_width: Option<u32>,
    /// Bytes over PCIe.
    pub pcie: Option<Traffic>,
    /// Bytes over the links between GPUs (NVLink, XGMI), all of its links together.
    pub fabric: Option<Traffic>,
    /// Whether it is split up (MIG). Power and temperature are then the whole card's, and its use is not told.
    pub is_split: Option<bool>,
    /// Its parts, if it is split up.
    pub slices: Vec<GpuSlice>,
}

/// The power of several GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TotalPower {
    /// The sum, watts; `None` if none tells.
    pub watts: Option<f64>,
    /// GPUs that did not tell theirs, so that the sum is too small.
    pub missing: usize,
}

/// What several GPUs draw together.
pub fn total_power(gpus: &[GpuReading]) -> TotalPower {
    let told: Vec<f64> = gpus.iter().filter_map(|gpu| gpu.power_w).collect();
    TotalPower { watts: (!told.is_empty()).then(|| told.iter().sum()), missing: gpus.len() - told.len() }
}

/// What changes of a GPU, at a time of the run's clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuSample {
    /// When.
    pub at: Nanos,
    /// Watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// Joules since the driver was loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<f64>,
    /// 0–1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// °C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vram_used_bytes: Option<u64>,
    /// Why the clocks are not higher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle: Option<Throttle>,
    /// Bytes over PCIe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie: Option<Traffic>,
}

impl GpuReading {
    /// What changes of it.
    pub fn sample(&self, at: Nanos) -> GpuSample {
        GpuSample {
            at,
            power_w: self.power_w,
            energy_j: self.energy_j,
            clock_mhz: self.clock_mhz,
            utilisation: self.utilisation,
            temperature_c: self.temperature_c,
            vram_used_bytes: self.vram_used_bytes,
            throttle: self.throttle,
            pcie: self.pcie,
        }
    }
}

/// One GPU during a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuSeries {
    /// Its number on the host.
    pub index: u32,
    /// Power that it may draw, watts.
    pub power_limit_w: Option<f64>,
    /// Highest clock, MHz.
    pub max_clock_mhz: Option<f64>,
    /// What it told, in order of time.
    pub samples: Vec<GpuSample>,
    /// Bytes over the links between GPUs, in order of time. They may be told by another than the rest, at other times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fabric: Vec<(Nanos, Traffic)>,
    /// When it was first seen to be lost.
    pub lost_at: Option<Nanos>,
}

/// The GPUs that the server uses, during a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuRecord {
    /// Each of them.
    pub gpus: Vec<GpuSeries>,
    /// What they drew together before the run's first request, watts.
    pub idle_power_w: Option<f64>,
}

impl GpuRecord {
    /// Whether JSON has words for all its numbers.
    pub fn is_finite(&self) -> bool {
        let samples = self.gpus.iter().flat_map(|gpu| &gpu.samples);
        let numbers = samples.flat_map(|s| [s.power_w, s.energy_j, s.clock_mhz, s.utilisation, s.temperature_c]);
        let fixed = self.gpus.iter().flat_map(|gpu| [gpu.power_limit_w, gpu.max_clock_mhz]);
        numbers.chain(fixed).chain([self.idle_power_w]).flatten().all(f64::is_finite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_apart() {
        let check = |bits: u64, wanted: (bool, bool, bool)| {
            let throttle = Throttle(bits);
            assert_eq!(
                (throttle.is_power_capped(), throttle.is_thermal(), throttle.is_hardware()),
                wanted,
                "{bits:#x}"
            );
        };
        check(0x0, (false, false, false));
        check(0x1, (false, false, false));
        check(0x4, (true, false, false));
        check(0x20, (false, true, false));
        // Hardware slowdown is set with its cause: heat …
        check(0x48, (false, true, false));
        // … or the power brake, or neither, which is a peak of power.
        check(0x88, (false, false, true));
        check(0x8, (false, false, true));
        check(0x24, (true, true, false));
    }

    #[test]
    fn a_sum_says_what_is_missing() {
        let gpu = |power_w| GpuReading { power_w, ..GpuReading::default() };
        assert_eq!(total_power(&[gpu(Some(1.5)), gpu(None)]), TotalPower { watts: Some(1.5), missing: 1 });
        assert_eq!(total_power(&[]), TotalPower { watts: None, missing: 0 });
    }
}
