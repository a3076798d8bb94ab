//! Processes in `/proc`: a listening socket has an inode, which is among the open files of the process that holds it. The
//! crate `procfs` keeps each process's folder open, so that its number can't be given to another one meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::IpAddr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use procfs::{
    ProcError,
    net::{TcpNetEntry, TcpState},
    process::{FDTarget, Process, all_processes},
};
use speedmatrix_shared::host::ProcessFacts;

use super::{
    Found, Unknown,
    command::{command, environment, words},
    container::container,
    lineage::{Seen, family, main_process},
    packages,
};
use crate::host::bounded::read_from;

/// Most bytes of a command line or of the variables: the kernel allows a few megabytes for both.
const WORDS_BYTES: u64 = 4 * 1_024 * 1_024;
/// Most bytes of the list of mounts or control groups.
const LIST_BYTES: u64 = 1_024 * 1_024;
/// Open files of one process that are looked at.
const MOST_FILES: usize = 65_536;
/// Programs that listen for a server elsewhere: tunnels and proxies.
const PASSING_ON: &[&str] = &[
    "autossh",
    "caddy",
    "cloudflared",
    "envoy",
    "frpc",
    "gcloud",
    "haproxy",
    "kubectl",
    "litellm",
    "nginx",
    "ngrok",
    "socat",
    "ssh",
    "sshd",
    "sshd-session",
    "stunnel",
    "tailscaled",
    "traefik",
    "wslrelay",
];
/// Programs that hold a port for a container of this machine and pass its bytes on.
const FORWARDERS: &[&str] = &["docker-proxy", "rootlesskit", "rootlessport"];

/// The process that listens on `port` at one of `addresses`, in this network or in that of a container.
pub(in crate::host) fn find(addresses: &[IpAddr], port: u16) -> Result<Found, Unknown> {
    let here = listening(Process::myself().ok().as_ref(), port, |address| is_at(address, addresses));
    if here.is_empty() {
        return in_containers(port, port, None);
    }
    let main = main_of(&here, port)?;
    let line = words(&bytes(&main, "cmdline").ok_or(Unknown::Gone)?);
    if let Some((address, inner)) = forwarded_to(&line) {
        return in_containers(port, inner, Some(&address));
    }
    match passes_on(&line) {
        Some(program) => Err(Unknown::PassedOn { port, program }),
        None => describe(&main),
    }
}

fn is_at(bound: IpAddr, addresses: &[IpAddr]) -> bool {
    let bound = bound.to_canonical();
    bound.is_unspecified() || addresses.iter().any(|address| address.to_canonical() == bound)
}

/// Inodes of the sockets that listen on a port in a process's network.
fn listening(process: Option<&Process>, port: u16, is_wanted: impl Fn(IpAddr) -> bool) -> BTreeSet<u64> {
    let tables = process.into_iter().flat_map(|process| [process.tcp(), process.tcp6()]);
    let is_it = |entry: &TcpNetEntry| {
        entry.state == TcpState::Listen && entry.local_address.port() == port && is_wanted(entry.local_address.ip())
    };
    tables.flatten().flatten().filter(is_it).map(|entry| entry.inode).collect()
}

/// The main process among those that hold one of these sockets.
fn main_of(sockets: &BTreeSet<u64>, port: u16) -> Result<Process, Unknown> {
    let holds = |process: &Process| {
        let mut files = process.fd().into_iter().flatten().take(MOST_FILES).flatten();
        files.any(|file| matches!(file.target, FDTarget::Socket(inode) if sockets.contains(&inode)))
    };
    let holders: Vec<i32> = processes().filter(holds).map(|process| process.pid()).collect();
    if holders.is_empty() {
        return Err(Unknown::NoPermission { port });
    }
    let own = i32::try_from(std::process::id()).ok();
    if own.is_some_and(|own| holders.contains(&own)) {
        return Err(Unknown::Own);
    }
    let pid = main_process(&holders, look).ok_or(Unknown::Gone)?;
    Process::new(pid).map_err(|error| unknown(&error, port))
}

fn processes() -> impl Iterator<Item = Process> {
    all_processes().into_iter().flatten().flatten()
}

fn look(pid: i32) -> Option<Seen> {
    let process = Process::new(pid).ok()?;
    let stat = process.stat().ok()?;
    let words = words(&bytes(&process, "cmdline")?);
    Some(Seen { parent: stat.ppid, started: stat.starttime, words, program: process.exe().ok() })
}

fn bytes(process: &Process, name: &str) -> Option<Vec<u8>> {
    read_from(process.open_relative(name).ok()?, WORDS_BYTES).ok()
}

fn unknown(error: &ProcError, port: u16) -> Unknown {
    match error {
        ProcError::PermissionDenied(_) => Unknown::NoPermission { port },
        _ => Unknown::Gone,
    }
}

/// Where a forwarder sends what comes to its port.
fn forwarded_to(words: &[String]) -> Option<(String, u16)> {
    let program = name(words.first()?)?;
    let after =
        |flag: &str| words.iter().zip(words.iter().skip(1)).find(|(word, _)| *word == flag).map(|(_, next)| next);
    let forwards = FORWARDERS.contains(&program);
    let place = after("-container-ip").zip(after("-container-port")).filter(|_| forwards)?;
    Some((place.0.clone(), place.1.parse().ok()?))
}

/// The program's name, if it is one that only passes on; scripts are named by their second word.
fn passes_on(words: &[String]) -> Option<String> {
    // sshd writes `sshd: user@pts/0` there.
    let names = words.iter().take(2).filter_map(|word| name(word)).map(|name| name.trim_end_matches(':'));
    let names = names.filter_map(|name| name.split([' ', ':']).next());
    names.into_iter().find(|name| PASSING_ON.contains(name)).map(ToOwned::to_owned)
}

fn name(word: &str) -> Option<&str> {
    Path::new(word).file_name()?.to_str()
}

/// The process that listens on `inner` in another network of this machine, where `address` is at home if it is given.
fn in_containers(port: u16, inner: u16, address: Option<&str>) -> Result<Found, Unknown> {
    let network = |pid: &str| fs::metadata(format!("/proc/{pid}/ns/net")).map(|network| network.ino()).ok();
    let own = network("self");
    let mut networks: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for process in processes() {
        let Some(id) = network(&process.pid().to_string()).filter(|id| Some(*id) != own) else { continue };
        networks.entry(id).or_insert_with(|| {
            let at_home = address.is_none_or(|address| is_home_of(&process, address));
            if at_home { listening(Some(&process), inner, |_| true) } else { BTreeSet::new() }
        });
    }
    networks.retain(|_, sockets| !sockets.is_empty());
    match networks.len() {
        0 => Err(Unknown::NoListener { port }),
        1 => describe(&main_of(&networks.into_values().flatten().collect(), port)?),
        count => Err(Unknown::Ambiguous { port, count }),
    }
}

/// Whether an address belongs to a process's network: it is a word of the kernel's table of local routes.
fn is_home_of(process: &Process, address: &str) -> bool {
    let routes = process.open_relative("net/fib_trie").ok().and_then(|file| read_from(file, LIST_BYTES).ok());
    let routes = routes.map(|routes| String::from_utf8_lossy(&routes).into_owned());
    routes.is_some_and(|routes| routes.split_whitespace().any(|word| word == address))
}

/// All that is known of a process. Only its end makes it unknown; whatever else can't be read is missing.
fn describe(process: &Process) -> Result<Found, Unknown> {
    let stat = process.stat().map_err(|_gone| Unknown::Gone)?;
    let line = words(&bytes(process, "cmdline").ok_or(Unknown::Gone)?);
    let variables = words(&bytes(process, "environ").unwrap_or_default());
    let executable = process.exe().ok();
    let text = |name: &str| {
        let file = process.open_relative(name).ok()?;
        read_from(file, LIST_BYTES).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let parents: BTreeMap<i32, i32> =
        processes().filter_map(|process| Some((process.pid(), process.stat().ok()?.ppid))).collect();
    let pids = family(process.pid(), &parents);
    let facts = ProcessFacts {
        pid: u32::try_from(process.pid()).ok(),
        started_unix_ms: started(stat.starttime),
        environment: environment(&variables),
        packages: packages::versions(&root(process), &programs(&line, &variables, executable.as_deref())),
        container: container(&text("cgroup").unwrap_or_default(), &text("mountinfo").unwrap_or_default()),
        processes: u32::try_from(pids.len()).ok().filter(|count| *count > 0),
        executable: executable.map(|path| path.to_string_lossy().into_owned()),
    };
    Ok(Found { facts, command: command(&line), pids })
}

/// Wall time of a start that is told in ticks since the machine's.
fn started(ticks: u64) -> Option<u64> {
    let boot_ms = procfs::boot_time_secs().ok()?.checked_mul(1_000)?;
    let since_ms = ticks.checked_mul(1_000)?.checked_div(procfs::ticks_per_second())?;
    boot_ms.checked_add(since_ms)
}

/// A process's root folder: its own where it sees other mounts than we do.
fn root(process: &Process) -> PathBuf {
    let mounts = |pid: &str| fs::metadata(format!("/proc/{pid}/ns/mnt")).map(|mounts| mounts.ino()).ok();
    let pid = process.pid().to_string();
    if mounts(&pid) == mounts("self") { PathBuf::from("/") } else { PathBuf::from(format!("/proc/{pid}/root")) }
}

/// Programs whose installation may be that of the server: as it was called, its script, its environment, and what the
/// links lead to.
fn programs(words: &[String], variables: &[String], executable: Option<&Path>) -> Vec<PathBuf> {
    let called = words.iter().take(2).map(PathBuf::from).filter(|path| path.is_absolute());
    let prefixes = ["VIRTUAL_ENV=", "CONDA_PREFIX="];
    let prefixes = prefixes.iter().filter_map(|name| variables.iter().find_map(|line| line.strip_prefix(name)));
    let entered = prefixes.map(|prefix| Path::new(prefix).join("bin/python"));
    called.chain(entered).chain(executable.map(Path::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Read as _},
        net::TcpListener,
        process::{Command, Stdio},
    };

    use super::*;

    /// Says to this program that it is to listen.
    const LISTEN: &str = "SPEEDMATRIX_TEST_LISTEN";
    /// A port that nobody listens on ("discard", RFC 863), also not another test.
    const PORT: u16 = 9;

    /// Not a test: what the next one starts in a network of its own.
    #[test]
    fn a_listener() {
        if std::env::var_os(LISTEN).is_some() {
            let _listener = TcpListener::bind(("0.0.0.0", PORT)).unwrap();
            println!("listening");
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
    }

    #[test]
    fn a_server_in_another_network_of_this_machine_is_found() {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--net", "--"]).arg(program).args(["--exact", "--nocapture"]);
        command.arg("host::process::linux::tests::a_listener").env(LISTEN, "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            println!("skipped: there is no `unshare` here");
            return;
        };
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        if !lines.map_while(Result::ok).any(|line| line.contains("listening")) {
            println!("skipped: only root may make a network");
            return;
        }
        let found = find(&["127.0.0.1".parse().unwrap()], PORT);
        child.kill().unwrap();
        child.wait().unwrap();
        let found = found.unwrap();
        assert_eq!(found.pids, [child.id()]);
        assert!(found.command.unwrap().ends_with("host::process::linux::tests::a_listener"));
    }

    #[test]
    fn a_process_that_is_gone_is_unknown() {
        let mut child = Command::new("true").spawn().unwrap();
        let process = Process::new(i32::try_from(child.id()).unwrap()).unwrap();
        child.wait().unwrap();
        assert_eq!(describe(&process), Err(Unknown::Gone));
        assert_eq!(look(process.pid()), None);
    }

    #[test]
    fn a_port_of_this_program_is_its_own_and_a_free_one_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let loopback = ["127.0.0.1".parse().unwrap()];
        assert_eq!(find(&loopback, port), Err(Unknown::Own));
        drop(listener);
        assert_eq!(find(&loopback, port), Err(Unknown::NoListener { port }));
    }

    #[test]
    fn tunnels_and_proxies_are_no_servers() {
        let check = |line: &str, wanted: Option<&str>| {
            let words: Vec<String> = line.split(' ').map(ToOwned::to_owned).collect();
            assert_eq!(passes_on(&words).as_deref(), wanted, "{line}");
        };
        check("/usr/bin/ssh -N -L 8000:gpu:8000 gpu", Some("ssh"));
        check("sshd: me@notty", Some("sshd"));
        check("kubectl port-forward svc/vllm 8000", Some("kubectl"));
        check("nginx: master process nginx", Some("nginx"));
        check("/usr/bin/python3 /opt/bin/litellm --config c", Some("litellm"));
        check("/usr/bin/python3 /opt/bin/vllm serve ssh", None);
        let forwarder = "/usr/bin/docker-proxy -proto tcp -host-port 80 -container-ip 172.17.0.2 -container-port 8000";
        let words: Vec<String> = forwarder.split(' ').map(ToOwned::to_owned).collect();
        assert_eq!(forwarded_to(&words), Some(("172.17.0.2".into(), 8_000)));
    }

    #[test]
    fn sockets_listen_where_they_are_bound() {
        let check = |bound: &str, wanted: bool| {
            let addresses = ["127.0.0.1".parse().unwrap(), "10.0.0.7".parse().unwrap()];
            assert_eq!(is_at(bound.parse().unwrap(), &addresses), wanted, "{bound}");
        };
        check("0.0.0.0", true);
        check("::", true);
        check("::ffff:127.0.0.1", true);
        check("10.0.0.7", true);
        check("10.0.0.8", false);
        check("::1", false);
    }
}
