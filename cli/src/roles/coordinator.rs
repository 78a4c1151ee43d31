//! `antiphon coordinator`: takes the public API, asks the nodes of its cluster, or those that it was told of.

use std::sync::Arc;

use antiphon_coordinator::{Cluster, Coordinator, NodeClient, NodeHandle, services};
use antiphon_membership::Role;
use antiphon_proto::{EMBEDDING_DESCRIPTORS, PUBLIC_DESCRIPTORS};
use tonic::server::NamedService;
use tonic::service::{Routes, RoutesBuilder};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::embedders::start_embedders;
use super::guard;
use super::joining::{self, Joined};
use super::listen::Port;
use super::{coordinator_config, metrics, open_store};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::telemetry::set_ready;

/// Searches that run at once: they wait for nodes most of the time.
const SEARCHES_A_CORE: usize = 256;

/// Serves until the process is told to stop.
pub(crate) async fn coordinator(settings: Settings) -> Result<(), Failure> {
    let port = Port::bind(&settings).await?;
    let access = guard::public_access(&settings)?;
    let store = open_store(&settings.store).await?;
    let _metrics = metrics(&settings, None).await?;
    let embedders = start_embedders(&settings).await?;
    let joined = joining::join(&settings, Role::Coordinator, port.address()).await?;
    let cluster = match &joined {
        Some(Joined { membership, dialer, .. }) => Cluster::of_members(membership, dialer.clone(), None),
        None => fixed_nodes(&settings)?,
    };
    let coordinator = Coordinator::start(coordinator_config(&settings, embedders, SEARCHES_A_CORE), store, cluster)
        .await
        .map_err(|error| Failure::of("the coordinator cannot start", &error))?;
    tracing::info!(store = settings.store, nodes = settings.nodes.len(), "serving");
    let (routes, health) = public_routes(&coordinator, settings.access.reflection).await?;
    let on_stop = async {
        health.stop().await;
        if let Some(joined) = &joined {
            joined.membership.leave().await;
        }
    };
    port.serve(routes, access, on_stop).await
}

/// The nodes that the settings name.
fn fixed_nodes(settings: &Settings) -> Result<Cluster, Failure> {
    let dialer = joining::dialer(settings, joining::secret(settings)?)?;
    let handle = |address: &String| {
        let client = NodeClient::connect(address, &dialer)
            .map_err(|error| Failure::of(format!("the node {address}"), &error))?;
        Ok(NodeHandle::new(address, client))
    };
    Ok(Cluster::new(settings.nodes.iter().map(handle).collect::<Result<_, Failure>>()?))
}

/// The public API with health, and with reflection where it is wanted.
pub(super) async fn public_routes(
    coordinator: &Arc<Coordinator>,
    has_reflection: bool,
) -> Result<(Routes, Health), Failure> {
    let descriptors = if coordinator.has_embedders() { EMBEDDING_DESCRIPTORS } else { PUBLIC_DESCRIPTORS };
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(descriptors)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .include_reflection_service(false)
            .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET)
    };
    let failed = |error| Failure::of("reflection", &error);
    let (v1, v1alpha) = (reflection().build_v1().map_err(failed)?, reflection().build_v1alpha().map_err(failed)?);
    let (health, health_service) = Health::new(&services::names(coordinator)).await;
    let mut routes = RoutesBuilder::from(services::routes(coordinator));
    routes.add_service(health_service);
    if has_reflection {
        routes.add_service(v1).add_service(v1alpha);
    }
    Ok((routes.routes(), health))
}

/// What grpc.health.v1 answers, and `/readyz`.
pub(super) struct Health {
    reporter: HealthReporter,
    names: Vec<String>,
}

impl Health {
    /// Serving, as a whole and by service.
    pub(super) async fn new(
        names: &[&str],
    ) -> (
        Self,
        impl tower::Service<
            http::Request<tonic::body::Body>,
            Response = http::Response<tonic::body::Body>,
            Error = std::convert::Infallible,
            Future: Send + 'static,
        > + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    ) {
        let (reporter, service) = tonic_health::server::health_reporter();
        let names: Vec<String> = std::iter::once("").chain(names.iter().copied()).map(str::to_owned).collect();
        for name in &names {
            reporter.set_service_status(name, ServingStatus::Serving).await;
        }
        set_ready(true);
        (Self { reporter, names }, service)
    }

    /// No longer serving.
    pub(super) async fn stop(self) {
        set_ready(false);
        for name in &self.names {
            self.reporter.set_service_status(name, ServingStatus::NotServing).await;
        }
    }
}
