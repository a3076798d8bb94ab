//! Which processes compute on AMD's GPUs, as the kernel's driver tells in `/sys/class/kfd/kfd`: a process that has opened
//! a GPU has a file `proc/PID/vram_GPU` (drivers/gpu/drm/amd/amdkfd/kfd_process.c), and a GPU is known by the number of
//! its render node.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::host::bounded::text;

/// Where the driver tells.
pub(super) const KFD: &str = "/sys/class/kfd/kfd";
/// Entries of one folder, at most.
const MOST_ENTRIES: usize = 4_096;

/// Processes that have memory on each of `devices` (folders of cards), by its place there.
pub(super) fn computing(kfd: &Path, devices: &[PathBuf]) -> BTreeMap<u32, Vec<u32>> {
    let ids: BTreeMap<String, String> =
        entries(&kfd.join("topology/nodes")).iter().filter_map(|node| Some((render_node(node)?, id(node)?))).collect();
    let of_device =
        |device: &PathBuf| entries(&device.join("drm")).iter().find_map(|node| ids.get(&name(node)?).cloned());
    let files = (0..).zip(devices).filter_map(|(place, device)| Some((place, format!("vram_{}", of_device(device)?))));
    let files: Vec<(u32, String)> = files.collect();
    let mut found: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for process in entries(&kfd.join("proc")) {
        let Some(pid) = name(&process).and_then(|name| name.parse().ok()) else { continue };
        let has_memory = |file: &str| text(&process.join(file)).is_some_and(|bytes| bytes != "0");
        for (place, _) in files.iter().filter(|(_, file)| has_memory(file)) {
            found.entry(*place).or_default().push(pid);
        }
    }
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES).map(|entry| entry.path()).collect()
}

fn name(path: &Path) -> Option<String> {
    path.file_name()?.to_str().map(ToOwned::to_owned)
}

/// `renderD128` of a node of the driver; a CPU's node has none.
fn render_node(node: &Path) -> Option<String> {
    let properties = text(&node.join("properties"))?;
    let minor = properties.lines().find_map(|line| line.strip_prefix("drm_render_minor "))?.trim();
    (minor != "0").then(|| format!("renderD{minor}"))
}

fn id(node: &Path) -> Option<String> {
    text(&node.join("gpu_id")).filter(|id| id != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_found_by_their_memory() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (node, id, minor) in [(0, "0", 0), (1, "5122", 129), (2, "38", 128)] {
            file(&format!("kfd/topology/nodes/{node}/gpu_id"), id);
            file(
                &format!("kfd/topology/nodes/{node}/properties"),
                &format!("cpu_cores_count 0\ndrm_render_minor {minor}\n"),
            );
        }
        file("cards/card0/device/drm/card0/x", "");
        file("cards/card0/device/drm/renderD128/x", "");
        file("cards/card1/device/drm/renderD129/x", "");
        file("kfd/proc/700/vram_38", "0");
        file("kfd/proc/700/vram_5122", "1073741824");
        file("kfd/proc/701/vram_38", "4096");
        file("kfd/proc/701/sdma_38", "1");
        let devices = [0, 1].map(|card| root.path().join(format!("cards/card{card}/device")));
        let found = computing(&root.path().join("kfd"), &devices);
        assert_eq!(found, BTreeMap::from([(0, vec![701]), (1, vec![700])]));
        assert!(computing(Path::new("/no/such/folder"), &devices).is_empty());
    }
}
