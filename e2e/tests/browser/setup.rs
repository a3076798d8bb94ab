//! The set-up form: every error at its field, and what a server that can't be measured looks like.

use anyhow::{Result, ensure};
use thirtyfour::prelude::*;

use crate::rig::{Rig, no_errors, wait_for, wait_text};

async fn fill(page: &WebDriver, name: &str, text: &str) -> Result<()> {
    let field = wait_for(page, &format!("[name=\"{name}\"]")).await?;
    field.clear().await?;
    field.send_keys(text).await?;
    Ok(())
}

async fn error_at(page: &WebDriver, field: &str, part: &str) -> Result<()> {
    wait_text(page, &format!("[data-error-for=\"{field}\"]"), |text| text.contains(part)).await?;
    Ok(())
}

#[tokio::test]
async fn every_error_stands_at_its_field() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new", rig.url)).await?;
    fill(&page, "target", "ftp://example").await?;
    fill(&page, "contexts", "8K,abc").await?;
    fill(&page, "concurrency", "0").await?;
    fill(&page, "duration", "soon").await?;
    fill(&page, "max-output", "0").await?;
    wait_for(&page, "[data-testid=start]").await?.click().await?;
    error_at(&page, "target", "http").await?;
    error_at(&page, "contexts", "abc").await?;
    error_at(&page, "concurrency", "between 1 and").await?;
    error_at(&page, "duration", "soon").await?;
    error_at(&page, "max-output", "1").await?;
    let focused = page.active_element().await?.attr("name").await?;
    ensure!(focused.as_deref() == Some("target"), "focus went to {focused:?}");
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_in_a_sentence() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new", rig.url)).await?;
    fill(&page, "target", "http://127.0.0.1:9").await?;
    wait_for(&page, "[data-testid=look]").await?.click().await?;
    wait_text(&page, "[data-testid=probe-error]", |text| text.contains("refused")).await?;
    page.quit().await?;
    Ok(())
}
