//! Hostile bytes for every parser: a target takes any bytes and panics where a promise is broken. `cargo xtask fuzz` looks
//! for such bytes; the tests here play what is in `seeds/`, so that what was found once stays mended.

mod documents;
mod streams;

/// What takes any bytes.
pub type Target = fn(&[u8]);

/// All targets by name, and where their seeds are, from the repository's root.
pub const TARGETS: [(&str, Target, &str); 10] = [
    ("sse", streams::sse, "agent/tests/it/captures"),
    ("decode", streams::decode, "fuzz/seeds/decode"),
    ("prometheus", streams::prometheus, "fuzz/seeds/prometheus"),
    ("http1", streams::http1, "fuzz/seeds/http1"),
    ("secrets", streams::secrets, "fuzz/seeds/secrets"),
    ("import", documents::import, "fuzz/seeds/import"),
    ("log", documents::log, "fuzz/seeds/log"),
    ("plan", documents::plan, "fuzz/seeds/plan"),
    ("live", documents::live, "fuzz/seeds/live"),
    ("record", documents::record, "fuzz/seeds/record"),
];

/// A target by its name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, ..)| *known == name).map(|(_, target, _)| *target)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn every_target_stands_its_seeds_and_pieces_of_them() {
        for (name, target, seeds) in TARGETS {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(seeds);
            let mut played = 0;
            for entry in fs::read_dir(&folder).unwrap() {
                let bytes = fs::read(entry.unwrap().path()).unwrap();
                target(&bytes);
                for cut in 1..8 {
                    target(&bytes[..bytes.len() * cut / 8]);
                }
                played += 1;
            }
            assert!(played > 0, "{name} has no seeds");
        }
    }

    /// Writes the seeds that are made from the sample run.
    #[test]
    fn seeds_of_the_sample_run_are_of_today() {
        for (path, bytes) in documents::seeds() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(path);
            if std::env::var_os("UPDATE_SEEDS").is_some() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, &bytes).unwrap();
            }
            let there = fs::read(&path).unwrap_or_default();
            assert!(there == bytes, "{} is stale: run this test once with UPDATE_SEEDS=1", path.display());
        }
    }
}
