//! An agent behind a real nginx, at the root and below a path: what is written in docs/OPERATIONS.md works. Where nginx is
//! not installed these tests say so and do nothing.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures_util::StreamExt as _;
use speedmatrix_shared::api::{ENTER_MARK, path};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};
use tokio_tungstenite::{client_async, tungstenite::client::IntoClientRequest as _};

use crate::cli::{Running, finish, out, serve};

/// Where Debian puts it, which is on no user's PATH.
const NGINX: [&str; 2] = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"];

/// An nginx that listens on a socket in a folder of its own, and ends with the test.
struct Nginx {
    process: Child,
    socket: PathBuf,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn installed() -> Option<&'static str> {
    let found = NGINX.into_iter().find(|file| Path::new(file).exists());
    if found.is_none() {
        eprintln!("skipped: nginx is not installed; `cargo xtask setup` installs it where there is apt-get");
    }
    found
}

impl Nginx {
    /// With these locations.
    async fn start(program: &str, folder: &TempDir, locations: &str) -> Self {
        let at = folder.path().display();
        let socket = folder.path().join("nginx.sock");
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary = temporary.map(|kind| format!("{kind}_temp_path {at}/{kind};")).join("\n");
        let config = format!(
            "daemon off; master_process off; pid {at}/nginx.pid; error_log {at}/error.log;
            events {{}}
            http {{
              access_log off;
              {temporary}
              map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
              server {{
                listen unix:{};
                client_max_body_size 32m;
                proxy_http_version 1.1;
                proxy_set_header Host $http_host;
                proxy_set_header Upgrade $http_upgrade;
                proxy_set_header Connection $connection_upgrade;
                {locations}
              }}
            }}",
            socket.display()
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, config).unwrap();
        let process = Command::new(program)
            .args(["-c", file.to_str().unwrap(), "-p", folder.path().to_str().unwrap()])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut nginx = Self { process, socket };
        while UnixStream::connect(&nginx.socket).await.is_err() {
            let log = || std::fs::read_to_string(folder.path().join("error.log")).unwrap_or_default();
            assert!(nginx.process.try_wait().unwrap().is_none(), "{}", log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        nginx
    }

    /// The whole answer to a request, head and body.
    async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        let mut socket = UnixStream::connect(&self.socket).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    async fn get(&self, path: &str, headers: &str) -> String {
        self.ask("GET", path, headers, "").await
    }

    /// The first message of the sample's live socket, as a browser on the page at `localhost` opens it.
    async fn first_message(&self, before: &str, name: &'static str, value: &str) -> Result<String, String> {
        let live = path::LIVE.replace("{id}", "reference");
        let mut request = format!("ws://localhost{before}{live}").into_client_request().unwrap();
        request.headers_mut().insert("origin", "http://localhost".parse().unwrap());
        request.headers_mut().insert(name, value.parse().unwrap());
        let stream = UnixStream::connect(&self.socket).await.unwrap();
        let (mut socket, _) = client_async(request, stream).await.map_err(|error| error.to_string())?;
        Ok(socket.next().await.unwrap().unwrap().to_text().unwrap().to_owned())
    }
}

/// The page, its files, the interface, the socket and the cookie below `before`, with a viewer's link.
async fn works(nginx: &Nginx, agent: &Running, before: &str, folder: &TempDir) {
    let page = nginx.get(&format!("{before}/runs/reference"), "").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Speedmatrix"), "{page}");
    // Each file that the page names is there; the page for tests is built without some, and then names none.
    for file in page.split(['"', '\'']).filter(|text| text.starts_with('/') && text.contains('.')) {
        assert!(file.starts_with(&format!("{before}/")), "{file} lies beside {before}");
        assert!(nginx.get(file, "").await.starts_with("HTTP/1.1 200"), "{file}");
    }
    let unknown = nginx.get(&format!("{before}{}", path::RUNS), "").await;
    assert!(unknown.starts_with("HTTP/1.1 401") && unknown.contains("token_missing"), "{unknown}");

    let link = out(&finish(folder, &["link", "--page", agent.url()]));
    let (_, token) = link.trim().split_once(ENTER_MARK).unwrap();
    let body = format!("{{\"token\":\"{token}\"}}");
    let origin = "Origin: http://localhost\r\n";
    let entered = nginx.ask("POST", &format!("{before}{}", path::ENTER), origin, &body).await;
    assert!(entered.starts_with("HTTP/1.1 204"), "{entered}");
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains(&format!("; Path={before}/;")), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let (name, _) = cookie.split_once('=').unwrap();
    let known = nginx.get(&format!("{before}{}", path::RUNS), &format!("Cookie: {cookie}\r\n")).await;
    assert!(known.starts_with("HTTP/1.1 200") && known.contains("reference"), "{known}");
    let told = nginx.first_message(before, "cookie", cookie).await.unwrap();
    assert!(told.contains("hello"), "{told}");
    assert!(nginx.first_message(before, "cookie", &format!("{name}=none")).await.is_err());
}

#[tokio::test]
async fn an_agent_works_at_the_root_behind_nginx() {
    let Some(program) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let agent = serve(&folder.path().join("runs.sqlite3"), &["--require-token"]);
    let locations = format!("location / {{ proxy_pass {}; }}", agent.url());
    let nginx = Nginx::start(program, &folder, &locations).await;
    works(&nginx, &agent, "", &folder).await;
}

#[tokio::test]
async fn an_agent_works_below_a_path_that_nginx_keeps_or_takes_off() {
    let Some(program) = installed() else { return };
    for end in ["", "/"] {
        let folder = tempfile::tempdir().unwrap();
        let agent = serve(&folder.path().join("runs.sqlite3"), &["--require-token", "--base-path", "/speedmatrix"]);
        let root = agent.url().strip_suffix("/speedmatrix").expect("the address that is told has the path");
        let locations = format!("location /speedmatrix/ {{ proxy_pass {root}{end}; }}");
        let nginx = Nginx::start(program, &folder, &locations).await;
        works(&nginx, &agent, "/speedmatrix", &folder).await;
        // What is beside the path is not the agent's.
        assert!(nginx.get(path::INFO, "").await.starts_with("HTTP/1.1 404"));
    }
}

#[tokio::test]
async fn nginx_says_who_asks_and_nobody_else_does() {
    let Some(program) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let more = ["--trust-header", "X-Remote-User", "--trust-proxy", "127.0.0.1"];
    let agent = serve(&folder.path().join("runs.sqlite3"), &more);
    let url = agent.url();
    let locations = format!(
        "location / {{ proxy_set_header Host $http_host; proxy_set_header X-Remote-User ann; proxy_pass {url}; }}
         location /api/v1/runs {{ proxy_set_header Host $http_host; proxy_set_header X-Remote-User \"\"; proxy_pass {url}; }}"
    );
    let nginx = Nginx::start(program, &folder, &locations).await;
    let info = nginx.get(path::INFO, "").await;
    assert!(info.contains("\"role\":\"viewer\""), "{info}");
    // nginx puts its own word, here none, in the place of the client's.
    let forged = nginx.get(path::RUNS, "X-Remote-User: eve\r\n").await;
    assert!(forged.starts_with("HTTP/1.1 401"), "{forged}");
}
