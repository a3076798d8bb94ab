//! Hashes of inline scripts, by which the Content-Security-Policy allows exactly these. Also a part of the build script.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

/// A source expression (`'sha256-…'`) for each inline script, with a space between two.
pub(crate) fn script_hashes(html: &str) -> String {
    let scripts = html.split("<script").skip(1);
    let inline = scripts.filter_map(|script| {
        let (attributes, rest) = script.split_once('>')?;
        let (body, _) = rest.split_once("</script>")?;
        (!attributes.contains("src=")).then_some(body)
    });
    let hashes: Vec<String> =
        inline.map(|body| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(body)))).collect();
    hashes.join(" ")
}
