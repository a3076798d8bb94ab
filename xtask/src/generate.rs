//! The pages of docs/ that are written by programs.
//!
//! A generator is an example of `shared` or `agent` called `<name>_md.rs` that prints
//! `docs/<NAME>.md`. A new page is a new example; nothing changes here.

use crate::{layout::Layout, step::Result};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

const CRATES: [&str; 2] = ["shared", "agent"];

/// An example and the page that it prints.
#[derive(Debug, PartialEq, Eq)]
struct Generator {
    manifest: PathBuf,
    example: String,
    page: PathBuf,
}

/// Writes every generated page.
pub(crate) fn write(layout: &Layout) -> Result {
    for generator in generators() {
        let page = &generator.page;
        let text = printed(layout, &generator)?;
        fs::create_dir_all("docs")
            .and_then(|()| fs::write(page, text))
            .map_err(|e| format!("cannot write {}: {e}", page.display()))?;
    }
    Ok(())
}

/// Fails if a page is not what its generator prints now.
pub(crate) fn check(layout: &Layout) -> Result {
    let mut stale = Vec::new();
    for generator in generators() {
        let text = printed(layout, &generator)?;
        if fs::read_to_string(&generator.page).ok().as_ref() != Some(&text) {
            stale.push(generator.page.display().to_string());
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    let pages = stale.join(", ");
    Err(format!("stale: {pages}; run `cargo xtask gen` and commit what it writes"))
}

fn printed(layout: &Layout, generator: &Generator) -> Result<String> {
    let mut cargo = layout.cargo(["run", "--locked", "--quiet", "--manifest-path"]);
    cargo.arg(&generator.manifest).args(["--example", &generator.example]);
    let output = cargo.stderr(Stdio::inherit()).output().map_err(|e| format!("cannot start cargo: {e}"))?;
    if !output.status.success() {
        return Err(format!("the generator {} ended with {}", generator.example, output.status));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("the generator {} printed no text: {e}", generator.example))
}

fn generators() -> Vec<Generator> {
    let mut generators = Vec::new();
    for folder in CRATES {
        let entries = fs::read_dir(Path::new(folder).join("examples"));
        let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        names.sort();
        generators.extend(names.iter().filter_map(|name| generator(folder, name)));
    }
    generators
}

fn generator(folder: &str, file: &str) -> Option<Generator> {
    let example = file.strip_suffix(".rs")?;
    let page = example.strip_suffix("_md")?;
    Some(Generator {
        manifest: Path::new(folder).join("Cargo.toml"),
        example: example.to_owned(),
        page: Path::new("docs").join(format!("{}.md", page.to_uppercase())),
    })
}

#[cfg(test)]
mod tests {
    use super::generator;
    use std::path::PathBuf;

    #[test]
    fn an_example_whose_name_ends_in_md_prints_a_page() {
        let page = |file| generator("shared", file).map(|found| found.page);
        assert_eq!(page("metrics_md.rs"), Some(PathBuf::from("docs/METRICS.md")));
        assert_eq!(page("metrics.rs"), None);
        assert_eq!(page("metrics_md.txt"), None);
    }
}
