//! What the series of all GPUs come to over times: energy and traffic.

use super::EnergySource;
use crate::{
    gpu::{GpuRecord, GpuSample, GpuSeries, Traffic},
    stats::{counter, window::Window},
    units::Nanos,
};

/// The sum of all; `None` if one is missing, as the sum of the others is not that of all.
pub(super) fn sum(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().sum()
}

/// A number of a sample.
type OfSample = fn(&GpuSample) -> Option<f64>;
/// What a series of numbers comes to over a window.
type OverWindow = fn(&[(Nanos, f64)], Window) -> Option<f64>;

/// Joules of all GPUs over some times: by their counters if all have one, else from their power.
pub(super) fn energy(record: &GpuRecord, spans: &[Window]) -> Option<(f64, EnergySource)> {
    let of_all = |of: OverWindow, value: OfSample| {
        let one = |gpu: &GpuSeries| {
            let points: Vec<(Nanos, f64)> = gpu.samples.iter().filter_map(|s| Some((s.at, value(s)?))).collect();
            sum(spans.iter().map(|span| of(&points, *span)))
        };
        sum(record.gpus.iter().map(one)).filter(|_| !spans.is_empty())
    };
    let counted = of_all(counter::increase, |sample| sample.energy_j).map(|energy| (energy, EnergySource::Counter));
    counted.or_else(|| Some((of_all(integral, |sample| sample.power_w)?, EnergySource::Power)))
}

/// Counts of bytes in order of time.
pub(super) type Looks = Vec<(Nanos, f64)>;

/// What comes in over PCIe and what goes out have each their own half of the link: together they are what it carried.
pub(super) fn pcie_looks(gpu: &GpuSeries) -> Looks {
    let bytes = |traffic: Traffic| traffic.received_bytes as f64 + traffic.sent_bytes as f64;
    gpu.samples.iter().filter_map(|sample| Some((sample.at, bytes(sample.pcie?)))).collect()
}

/// What one GPU sends another receives: only what is received is counted.
pub(super) fn fabric_looks(gpu: &GpuSeries) -> Looks {
    gpu.fabric.iter().map(|(at, traffic)| (*at, traffic.received_bytes as f64)).collect()
}

/// Bytes of all GPUs per second of the window; `None` if one does not tell.
pub(super) fn per_second(record: &GpuRecord, window: Window, looks: fn(&GpuSeries) -> Looks) -> Option<f64> {
    let bytes = sum(record.gpus.iter().map(|gpu| counter::increase(&looks(gpu), window)))?;
    let secs = window.secs();
    (secs > 0.0).then(|| bytes / secs)
}

/// The time integral of a gauge over a window, between its looks as straight lines; `None` unless they reach over all of
/// it.
pub(super) fn integral(looks: &[(Nanos, f64)], window: Window) -> Option<f64> {
    let (first, last) = (looks.first()?, looks.last()?);
    if first.0 > window.start || last.0 < window.end {
        return None;
    }
    let steps = looks.iter().zip(looks.iter().skip(1)).filter(|((from, _), (to, _))| to > from);
    let areas = steps.map(|(&(from, before), &(to, after))| {
        let (start, end) = (from.max(window.start), to.min(window.end));
        let length = end.since(start).as_secs_f64();
        let at =
            |time: Nanos| before + (after - before) * time.since(from).as_secs_f64() / to.since(from).as_secs_f64();
        if length > 0.0 { at(start).midpoint(at(end)) * length } else { 0.0 }
    });
    Some(areas.sum())
}
