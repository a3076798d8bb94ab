//! A process's own words, as they may be shown: its command line and its variables, without secrets.

use std::collections::BTreeMap;

use super::Unknown;
use crate::secret;

/// Longest command line that is shown, in bytes.
const LONGEST_COMMAND: usize = 32 * 1_024;
/// Most variables that are shown …
const MOST_VARIABLES: usize = 128;
/// … and the longest value, in characters.
const LONGEST_VALUE: usize = 512;

/// Variables that are shown: those that choose devices, threads, kernels and libraries.
const VARIABLES: &[&str] = &[
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HF_HUB_OFFLINE",
    "LD_PRELOAD",
    "PYTHONHASHSEED",
    "TOKENIZERS_PARALLELISM",
    "TRANSFORMERS_OFFLINE",
];
/// And all that begin like this.
const FAMILIES: &[&str] = &[
    "AITER_",
    "CUBLAS",
    "CUDA_",
    "CUDNN_",
    "DG_",
    "FLASHINFER_",
    "GGML_",
    "GLOO_",
    "HIP_",
    "HSA_",
    "LLAMA_ARG_",
    "LMCACHE_",
    "MIOPEN_",
    "MKL_",
    "NCCL_",
    "NVSHMEM_",
    "OLLAMA_",
    "OMP_",
    "PYTORCH_",
    "RCCL_",
    "SGLANG_",
    "SGL_",
    "TORCHINDUCTOR_",
    "TORCH_",
    "TRITON_",
    "TRTLLM_",
    "UCX_",
    "VLLM_",
];

/// A command line as one line that a shell reads as the same words. Secrets are replaced.
pub(super) fn command(words: &[String]) -> Result<String, Unknown> {
    let [first, rest @ ..] = words else { return Err(Unknown::Gone) };
    // Workers and some servers put a title in its place.
    if rest.iter().all(String::is_empty) && first.contains("::") {
        return Err(Unknown::Renamed { name: secret::redact(first, None) });
    }
    let mut shown = secret::argv(words);
    let mut length = 0;
    let most = shown.iter().position(|word| {
        length += word.len() + 1;
        length > LONGEST_COMMAND
    });
    shown.truncate(most.unwrap_or(shown.len()));
    // The kernel parts words by NUL, so none has one.
    let line = shlex::try_join(shown.iter().map(String::as_str)).map_err(|_nul_within| Unknown::Gone)?;
    Ok(if most.is_some() { format!("{line} …") } else { line })
}

/// The words of `/proc/PID/cmdline`, or the lines of its `environ`: each ends with NUL.
pub(super) fn words(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The variables that are shown.
pub(super) fn environment(lines: &[String]) -> BTreeMap<String, String> {
    let shown = |name: &str| VARIABLES.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family));
    let pairs = lines.iter().filter_map(|line| line.split_once('='));
    let clean = |(name, value): (&str, &str)| {
        let value: String = secret::environment(name, value).chars().take(LONGEST_VALUE).collect();
        (name.to_owned(), value)
    };
    pairs.filter(|(name, _)| shown(name)).take(MOST_VARIABLES).map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted() {
        let check = |bytes: &[u8], wanted: Result<&str, &str>| {
            let got = command(&words(bytes)).map_err(|unknown| unknown.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), wanted);
        };
        check(b"/opt/v/bin/python\0/opt/v/bin/vllm\0serve\0a b\0", Ok("/opt/v/bin/python /opt/v/bin/vllm serve 'a b'"));
        check(b"vllm\0--api-key\0k\0--port\08000\0", Ok("vllm --api-key '<redacted>' --port 8000"));
        check(b"x\0{\"a\": 1}\0\0", Ok("x '{\"a\": 1}' ''"));
        check(b"", Err("the process ended while it was looked at"));
        check(
            b"VLLM::APIServer_0\0\0\0\0",
            Err("the process has replaced its command line by the name \"VLLM::APIServer_0\""),
        );
        let long = [vec![b'x'; LONGEST_COMMAND - 10], vec![0], vec![b'y'; 100], vec![0]].concat();
        assert!(command(&words(&long)).unwrap().ends_with("x …"));
    }

    #[test]
    fn only_variables_that_matter_are_shown() {
        let bytes = b"HOME=/h\0VLLM_API_KEY=k\0CUDA_VISIBLE_DEVICES=0,1\0NCCL_P2P_LEVEL=SYS\0HF_TOKEN=t\0x\0";
        let shown = environment(&words(bytes));
        let lines: Vec<String> = shown.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(lines, ["CUDA_VISIBLE_DEVICES=0,1", "NCCL_P2P_LEVEL=SYS", "VLLM_API_KEY=<redacted>"]);
    }
}
