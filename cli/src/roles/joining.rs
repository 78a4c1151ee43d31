//! How a process joins its cluster.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use antiphon_membership::{CLUSTER_METADATA, Dialer, Membership, MembershipConfig, Role, Secret};
use antiphon_proto::error::{ApiError, ErrorKind};
use tonic::{Request, Status};

use super::guard;
use crate::failure::Failure;
use crate::settings::Settings;

/// A process's part in its cluster.
pub(super) struct Joined {
    /// The members.
    pub(super) membership: Arc<Membership>,
    /// What they prove themselves by.
    pub(super) secret: Secret,
    /// How they are called.
    pub(super) dialer: Dialer,
}

/// How members are called by a process that proves itself by a secret, if there is one.
///
/// # Errors
/// Where the files of TLS are not right.
pub(super) fn dialer(settings: &Settings, secret: Option<Secret>) -> Result<Dialer, Failure> {
    Ok(Dialer::new(secret, guard::member_tls(settings)?))
}

/// The secret that the settings name.
///
/// # Errors
/// Where it cannot be read.
pub(super) fn secret(settings: &Settings) -> Result<Option<Secret>, Failure> {
    let path = &settings.cluster.secret_file;
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    Secret::from_file(path).map(Some).map_err(|error| Failure::of("cluster.secret_file", &error))
}

/// Joins the cluster; none where the settings say that there is none. `listen` is where the process is called.
///
/// # Errors
/// Where an address cannot be bound or found out.
pub(super) async fn join(settings: &Settings, role: Role, listen: SocketAddr) -> Result<Option<Joined>, Failure> {
    let cluster = &settings.cluster;
    if cluster.gossip_listen.is_empty() {
        return Ok(None);
    }
    let secret = match secret(settings)? {
        Some(secret) => secret,
        None => {
            if !listen.ip().is_loopback() {
                tracing::warn!(
                    "cluster.secret_file is not set: whoever reaches this process's ports may join the cluster"
                );
            }
            Secret::of_name(&cluster.name)
        }
    };
    let gossip_listen: SocketAddr = parse("cluster.gossip_listen", &cluster.gossip_listen)?;
    let gossip_advertise = match cluster.gossip_advertise.as_str() {
        "" if gossip_listen.ip().is_unspecified() => {
            Some(SocketAddr::new(own_address(&cluster.seeds)?, gossip_listen.port()))
        }
        "" => None,
        given => Some(parse("cluster.gossip_advertise", given)?),
    };
    let scheme = if settings.tls.cert_file.as_os_str().is_empty() { "http" } else { "https" };
    let address = match cluster.advertise.as_str() {
        "" if listen.ip().is_unspecified() => {
            let ip = match gossip_advertise {
                Some(advertise) => advertise.ip(),
                None => gossip_listen.ip(),
            };
            format!("{scheme}://{}", SocketAddr::new(ip, listen.port()))
        }
        "" => format!("{scheme}://{listen}"),
        given => given.to_owned(),
    };
    let config = MembershipConfig {
        cluster: cluster.name.clone(),
        id: settings.id.clone(),
        role,
        zone: cluster.zone.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        address: address.clone(),
        gossip_listen,
        gossip_advertise,
        seeds: cluster.seeds.clone(),
        secret: secret.clone(),
        interval: Duration::from_millis(cluster.gossip_interval_ms),
    };
    let membership =
        Membership::start(config).await.map_err(|error| Failure::of("the cluster cannot be joined", &error))?;
    tracing::info!(cluster = cluster.name, id = settings.id, address, gossip = %membership.gossip_address(), "joined");
    let dialer = dialer(settings, Some(secret.clone()))?;
    Ok(Some(Joined { membership: Arc::new(membership), secret, dialer }))
}

fn parse(key: &str, text: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|error| Failure::of(format!("{key} `{text}`"), &error))
}

/// This host's address towards the first seed that can be resolved.
fn own_address(seeds: &[String]) -> Result<IpAddr, Failure> {
    let find = |seed: &String| {
        let to = seed.to_socket_addrs().ok()?.next()?;
        let from: IpAddr = if to.is_ipv4() { [0_u8; 4].into() } else { [0_u8; 16].into() };
        let socket = UdpSocket::bind((from, 0)).ok()?;
        // Sends nothing: it only chooses the way.
        socket.connect(to).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    };
    seeds.iter().find_map(find).ok_or_else(|| {
        Failure::new("cluster.gossip_advertise must be set: gossip_listen names no address, and no seed can be reached")
    })
}

/// Refuses calls of who is no member, where there is a secret to tell.
#[derive(Clone)]
pub(super) struct MembersOnly(pub(super) Option<Secret>);

impl tonic::service::Interceptor for MembersOnly {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(secret) = &self.0 else { return Ok(request) };
        let sent = request.metadata().get(CLUSTER_METADATA).map(|value| value.as_bytes());
        if sent.is_some_and(|sent| secret.is_credential(sent)) {
            return Ok(request);
        }
        Err(ApiError::new(ErrorKind::TokenInvalid, "only members of the cluster may call a node").to_status())
    }
}
