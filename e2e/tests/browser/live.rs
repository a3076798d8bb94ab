//! A run while it runs: its charts with their tables, a network that is cut, an agent that dies and comes back, and one
//! that speaks another version.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use thirtyfour::prelude::*;

use crate::{
    looks,
    relay::{Relay, Way},
    rig::{Rig, axe, no_errors, shot, until, wait_for, wait_text},
    run::{finished, matrix, start_long_run, start_small_run},
};

/// Rows of an open table.
async fn table(page: &WebDriver, testid: &str) -> Result<Vec<Vec<String>>> {
    let script = format!(
        "return [...document.querySelectorAll('[data-testid={testid}] tbody tr')].map(
            row => [...row.children].map(cell => cell.innerText.trim()))"
    );
    Ok(page.execute(script, vec![]).await?.convert()?)
}

/// Number of points of the first line of a chart.
async fn points(page: &WebDriver, chart: &str) -> Result<u64> {
    let script = format!(
        "const line = document.querySelector('[data-chart={chart}] path.line');
         return line ? line.getAttribute('d').split('L').length : 0"
    );
    Ok(page.execute(script, vec![]).await?.convert()?)
}

#[tokio::test]
async fn live_charts_show_what_their_tables_hold() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    start_small_run(&page, &rig.url).await?;
    for chart in ["rate", "requests", "kv", "lateness"] {
        until(chart, async || Ok((points(&page, chart).await? >= 5).then_some(()))).await?;
    }
    wait_text(&page, "[data-testid=now-rate]", |text| text.contains("tok/s")).await?;
    wait_text(&page, "[data-chart=power]", |text| text.contains("sees no GPU")).await?;
    looks::check(&page, "live-charts").await?;

    // What was seen stays when the run is over.
    wait_text(&page, "[data-testid=status]", |text| text.contains("Finished")).await?;
    let group = wait_for(&page, "[data-testid=live-charts] .times").await?;
    for _ in 0..30 {
        group.send_keys(Key::Right + "").await?;
    }
    let said = wait_text(&page, "[data-testid=live-values]", |text| text.contains("in flight")).await?;
    // So close that each row is one gauge.
    group.send_keys("++++++++++").await?;
    wait_text(&page, "[data-testid=live-zoom]", |text| text.contains(" to ")).await?;
    let (time, values) = said.split_once(": ").context("a time and its values")?;
    let rate = values.split(" · ").find(|value| value.ends_with("tok/s"));
    for key in ["rate", "requests"] {
        wait_for(&page, &format!("[data-testid=live-{key}-table-button]")).await?.click().await?;
        let rows = table(&page, &format!("live-{key}-table")).await?;
        let agrees = |row: &Vec<String>| match (key, row.get(2)) {
            ("rate", Some(value)) => rate.unwrap_or("— tok/s") == value,
            (_, Some(flight)) => values.contains(&format!("in flight {flight},")),
            (_, None) => false,
        };
        let there = rows.iter().any(|row| row.first().is_some_and(|from| from == time) && agrees(row));
        ensure!(there, "{said}, but the table of {key} holds {rows:?}");
    }
    group.send_keys("0").await?;
    wait_text(&page, "[data-testid=live-zoom]", str::is_empty).await?;
    ensure!(axe(&page).await?.is_empty(), "axe: {:?}", axe(&page).await?);
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn live_charts_fit_a_telephone() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let (wide, page) = (rig.browser(1440, 900).await?, rig.browser(390, 844).await?);
    page.goto(start_small_run(&wide, &rig.url).await?).await?;
    until("a chart", async || Ok((points(&page, "rate").await? >= 5).then_some(()))).await?;
    shot(&page, "live-charts-390").await?;
    let over: bool =
        page.execute("return document.documentElement.scrollWidth > innerWidth", vec![]).await?.convert()?;
    ensure!(!over, "the page is wider than the screen");
    no_errors(&page).await?;
    for page in [page, wide] {
        page.quit().await?;
    }
    Ok(())
}

#[tokio::test]
async fn nothing_is_missing_after_the_network_was_cut() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let relay = Relay::start(&rig.url).await?;
    let (near, far) = (rig.browser(1440, 900).await?, rig.browser(1440, 900).await?);
    let url = start_small_run(&near, &rig.url).await?;
    let path = url.trim_start_matches(rig.url.trim_end_matches('/'));
    far.goto(format!("{}{path}", relay.url)).await?;
    wait_text(&far, "[data-testid=conn]", |text| text == "Connected").await?;
    let before = finished(&near).await?;
    relay.go(Way::Cut);
    wait_text(&far, "[data-testid=conn]", |text| text.contains("Reconnecting")).await?;
    // Something happens meanwhile, and after some attempts in vain the page says from when its data are.
    until("another cell", async || Ok((finished(&near).await? > before).then_some(()))).await?;
    wait_text(&far, "[data-testid=conn]", |text| text.contains("Offline, showing data from")).await?;
    ensure!(finished(&far).await? <= finished(&near).await?, "who hears nothing can't know more");
    shot(&far, "live-offline").await?;
    relay.go(Way::Open);
    wait_text(&far, "[data-testid=conn]", |text| text == "Connected").await?;
    for page in [&near, &far] {
        wait_text(page, "[data-testid=status]", |text| text.contains("Finished")).await?;
        until("four cells", async || Ok((finished(page).await? == 4).then_some(()))).await?;
    }
    let (left, right) = (matrix(&near).await?, matrix(&far).await?);
    ensure!(left == right, "the browsers differ: {left:?} and {right:?}");
    for page in [near, far] {
        page.quit().await?;
    }
    Ok(())
}

/// A page that is put to sleep and woken as a telephone does it.
async fn lifecycle(page: &WebDriver, state: &str) -> Result<()> {
    page.cdp().send_raw("Page.setWebLifecycleState", json!({"state": state})).await?;
    Ok(())
}

#[tokio::test]
async fn a_page_catches_up_after_silence_and_after_sleep() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let relay = Relay::start(&rig.url).await?;
    let (near, far) = (rig.browser(1440, 900).await?, rig.browser(1440, 900).await?);
    let url = start_long_run(&near, &rig.url).await?;
    far.goto(format!("{}{}", relay.url, url.trim_start_matches(rig.url.trim_end_matches('/')))).await?;
    wait_text(&far, "[data-testid=conn]", |text| text == "Connected").await?;
    // Sockets of a network that has gone don't close: more than ten seconds without a word, which the page notices.
    relay.go(Way::Silent);
    wait_text(&far, "[data-testid=conn]", |text| text.contains("Reconnecting")).await?;
    relay.go(Way::Open);
    wait_text(&far, "[data-testid=conn]", |text| text == "Connected").await?;
    let before = finished(&near).await?;
    // A telephone that sleeps runs no script, and its network may have gone meanwhile.
    lifecycle(&far, "frozen").await?;
    relay.go(Way::Cut);
    until("another cell", async || Ok((finished(&near).await? > before).then_some(()))).await?;
    relay.go(Way::Open);
    lifecycle(&far, "active").await?;
    until("what happened meanwhile", async || Ok((finished(&far).await? > before).then_some(()))).await?;
    wait_text(&far, "[data-testid=conn]", |text| text == "Connected").await?;
    for page in [near, far] {
        page.quit().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_page_hears_an_agent_that_comes_back() -> Result<()> {
    let mut rig = Rig::start(&[]).await?;
    let relay = Relay::start(&rig.url).await?;
    let page = rig.browser(1440, 900).await?;
    start_small_run(&page, &relay.url).await?;
    until("a cell", async || Ok((finished(&page).await? >= 1).then_some(()))).await?;
    rig.kill_agent().await?;
    wait_text(&page, "[data-testid=conn]", |text| text.contains("Reconnecting")).await?;
    ensure!(finished(&page).await? >= 1, "what was measured is gone");
    rig.restart_agent(&[]).await?;
    relay.moved(&rig.url);
    // Without a reload: the page takes a new snapshot.
    wait_text(&page, "[data-testid=conn]", |text| text == "Connected").await?;
    wait_text(&page, "[data-testid=status]", |text| text.contains("nterrupted")).await?;
    ensure!(finished(&page).await? >= 1, "what was measured is gone");
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn another_version_offers_to_reload() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let relay = Relay::start(&rig.url).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/runs/reference", relay.url)).await?;
    wait_text(&page, "[data-testid=conn]", |text| text == "Connected").await?;
    ensure!(page.find_all(By::Css("[data-testid=reload]")).await?.is_empty(), "nothing to reload for");

    // An agent of a later version that still speaks as this page does.
    let version = env!("CARGO_PKG_VERSION");
    let meant = format!("\"version\":\"{version}\"");
    let said = meant.replace(version, &format!("{}~", &version[..version.len() - 1]));
    relay.go(Way::Other { meant, said });
    wait_text(&page, "[data-testid=other-version]", |text| text.contains("is now version")).await?;
    wait_text(&page, "[data-testid=conn]", |text| text == "Connected").await?;
    shot(&page, "other-version").await?;

    // One that speaks otherwise: what is here stays, and nothing more is taken.
    relay.go(Way::Other { meant: "\"protocol\":1,".into(), said: "\"protocol\":9,".into() });
    wait_text(&page, "[data-testid=conn]", |text| text == "Another version").await?;
    wait_text(&page, "[data-testid=other-version]", |text| text.contains("speaks another version")).await?;
    ensure!(finished(&page).await? > 0, "the data are gone");
    ensure!(axe(&page).await?.is_empty(), "axe: {:?}", axe(&page).await?);

    relay.go(Way::Open);
    wait_for(&page, "[data-testid=reload]").await?.click().await?;
    wait_text(&page, "[data-testid=conn]", |text| text == "Connected").await?;
    wait_text(&page, "[data-testid=other-version]", str::is_empty).await?;
    page.quit().await?;
    Ok(())
}
