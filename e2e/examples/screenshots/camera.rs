//! A browser that takes pictures of what it shows, at each width and in each theme.

use std::{
    fs::File,
    io::{BufWriter, Cursor},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use thirtyfour::prelude::*;

use crate::rig::{Rig, no_errors};

/// Width and height of a picture in CSS pixels, and what it is called.
type Screen = (u32, u32, &'static str);

const WIDE: Screen = (1440, 900, "wide");
const NARROW: Screen = (390, 844, "narrow");
const THEMES: [&str; 2] = ["light", "dark"];
/// Brings the element that the selector finds to the top, below what stays there, and waits until that is drawn.
const SETTLE: &str = "
const [css, done] = arguments;
if (css === 'h1') scrollTo({top: 0, behavior: 'instant'});
else document.querySelector(css).scrollIntoView({behavior: 'instant', block: 'start'});
document.activeElement.blur();
document.fonts.ready.then(() => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))";

/// A browser on an agent's page, and the folder for its pictures.
#[derive(Debug)]
pub(crate) struct Camera {
    /// The browser.
    pub(crate) page: WebDriver,
    /// Address of the agent, without a slash at its end.
    pub(crate) agent: String,
    folder: PathBuf,
}

impl Camera {
    /// Starts a browser.
    pub(crate) async fn open(rig: &Rig, folder: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&folder)?;
        let (width, height, _) = WIDE;
        let page = rig.browser(width, height).await?;
        page.cdp().send_raw("Emulation.setScrollbarsHidden", serde_json::json!({"hidden": true})).await?;
        Ok(Self { page, agent: rig.url.trim_end_matches('/').to_owned(), folder })
    }

    /// Takes the pictures of what the page shows; the element that `top` finds is at the top of each, `h1` is the page's
    /// own top. The page is not loaded again between them, so that a running run stays where it is.
    pub(crate) async fn shoot(&self, name: &str, top: &str) -> Result<()> {
        self.shoot_on(&[WIDE, NARROW], name, top).await
    }

    /// The same on a wide screen only.
    pub(crate) async fn shoot_wide(&self, name: &str, top: &str) -> Result<()> {
        self.shoot_on(&[WIDE], name, top).await
    }

    async fn shoot_on(&self, screens: &[Screen], name: &str, top: &str) -> Result<()> {
        for theme in THEMES {
            self.turn(theme).await?;
            for (width, height, screen) in screens.iter().copied() {
                self.resize(width, height).await?;
                self.page.execute_async(SETTLE, vec![top.into()]).await?;
                let picture = self.page.screenshot_as_png().await?;
                keep(&picture, &self.folder.join(format!("{name}-{screen}-{theme}.png")))?;
            }
        }
        let (width, height, _) = WIDE;
        self.resize(width, height).await?;
        no_errors(&self.page).await
    }

    async fn resize(&self, width: u32, height: u32) -> Result<()> {
        let screen = serde_json::json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.page.cdp().send_raw("Emulation.setDeviceMetricsOverride", screen).await?;
        Ok(())
    }

    /// Shows the theme, by the key that people press for it.
    async fn turn(&self, theme: &str) -> Result<()> {
        let shown = "return document.documentElement.dataset.theme || 'light'";
        let shown: String = self.page.execute(shown, vec![]).await?.convert()?;
        if shown != theme {
            self.page.find(By::Tag("body")).await?.send_keys("t").await?;
        }
        Ok(())
    }

    /// Ends the browser.
    pub(crate) async fn close(self) -> Result<()> {
        Ok(self.page.quit().await?)
    }
}

/// Writes a picture as small as it can be without losing anything: the browser packs in a hurry, and keeps how opaque each
/// pixel is, which all are.
fn keep(picture: &[u8], path: &Path) -> Result<()> {
    let mut reader = png::Decoder::new(Cursor::new(picture)).read_info()?;
    let mut pixels = vec![0; reader.output_buffer_size().context("a picture that is too large")?];
    let info = reader.next_frame(&mut pixels)?;
    let colours: Vec<u8> = match info.color_type {
        png::ColorType::Rgba => pixels.chunks_exact(4).flat_map(|pixel| pixel.iter().take(3)).copied().collect(),
        other => {
            ensure!(other == png::ColorType::Rgb, "the browser's picture is {other:?}");
            pixels
        }
    };
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), info.width, info.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    encoder.write_header()?.write_image_data(&colours)?;
    Ok(())
}
