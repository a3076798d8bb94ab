//! The report of a finished run: what the matrix shows, the table and its file, charts, print, the page as a file; and
//! runs that no healthy server leaves.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use thirtyfour::prelude::*;

use crate::{
    looks::check,
    odd::{self, Size},
    rig::{Rig, axe, no_errors, shot, until, wait_for, wait_text},
    runs::press,
};

const TABLE: &str = "[data-testid=measurements]";

/// An agent with its sample's report open.
async fn report(width: u32, height: u32) -> Result<(Rig, WebDriver)> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(width, height).await?;
    page.goto(format!("{}/runs/reference", rig.url)).await?;
    wait_for(&page, &format!("{TABLE} tbody tr")).await?;
    Ok((rig, page))
}

async fn texts(page: &WebDriver, script: &str) -> Result<Vec<String>> {
    Ok(page.execute(script, vec![]).await?.convert()?)
}

/// Texts of the table as they are shown, row by row, the head first; without the small print.
async fn shown_table(page: &WebDriver) -> Result<Vec<Vec<String>>> {
    let script = "return [...document.querySelectorAll('[data-testid=measurements] tr')].map(row => [...row.children].map(
        cell => { const copy = cell.cloneNode(true); copy.querySelectorAll('small, [aria-hidden]').forEach(e => e.remove());
                  return copy.textContent.trim(); }))";
    Ok(page.execute(script, vec![]).await?.convert()?)
}

async fn wait_query(page: &WebDriver, what: &str, is_there: impl Fn(&str) -> bool) -> Result<()> {
    let seen = until(what, async || {
        let address = page.current_url().await?;
        Ok(is_there(address.query().unwrap_or_default()).then_some(()))
    });
    seen.await
}

/// Clicks what scrolling alone would hide behind the head of the page.
async fn click(page: &WebDriver, css: &str) -> Result<()> {
    let element = wait_for(page, css).await?;
    page.execute("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", vec![element.to_json()?])
        .await?;
    element.click().await?;
    Ok(())
}

async fn focus(page: &WebDriver, css: &str) -> Result<()> {
    wait_for(page, css).await?;
    page.execute("document.querySelector(arguments[0]).focus()", vec![css.into()]).await?;
    Ok(())
}

const MATRIX: &str = "return [...document.querySelectorAll('[data-testid=matrix] td[data-cell]')].map(
    cell => cell.className + ' ' + cell.innerText)";

#[tokio::test]
async fn metric_and_scope_stay_in_the_address() -> Result<()> {
    metric_and_scope(1440, 900).await
}

/// The same at any width.
pub(crate) async fn metric_and_scope(width: u32, height: u32) -> Result<()> {
    let (_rig, page) = report(width, height).await?;
    let first = texts(&page, MATRIX).await?;
    click(&page, "[data-testid=metric] option[value=per_user_tok_s]").await?;
    click(&page, "[data-scope=row]").await?;
    wait_query(&page, "metric and scope", |query| query.contains("m=per_user_tok_s") && query.contains("scope=row"))
        .await?;
    wait_text(&page, "[data-testid=metric-help] summary", |text| text.contains("Share of one user")).await?;
    let chosen = texts(&page, MATRIX).await?;
    ensure!(chosen != first, "the matrix shows the same as before");
    page.refresh().await?;
    until("the same view after a reload", async || Ok((texts(&page, MATRIX).await? == chosen).then_some(()))).await?;
    let unhelped = "return [...document.querySelectorAll('[data-testid=metric] optgroup option')]
        .filter(option => !option.title).map(option => option.value)";
    ensure!(texts(&page, unhelped).await?.is_empty(), "a metric has no help");
    // What nobody measured is hatched, says so, and is told before it is chosen.
    click(&page, "[data-testid=metric] option[value=gpu_power]").await?;
    let hatched = "return [...document.querySelectorAll('[data-testid=matrix] td.none')].map(cell => cell.innerText)";
    until("64 hatched cells", async || Ok((texts(&page, hatched).await?.len() == 64).then_some(()))).await?;
    wait_text(&page, "[data-testid=metric] option[value=gpu_power]", |text| text.contains("not measured")).await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn the_table_sorts_and_filters_and_its_file_equals_it() -> Result<()> {
    let (_rig, page) = report(1440, 900).await?;
    focus(&page, &format!("{TABLE} th[data-col=ttft] button")).await?;
    press(&page, Key::Enter).await?;
    wait_for(&page, "th[data-col=ttft][aria-sort=ascending]").await?;
    press(&page, Key::Enter).await?;
    wait_for(&page, "th[data-col=ttft][aria-sort=descending]").await?;
    click(&page, "[data-testid=rows-phase] option[value='Sustained decode']").await?;
    focus(&page, "[data-testid=find-rows]").await?;
    press(&page, "valid 8k").await?;
    click(&page, "[data-testid=columns]").await?;
    for column in ["total_tok_s.ci", "ttft.n", "per_user_tok_s"] {
        click(&page, &format!("[data-testid='column-{column}']")).await?;
    }
    shot(&page, "report-columns").await?;
    let broken = axe(&page).await?;
    ensure!(broken.is_empty(), "accessibility rules broken: {broken:#?}");
    press(&page, Key::Escape).await?;
    wait_query(&page, "the view of the table", |query| {
        ["sort=-ttft", "find=valid%208k", "phase=Sustained%20decode", "cols="].iter().all(|part| query.contains(part))
    })
    .await?;
    let shown = shown_table(&page).await?;
    ensure!(shown.len() > 8 && shown.first().is_some_and(|head| head.len() == 15), "shown: {shown:?}");
    wait_text(&page, "[data-testid=row-count]", |text| text == format!("{} of 73 rows", shown.len() - 1)).await?;
    page.refresh().await?;
    until("the same table after a reload", async || Ok((shown_table(&page).await? == shown).then_some(()))).await?;

    let folder = tempfile::tempdir()?;
    let file = downloaded(&page, "[data-testid=table-csv]", folder.path()).await?;
    ensure!(file.0.ends_with("-reference-table.csv"), "the file is called {}", file.0);
    let dash = |rows: Vec<Vec<String>>| -> Vec<Vec<String>> {
        rows.into_iter()
            .map(|row| row.into_iter().map(|text| if text == "—" { String::new() } else { text }).collect())
            .collect()
    };
    let (got, wanted) = (csv_rows(&file.1), dash(shown));
    ensure!(got == wanted, "the file holds {got:?}, the table {wanted:?}");

    // A row leads to its cell, and back to where one was, with the table as it was.
    let before = page.current_url().await?;
    click(&page, &format!("{TABLE} a[data-opens=decode-8K-128]")).await?;
    wait_for(&page, "[data-testid=cell-sheet][data-shown=decode-8K-128]").await?;
    page.find(By::Css("body")).await?.send_keys(Key::Escape).await?;
    until("the report", async || Ok((page.current_url().await? == before).then_some(()))).await?;
    let focused =
        "const at = document.activeElement; return [at.dataset.opens || '', at.closest('table')?.dataset.testid || '']";
    until("the focus on the row's link", async || {
        Ok((texts(&page, focused).await? == ["decode-8K-128", "measurements"]).then_some(()))
    })
    .await?;
    focus(&page, "[data-testid=find-rows]").await?;
    press(&page, " nothing").await?;
    wait_for(&page, "[data-testid=no-row] button").await?.click().await?;
    until("all rows", async || Ok((shown_table(&page).await?.len() == 74).then_some(()))).await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

/// Name and text of the file that a click brings.
async fn downloaded(page: &WebDriver, css: &str, folder: &Path) -> Result<(String, String)> {
    let to = json!({"behavior": "allow", "downloadPath": folder});
    page.cdp().send_raw("Browser.setDownloadBehavior", to).await?;
    click(page, css).await?;
    let found = until("the file", async || {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if !name.is_empty() && !name.ends_with(".crdownload") && !name.starts_with('.') {
                return Ok(Some((name, std::fs::read_to_string(path)?)));
            }
        }
        Ok(None)
    });
    found.await
}

/// The fields of a CSV file (RFC 4180).
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut field)),
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    rows
}

#[tokio::test]
async fn a_chart_reads_zooms_and_switches() -> Result<()> {
    let (_rig, page) = report(1440, 900).await?;
    let chart = "[data-chart=total_tok_s] [data-testid=chart-stage]";
    let of_decode = format!("#charts {chart}");
    focus(&page, &of_decode).await?;
    for _ in 0..5 {
        press(&page, Key::Right).await?;
    }
    wait_text(&page, "#charts [data-testid=chart-values]", |text| {
        text.contains("Requests at once 16") && text.contains("1,540.5")
    })
    .await?;
    wait_text(&page, &format!("{of_decode} [aria-live]"), |text| text.is_empty() || text.contains("8K: 1,540.5 tok/s"))
        .await?;
    shot(&page, "report-cross-line").await?;
    let ticks =
        "return [...document.querySelectorAll('#charts [data-chart=total_tok_s] .tick')].map(tick => tick.textContent)";
    let all = texts(&page, ticks).await?;
    press(&page, "+").await?;
    until("fewer marks", async || Ok((texts(&page, ticks).await? != all).then_some(()))).await?;
    press(&page, "0").await?;
    until("all marks", async || Ok((texts(&page, ticks).await? == all).then_some(()))).await?;
    // By drag, and back by a double click.
    let picture = page.find(By::Css(format!("{of_decode} svg"))).await?;
    page.action_chain()
        .move_to_element_center(&picture)
        .click_and_hold()
        .move_by_offset(160, 0)
        .release()
        .perform()
        .await?;
    wait_for(&page, "#charts [data-chart=total_tok_s] [data-testid=reset-zoom]").await?;
    page.action_chain().double_click_element(&picture).perform().await?;
    until("all marks", async || Ok((texts(&page, ticks).await? == all).then_some(()))).await?;
    click(&page, "#charts [data-chart=total_tok_s] .seg button:last-child").await?;
    until("a logarithmic axis", async || Ok((texts(&page, ticks).await? != all).then_some(()))).await?;
    click(&page, "#charts [data-chart=trade-off] [data-testid=figure-table-button]").await?;
    let rows = "return [...document.querySelectorAll('[data-chart=trade-off] tbody tr')].map(row => row.innerText)";
    until("the numbers of a chart", async || Ok((texts(&page, rows).await?.len() > 8).then_some(()))).await?;
    check(&page, "report-charts").await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn a_print_has_every_row_and_nothing_to_press() -> Result<()> {
    let (_rig, page) = report(1440, 900).await?;
    // A sheet of A4 across, between its margins, at 96 pixels per inch.
    let sheet = json!({"width": 1032, "height": 703, "deviceScaleFactor": 1, "mobile": false});
    page.cdp().send_raw("Emulation.setDeviceMetricsOverride", sheet).await?;
    page.cdp().send_raw("Emulation.setEmulatedMedia", json!({"media": "print"})).await?;
    let pressed = "return [...document.querySelectorAll('main button, main select, main input, nav, .bar')]
        .filter(e => e.checkVisibility() && !e.closest('th')).map(e => e.outerHTML.slice(0, 120))";
    ensure!(texts(&page, pressed).await?.is_empty(), "printed controls: {:#?}", texts(&page, pressed).await?);
    let cut = "return [...document.querySelectorAll('main *')].filter(e => {
        const style = getComputedStyle(e);
        return style.overflowX !== 'visible' && !e.closest('.sr, svg') && e.scrollWidth > e.clientWidth + 1
            || style.overflowY === 'auto' && e.scrollHeight > e.clientHeight + 1; }).map(e => e.className)";
    ensure!(texts(&page, cut).await?.is_empty(), "cut off: {:?}", texts(&page, cut).await?);
    let wide = "return [...document.querySelectorAll('main table, main svg')].filter(
        e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 80))";
    ensure!(texts(&page, wide).await?.is_empty(), "beyond the sheet: {:?}", texts(&page, wide).await?);
    ensure!(shown_table(&page).await?.len() == 74, "rows are missing");
    let print = json!({"landscape": true, "printBackground": true, "preferCSSPageSize": true});
    let file = page.cdp().send_raw("Page.printToPDF", print).await?;
    ensure!(file["data"].as_str().is_some_and(|data| data.starts_with("JVBERi0")), "no PDF came");
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn the_page_as_a_file_opens_from_disk_without_a_network() -> Result<()> {
    let (rig, page) = report(1440, 900).await?;
    let script = "const done = arguments[0];
        fetch('/api/v1/runs/reference/export?format=html').then(answer => answer.text()).then(done)";
    let text: String = page.execute_async(script, vec![]).await?.convert()?;
    page.quit().await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("report.html");
    std::fs::write(&path, text)?;
    for (width, height) in [(1440, 900), (390, 844)] {
        let page = rig.browser(width, height).await?;
        let offline = json!({"offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0});
        page.cdp().send_raw("Network.enable", json!({})).await?;
        page.cdp().send_raw("Network.emulateNetworkConditions", offline).await?;
        page.goto(format!("file://{}", path.display())).await?;
        let rows =
            texts(&page, "return [...document.querySelectorAll('table.rows tbody tr')].map(row => row.innerText)")
                .await?;
        ensure!(rows.len() == 73 && rows[0].contains("726 ms"), "rows: {rows:?}");
        let headings = texts(&page, "return [...document.querySelectorAll('h1, h2')].map(e => e.innerText)").await?;
        ensure!(headings.len() == 8, "headings: {headings:?}");
        ensure!(texts(&page, "return [...document.scripts].map(e => e.src)").await?.is_empty(), "it has a script");
        check(&page, &format!("report-file-{width}")).await?;
        page.quit().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_thousand_cells_open_and_scroll() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    for (width, height) in [(1440, 900), (390, 844)] {
        let page = rig.browser(width, height).await?;
        page.goto(&rig.url).await?;
        if width == 1440 {
            let sample = odd::sample(&page).await?;
            odd::import(&page, &odd::sized(&sample, "thousand", Size { contexts: 32, levels: 32, prefill: 0 })?)
                .await?;
        }
        page.goto(format!("{}/runs/thousand", rig.url)).await?;
        until("1,024 rows", async || Ok((shown_table(&page).await?.len() == 1_025).then_some(()))).await?;
        click(&page, "[data-testid=rows-context] option[value='32K']").await?;
        wait_text(&page, "[data-testid=row-count]", |text| text == "32 of 1,024 rows").await?;
        click(&page, "[data-testid=all-rows]").await?;
        // The row's name and the column's stay in sight wherever one scrolls to.
        let scrolled = "const box = document.querySelector('.table-scroll.tall'); box.scrollTo(9999, 9999);
            const at = e => e.getBoundingClientRect(), edge = at(box);
            const head = box.querySelector('thead th'), last = [...box.querySelectorAll('tbody tr')].at(-1).children[0];
            return [String(Math.round(at(head).top - edge.top) <= 1), String(innerWidth > 720 || Math.round(at(last).left - edge.left) <= 1)]";
        until("all rows again", async || Ok((shown_table(&page).await?.len() == 1_025).then_some(()))).await?;
        ensure!(texts(&page, scrolled).await? == ["true", "true"], "head or first column went out of sight");
        focus(&page, "#matrix-cell-0-0").await?;
        press(&page, Key::End).await?;
        // The note below follows the pointer, too; the focus does not.
        let focused = "return [document.activeElement.dataset.cell || '']";
        until("the last cell of the first row", async || {
            Ok((texts(&page, focused).await? == ["decode-1K-32"]).then_some(()))
        })
        .await?;
        check(&page, &format!("report-thousand-{width}")).await?;
        page.quit().await?;
    }
    Ok(())
}

/// Files of the odd runs.
fn odd_runs(sample: &Value) -> Result<Vec<Value>> {
    let long = |part: &str| part.chars().cycle().take(10_000).collect::<String>();
    Ok(vec![
        odd::sized(sample, "one", Size { contexts: 1, levels: 1, prefill: 0 })?,
        odd::sized(sample, "prefill", Size { contexts: 0, levels: 0, prefill: 5 })?,
        odd::every_status(sample)?,
        odd::cancelled(sample)?,
        odd::failed(sample)?,
        odd::half(sample)?,
        odd::strange(sample, "unbroken", &long("Unbroken"))?,
        odd::strange(sample, "markup", &long("<img src=x onerror=\"document.title='pwned'\">"))?,
        odd::strange(sample, "rtl", &long("قياس السرعة "))?,
        odd::strange(sample, "emoji", &long("👩‍👩‍👧‍👦🚀 "))?,
    ])
}

#[tokio::test]
async fn odd_runs_open_and_fit() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(&rig.url).await?;
    let files = odd_runs(&odd::sample(&page).await?)?;
    for file in &files {
        odd::import(&page, file).await?;
    }
    page.quit().await?;
    for (width, height) in [(1440, 900), (390, 844)] {
        let page = rig.browser(width, height).await?;
        for file in &files {
            let id = file["run"]["id"].as_str().context("a run has an id")?;
            page.goto(format!("{}/runs/{id}", rig.url)).await?;
            let cells = file["run"]["cells"].as_array().map_or(0, Vec::len);
            until(&format!("all rows of {id}"), async || {
                Ok((shown_table(&page).await?.len() == cells + 1).then_some(()))
            })
            .await?;
            check(&page, &format!("report-{id}-{width}")).await?;
            let images = texts(&page, "return [...document.images].map(image => image.src)").await?;
            ensure!(images.is_empty() && page.title().await? != "pwned", "{id}: markup became elements");
        }
        page.quit().await?;
    }
    Ok(())
}
