//! An agent that encrypts: with its own certificate, with a given one, and what it says where it can't.

use std::path::Path;

use axum::Router;
use reqwest::{Certificate, Client, header};
use speedmatrix_agent::{
    client::{
        Target,
        http::{AskError, Http, tls_provider},
        trust::Trust,
    },
    server::{self, Manner, Tls},
};
use speedmatrix_shared::{
    api::{ENTER_MARK, path},
    plan::draft::parse_target,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use crate::cli::{err, finish, out, program, serve};

/// A certificate and its key in files of that name.
fn pair(folder: &TempDir, name: &str) -> (String, String) {
    let made = folder.path().join(name);
    std::fs::create_dir(&made).unwrap();
    Tls::self_made(&made, &["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let file = |name: &str| made.join(name).to_str().unwrap().to_owned();
    (file("tls-cert.pem"), file("tls-key.pem"))
}

async fn ask(url: &str, trusted: Option<&Path>) -> Result<u16, AskError> {
    let target = Target { url: parse_target(url).unwrap(), key: None };
    let http = Http::trusting(&target, &Trust::read(trusted).unwrap())?;
    Ok(http.get(path::INFO).await?.status)
}

/// The answer to a request that is not encrypted.
async fn openly(url: &str, request: &str) -> String {
    let mut socket = TcpStream::connect(url.trim_start_matches("https://")).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn an_agent_makes_its_own_certificate_and_sends_others_to_https() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("runs.sqlite3");
    let agent = serve(&store, &["--tls-self-made"]);
    let url = agent.url().to_owned();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let certificate = folder.path().join("tls-cert.pem");
    assert_eq!(ask(&url, Some(&certificate)).await.unwrap(), 200);
    let untrusted = ask(&url, None).await.unwrap_err();
    assert!(matches!(untrusted, AskError::Tls { .. }), "{untrusted}");

    let host = url.trim_start_matches("https://");
    let sent = openly(&url, &format!("GET /runs/a?m=ttft HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
    assert!(sent.starts_with("HTTP/1.1 308") && sent.contains(&format!("location: {url}/runs/a?m=ttft\r\n")), "{sent}");
    let foreign = openly(&url, "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").await;
    assert!(foreign.starts_with("HTTP/1.1 421") && !foreign.contains("location:"), "{foreign}");

    // The live socket too.
    let file = certificate.to_str().unwrap().to_owned();
    let watched = move |more: &[&str]| program().args(["watch", &format!("{url}/runs/reference")]).args(more).output();
    let watched = tokio::task::spawn_blocking(move || (watched(&["--tls-ca", &file]).unwrap(), watched(&[]).unwrap()));
    let (trusted, untrusted) = watched.await.unwrap();
    assert_eq!(trusted.status.code(), Some(0), "{}", err(&trusted));
    assert!(out(&trusted).contains("Sustained decode"));
    assert_eq!(untrusted.status.code(), Some(69), "{}", err(&untrusted));
}

#[tokio::test]
async fn a_cookie_that_came_encrypted_is_never_sent_openly() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = pair(&folder, "given");
    let agent =
        serve(&folder.path().join("runs.sqlite3"), &["--tls-cert", &certificate, "--tls-key", &key, "--require-token"]);
    let link = out(&finish(&folder, &["link", "--page", agent.url()]));
    assert!(link.starts_with("https://"), "{link}");
    let (_, token) = link.trim().split_once(ENTER_MARK).unwrap();
    tls_provider();
    let trusted = Certificate::from_pem(&std::fs::read(&certificate).unwrap()).unwrap();
    let client = Client::builder().tls_certs_merge([trusted]).no_proxy().build().unwrap();
    let enter = client.post(format!("{}{}", agent.url(), path::ENTER)).header(header::CONTENT_TYPE, "application/json");
    // A browser says where its page is from; one that came openly is not the agent's.
    let body = format!("{{\"token\":\"{token}\"}}");
    let openly = enter.try_clone().unwrap().header(header::ORIGIN, agent.url().replace("https://", "http://"));
    assert_eq!(openly.body(body.clone()).send().await.unwrap().status(), 403);
    let entered = enter.header(header::ORIGIN, agent.url()).body(body);
    let entered = entered.send().await.unwrap();
    assert_eq!(entered.status(), 204);
    let cookie = entered.headers()[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("; Secure") && cookie.contains("HttpOnly"), "{cookie}");
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (first, renewed) = (pair(&folder, "first"), pair(&folder, "renewed"));
    let file = |name: &str| folder.path().join(name);
    let put = |(certificate, key): &(String, String)| {
        std::fs::copy(certificate, file("cert.pem")).unwrap();
        std::fs::copy(key, file("key.pem")).unwrap();
    };
    put(&first);
    let tls = Tls::given(&file("cert.pem"), &file("key.pem")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let manner = Manner { tls: Some(tls.clone()), ..Manner::default() };
    tokio::spawn(server::serve(listener, Router::new(), manner, CancellationToken::new()));
    let shows = async |(certificate, _): &(String, String)| ask(&url, Some(Path::new(certificate))).await.is_ok();
    assert!(shows(&first).await && !shows(&renewed).await);
    assert!(!tls.renew().unwrap());
    // Only one of the files is there yet.
    std::fs::copy(&renewed.0, file("cert.pem")).unwrap();
    let said = tls.renew().unwrap_err().to_string();
    assert!(said.contains("can't be used together"), "{said}");
    // What is said once is not said again, and the old one stays.
    assert!(!tls.renew().unwrap() && shows(&first).await);
    std::fs::remove_file(file("key.pem")).unwrap();
    assert!(tls.renew().unwrap_err().to_string().contains("key.pem can't be read"));
    put(&renewed);
    assert!(tls.renew().unwrap() && shows(&renewed).await && !shows(&first).await);
}

#[test]
fn files_that_can_not_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = pair(&folder, "one");
    let (_, other_key) = pair(&folder, "other");
    let cases = [
        ("nothing to trust", vec!["watch", "https://h", "--tls-ca", "no-such.pem"]),
        ("no certificate to trust", vec!["watch", "https://h", "--tls-ca", &key]),
        ("no such file", vec!["--tls-cert", "no-such.pem", "--tls-key", &key]),
        ("no such key", vec!["--tls-cert", &certificate, "--tls-key", "no-such.pem"]),
        ("a folder", vec!["--tls-cert", folder.path().to_str().unwrap(), "--tls-key", &key]),
        ("changed over", vec!["--tls-cert", &key, "--tls-key", &certificate]),
        ("no key in it", vec!["--tls-cert", &certificate, "--tls-key", &certificate]),
        ("another's key", vec!["--tls-cert", &certificate, "--tls-key", &other_key]),
        ("only one", vec!["--tls-cert", &certificate]),
        ("both ways", vec!["--tls-self-made", "--tls-cert", &certificate, "--tls-key", &key]),
    ];
    let said = cases.map(|(name, more)| {
        let serve = if more[0] == "watch" { &[][..] } else { &["serve", "--listen", "127.0.0.1:0"] };
        let output = finish(&folder, &[serve, &more].concat());
        format!("{name}: {} {}", output.status.code().unwrap(), err(&output).lines().next().unwrap_or_default())
    });
    let said = said.join("\n").replace(folder.path().to_str().unwrap(), "FOLDER");
    insta::assert_snapshot!(said, @r#"
    nothing to trust: 64 error: no-such.pem can't be read (No such file or directory (os error 2)): give the certificate of the agent, a PEM file
    no certificate to trust: 64 error: FOLDER/one/tls-key.pem holds no certificate: give that of the agent, a PEM file with BEGIN CERTIFICATE
    no such file: 74 error: no-such.pem can't be read (No such file or directory (os error 2)): check the path, and that this user may read it
    no such key: 74 error: no-such.pem can't be read (No such file or directory (os error 2)): check the path, and that this user may read it
    a folder: 74 error: FOLDER can't be read (Is a directory (os error 21)): check the path, and that this user may read it
    changed over: 74 error: FOLDER/one/tls-key.pem holds no certificate: give a PEM file with BEGIN CERTIFICATE, the server's own first
    no key in it: 74 error: FOLDER/one/tls-cert.pem holds no private key: give a PEM file with BEGIN PRIVATE KEY, without a password
    another's key: 74 error: the certificate FOLDER/one/tls-cert.pem and the key FOLDER/other/tls-key.pem can't be used together (keys may not be consistent: KeyMismatch): give the key that the certificate was made for
    only one: 64 error: the following required arguments were not provided:
    both ways: 64 error: the argument '--tls-self-made' cannot be used with '--tls-cert <FILE>'
    "#);
}
