//! Every page at both widths and in both themes: nothing hangs over the side, no accessibility rule is broken, no
//! error is reported. `SHOTS=FOLDER` keeps the pictures.

use anyhow::{Result, ensure};
use thirtyfour::prelude::*;

use crate::rig::{Rig, axe, no_errors, shot, wait_for};

/// Address, what it shows when it is ready, name of its picture.
const PAGES: [(&str, &str, &str); 5] = [
    ("/", "[data-testid=run-card]", "runs"),
    ("/new", "[data-testid=start]", "setup"),
    ("/settings", "[data-testid=notice]", "settings"),
    ("/runs/reference", "[data-testid=measurements]", "report"),
    ("/runs/nothing-here", "main h1", "missing-run"),
];

/// Fails where a page hangs over the side, breaks a rule of accessibility, or reported an error.
pub(crate) async fn check(page: &WebDriver, name: &str) -> Result<()> {
    shot(page, name).await?;
    let over: i64 = page
        .execute("const root = document.documentElement; return root.scrollWidth - root.clientWidth", vec![])
        .await?
        .convert()?;
    ensure!(over <= 0, "{name}: the page hangs {over} px over the side");
    let broken = axe(page).await?;
    ensure!(broken.is_empty(), "{name}: accessibility rules broken: {broken:#?}");
    no_errors(page).await
}

/// From now on pages of this browser open in a theme.
pub(crate) async fn in_theme(page: &WebDriver, theme: &str) -> Result<()> {
    page.execute("localStorage.setItem('speedmatrix.theme', arguments[0])", vec![theme.into()]).await?;
    Ok(())
}

#[tokio::test]
async fn pages_fit_and_are_accessible_in_both_themes() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    for (width, height) in [(1440, 900), (390, 844)] {
        let page = rig.browser(width, height).await?;
        page.goto(&rig.url).await?;
        for theme in ["light", "dark"] {
            in_theme(&page, theme).await?;
            for (address, ready, name) in PAGES {
                page.goto(format!("{}{address}", rig.url)).await?;
                wait_for(&page, ready).await?;
                check(&page, &format!("{name}-{width}-{theme}")).await?;
            }
        }
        page.quit().await?;
    }
    Ok(())
}

/// A reader's own colours, where a wide window is zoomed so far that it is a narrow strip.
#[tokio::test]
async fn pages_fit_with_forced_colours() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(320, 640).await?;
    let forced = serde_json::json!({"features": [{"name": "forced-colors", "value": "active"}]});
    page.cdp().send_raw("Emulation.setEmulatedMedia", forced).await?;
    for (address, ready, name) in PAGES {
        page.goto(format!("{}{address}", rig.url)).await?;
        wait_for(&page, ready).await?;
        check(&page, &format!("{name}-320-forced")).await?;
    }
    page.find(By::Tag("body")).await?.send_keys("?").await?;
    wait_for(&page, "dialog[open]").await?;
    check(&page, "keys-320-forced").await?;
    page.quit().await?;
    Ok(())
}
