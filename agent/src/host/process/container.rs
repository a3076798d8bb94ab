//! The container that a process runs in, from the names of its control groups and its mounts.

/// Digits of a container's number; shown are as many as `docker ps` shows.
const DIGITS: usize = 64;
const SHOWN: usize = 12;

/// The container's number in `/proc/PID/cgroup` (`…/docker-0123….scope`, `…/kubepods/…/0123…`), or in
/// `/proc/PID/mountinfo`, where engines mount files from a folder of that name.
pub(super) fn container(cgroup: &str, mountinfo: &str) -> Option<String> {
    let in_groups = || words(cgroup).find(|word| is_number(word));
    let of_engine = |line: &&str| line.contains("/containers/") && line.contains("/etc/hostname");
    let in_mounts = || mountinfo.lines().filter(of_engine).flat_map(words).find(|word| is_number(word));
    in_groups().or_else(in_mounts).and_then(|number| number.get(..SHOWN)).map(ToOwned::to_owned)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
}

fn is_number(word: &str) -> bool {
    word.len() == DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_named_in_many_ways() {
        let number = "0123456789abcdef".repeat(4);
        let check = |cgroup: &str, mountinfo: &str, wanted: Option<&str>| {
            let fill = |text: &str| text.replace("ID", &number);
            assert_eq!(container(&fill(cgroup), &fill(mountinfo)).as_deref(), wanted, "{cgroup}");
        };
        let known = Some("0123456789ab");
        check("0::/system.slice/docker-ID.scope\n", "", known);
        check("12:memory:/docker/ID\n11:cpu:/docker/ID\n", "", known);
        check("0::/kubepods.slice/kubepods-pod12_34.slice/cri-containerd-ID.scope", "", known);
        check("0::/machine.slice/libpod-ID.scope/container", "", known);
        check("0::/", "7 6 8:1 /var/lib/docker/containers/ID/hostname /etc/hostname rw - ext4 /dev/sda1 rw", known);
        check("0::/user.slice/user-1000.slice/session-2.scope", "1 2 3:4 / / rw - overlay overlay rw", None);
        check("", "", None);
    }
}
