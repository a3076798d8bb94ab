//! Everything that opens (dialogs, menus, folds, tables of charts) is open when its page is checked, at both widths and in
//! both themes.

use anyhow::Result;
use thirtyfour::prelude::*;

use crate::{
    looks::{check, in_theme},
    rig::{Rig, press, until, wait_for},
    run::start_long_run,
};

/// Address, what it shows when it is ready, name.
const PAGES: [(&str, &str, &str); 5] = [
    ("/", "[data-testid=run-card]", "runs"),
    ("/new?target=http://127.0.0.1:9&contexts=8K,16K&concurrency=1,2", "[data-testid=preview] td[data-cell]", "setup"),
    ("/runs/reference", "[data-testid=measurements] tbody tr", "report"),
    ("/runs/reference/cells/decode-8K-16", "[data-testid=numbers]", "cell"),
    ("/compare?a=reference&b=reference", "[data-testid=cells] tbody tr", "compare"),
];
/// Buttons of menus, of which each card of the list has the same.
const MENUS: &str = "return [...document.querySelectorAll('.menu > button[aria-expanded]')].filter(
    (button, place, all) => button.checkVisibility() && all.findIndex(other => other.dataset.testid === button.dataset.testid) === place)";

/// Opens whatever stays open beside the others: folds, tables of charts, filters.
const UNFOLD: &str = "
for (const fold of document.querySelectorAll('details')) fold.open = true;
for (const button of document.querySelectorAll('button[aria-expanded=false]'))
    if (!button.closest('.menu') && button.checkVisibility()) button.click();";

async fn script(page: &WebDriver, script: &str) -> Result<()> {
    page.execute(script, vec![]).await?;
    Ok(())
}

/// The menus of a page, one after the other.
async fn menus(page: &WebDriver, name: &str) -> Result<()> {
    let count: usize = page.execute(format!("{MENUS}.length"), vec![]).await?.convert()?;
    for place in 0..count {
        script(page, &format!("{MENUS}[{place}].scrollIntoView({{behavior: 'instant', block: 'center'}})")).await?;
        script(page, &format!("{MENUS}[{place}].click()")).await?;
        wait_for(page, ".menu > button[aria-expanded=true]").await?;
        check(page, &format!("opened-{name}-menu-{place}")).await?;
        script(page, &format!("{MENUS}[{place}].click()")).await?;
        until("the menu to close", async || {
            Ok(page.find(By::Css(".menu > button[aria-expanded=true]")).await.is_err().then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// All that opens on the page that is shown.
async fn all_opened(page: &WebDriver, name: &str) -> Result<()> {
    menus(page, name).await?;
    script(page, UNFOLD).await?;
    check(page, &format!("opened-{name}-folds")).await?;
    script(page, "document.activeElement.blur()").await?;
    page.find(By::Tag("body")).await?.send_keys("?").await?;
    wait_for(page, "dialog[open]").await?;
    check(page, &format!("opened-{name}-keys")).await
}

async fn pages_at(width: u32, height: u32) -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(width, height).await?;
    page.goto(&rig.url).await?;
    for theme in ["light", "dark"] {
        in_theme(&page, theme).await?;
        for (address, ready, name) in PAGES {
            page.goto(format!("{}{address}", rig.url)).await?;
            wait_for(&page, ready).await?;
            all_opened(&page, &format!("{name}-{width}-{theme}")).await?;
        }
    }
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn what_opens_on_a_wide_screen_is_accessible() -> Result<()> {
    pages_at(1440, 900).await
}

#[tokio::test]
async fn what_opens_on_a_phone_fits_and_is_accessible() -> Result<()> {
    pages_at(390, 844).await
}

/// A run that goes on: its questions before a step that loses something, its charts' tables, what is known of its server.
#[tokio::test]
async fn what_opens_while_a_run_goes_on_is_accessible() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    let run = start_long_run(&page, &rig.url).await?;
    for theme in ["light", "dark"] {
        in_theme(&page, theme).await?;
        page.goto(&run).await?;
        for question in ["skip", "stop"] {
            press(&page, question).await?;
            wait_for(&page, "[data-testid=sure-back]").await?;
            check(&page, &format!("opened-live-{question}-{theme}")).await?;
            press(&page, "sure-back").await?;
        }
        script(&page, UNFOLD).await?;
        check(&page, &format!("opened-live-folds-{theme}")).await?;
    }
    page.quit().await?;
    Ok(())
}

/// A server that answers: its card, with what can be told by hand and all options unfolded.
#[tokio::test]
async fn a_looked_at_server_is_accessible_with_everything_unfolded() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    for (width, height) in [(1440, 900), (390, 844)] {
        let page = rig.browser(width, height).await?;
        page.goto(format!("{}/new", rig.url)).await?;
        for theme in ["light", "dark"] {
            in_theme(&page, theme).await?;
            page.refresh().await?;
            press(&page, "saved-target").await?;
            wait_for(&page, "[data-testid=probe]").await?;
            script(&page, UNFOLD).await?;
            check(&page, &format!("opened-probe-{width}-{theme}")).await?;
        }
        page.quit().await?;
    }
    Ok(())
}
