//! The certificate that connections are encrypted with: a given one, or one that the agent makes for itself.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ServerConfig,
    client::verify_server_name,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem, pem::PemObject as _},
    server::ParsedCertificate,
    sign::CertifiedKey,
};
use sha2::{Digest as _, Sha256};

use super::renewal::Current;

/// Names of the files of a certificate that the agent made, beside its store.
const OWN_CERTIFICATE: &str = "tls-cert.pem";
/// See [`OWN_CERTIFICATE`].
const OWN_KEY: &str = "tls-key.pem";
/// Only the owner reads a key.
const KEY_MODE: u32 = 0o600;
/// Anybody reads a certificate.
const CERTIFICATE_MODE: u32 = 0o644;

/// Why connections can't be encrypted.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is no such file, or it may not be read.
    #[error("{path} can't be read ({source}): check the path, and that this user may read it", path = path.display())]
    Unread {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No certificate in it.
    #[error("{path} holds no certificate: give a PEM file with BEGIN CERTIFICATE, the server's own first", path = path.display())]
    NoCertificate {
        /// Which.
        path: PathBuf,
    },
    /// No key in it.
    #[error("{path} holds no private key: give a PEM file with BEGIN PRIVATE KEY, without a password", path = path.display())]
    NoKey {
        /// Which.
        path: PathBuf,
    },
    /// They don't work together.
    #[error(
        "the certificate {certificate} and the key {key} can't be used together ({reason}): give the key that the \
         certificate was made for",
        certificate = certificate.display(), key = key.display()
    )]
    Mismatch {
        /// Which certificate.
        certificate: PathBuf,
        /// Which key.
        key: PathBuf,
        /// What the TLS library says.
        reason: rustls::Error,
    },
    /// No certificate could be made.
    #[error("no certificate could be made ({0}): give one with --tls-cert and --tls-key")]
    Made(#[from] rcgen::Error),
    /// The made one could not be kept.
    #[error("the certificate can't be kept in {path} ({source}): make room there, or give one with --tls-cert and --tls-key", path = path.display())]
    Unwritten {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Encrypts connections. Clones share the certificate.
#[derive(Debug, Clone)]
pub struct Tls {
    pub(super) config: Arc<ServerConfig>,
    current: Arc<Current>,
}

/// What encrypts the connections, and where its certificate is.
#[derive(Debug)]
pub struct Encryption {
    /// What encrypts them.
    pub tls: Tls,
    /// Where it is.
    pub certificate: PathBuf,
    /// Whether it was made just now.
    pub is_new: bool,
}

impl Tls {
    /// With a certificate and its key from PEM files.
    pub fn given(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let current = Arc::new(Current::read(certificate, key)?);
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|reason| mismatch(certificate, key, reason))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(Arc::clone(&current) as _);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), current })
    }

    /// With a certificate of the agent's own for `names`, kept in `folder`. One that is there and holds them all stays.
    pub fn self_made(folder: &Path, names: &[String]) -> Result<Encryption, TlsError> {
        let (certificate, key) = (folder.join(OWN_CERTIFICATE), folder.join(OWN_KEY));
        let is_new = !(certificate.exists() && key.exists() && covers(&read_chain(&certificate)?[0], names));
        if is_new {
            let made = make(names)?;
            write(&key, KEY_MODE, &made.signing_key.serialize_pem())?;
            write(&certificate, CERTIFICATE_MODE, &made.cert.pem())?;
        }
        Ok(Encryption { tls: Self::given(&certificate, &key)?, certificate, is_new })
    }

    /// SHA-256 of the certificate, as browsers show it.
    pub fn fingerprint(&self) -> String {
        self.current.shown().cert.first().map(fingerprint).unwrap_or_default()
    }

    /// Looks at the files again if they are others than at the last look; whether there is another certificate now. One
    /// that can't be used changes nothing.
    pub fn renew(&self) -> Result<bool, TlsError> {
        self.current.renew()
    }
}

/// A certificate with its key.
pub(super) fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let chain = read_chain(certificate)?;
    let pair = CertifiedKey::from_der(chain, read_key(key)?, &ring::default_provider());
    pair.map_err(|reason| mismatch(certificate, key, reason))
}

fn mismatch(certificate: &Path, key: &Path, reason: rustls::Error) -> TlsError {
    TlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned(), reason }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| match error {
        pem::Error::Io(source) => TlsError::Unread { path: path.to_owned(), source },
        _ => TlsError::NoCertificate { path: path.to_owned() },
    })?;
    if chain.is_empty() { Err(TlsError::NoCertificate { path: path.to_owned() }) } else { Ok(chain) }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::Io(source) => TlsError::Unread { path: path.to_owned(), source },
        _ => TlsError::NoKey { path: path.to_owned() },
    })
}

fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let bytes: Vec<String> = Sha256::digest(certificate).iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(":")
}

/// Whether a certificate holds all of these names.
fn covers(certificate: &CertificateDer<'_>, names: &[String]) -> bool {
    let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return false };
    let holds = |name: &String| {
        ServerName::try_from(name.as_str()).is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
    };
    names.iter().all(holds)
}

fn make(names: &[String]) -> Result<rcgen::CertifiedKey<rcgen::KeyPair>, rcgen::Error> {
    let mut params = rcgen::CertificateParams::new(names)?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "Speedmatrix agent");
    params.extended_key_usages.push(rcgen::ExtendedKeyUsagePurpose::ServerAuth);
    let signing_key = rcgen::KeyPair::generate()?;
    let cert = params.self_signed(&signing_key)?;
    Ok(rcgen::CertifiedKey { cert, signing_key })
}

/// A file is there whole or not at all, and never readable by more than `mode` says.
fn write(path: &Path, mode: u32, text: &str) -> Result<(), TlsError> {
    let part = path.with_extension("part");
    let written = || {
        if part.exists() {
            fs::remove_file(&part)?;
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    written().map_err(|source| TlsError::Unwritten { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_own_certificate_stays_until_a_name_is_missing_and_its_key_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let made = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            Tls::self_made(folder.path(), &names).unwrap()
        };
        let first = made(&["localhost", "127.0.0.1"]);
        assert!(first.is_new && first.tls.fingerprint().len() == 32 * 3 - 1, "{}", first.tls.fingerprint());
        let key = fs::metadata(folder.path().join(OWN_KEY)).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
        let again = made(&["127.0.0.1", "localhost"]);
        assert_eq!((again.is_new, again.tls.fingerprint()), (false, first.tls.fingerprint()));
        let more = made(&["localhost", "127.0.0.1", "::1", "bench.example.org"]);
        assert!(more.is_new && more.tls.fingerprint() != first.tls.fingerprint());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
