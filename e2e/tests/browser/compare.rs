//! Comparing two runs: chosen in the list, read, filtered, swapped, passed on; by keyboard alone and on a phone.

use anyhow::{Context as _, Result, ensure};
use thirtyfour::prelude::*;

use crate::{
    looks::{check, in_theme},
    rig::{Rig, no_errors, press as press_button, shot, until, wait_for, wait_text},
    runs::{card, press, wait_focus, with_runs},
};

/// Brings the sample under another id and name with the total speed of every cell multiplied.
const BRING_CHANGED: &str = "
const [id, name, factor, done] = arguments;
const walk = it => Object.entries(it ?? {}).forEach(([key, value]) => {
    if (key === 'total_tok_s' && typeof value === 'number') it[key] = value * factor;
    else if (typeof value === 'object') walk(value);
});
fetch('/api/v1/runs/reference/export?format=json').then(answer => answer.json()).then(file => {
    Object.assign(file.run, {id, started_unix_ms: 1790000000000});
    file.run.plan.name = name;
    walk(file.run);
    return fetch('/api/v1/import?name=' + id + '.json', {method: 'POST', body: JSON.stringify(file)});
}).then(answer => answer.json()).then(done)";

async fn bring_changed(page: &WebDriver, id: &str, name: &str, factor: f64) -> Result<()> {
    let told = page.execute_async(BRING_CHANGED, vec![id.into(), name.into(), factor.into()]).await?;
    ensure!(told.json()[0]["id"] == id, "{id} was not imported: {}", told.json());
    Ok(())
}

async fn address(page: &WebDriver) -> Result<String> {
    Ok(page.current_url().await?.as_str().to_owned())
}

pub(crate) async fn wait_address(page: &WebDriver, wanted: &str) -> Result<()> {
    let what = format!("an address with {wanted}");
    until(&what, async || Ok(address(page).await?.contains(wanted).then_some(()))).await
}

async fn pick(page: &WebDriver, run: &str) -> Result<()> {
    let found = wait_for(page, &card(run, "[data-testid=pick]")).await?;
    page.execute("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", vec![found.to_json()?]).await?;
    Ok(found.click().await?)
}

async fn chip(page: &WebDriver, verdict: &str) -> Result<WebElement> {
    wait_for(page, &format!("[data-verdict={verdict}]")).await
}

/// Two runs of an agent, the second twice as fast, and a browser on its list.
async fn with_pair(width: u32, height: u32) -> Result<(Rig, WebDriver)> {
    let (rig, page) = with_runs(width, height).await?;
    bring_changed(&page, "twice", "Twice as fast", 2.0).await?;
    page.refresh().await?;
    wait_for(&page, &card("twice", "")).await?;
    Ok((rig, page))
}

#[tokio::test]
async fn two_runs_are_picked_compared_and_passed_on() -> Result<()> {
    picked_compared_and_passed_on(1440, 900).await
}

/// The same at any width.
pub(crate) async fn picked_compared_and_passed_on(width: u32, height: u32) -> Result<()> {
    let (rig, page) = with_pair(width, height).await?;
    pick(&page, "twice").await?;
    wait_text(&page, "[data-testid=compare-bar]", |text| text.contains("Choose one more run")).await?;
    pick(&page, "a").await?;
    wait_text(&page, "[data-testid=compare-bar]", |text| {
        text.contains("Compare Alpha on H100 (A) with Twice as fast (B)")
    })
    .await?;
    ensure!(
        !wait_for(&page, &card("bb", "[data-testid=pick]")).await?.is_enabled().await?,
        "a third run can be chosen"
    );
    wait_for(&page, "[data-testid=compare-chosen]").await?.click().await?;
    wait_address(&page, "/compare?a=a&b=twice").await?;
    wait_text(&page, "[data-testid=sentence]", |text| text.contains("likely faster in 73 cells")).await?;
    wait_text(&page, "[data-testid=side-A]", |text| text.contains("Alpha on H100")).await?;
    wait_text(&page, "[data-testid=side-B]", |text| text.contains("Twice as fast")).await?;
    wait_text(&page, "[data-testid=row-count]", |text| text == "73 cells").await?;
    wait_text(&page, "[data-testid=cells] [data-cell=decode-8K-1]", |text| text.contains("+100.0 %")).await?;

    // The imported sample has no intervals: twice the speed is likely, and of times nothing can be told.
    chip(&page, "faster").await?.click().await?;
    wait_address(&page, "v=faster").await?;
    ensure!(!chip(&page, "slower").await?.is_enabled().await?, "a verdict that no cell has can be chosen");
    chip(&page, "faster").await?.click().await?;
    wait_address(&page, "/compare?a=a&b=twice").await?;
    let select = wait_for(&page, "[data-testid=metric]").await?;
    select.find(By::Css("option[value=ttft]")).await?.click().await?;
    wait_address(&page, "m=ttft").await?;
    wait_text(&page, "[data-testid=cells] [data-cell=decode-8K-1]", |text| text.contains("92 ms")).await?;
    chip(&page, "inconclusive").await?.click().await?;
    wait_address(&page, "v=inconclusive").await?;
    wait_for(&page, "[data-testid=swap]").await?.click().await?;
    wait_address(&page, "/compare?a=twice&b=a&m=ttft&v=inconclusive").await?;
    wait_text(&page, "[data-testid=side-A]", |text| text.contains("Twice as fast")).await?;

    let other = rig.browser(width, height).await?;
    other.goto(address(&page).await?).await?;
    for part in ["sentence", "cells", "delta-decode", "verdicts"] {
        let css = format!("[data-testid={part}]");
        let here = wait_for(&page, &css).await?.text().await?;
        wait_text(&other, &css, |text| text == here).await?;
    }
    no_errors(&other).await?;
    other.quit().await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn the_keyboard_alone_compares() -> Result<()> {
    let (_rig, page) = with_pair(1440, 900).await?;
    for run in ["a", "twice"] {
        let focus =
            format!("document.querySelector('{}').focus()", card(run, "[data-testid=pick]").replace('"', "\\\""));
        page.execute(focus, vec![]).await?;
        press(&page, " ").await?;
    }
    // A box is no place to type: the key leads to the button that compares.
    press(&page, "c").await?;
    wait_focus(&page, "compare-chosen").await?;
    press(&page, Key::Enter).await?;
    wait_for(&page, "[data-testid=delta-decode]").await?;
    wait_focus(&page, "main").await?;
    page.find(By::Tag("body")).await?.send_keys("m").await?;
    wait_focus(&page, "matrix-cell-0-0").await?;
    press(&page, Key::Right).await?;
    wait_focus(&page, "matrix-cell-0-1").await?;
    wait_text(&page, "[data-testid=cell-note]", |text| {
        text.contains("Sustained decode, 8K × 2") && text.contains("95 % interval")
    })
    .await?;
    wait_for(&page, "[data-chart=compare-level] .ka .ring").await?;
    // The same cell has a ring in all three maps.
    for map in ["delta-decode", "map-A", "map-B"] {
        wait_for(&page, &format!("[data-testid={map}] [data-cell=decode-8K-2].read")).await?;
    }
    shot(&page, "compare-read-out").await?;
    press(&page, Key::End).await?;
    wait_focus(&page, "matrix-cell-0-7").await?;
    press(&page, Key::Enter).await?;
    wait_address(&page, "/runs/twice/cells/decode-8K-128").await?;
    page.back().await?;
    wait_for(&page, "[data-testid=delta-decode]").await?;
    page.execute("document.querySelector('[data-testid=swap]').focus()", vec![]).await?;
    press(&page, Key::Enter).await?;
    wait_address(&page, "/compare?a=twice&b=a").await?;
    wait_focus(&page, "swap").await?;
    page.find(By::Tag("body")).await?.send_keys("e").await?;
    wait_focus(&page, "export").await?;
    press(&page, Key::Enter).await?;
    wait_for(&page, "[data-testid=export-csv]").await?;
    press(&page, Key::Escape).await?;
    wait_focus(&page, "export").await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn the_maps_of_both_runs_have_one_scale_and_one_cell_read_out() -> Result<()> {
    let (rig, page) = with_pair(1440, 900).await?;
    page.goto(format!("{}/compare?a=a&b=twice", rig.url)).await?;
    let step = async |map: &str, cell: &str| -> Result<u32> {
        let css = format!("[data-testid=map-{map}] [data-cell={cell}]");
        let classes = wait_for(&page, &css).await?.attr("class").await?.unwrap_or_default();
        let step = classes.split(' ').find_map(|class| class.strip_prefix('q')?.parse().ok());
        step.with_context(|| format!("{css} has no colour step: {classes}"))
    };
    ensure!(
        step("A", "decode-8K-1").await? < step("B", "decode-8K-1").await?,
        "twice the speed has no stronger colour"
    );
    let from_map = wait_for(&page, "[data-testid=map-B] [data-cell=decode-16K-8]").await?;
    from_map.scroll_into_view().await?;
    from_map.click().await?;
    wait_text(&page, "[data-testid=cell-note]", |text| text.contains("Sustained decode, 16K × 8")).await?;
    wait_for(&page, "[data-testid=delta-decode] [data-cell=decode-16K-8].read").await?;
    wait_for(&page, "[data-testid=map-A] [data-cell=decode-16K-8].read").await?;
    let in_delta = wait_for(&page, "[data-testid=delta-decode] [data-cell=decode-8K-4]").await?;
    in_delta.click().await?;
    wait_for(&page, "[data-testid=map-B] [data-cell=decode-8K-4].read").await?;
    let label = wait_for(&page, "[data-testid=map-B] [role=img]").await?.attr("aria-label").await?;
    let label = label.unwrap_or_default();
    ensure!(label.contains("B, Prefill") && label.contains("table of all cells"), "{label}");
    // Another number has colours of its own: where less is better the strongest colour is the shortest time.
    page.goto(format!("{}/compare?a=a&b=twice&m=ttft", rig.url)).await?;
    let (short, long) = (step("A", "decode-8K-1").await?, step("A", "decode-8K-128").await?);
    ensure!(short > long, "a TTFT of one request has step {short}, one of 128 has {long}");
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

/// Whether the maps of both runs stand beside the differences, or below them.
async fn maps_are_beside(page: &WebDriver) -> Result<bool> {
    let script = "const at = id => document.querySelector(`[data-testid=${id}]`).getBoundingClientRect();
        return at('maps').left >= at('delta-decode').right - 1";
    Ok(page.execute(script, vec![]).await?.convert()?)
}

#[tokio::test]
async fn a_run_against_itself_and_against_nothing() -> Result<()> {
    let (rig, page) = with_pair(1440, 900).await?;
    page.goto(format!("{}/compare?a=a&b=a", rig.url)).await?;
    wait_text(&page, "[data-testid=caveats]", |text| text.contains("the same run")).await?;
    wait_text(&page, "[data-testid=cells] [data-cell=decode-8K-1]", |text| text.contains("0.0 %")).await?;
    no_errors(&page).await?;

    page.goto(format!("{}/compare?a=a&b=nowhere", rig.url)).await?;
    wait_text(&page, "[data-testid=run-not-found]", |text| text.contains("has no run \"nowhere\"")).await?;
    let select = wait_for(&page, "[data-testid=choose-b]").await?;
    until("the runs to choose from", async || Ok(select.find(By::Css("option[value=twice]")).await.ok()))
        .await?
        .click()
        .await?;
    wait_for(&page, "[data-testid=compare]").await?.click().await?;
    wait_address(&page, "/compare?a=a&b=twice").await?;
    wait_for(&page, "[data-testid=sentence]").await?;

    page.goto(format!("{}/runs/a", rig.url)).await?;
    wait_for(&page, "[data-testid=compare]").await?.click().await?;
    wait_address(&page, "/compare?a=a").await?;
    wait_for(&page, "[data-testid=choose-b]").await?;

    // A link outlives its run: the other one stays chosen.
    let delete = "fetch('/api/v1/runs/twice', {method: 'DELETE'}).then(answer => arguments[0](answer.status))";
    ensure!(page.execute_async(delete, vec![]).await?.json() == 204, "the run was not deleted");
    page.goto(format!("{}/compare?a=twice&b=a", rig.url)).await?;
    wait_text(&page, "[data-testid=run-not-found]", |text| text.contains("has no run \"twice\"")).await?;
    wait_for(&page, "[data-testid=choose-a] option[value=bb]").await?;
    let gone = page.find_all(By::Css("[data-testid=choose-a] option[value=twice]")).await?;
    ensure!(gone.is_empty(), "a deleted run can be chosen");
    page.quit().await?;
    Ok(())
}

/// Starts a run of these contexts on the simulator; gives its id.
async fn start(page: &WebDriver, contexts: &str) -> Result<String> {
    let script = "const [contexts, done] = arguments;
        fetch('/api/v1/info').then(answer => answer.json()).then(info => {
            const target = info.targets.find(target => target.demo_plan);
            const plan = {...target.demo_plan, target: target.url, contexts, prefill_contexts: 'none',
                concurrency: '1,4', duration: '20s', repeats: '2'};
            return fetch('/api/v1/runs', {method: 'POST', headers: {'content-type': 'application/json'},
                body: JSON.stringify({plan})});
        }).then(answer => answer.json()).then(started => done(started.id || JSON.stringify(started)))";
    Ok(page.execute_async(script, vec![contexts.into()]).await?.convert()?)
}

async fn wait_finished(page: &WebDriver, rig: &Rig, run: &str) -> Result<()> {
    page.goto(format!("{}/runs/{run}", rig.url)).await?;
    wait_text(page, "[data-testid=status]", |text| text.contains("Finished")).await?;
    Ok(())
}

#[tokio::test]
async fn a_running_run_is_followed_and_runs_without_a_common_cell_say_so() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(&rig.url).await?;
    let short = start(&page, "8K,16K").await?;
    wait_finished(&page, &rig, &short).await?;
    let again = start(&page, "8K,16K").await?;
    page.goto(format!("{}/compare?a={short}&b={again}", rig.url)).await?;
    wait_text(&page, "[data-testid=caveats]", |text| text.contains("B is still running")).await?;
    // Without another look at the address: the cells come one by one.
    wait_text(&page, "[data-testid=caveats]", |text| !text.contains("still running")).await?;
    // What a busy machine measures may not be comparable, but it is measured.
    wait_text(&page, "[data-testid=cells] [data-cell=decode-16K-4]", |text| !text.contains("was not measured")).await?;
    check(&page, "compare-repeated").await?;

    let long = start(&page, "32K").await?;
    wait_finished(&page, &rig, &long).await?;
    page.goto(format!("{}/compare?a={short}&b={long}", rig.url)).await?;
    wait_text(&page, "[data-testid=sentence]", |text| text.contains("no cell in common: 4 only in A, 2 only in B"))
        .await?;
    wait_text(&page, "[data-testid=caveats]", |text| text.contains("Choose another run")).await?;
    check(&page, "compare-no-common").await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn the_page_fits_and_is_accessible() -> Result<()> {
    let (rig, first) = with_pair(1440, 900).await?;
    first.quit().await?;
    for (width, height) in [(1440, 900), (390, 844)] {
        let page = rig.browser(width, height).await?;
        page.goto(&rig.url).await?;
        for theme in ["light", "dark"] {
            in_theme(&page, theme).await?;
            let name = |what: &str| format!("compare-{what}-{width}-{theme}");
            page.goto(&rig.url).await?;
            wait_for(&page, &card("twice", "")).await?;
            pick(&page, "twice").await?;
            pick(&page, "a").await?;
            wait_for(&page, "[data-testid=compare-chosen]").await?;
            check(&page, &name("bar")).await?;
            page.goto(format!("{}/compare", rig.url)).await?;
            wait_for(&page, "[data-testid=choose-a] option[value=twice]").await?;
            check(&page, &name("choose")).await?;
            page.goto(format!("{}/compare?a=a&b=twice", rig.url)).await?;
            wait_for(&page, "[data-testid=delta-decode]").await?;
            check(&page, &name("page")).await?;
            ensure!(maps_are_beside(&page).await? == (width > 1100), "the maps at {width} px");
            page.execute("document.getElementById('matrix').scrollIntoView()", vec![]).await?;
            shot(&page, &name("maps")).await?;
            page.execute("scrollTo(0, 0)", vec![]).await?;
            chip(&page, "faster").await?.click().await?;
            wait_address(&page, "v=faster").await?;
            wait_for(&page, "[data-testid=export]").await?.click().await?;
            check(&page, &name("filtered")).await?;
        }
        page.quit().await?;
    }
    Ok(())
}

#[tokio::test]
async fn further_runs_are_shown_beside_the_two() -> Result<()> {
    let (rig, page) = with_pair(1440, 900).await?;
    bring_changed(&page, "half", "Half as fast", 0.5).await?;
    page.goto(format!("{}/compare?a=a&b=twice", rig.url)).await?;
    wait_for(&page, "[data-testid=also-show] option[value=half]").await?.click().await?;
    wait_address(&page, "/compare?a=a&b=twice&c=half").await?;
    wait_text(&page, "[data-testid=side-C]", |text| text.contains("Half as fast")).await?;
    let choice = wait_for(&page, "[data-testid=also-show]").await?;
    ensure!(choice.prop("value").await?.as_deref() == Some(""), "the choice shows a run that was not chosen");
    wait_for(&page, "[data-chart=compare-level] .kc .line").await?;
    wait_text(&page, "[data-testid=cells] [data-cell=decode-8K-1]", |text| text.contains("111.8 tok/s")).await?;
    wait_text(&page, "[data-testid=sentence]", |text| text.contains("likely faster in 73 cells")).await?;
    let address = address(&page).await?;
    check(&page, "compare-three").await?;
    press_button(&page, "take-away-C").await?;
    wait_address(&page, "/compare?a=a&b=twice").await?;
    until("no further column", async || {
        let text = wait_for(&page, "[data-testid=cells] [data-cell=decode-8K-1]").await?.text().await?;
        Ok((!text.contains("111.8")).then_some(()))
    })
    .await?;
    no_errors(&page).await?;
    page.quit().await?;

    let phone = rig.browser(390, 844).await?;
    phone.goto(address).await?;
    wait_text(&phone, "[data-testid=side-C]", |text| text.contains("Half as fast")).await?;
    check(&phone, "compare-three-390").await?;
    phone.goto(format!("{}/compare?a=a&b=twice&c=gone", rig.url)).await?;
    wait_text(&phone, "[data-testid=side-C]", |text| text.contains("there is no run \"gone\" here")).await?;
    phone.quit().await?;
    Ok(())
}
