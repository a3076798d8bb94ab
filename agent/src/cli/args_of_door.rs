//! What can be typed about who reaches the agent, and how.

use std::path::PathBuf;

use axum::http::HeaderName;
use clap::Args;
use speedmatrix_shared::api::Role;

use super::CliError;
use crate::server::{Network, TrustedProxy};

// How the connections of `serve` are encrypted.
#[derive(Debug, Args)]
#[expect(clippy::struct_field_names, reason = "the names of the options are those of the fields")]
pub(super) struct TlsArgs {
    /// Encrypt connections with this certificate, a PEM file; it may hold its whole chain
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls_self_made")]
    pub(super) tls_cert: Option<PathBuf>,
    /// The certificate's private key, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    /// Encrypt connections with a certificate that the agent makes itself and keeps beside the store
    #[arg(long)]
    pub(super) tls_self_made: bool,
}

// Whose word `serve` takes for who asks, and how.
#[derive(Debug, Args)]
#[expect(clippy::struct_field_names, reason = "the names of the options are those of the fields")]
pub(super) struct TrustArgs {
    /// Header by which a proxy tells who asks, for example X-Remote-User; whoever has one is let in
    #[arg(long, value_name = "NAME", requires = "trust_proxy")]
    trust_header: Option<HeaderName>,
    /// Where a proxy asks from, an address or a network (10.0.0.0/8): its word counts for who asks (--trust-header) and for
    /// encryption (X-Forwarded-Proto), nobody else's does. May be repeated
    #[arg(long, value_name = "ADDR")]
    trust_proxy: Vec<Network>,
    /// What those that the proxy names may do: viewer or operator
    #[arg(long, value_name = "ROLE", requires = "trust_header", default_value = "viewer", value_parser = role)]
    trust_role: Role,
}

impl TrustArgs {
    pub(super) fn proxy(&self) -> Result<Option<TrustedProxy>, CliError> {
        if self.trust_proxy.is_empty() {
            return Ok(None);
        }
        let proxy = TrustedProxy::new(self.trust_proxy.clone());
        let Some(header) = &self.trust_header else { return Ok(Some(proxy)) };
        let proxy = proxy.naming(header.clone(), self.trust_role);
        proxy.map(Some).map_err(|wrong| CliError::Usage(format!("--trust-header: {wrong}")))
    }
}

fn role(text: &str) -> Result<Role, String> {
    match text {
        "viewer" => Ok(Role::Viewer),
        "operator" => Ok(Role::Operator),
        _ => Err("a role is viewer or operator".into()),
    }
}
