//! Runs what a command consists of, and says how each step went and how long it took.
#![expect(clippy::print_stderr, reason = "the one room that prints; on stderr, so that stdout stays the programs'")]

use std::{
    fmt::Write as _,
    fs::{self, File},
    path::Path,
    process::{Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// An error here is a sentence for the person at the terminal: what failed and what to do.
pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// How many closing lines of a quiet program's output are shown when it fails.
const TAIL_LINES: usize = 20;
/// How often a program with a time limit is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// Does `work` under a name: says that it begins, and how it ended and how long it took.
pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    eprintln!("▶ {name}");
    let result = work();
    let mark = if result.is_ok() { '✔' } else { '✘' };
    eprintln!("{mark} {name}  {:.1} s", began.elapsed().as_secs_f64());
    result
}

/// A step that is left out, in one line, when its result is there already.
pub(crate) fn ensure(name: &str, there: impl Fn() -> bool, work: impl FnOnce() -> Result) -> Result {
    let began = Instant::now();
    if there() {
        let took = began.elapsed().as_secs_f64();
        eprintln!("✔ {name}  {took:.1} s, there already");
        return Ok(());
    }
    step(name, || {
        work()?;
        if there() { Ok(()) } else { Err(format!("{name}: installed without an error, but it does not answer")) }
    })
}

/// Runs a program that talks to the terminal itself.
pub(crate) fn run(command: &mut Command) -> Result {
    eprintln!("  $ {}", shown(command));
    let status = command.status().map_err(|e| not_started(command, &e))?;
    judge(command, status)
}

/// Runs a program and gives its output, or nothing if it is absent or fails.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|o| o.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// Runs a talkative program with its output in a file; shows the end of it when the program fails
/// or takes longer than `limit`.
pub(crate) fn run_quietly(command: &mut Command, log: &Path, limit: Duration) -> Result {
    eprintln!("  $ {}", shown(command));
    let open = || File::create(log).and_then(|file| Ok((file.try_clone()?, file)));
    let (out, err) = open().map_err(|e| format!("cannot write {}: {e}", log.display()))?;
    let mut child = command.stdout(out).stderr(err).spawn().map_err(|e| not_started(command, &e))?;
    let began = Instant::now();
    let outcome = loop {
        match child.try_wait() {
            Ok(Some(status)) => break judge(command, status),
            Ok(None) if began.elapsed() > limit => {
                let stopped = child.kill().and_then(|()| child.wait());
                break Err(format!("`{}` took longer than {limit:?} ({stopped:?})", shown(command)));
            }
            Ok(None) => thread::sleep(LOOK_EVERY),
            Err(e) => break Err(format!("cannot wait for `{}`: {e}", shown(command))),
        }
    };
    outcome.map_err(|message| {
        let text = fs::read_to_string(log).unwrap_or_default();
        format!("{message}\nthe end of {}:\n{}", log.display(), tail(&text))
    })
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines[from..].iter().fold(String::new(), |mut shown, line| {
        writeln!(shown, "  | {line}").expect("a string takes any text");
        shown
    })
}

fn judge(command: &Command, status: ExitStatus) -> Result {
    if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}", shown(command))) }
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    format!("cannot start `{}`: {error}", shown(command))
}

/// The command as one would type it; the program without its folder.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    line
}
