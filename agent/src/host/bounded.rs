//! Files and programs of this machine, read within bounds: of size, and of time where something may hang.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

/// Most bytes of a small file of `/proc` or `/sys`.
const SMALL_BYTES: u64 = 64 * 1_024;
/// Most bytes that a program may print.
const PRINTED_BYTES: u64 = 4 * 1_024 * 1_024;

/// At most the first `limit` bytes of what `source` has.
pub(super) fn read_from(source: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of a small file; `None` if it can't be read.
pub(super) fn bytes(path: &Path) -> Option<Vec<u8>> {
    read_from(File::open(path).ok()?, SMALL_BYTES).ok()
}

/// At most the first `limit` bytes of a file, as text.
pub(super) fn text_within(path: &Path, limit: u64) -> Option<String> {
    let bytes = read_from(File::open(path).ok()?, limit).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A small file as text without its last line's end; `None` if it can't be read or has nothing.
pub(super) fn text(path: &Path) -> Option<String> {
    text_within(path, SMALL_BYTES).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// What a program prints to its standard output, whatever its exit status says; `None` if there is no such program or it
/// takes longer than `limit`.
pub(super) fn printed(program: &str, arguments: &[&str], limit: Duration) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let output = child.stdout.take()?;
    let (sender, printed) = mpsc::sync_channel(1);
    let reading = move || drop(sender.send(read_from(output, PRINTED_BYTES)));
    let reader = std::thread::Builder::new().name("printed".into()).spawn(reading).ok()?;
    let bytes = printed.recv_timeout(limit);
    // Also one that has printed more than it may, and one that hangs: neither goes on.
    child.kill().ok();
    child.wait().ok();
    // Its pipe is closed now, unless a child of its own holds it; then the thread ends with that one.
    drop(reader);
    Some(String::from_utf8_lossy(&bytes.ok()?.ok()?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_waited_for_within_bounds() {
        let minute = Duration::from_mins(1);
        assert_eq!(printed("echo", &["a", "b"], minute).as_deref(), Some("a b\n"));
        assert_eq!(printed("no-such-program-here", &[], minute), None);
        // It would print for ever.
        assert_eq!(printed("yes", &[], minute).map(|text| text.len()), Some(PRINTED_BYTES as usize));
        assert_eq!(printed("sleep", &["600"], Duration::from_millis(10)), None);
    }
}
