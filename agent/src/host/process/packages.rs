//! Versions of the Python packages that a server runs on. Only names of folders are read: a foreign installation is never
//! asked to run, and no file of it is opened.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
};

/// Packages whose version says something about speed.
const PACKAGES: &[&str] = &[
    "aiter",
    "deep-gemm",
    "exllamav3",
    "flash-attn",
    "flashinfer-python",
    "llama-cpp-python",
    "lmcache",
    "lmdeploy",
    "litellm",
    "mlx",
    "mlx-lm",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "ray",
    "sgl-kernel",
    "sglang",
    "tensorrt-llm",
    "text-generation-server",
    "torch",
    "transformers",
    "triton",
    "vllm",
    "xformers",
];
/// Folders that are looked through in one installation, at most.
const MOST_FOLDERS: usize = 16;
/// Entries of one folder, at most.
const MOST_ENTRIES: usize = 20_000;

/// The versions that are installed where the first of `programs` is that has any. `root` is the process's own root, and
/// paths are those of the process.
pub(super) fn versions(root: &Path, programs: &[PathBuf]) -> BTreeMap<String, String> {
    let prefixes = programs.iter().filter_map(|program| program.parent()?.parent());
    let mut found = prefixes.filter_map(|prefix| Some(installed(&within(root, prefix)?)));
    found.find(|versions| !versions.is_empty()).unwrap_or_default()
}

/// A path of the process as seen from here; `None` if it might lead above its root.
fn within(root: &Path, path: &Path) -> Option<PathBuf> {
    path.components().try_fold(root.to_owned(), |path, part| match part {
        Component::Normal(part) => Some(path.join(part)),
        Component::RootDir | Component::CurDir => Some(path),
        Component::ParentDir | Component::Prefix(_) => None,
    })
}

/// What is installed below a prefix such as `/opt/venv` or `/usr`.
fn installed(prefix: &Path) -> BTreeMap<String, String> {
    let libraries = [prefix.join("lib"), prefix.join("local/lib")];
    let pythons = libraries.iter().flat_map(|library| entries(library)).filter(|(name, _)| name.starts_with("python3"));
    let folders =
        pythons.take(MOST_FOLDERS).flat_map(|(_, path)| [path.join("site-packages"), path.join("dist-packages")]);
    let names = folders.flat_map(|folder| entries(&folder)).map(|(name, _)| name);
    names.filter_map(|name| package(&name)).collect()
}

fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES);
    listed.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect()
}

/// `vllm-0.11.0.dist-info` is version 0.11.0 of vllm (packaging.python.org, "Recording installed projects").
fn package(folder: &str) -> Option<(String, String)> {
    let (name, version) = folder.strip_suffix(".dist-info")?.rsplit_once('-')?;
    let name = name.to_ascii_lowercase().replace(['_', '.'], "-");
    (PACKAGES.contains(&name.as_str()) && !version.is_empty()).then(|| (name, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_process() {
        let root = tempfile::tempdir().unwrap();
        let folder = |path: &str| fs::create_dir_all(root.path().join(path)).unwrap();
        folder("usr/lib/python3/dist-packages/torch-1.0.dist-info");
        folder("opt/v/lib/python3.12/site-packages/torch-2.9.0+cu130.dist-info");
        folder("opt/v/lib/python3.12/site-packages/flashinfer_python-0.4.dist-info");
        folder("opt/v/lib/python3.12/site-packages/vllm");
        folder("opt/v/lib/python3.12/site-packages/numpy-2.0.dist-info");
        let check = |programs: &[&str], wanted: &[&str]| {
            let programs: Vec<PathBuf> = programs.iter().map(PathBuf::from).collect();
            let found = versions(root.path(), &programs);
            assert_eq!(found.iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>(), wanted);
        };
        check(&["/opt/v/bin/python", "/usr/bin/python3.12"], &["flashinfer-python 0.4", "torch 2.9.0+cu130"]);
        check(&["python", "/usr/bin/python3.12"], &["torch 1.0"]);
        check(&["/opt/../../v/bin/x"], &[]);
        check(&[], &[]);
    }
}
