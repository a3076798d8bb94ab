//! What the agent finds out about the machine and the process behind a target.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    process::{Child, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    http::{HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use speedmatrix_agent::{
    client::Target,
    host::gpu::{Source, Watched},
    runs::look,
};
use speedmatrix_shared::{
    gpu::{GpuReading, Traffic},
    plan::draft::parse_target,
    stats::gpu::EnergySource,
    target::TargetFacts,
};

use crate::{
    recorded::Recorded,
    rig::{Rig, draft, exact, simulator},
    spellings::{Spelling, spellings},
};

/// Number of the secret that is the server's own key.
pub(crate) const OWN_KEY: usize = 99;
/// Requests that the server answers: as many as a run needs to get to its cells.
const ANSWERED: usize = 8;
/// Spellings that each refusal after them repeats.
pub(crate) const REPEATED: usize = 6;
/// Says to this program, started by a test, that it is to be a server.
const SERVE: &str = "SPEEDMATRIX_TEST_SERVE";

/// A server in a process of its own: this very program, called with any words and variables. It ends with this.
pub(crate) struct Server {
    child: Child,
    _out: BufReader<ChildStdout>,
    pub(crate) url: String,
}

impl Server {
    /// Its words come after those that make it a server.
    pub(crate) fn start(words: &[String], variables: &[(String, String)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", "host::a_server", "--"]).args(words);
        command.envs(variables.iter().map(|(name, value)| (name, value))).env(SERVE, "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("http://") {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "the server ended before it listened");
        }
        let url = line[line.find("http://").unwrap()..].trim().to_owned();
        Self { child, _out: out, url }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Not a test: what [`Server`] runs. Its answers are as bad as can be: errors that repeat every secret.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server() {
    if std::env::var_os(SERVE).is_none() {
        return;
    }
    let models = r#"{"data":[{"id":"NAME","owned_by":"vllm","root":"s3://AK:ROOT@bucket/m","max_model_len":65536}]}"#;
    let models = models.replace("ROOT", &Spelling::secret(98)).replace("NAME", &model());
    let version = serde_json::json!({"version": format!("1.0+{}", Spelling::secret(OWN_KEY))}).to_string();
    let app = Router::new()
        .route("/v1/models", get(|| async move { models.into_response() }))
        .route("/version", get(|| async move { version.into_response() }))
        .route("/metrics", get(|| async { talkative(0, 4, StatusCode::NOT_IMPLEMENTED) }))
        .route("/v1/chat/completions", post(chat));
    let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, app).into_future());
    // Until the test ends.
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
}

/// It answers until the first cells are reached. Then each refusal repeats some other spellings, as a failure keeps only
/// the first words of a body.
/// Its key is in each of its words.
async fn chat(body: String) -> Response {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let asked = ASKED.fetch_add(1, Ordering::Relaxed);
    if let Some(refused) = asked.checked_sub(ANSWERED) {
        return talkative(refused * REPEATED, REPEATED, StatusCode::INTERNAL_SERVER_ERROR);
    }
    let asked: serde_json::Value = serde_json::from_str(&body).unwrap();
    if asked["model"] != model() {
        return (StatusCode::NOT_FOUND, "no such model").into_response();
    }
    let word = serde_json::json!({"model": model(), "choices": [{"index": 0, "delta": {"content": "word "}}]});
    let end = format!("stop {}", Spelling::secret(OWN_KEY));
    let end = serde_json::json!({"model": model(), "choices": [{"index": 0, "delta": {}, "finish_reason": end}]});
    let text = format!("data: {word}\n\n").repeat(8);
    ([(CONTENT_TYPE, "text/event-stream")], format!("{text}data: {end}\n\ndata: [DONE]\n\n")).into_response()
}

/// The name of its model: requests must ask for it to the letter, and nobody may keep it.
fn model() -> String {
    format!("model-{}", Spelling::secret(OWN_KEY))
}

fn talkative(from: usize, count: usize, status: StatusCode) -> Response {
    let all = spellings();
    let some = all.iter().cycle().skip(from).take(count);
    let text: Vec<String> = some.clone().map(Spelling::line).collect();
    let mut response =
        (status, serde_json::json!({"error": {"message": text.join(" | ")}}).to_string()).into_response();
    for spelling in some.filter(|spelling| spelling.room == "header") {
        let name = HeaderName::from_bytes(spelling.words[0].to_lowercase().as_bytes()).unwrap();
        response.headers_mut().insert(name, HeaderValue::from_str(&spelling.words[1]).unwrap());
    }
    response
}

async fn facts(url: &str) -> TargetFacts {
    look(&Target { url: parse_target(url).unwrap(), key: None }, None).await.unwrap().facts
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_process_behind_a_port_is_found() {
    let words = ["serve", "org/a model", "--api-key", "geheim", "--max-num-batched-tokens", "8192"];
    let words = words.map(ToOwned::to_owned);
    let variables = [("CUDA_VISIBLE_DEVICES", "4,5,6,7"), ("VLLM_API_KEY", "geheim"), ("EDITOR", "vi")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let server = Server::start(&words, &variables);
    let facts = facts(&server.url).await;
    let executable = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let command = facts.launch_command.expect("the command is known");
    assert_eq!(
        command,
        format!(
            "{executable} --exact --nocapture host::a_server -- serve 'org/a model' --api-key '<redacted>' \
             --max-num-batched-tokens 8192"
        )
    );
    let process = facts.process.expect("the process is known");
    assert_eq!(process.pid, Some(server.pid()));
    assert_eq!(process.executable, Some(executable));
    assert_eq!(process.processes, Some(1));
    assert_eq!(process.environment["CUDA_VISIBLE_DEVICES"], "4,5,6,7");
    assert_eq!(process.environment["VLLM_API_KEY"], "<redacted>");
    assert!(!process.environment.contains_key("EDITOR"));
    // The kernel tells the machine's start in whole seconds.
    assert!(process.started_unix_ms.unwrap() + 2_000 >= before, "{:?} < {before}", process.started_unix_ms);
    assert!(!facts.unknown.contains_key("launch_command"), "{:?}", facts.unknown);
    let hardware = facts.hardware;
    assert!(hardware.os.is_some() && hardware.kernel.is_some() && hardware.cpu.is_some(), "{hardware:?}");
    assert!(hardware.cpu_cores > Some(0) && hardware.ram_bytes > Some(0), "{hardware:?}");
}

#[tokio::test]
async fn a_simulator_in_this_program_has_no_machine() {
    let sim = tokio::task::spawn_blocking(|| simulator(exact(1.0))).await.unwrap();
    let facts = facts(&sim.base_url()).await;
    assert_eq!((facts.launch_command, facts.process, facts.hardware.os), (None, None, None));
    assert!(facts.unknown.is_empty(), "{:?}", facts.unknown);
    assert_eq!(facts.hardware.kind.as_deref(), Some("Simulated"));
    tokio::task::spawn_blocking(move || drop(sim)).await.unwrap();
}

/// A card's folder as AMD's driver makes it.
fn amd_card(cards: &std::path::Path, number: u32) {
    let device = cards.join(format!("card{number}/device"));
    let sensors = device.join("hwmon/hwmon3");
    std::fs::create_dir_all(&sensors).unwrap();
    let files = [
        (&device, "vendor", "0x1002"),
        (&device, "device", "0x74a1"),
        (&device, "gpu_busy_percent", "98"),
        (&device, "mem_info_vram_total", "206141652992"),
        (&device, "mem_info_vram_used", "179310690304"),
        (&device, "current_link_speed", "32.0 GT/s PCIe"),
        (&device, "current_link_width", "16"),
        (&sensors, "power1_input", "500000000"),
        (&sensors, "power1_cap", "750000000"),
        (&sensors, "temp1_input", "52000"),
        (&sensors, "temp2_input", "78000"),
        (&sensors, "freq1_input", "2100000000"),
    ];
    for (folder, name, text) in files {
        std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
    }
}

#[test]
fn counters_of_a_card_are_read_from_its_drivers_table() {
    let folder = tempfile::tempdir().unwrap();
    amd_card(folder.path(), 1);
    let mut table = [0_u8; 300];
    table[2..4].copy_from_slice(&[1, 7]);
    table[24..32].copy_from_slice(&(250_u64 << 16).to_le_bytes());
    table[136..144].copy_from_slice(&40_u64.to_le_bytes());
    std::fs::write(folder.path().join("card1/device/gpu_metrics"), table).unwrap();
    let gpus = Source::amd(folder.path()).all();
    let links = Traffic { received_bytes: 40_000, sent_bytes: 0 };
    assert_eq!((gpus[0].energy_j, gpus[0].fabric, gpus[0].power_w), (Some(250.0), Some(links), Some(500.0)));
}

#[test]
fn a_run_records_what_its_gpus_do() {
    let folder = tempfile::tempdir().unwrap();
    for number in [1, 2] {
        amd_card(folder.path(), number);
    }
    std::fs::create_dir_all(folder.path().join("card1-DP-1")).unwrap();
    let source = Source::amd(folder.path());
    let gpus = source.all();
    let sim = simulator(exact(1.0));
    let rig = Rig::new(&sim.base_url());
    *rig.gpus.lock().unwrap() = Watched::new(source, gpus);
    let seen = rig.run(draft("1K", "2", "2s", "128"));
    let stats = &seen.result("decode-1K-2").stats;
    let gpu = stats.gpu.as_ref().expect("the GPUs were looked at");
    assert_eq!((gpu.gpus, gpu.silent, gpu.power_w, gpu.power_limit_w), (2, 0, Some(1_000.0), Some(1_500.0)));
    assert_eq!((gpu.idle_power_w, gpu.temperature_max_c, gpu.clock_mhz), (Some(1_000.0), Some(78.0), Some(2_100.0)));
    assert!(gpu.samples >= 4, "{} looks in two seconds", gpu.samples);
    assert_eq!(gpu.energy_source, Some(EnergySource::Power));
    // 1,000 W for two seconds.
    let energy = gpu.energy_j.unwrap();
    assert!((energy - 2_000.0).abs() < 1.0, "{energy} J");
    let per_token = energy / stats.output_tokens.unwrap() as f64;
    assert_eq!(gpu.energy_per_token_j, Some(per_token));
    // It does not tell why its clocks are not higher.
    assert_eq!((gpu.power_capped, gpu.cause()), (None, None));
    let prefill = seen.result("prefill-1K-1").stats.gpu.as_ref().expect("a prefill has them too");
    assert_eq!(prefill.power_w.is_some(), prefill.samples > 0);
}

#[test]
fn a_run_uses_some_of_many_gpus_and_says_what_held_them_back() {
    // Of one of them the power is not told.
    let gpu = |index: u32| {
        let power = if index == 6 { "" } else { "power_usage = 690000 mW\n" };
        let fixed = "name = NVIDIA H200\nthrottle_reasons = 0x4\nenforced_power_limit = 700000 mW\nclock_sm = 1500\n\
                     pcie_rx_bytes = 7000\npcie_tx_bytes = 9000\n";
        format!("device {index}\nuuid = GPU-{index}\ntotal_energy_consumption = 5000 mJ\n{fixed}{power}")
    };
    let text = (0..16).map(gpu).collect::<Vec<_>>().concat();
    let source = Source::Nvml(Box::new(Recorded::read(&text)));
    let all = source.all();
    let used: Vec<GpuReading> = all.into_iter().filter(|gpu| (4..8).contains(&gpu.index)).collect();
    let sim = simulator(exact(1.0));
    let rig = Rig::new(&sim.base_url());
    *rig.gpus.lock().unwrap() = Watched::new(source, used);
    let seen = rig.run(draft("1K", "1", "1s", "64"));
    let result = seen.result("decode-1K-1");
    let gpu = result.stats.gpu.as_ref().expect("the GPUs were looked at");
    // One of the four does not tell its power: the sum of the others would look like less.
    assert_eq!((gpu.gpus, gpu.silent, gpu.power_w, gpu.power_limit_w), (4, 1, None, Some(2_800.0)));
    assert_eq!((gpu.energy_j, gpu.energy_source), (Some(0.0), Some(EnergySource::Counter)));
    assert_eq!((gpu.power_capped, gpu.pcie_bytes_per_s, gpu.fabric_bytes_per_s), (Some(1.0), Some(0.0), None));
    let finding = result.findings.iter().find(|finding| finding.code == "gpu_power_capped").unwrap();
    insta::assert_snapshot!(finding.text, @"The GPUs were held back by their power limit for 100 % of the time (— of 2,800 W).");
}

#[test]
fn a_lost_gpu_is_named_and_the_others_go_on() {
    let text = "device 0\nname = A\npower_usage = 500000 mW\ndevice 1\nname = A\npower_usage -> ERROR_GPU_IS_LOST\n";
    let source = Source::Nvml(Box::new(Recorded::read(text)));
    // It answered when the run began.
    let gpus = [0, 1].map(|index| GpuReading { index, ..GpuReading::default() }).to_vec();
    let sim = simulator(exact(4.0));
    let rig = Rig::new(&sim.base_url());
    *rig.gpus.lock().unwrap() = Watched::new(source, gpus);
    let seen = rig.run(draft("1K", "1", "1s", "64"));
    let result = seen.result("decode-1K-1");
    let gpu = result.stats.gpu.as_ref().expect("the GPUs were looked at");
    assert_eq!((gpu.lost.as_slice(), gpu.silent, gpu.power_w), ([1].as_slice(), 1, None));
    let finding = result.findings.iter().find(|finding| finding.code == "gpu_lost").unwrap();
    insta::assert_snapshot!(finding.text, @"GPU 1 was lost: it does not answer any more, and these numbers are suspect.");
}
