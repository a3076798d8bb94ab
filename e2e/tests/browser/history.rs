//! One cell in other runs, on its page: the chart, the table, the ways on, and what is said where there is nothing.

use anyhow::{Result, ensure};
use thirtyfour::prelude::*;

use crate::{
    compare::wait_address,
    looks::{check, in_theme},
    rig::{Rig, no_errors, wait_for, wait_text},
    runs::with_runs,
};

const HISTORY: &str = "[data-testid=history]";

async fn count(page: &WebDriver, css: &str) -> Result<usize> {
    Ok(page.find_all(By::Css(css)).await?.len())
}

/// Follows a link by script: a click would wait for the sheet's own scrolling.
async fn follow(page: &WebDriver, css: &str) -> Result<()> {
    let link = wait_for(page, css).await?;
    page.execute("arguments[0].click()", vec![link.to_json()?]).await?;
    Ok(())
}

#[tokio::test]
async fn a_cell_is_followed_over_runs() -> Result<()> {
    let (rig, page) = with_runs(1440, 900).await?;
    page.goto(format!("{}/runs/a/cells/decode-8K-1", rig.url)).await?;
    wait_text(&page, "[data-testid=history-table]", |text| {
        text.contains("This run") && text.contains("Beta on H100") && text.contains("Gamma on L40")
    })
    .await?;
    wait_text(&page, "[data-testid=history-table] [data-run=bb]", |text| text.contains("223.5 tok/s")).await?;
    ensure!(count(&page, "[data-testid=history] svg .run").await? == 3, "not a bar for each run");
    ensure!(count(&page, "[data-testid=history] svg .run-own").await? == 1, "this run has no bar of its own");
    wait_for(&page, "[data-history=ttft]").await?.click().await?;
    wait_text(&page, "[data-testid=history-table] [data-run=bb]", |text| text.contains("92 ms")).await?;
    let history = wait_for(&page, HISTORY).await?;
    history.scroll_into_view().await?;
    check(&page, "history-1440").await?;

    // The same cell of the other run, and from there back to a comparison of both.
    follow(&page, "[data-testid=history-table] [data-run=bb] th a").await?;
    wait_address(&page, "/runs/bb/cells/decode-8K-1").await?;
    wait_text(&page, "[data-testid=history-table]", |text| text.contains("Alpha on H100")).await?;
    follow(&page, "[data-testid=history-table] [data-run=a] td a").await?;
    wait_address(&page, "/compare?a=").await?;
    wait_for(&page, "[data-testid=sentence]").await?;
    no_errors(&page).await?;
    page.quit().await?;

    let phone = rig.browser(390, 844).await?;
    for theme in ["light", "dark"] {
        phone.goto(&rig.url).await?;
        in_theme(&phone, theme).await?;
        phone.goto(format!("{}/runs/a/cells/decode-8K-1", rig.url)).await?;
        wait_text(&phone, HISTORY, |text| text.contains("Beta on H100")).await?;
        phone.execute("document.querySelector('[data-testid=history]').scrollIntoView()", vec![]).await?;
        check(&phone, &format!("history-390-{theme}")).await?;
    }
    phone.quit().await?;
    Ok(())
}

#[tokio::test]
async fn where_no_other_run_is_shown_it_is_said_why() -> Result<()> {
    let rig = Rig::start(&["--require-token"]).await?;
    let operator = rig.browser(1440, 900).await?;
    operator.goto(rig.link(&["--operator"]).await?).await?;
    wait_for(&operator, "[data-run=reference]").await?;
    operator.goto(format!("{}/runs/reference/cells/decode-8K-1", rig.url)).await?;
    wait_text(&operator, HISTORY, |text| text.contains("No other run here has measured this cell")).await?;
    check(&operator, "history-empty").await?;
    operator.quit().await?;

    let viewer = rig.browser(1440, 900).await?;
    viewer.goto(rig.link(&["--run", "reference"]).await?).await?;
    wait_for(&viewer, "[data-testid=measurements]").await?;
    viewer.goto(format!("{}/runs/reference/cells/decode-8K-1", rig.url)).await?;
    wait_text(&viewer, HISTORY, |text| text.contains("for this run alone")).await?;
    check(&viewer, "history-one-run").await?;
    viewer.quit().await?;
    Ok(())
}
