//! Which of several related processes is the server: its main process, not one of its workers.

use std::{collections::BTreeMap, path::PathBuf};

/// Steps up from a worker, at most.
const MOST_STEPS: usize = 16;
/// Marks of Python's own child processes.
const PYTHON_CHILDREN: &[&str] = &["--multiprocessing-fork", "multiprocessing.spawn", "multiprocessing.forkserver"];
/// Servers whose port belongs to a helper: the helper's program and the launcher's.
const LAUNCHERS: &[(&str, &str)] = &[("text-generation-router", "text-generation-launcher")];

/// What is needed of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its parent.
    pub(super) parent: i32,
    /// When it started, ticks since boot.
    pub(super) started: u64,
    /// Its command line.
    pub(super) words: Vec<String>,
    /// Its program.
    pub(super) program: Option<PathBuf>,
}

impl Seen {
    fn name(&self) -> Option<&str> {
        self.program.as_ref()?.file_name()?.to_str()
    }
}

/// The main process among those that hold the socket: the oldest one that has no ancestor among them, or who started it
/// as a worker. `look` gives nothing for a process that is gone.
pub(super) fn main_process(holders: &[i32], look: impl Fn(i32) -> Option<Seen>) -> Option<i32> {
    let seen: BTreeMap<i32, Seen> = holders.iter().filter_map(|pid| Some((*pid, look(*pid)?))).collect();
    let eldest = seen.iter().filter(|(_, process)| !seen.contains_key(&process.parent));
    let (mut pid, mut process) =
        eldest.min_by_key(|(pid, process)| (process.started, **pid)).map(|(pid, process)| (*pid, process.clone()))?;
    for _ in 0..MOST_STEPS {
        match look(process.parent) {
            Some(parent) if is_worker(&process, &parent) => (pid, process) = (process.parent, parent),
            _ => break,
        }
    }
    Some(pid)
}

fn is_worker(child: &Seen, parent: &Seen) -> bool {
    let pair = child.name().zip(parent.name());
    if pair.is_some_and(|pair| LAUNCHERS.contains(&pair)) {
        return true;
    }
    // One that was started by a shell, a supervisor or a script of another program is nobody's worker.
    if child.program.is_none() || child.program != parent.program {
        return false;
    }
    let Some(first) = child.words.first() else { return false };
    let forked = child.words == parent.words;
    let of_python = child.words.iter().any(|word| PYTHON_CHILDREN.iter().any(|mark| word.contains(mark)));
    // `VLLM::APIServer_0`, `sglang::scheduler`, `gunicorn: worker [app]`, `nginx: worker process`.
    let titled = first.contains("::") || first.contains(": worker");
    forked || of_python || titled
}

/// A process and all its descendants, from pairs of process and parent.
pub(super) fn family(main: i32, parents: &BTreeMap<i32, i32>) -> Vec<u32> {
    let belongs = |pid: i32| {
        let up = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
        // A table read while processes come and go might hold a ring.
        up.take(parents.len() + 1).any(|pid| pid == main)
    };
    let all = parents.keys().copied().filter(|pid| belongs(*pid));
    all.filter_map(|pid| u32::try_from(pid).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Process, parent, program, command line.
    type Row = (i32, i32, &'static str, &'static str);

    #[track_caller]
    fn check(rows: &[Row], holders: &[i32], wanted: Option<i32>) {
        let look = |pid: i32| {
            let (_, parent, program, words) = rows.iter().find(|row| row.0 == pid)?;
            let words = words.split(' ').map(ToOwned::to_owned).collect();
            Some(Seen { parent: *parent, started: pid as u64, words, program: Some(program.into()) })
        };
        assert_eq!(main_process(holders, look), wanted);
    }

    #[test]
    fn the_server_is_the_main_process() {
        let (python, bash) = ("/usr/bin/python3.12", "/usr/bin/bash");
        let shell = (10, 1, bash, "bash -c vllm serve m");
        // Started from a shell; its engine is a child that does not listen.
        check(&[shell, (20, 10, python, "python vllm serve m"), (21, 20, python, "VLLM::EngineCore")], &[20], Some(20));
        // Several API servers share the socket, or are its only holders.
        let servers = [
            shell,
            (20, 10, python, "python vllm serve m"),
            (21, 20, python, "VLLM::APIServer_0"),
            (22, 20, python, "VLLM::APIServer_1"),
        ];
        check(&servers, &[20, 21, 22], Some(20));
        check(&servers, &[21, 22], Some(20));
        // uvicorn's workers, by way of Python's fork server.
        let spawned = "python -c from multiprocessing.spawn import spawn_main --multiprocessing-fork";
        let forked = "python -c from multiprocessing.forkserver import main";
        check(
            &[shell, (20, 10, python, "python -m x"), (21, 20, python, forked), (22, 21, python, spawned)],
            &[22],
            Some(20),
        );
        // gunicorn forks: the same words, or a title.
        check(&[(1, 0, python, "gunicorn: master [a]"), (7, 1, python, "gunicorn: worker [a]")], &[1, 7], Some(1));
        // A script that starts servers is no server.
        check(&[(10, 1, python, "python bench.py"), (20, 10, python, "python vllm serve m")], &[20], Some(20));
        let (router, launcher) = ("/usr/bin/text-generation-router", "/usr/bin/text-generation-launcher");
        check(
            &[(5, 1, launcher, "text-generation-launcher -p 80"), (9, 5, router, "text-generation-router")],
            &[9],
            Some(5),
        );
        // It has ended meanwhile.
        check(&[], &[9], None);
        check(&[], &[], None);
    }

    #[test]
    fn a_family_is_all_that_descends() {
        let parents = BTreeMap::from([(1, 0), (10, 1), (20, 10), (21, 20), (22, 21), (30, 10), (8, 9), (9, 8)]);
        assert_eq!(family(20, &parents), [20, 21, 22]);
        assert_eq!(family(99, &parents), Vec::<u32>::new());
    }
}
