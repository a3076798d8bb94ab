//! The set-up form: every error at its field, and what a server that can't be measured looks like.

use anyhow::{Result, ensure};
use thirtyfour::prelude::*;

use crate::rig::{Rig, no_errors, until, wait_for, wait_text};

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

/// Ids of the cells that are left out.
async fn left_out(page: &WebDriver) -> Result<Vec<String>> {
    let script = "return [...document.querySelectorAll('[data-testid=preview] td.out')].map(cell => cell.dataset.cell)";
    Ok(page.execute(script, vec![]).await?.convert()?)
}

async fn is_left_out(page: &WebDriver, wanted: &[&str]) -> Result<()> {
    until("the painted cells", async || {
        let cells = left_out(page).await?;
        Ok((cells == wanted).then_some(()))
    })
    .await
}

#[tokio::test]
async fn cells_are_painted_by_mouse_and_by_keyboard() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new?target=http://127.0.0.1:9&contexts=8K,16K&concurrency=1,2,4", rig.url)).await?;
    let cell = |id: &str| format!("[data-testid=preview] td[data-cell=decode-{id}]");
    let from = wait_for(&page, &cell("8K-2")).await?;
    // A stroke over two cells.
    let to = wait_for(&page, &cell("8K-4")).await?;
    page.action_chain()
        .move_to_element_center(&from)
        .click_and_hold()
        .move_to_element_center(&to)
        .release()
        .perform()
        .await?;
    is_left_out(&page, &["decode-8K-2", "decode-8K-4"]).await?;
    // A head takes its whole row in, and out.
    wait_for(&page, "[data-head='8K']").await?.click().await?;
    is_left_out(&page, &[]).await?;
    wait_for(&page, "[data-head='x4']").await?.click().await?;
    is_left_out(&page, &["decode-8K-4", "decode-16K-4"]).await?;
    // The keyboard: one tab stop, arrows, Space, Shift.
    wait_for(&page, &cell("8K-1")).await?.focus().await?;
    for key in [Key::Down + "", Key::Space + "", Key::Up + "", Key::Space + ""] {
        page.active_element().await?.send_keys(key).await?;
    }
    is_left_out(&page, &["decode-8K-1", "decode-8K-4", "decode-16K-1", "decode-16K-4"]).await?;
    // Never the last one: there would be nothing to measure.
    wait_for(&page, "[data-head='x2']").await?.click().await?;
    is_left_out(&page, &["decode-8K-1", "decode-8K-4", "decode-16K-1", "decode-16K-4"]).await?;
    // It is in the address: a reload shows the same.
    page.refresh().await?;
    is_left_out(&page, &["decode-8K-1", "decode-8K-4", "decode-16K-1", "decode-16K-4"]).await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}
