//! A run from the click on Start to its report, watched by two browsers; and what a killed agent leaves.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use thirtyfour::prelude::*;

use crate::rig::{Rig, no_errors, shot, until, wait_for, wait_text};

/// Text of every matrix cell by its id.
pub(crate) async fn matrix(page: &WebDriver) -> Result<BTreeMap<String, String>> {
    let script = "return Object.fromEntries([...document.querySelectorAll('[data-testid=matrix] td[data-cell]')].map(
        cell => [cell.dataset.cell, cell.innerText.trim()]))";
    Ok(page.execute(script, vec![]).await?.convert()?)
}

/// Cells with a colour step: those that are measured.
pub(crate) async fn finished(page: &WebDriver) -> Result<u64> {
    let script = "return document.querySelectorAll('[data-testid=matrix] td[class^=q]').length";
    Ok(page.execute(script, vec![]).await?.convert()?)
}

pub(crate) async fn set(page: &WebDriver, name: &str, text: &str) -> Result<()> {
    let field = wait_for(page, &format!("[name={name}]")).await?;
    field.clear().await?;
    field.send_keys(text).await?;
    Ok(())
}

/// Starts a run of four cells on the simulator, soon over (some ten seconds), and gives its address.
pub(crate) async fn start_small_run(page: &WebDriver, agent: &str) -> Result<String> {
    start_run(page, agent, "60s").await
}

/// Starts a run of four cells that is still going on when a test has done its steps, however slow the machine.
pub(crate) async fn start_long_run(page: &WebDriver, agent: &str) -> Result<String> {
    start_run(page, agent, "10m").await
}

/// Chooses the demo target and a plan of 2 × 2 cells, and starts it. The window of each cell is `window` of the simulator's time, which runs 36 times as fast as ours.
async fn start_run(page: &WebDriver, agent: &str, window: &str) -> Result<String> {
    page.goto(agent).await?;
    wait_for(page, "a[href^='/new']").await?.click().await?;
    wait_for(page, "[data-testid=saved-target]").await?.click().await?;
    set(page, "contexts", "8K,16K").await?;
    set(page, "concurrency", "1,4").await?;
    set(page, "duration", window).await?;
    wait_for(page, "[data-testid=start]").await?.click().await?;
    let url = until("the run's page", async || {
        let url = page.current_url().await?;
        Ok(url.path().starts_with("/runs/").then(|| url.to_string()))
    });
    url.await
}

#[tokio::test]
async fn a_run_fills_in_two_browsers_and_becomes_a_report() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let (one, two) = (rig.browser(1440, 900).await?, rig.browser(390, 844).await?);
    let url = start_small_run(&one, &rig.url).await?;
    until("the first cell", async || Ok((finished(&one).await? >= 1).then_some(()))).await?;
    two.goto(&url).await?;
    wait_text(&one, "[data-testid=watching]", |text| text.contains('2')).await?;
    shot(&one, "live").await?;
    shot(&two, "live-390").await?;
    for page in [&one, &two] {
        wait_text(page, "[data-testid=status]", |text| text.contains("Finished")).await?;
        until("four cells", async || Ok((finished(page).await? == 4).then_some(()))).await?;
        wait_for(page, "[data-testid=measurements] tbody tr").await?;
    }
    let (left, right) = (matrix(&one).await?, matrix(&two).await?);
    ensure!(left == right, "the browsers differ: {left:?} and {right:?}");
    ensure!(left.values().all(|text| !text.contains('—')), "a cell has no number: {left:?}");
    wait_text(&one, "body", |text| text.contains("Simulated")).await?;

    // The view's state is in its address: a reload shows the same.
    wait_for(&one, "[data-metric=per_request_tok_s]").await?.click().await?;
    until("the address to tell the metric", async || {
        Ok(one.current_url().await?.query().is_some_and(|query| query.contains("m=")).then_some(()))
    })
    .await?;
    let before = matrix(&one).await?;
    one.refresh().await?;
    until("the same view after a reload", async || Ok((matrix(&one).await? == before).then_some(()))).await?;
    shot(&one, "report-simulated").await?;
    for page in [one, two] {
        no_errors(&page).await?;
        page.quit().await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_demo_is_one_click_from_the_first_visit() -> Result<()> {
    demo_from_first_use(1440, 900).await
}

/// From the first visit to the demonstration's report, at any width.
pub(crate) async fn demo_from_first_use(width: u32, height: u32) -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(width, height).await?;
    page.goto(&rig.url).await?;
    wait_for(&page, "[data-testid=demo]").await?.click().await?;
    wait_text(&page, "body", |text| text.contains("Simulated")).await?;
    // On a busy machine it takes longer than one thing is waited for: so cell by cell.
    let mut cells = 0;
    while cells < 64 {
        let before = cells;
        cells = until("another cell", async || {
            let now = finished(&page).await?;
            Ok((now > before).then_some(now))
        })
        .await?;
    }
    wait_text(&page, "[data-testid=status]", |text| text.contains("Finished")).await?;
    wait_for(&page, "[data-testid=measurements] tbody tr").await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn the_demo_starts_by_itself_and_survives_a_kill() -> Result<()> {
    let mut rig = Rig::start(&["--demo"]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(&rig.url).await?;
    let card = wait_for(&page, "[data-testid=run-card]:not([data-run=reference])").await?;
    let run = card.attr("data-run").await?.unwrap_or_default();
    page.goto(format!("{}/runs/{run}", rig.url)).await?;
    until("two finished cells", async || Ok((finished(&page).await? >= 2).then_some(()))).await?;
    shot(&page, "demo").await?;
    rig.kill_agent().await?;
    wait_text(&page, "[data-testid=conn]", |text| !text.contains("Connected")).await?;

    rig.restart_agent(&[]).await?;
    page.goto(format!("{}/runs/{run}", rig.url)).await?;
    wait_text(&page, "[data-testid=status]", |text| text.contains("nterrupted")).await?;
    ensure!(finished(&page).await? >= 2, "finished cells are gone");
    shot(&page, "interrupted").await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn a_browser_whose_clock_is_a_day_off_shows_the_run_s_time() -> Result<()> {
    const A_DAY_LATER: &str = "
        const Real = Date, shift = 86400000;
        Date = class extends Real { constructor(...a) { a.length ? super(...a) : super(Real.now() + shift); }
            static now() { return Real.now() + shift; } };";
    let rig = Rig::start(&[]).await?;
    let (one, two) = (rig.browser(1440, 900).await?, rig.browser(1440, 900).await?);
    let shift = serde_json::json!({"source": A_DAY_LATER});
    two.cdp().send_raw("Page.addScriptToEvaluateOnNewDocument", shift).await?;
    let url = start_small_run(&one, &rig.url).await?;
    two.goto(&url).await?;
    for page in [&one, &two] {
        wait_text(page, "[data-testid=status]", |text| text.contains("Finished")).await?;
    }
    let right = wait_text(&one, "[data-testid=elapsed]", |text| !text.is_empty()).await?;
    wait_text(&two, "[data-testid=elapsed]", |text| text == right).await?;
    for page in [one, two] {
        no_errors(&page).await?;
        page.quit().await?;
    }
    Ok(())
}
