//! A certificate that is renewed while the agent runs: its files are looked at now and then.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio_util::sync::CancellationToken;

use super::{Tls, TlsError, tls::read};

/// Between two looks at the files. Who renews certificates does so days before they end.
const LOOK_PERIOD: Duration = Duration::from_mins(1);

/// What tells a file from the one that was there before; `None`: there is none that could be looked at.
type Mark = Option<(SystemTime, u64, u64)>;

/// The certificate that is shown now.
#[derive(Debug)]
pub(super) struct Current {
    certificate: PathBuf,
    key: PathBuf,
    shown: RwLock<Arc<CertifiedKey>>,
    /// Of the files at the last look.
    marks: Mutex<[Mark; 2]>,
}

impl Current {
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        // Before the files: one that changes meanwhile is read again.
        let marks = [mark(certificate), mark(key)];
        let shown = RwLock::new(Arc::new(read(certificate, key)?));
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), shown, marks: Mutex::new(marks) })
    }

    pub(super) fn shown(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.shown.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn renew(&self) -> Result<bool, TlsError> {
        let now = [mark(&self.certificate), mark(&self.key)];
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if *marks == now {
            return Ok(false);
        }
        *marks = now;
        let pair = read(&self.certificate, &self.key)?;
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
        Ok(true)
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown())
    }
}

fn mark(file: &Path) -> Mark {
    let data = fs::metadata(file).ok()?;
    Some((data.modified().ok()?, data.len(), data.ino()))
}

/// Looks at the files until `closing`; what can't be used is said once.
pub(super) async fn keep_fresh(tls: Tls, closing: CancellationToken) {
    while closing.run_until_cancelled(tokio::time::sleep(LOOK_PERIOD)).await.is_some() {
        let at_files = tls.clone();
        match tokio::task::spawn_blocking(move || at_files.renew()).await {
            Ok(Ok(true)) => {
                let print = tls.fingerprint();
                tracing::info!("the certificate was renewed: its SHA-256 is {print}");
            }
            Ok(Ok(false)) => {}
            Ok(Err(error)) => tracing::error!("the renewed certificate is not used, and the old one stays: {error}"),
            Err(panic) => tracing::error!("the certificate's files could not be looked at: {panic}"),
        }
    }
}
