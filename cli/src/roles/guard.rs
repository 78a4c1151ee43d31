//! Who may reach a process: its certificate, its tokens, and a warning where there are none.

use std::path::{Path, PathBuf};

use antiphon_access::tls::{ClientTls, ClientTlsFiles, ServerTls, ServerTlsFiles};
use antiphon_access::tokens::Tokens;
use antiphon_access::{AccessLayer, Audit};

use crate::failure::Failure;
use crate::settings::{AuditLog, Settings};

/// TLS as the server speaks it; none where the settings name no certificate.
pub(super) fn server_tls(settings: &Settings) -> Result<Option<ServerTls>, Failure> {
    let tls = &settings.tls;
    let Some(certificates) = path(&tls.cert_file) else {
        if !settings.listen.ip().is_loopback() {
            tracing::warn!(
                listen = %settings.listen,
                "tls.cert_file is not set: whoever is on the way can read and change what is sent"
            );
        }
        return Ok(None);
    };
    let files =
        ServerTlsFiles { certificates, key: tls.key_file.clone(), client_authorities: path(&tls.client_ca_file) };
    ServerTls::start(files).map(Some).map_err(|error| Failure::of("tls", &error))
}

/// TLS towards other members; none where the settings don't speak of any.
pub(super) fn member_tls(settings: &Settings) -> Result<Option<ClientTls>, Failure> {
    let tls = &settings.tls;
    let identity = path(&tls.cert_file).map(|certificates| (certificates, tls.key_file.clone()));
    let authorities = path(&tls.ca_file);
    let is_needed = settings.nodes.iter().any(|node| node.starts_with("https://"));
    if identity.is_none() && authorities.is_none() && !is_needed {
        return Ok(None);
    }
    let server_name = Some(tls.server_name.clone()).filter(|name| !name.is_empty());
    let files = ClientTlsFiles { authorities, identity, server_name };
    ClientTls::start(files).map(Some).map_err(|error| Failure::of("tls", &error))
}

/// Who may call the public API.
pub(super) fn public_access(settings: &Settings) -> Result<AccessLayer, Failure> {
    let tokens = match path(&settings.access.tokens_file) {
        Some(path) => Some(Tokens::start(&path).map_err(|error| Failure::of("access.tokens_file", &error))?),
        None => {
            if !settings.listen.ip().is_loopback() {
                tracing::warn!(
                    listen = %settings.listen,
                    "access.tokens_file is not set: whoever reaches this server can read, write and delete everything"
                );
            }
            None
        }
    };
    let audit = match settings.logging.audit {
        AuditLog::Nothing => Audit::Nothing,
        AuditLog::Collections => Audit::Collections,
        AuditLog::Documents => Audit::Documents,
    };
    Ok(AccessLayer::new(tokens, audit))
}

fn path(set: &Path) -> Option<PathBuf> {
    (!set.as_os_str().is_empty()).then(|| set.to_owned())
}
