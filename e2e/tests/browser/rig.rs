//! What a browser test stands on: an agent of its own on port 0 with an empty store, a chromedriver, and browsers
//! that note every error the page reports. All of it ends with the test.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use thirtyfour::{cdp::domains::page::AddScriptToEvaluateOnNewDocument, error::WebDriverErrorInner, prelude::*};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

/// How long a page may take to show what is waited for: a two-core machine under load.
const PATIENCE: Duration = Duration::from_mins(2);
/// Pause between two looks at the page.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs before every page: keeps what the page reports as an error.
const ERROR_TRAP: &str = "
window.__errors = [];
addEventListener('error', e => __errors.push('error: ' + e.message));
addEventListener('unhandledrejection', e => __errors.push('rejection: ' + e.reason));
addEventListener('securitypolicyviolation', e => __errors.push('csp: ' + e.violatedDirective + ' ' + e.blockedURI));
const say = console.error;
console.error = (...args) => { __errors.push('console: ' + args.join(' ')); say(...args); };
";

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// An agent and a driver of its own.
#[derive(Debug)]
pub(crate) struct Rig {
    /// Address of the agent.
    pub(crate) url: String,
    driver_url: String,
    store: tempfile::TempDir,
    agent: Child,
    _driver: Child,
}

impl Rig {
    /// Starts both. `arguments` are given to `speedmatrix serve`.
    pub(crate) async fn start(arguments: &[&str]) -> Result<Self> {
        let store = tempfile::tempdir()?;
        let (agent, url) = start_agent(store.path(), arguments).await?;
        let port = free_port()?;
        let driver = Command::new(env("CHROMEDRIVER").unwrap_or_else(|| "chromedriver".into()))
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start chromedriver: run `cargo xtask setup`, or set CHROMEDRIVER")?;
        until("chromedriver to answer", async || Ok(TcpStream::connect(("127.0.0.1", port)).await.ok())).await?;
        Ok(Self { url, driver_url: format!("http://127.0.0.1:{port}"), store, agent, _driver: driver })
    }

    /// Kills the agent as a power cut would.
    pub(crate) async fn kill_agent(&mut self) -> Result<()> {
        Ok(self.agent.kill().await?)
    }

    /// Starts the agent again on the same store; it gets a new port.
    pub(crate) async fn restart_agent(&mut self, arguments: &[&str]) -> Result<()> {
        (self.agent, self.url) = start_agent(self.store.path(), arguments).await?;
        Ok(())
    }

    /// A link that lets somebody in, as `speedmatrix link` prints it.
    pub(crate) async fn link(&self, arguments: &[&str]) -> Result<String> {
        let binary = env("AGENT_BIN").context("AGENT_BIN is not set: the browser tests run in `cargo xtask test`")?;
        let store = self.store.path().join("store.sqlite");
        let made = Command::new(binary)
            .args(["link", "--page", &self.url, "--store"])
            .arg(store)
            .args(arguments)
            .output()
            .await?;
        ensure!(made.status.success(), "no link was made: {}", String::from_utf8_lossy(&made.stderr));
        Ok(String::from_utf8(made.stdout)?.trim().to_owned())
    }

    /// A browser of its own, `width` × `height` pixels.
    pub(crate) async fn browser(&self, width: u32, height: u32) -> Result<WebDriver> {
        let mut caps = DesiredCapabilities::chrome();
        if let Some(binary) = env("CHROMIUM") {
            caps.set_binary(&binary)?;
        }
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            // A page that still scrolls smoothly moves away under a click, which then meets something else or nothing.
            "--force-prefers-reduced-motion",
            &format!("--window-size={width},{height}"),
        ] {
            caps.add_arg(argument)?;
        }
        let browser = WebDriver::new(&self.driver_url, caps).await?;
        let trap = AddScriptToEvaluateOnNewDocument {
            source: ERROR_TRAP.into(),
            world_name: None,
            include_command_line_api: None,
        };
        browser.cdp().send(trap).await?;
        // A window has a least width of some 500 px; a telephone has less.
        let screen = serde_json::json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        browser.cdp().send_raw("Emulation.setDeviceMetricsOverride", screen).await?;
        Ok(browser)
    }
}

/// A simulated server of its own, which outlives the agent.
#[derive(Debug)]
pub(crate) struct Simulator {
    /// Its address.
    pub(crate) url: String,
    _process: Child,
}

impl Simulator {
    /// Starts one on port 0, faster than the clock on the wall.
    pub(crate) async fn start() -> Result<Self> {
        let binary = env("AGENT_BIN").context("AGENT_BIN is not set: the browser tests run in `cargo xtask test`")?;
        let mut process = Command::new(binary)
            .args(["sim", "--listen", "127.0.0.1:0", "--clock-factor", "20"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(process.stdout.take().context("the simulator's output")?).lines();
        let url = lines.next_line().await?.context("the simulator ended before it told its address")?;
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { url, _process: process })
    }
}

async fn start_agent(store: &Path, arguments: &[&str]) -> Result<(Child, String)> {
    let binary = env("AGENT_BIN").context("AGENT_BIN is not set: the browser tests run in `cargo xtask test`")?;
    let mut agent = Command::new(&binary)
        .args(["serve", "--listen", "127.0.0.1:0", "--store"])
        .arg(store.join("store.sqlite"))
        .args(arguments)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {binary}"))?;
    let mut lines = BufReader::new(agent.stdout.take().context("the agent's output")?).lines();
    loop {
        let line = lines.next_line().await?.context("the agent ended before it told its address")?;
        if let Some(url) = line.strip_prefix("listening on ") {
            let url = url.to_owned();
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok((agent, url));
        }
    }
}

/// Looks again and again until `look` has something, or patience ends.
pub(crate) async fn until<T>(what: &str, look: impl AsyncFn() -> Result<Option<T>>) -> Result<T> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if tokio::time::Instant::now() > deadline {
            bail!("waited {PATIENCE:?} for {what}");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits until an element's text is as wanted, and gives the text. A page that is just redrawing is looked at again.
pub(crate) async fn wait_text(page: &WebDriver, css: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
    let what = format!("{css} to show what is wanted");
    let seen = until(&what, async || {
        let Ok(element) = page.find(By::Css(css)).await else { return Ok(None) };
        let text = element.text().await.unwrap_or_default();
        Ok(wanted(&text).then_some(text))
    });
    match seen.await {
        Ok(text) => Ok(text),
        Err(error) => {
            let body = match page.find(By::Tag("body")).await {
                Ok(body) => body.text().await.unwrap_or_default(),
                Err(gone) => gone.to_string(),
            };
            Err(error.context(format!("the page showed: {}", body.chars().take(2_000).collect::<String>())))
        }
    }
}

/// Waits until something is there.
pub(crate) async fn wait_for(page: &WebDriver, css: &str) -> Result<WebElement> {
    until(css, async || Ok(page.find(By::Css(css)).await.ok())).await
}

/// Fails if the page reported an error since it was loaded.
pub(crate) async fn no_errors(page: &WebDriver) -> Result<()> {
    let errors: Vec<String> = page.execute("return window.__errors", vec![]).await?.convert()?;
    ensure!(errors.is_empty(), "the page reported {errors:#?}");
    Ok(())
}

/// Where screenshots go: only where `SHOTS` names a folder.
pub(crate) async fn shot(page: &WebDriver, name: &str) -> Result<()> {
    let Some(folder) = env("SHOTS") else { return Ok(()) };
    std::fs::create_dir_all(&folder)?;
    page.screenshot(&PathBuf::from(folder).join(format!("{name}.png"))).await?;
    Ok(())
}

/// Ids of the accessibility rules that the page breaks (axe-core); none where `AXE_JS` is not set.
pub(crate) async fn axe(page: &WebDriver) -> Result<Vec<String>> {
    let Some(path) = env("AXE_JS") else { return Ok(Vec::new()) };
    page.execute(std::fs::read_to_string(path)?, vec![]).await?;
    let found = page
        .execute_async(
            "const done = arguments[0];
             axe.run().then(r => done(r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target).join(' '))))",
            vec![],
        )
        .await?;
    Ok(found.convert()?)
}

/// Clicks what has this test id once it is there. A running page redraws, and what was found may be gone before it is
/// clicked: then it is looked for again.
pub(crate) async fn press(page: &WebDriver, testid: &str) -> Result<()> {
    let css = format!("[data-testid={testid}]");
    let clicked = until(&css, async || {
        let Ok(element) = page.find(By::Css(&css)).await else { return Ok(None) };
        match element.click().await {
            Err(gone) if matches!(gone.as_inner(), WebDriverErrorInner::StaleElementReference(_)) => Ok(None),
            clicked => Ok(Some(clicked?)),
        }
    });
    clicked.await
}
