//! Scenarios of the case collection that can be played against the simulator.

use std::{
    net::TcpListener,
    process::{Command, Stdio},
    time::Duration,
};

use speedmatrix_agent::sim::{Physics, SimConfig};
use speedmatrix_shared::{event::RunOutcome, plan::PlanDraft, units::Nanos};

use crate::rig::{Rig, draft, exact, monotonic_ns, received, simulator};

/// C09: the server loaded its model again. The request that waits for it is one that only warms the engine up: the wait is
/// in no row.
#[test]
fn a_first_request_after_idleness_stays_out_of_the_cell() {
    // The first request is the calibration's, the second warms up; 1.5 real seconds are 6 simulated ones.
    let sim = simulator(SimConfig { script: "slow-header:1500,at:2".parse().unwrap(), ..exact(4.0) });
    let seen = Rig::new(&sim.base_url()).run(draft("1K", "2", "2s", "128"));
    assert_eq!(seen.outcome, RunOutcome::Finished);
    let cold = seen.result("prefill-1K-1").stats.ttft_s.unwrap();
    assert!(cold.max < 3.0, "{cold:?}");
    let measured = seen.result("decode-1K-2").stats.ttft_s.unwrap();
    assert!(measured.max < 3.0, "{measured:?}");
}

/// D24: a company's proxy in the environment is not for servers on this machine.
#[test]
fn loopback_never_goes_through_a_proxy() {
    let sim = simulator(exact(20.0));
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_speedmatrix"));
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        program.env(name, &address);
    }
    program.env_remove("NO_PROXY").env_remove("no_proxy").env_remove("SPEEDMATRIX_KEY").stdin(Stdio::null());
    program.args(["run", "--target", &sim.base_url(), "--contexts", "1K", "--concurrency", "1", "--duration", "1s"]);
    program.args(["--max-output", "64", "--store"]).arg(folder.path().join("runs.sqlite3"));
    let output = program.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(sim.log().totals().completed > 0);
    let asked = proxy.accept().unwrap_err();
    assert_eq!(asked.kind(), std::io::ErrorKind::WouldBlock, "the proxy was asked");
}

/// F03: two sweeps of cold cells, and not one block of 256 tokens that an earlier request had brought.
#[test]
fn no_cold_cell_is_served_from_an_earlier_one() {
    let sim = simulator(exact(8.0));
    let mut rig = Rig::new(&sim.base_url());
    for id in ["0198-first", "0198-second"] {
        rig.id = id;
        let plan = PlanDraft { prompts: "cold".into(), ..draft("1K,4K", "1,2,4", "1s", "64") };
        let seen = rig.run(plan);
        assert_eq!(seen.outcome, RunOutcome::Finished);
        assert_eq!(seen.result("decode-4K-4").stats.cached_share, Some(0.0));
    }
    let records = sim.log().records();
    assert!(records.len() > 40, "{}", records.len());
    // Requests that only warm the engine up have 16 tokens and share their prompt on purpose.
    let mut measured = records.iter().filter(|request| request.output_tokens != 16);
    assert!(measured.all(|request| request.cached_tokens == 0), "a prompt was found in the cache");
}

/// G06, without its busy machine: no pool or limit of the client holds streams back, and gaps are the server's.
#[test]
fn all_streams_are_open_at_once() {
    let step = Duration::from_millis(250);
    let sim = simulator(SimConfig { physics: Physics::Fixed { first_token: step, step }, ..exact(1.0) });
    let seen = Rig::new(&sim.base_url()).run(draft("1K", "128", "3s", "64"));
    let (ramp, _) = seen.opened("decode-1K-128");
    let at = |time| monotonic_ns(seen.clock, time);
    // Answers take 16 seconds: all that were received in the first one were in flight together.
    let first = received(&sim.log(), at(ramp) - 2_000_000, at(ramp + Nanos::from_secs(1)));
    assert_eq!(first.len(), 128);
    let stats = &seen.result("decode-1K-128").stats;
    let gap = stats.itl_s.unwrap().p50;
    assert!((gap / step.as_secs_f64() - 1.0).abs() < 0.05, "{gap}");
    assert!(stats.client_lag_s.is_some(), "the client's own delay is part of the result");
}
