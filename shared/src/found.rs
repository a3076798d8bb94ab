//! Model servers that the agent found on its own machine, to choose from.

use serde::{Deserialize, Serialize};

use crate::target::TargetFacts;

/// A model server that listens on the agent's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundServer {
    /// Its address, as the agent reaches it.
    pub url: String,
    /// Its port.
    pub port: u16,
    /// The engine's name, as far as it tells one; `simulator` where nothing real would be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The model it serves; of several, the first one that is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it wants before it tells more.
    #[serde(default)]
    pub access: Access,
}

/// Whether a server tells what it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// To everybody.
    #[default]
    Open,
    /// It wants a key first, so it is only likely to be a model server.
    WantsKey,
}

/// What a look at this machine brought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundServers {
    /// By port.
    pub servers: Vec<FoundServer>,
    /// Whether it was looked at, or what was known was told.
    #[serde(default)]
    pub looked: Looked,
}

/// Whether a machine was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Looked {
    /// Now, or a few seconds ago.
    #[default]
    Now,
    /// Not while a run is measured: questions to its server would be a part of the load.
    NotWhileMeasuring,
}

impl FoundServer {
    /// What a probe of a port found.
    pub fn of(url: String, port: u16, facts: TargetFacts) -> Self {
        let simulated = facts.simulated.map(|_| "simulator".to_owned());
        let engine = simulated.or(facts.engine.engine);
        Self { url, port, engine, model: facts.served_model.or(facts.model), access: Access::Open }
    }

    /// `port 8000 · vllm · deepseek`; what is not told is left out.
    pub fn label(&self) -> String {
        let key = (self.access == Access::WantsKey).then_some("wants a key");
        let parts = [self.engine.as_deref(), self.model.as_deref(), key];
        let told: Vec<&str> = parts.into_iter().flatten().collect();
        [format!("port {}", self.port)].iter().map(String::as_str).chain(told).collect::<Vec<_>>().join(" · ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_what_it_tells() {
        let check = |json: &str, label: &str| {
            assert_eq!(serde_json::from_str::<FoundServer>(json).unwrap().label(), label);
        };
        check(r#"{"url":"http://127.0.0.1:8000","port":8000,"engine":"vllm","model":"m"}"#, "port 8000 · vllm · m");
        check(r#"{"url":"http://127.0.0.1:81","port":81,"access":"wants_key"}"#, "port 81 · wants a key");
    }

    #[test]
    fn what_is_told_is_a_format() {
        let server = FoundServer {
            url: "http://127.0.0.1:8000".into(),
            port: 8_000,
            engine: Some("vllm".into()),
            model: None,
            access: Access::Open,
        };
        let found = FoundServers { servers: vec![server], looked: Looked::NotWhileMeasuring };
        let json = serde_json::to_string(&found).unwrap();
        insta::assert_snapshot!(json, @r#"{"servers":[{"url":"http://127.0.0.1:8000","port":8000,"engine":"vllm","access":"open"}],"looked":"not_while_measuring"}"#);
    }
}
