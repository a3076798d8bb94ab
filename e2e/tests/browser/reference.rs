//! The sample run: listed at the first visit, and every cell of its table as on the published page.

use anyhow::{Context as _, Result, ensure};
use thirtyfour::prelude::*;

use crate::rig::{Rig, no_errors, shot, wait_for};

/// The published table: header, rule, 73 rows.
const PUBLISHED: &str = include_str!("reference.md");

fn cells(row: &str) -> Vec<String> {
    row.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// Texts of all rows of a table in one go: 73 × 12 calls to the driver would take a minute.
async fn shown_rows(page: &WebDriver) -> Result<Vec<Vec<String>>> {
    let script = "return [...document.querySelectorAll('[data-testid=measurements] tbody tr')].map(
        row => [...row.querySelectorAll('th, td')].map(cell => cell.innerText.trim()))";
    Ok(page.execute(script, vec![]).await?.convert()?)
}

#[tokio::test]
async fn the_sample_report_shows_every_published_cell() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(&rig.url).await?;
    let card = wait_for(&page, "[data-testid=run-card][data-run=reference] a").await?;
    shot(&page, "first-visit").await?;
    card.click().await?;
    wait_for(&page, "[data-testid=measurements] tbody tr").await?;
    ensure!(page.current_url().await?.path() == "/runs/reference");

    let shown = shown_rows(&page).await?;
    let published: Vec<Vec<String>> = PUBLISHED.lines().skip(2).map(cells).collect();
    ensure!(published.len() == 73, "the published table has {} rows", published.len());
    ensure!(shown.len() == 73, "the page shows {} rows", shown.len());
    for (row, wanted) in published.iter().enumerate() {
        let got = shown.get(row).context("a row is missing")?;
        ensure!(got == wanted, "row {row}: shown {got:?}, published {wanted:?}");
    }
    shot(&page, "report").await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}
