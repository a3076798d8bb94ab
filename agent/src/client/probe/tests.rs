//! The probe against tiny servers with fixed answers.

use std::collections::BTreeMap;

use speedmatrix_shared::plan::draft::parse_target;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;
use crate::secret::Secret;

/// Serves fixed answers by path until the test ends; other paths are 404. Returns its address.
async fn server(answers: &[(&str, &str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answers: BTreeMap<String, String> =
        answers.iter().map(|(path, answer)| ((*path).to_owned(), (*answer).to_owned())).collect();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4_096];
            let read = socket.read(&mut head).await.unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let answer = answers.get(path).map_or("404 Not Found||no such path", String::as_str);
            let mut parts = answer.splitn(3, '|');
            let (status, header, body) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
            let text = format!(
                "HTTP/1.1 {status}\r\n{header}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            socket.write_all(text.as_bytes()).await.ok();
        }
    });
    address
}

fn target(address: &str, key: Option<&str>) -> Target {
    Target { url: parse_target(address).unwrap(), key: key.and_then(Secret::new) }
}

/// The sentence of a probe that fails, the port replaced.
async fn refusal(models_answer: &str, key: Option<&str>) -> String {
    let address = server(&[("/v1/models", models_answer)]).await;
    let error = probe(&target(&address, key), Some("wanted")).await.unwrap_err();
    error.to_string().replace(&address, "HOST")
}

#[tokio::test]
async fn every_refusal_says_what_to_do() {
    let mut sentences = Vec::new();
    for (answer, key) in [
        ("401 Unauthorized||{}", None),
        ("403 Forbidden||{}", Some("sk-secret-key")),
        ("404 Not Found||", None),
        ("307 Temporary Redirect|location: http://elsewhere:9/v1/models|", None),
        ("503 Service Unavailable||loading sk-secret-key", Some("sk-secret-key")),
        ("200 OK|content-type: text/html; charset=utf-8|<html><head><TITLE> Sign in\n here </TITLE>", None),
        ("200 OK||  <!doctype html>", None),
        ("200 OK|content-type: application/json|hello", None),
        ("200 OK||{\"data\": 3}", None),
        ("200 OK||{\"data\": []}", None),
        ("200 OK||{\"data\": [{\"id\": \"a/b\"}, {\"id\": \"c\"}]}", None),
    ] {
        sentences.push(refusal(answer, key).await);
    }
    insta::assert_snapshot!(sentences.join("\n"), @r#"
    http://HOST/v1/models answered 401: it wants a key, and none was given: enter the server's api key
    http://HOST/v1/models answered 403: it refuses the key that was given: check the server's api key
    http://HOST/v1/models answered 404: no model list there: check the address and its base path (without /v1)
    http://HOST/v1/models answered 307 and points to http://elsewhere:9/v1/models: give that address instead
    http://HOST/v1/models answered 503 (loading <redacted>): wait until the server is ready, or look at its log
    http://HOST/v1/models answered with a web page ("Sign in here"): that is a site or a proxy, give the model server's address
    http://HOST/v1/models answered with a web page ("no title"): that is a site or a proxy, give the model server's address
    http://HOST/v1/models answered with something that is no model list (hello): check that it is an openai-style server
    http://HOST/v1/models answered with something that is no model list ({"data": 3}): check that it is an openai-style server
    http://HOST/v1/models offers no model: load one on the server first
    the server at http://HOST has no model "wanted": it offers "a/b", "c"
    "#);
}

#[tokio::test]
async fn nobody_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = probe(&target(&address, None), None).await.unwrap_err();
    insta::assert_snapshot!(error.to_string().replace(&address, "HOST"), @"nothing answers at http://HOST/v1/models (connection refused): check that the server has started and the port is right");
}

#[tokio::test]
async fn no_tls_there() {
    let address = server(&[]).await;
    let error = probe(&target(&format!("https://{address}"), None), None).await.unwrap_err();
    insta::assert_snapshot!(error.to_string().replace(&address, "HOST"), @"no secure connection to https://HOST/v1/models (received corrupt message of type InvalidContentType): use http:// if the server has no certificate, or install its certificate on this machine");
}

#[tokio::test]
async fn no_such_name() {
    let error = probe(&target("http://no-such-host.invalid:8000", None), None).await.unwrap_err();
    insta::assert_snapshot!(error, @"the name in http://no-such-host.invalid:8000/v1/models could not be found: check its spelling, or use the address in numbers");
}

#[tokio::test]
async fn no_answer_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let http = Http::new(&target(&address, None)).unwrap();
    let error = http.get_within("/v1/models", std::time::Duration::from_millis(50)).await.unwrap_err();
    insta::assert_snapshot!(error.to_string().replace(&address, "HOST"), @"http://HOST/v1/models did not answer within 50ms: check that the server is up and not still loading its model");
}

#[tokio::test]
async fn too_much_of_an_answer() {
    let body = "x".repeat((8 << 20) + 1);
    let address = server(&[("/v1/models", &format!("200 OK||{body}"))]).await;
    let error = probe(&target(&address, None), None).await.unwrap_err();
    insta::assert_snapshot!(error.to_string().replace(&address, "HOST"), @"http://HOST/v1/models answered with more than 8 MiB: check that it is the address of a model server");
}

#[tokio::test]
async fn vllm_tells_its_limits() {
    let address = server(&[
        ("/v1/models", r#"200 OK||{"data":[{"id":"qwen","owned_by":"vllm","root":"org/qwen","max_model_len":32768}]}"#),
        ("/version", r#"200 OK||{"version":"0.25.0"}"#),
        (
            "/metrics",
            "200 OK||vllm:num_requests_running{engine=\"0\"} 0\n\
             vllm:cache_config_info{block_size=\"16\",kv_cache_size_tokens=\"5000\",num_gpu_blocks=\"99\"} 1\n",
        ),
    ])
    .await;
    let facts = probe(&target(&address, None), None).await.unwrap().facts;
    assert_eq!(facts.gauges, ["running"]);
    let text = serde_json::to_string(&facts).unwrap().replace(&address, "HOST");
    insta::assert_snapshot!(text, @r#"{"base_url":"http://HOST","served_model":"qwen","model":"org/qwen","revision":null,"models":["qwen"],"engine":{"engine":"vllm","version":"0.25.0","quantization":null,"backend":null,"repository":null,"build":null},"hardware":{"kind":null,"gpu":null,"gpu_count":null,"vram_total_gb":null,"vram_each_gb":null,"os":null},"limits":{"max_model_len":32768,"max_sequences":null,"kv_tokens":5000},"launch_command":null,"simulated":null,"warnings":["whether the engine caches the prefixes of prompts is not told: each decode cell checks it by its second request"],"sources":[{"fact":"engine","endpoint":"/metrics","sureness":"certain"},{"fact":"version","endpoint":"/version","sureness":"certain"},{"fact":"model","endpoint":"/v1/models","sureness":"certain"},{"fact":"max_model_len","endpoint":"/v1/models","sureness":"certain"},{"fact":"kv_tokens","endpoint":"/metrics","sureness":"certain"}],"gauges":["running"]}"#);
}

#[tokio::test]
async fn llama_cpp_tells_its_slots() {
    let address = server(&[
        (
            "/v1/models",
            r#"200 OK||{"data":[{"id":"m.gguf","aliases":["tiny"],"owned_by":"llamacpp","meta":{"n_ctx":2048}}]}"#,
        ),
        (
            "/props",
            r#"200 OK||{"total_slots":4,"model_path":"models/m.gguf","model_ftype":"F16","build_info":"b1-abc"}"#,
        ),
        ("/metrics", r#"501 Not Implemented||{"error":{"message":"start the server with --metrics"}}"#),
    ])
    .await;
    let facts = probe(&target(&address, None), Some("tiny")).await.unwrap().facts;
    assert_eq!(facts.served_model.as_deref(), Some("tiny"));
    assert_eq!(facts.model.as_deref(), Some("models/m.gguf"));
    assert_eq!(facts.engine.engine.as_deref(), Some("llama.cpp"));
    assert_eq!(
        facts.limits,
        speedmatrix_shared::target::Limits { max_model_len: Some(2_048), max_sequences: Some(4), kv_tokens: None }
    );
    assert!(facts.warnings[0].contains("--metrics"), "{:?}", facts.warnings);
}

#[tokio::test]
async fn a_simulator_is_recognised() {
    let address = server(&[
        ("/v1/models", r#"200 OK||{"data":[{"id":"sim","owned_by":"vllm","max_model_len":1000}]}"#),
        (
            "/sim/info",
            r#"200 OK||{"simulated":true,"preset":"small","seed":7,"clock_factor":20.0,"max_sequences":16,
              "hardware":{"gpu":"card","gpu_count":2,"memory_bytes_each":25769803776}}"#,
        ),
    ])
    .await;
    let facts = probe(&target(&address, None), None).await.unwrap().facts;
    let text = serde_json::to_string_pretty(&(facts.simulated, facts.hardware, facts.limits)).unwrap();
    insta::assert_snapshot!(text, @r#"
    [
      {
        "preset": "small",
        "clock_factor": 20.0,
        "seed": 7
      },
      {
        "kind": "Simulated",
        "gpu": "card",
        "gpu_count": 2,
        "vram_total_gb": 48.0,
        "vram_each_gb": 24.0,
        "os": null
      },
      {
        "max_model_len": 1000,
        "max_sequences": 16,
        "kv_tokens": null
      }
    ]
    "#);
}

#[tokio::test]
async fn no_text_of_a_server_is_kept_with_the_key_or_at_length() {
    let key = "my-own-key-0123";
    let long = "v".repeat(2_000);
    let models = format!(
        r#"200 OK||{{"data":[{{"id":"{key}/first","owned_by":"llamacpp"}},{{"id":"second {key}"}},{{"id":"{}"}}]}}"#,
        "x".repeat(100_000)
    );
    let props = format!(r#"200 OK||{{"model_path":"/m/{key}.gguf","model_ftype":"{key}","build_info":"{long}{key}"}}"#);
    let address = server(&[("/v1/models", &models), ("/props", &props)]).await;
    let target = target(&address, Some(key));
    let found = probe(&target, None).await.unwrap();
    assert_eq!(found.model.as_deref(), Some("my-own-key-0123/first"), "requests ask for it");
    let facts = found.facts;
    assert_eq!(facts.models, ["<redacted>/first", "second <redacted>", "over 65536 bytes"]);
    assert_eq!(facts.served_model.as_deref(), Some("<redacted>/first"));
    assert_eq!(facts.model.as_deref(), Some("/m/<redacted>.gguf"));
    assert_eq!(facts.engine.quantization.as_deref(), Some("<redacted>"));
    assert_eq!(facts.engine.build.as_deref(), Some(&long[..500]));
    assert!(!format!("{facts:?}").contains(key), "{facts:?}");
    // Names are chosen as they are shown.
    assert_eq!(probe(&target, Some("second <redacted>")).await.unwrap().model, Some(format!("second {key}")));
    let error = probe(&target, Some("third")).await.unwrap_err().to_string();
    assert!(!error.contains(key), "{error}");
}
