//! Pictures of every page for README and docs, wide and narrow, light and dark: an agent of its own, a run on the
//! simulator, and a Chromium. `cargo xtask screenshots` builds what it needs and starts it with the folder to write to.

#[path = "../../tests/browser/rig.rs"]
#[expect(dead_code, reason = "pictures need less of it than the tests")]
mod rig;

mod camera;

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use thirtyfour::prelude::*;

use crate::{
    camera::Camera,
    rig::{Rig, press, until, wait_for, wait_text},
};

/// Slow enough that a busy machine disturbs no cell: a picture is to show what a quiet one measures.
const CLOCK_FACTOR: &str = "6";
/// Measured cells from which on a run is in its middle.
const MIDDLE: u64 = 20;
/// Starts a run on the built-in simulator: its demonstration's plan with some fields changed.
const START: &str = "
const [changes, done] = arguments;
fetch('/api/v1/info').then(answer => answer.json()).then(info => {
    const plan = {...info.targets.find(target => target.demo_plan).demo_plan, ...changes};
    return fetch('/api/v1/runs', {method: 'POST', headers: {'content-type': 'application/json'},
        body: JSON.stringify({plan})});
}).then(answer => answer.json()).then(started => done(started.id || JSON.stringify(started)))";

#[tokio::main]
async fn main() -> Result<()> {
    let folder: PathBuf = std::env::args_os().nth(1).context("name the folder for the pictures")?.into();
    let rig = Rig::start(&["--demo-clock-factor", CLOCK_FACTOR]).await?;
    let camera = Camera::open(&rig, folder.clone()).await?;
    visit(&camera, "/", "[data-testid=first-use]").await?;
    camera.shoot("first-use", "h1").await?;
    let [first, second] = [half(&camera, "First night", "1").await?, half(&camera, "Second night", "2").await?];
    running(&camera).await?;
    visit(&camera, "/runs/reference", "[data-testid=measurements]").await?;
    camera.shoot("report", "h1").await?;
    camera.shoot_wide("curves", "#charts").await?;
    visit(&camera, &format!("/runs/{first}/cells/decode-32K-16"), "[data-testid=request-table] tbody tr").await?;
    camera.shoot("cell", "h1").await?;
    visit(&camera, &format!("/compare?a={first}&b={second}"), "[data-testid=cells] tbody tr").await?;
    camera.shoot("compare", "h1").await?;
    set_up(&camera).await?;
    camera.close().await?;
    sharing(folder).await
}

/// Opens a page of the camera's agent and waits until it shows something.
async fn visit(camera: &Camera, path: &str, shows: &str) -> Result<()> {
    camera.page.goto(format!("{}{path}", camera.agent)).await?;
    wait_for(&camera.page, shows).await?;
    Ok(())
}

/// Starts a run and opens its page; gives its id.
async fn start(camera: &Camera, changes: Value) -> Result<String> {
    let id: String = camera.page.execute_async(START, vec![changes]).await?.convert()?;
    ensure!(!id.contains('{'), "no run was started: {id}");
    visit(camera, &format!("/runs/{id}"), "[data-testid=status]").await?;
    Ok(id)
}

/// Measures one half of a comparison; gives the run's id.
async fn half(camera: &Camera, name: &str, seed: &str) -> Result<String> {
    let plan = json!({"name": name, "contexts": "8K,16K,32K", "concurrency": "1,4,16,64", "duration": "10s",
        "repeats": "3", "seed": seed});
    let id = start(camera, plan).await?;
    wait_text(&camera.page, "[data-testid=status]", |text| text.contains("Finished")).await?;
    Ok(id)
}

/// A run in its middle: its own page, and the list on which it stands on top.
async fn running(camera: &Camera) -> Result<()> {
    let page = &camera.page;
    let id = start(camera, json!({"contexts": "8K,16K,32K,64K,128K,256K", "duration": "10s"})).await?;
    let measured = "return document.querySelectorAll('[data-testid=matrix] td[class^=q]').length";
    until("the middle of the run", async || {
        let count: u64 = page.execute(measured, vec![]).await?.convert()?;
        Ok((count >= MIDDLE).then_some(()))
    })
    .await?;
    camera.shoot("live", ".live-bar").await?;
    visit(camera, "/", "[data-testid=run-card]").await?;
    camera.shoot("runs", "h1").await?;
    visit(camera, &format!("/runs/{id}"), "[data-testid=stop]").await?;
    press(page, "stop").await?;
    press(page, "stop-confirm").await?;
    wait_text(page, "[data-testid=status]", |text| text.contains("topped")).await?;
    Ok(())
}

/// A plan with a cell of each verdict, and some cells left out.
async fn set_up(camera: &Camera) -> Result<()> {
    visit(camera, "/new", "[data-testid=saved-target]").await?;
    press(&camera.page, "saved-target").await?;
    wait_for(&camera.page, "[data-testid=probe]").await?;
    for (field, text) in
        [("contexts", "8K,32K,128K,512K,1024K"), ("concurrency", "1,4,16,64,256,512"), ("leave-out", "8Kx1,8Kx4")]
    {
        let field = wait_for(&camera.page, &format!("[name={field}]")).await?;
        field.clear().await?;
        field.send_keys(text).await?;
    }
    wait_text(&camera.page, "[data-testid=found-state]", |text| !text.contains("Looking")).await?;
    wait_for(&camera.page, "[data-testid=preview] td.queue").await?;
    camera.shoot("set-up", "h1").await?;
    camera.shoot("set-up-matrix", "[data-testid=preview]").await
}

/// Links of an agent that others reach.
async fn sharing(folder: PathBuf) -> Result<()> {
    let rig = Rig::start(&["--require-token"]).await?;
    let camera = Camera::open(&rig, folder).await?;
    camera.page.goto(rig.link(&["--operator"]).await?).await?;
    wait_for(&camera.page, "[data-run=reference]").await?;
    visit(&camera, "/settings?run=reference", "#link-name").await?;
    camera.page.find(By::Css("#link-name")).await?.send_keys("Ann").await?;
    wait_for(&camera.page, "[data-testid=new-link] button").await?.click().await?;
    wait_text(&camera.page, "[data-testid=links]", |text| text.contains("Ann")).await?;
    camera.shoot("sharing", "h1").await?;
    camera.close().await
}
