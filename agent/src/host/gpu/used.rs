//! Which of a host's GPUs a server uses.

use std::collections::{BTreeMap, BTreeSet};

use speedmatrix_shared::gpu::GpuReading;

/// Variables that choose GPUs, the innermost first: CUDA's own narrows down what a container was given.
const CHOOSERS: &[&str] =
    &["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"];

/// The GPUs that a server uses, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Their numbers on the host, ascending.
    pub indexes: Vec<u32>,
    /// In words, for people.
    pub known_by: String,
}

/// What is known of the server's process.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a> {
    /// The numbers of its processes.
    pub pids: &'a [u32],
    /// Its variables.
    pub environment: &'a BTreeMap<String, String>,
}

/// Chooses by the processes that compute on each GPU (by its index), else by the server's variables, else all.
pub fn choose(gpus: &[GpuReading], computing: &BTreeMap<u32, Vec<u32>>, server: Server<'_>) -> Choice {
    let uses = |index: &u32| computing.get(index).is_some_and(|pids| pids.iter().any(|pid| server.pids.contains(pid)));
    let by_process: Vec<u32> = gpus.iter().map(|gpu| gpu.index).filter(uses).collect();
    if !by_process.is_empty() {
        return Choice { indexes: by_process, known_by: "its processes".into() };
    }
    let chosen = CHOOSERS.iter().find_map(|name| Some((*name, by_variable(gpus, server.environment.get(*name)?)?)));
    match chosen {
        Some((name, indexes)) => Choice { indexes, known_by: name.into() },
        None => Choice { indexes: gpus.iter().map(|gpu| gpu.index).collect(), known_by: "all of the host".into() },
    }
}

/// What a variable chooses; `None` if it leaves the choice open. As CUDA reads it, the list ends at the first word that
/// names no GPU (CUDA C++ Programming Guide, "CUDA Environment Variables"). Numbers count as the driver counts, which is
/// CUDA's own order where all cards are of one kind.
fn by_variable(gpus: &[GpuReading], value: &str) -> Option<Vec<u32>> {
    match value.trim() {
        "all" => return None,
        "void" | "none" | "NoDevFiles" | "" => return Some(Vec::new()),
        _ => {}
    }
    let named = |word: &str| {
        let by_number = || gpus.iter().find(|gpu| word.parse() == Ok(gpu.index));
        let own =
            |gpu: &&GpuReading| word.len() > "GPU-".len() && gpu.uuid.as_ref().is_some_and(|u| u.starts_with(word));
        by_number().or_else(|| gpus.iter().find(own)).map(|gpu| gpu.index)
    };
    let words: Vec<&str> = value.split(',').map(str::trim).collect();
    let known: BTreeSet<u32> = words.iter().map_while(|word| named(word)).collect();
    // A slice's number does not tell whose slice it is.
    let slices = words.first().is_some_and(|word| word.starts_with("MIG-"));
    (!slices).then(|| known.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_of_sixteen() {
        let gpu = |index| GpuReading { index, uuid: Some(format!("GPU-{index:02}ab-cd")), ..GpuReading::default() };
        let gpus: Vec<GpuReading> = (0..16).map(gpu).collect();
        let check = |computing: &[(u32, u32)], variables: &[(&str, &str)], indexes: &[u32], known_by: &str| {
            let mut by_gpu: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (index, pid) in computing {
                by_gpu.entry(*index).or_default().push(*pid);
            }
            let environment = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            let choice = choose(&gpus, &by_gpu, Server { pids: &[100, 101, 102], environment: &environment });
            assert_eq!((choice.indexes.as_slice(), choice.known_by.as_str()), (indexes, known_by));
        };
        let all: Vec<u32> = (0..16).collect();
        let visible = ("CUDA_VISIBLE_DEVICES", "8,9,10,11");
        // Another server computes on 0 and 1.
        check(&[(0, 7), (1, 7), (4, 101), (5, 102), (6, 101), (7, 102)], &[visible], &[4, 5, 6, 7], "its processes");
        check(&[(0, 7)], &[visible], &[8, 9, 10, 11], "CUDA_VISIBLE_DEVICES");
        check(&[], &[("CUDA_VISIBLE_DEVICES", "3, 2,99,1")], &[2, 3], "CUDA_VISIBLE_DEVICES");
        check(&[], &[("CUDA_VISIBLE_DEVICES", "GPU-15ab,GPU-00ab")], &[0, 15], "CUDA_VISIBLE_DEVICES");
        check(&[], &[("CUDA_VISIBLE_DEVICES", "MIG-1234")], &all, "all of the host");
        check(&[], &[("NVIDIA_VISIBLE_DEVICES", "all")], &all, "all of the host");
        check(&[], &[("NVIDIA_VISIBLE_DEVICES", "all"), ("HIP_VISIBLE_DEVICES", "1")], &[1], "HIP_VISIBLE_DEVICES");
        check(&[], &[("CUDA_VISIBLE_DEVICES", "")], &[], "CUDA_VISIBLE_DEVICES");
        check(&[], &[("CUDA_VISIBLE_DEVICES", "-1")], &[], "CUDA_VISIBLE_DEVICES");
        check(&[], &[], &all, "all of the host");
    }
}
