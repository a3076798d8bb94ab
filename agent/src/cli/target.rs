//! What has to do with servers under test: `sim` starts one, `probe` looks at one.

use std::{env, net::SocketAddr};

use speedmatrix_shared::{
    format,
    plan::draft::parse_target,
    target::{FactName, TargetFacts},
};

use super::{
    CliError, Exit, Interrupts,
    args::{ProbeArgs, SimArgs},
};
use crate::{
    client::Target,
    runs::look,
    secret::Secret,
    sim::{Sim, SimConfig, SimThread},
    terminal::Terminal,
};

pub(super) async fn simulate(args: SimArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let usage = |flag: &str, error: &dyn ToString| CliError::Usage(format!("{flag}: {}", error.to_string()));
    let mut config = SimConfig::preset(&args.preset).map_err(|e| usage("--preset", &e))?;
    config.clock_factor = args.clock_factor;
    config.script = args.script.parse().map_err(|e| usage("--script", &e))?;
    if let Some(seed) = args.seed {
        config.seed = seed;
    }
    config.check().map_err(|e| usage("--clock-factor", &e))?;
    let mut interrupts = Interrupts::listen()?;
    let simulator = start(config, args.listen).await?;
    terminal.line(&simulator.base_url())?;
    terminal.hint("a simulated server: measure it with `speedmatrix run --target URL`; Ctrl-C stops it");
    interrupts.next().await;
    Ok(Exit::Done)
}

/// Starts a simulator on a thread of its own.
pub(super) async fn start(config: SimConfig, listen: SocketAddr) -> Result<SimThread, CliError> {
    let started = tokio::task::spawn_blocking(move || Sim::start_on_thread(config, listen)).await;
    let source = match started {
        Ok(Ok(simulator)) => return Ok(simulator),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::AddrInUse => {
            return Err(CliError::PortInUse { address: listen });
        }
        Ok(Err(error)) => error,
        Err(panic) => std::io::Error::other(panic),
    };
    Err(CliError::Simulator { source })
}

/// The key that an environment variable holds.
pub(super) fn key_from(flag: &str, variable: Option<&str>) -> Result<Option<Secret>, CliError> {
    let Some(variable) = variable else { return Ok(None) };
    let wrong = |what| CliError::Usage(format!("{flag}: the variable {variable} {what}"));
    let text = env::var(variable).map_err(|_not_set_or_no_text| wrong("is not set to a text"))?;
    Secret::new(&text).map(Some).ok_or_else(|| wrong("is empty"))
}

pub(super) async fn probe_one(args: ProbeArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let url = parse_target(&args.url).map_err(CliError::Usage)?;
    let target = Target { url, key: key_from("--api-key-env", args.api_key_env.as_deref())? };
    let facts = look(&target, args.model.as_deref()).await?.facts;
    for (name, value) in lines(&facts) {
        terminal.line(&format!("{name:<12} {value}"))?;
    }
    Ok(Exit::Done)
}

/// A fact and, in brackets, where it came from.
fn sourced(facts: &TargetFacts, fact: FactName, text: String) -> String {
    match facts.source(fact) {
        Some(source) => format!("{text} ({})", source.words()),
        None => text,
    }
}

/// What is known, one thing per line.
fn lines(facts: &TargetFacts) -> Vec<(&'static str, String)> {
    let engine = &facts.engine;
    let engine = [&engine.engine, &engine.version, &engine.quantization].into_iter().flatten().cloned();
    let gpu = facts.hardware.gpu.as_ref().map(|gpu| match facts.hardware.gpu_count {
        Some(count) => format!("{gpu} ×{count}"),
        None => gpu.clone(),
    });
    let tokens = |fact, tokens: Option<u64>| tokens.map(|_| sourced(facts, fact, format::tokens(tokens)));
    let sequences = facts.limits.max_sequences.map(|n| sourced(facts, FactName::MaxSequences, format!("{n} requests")));
    let simulated = facts.simulated.as_ref().map(|s| format!("{}, clock ×{}", s.preset, s.clock_factor));
    let unknown = |fact: &str| facts.unknown.get(fact).map(|why| format!("unknown: {why}"));
    let known = [
        ("address", Some(facts.base_url.clone())),
        ("simulated", simulated),
        ("engine", Some(sourced(facts, FactName::Engine, engine.collect::<Vec<_>>().join(" · ")))),
        ("model", facts.served_model.clone()),
        ("repository", facts.model.clone()),
        ("models", (facts.models.len() > 1).then(|| facts.models.join(", "))),
        ("context", tokens(FactName::MaxModelLen, facts.limits.max_model_len)),
        ("kv cache", tokens(FactName::KvTokens, facts.limits.kv_tokens)),
        ("at once", sequences),
        ("tells", Some(facts.gauges.join(", "))),
        ("gpu", gpu),
        ("started as", facts.launch_command.clone().or_else(|| unknown("launch_command"))),
    ];
    let known = known.into_iter().filter_map(|(name, value)| Some((name, value.filter(|v| !v.is_empty())?)));
    known.chain(facts.warnings.iter().map(|warning| ("beware", warning.clone()))).collect()
}
