//! An agent that others can reach: who has which link sees what, and why they can't do more.

use anyhow::{Result, ensure};
use thirtyfour::prelude::*;

use crate::{
    looks,
    rig::{Rig, no_errors, wait_for, wait_text},
    run::start_long_run,
};

async fn is_there(page: &WebDriver, css: &str) -> Result<bool> {
    Ok(!page.find_all(By::Css(css)).await?.is_empty())
}

/// The token must not stay where others look over a shoulder, or a screenshot is taken.
async fn no_token_in_address(page: &WebDriver) -> Result<()> {
    let address = page.current_url().await?;
    ensure!(!address.as_str().contains("enter="), "the token stands in {address}");
    Ok(())
}

#[tokio::test]
async fn a_viewer_watches_without_controls_and_sees_why() -> Result<()> {
    let rig = Rig::start(&["--require-token"]).await?;
    let operator = rig.browser(1440, 900).await?;
    operator.goto(rig.link(&["--operator"]).await?).await?;
    wait_text(&operator, "[data-testid=role]", |text| text == "Operator").await?;
    no_token_in_address(&operator).await?;
    let viewer = rig.browser(390, 844).await?;
    viewer.goto(rig.link(&[]).await?).await?;
    wait_text(&viewer, "[data-testid=role]", |text| text == "Viewer").await?;
    ensure!(!is_there(&viewer, "[data-testid=import]").await? && !is_there(&viewer, "[data-testid=run-menu]").await?);
    viewer.goto(start_long_run(&operator, &rig.url).await?).await?;
    wait_text(&viewer, "[data-testid=only-looks]", |text| text.contains("look")).await?;
    ensure!(!is_there(&viewer, "[data-testid=stop]").await? && is_there(&operator, "[data-testid=stop]").await?);
    looks::check(&viewer, "viewer-live").await?;
    viewer.goto(format!("{}/new", rig.url)).await?;
    wait_text(&viewer, "[data-testid=only-looks]", |text| text.contains("not to start")).await?;
    viewer.goto(format!("{}/settings", rig.url)).await?;
    wait_text(&viewer, "[data-testid=notice]", |text| text.contains("operator of this agent")).await?;
    for page in [operator, viewer] {
        no_errors(&page).await?;
        page.quit().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_link_for_one_run_is_made_opened_and_taken_back() -> Result<()> {
    let rig = Rig::start(&["--require-token"]).await?;
    let operator = rig.browser(1440, 900).await?;
    operator.goto(rig.link(&["--operator"]).await?).await?;
    wait_for(&operator, "[data-run=reference]").await?;
    operator.goto(format!("{}/settings?run=reference", rig.url)).await?;
    wait_for(&operator, "#link-name").await?.send_keys("Ann").await?;
    wait_for(&operator, "[data-testid=new-link] button").await?.click().await?;
    let link = wait_text(&operator, "code.link", |text| text.contains("#enter=")).await?;
    wait_text(&operator, "[data-testid=links]", |text| text.contains("Ann") && text.contains("run reference")).await?;
    looks::check(&operator, "sharing").await?;

    let ann = rig.browser(1440, 900).await?;
    ann.goto(&link).await?;
    wait_for(&ann, "[data-testid=measurements]").await?;
    no_token_in_address(&ann).await?;
    wait_for(&operator, "[aria-label=\"Take back Ann\"]").await?.click().await?;
    wait_text(&operator, "[data-testid=links]", |text| !text.contains("Ann")).await?;
    ann.refresh().await?;
    wait_text(&ann, "main h1", |text| text.contains("asks who you are")).await?;
    looks::check(&ann, "enter").await?;
    wait_for(&ann, "#enter-token").await?.send_keys("guess").await?;
    wait_for(&ann, "[data-testid=enter] button").await?.click().await?;
    wait_text(&ann, "[data-testid=enter]", |text| text.contains("opens nothing")).await?;
    operator.quit().await?;
    ann.quit().await?;
    Ok(())
}
