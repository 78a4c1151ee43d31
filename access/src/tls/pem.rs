//! Certificates and keys as PEM files have them (RFC 7468).

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::AccessError;

/// All certificates of a file, at least one.
pub(super) fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let certificates = read.map_err(|error| AccessError::file(path, error))?;
    if certificates.is_empty() {
        return Err(AccessError::file(path, "holds no certificate"));
    }
    Ok(certificates)
}

/// The private key of a file.
pub(super) fn private_key(path: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, AccessError> {
    PrivateKeyDer::from_pem_slice(bytes).map_err(|_| AccessError::file(path, "holds no private key"))
}

/// The authorities of a file.
pub(super) fn authorities(path: &Path, bytes: &[u8]) -> Result<RootCertStore, AccessError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, bytes)? {
        roots.add(certificate).map_err(|error| AccessError::file(path, error))?;
    }
    Ok(roots)
}
