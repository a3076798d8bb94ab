//! TLS over a stamped socket, for targets behind https. The stamp is that of the ciphertext that completed the record.

use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{ClientError, stamped::Stamped};

/// How to speak TLS with one host.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The system's certificates, read once: a thousand connections share them.
static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();

impl Tls {
    /// TLS as the system's certificates allow it.
    pub(crate) fn new(host: &str) -> Result<Self, ClientError> {
        let failed = |reason: String| ClientError::Tls { host: host.to_owned(), reason };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(error.to_string()))?;
        let config = CONFIG.get_or_init(config).clone().map_err(failed)?;
        Ok(Self { connector: TlsConnector::from(config), name })
    }

    /// Shakes hands over `io`.
    pub(crate) async fn connect(&self, io: Stamped) -> io::Result<Transport> {
        let stream = self.connector.connect(self.name.clone(), io).await?;
        Ok(Transport::Sealed(Box::new(stream)))
    }
}

fn config() -> Result<Arc<ClientConfig>, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let reasons: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        return Err(format!("this system has no usable root certificates {}", reasons.join("; "))
            .trim_end()
            .to_owned());
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    // Only HTTP/1.1 is offered: one read is one piece of one stream.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A stamped socket, with or without TLS over it.
#[derive(Debug)]
pub(crate) enum Transport {
    /// HTTP as it is.
    Plain(Stamped),
    /// HTTP within TLS.
    Sealed(Box<TlsStream<Stamped>>),
}

impl Transport {
    /// The socket below.
    pub(crate) fn socket(&self) -> &Stamped {
        match self {
            Self::Plain(io) => io,
            Self::Sealed(io) => io.get_ref().0,
        }
    }

    /// The socket below, to be told of a new request.
    pub(crate) fn socket_mut(&mut self) -> &mut Stamped {
        match self {
            Self::Plain(io) => io,
            Self::Sealed(io) => io.get_mut().0,
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_read(cx, buf),
            Self::Sealed(io) => Pin::new(io).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write(cx, bytes),
            Self::Sealed(io) => Pin::new(io).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write_vectored(cx, parts),
            Self::Sealed(io) => Pin::new(io).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_flush(cx),
            Self::Sealed(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Self::Sealed(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}
