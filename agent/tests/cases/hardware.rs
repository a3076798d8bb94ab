//! The cases about hardware: the raw output of a tool, or the answers of a library, through the product's own reader.

use std::{fs, io, path::Path};

use serde_json::{Value, json};
use speedmatrix_agent::host::{
    gpu::{Source, amd, smi},
    machine,
};
use speedmatrix_shared::{
    format,
    gpu::{GpuMemory, GpuReading, GpuSlice, GpuState, total_power},
};

use super::{Verdict, recorded::Recorded};

/// Numbers of expectations are printed with two digits.
const TOLERANCE: f64 = 0.005;

/// Checks one case; `path` is any of its files.
pub(crate) fn check(id: &str, path: &Path) -> io::Result<Verdict> {
    let folder = path.parent().unwrap_or(path);
    let case: Value = serde_json::from_slice(&fs::read(folder.join(format!("{id}.expect.json")))?)?;
    let file = case["file"].as_str().unwrap_or_default();
    let text = fs::read_to_string(folder.join(file))?;
    let gpus = match id {
        "H03" => Source::Nvml(Box::new(Recorded::read(&text))).all(),
        "H08" => amd::parse(&text),
        _ => smi::parse(&text),
    };
    let mut wrong = Vec::new();
    let expect = &case["expect"];
    let wanted = expect["gpus"].as_array().cloned().unwrap_or_default();
    if wanted.len() != gpus.len() {
        wrong.push(format!("{} GPUs, not {}", gpus.len(), wanted.len()));
    }
    for (gpu, wanted) in gpus.iter().zip(&wanted) {
        compare(&told(gpu), wanted, &format!("gpu {}", gpu.index), &mut wrong);
    }
    let total = total_power(&gpus);
    let sums = json!({"total_power_w": total.watts, "total_is_partial": total.missing > 0});
    for key in ["total_power_w", "total_is_partial"].into_iter().filter(|key| expect.get(key).is_some()) {
        compare(&json!({key: sums[key]}), &json!({key: expect[key]}), "all", &mut wrong);
    }
    memory(&expect["system_memory_if_local"], &mut wrong);
    Ok(if wrong.is_empty() { Verdict::Ok(format!("{} GPUs", gpus.len())) } else { Verdict::Failed(wrong) })
}

/// A reading in the cases' words.
fn told(gpu: &GpuReading) -> Value {
    let mib = |bytes: Option<u64>| bytes.map(|bytes| bytes >> 20);
    let percent = |share: Option<f64>| share.map(|share| share * 100.0);
    let slice = |slice: &GpuSlice| {
        json!({
            "profile": slice.profile,
            "memory_total_mib": mib(slice.vram_total_bytes),
            "memory_used_mib": mib(slice.vram_used_bytes),
        })
    };
    json!({
        "index": gpu.index,
        "name": gpu.name,
        "lost": gpu.state == GpuState::Lost,
        "mig": gpu.is_split,
        "mig_devices": gpu.slices.iter().map(slice).collect::<Vec<_>>(),
        "unified_memory": gpu.memory == GpuMemory::Unified,
        "memory_total_mib": mib(gpu.vram_total_bytes),
        "memory_used_mib": mib(gpu.vram_used_bytes),
        "util_pct": percent(gpu.utilisation),
        "power_w": gpu.power_w,
        "power_limit_w": gpu.power_limit_w,
        "temp_c": gpu.temperature_c,
        "fan_pct": percent(gpu.fan),
    })
}

/// What is expected must be there; other fields are free.
fn compare(got: &Value, wanted: &Value, place: &str, wrong: &mut Vec<String>) {
    let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE;
    match (got, wanted) {
        (Value::Object(_), Value::Object(fields)) => {
            for (key, wanted) in fields {
                compare(got.get(key).unwrap_or(&json!("nothing")), wanted, &format!("{place} {key}"), wrong);
            }
        }
        (Value::Array(got), Value::Array(wanted)) if got.len() == wanted.len() => {
            got.iter().zip(wanted).for_each(|(got, wanted)| compare(got, wanted, place, wrong));
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| near(a, b)) => {}
        _ if got == wanted => {}
        _ => wrong.push(format!("{place} is {got}, not {wanted}")),
    }
}

/// Where CPU and GPU share it, the machine's memory is shown.
fn memory(case: &Value, wrong: &mut Vec<String>) {
    let (Some(kib), Some(gib)) = (case["MemTotal_kB"].as_u64(), case["shown_total_gib"].as_f64()) else { return };
    let total = machine::memory(&format!("MemTotal:       {kib} kB\n"));
    let shown = format::memory(total.map(|bytes| bytes as f64));
    if shown != format!("{gib} GB") {
        wrong.push(format!("memory is shown as {shown}, not {gib}"));
    }
}
