//! What the GPUs did during a cell, from their series (method §5), and what held them back.

mod sums;

use serde::{Deserialize, Serialize};

use self::sums::{energy, fabric_looks, pcie_looks, per_second, sum};
use super::{cell::CellResult, window::Window};
use crate::{
    finding::Finding,
    format,
    gpu::{GpuRecord, GpuSample, GpuSeries, Throttle},
};

/// From this share of the window on, something that held the clocks back is told.
const HELD_FROM: f64 = 0.05;

/// Where an energy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnergySource {
    /// The cards' own counters.
    Counter,
    /// Power, summed up over time.
    Power,
}

/// The GPUs that the server uses, together, during a cell. Shares are 0–1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuStats {
    /// How many.
    pub gpus: u32,
    /// Looks at each of them in the window.
    pub samples: u32,
    /// GPUs that did not tell their power, so that power and energy of all of them are not known.
    pub silent: u32,
    /// Numbers of those that were lost meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<u32>,
    /// Power of all, mean over the window, watts.
    pub power_w: Option<f64>,
    /// Power that all may draw, watts.
    pub power_limit_w: Option<f64>,
    /// Power of all before the run's first request, watts.
    pub idle_power_w: Option<f64>,
    /// Energy of all: decode in the window, prefill while its requests ran; joules.
    pub energy_j: Option<f64>,
    /// Where it comes from.
    pub energy_source: Option<EnergySource>,
    /// Energy ÷ tokens: output tokens of decode, prompt tokens of prefill; joules.
    pub energy_per_token_j: Option<f64>,
    /// Share of time in which anything ran, mean over GPUs and window.
    pub utilisation: Option<f64>,
    /// Clock of the processors, mean over GPUs and window, MHz.
    pub clock_mhz: Option<f64>,
    /// Temperature of the hottest, at most, °C.
    pub temperature_max_c: Option<f64>,
    /// Temperature, mean over GPUs and window, °C.
    pub temperature_c: Option<f64>,
    /// Memory in use of all, at most, bytes.
    pub vram_used_bytes: Option<f64>,
    /// Bytes over PCIe, both ways, of all, per second of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_bytes_per_s: Option<f64>,
    /// Bytes over the links between GPUs (NVLink, XGMI), received by all, per second of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric_bytes_per_s: Option<f64>,
    /// Share of looks that found the power limit holding the clocks back.
    pub power_capped: Option<f64>,
    /// Share of looks that found heat holding them back.
    pub thermal: Option<f64>,
    /// Share of looks that found them slowed down by the hardware, but not for heat.
    pub hardware_slowdown: Option<f64>,
}

/// When and for what energy was used.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    /// What the gauges are averaged over.
    pub window: Window,
    /// Times whose energy counts.
    pub spans: &'a [Window],
    /// Tokens that came of it; `None` if that is not known.
    pub tokens: Option<u64>,
}

/// What held the GPUs back the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// One is lost.
    Lost,
    /// Heat.
    Thermal,
    /// The hardware itself, for another reason than heat.
    Hardware,
    /// The power limit.
    PowerCap,
    /// Nothing of these.
    Free,
}

impl GpuStats {
    /// The numbers of a cell; `None` if no GPU was watched.
    pub fn of(record: &GpuRecord, work: Work<'_>) -> Option<Self> {
        if record.gpus.is_empty() {
            return None;
        }
        let window = work.window;
        let lost: Vec<u32> = record
            .gpus
            .iter()
            .filter(|gpu| gpu.lost_at.is_some_and(|at| at < window.end))
            .map(|gpu| gpu.index)
            .collect();
        let looks = |gpu: &GpuSeries| gpu.samples.iter().filter(|sample| window.contains(sample.at)).count();
        let powers: Vec<Option<f64>> =
            record.gpus.iter().map(|gpu| mean(values(gpu, window, |sample| sample.power_w))).collect();
        let silent = powers.iter().filter(|power| power.is_none()).count() as u32;
        let (energy_j, energy_source) = energy(record, work.spans).unzip();
        let per_token = |energy: f64| work.tokens.filter(|tokens| *tokens > 0).map(|tokens| energy / tokens as f64);
        let all = |of: fn(&GpuSample) -> Option<f64>| mean(record.gpus.iter().flat_map(|gpu| values(gpu, window, of)));
        let max = |gpu: &GpuSeries, of: fn(&GpuSample) -> Option<f64>| values(gpu, window, of).reduce(f64::max);
        let held = |by: fn(Throttle) -> bool| {
            let reasons = record.gpus.iter().flat_map(|gpu| &gpu.samples).filter(|sample| window.contains(sample.at));
            mean(reasons.filter_map(|sample| Some(f64::from(u8::from(by(sample.throttle?))))))
        };
        Some(Self {
            gpus: record.gpus.len() as u32,
            samples: record.gpus.iter().map(looks).max().unwrap_or(0) as u32,
            silent,
            lost,
            power_w: sum(powers),
            power_limit_w: sum(record.gpus.iter().map(|gpu| gpu.power_limit_w)),
            idle_power_w: record.idle_power_w,
            energy_j,
            energy_source,
            energy_per_token_j: energy_j.and_then(per_token),
            utilisation: all(|sample| sample.utilisation),
            clock_mhz: all(|sample| sample.clock_mhz),
            temperature_max_c: record
                .gpus
                .iter()
                .filter_map(|gpu| max(gpu, |sample| sample.temperature_c))
                .reduce(f64::max),
            temperature_c: all(|sample| sample.temperature_c),
            vram_used_bytes: sum(record
                .gpus
                .iter()
                .map(|gpu| max(gpu, |sample| sample.vram_used_bytes.map(|bytes| bytes as f64)))),
            pcie_bytes_per_s: per_second(record, window, pcie_looks),
            fabric_bytes_per_s: per_second(record, window, fabric_looks),
            power_capped: held(Throttle::is_power_capped),
            thermal: held(Throttle::is_thermal),
            hardware_slowdown: held(Throttle::is_hardware),
        })
    }

    /// What held them back the most; `None` if they do not tell.
    pub fn cause(&self) -> Option<Cause> {
        if !self.lost.is_empty() {
            return Some(Cause::Lost);
        }
        let held = |share: Option<f64>| share.is_some_and(|share| share >= HELD_FROM);
        let known = self.power_capped.or(self.thermal).or(self.hardware_slowdown);
        known.map(|_| match self {
            _ if held(self.thermal) => Cause::Thermal,
            _ if held(self.hardware_slowdown) => Cause::Hardware,
            _ if held(self.power_capped) => Cause::PowerCap,
            _ => Cause::Free,
        })
    }

    /// That in a sentence.
    pub fn cause_sentence(&self) -> Option<String> {
        let percent = format::percent;
        Some(match self.cause()? {
            Cause::Lost => {
                let numbers: Vec<String> = self.lost.iter().map(ToString::to_string).collect();
                format!(
                    "GPU {} was lost: it does not answer any more, and these numbers are suspect.",
                    numbers.join(", ")
                )
            }
            Cause::Thermal => format!(
                "The GPUs were held back by heat for {} of the time (hottest {}): look at their cooling.",
                percent(self.thermal),
                format::celsius(self.temperature_max_c)
            ),
            Cause::Hardware => format!(
                "The GPUs were slowed down by their hardware for {} of the time: look at their power supply.",
                percent(self.hardware_slowdown)
            ),
            Cause::PowerCap => format!(
                "The GPUs were held back by their power limit for {} of the time ({} of {}).",
                percent(self.power_capped),
                format::watts(self.power_w),
                format::watts(self.power_limit_w)
            ),
            Cause::Free => "Neither power limit nor heat held the GPUs back.".to_owned(),
        })
    }

    /// The same as a finding, where something held them back.
    fn finding(&self) -> Option<Finding> {
        let text = self.cause_sentence()?;
        match self.cause()? {
            Cause::Lost => Some(Finding::warning("gpu_lost", text)),
            Cause::Thermal => Some(Finding::warning("gpu_thermal", text)),
            Cause::Hardware => Some(Finding::warning("gpu_hardware_slowdown", text)),
            Cause::PowerCap => Some(Finding::info("gpu_power_capped", text)),
            Cause::Free => None,
        }
    }
}

impl CellResult {
    /// The result with what the GPUs did meanwhile. Their findings come last: they explain a number and never doubt it,
    /// unless one is lost.
    #[must_use]
    pub fn on_gpus(mut self, gpus: Option<GpuStats>) -> Self {
        self.findings.extend(gpus.as_ref().and_then(GpuStats::finding));
        self.stats.gpu = gpus;
        self
    }
}

fn values(gpu: &GpuSeries, window: Window, of: fn(&GpuSample) -> Option<f64>) -> impl Iterator<Item = f64> {
    gpu.samples.iter().filter(move |sample| window.contains(sample.at)).filter_map(of)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{sums::integral, *};
    use crate::{gpu::Traffic, units::Nanos};

    const WINDOW: Window = Window { start: Nanos::from_secs(10), end: Nanos::from_secs(20) };
    const WORK: Work<'static> = Work { window: WINDOW, spans: &[WINDOW], tokens: Some(1_000) };

    /// A look each second from 9 s to 21 s.
    fn gpu(index: u32, change: impl Fn(u64, &mut GpuSample)) -> GpuSeries {
        let sample = |second: u64| {
            let mut sample = GpuSample { at: Nanos::from_secs(second), power_w: Some(500.0), ..GpuSample::default() };
            change(second, &mut sample);
            sample
        };
        GpuSeries { index, power_limit_w: Some(700.0), samples: (9..=21).map(sample).collect(), ..GpuSeries::default() }
    }

    fn of(gpus: Vec<GpuSeries>) -> GpuStats {
        GpuStats::of(&GpuRecord { gpus, idle_power_w: Some(150.0) }, WORK).unwrap()
    }

    #[test]
    fn gpus_are_summed_and_averaged() {
        let busy = |second: u64, sample: &mut GpuSample| {
            sample.energy_j = Some(1e6 + 510.0 * second as f64);
            (sample.utilisation, sample.clock_mhz) = (Some(0.9), Some(1_800.0));
            (sample.temperature_c, sample.vram_used_bytes) = (Some(60.0 + second as f64), Some(70 << 30));
            sample.throttle = Some(if second < 15 { Throttle::POWER_CAP } else { Throttle(0) });
        };
        let stats = of(vec![gpu(4, busy), gpu(5, busy)]);
        insta::assert_snapshot!(serde_json::to_string_pretty(&stats).unwrap(), @r#"
        {
          "gpus": 2,
          "samples": 10,
          "silent": 0,
          "power_w": 1000.0,
          "power_limit_w": 1400.0,
          "idle_power_w": 150.0,
          "energy_j": 10200.0,
          "energy_source": "counter",
          "energy_per_token_j": 10.2,
          "utilisation": 0.9,
          "clock_mhz": 1800.0,
          "temperature_max_c": 79.0,
          "temperature_c": 74.5,
          "vram_used_bytes": 150323855360.0,
          "power_capped": 0.5,
          "thermal": 0.0,
          "hardware_slowdown": 0.0
        }
        "#);
    }

    #[test]
    fn traffic_is_what_the_counters_rose_by() {
        let traffic = |received, sent| Traffic { received_bytes: received, sent_bytes: sent };
        let busy = |second: u64, sample: &mut GpuSample| sample.pcie = Some(traffic(3_000 * second, 1_000 * second));
        let mut linked = gpu(0, busy);
        linked.fabric = [5, 15, 25].map(|second| (Nanos::from_secs(second), traffic(200 * second, 900))).to_vec();
        let stats = of(vec![linked.clone(), linked.clone()]);
        assert_eq!((stats.pcie_bytes_per_s, stats.fabric_bytes_per_s), (Some(8_000.0), Some(400.0)));
        // One that does not tell leaves the sum unknown, and so do looks that end before the window.
        linked.fabric.pop();
        let stats = of(vec![linked, gpu(1, |_, _| {})]);
        assert_eq!((stats.pcie_bytes_per_s, stats.fabric_bytes_per_s), (None, None));
    }

    #[test]
    fn energy_without_counters_comes_from_power() {
        let stats = of(vec![gpu(0, |_, _| {}), gpu(1, |second, sample| sample.energy_j = Some(second as f64))]);
        assert_eq!((stats.energy_j, stats.energy_source), (Some(10_000.0), Some(EnergySource::Power)));
        // A driver that was loaded again counts from 0.
        let reset = |second: u64, sample: &mut GpuSample| {
            sample.energy_j =
                Some(if second < 15 { 1e6 + 100.0 * second as f64 } else { 100.0 * (second - 14) as f64 });
        };
        assert_eq!(of(vec![gpu(0, reset)]).energy_j, Some(1_000.0));
        // One that does not tell leaves the sum unknown.
        let stats = of(vec![gpu(0, |_, _| {}), gpu(1, |_, sample| sample.power_w = None)]);
        assert_eq!((stats.energy_j, stats.power_w, stats.silent, stats.gpus), (None, None, 1, 2));
        // Looks that end before the window does not.
        let mut short = gpu(0, |_, _| {});
        short.samples.truncate(5);
        assert_eq!(of(vec![short]).energy_j, None);
        assert_eq!(GpuStats::of(&GpuRecord::default(), WORK), None);
    }

    #[test]
    fn what_held_them_back_is_said() {
        let check = |bits: u64, wanted: &str| {
            let stats = of(vec![gpu(0, |second, sample| {
                sample.throttle = Some(Throttle(if second < 14 { bits } else { 0 }));
                sample.temperature_c = Some(91.0);
            })]);
            assert_eq!(stats.cause_sentence().as_deref(), Some(wanted));
        };
        check(0, "Neither power limit nor heat held the GPUs back.");
        check(0x04, "The GPUs were held back by their power limit for 40 % of the time (500 W of 700 W).");
        check(0x24, "The GPUs were held back by heat for 40 % of the time (hottest 91 °C): look at their cooling.");
        check(0x84, "The GPUs were slowed down by their hardware for 40 % of the time: look at their power supply.");
        assert_eq!(of(vec![gpu(0, |_, _| {})]).cause_sentence(), None);
        let mut lost = gpu(2, |_, _| {});
        lost.lost_at = Some(Nanos::from_secs(12));
        let finding = of(vec![lost]).finding().unwrap();
        assert_eq!(finding.code, "gpu_lost");
        assert_eq!(finding.text, "GPU 2 was lost: it does not answer any more, and these numbers are suspect.");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Parts of a time have the energy of the whole.
        #[test]
        fn energies_of_parts_add_up(powers in prop::collection::vec(0.0..1_000.0_f64, 2..20), cut in 0.0..1.0_f64) {
            let looks: Vec<(Nanos, f64)> = (0..).zip(&powers).map(|(second, power)| (Nanos::from_secs(second), *power)).collect();
            let (start, end) = (Nanos(0), Nanos::from_secs(powers.len() as u64 - 1));
            let middle = Nanos((end.0 as f64 * cut) as u64);
            let part = |start, end| integral(&looks, Window { start, end }).unwrap();
            prop_assert!((part(start, middle) + part(middle, end) - part(start, end)).abs() < 1e-6);
        }
    }
}
