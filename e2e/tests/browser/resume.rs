//! An agent that dies in the middle of a run, and a run that goes on where it was.

use anyhow::{Result, ensure};
use thirtyfour::prelude::*;

use crate::{
    looks,
    rig::{Rig, Simulator, no_errors, until, wait_for, wait_text},
    run::{finished, matrix, set},
};

/// Brings a run's own file as another run, `brought`.
const BRING: &str = "
const [run, done] = arguments;
fetch('/api/v1' + run + '/export?format=json').then(answer => answer.json()).then(file => {
    file.run.id = 'brought';
    return fetch('/api/v1/import', {method: 'POST', body: JSON.stringify(file)});
}).then(answer => answer.json()).then(done)";

/// Whoever wrote a file would choose whom the agent asks, so a run that came in one is not offered to go on.
async fn an_imported_one_is_not_offered(page: &WebDriver, rig: &Rig, run: &str) -> Result<()> {
    let told = page.execute_async(BRING, vec![run.into()]).await?;
    ensure!(told.json()[0]["id"] == "brought", "it was not imported: {}", told.json());
    page.goto(format!("{}/runs/brought", rig.url)).await?;
    wait_text(page, "[data-testid=outcome]", |text| text.contains("ended in the middle")).await?;
    wait_text(page, "[data-testid=imported]", |text| text == "Imported").await?;
    let offered = page.find_all(By::Css("[data-testid=resume]")).await?;
    ensure!(offered.is_empty(), "an imported run is offered to go on");
    page.goto(format!("{}{run}", rig.url)).await?;
    Ok(())
}

#[tokio::test]
async fn an_interrupted_run_goes_on_and_is_completed() -> Result<()> {
    let simulator = Simulator::start().await?;
    let mut rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new", rig.url)).await?;
    for (field, text) in [("target", simulator.url.as_str()), ("contexts", "8K,16K"), ("concurrency", "1,4")] {
        set(&page, field, text).await?;
    }
    set(&page, "duration", "60s").await?;
    wait_for(&page, "[data-testid=start]").await?.click().await?;
    let run = until("the run's page", async || {
        let url = page.current_url().await?;
        Ok(url.path().starts_with("/runs/").then(|| url.path().to_owned()))
    })
    .await?;
    until("a cell", async || Ok((finished(&page).await? >= 1).then_some(()))).await?;
    rig.kill_agent().await?;
    wait_text(&page, "[data-testid=conn]", |text| text.contains("Reconnecting")).await?;
    rig.restart_agent(&[]).await?;

    page.goto(format!("{}{run}", rig.url)).await?;
    wait_text(&page, "[data-testid=outcome]", |text| text.contains("ended in the middle")).await?;
    looks::check(&page, "interrupted").await?;
    let before = matrix(&page).await?;
    let kept = finished(&page).await?;
    ensure!(kept >= 1, "what was measured is gone");
    // Who only looks at the run that ended hears that it goes on, without a reload.
    let watcher = rig.browser(390, 844).await?;
    watcher.goto(format!("{}{run}", rig.url)).await?;
    wait_text(&watcher, "[data-testid=status]", |text| text.contains("nterrupted")).await?;
    an_imported_one_is_not_offered(&page, &rig, &run).await?;
    wait_for(&page, "[data-testid=resume]").await?.click().await?;
    wait_text(&page, "[data-testid=status]", |text| text.contains("Finished")).await?;
    wait_text(&watcher, "[data-testid=status]", |text| text.contains("Finished")).await?;
    until("all cells at the watcher", async || Ok((finished(&watcher).await? == 4).then_some(()))).await?;
    until("all cells", async || Ok((finished(&page).await? == 4).then_some(()))).await?;
    let after = matrix(&page).await?;
    // What was measured before is there with the very same numbers; two cells hardly ever have the same.
    let same = before.iter().filter(|(cell, text)| after.get(*cell) == Some(text)).count() as u64;
    ensure!(same >= kept, "measured cells changed: {before:?} became {after:?}");
    no_errors(&page).await?;
    watcher.quit().await?;
    page.quit().await?;
    Ok(())
}
