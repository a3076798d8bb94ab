//! Certificates that somebody trusts beside those of the system.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem, pem::PemObject as _},
};

/// Why a file of certificates can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It can't be read.
    #[error("{path} can't be read ({source}): give the certificate of the agent, a PEM file", path = path.display())]
    Unread {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It holds no certificate.
    #[error("{path} holds no certificate: give that of the agent, a PEM file with BEGIN CERTIFICATE", path = path.display())]
    NoCertificate {
        /// Which.
        path: PathBuf,
    },
}

/// Certificates of a file; by default none.
#[derive(Debug, Clone, Default)]
pub struct Trust(Vec<CertificateDer<'static>>);

impl Trust {
    /// Those of a PEM file.
    pub fn read(path: Option<&Path>) -> Result<Self, TrustError> {
        let Some(path) = path else { return Ok(Self::default()) };
        let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
        let found: Vec<_> = found.map_err(|error| match error {
            pem::Error::Io(source) => TrustError::Unread { path: path.to_owned(), source },
            _ => TrustError::NoCertificate { path: path.to_owned() },
        })?;
        if found.is_empty() { Err(TrustError::NoCertificate { path: path.to_owned() }) } else { Ok(Self(found)) }
    }

    /// Lets plain questions trust them.
    pub(super) fn put(&self, builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
        let readable = self.0.iter().filter_map(|certificate| reqwest::Certificate::from_der(certificate).ok());
        let readable: Vec<_> = readable.collect();
        if readable.is_empty() { builder } else { builder.tls_certs_merge(readable) }
    }

    /// TLS that trusts them and the system's; `None` where there are none beside the system's.
    pub(crate) fn config(&self) -> Result<Option<Arc<ClientConfig>>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        for certificate in &self.0 {
            roots.add(certificate.clone()).map_err(|error| error.to_string())?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Some(Arc::new(config)))
    }
}
