//! An operator changes their mind: pause and go on, leave a cell out, stop after the running cell.

use anyhow::{Result, ensure};
use thirtyfour::prelude::*;

use crate::{
    rig::{Rig, no_errors, press, until, wait_text},
    run::{finished, start_long_run},
};

async fn says(page: &WebDriver, testid: &str, part: &str) -> Result<()> {
    wait_text(page, &format!("[data-testid={testid}]"), |text| text.contains(part)).await?;
    Ok(())
}

#[tokio::test]
async fn a_run_pauses_goes_on_and_stops_after_a_cell() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let (one, two) = (rig.browser(1440, 900).await?, rig.browser(390, 844).await?);
    two.goto(start_long_run(&one, &rig.url).await?).await?;
    press(&one, "pause").await?;
    // Everybody who watches sees it.
    for page in [&one, &two] {
        says(page, "next", "Paused.").await?;
        says(page, "waits", "Paused").await?;
    }
    let before = finished(&one).await?;
    ensure!(before < 4, "the run is over already");
    press(&two, "resume").await?;
    says(&one, "next", "").await?;
    until("another cell", async || Ok((finished(&one).await? > before).then_some(()))).await?;
    press(&one, "stop-after").await?;
    says(&one, "status", "topped").await?;
    no_errors(&one).await?;
    for page in [one, two] {
        page.quit().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_running_cell_is_left_out_after_a_second_press() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    start_long_run(&page, &rig.url).await?;
    press(&page, "skip").await?;
    press(&page, "sure-back").await?;
    press(&page, "skip").await?;
    press(&page, "skip-confirm").await?;
    says(&page, "status", "Finished").await?;
    says(&page, "measurements", "skipped by the user").await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}
