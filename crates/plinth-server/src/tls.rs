//! TLS, by rustls.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

use crate::failure::ServerError;

/// Bytes of a file of certificates or keys at most.
const LARGEST: u64 = 1 << 20;

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Those of two files in PEM: the certificate, with those that it hangs on behind it, and its key.
    ///
    /// # Errors
    /// If one can't be read or has something else, or they don't fit.
    pub fn read_files(certificate: &Path, key: &Path) -> Result<Self, ServerError> {
        let read = |path: &Path| plinth_io::regular::read_text(path, LARGEST).map_err(ServerError::new);
        let failed = |path: &Path, what: &dyn fmt::Display| ServerError::new(format!("{}: {what}", path.display()));
        let chain = CertificateDer::pem_slice_iter(read(certificate)?.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| failed(certificate, &format!("is no certificate in PEM: {e}")))?;
        if chain.is_empty() {
            return Err(failed(certificate, &"has no certificate in PEM"));
        }
        let key_of_chain = PrivateKeyDer::from_pem_slice(read(key)?.as_bytes())
            .map_err(|e| failed(key, &format!("is no private key in PEM: {e}")))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(ServerError::new)?
            .with_no_client_auth()
            .with_single_cert(chain, key_of_chain)
            .map_err(|e| failed(certificate, &format!("does not go with {}: {e}", key.display())))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.0
    }
}
