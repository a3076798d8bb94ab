//! What `nvidia-smi` prints, for machines where the library can't be loaded. Its words for "unknown" change with the
//! driver: whatever is no number is unknown, field by field.

use std::{collections::BTreeMap, time::Duration};

use speedmatrix_shared::gpu::{GpuMemory, GpuReading, GpuState, Throttle, Traffic};

use super::nvml::is_integrated;
use crate::host::bounded::printed;

const PROGRAM: &str = "nvidia-smi";
/// It takes a second or two where drivers are not kept loaded.
const LIMIT: Duration = Duration::from_secs(10);
/// What is asked …
const COLUMNS: &str = "index,name,uuid,memory.total,memory.used,utilization.gpu,power.draw,power.limit,\
                       enforced.power.limit,temperature.gpu,fan.speed,clocks.sm,clocks.max.sm,clocks.mem,\
                       pcie.link.gen.current,pcie.link.width.current,pcie.link.gen.max,pcie.link.width.max,\
                       mig.mode.current";
/// … with the reasons of the clocks, under today's name or the one before …
const REASONS: &[&str] = &[",clocks_event_reasons.active", ",clocks_throttle_reasons.active"];
/// … and what every version knows: one unknown column makes the program refuse them all.
const OLD_COLUMNS: &str = "index,name,uuid,memory.total,memory.used,utilization.gpu,power.draw,power.limit,\
                           temperature.gpu,fan.speed,clocks.sm,pcie.link.gen.current,pcie.link.width.current";
const MIB: f64 = 1_048_576.0;

/// What the program tells now; nothing without it.
pub(super) fn ask() -> Vec<GpuReading> {
    let table = |columns: &str| {
        let query = format!("--query-gpu={columns}");
        printed(PROGRAM, &[&query, "--format=csv"], LIMIT).map(|text| parse(&text)).unwrap_or_default()
    };
    let queries = REASONS.iter().map(|reasons| format!("{COLUMNS}{reasons}")).chain([OLD_COLUMNS.to_owned()]);
    queries.map(|columns| table(&columns)).find(|told| !told.is_empty()).unwrap_or_default()
}

/// The driver's version.
pub(super) fn driver() -> Option<String> {
    let text = printed(PROGRAM, &["--query-gpu=driver_version", "--format=csv,noheader"], LIMIT)?;
    let version = text.lines().next()?.trim();
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

/// Processes that compute, by the number of their GPU.
pub(super) fn processes() -> BTreeMap<String, Vec<u32>> {
    let arguments = ["--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader"];
    let text = printed(PROGRAM, &arguments, LIMIT).unwrap_or_default();
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (uuid, pid) in text.lines().filter_map(|line| line.split_once(',')) {
        if let Ok(pid) = pid.trim().parse() {
            found.entry(uuid.trim().to_owned()).or_default().push(pid);
        }
    }
    found
}

/// Bytes over the NVLinks of each GPU since the driver was loaded. The library tells them only for one link at a time and
/// by a question that its wrapper can't put; the program asks for all of them.
pub(super) fn links() -> BTreeMap<u32, Traffic> {
    printed(PROGRAM, &["nvlink", "-gt", "d"], LIMIT).map(|text| parse_links(&text)).unwrap_or_default()
}

/// Lines `Link 0: Data Tx: 123 KiB` below a line `GPU 0: …`, summed over the links of a GPU. A GPU without both ways of a
/// link that is up is left out.
pub fn parse_links(text: &str) -> BTreeMap<u32, Traffic> {
    let mut gpus: BTreeMap<u32, (Option<u64>, Option<u64>)> = BTreeMap::new();
    let mut current = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("GPU ") {
            current = rest.split(':').next().and_then(|digits| digits.parse::<u32>().ok());
        } else if let (Some(gpu), Some((_, data))) = (current, line.split_once(": Data ")) {
            let Some((way, amount)) = data.split_once(':') else { continue };
            let kib = amount.trim().strip_suffix("KiB").and_then(|digits| digits.trim().parse::<u64>().ok());
            let Some(bytes) = kib.and_then(|kib| kib.checked_mul(1 << 10)) else { continue };
            let sums = gpus.entry(gpu).or_default();
            let sum = if way == "Rx" { &mut sums.0 } else { &mut sums.1 };
            *sum = Some(sum.unwrap_or(0).saturating_add(bytes));
        }
    }
    let both = |(gpu, (received, sent)): (u32, (Option<u64>, Option<u64>))| {
        Some((gpu, Traffic { received_bytes: received?, sent_bytes: sent? }))
    };
    gpus.into_iter().filter_map(both).collect()
}

/// A table with a line of titles, whatever its columns, and the lines around it. A GPU that is lost has a line of words
/// instead of a row; the others keep their numbers.
pub fn parse(text: &str) -> Vec<GpuReading> {
    let mut titles: Option<Vec<&str>> = None;
    let mut gpus: BTreeMap<u32, GpuReading> = BTreeMap::new();
    let mut lost = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("index") {
            titles = Some(line.split(',').map(title).collect());
        } else if let Some(digits) = lost_gpu(line) {
            lost.push(digits.parse().ok());
        } else if let Some(titles) = &titles {
            let row: BTreeMap<&str, &str> = titles.iter().copied().zip(line.split(',').map(str::trim)).collect();
            gpus.extend(reading(&row).map(|gpu| (gpu.index, gpu)));
        }
    }
    for index in lost {
        // Not every driver names its number: then it is the first one that is missing.
        let missing = || (0..gpus.len() as u32).find(|index| !gpus.contains_key(index));
        let index = index.or_else(missing).unwrap_or(gpus.len() as u32);
        let gpu = GpuReading { index, state: GpuState::Lost, ..GpuReading::default() };
        gpus.entry(index).or_insert(gpu);
    }
    gpus.into_values().collect()
}

/// A column's title without its unit.
fn title(text: &str) -> &str {
    text.split(" [").next().unwrap_or_default().trim()
}

/// Whether a line tells of a lost GPU: the digits of its number, which may be missing: `Unable to determine the device handle for GPU2:
/// 0000:AE:00.0: GPU is lost.`
fn lost_gpu(line: &str) -> Option<&str> {
    let after = line.split_once("device handle for")?.1.trim_start();
    let digits = after.strip_prefix("GPU")?;
    Some(&digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())])
}

fn reading(row: &BTreeMap<&str, &str>) -> Option<GpuReading> {
    let text = |key: &str| row.get(key).copied().filter(|text| is_told(text));
    let number = |key: &str| number(row.get(key).copied()?);
    let whole = |key: &str| number(key).map(|number| number as u32);
    let index = row.get("index")?.parse().ok()?;
    let name = text("name").map(ToOwned::to_owned);
    let is_split = text("mig.mode.current").map(|mode| mode.eq_ignore_ascii_case("enabled"));
    let vram_total_bytes = number("memory.total").map(bytes);
    let unified = vram_total_bytes.is_none() && name.as_deref().is_some_and(is_integrated);
    let link = |key: &str| if unified { None } else { whole(key) };
    Some(GpuReading {
        index,
        uuid: text("uuid").map(ToOwned::to_owned),
        power_w: number("power.draw"),
        power_limit_w: number("enforced.power.limit").or_else(|| number("power.limit")),
        clock_mhz: number("clocks.sm"),
        max_clock_mhz: number("clocks.max.sm"),
        memory_clock_mhz: number("clocks.mem"),
        utilisation: number("utilization.gpu").map(|percent| percent / 100.0),
        temperature_c: number("temperature.gpu"),
        fan: number("fan.speed").map(|percent| percent / 100.0),
        memory: if unified { GpuMemory::Unified } else { GpuMemory::Own },
        vram_used_bytes: number("memory.used").map(bytes),
        vram_total_bytes,
        throttle: text("clocks_throttle_reasons.active").or_else(|| text("clocks_event_reasons.active")).and_then(bits),
        pcie_gen: link("pcie.link.gen.current"),
        pcie_width: link("pcie.link.width.current"),
        pcie_max_gen: link("pcie.link.gen.max"),
        pcie_max_width: link("pcie.link.width.max"),
        is_split,
        name,
        ..GpuReading::default()
    })
}

/// `[N/A]`, `[Not Supported]`, `[Unknown Error]`, `N/A`, `ERR!` and the like are no texts.
fn is_told(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('[') && text != "N/A" && !text.ends_with('!')
}

/// A number with or without its unit.
fn number(text: &str) -> Option<f64> {
    let number: f64 = text.split_whitespace().next()?.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

fn bits(text: &str) -> Option<Throttle> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Throttle)
}

fn bytes(mib: f64) -> u64 {
    (mib * MIB) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_summed_and_what_is_no_number_is_left_out() {
        let text = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\t Link 0: Data Tx: 2 KiB\n\t Link 0: Data Rx: 1 KiB\n\
                    \t Link 1: Data Tx: 3 KiB\n\t Link 1: Data Rx: N/A\nGPU 1: NVIDIA H100 (UUID: GPU-2)\n\
                    \t Link 0: Data Rx: 9 KiB\nGPU x: no number\n\t Link 0: Data Tx: 7 KiB\nnvlink is not supported\n";
        let wanted = Traffic { received_bytes: 1_024, sent_bytes: 5 * 1_024 };
        assert_eq!(parse_links(text), BTreeMap::from([(0, wanted)]));
    }

    #[test]
    fn each_field_may_be_unknown_by_itself() {
        let text = "index, name, power.draw [W], clocks_throttle_reasons.active, memory.total [MiB]\n\
                    0, A, 100.50 W, 0x0000000000000004, 81559 MiB\n\
                    Unable to determine the device handle for GPU 0000:AE:00.0: GPU is lost.\n\
                    2, B, ERR!, [N/A], nan MiB\n\
                    x, no row\n";
        let lines: Vec<String> = parse(text)
            .iter()
            .map(|gpu| {
                let (power, throttle) = (gpu.power_w, gpu.throttle.map(|throttle| throttle.0));
                let (state, memory) = (gpu.state, gpu.vram_total_bytes);
                format!("{} {:?} {state:?} {power:?} {throttle:?} {memory:?}", gpu.index, gpu.name)
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        0 Some("A") Present Some(100.5) Some(4) Some(85520809984)
        1 None Lost None None None
        2 Some("B") Present None None None
        "#);
    }

    #[test]
    fn what_is_no_table_is_nothing() {
        let check = |text: &str| assert!(parse(text).is_empty(), "{text}");
        check("");
        check("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.");
        check("Field \"clocks_event_reasons.active\" is not a valid field to query.");
        check("No devices were found");
    }
}
