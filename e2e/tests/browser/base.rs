//! An agent below a path of its host: every link, request and socket of the page stays below it.

use anyhow::{Result, ensure};
use thirtyfour::prelude::*;

use crate::rig::{Rig, no_errors, press, until, wait_for, wait_text};

/// Waits until the page's address has this path.
async fn at(page: &WebDriver, path: &str) -> Result<()> {
    until(path, async || Ok((page.current_url().await?.path() == path).then_some(()))).await
}

#[tokio::test]
async fn the_page_lives_below_a_path() -> Result<()> {
    let rig = Rig::start(&["--base-path", "/speedmatrix"]).await?;
    ensure!(rig.url.ends_with("/speedmatrix"), "{}", rig.url);
    let page = rig.browser(1440, 900).await?;
    // Without the slash at its end too.
    page.goto(&rig.url).await?;
    wait_for(&page, "[data-testid=run-card][data-run=reference] a").await?.click().await?;
    wait_for(&page, "[data-testid=measurements] tbody tr").await?;
    at(&page, "/speedmatrix/runs/reference").await?;
    // By the router, over the page, and back.
    wait_for(&page, "[data-testid=measurements] a[data-opens]").await?.click().await?;
    until("a cell's address", async || {
        let url = page.current_url().await?;
        Ok(url.path().starts_with("/speedmatrix/runs/reference/cells/").then_some(()))
    })
    .await?;
    // Opened by itself: files, state and socket come from below the path.
    page.refresh().await?;
    wait_for(&page, "[data-testid=measurements] tbody tr").await?;
    page.back().await?;
    wait_for(&page, "nav a[href='/speedmatrix/new']").await?.click().await?;
    at(&page, "/speedmatrix/new").await?;
    wait_text(&page, "nav a[aria-current=page]", |text| text == "New run").await?;
    wait_for(&page, "[data-testid=saved-target]").await?.click().await?;
    press(&page, "start").await?;
    until("the run's page", async || {
        Ok(page.current_url().await?.path().starts_with("/speedmatrix/runs/").then_some(()))
    })
    .await?;
    // Only the live socket tells of a running run's cells.
    wait_for(&page, "[data-testid=stop]").await?;
    wait_for(&page, "[data-testid=watching]").await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}
