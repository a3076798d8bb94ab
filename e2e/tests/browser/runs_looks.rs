//! The list of runs in both themes and widths with odd names, open menus and dialogs; and with the keyboard alone.

use anyhow::Result;
use thirtyfour::prelude::*;

use crate::{
    looks::{check, in_theme},
    rig::{Rig, no_errors, wait_for, wait_text},
    runs::{act, bring, card, open_menu, press, wait_focus, wait_shown, with_runs},
};

/// Brings runs whose names, tags and notes are long, from right to left, without a place to break, and of emoji.
async fn odd_runs(page: &WebDriver) -> Result<()> {
    let long = "UnbrokenName".repeat(60);
    let tags = serde_json::json!({
        "tags": ["x".repeat(100), "كلمة", "🚀🔥", "one", "two", "three", "four", "five", "six"],
        "notes": "w".repeat(3_000),
    });
    bring(page, "long", &long, tags).await?;
    bring(page, "rtl", "قياس السرعة لنموذج DeepSeek على H200 (ليلة)", serde_json::json!({"tags": ["ليل"]})).await?;
    bring(page, "emoji", &"👩‍👩‍👧‍👦🚀 ".repeat(30), serde_json::json!({})).await?;
    bring(page, "override", "\u{202e}drawkcab", serde_json::json!({})).await
}

#[tokio::test]
async fn odd_names_fit_in_both_themes_with_menus_and_dialogs() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let first = rig.browser(1440, 900).await?;
    first.goto(&rig.url).await?;
    wait_for(&first, "[data-testid=first-use]").await?;
    odd_runs(&first).await?;
    first.quit().await?;
    for (width, height) in [(1440, 900), (390, 844)] {
        let page = rig.browser(width, height).await?;
        page.goto(&rig.url).await?;
        for theme in ["light", "dark"] {
            in_theme(&page, theme).await?;
            let name = |what: &str| format!("runs-{what}-{width}-{theme}");
            page.goto(&rig.url).await?;
            wait_for(&page, &card("long", "")).await?;
            check(&page, &name("odd")).await?;
            if width < 720 {
                wait_for(&page, "[data-testid=filters-toggle]").await?.click().await?;
                check(&page, &name("filters")).await?;
            }
            open_menu(&page, "rtl").await?;
            check(&page, &name("menu")).await?;
            press(&page, Key::Escape).await?;
            act(&page, "long", "edit-notes").await?;
            wait_focus(&page, "edit-notes-input").await?;
            check(&page, &name("dialog")).await?;
            press(&page, Key::Escape).await?;
            wait_focus(&page, "run-menu").await?;
            act(&page, "emoji", "delete").await?;
            wait_for(&page, "[data-testid=toast]").await?;
            check(&page, &name("toast")).await?;
            wait_for(&page, "[data-testid=undo]").await?.click().await?;
            wait_for(&page, &card("emoji", "")).await?;
            page.goto(format!("{}/runs/long", rig.url)).await?;
            wait_for(&page, "[data-testid=notes-text]").await?;
            check(&page, &name("long-report")).await?;
        }
        page.quit().await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_keyboard_alone_is_enough() -> Result<()> {
    let (_rig, page) = with_runs(1440, 900).await?;
    page.find(By::Tag("body")).await?.send_keys("/").await?;
    wait_focus(&page, "search").await?;
    press(&page, "beta").await?;
    wait_shown(&page, &["bb"]).await?;
    // From the search over the choices to the card, and into its menu.
    page.execute("document.querySelector('[data-run=bb] a').focus()", vec![]).await?;
    press(&page, Key::Tab).await?;
    wait_focus(&page, "pick").await?;
    press(&page, Key::Tab).await?;
    wait_focus(&page, "run-menu").await?;
    press(&page, Key::Enter).await?;
    wait_focus(&page, "pin").await?;
    press(&page, Key::Down).await?;
    wait_focus(&page, "rename").await?;
    press(&page, Key::End).await?;
    wait_focus(&page, "delete").await?;
    press(&page, Key::Escape).await?;
    wait_focus(&page, "run-menu").await?;
    press(&page, Key::Down).await?;
    wait_focus(&page, "pin").await?;
    press(&page, Key::Down).await?;
    press(&page, Key::Enter).await?;
    wait_focus(&page, "edit-name").await?;
    press(&page, "Beta, renamed").await?;
    press(&page, Key::Enter).await?;
    wait_text(&page, &card("bb", "h2"), |text| text == "Beta, renamed").await?;
    wait_focus(&page, "run-menu").await?;
    press(&page, Key::Enter).await?;
    wait_focus(&page, "pin").await?;
    press(&page, Key::End).await?;
    press(&page, Key::Enter).await?;
    wait_focus(&page, "undo").await?;
    press(&page, Key::Enter).await?;
    wait_shown(&page, &["bb"]).await?;
    wait_focus(&page, "run-menu").await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}
