//! One cell looked at closely: opened from the matrix and left again, its neighbours, its address, and what is said where
//! no requests were kept.

use anyhow::{Context as _, Result, ensure};
use thirtyfour::prelude::*;

use crate::{
    looks,
    rig::{Rig, no_errors, shot, until, wait_for, wait_text},
};

/// Measures 8K × 1 and 4 on the simulator and waits for the end; gives the run's address.
async fn measured(page: &WebDriver, rig: &Rig) -> Result<String> {
    measured_often(page, rig, 1).await
}

/// The same with each cell so often.
async fn measured_often(page: &WebDriver, rig: &Rig, repeats: u32) -> Result<String> {
    page.goto(&rig.url).await?;
    let script = "const [repeats, done] = arguments;
        fetch('/api/v1/info').then(answer => answer.json()).then(info => {
            const target = info.targets.find(target => target.demo_plan);
            const plan = {...target.demo_plan, target: target.url, contexts: '8K,16K', prefill_contexts: '8K',
                concurrency: '1,4', duration: '20s', repeats};
            return fetch('/api/v1/runs', {method: 'POST', headers: {'content-type': 'application/json'},
                body: JSON.stringify({plan})});
        }).then(answer => answer.json()).then(started => done(started.id || JSON.stringify(started)))";
    let id: String = page.execute_async(script, vec![repeats.to_string().into()]).await?.convert()?;
    let url = format!("{}/runs/{id}", rig.url);
    page.goto(&url).await?;
    wait_text(page, "[data-testid=status]", |text| text.contains("Finished")).await?;
    Ok(url)
}

/// Which cell has the focus, or which other element.
async fn focused(page: &WebDriver) -> Result<String> {
    let script = "const it = document.activeElement;
        return it.dataset.cell || it.dataset.opens || it.id || it.tagName";
    Ok(page.execute(script, vec![]).await?.convert()?)
}

async fn until_focused(page: &WebDriver, wanted: &str) -> Result<()> {
    until(&format!("the focus on {wanted}"), async || Ok((focused(page).await? == wanted).then_some(()))).await
}

async fn until_address(page: &WebDriver, end: &str) -> Result<()> {
    let what = format!("an address that ends with {end}");
    until(&what, async || Ok(page.current_url().await?.as_str().ends_with(end).then_some(()))).await
}

/// Presses a key where the focus is.
async fn press(page: &WebDriver, key: impl Into<TypingData>) -> Result<()> {
    Ok(page.active_element().await?.send_keys(key).await?)
}

async fn sheet_shows(page: &WebDriver, cell: &str) -> Result<()> {
    wait_for(page, &format!("[data-testid=cell-sheet][data-shown=\"{cell}\"] [data-testid=request-table] tbody tr"))
        .await?;
    Ok(())
}

async fn count(page: &WebDriver, css: &str) -> Result<u64> {
    let script = "return document.querySelectorAll(arguments[0]).length";
    Ok(page.execute(script, vec![css.into()]).await?.convert()?)
}

#[tokio::test]
async fn a_cell_opens_by_enter_and_gives_the_focus_back() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    measured(&page, &rig).await?;
    page.execute("document.getElementById('matrix-cell-0-0').focus()", vec![]).await?;
    press(&page, Key::Right).await?;
    until_focused(&page, "decode-8K-4").await?;
    press(&page, Key::Enter).await?;
    sheet_shows(&page, "decode-8K-4").await?;
    until_address(&page, "/cells/decode-8K-4").await?;
    until_focused(&page, "cell-title").await?;
    shot(&page, "cell-1440").await?;

    // Neighbours: in reading order, and as the arrows point.
    press(&page, "]").await?;
    sheet_shows(&page, "decode-16K-1").await?;
    press(&page, "[").await?;
    sheet_shows(&page, "decode-8K-4").await?;
    press(&page, Key::Left).await?;
    sheet_shows(&page, "decode-8K-1").await?;
    press(&page, Key::Escape).await?;
    until_focused(&page, "decode-8K-1").await?;
    ensure!(count(&page, "[data-testid=cell-sheet]").await? == 0, "the sheet is still there");

    // The browser's own way back.
    press(&page, Key::Enter).await?;
    sheet_shows(&page, "decode-8K-1").await?;
    page.back().await?;
    until_focused(&page, "decode-8K-1").await?;
    // The page scrolls smoothly to whatever is clicked: a click by script does not wait for it.
    page.execute("document.querySelector('a[data-opens=prefill-8K-1]').click()", vec![]).await?;
    wait_text(&page, "#cell-title", |text| text == "8K context, prefill").await?;
    press(&page, Key::Escape).await?;
    until_focused(&page, "prefill-8K-1").await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn a_link_opens_the_same_part_of_the_time() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    let run = measured(&page, &rig).await?;
    page.goto(format!("{run}/cells/decode-8K-4?m=ttft&t=2..5.5")).await?;
    sheet_shows(&page, "decode-8K-4").await?;
    wait_text(&page, "[data-testid=zoom]", |text| text == "2.00 s to 5.50 s").await?;
    shot(&page, "cell-zoomed").await?;
    ensure!(painted(&page).await?, "the waterfall is empty");
    page.refresh().await?;
    wait_text(&page, "[data-testid=zoom]", |text| text == "2.00 s to 5.50 s").await?;
    wait_for(&page, "[data-testid=zoom-out]").await?.click().await?;
    until_address(&page, "/cells/decode-8K-4?m=ttft").await?;

    // By keyboard, and by drag; the address follows.
    let canvas = wait_for(&page, "[data-testid=waterfall] canvas").await?;
    canvas.scroll_into_view().await?;
    page.execute("document.querySelector('[data-testid=waterfall] canvas').focus()", vec![]).await?;
    press(&page, Key::Right).await?;
    wait_text(&page, "[data-testid=request-at]", |text| text.starts_with("Slot ")).await?;
    press(&page, "+").await?;
    let zoomed = until("a part of the time", async || {
        Ok(page.current_url().await?.query().and_then(|query| query.split("t=").nth(1)).map(ToOwned::to_owned))
    });
    let by_key = zoomed.await?;
    page.action_chain()
        .move_to_element_center(&canvas)
        .click_and_hold()
        .move_by_offset(120, 0)
        .release()
        .perform()
        .await?;
    until("another part of the time", async || {
        Ok((!page.current_url().await?.as_str().ends_with(&by_key)).then_some(()))
    })
    .await?;
    press(&page, "0").await?;
    until_address(&page, "/cells/decode-8K-4?m=ttft").await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

/// From here on the page is told of 100,000 requests, 128 at once, some of which failed.
const MANY_REQUESTS: &str = "const real = window.fetch;
    window.fetch = async (...given) => {
        if (!(given[0].url || given[0]).endsWith('/requests')) return real(...given);
        const count = 100000, each = make => Array.from({length: count}, (_, n) => make(n));
        const columns = {total: count, slot: each(n => n % 128), due: each(n => n && n % 128 == 0 ? 30000 : 0),
            sent: each(() => 200), first: each(n => 4000 + n % 5000), last: each(n => 12000 + n % 6000),
            ended: each(n => 16300 + n % 5000 + n % 6000), end: each(n => n % 5003 == 7 ? 2 : 0), tokens: each(() => 9),
            failures: [{kind: 'server_error', http_status: 503, text: 'overloaded'}]};
        return new Response(JSON.stringify(columns), {headers: {'content-type': 'application/json'}});
    }";

#[tokio::test]
async fn a_hundred_thousand_requests_can_be_looked_at() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    measured(&page, &rig).await?;
    page.execute(MANY_REQUESTS, vec![]).await?;
    page.execute("document.getElementById('matrix-cell-0-0').click()", vec![]).await?;
    wait_text(&page, "[data-testid=page]", |text| text == "Page 1 of 2,000").await?;
    page.execute("document.querySelector('[data-testid=waterfall] canvas').focus()", vec![]).await?;
    for _ in 0..3 {
        press(&page, "+").await?;
    }
    press(&page, Key::Right).await?;
    wait_text(&page, "[data-testid=request-at]", |text| text.starts_with("Slot 0, due at")).await?;
    ensure!(painted(&page).await?, "the waterfall is empty");
    shot(&page, "cell-many").await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

/// Whether the waterfall has a pixel that is not empty.
async fn painted(page: &WebDriver) -> Result<bool> {
    let script = "const canvas = document.querySelector('[data-testid=waterfall] canvas');
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        return pixels.some((value, place) => place % 4 === 3 && value > 0)";
    Ok(page.execute(script, vec![]).await?.convert()?)
}

#[tokio::test]
async fn every_chart_is_also_a_table() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    let run = measured(&page, &rig).await?;
    page.goto(format!("{run}/cells/decode-8K-4")).await?;
    sheet_shows(&page, "decode-8K-4").await?;
    let charts = count(&page, "[data-testid=spread] figure").await?;
    ensure!(charts >= 4, "{charts} distributions");
    let open = "document.querySelectorAll('.as-table button').forEach(button => button.click())";
    page.execute(open, vec![]).await?;
    wait_for(&page, "[data-testid=over-time-table] tbody tr").await?;
    until("a table for each distribution", async || {
        Ok((count(&page, "[data-testid=spread-table]").await? == charts).then_some(()))
    })
    .await?;
    let rows = count(&page, "[data-testid=numbers] tbody tr").await?;
    ensure!(rows > 20, "{rows} numbers");
    wait_text(&page, "[data-testid=numbers] [data-metric=total_tok_s]", |text| text.contains("tok/s")).await?;
    let broken = crate::rig::axe(&page).await?;
    ensure!(broken.is_empty(), "accessibility rules broken: {broken:#?}");
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn a_cell_whose_requests_were_not_kept_says_so() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/runs/reference/cells/decode-8K-1", rig.url)).await?;
    wait_text(&page, "[data-testid=no-record]", |text| text.contains("imported")).await?;
    wait_text(&page, "[data-testid=cell-status]", |text| text == "Valid").await?;
    wait_text(&page, "[data-testid=numbers] [data-metric=total_tok_s]", |text| text.contains("223.5 tok/s")).await?;
    shot(&page, "cell-sample").await?;
    page.goto(format!("{}/runs/reference/cells/decode-3K-7", rig.url)).await?;
    wait_text(&page, "[data-testid=cell-sheet] [data-testid=notice]", |text| text.contains("no cell")).await?;
    page.goto(format!("{}/runs/reference/nonsense", rig.url)).await?;
    wait_text(&page, "main h1", |text| text.contains("no page at this address"))
        .await
        .context("an address that there is not")?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn a_cell_fits_and_is_accessible_in_both_themes() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let mut run = None;
    for (width, height) in [(1440, 900), (390, 844)] {
        let page = rig.browser(width, height).await?;
        let run = match &run {
            Some(run) => run,
            None => run.insert(measured(&page, &rig).await?),
        };
        page.goto(&rig.url).await?;
        for theme in ["light", "dark"] {
            looks::in_theme(&page, theme).await?;
            page.goto(format!("{run}/cells/decode-16K-4")).await?;
            sheet_shows(&page, "decode-16K-4").await?;
            looks::check(&page, &format!("cell-{width}-{theme}")).await?;
            let behind: bool = page
                .execute("return getComputedStyle(document.querySelector('.behind')).display === 'none'", vec![])
                .await?
                .convert()?;
            ensure!(behind == (width < 1200), "at {width} px the report is hidden: {behind}");
        }
        page.quit().await?;
    }
    Ok(())
}

#[tokio::test]
async fn each_measurement_of_a_repeated_cell_can_be_looked_at() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    let cell = format!("{}/cells/decode-8K-4", measured_often(&page, &rig, 2).await?);
    let pressed = "[data-testid=which] [aria-pressed=true]";
    page.goto(&cell).await?;
    sheet_shows(&page, "decode-8K-4").await?;
    wait_text(&page, pressed, |text| text == "2, the last").await?;
    wait_for(&page, "[data-repeat='1']").await?.click().await?;
    until_address(&page, "/decode-8K-4?repeat=1").await?;
    // The link opens the same elsewhere.
    page.refresh().await?;
    sheet_shows(&page, "decode-8K-4").await?;
    wait_text(&page, pressed, |text| text == "1").await?;
    let asked = "return performance.getEntriesByType('resource').filter(({name}) => name.endsWith('?repeat=1')).length";
    ensure!(
        page.execute(asked, vec![]).await?.convert::<u32>()? == 2,
        "the record and the requests were not asked for"
    );
    wait_for(&page, "[data-repeat='2']").await?.click().await?;
    until_address(&page, "/decode-8K-4").await?;
    sheet_shows(&page, "decode-8K-4").await?;
    no_errors(&page).await?;
    Ok(page.quit().await?)
}
