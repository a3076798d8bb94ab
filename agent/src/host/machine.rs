//! The machine itself: operating system, kernel, processor, memory.

use std::{collections::BTreeSet, env::consts, path::Path, time::Duration};

use super::bounded::{printed, text, text_within};

/// Longest answer of a program that only reads a number.
const LIMIT: Duration = Duration::from_secs(5);
/// `/proc/cpuinfo` has 1 to 2 KB for each of up to some thousand threads.
const CPUINFO_BYTES: u64 = 8 * 1_024 * 1_024;

/// What a machine is. What it does not tell is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) os: Option<String>,
    pub(super) kernel: Option<String>,
    pub(super) cpu: Option<String>,
    pub(super) cores: Option<u32>,
    pub(super) ram_bytes: Option<u64>,
}

impl Machine {
    /// This one.
    pub(super) fn this() -> Self {
        if consts::OS == "macos" { Self::apple() } else { Self::linux(Path::new("/")) }
    }

    /// A Linux machine whose files are below `root`.
    fn linux(root: &Path) -> Self {
        let file = |path: &str| text(&root.join(path));
        let (cpu, cores) = processor(&text_within(&root.join("proc/cpuinfo"), CPUINFO_BYTES).unwrap_or_default());
        Self {
            os: file("etc/os-release").as_deref().and_then(system_name).or_else(|| Some(consts::OS.to_owned())),
            kernel: file("proc/sys/kernel/osrelease"),
            cpu: cpu.or_else(|| Some(consts::ARCH.to_owned())),
            cores,
            ram_bytes: file("proc/meminfo").as_deref().and_then(memory),
        }
    }

    fn apple() -> Self {
        let ask = |program, arguments: &[&str]| {
            printed(program, arguments, LIMIT).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let control = |name| ask("sysctl", &["-n", name]);
        Self {
            os: ask("sw_vers", &["-productVersion"]).map(|version| format!("macOS {version}")),
            kernel: ask("uname", &["-r"]),
            cpu: control("machdep.cpu.brand_string"),
            cores: control("hw.physicalcpu").and_then(|number| number.parse().ok()),
            ram_bytes: control("hw.memsize").and_then(|number| number.parse().ok()),
        }
    }
}

/// Whether this machine's GPU is part of an Apple chip.
pub(super) fn is_apple_silicon() -> bool {
    consts::OS == "macos" && consts::ARCH == "aarch64"
}

/// The pretty name in `os-release(5)`.
fn system_name(text: &str) -> Option<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let name = name.trim().trim_matches(['"', '\'']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Name and number of cores in `/proc/cpuinfo`. ARM gives no name, and where cores are not told apart from threads each
/// thread counts.
fn processor(text: &str) -> (Option<String>, Option<u32>) {
    let field = |line: &'_ str, name: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    let name = text.lines().find_map(|line| field(line, "model name")).filter(|name| !name.is_empty());
    let mut cores = BTreeSet::new();
    let mut threads = 0;
    for thread in text.split("\n\n") {
        let of = |name| thread.lines().find_map(|line| field(line, name));
        threads += u32::from(of("processor").is_some());
        if let (Some(socket), Some(core)) = (of("physical id"), of("core id")) {
            cores.insert((socket, core));
        }
    }
    let count = if cores.is_empty() { threads } else { u32::try_from(cores.len()).unwrap_or(threads) };
    (name, Some(count).filter(|count| *count > 0))
}

/// All memory in the text of `/proc/meminfo`, bytes.
pub fn memory(text: &str) -> Option<u64> {
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_tells_of_itself_in_files() {
        let thread = |n: u32, core: u32| {
            format!("processor\t: {n}\nmodel name\t: Xeon 8480+\nphysical id\t: 0\ncore id\t\t: {core}\n")
        };
        let check = |text: &str, name: Option<&str>, cores: Option<u32>| {
            assert_eq!(processor(text), (name.map(ToOwned::to_owned), cores));
        };
        let four = [thread(0, 0), thread(1, 1), thread(2, 0), thread(3, 1)].join("\n");
        check(&four, Some("Xeon 8480+"), Some(2));
        check("processor\t: 0\nBogoMIPS\t: 2000\n\nprocessor\t: 1\n\n", None, Some(2));
        check("", None, None);
        assert_eq!(system_name("NAME=x\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n").as_deref(), Some("Ubuntu 24.04 LTS"));
        assert_eq!(memory("MemTotal:       127600748 kB\nMemFree: 1 kB\n"), Some(127_600_748 * 1_024));
        assert_eq!(memory("MemTotal: lots\n"), None);
    }

    #[test]
    fn a_machine_that_tells_nothing_is_no_error() {
        let silent = Machine::linux(Path::new("/no/such/folder"));
        assert_eq!((silent.kernel, silent.cores, silent.ram_bytes), (None, None, None));
    }
}
