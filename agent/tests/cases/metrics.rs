//! The cases about metrics pages: each is scraped over HTTP by the product's own client, as a run does it.

use std::{fs, io, path::Path, time::Instant};

use serde_json::{Value, json};
use speedmatrix_agent::client::{
    http::Http,
    prometheus::{EngineGauges, Page, find},
};
use speedmatrix_shared::{
    stats::{
        counter::{falls, rates},
        window::Window,
    },
    units::Nanos,
};

use super::{Verdict, calc::Wrong, replay::Replay};

/// Checks one case.
pub(crate) async fn check(replay: &Replay, path: &Path, id: &str) -> io::Result<Verdict> {
    let case: Value = serde_json::from_slice(&fs::read(path.with_file_name(format!("{id}.expect.json")))?)?;
    let text = fs::read_to_string(path.with_file_name(format!("{id}.txt")))?;
    let expected = case["expect"].as_object().cloned().unwrap_or_default();
    let mut wrong = Wrong::default();
    replay.reset(id).await;
    let http = Http::new(&replay.target(id)).map_err(io::Error::other)?;
    let page = Page::read(&text);
    let began = Instant::now();
    let scraped = find(&http).await;
    let waited_ms = began.elapsed().as_secs_f64() * 1e3;
    let gauges = scraped.as_ref().ok().map(|(_, gauges)| *gauges);
    for (key, value) in &expected {
        match (key.as_str(), &gauges) {
            ("notes" | "interval_ms", _) => {}
            ("generation_rate" | "server_restarted", Some(first)) => {
                restarts(&http, first, key, value, &mut wrong).await;
            }
            ("metrics_available", _) => wrong.same(key, scraped.is_ok(), value),
            ("reason_contains", _) => {
                let said = scraped.as_ref().map_or_else(ToString::to_string, |_| String::new());
                let found = value.as_str().is_some_and(|part| said.contains(part));
                wrong.must(found.then_some(()), &format!("{value} is not in {said:?}"));
            }
            ("extra_wait_ms_max", _) => {
                let in_time = value.as_f64().is_some_and(|most| waited_ms <= most);
                wrong.must(in_time.then_some(()), &format!("{waited_ms} ms were waited"));
            }
            (key, Some(gauges)) => one(key, value, &page, gauges, &mut wrong),
            (_, None) => wrong.must(None, &format!("{scraped:?}")),
        }
    }
    Ok(if wrong.0.is_empty() { Verdict::Ok(remark(id).to_owned()) } else { Verdict::Failed(wrong.0) })
}

fn one(key: &str, value: &Value, page: &Page<'_>, gauges: &EngineGauges, wrong: &mut Wrong) {
    let sample = |name: &str| page.samples.iter().find(|sample| sample.name == name);
    let got = match key {
        "engine" => return wrong.same(key, gauges.engine.name(), value),
        "engines" => return wrong.same(key, gauges.replicas, value),
        "skipped_lines" => return wrong.same(key, page.skipped_lines, value),
        "label_value" => {
            let label = page.samples.first().and_then(|sample| sample.label("model_name"));
            return wrong.same(key, label, value);
        }
        "running" => gauges.running,
        "waiting" => gauges.waiting,
        "kv_usage" | "kv_usage_mean" => gauges.kv_usage,
        "kv_usage_max" => gauges.kv_usage_max,
        "kv_capacity_tokens" => gauges.kv_tokens.map(speedmatrix_agent::client::prometheus::KvTokens::tokens),
        "prefix_cache_queries" => gauges.prefix_queries,
        "prefix_cache_hits" => gauges.prefix_hits,
        "preemptions" => gauges.preemptions,
        "generation_tokens" => gauges.generation_tokens,
        "prompt_tokens" => gauges.prompt_tokens,
        "spec_accept_length" => gauges.accept_length,
        "busy_slots" => sample("llamacpp:n_busy_slots_per_decode").and_then(|sample| sample.value),
        "ttft_hist_count" => sample("vllm:time_to_first_token_seconds_count").and_then(|sample| sample.value),
        _ => return wrong.must(None, &format!("nothing here compares {key}")),
    };
    wrong.number(key, got, value);
}

/// E12: four scrapes, a second apart; the server was started anew between the second and the third.
async fn restarts(http: &Http, first: &EngineGauges, key: &str, value: &Value, wrong: &mut Wrong) {
    if key != "generation_rate" {
        // Both keys are of the same four scrapes; they are taken once.
        return;
    }
    let mut looks = vec![(Nanos(0), first.generation_tokens.unwrap_or(f64::NAN))];
    for second in 1..=3 {
        match find(http).await {
            Ok((_, gauges)) => {
                looks.push((Nanos::from_secs(second), gauges.generation_tokens.unwrap_or(f64::NAN)));
            }
            Err(error) => wrong.must(None, &error.to_string()),
        }
    }
    wrong.same(key, json!(rates(&looks)), &as_floats(value));
    let window = Window::new(Nanos(0), Nanos::from_secs(3));
    wrong.must(falls(&looks, window).then_some(()), "the restart is not seen");
}

fn as_floats(value: &Value) -> Value {
    value.as_array().into_iter().flatten().map(|rate| json!(rate.as_f64())).collect()
}

fn remark(id: &str) -> &'static str {
    match id {
        "E06" => "counters over ranks are checked against the client's own count in each cell",
        "E12" => "said as finding \"server_restarted\"",
        _ => "",
    }
}
