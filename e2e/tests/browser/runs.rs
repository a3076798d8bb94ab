//! The list of runs: naming, tagging, finding, pinning, deleting and bringing back; files; odd names; the keyboard.

use anyhow::{Result, ensure};
use serde_json::Value;
use thirtyfour::prelude::*;

use crate::{
    looks::check,
    rig::{Rig, axe, no_errors, shot, until, wait_for, wait_text},
};

/// Copies the sample under another id and name, as an import would bring it.
const BRING: &str = "
const [id, name, labels, done] = arguments;
fetch('/api/v1/runs/reference/export?format=json').then(answer => answer.json()).then(file => {
    Object.assign(file.run, {id, started_unix_ms: 1780000000000 + id.length});
    file.run.plan.name = name;
    file.labels = labels;
    return fetch('/api/v1/import?name=' + id + '.json', {method: 'POST', body: JSON.stringify(file)});
}).then(answer => answer.json()).then(done)";

/// Drops a file on the page, as a hand would.
const DROP: &str = "
const [name, text] = arguments;
const dataTransfer = new DataTransfer();
dataTransfer.items.add(new File([text], name, {type: 'application/json'}));
for (const kind of ['dragover', 'drop']) {
    document.querySelector('main').dispatchEvent(
        new DragEvent(kind, {dataTransfer, bubbles: true, cancelable: true}));
}";

pub(crate) async fn bring(page: &WebDriver, id: &str, name: &str, labels: Value) -> Result<()> {
    let told = page.execute_async(BRING, vec![id.into(), name.into(), labels]).await?;
    ensure!(told.json()[0]["id"] == id, "{id} was not imported: {}", told.json());
    Ok(())
}

/// An agent with three runs beside the sample, and a browser on its list.
pub(crate) async fn with_runs(width: u32, height: u32) -> Result<(Rig, WebDriver)> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(width, height).await?;
    page.goto(&rig.url).await?;
    wait_for(&page, "[data-testid=first-use]").await?;
    bring(&page, "a", "Alpha on H100", serde_json::json!({"tags": ["night"], "notes": "fan at <b>full</b> speed"}))
        .await?;
    bring(&page, "bb", "Beta on H100", Value::Null).await?;
    bring(&page, "ccc", "Gamma on L40", serde_json::json!({"tags": ["day"]})).await?;
    page.refresh().await?;
    wait_for(&page, &card("ccc", "")).await?;
    Ok((rig, page))
}

pub(crate) fn card(run: &str, inside: &str) -> String {
    format!("[data-testid=run-card][data-run=\"{run}\"] {inside}")
}

/// Opens a run's menu. The page scrolls smoothly, and a click does not wait for the end of that.
pub(crate) async fn open_menu(page: &WebDriver, run: &str) -> Result<()> {
    let button = wait_for(page, &card(run, "[data-testid=run-menu]")).await?;
    page.execute("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", vec![button.to_json()?])
        .await?;
    button.click().await?;
    wait_for(page, &card(run, "[data-testid=duplicate]")).await?;
    Ok(())
}

/// Chooses an action of a run's menu.
pub(crate) async fn act(page: &WebDriver, run: &str, action: &str) -> Result<()> {
    open_menu(page, run).await?;
    wait_for(page, &card(run, &format!("[data-testid={action}]"))).await?.click().await?;
    Ok(())
}

async fn type_over(page: &WebDriver, css: &str, text: &str) -> Result<()> {
    let field = wait_for(page, css).await?;
    field.clear().await?;
    field.send_keys(text).await?;
    Ok(())
}

/// Ids of the cards in their order.
async fn shown(page: &WebDriver) -> Result<Vec<String>> {
    let script = "return [...document.querySelectorAll('[data-testid=run-card]')].map(card => card.dataset.run)";
    Ok(page.execute(script, vec![]).await?.convert()?)
}

pub(crate) async fn wait_shown(page: &WebDriver, wanted: &[&str]) -> Result<()> {
    until(&format!("the cards {wanted:?}"), async || Ok((shown(page).await? == wanted).then_some(()))).await
}

async fn focused(page: &WebDriver) -> Result<Option<String>> {
    let script = "return document.activeElement.dataset.testid || document.activeElement.id || null";
    Ok(page.execute(script, vec![]).await?.convert()?)
}

pub(crate) async fn wait_focus(page: &WebDriver, wanted: &str) -> Result<()> {
    let what = format!("the focus on {wanted}");
    let found = until(&what, async || Ok((focused(page).await?.as_deref() == Some(wanted)).then_some(()))).await;
    match found {
        Ok(()) => Ok(()),
        Err(error) => Err(error.context(format!("it is on {:?}", focused(page).await?))),
    }
}

pub(crate) async fn press(page: &WebDriver, keys: impl Into<TypingData>) -> Result<()> {
    page.active_element().await?.send_keys(keys).await?;
    Ok(())
}

#[tokio::test]
async fn a_run_is_renamed_tagged_and_found() -> Result<()> {
    let (rig, page) = with_runs(1440, 900).await?;
    act(&page, "bb", "rename").await?;
    wait_focus(&page, "edit-name").await?;
    type_over(&page, "[data-testid=edit-name]", "Driver 570").await?;
    type_over(&page, "[data-testid=edit-tags-input]", "night, new driver").await?;
    shot(&page, "runs-edit").await?;
    wait_for(&page, "[data-testid=edit-save]").await?.click().await?;
    wait_text(&page, &card("bb", "h2"), |text| text == "Driver 570").await?;
    wait_text(&page, &card("bb", "[data-testid=tags]"), |text| text.contains("new driver")).await?;

    type_over(&page, "[data-testid=search]", "driver h200").await?;
    wait_shown(&page, &["bb"]).await?;
    wait_text(&page, "[data-testid=count]", |text| text == "1 of 4 runs").await?;
    // Notes are searched, too, and a view is an address.
    type_over(&page, "[data-testid=search]", "<b>full").await?;
    wait_shown(&page, &["a"]).await?;
    page.refresh().await?;
    wait_shown(&page, &["a"]).await?;
    type_over(&page, "[data-testid=search]", "no such words").await?;
    wait_text(&page, "[data-testid=no-match]", |text| text.contains("no such words")).await?;
    shot(&page, "runs-no-match").await?;
    wait_for(&page, "[data-testid=reset]").await?.click().await?;
    wait_shown(&page, &["ccc", "bb", "a", "reference"]).await?;
    ensure!(page.current_url().await?.query().is_none(), "the address still has a filter");

    // A tag of a card shows all that have it; so does the choice above the list.
    wait_for(&page, &card("a", "[data-testid=tags] a")).await?.click().await?;
    wait_shown(&page, &["bb", "a"]).await?;
    wait_for(&page, "[data-testid=filter-tag] option[value=day]").await?.click().await?;
    wait_shown(&page, &["ccc"]).await?;
    page.back().await?;
    no_errors(&page).await?;
    page.quit().await?;
    drop(rig);
    Ok(())
}

#[tokio::test]
async fn a_pinned_run_stands_above_the_others() -> Result<()> {
    let (_rig, page) = with_runs(1440, 900).await?;
    wait_shown(&page, &["ccc", "bb", "a", "reference"]).await?;
    act(&page, "a", "pin").await?;
    wait_shown(&page, &["a", "ccc", "bb", "reference"]).await?;
    wait_text(&page, "[data-testid=said]", |text| text.contains("pinned to the top")).await?;
    page.refresh().await?;
    wait_for(&page, &card("a", "[data-testid=pinned]")).await?;
    wait_shown(&page, &["a", "ccc", "bb", "reference"]).await?;
    act(&page, "a", "pin").await?;
    wait_shown(&page, &["ccc", "bb", "a", "reference"]).await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn a_deleted_run_comes_back_or_is_gone_after_ten_seconds() -> Result<()> {
    let (_rig, page) = with_runs(1440, 900).await?;
    act(&page, "bb", "delete").await?;
    wait_shown(&page, &["ccc", "a", "reference"]).await?;
    // The name is a block of its own, so that a long one is cut: the driver reads a line break behind it.
    wait_text(&page, "[data-testid=toast]", |text| text.replace('\n', " ").contains("Beta on H100 is deleted")).await?;
    shot(&page, "runs-deleted").await?;
    wait_for(&page, "[data-testid=undo]").await?.click().await?;
    wait_shown(&page, &["ccc", "bb", "a", "reference"]).await?;
    wait_focus(&page, "run-menu").await?;
    // The same by keyboard, from another page.
    act(&page, "a", "delete").await?;
    wait_shown(&page, &["ccc", "bb", "reference"]).await?;
    wait_for(&page, "a[href='/new']").await?.click().await?;
    wait_for(&page, "[data-testid=start]").await?;
    page.execute("document.activeElement.blur()", vec![]).await?;
    page.find(By::Tag("body")).await?.send_keys(Key::Control + "z").await?;
    until("the toast to go", async || Ok(page.find(By::Css("[data-testid=toast]")).await.is_err().then_some(())))
        .await?;
    page.goto(page.current_url().await?.join("/")?.as_str()).await?;
    wait_shown(&page, &["ccc", "bb", "a", "reference"]).await?;
    // Nobody takes this one back.
    act(&page, "ccc", "delete").await?;
    wait_focus(&page, "undo").await?;
    until("the toast to go", async || Ok(page.find(By::Css("[data-testid=toast]")).await.is_err().then_some(())))
        .await?;
    wait_focus(&page, "main").await?;
    page.refresh().await?;
    wait_shown(&page, &["bb", "a", "reference"]).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn the_slower_of_two_tabs_chooses() -> Result<()> {
    let (_rig, page) = with_runs(1440, 900).await?;
    act(&page, "bb", "rename").await?;
    type_over(&page, "[data-testid=edit-name]", "Mine").await?;
    let other = "const done = arguments[0];
        fetch('/api/v1/runs/bb', {method: 'PATCH', headers: {'content-type': 'application/json'},
            body: JSON.stringify({revision: 0, title: 'Theirs'})}).then(answer => done(answer.status))";
    ensure!(page.execute_async(other, vec![]).await?.json() == 200, "the other tab was refused");
    wait_for(&page, "[data-testid=edit-save]").await?.click().await?;
    wait_text(&page, "[data-testid=edit-conflict]", |text| text.contains("“Theirs”")).await?;
    for theme in ["light", "dark"] {
        page.execute("document.documentElement.dataset.theme = arguments[0]", vec![theme.into()]).await?;
        check(&page, &format!("runs-conflict-{theme}")).await?;
    }
    wait_for(&page, "[data-testid=edit-conflict] button").await?.click().await?;
    wait_for(&page, "[data-testid=edit-save]").await?.click().await?;
    wait_text(&page, &card("bb", "h2"), |text| text == "Mine").await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn notes_with_markup_are_text() -> Result<()> {
    let (rig, page) = with_runs(1440, 900).await?;
    page.goto(format!("{}/runs/bb#notes", rig.url)).await?;
    let notes = "<img src=x onerror=\"document.title='pwned'\"> & <b>bold</b>\nsecond line";
    wait_for(&page, "[data-testid=notes-edit]").await?.click().await?;
    wait_focus(&page, "notes-field").await?;
    type_over(&page, "[data-testid=notes-field]", notes).await?;
    wait_for(&page, "[data-testid=notes-save]").await?.click().await?;
    wait_text(&page, "[data-testid=notes-text]", |text| text == notes).await?;
    page.refresh().await?;
    wait_text(&page, "[data-testid=notes-text]", |text| text == notes).await?;
    shot(&page, "runs-notes").await?;
    let inside: Vec<String> = page
        .execute("return [...document.querySelectorAll('[data-testid=notes-text] *, img')].map(e => e.tagName)", vec![])
        .await?
        .convert()?;
    ensure!(inside.is_empty(), "markup became elements: {inside:?}");
    ensure!(page.title().await? == "Beta on H100 · Speedmatrix", "the title is {}", page.title().await?);
    let broken = axe(&page).await?;
    ensure!(broken.is_empty(), "accessibility rules broken: {broken:#?}");
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn files_are_imported_or_say_why_not() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(&rig.url).await?;
    wait_for(&page, "[data-testid=first-use]").await?;
    let export = "const done = arguments[0];
        fetch('/api/v1/runs/reference/export?format=json').then(answer => answer.text()).then(done)";
    let sample: String = page.execute_async(export, vec![]).await?.convert()?;
    let good = sample.replacen("\"reference\"", "\"elsewhere\"", 1);
    let drop_file = async |name: &str, text: &str| page.execute(DROP, vec![name.into(), text.into()]).await;
    let says = async |part: &str| wait_text(&page, "[data-testid=imports]", |text| text.contains(part)).await;

    drop_file("good.json", &good).await?;
    says("is imported").await?;
    wait_text(&page, &card("elsewhere", "[data-testid=imported]"), |text| text == "Imported").await?;
    shot(&page, "runs-imported").await?;
    drop_file("again.json", &good).await?;
    says("is here already").await?;
    drop_file("other.json", "{\"benchmarks\": [], \"latency_mode\": \"api\"}").await?;
    says("other.json was not imported: the file is JSON, but neither a run of Speedmatrix").await?;
    drop_file("cut.json", &good[..good.len() / 2]).await?;
    says("cut.json was not imported: the file ends in the middle").await?;
    shot(&page, "runs-import-refused").await?;
    wait_shown(&page, &["elsewhere", "reference"]).await?;

    // With the button.
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("picked.json");
    std::fs::write(&path, sample.replacen("\"reference\"", "\"picked\"", 1))?;
    let input = page.find(By::Css("[data-testid=import-files]")).await?;
    input.send_keys(path.to_string_lossy().as_ref()).await?;
    says("is imported").await?;
    wait_for(&page, &card("picked", "")).await?;
    wait_for(&page, "[data-testid=imports] a").await?.click().await?;
    wait_text(&page, "[data-testid=imported]", |text| text == "Imported").await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn a_plan_is_taken_over_into_the_form() -> Result<()> {
    let (rig, page) = with_runs(1440, 900).await?;
    act(&page, "bb", "duplicate").await?;
    let contexts = until("the contexts in the form", async || {
        let value = wait_for(&page, "[name=contexts]").await?.prop("value").await?;
        Ok(value.filter(|value| value.starts_with("8K,16K")))
    });
    contexts.await?;
    page.goto(format!("{}/new?from=none", rig.url)).await?;
    wait_text(&page, "[data-testid=from-error]", |text| text.contains("no run")).await?;
    page.quit().await?;
    Ok(())
}
