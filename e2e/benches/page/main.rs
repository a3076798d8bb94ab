//! What the page costs in a real Chromium: script and frames of a live matrix of 1,000 cells, a waterfall of 100,000
//! requests, memory over an hour, and its size. A script that runs before the page stands for the agent's data, so that
//! the page is the one people get. `cargo xtask bench-web` builds it and starts this; figures need an idle machine.
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

#[path = "../../tests/browser/rig.rs"]
#[expect(dead_code, reason = "a benchmark needs less of it than the tests")]
mod rig;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use speedmatrix_shared::{
    api::PROTOCOL,
    detail::{
        CellDetail,
        gpu::GpuLines,
        timeline::{EngineLines, Timeline},
    },
    event::{Envelope, RunEvent},
    id::CellId,
    plan::PlanDraft,
    sample,
    state::{Cell, RunState},
    units::Nanos,
};
use thirtyfour::{cdp::domains::page::AddScriptToEvaluateOnNewDocument, prelude::*};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::rig::{Rig, no_errors, until, wait_for};

const SCRIPT: &str = include_str!("script.js");
/// Ticks of a tenth of a second for which the live matrix is looked at.
const TICKS: u32 = 100;
/// Ticks of an hour.
const HOUR_TICKS: u32 = 36_000;
/// Ticks after which the charts have all that they keep.
const FULL_TICKS: u32 = 6_000;
/// Requests of the waterfall.
const REQUESTS: u32 = 100_000;
/// Milliseconds for which it is panned.
const PAN_MS: u32 = 3_000;

#[tokio::main]
async fn main() -> Result<()> {
    // `cargo test` runs benches too, where nothing is to be measured.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let rig = Rig::start(&[]).await?;
    println!("{:<52} {:>14} {:>12}", "", "measured", "asked");
    size(&rig).await?;
    live(&rig).await?;
    hour(&rig).await?;
    waterfall(&rig).await
}

fn row(what: &str, measured: &str, asked: &str) {
    println!("{what:<52} {measured:>14} {asked:>12}");
}

/// The page's program as it is and as it is sent.
async fn size(rig: &Rig) -> Result<()> {
    let index = String::from_utf8_lossy(&get(rig, "/", "identity").await?).into_owned();
    let name = index.split('"').find(|part| part.ends_with("_bg.wasm")).context("the page names no wasm file")?;
    for (coding, what, asked) in [("identity", "page's wasm, raw", ""), ("br", "page's wasm, brotli", "<= 500 KB")] {
        let bytes = get(rig, name, coding).await?.len();
        row(what, &format!("{:.0} KB", bytes as f64 / 1e3), asked);
    }
    Ok(())
}

/// The body of a file, in the coding that was asked for.
async fn get(rig: &Rig, path: &str, coding: &str) -> Result<Vec<u8>> {
    let host = rig.url.trim_start_matches("http://").trim_end_matches('/');
    let path = format!("/{}", path.trim_start_matches('/'));
    let mut stream = TcpStream::connect(host).await?;
    let ask = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: {coding}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").context("no end of the answer's head")?;
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    ensure!(head.contains(" 200 ") && (coding == "identity" || head.contains(": br")), "{path}: {head}");
    Ok(answer.split_off(end + 4))
}

/// A run of some 1,000 cells, all but one measured.
fn big_run() -> Result<RunState> {
    let contexts: Vec<String> = (1..=32).map(|k| format!("{k}K")).collect();
    let concurrency: Vec<String> = (1..=31).map(|n| n.to_string()).collect();
    let draft = PlanDraft {
        target: "bench".into(),
        contexts: contexts.join(","),
        concurrency: concurrency.join(","),
        ..PlanDraft::default()
    };
    let plan = draft.try_into().map_err(|errors| anyhow::anyhow!("the plan is invalid: {errors:?}"))?;
    let started = RunEvent::RunStarted { plan, started_unix_ms: 1_796_160_600_000, tool: "bench".into() };
    let first = Envelope { seq: 0, at: Nanos(0), event: started };
    let mut state = RunState::start("bench".parse()?, &first)?;
    let result = measured().context("the sample has no measured cell")?;
    let cells: Vec<CellId> = state.cells.iter().map(|cell| cell.id).collect();
    for cell in &cells {
        let event = RunEvent::CellFinished { cell: *cell, result: Box::new(result.clone()) };
        state.apply(&Envelope { seq: state.next_seq, at: Nanos(state.next_seq * 1_000), event })?;
    }
    let last = *cells.last().context("the plan has no cell")?;
    let event = RunEvent::CellStarted { cell: last };
    state.apply(&Envelope { seq: state.next_seq, at: Nanos(state.next_seq * 1_000), event })?;
    Ok(state)
}

fn measured() -> Option<speedmatrix_shared::stats::cell::CellResult> {
    sample::reference().cell("decode-8K-16".parse().ok()?).and_then(Cell::result).cloned()
}

/// What the script stands for.
fn data() -> Result<Value> {
    let state = big_run()?;
    let cells: Vec<CellId> = state.cells.iter().map(|cell| cell.id).collect();
    let last = cells.last().context("the plan has no cell")?;
    let finished = RunEvent::CellFinished { cell: *last, result: Box::new(measured().context("no measured cell")?) };
    let detail = CellDetail {
        zero: Nanos(0),
        span_s: f64::from(REQUESTS) / 256.0 + 1.0,
        load: state.plan.load(),
        stages: None,
        timeline: Timeline::default(),
        engine: EngineLines::default(),
        gpu: GpuLines::default(),
        distributions: Vec::new(),
        failures: Vec::new(),
        requests: REQUESTS.into(),
    };
    let gauge = json!({"at": 0, "cell": last, "phase": "measure", "phase_for_s": 1.0, "tok_s": 1.0, "in_flight": 16,
        "decoding": 16, "waiting": 0, "window_tok_s": 1_000.5});
    Ok(json!({"seq": state.next_seq, "at": 1_000_000_000, "protocol": PROTOCOL, "version": env!("CARGO_PKG_VERSION"),
        "cells": &cells[..cells.len() - 1], "finished": finished, "gauge": gauge, "detail": detail, "labels": {},
        "requests": REQUESTS, "state": state}))
}

/// A browser whose agent is the script.
async fn browser(rig: &Rig) -> Result<WebDriver> {
    let page = rig.browser(1440, 900).await?;
    let source = SCRIPT.replace("BENCH;", &format!("{};", data()?));
    let script = AddScriptToEvaluateOnNewDocument { source, world_name: None, include_command_line_api: None };
    page.cdp().send(script).await?;
    page.cdp().send_raw("Performance.enable", json!({})).await?;
    Ok(page)
}

async fn open(page: &WebDriver, url: &str, shows: &str) -> Result<()> {
    page.goto(url).await?;
    wait_for(page, shows).await?;
    let open = "return window.__bench.socket !== null && document.querySelector('[data-testid=conn]').innerText";
    until("the page to be connected", async || {
        let said: Value = page.execute(open, vec![]).await?.convert()?;
        Ok((said == "Connected").then_some(()))
    })
    .await
}

/// One of Chromium's own counters.
async fn metric(page: &WebDriver, name: &str) -> Result<f64> {
    let all = page.cdp().send_raw("Performance.getMetrics", json!({})).await?;
    let metrics = all["metrics"].as_array().context("Chromium tells no metrics")?;
    let found = metrics.iter().find(|metric| metric["name"] == name).and_then(|metric| metric["value"].as_f64());
    found.with_context(|| format!("Chromium does not tell {name}"))
}

async fn number(page: &WebDriver, script: &str) -> Result<f64> {
    Ok(page.execute(script, vec![]).await?.convert()?)
}

/// A matrix of 1,000 cells that changes ten times a second.
async fn live(rig: &Rig) -> Result<()> {
    let page = browser(rig).await?;
    open(&page, &format!("{}/runs/bench", rig.url), "[data-testid=matrix] td[data-cell]").await?;
    let cells = number(&page, "return document.querySelectorAll('[data-testid=matrix] td[data-cell]').length").await?;
    let usable = number(&page, "return window.__bench.usable").await?;
    row(&format!("page with {cells} cells usable after"), &format!("{usable:.0} ms"), "< 1000 ms");
    let before = [metric(&page, "ScriptDuration").await?, metric(&page, "TaskDuration").await?];
    page.execute("window.__bench.longBefore = window.__bench.long", vec![]).await?;
    let run = format!(
        "const done = arguments[0]; let left = {TICKS};
         const timer = setInterval(() => {{ window.__tick(true); if (--left === 0) {{ clearInterval(timer); done(0); }} }}, 100);"
    );
    page.execute_async(run, vec![]).await?;
    let after = [metric(&page, "ScriptDuration").await?, metric(&page, "TaskDuration").await?];
    let each = |n: usize| (after[n] - before[n]) / f64::from(TICKS) * 1e3;
    row("script per update at 10 Hz", &format!("{:.1} ms", each(0)), "<= 8 ms");
    row("all work of the page's thread per update", &format!("{:.1} ms", each(1)), "");
    let long = number(&page, "return window.__bench.long - window.__bench.longBefore").await?;
    row(&format!("tasks over 50 ms in {TICKS} updates"), &format!("{long:.0}"), "0");
    no_errors(&page).await?;
    Ok(page.quit().await?)
}

/// Memory after the charts are full, and an hour later.
async fn hour(rig: &Rig) -> Result<()> {
    let page = browser(rig).await?;
    open(&page, &format!("{}/runs/bench", rig.url), "[data-testid=matrix] td[data-cell]").await?;
    play(&page, FULL_TICKS).await?;
    let before = memory(&page).await?;
    play(&page, HOUR_TICKS).await?;
    let after = memory(&page).await?;
    let mb = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    row("JavaScript heap, charts full", &mb(before[0]), "");
    row("  growth over an hour of live run", &mb(after[0] - before[0]), "flat");
    row("wasm memory, charts full", &mb(before[1]), "");
    row("  growth over an hour of live run", &mb(after[1] - before[1]), "flat");
    no_errors(&page).await?;
    Ok(page.quit().await?)
}

/// Some ticks as fast as they go; each hundredth measures a cell.
async fn play(page: &WebDriver, ticks: u32) -> Result<()> {
    let part = "const done = arguments[0]; let left = 2000;
        const go = () => {
            for (let n = 0; n < 20; n += 1, left -= 1) window.__tick(left % 100 === 0);
            if (left > 0) setTimeout(go); else done(0);
        };
        go();";
    // In parts, as a browser ends a script that takes longer than half a minute.
    for _ in 0..ticks.div_ceil(2_000) {
        page.execute_async(part, vec![]).await?;
    }
    Ok(())
}

/// Used JavaScript heap and wasm memory, bytes.
async fn memory(page: &WebDriver) -> Result<[f64; 2]> {
    page.cdp().send_raw("HeapProfiler.collectGarbage", json!({})).await?;
    let wasm = "const wasm = window.__bench.wasm; return wasm ? wasm.memory.buffer.byteLength : 0";
    Ok([metric(page, "JSHeapUsedSize").await?, number(page, wasm).await?])
}

/// A waterfall that is panned with the keyboard, once a frame.
async fn waterfall(rig: &Rig) -> Result<()> {
    let page = browser(rig).await?;
    open(&page, &format!("{}/runs/bench/cells/decode-8K-16?t=0..100", rig.url), ".fall canvas").await?;
    let pan = format!(
        "const done = arguments[0], canvas = document.querySelector('.fall canvas'), began = performance.now();
         let frames = 0, worst = 0, last = began;
         const place = canvas.getBoundingClientRect();
         const step = now => {{
             frames += 1; worst = Math.max(worst, now - last); last = now;
             const way = Math.floor((now - began) / 1000) % 2 ? -1 : 1;
             canvas.dispatchEvent(new WheelEvent('wheel', {{ deltaX: way * 40, deltaY: 0, bubbles: true, cancelable: true,
                 clientX: place.left + place.width / 2, clientY: place.top + 20 }}));
             if (now - began < {PAN_MS}) requestAnimationFrame(step);
             else done([frames / (now - began) * 1000, worst]);
         }};
         requestAnimationFrame(step);"
    );
    let [fps, worst]: [f64; 2] = page.execute_async(pan, vec![]).await?.convert()?;
    row(&format!("waterfall of {REQUESTS} requests, panned"), &format!("{fps:.0} fps"), "60 fps");
    row("  longest frame", &format!("{worst:.0} ms"), "");
    no_errors(&page).await?;
    Ok(page.quit().await?)
}
