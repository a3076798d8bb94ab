//! The ways through the set-up page: by mouse, by keyboard only, with every error and every failure of a look, with cells
//! that do not fit, and out again as a command and as a file.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use thirtyfour::prelude::*;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    process::Command,
};

use crate::rig::{Rig, axe, no_errors, press, shot, until, wait_for, wait_text};

async fn fill(page: &WebDriver, name: &str, text: &str) -> Result<()> {
    let field = wait_for(page, &format!("[name=\"{name}\"]")).await?;
    field.clear().await?;
    field.send_keys(text).await?;
    Ok(())
}

/// Waits for a run's page; gives the id of the run.
async fn started(page: &WebDriver) -> Result<String> {
    until("the run's page", async || {
        Ok(page.current_url().await?.path().strip_prefix("/runs/").filter(|id| !id.is_empty()).map(ToOwned::to_owned))
    })
    .await
}

async fn plan_of(rig: &Rig, run: &str) -> Result<serde_json::Value> {
    let page = rig.browser(800, 600).await?;
    page.goto(format!("{}/runs/{run}", rig.url)).await?;
    let script = "const done = arguments[1];
        fetch('/api/v1/runs/' + arguments[0]).then(r => r.json()).then(state => done(state.plan))";
    let plan = page.execute_async(script, vec![run.into()]).await?.json().clone();
    page.quit().await?;
    Ok(plan)
}

#[tokio::test]
async fn a_run_is_set_up_by_mouse() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new", rig.url)).await?;
    press(&page, "saved-target").await?;
    wait_for(&page, "[data-testid=probe]").await?;
    wait_for(&page, "[data-preset=quick]").await?.click().await?;
    let cell = |id: &str| format!("[data-testid=preview] td[data-cell=decode-{id}]");
    wait_for(&page, &cell("32K-16")).await?.click().await?;
    wait_for(&page, &format!("{}.out", cell("32K-16"))).await?;
    shot(&page, "setup").await?;
    ensure!(axe(&page).await?.is_empty(), "{:?}", axe(&page).await?);
    press(&page, "start").await?;
    started(&page).await?;
    wait_for(&page, "[data-testid=matrix] td[data-cell=decode-32K-4]").await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

/// Presses Tab until the element that `css` finds has the focus.
async fn tab_to(page: &WebDriver, css: &str) -> Result<()> {
    const MOST_STOPS: usize = 120;
    let script = "const e = document.activeElement; return !!e && e.matches(arguments[0])";
    for _ in 0..MOST_STOPS {
        if page.execute(script, vec![css.into()]).await?.convert::<bool>()? {
            return Ok(());
        }
        page.action_chain().send_keys(Key::Tab + "").perform().await?;
    }
    anyhow::bail!("{css} is not reached by Tab")
}

async fn keys(page: &WebDriver, keys: impl Into<TypingData>) -> Result<()> {
    page.action_chain().send_keys(keys).perform().await?;
    Ok(())
}

/// Marks the whole text of the field that has the focus.
async fn select_all(page: &WebDriver) -> Result<()> {
    page.action_chain().key_down(Key::Control).send_keys("a").key_up(Key::Control).perform().await?;
    Ok(())
}

#[tokio::test]
async fn a_run_is_set_up_by_keyboard_only() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new", rig.url)).await?;
    wait_for(&page, "[data-testid=saved-target]").await?;
    tab_to(&page, "[data-testid=saved-target]").await?;
    keys(&page, Key::Enter + "").await?;
    wait_for(&page, "[data-testid=probe]").await?;
    tab_to(&page, "[data-preset=quick]").await?;
    keys(&page, Key::Space + "").await?;
    tab_to(&page, "[name=contexts]").await?;
    select_all(&page).await?;
    keys(&page, "8K-16K").await?;
    tab_to(&page, "[name=concurrency]").await?;
    select_all(&page).await?;
    keys(&page, "1,2").await?;
    // One stop in the grid; its arrows, and Space.
    tab_to(&page, "[data-testid=preview] td").await?;
    keys(&page, Key::Down + "").await?;
    keys(&page, Key::Right + "").await?;
    keys(&page, Key::Space + "").await?;
    wait_for(&page, "[data-testid=preview] td[data-cell=decode-16K-2].out").await?;
    wait_text(&page, "[data-testid=cell-reason]", |text| text.contains("left out")).await?;
    tab_to(&page, "[data-testid=start]").await?;
    keys(&page, Key::Enter + "").await?;
    started(&page).await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn each_problem_leads_to_its_field() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new?target=http://127.0.0.1:9&contexts=8K&concurrency=1&duration=soon&seed=x", rig.url))
        .await?;
    press(&page, "start").await?;
    let focused = async || Ok::<_, anyhow::Error>(page.active_element().await?.attr("name").await?.unwrap_or_default());
    ensure!(focused().await? == "duration", "focus went to {}", focused().await?);
    let problems = page.find_all(By::Css("[data-testid=problems] button")).await?;
    ensure!(problems.len() == 2, "{} problems are listed", problems.len());
    problems[1].click().await?;
    ensure!(focused().await? == "seed", "focus went to {}", focused().await?);
    ensure!(page.current_url().await?.path() == "/new", "an invalid plan was started");
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

/// A server that answers every request with the same; with nothing, it never answers.
async fn answering(answer: Option<&'static str>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            let Some(answer) = answer else {
                silent.push(socket);
                continue;
            };
            tokio::spawn(async move {
                let mut head = [0; 4_096];
                drop(socket.read(&mut head).await);
                drop(socket.write_all(answer.as_bytes()).await);
            });
        }
    });
    Ok(url)
}

const WANTS_KEY: &str =
    "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
const NOTHING_THERE: &str =
    "HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno";
const WEB_PAGE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 28\r\nconnection: close\r\n\r\n<title>A shop</title><p>Buy.";
const ONE_MODEL: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 27\r\nconnection: close\r\n\r\n{\"data\":[{\"id\":\"the-one\"}]}";

#[tokio::test]
async fn every_failure_of_a_look_says_what_to_do() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new", rig.url)).await?;
    let check = async |url: &str, parts: &[&str]| -> Result<()> {
        fill(&page, "target", url).await?;
        press(&page, "look").await?;
        wait_text(&page, "[data-testid=probe-error]", |text| parts.iter().all(|part| text.contains(part))).await?;
        Ok(())
    };
    check("http://127.0.0.1:9", &["refused", "check that the server has started"]).await?;
    check(&answering(Some(WANTS_KEY)).await?, &["401", "enter the server's api key"]).await?;
    check(&answering(Some(NOTHING_THERE)).await?, &["404", "check the address and its base path"]).await?;
    check(&answering(Some(WEB_PAGE)).await?, &["A shop", "give the model server's address"]).await?;
    check(&answering(None).await?, &["did not answer within", "check that the server is up"]).await?;
    fill(&page, "model", "another").await?;
    check(&answering(Some(ONE_MODEL)).await?, &["no model \"another\"", "\"the-one\""]).await?;
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn cells_that_do_not_fit_say_why_and_those_that_queue_stay() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new", rig.url)).await?;
    press(&page, "saved-target").await?;
    wait_for(&page, "[data-testid=probe]").await?;
    fill(&page, "contexts", "8K,2M").await?;
    fill(&page, "concurrency", "1,1024").await?;
    let cell = |id: &str| format!("[data-testid=preview] td[data-cell=decode-{id}]");
    wait_for(&page, &format!("{}.none", cell("2048K-1"))).await?.focus().await?;
    let why = wait_text(&page, "[data-testid=cell-reason]", |text| text.contains("can't run")).await?;
    ensure!(why.contains("2048K") && why.contains("will be skipped"), "{why}");
    let queues = wait_for(&page, &format!("{}.queue", cell("8K-1024"))).await?;
    queues.focus().await?;
    let why = wait_text(&page, "[data-testid=cell-reason]", |text| text.contains("will queue")).await?;
    ensure!(why.contains("1024 requests at once") && why.contains("measured all the same"), "{why}");
    ensure!(queues.attr("aria-selected").await?.as_deref() == Some("true"), "a cell that queues is not measured");
    // Its column can be left out, and be taken in again against the verdict.
    queues.click().await?;
    wait_for(&page, &format!("{}.out", cell("8K-1024"))).await?;
    queues.click().await?;
    wait_for(&page, &format!("{}.queue", cell("8K-1024"))).await?;
    shot(&page, "setup-feasible").await?;
    ensure!(axe(&page).await?.is_empty(), "{:?}", axe(&page).await?);
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn a_copied_command_measures_the_same_plan() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new", rig.url)).await?;
    press(&page, "saved-target").await?;
    wait_for(&page, "[data-testid=probe]").await?;
    fill(&page, "contexts", "8K-16K").await?;
    fill(&page, "concurrency", "1,2").await?;
    fill(&page, "leave-out", "16Kx2").await?;
    // Long enough that the run still goes on when its page is looked at.
    fill(&page, "duration", "10m").await?;
    fill(&page, "name", "it's \"here\" & there").await?;
    let line = wait_for(&page, "[data-testid=command]").await?.prop("textContent").await?.context("the command")?;
    ensure!(line.starts_with("speedmatrix run "), "{line}");
    press(&page, "start").await?;
    let run = started(&page).await?;
    let on_page = plan_of(&rig, &run).await?;
    wait_for(&page, "[data-testid=stop]").await?;

    let folder = tempfile::tempdir()?;
    let binary = std::env::var("AGENT_BIN").context("AGENT_BIN is not set")?;
    let arguments = line.trim_start_matches("speedmatrix ");
    let store = folder.path().join("store.sqlite");
    // A shell reads the line, as a person's does; the first event has the plan.
    let mut shell = Command::new("sh")
        .args(["-c", &format!("exec \"$0\" {arguments} --json --store \"$1\"")])
        .arg(&binary)
        .arg(&store)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines =
        tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(shell.stdout.take().context("its output")?));
    let first: serde_json::Value = serde_json::from_str(&lines.next_line().await?.context("the first event")?)?;
    shell.kill().await?;
    ensure!(has_plan(&first, &on_page), "{first} has not the plan {on_page}");
    page.quit().await?;
    Ok(())
}

/// Whether a plan is somewhere in an event.
fn has_plan(event: &serde_json::Value, plan: &serde_json::Value) -> bool {
    event == plan
        || event.as_object().is_some_and(|fields| fields.values().any(|value| has_plan(value, plan)))
        || event.as_array().is_some_and(|items| items.iter().any(|item| has_plan(item, plan)))
}

#[tokio::test]
async fn a_plan_goes_into_a_file_and_out_of_it() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new?target=http://127.0.0.1:9&contexts=8K,16K&concurrency=1-4&seed=7", rig.url)).await?;
    let link = wait_for(&page, "[data-testid=download-plan]").await?.attr("href").await?.context("its address")?;
    let script = "const done = arguments[1]; done(decodeURIComponent(arguments[0].split(',').slice(1).join(',')))";
    let text: String = page.execute_async(script, vec![link.into()]).await?.convert()?;
    let folder = tempfile::tempdir()?;
    let [good, bad] = ["plan.json", "bad.json"].map(|name| folder.path().join(name));
    std::fs::write(&good, &text)?;
    std::fs::write(&bad, "{\"colour\": \"red\"}")?;

    page.goto(format!("{}/new", rig.url)).await?;
    let open = wait_for(&page, "[data-testid=open-plan]").await?;
    open.send_keys(bad.to_string_lossy().as_ref()).await?;
    wait_text(&page, "[data-testid=plan-error]", |text| text.contains("it is no plan")).await?;
    open.send_keys(good.to_string_lossy().as_ref()).await?;
    wait_for(&page, "[data-testid=preview] td[data-cell=decode-16K-4]").await?;
    let seed = wait_for(&page, "[name=seed]").await?.prop("value").await?;
    ensure!(seed.as_deref() == Some("7"), "the seed is {seed:?}");
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn a_server_on_this_host_is_found_and_measured_with_what_is_told_by_hand() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let other = answering(Some(ONE_MODEL)).await?;
    let page = rig.browser(1440, 900).await?;
    page.goto(format!("{}/new", rig.url)).await?;
    let found = wait_for(&page, &format!("[data-testid=server][data-url=\"{other}\"]")).await?;
    ensure!(found.text().await?.contains("the-one"), "{}", found.text().await?);
    shot(&page, "setup-found").await?;
    found.click().await?;
    wait_text(&page, "[data-testid=probe]", |text| text.contains("the-one")).await?;

    // A run against the simulator, with a fact that nobody can see.
    press(&page, "saved-target").await?;
    fill(&page, "contexts", "8K").await?;
    fill(&page, "concurrency", "1").await?;
    wait_for(&page, "[data-testid=typed-facts] summary").await?.click().await?;
    wait_for(&page, "[data-testid=typed-launch-command]").await?.send_keys("serve m --api-key s3cret-key").await?;
    press(&page, "start").await?;
    started(&page).await?;
    let command = wait_text(&page, "[data-testid=launch-command]", |text| text.contains("typed by hand")).await?;
    ensure!(!command.contains("s3cret") && command.contains("redacted"), "{command}");
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}

#[tokio::test]
async fn a_limited_time_picks_cells() -> Result<()> {
    let rig = Rig::start(&[]).await?;
    let page = rig.browser(390, 844).await?;
    page.goto(format!("{}/new?target=http://127.0.0.1:9&contexts=8K-128K&concurrency=1-32", rig.url)).await?;
    let minutes = wait_for(&page, "[data-testid=field-minutes]").await?;
    minutes.clear().await?;
    minutes.send_keys("8").await?;
    press(&page, "pick-cells").await?;
    wait_text(&page, "[data-testid=budget-said]", |text| text.contains("Left out: ")).await?;
    wait_for(
        &page,
        "[data-testid=preview] td[data-cell=decode-128K-16].out, [data-testid=preview] td[data-cell=decode-128K-8].out",
    )
    .await?;
    let corner = wait_for(&page, "[data-testid=preview] td[data-cell=decode-8K-1]").await?;
    ensure!(corner.attr("aria-selected").await?.as_deref() == Some("true"), "a corner was left out");
    shot(&page, "setup-390").await?;
    ensure!(axe(&page).await?.is_empty(), "{:?}", axe(&page).await?);
    no_errors(&page).await?;
    page.quit().await?;
    Ok(())
}
