//! AMD's GPUs, as the kernel's driver shows them in `/sys` (docs.kernel.org, "GPU Power/Thermal Controls and
//! Monitoring"), or else as `amd-smi` prints them.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;
use speedmatrix_shared::gpu::GpuReading;

use super::amd_metrics;
use crate::host::bounded::{bytes, printed, text};

/// PCI's number of the vendor.
const VENDOR: &str = "0x1002";
/// Where Linux lists graphics cards.
pub(super) const CARDS: &str = "/sys/class/drm";
const PROGRAM: &str = "amd-smi";
const LIMIT: Duration = Duration::from_secs(10);
/// Cards that are looked at, at most.
const MOST_CARDS: usize = 64;
const MIB: f64 = 1_048_576.0;

/// Folders of the AMD cards below `cards`, in the order of their numbers.
pub(super) fn devices(cards: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cards).into_iter().flatten().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.strip_prefix("card")?.parse::<u32>().ok();
    let mut found: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some((number(&entry.path())?, entry.path().join("device")))).collect();
    found.sort();
    let amd = |device: &PathBuf| text(&device.join("vendor")).as_deref() == Some(VENDOR);
    found.into_iter().map(|(_, device)| device).filter(amd).take(MOST_CARDS).collect()
}

/// What the driver tells of the card in `device`.
pub(super) fn reading(device: &Path, index: u32) -> GpuReading {
    let whole = |name: &str| text(&device.join(name))?.parse::<u64>().ok();
    let sensors = sensors(device);
    let sensor = |names: &[&str], unit: f64| {
        let read = |name: &&str| text(&sensors.as_ref()?.join(name))?.parse::<f64>().ok();
        names.iter().find_map(read).filter(|value| value.is_finite()).map(|value| value / unit)
    };
    let counters = bytes(&device.join("gpu_metrics")).map(|table| amd_metrics::parse(&table)).unwrap_or_default();
    let id = || text(&device.join("device")).map(|id| format!("AMD GPU {id}"));
    GpuReading {
        index,
        name: text(&device.join("product_name")).or_else(id),
        uuid: text(&device.join("unique_id")),
        // Microwatts; older cards average, newer ones tell the moment.
        power_w: sensor(&["power1_average", "power1_input"], 1e6),
        power_limit_w: sensor(&["power1_cap"], 1e6),
        energy_j: counters.energy_j,
        fabric: counters.fabric,
        clock_mhz: sensor(&["freq1_input"], 1e6),
        memory_clock_mhz: sensor(&["freq2_input"], 1e6),
        utilisation: whole("gpu_busy_percent").map(|percent| percent as f64 / 100.0),
        // Thousandths of a degree; the second sensor is the hottest place, the first one the edge.
        temperature_c: sensor(&["temp2_input", "temp1_input"], 1e3),
        vram_used_bytes: whole("mem_info_vram_used"),
        vram_total_bytes: whole("mem_info_vram_total"),
        pcie_gen: link(device, "current_link_speed").and_then(generation),
        pcie_width: link(device, "current_link_width").map(|lanes| lanes as u32),
        pcie_max_gen: link(device, "max_link_speed").and_then(generation),
        pcie_max_width: link(device, "max_link_width").map(|lanes| lanes as u32),
        ..GpuReading::default()
    }
}

/// The folder of the card's sensors.
fn sensors(device: &Path) -> Option<PathBuf> {
    fs::read_dir(device.join("hwmon")).ok()?.flatten().map(|entry| entry.path()).min()
}

/// The number at the start of `16.0 GT/s PCIe` or `16`.
fn link(device: &Path, name: &str) -> Option<f64> {
    text(&device.join(name))?.split_whitespace().next()?.parse().ok()
}

/// The PCIe generation of a lane's speed in GT/s (PCI-SIG).
fn generation(speed: f64) -> Option<u32> {
    const SPEEDS: [f64; 6] = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
    SPEEDS.iter().position(|known| (known - speed).abs() < 0.1).map(|place| place as u32 + 1)
}

/// What the program tells now; nothing without it, which is no error.
pub(super) fn ask() -> Vec<GpuReading> {
    printed(PROGRAM, &["metric", "--json"], LIMIT).map(|text| parse(&text)).unwrap_or_default()
}

/// The first JSON document in a text: there are lines of words before it, and sometimes a second one after it.
pub fn parse(text: &str) -> Vec<GpuReading> {
    let starts = text.match_indices(['[', '{']).filter(|(at, _)| *at == 0 || text[..*at].ends_with('\n'));
    let document = starts.take(MOST_CARDS).find_map(|(at, _)| {
        serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next().and_then(Result::ok)
    });
    let gpus = document.map(|document| match document {
        Value::Array(gpus) => gpus,
        Value::Object(mut fields) => match fields.remove("gpu_data") {
            Some(Value::Array(gpus)) => gpus,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    });
    gpus.into_iter().flatten().take(MOST_CARDS).filter_map(|gpu| printed_reading(&gpu)).collect()
}

fn printed_reading(gpu: &Value) -> Option<GpuReading> {
    let number = |pointers: &[&str]| pointers.iter().find_map(|pointer| number(gpu.pointer(pointer)?));
    // It says MB and counts 2^20 bytes.
    let bytes = |pointer: &str| number(&[pointer]).map(|mib| (mib * MIB) as u64);
    Some(GpuReading {
        index: u32::try_from(gpu.get("gpu")?.as_u64()?).ok()?,
        power_w: number(&["/power/socket_power", "/power/average_socket_power", "/power/current_socket_power"]),
        energy_j: number(&["/energy/total_energy_consumption"]),
        utilisation: number(&["/usage/gfx_activity"]).map(|percent| percent / 100.0),
        temperature_c: number(&["/temperature/hotspot", "/temperature/edge"]),
        clock_mhz: number(&["/clock/gfx_0/clk", "/clock/gfx/clk"]),
        vram_total_bytes: bytes("/mem_usage/total_vram"),
        vram_used_bytes: bytes("/mem_usage/used_vram"),
        ..GpuReading::default()
    })
}

/// `98`, `{"value": 98, "unit": "%"}` or `"98"`; `"N/A"` is none.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Object(fields) => return fields.get("value").filter(|inner| !inner.is_object()).and_then(number),
        Value::String(text) => text.parse().ok()?,
        other => other.as_f64()?,
    };
    number.is_finite().then_some(number)
}
