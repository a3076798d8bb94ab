//! Cold prompts beside decoding requests.

use super::{
    arrival,
    cell::{input, near},
    cut, failed, request,
};
use crate::{
    stats::{
        cell::{CellResult, CellStats, CellStatus},
        mixed::Beside,
    },
    trace::{FailureKind, RequestTrace},
};

/// A background stream with a token every 10 ms, and every 50 ms while a prompt is read (4 to 5 s and 8 to 9 s).
fn background() -> RequestTrace {
    let read = |at: u64| (4_000..5_000).contains(&at) || (8_000..9_000).contains(&at);
    let times = std::iter::successors(Some(1_000_u64), |at| Some(at + if read(*at) { 50 } else { 10 }));
    let arrivals = (1_u32..).zip(times.take_while(|at| *at < 12_000)).map(|(n, at)| arrival(at, n)).collect();
    cut(request(0, 900, arrivals), 12_000)
}

fn prompt(sent_ms: u64, ttft_ms: u64) -> RequestTrace {
    request(0, sent_ms, vec![arrival(sent_ms + ttft_ms, 1)])
}

#[test]
fn speeds_before_during_and_after_a_prompt() {
    let (traces, alone) = ([background()], [prompt(100, 400)]);
    let arriving = [prompt(4_000, 1_000), prompt(8_000, 1_000)];
    let mut input = input(&traces, 1);
    input.beside = Beside { alone: &alone, arriving: &arriving };
    let cell = CellStats::decode(&input);
    near(cell.tok_s_before_prefill, 100.0);
    near(cell.tok_s_during_prefill, 20.0);
    near(cell.tok_s_after_prefill, 100.0);
    near(cell.ttft_alone_s.map(|s| s.p50), 0.4);
    near(cell.ttft_loaded_s.map(|s| s.p50), 1.0);
    assert_eq!(cell.ttft_loaded_s.map(|s| s.n), Some(2));
    assert_eq!(CellStats::decode(&super::cell::input(&traces, 1)).tok_s_before_prefill, None);
}

#[test]
fn prompts_that_fail_are_told() {
    let check = |arriving: &[RequestTrace], status: CellStatus, finding: Option<&str>| {
        let valid = CellResult { status: CellStatus::Valid, ..CellResult::not_drained(0.0, 0.0) };
        let result = CellResult { findings: Vec::new(), ..valid }.with_prompts(arriving);
        assert_eq!(result.status, status);
        assert_eq!(result.findings.first().map(|finding| finding.text.as_str()), finding);
    };
    let lost = || failed(prompt(6_000, 10), FailureKind::ServerError);
    check(&[prompt(4_000, 10)], CellStatus::Valid, None);
    let text = format!("1 of 2 cold prompts failed: {}.", FailureKind::ServerError.label());
    check(&[prompt(4_000, 10), lost()], CellStatus::Valid, Some(&text));
    let text = format!("1 of 1 cold prompts failed: {}.", FailureKind::ServerError.label());
    check(&[lost()], CellStatus::Failed(FailureKind::ServerError), Some(&text));
}
