//! Serving: a port, the services on it, and the way to stop without losing a call.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use antiphon_access::AccessLayer;
use antiphon_access::tls::ServerTls;
use antiphon_coordinator::status_layer::StatusLayer;
use antiphon_telemetry::TraceLayer;
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::guard;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::telemetry::RpcLayer;

/// How long calls under way may take to end once the server stops.
const DRAIN: Duration = Duration::from_secs(20);

/// A bound port, before anything is served on it.
pub(super) struct Port {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<ServerTls>,
    max_connection_age: Option<Duration>,
    traces: TraceLayer,
}

impl Port {
    /// Binds the address of the settings; port 0 means any that is free.
    pub(super) async fn bind(settings: &Settings) -> Result<Self, Failure> {
        let tls = guard::server_tls(settings)?;
        let wanted = settings.listen;
        let bind = async {
            let listener = TcpListener::bind(wanted).await?;
            let address = listener.local_addr()?;
            Ok::<_, std::io::Error>((listener, address))
        };
        let bound = bind.await;
        let (listener, address) = bound.map_err(|error| Failure::of(format!("cannot listen on {wanted}"), &error))?;
        let traces = TraceLayer::new(settings.traces.sample_share);
        let age = Duration::from_secs(settings.limits.max_connection_age_s);
        Ok(Self { listener, address, tls, max_connection_age: (!age.is_zero()).then_some(age), traces })
    }

    /// Where it listens.
    pub(super) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The address it listens on.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the process is told to stop, then lets calls under way end. Says on standard output where it listens.
    pub(super) async fn serve(
        self,
        routes: Routes,
        access: AccessLayer,
        on_stop: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        let url = self.url();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let mut builder = Server::builder()
            .http2_keepalive_interval(Some(Duration::from_secs(30)))
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(16 << 20);
        if let Some(age) = self.max_connection_age {
            // Calls under way have that long to end.
            builder = builder.max_connection_age(age).max_connection_age_grace(DRAIN);
        }
        let server = builder.layer(self.traces).layer(RpcLayer).layer(StatusLayer).layer(access).add_routes(routes);
        let stopped = async {
            // Either way the server is to stop.
            let _ = stopped.await;
        };
        let mut server = match self.tls {
            Some(tls) => tokio::spawn(server.serve_with_incoming_shutdown(tls.incoming(self.listener), stopped)),
            None => {
                // The builder's own tcp_nodelay is for ports that tonic binds itself. Without it the end of every answer
                // waits for the client's delayed acknowledgement, some 40 ms.
                let incoming = TcpIncoming::from(self.listener).with_nodelay(Some(true));
                tokio::spawn(server.serve_with_incoming_shutdown(incoming, stopped))
            }
        };
        announce(&url);
        let failed = |outcome: Result<Result<(), tonic::transport::Error>, tokio::task::JoinError>| match outcome {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Failure::of("the server", &error)),
            Err(error) => Err(Failure::of("the server", &error)),
        };
        tokio::select! {
            outcome = &mut server => return failed(outcome),
            () = told_to_stop() => {}
        }
        tracing::info!("stopping: calls under way are let to end");
        on_stop.await;
        drop(stop);
        match tokio::time::timeout(DRAIN, &mut server).await {
            Ok(outcome) => failed(outcome),
            Err(_) => {
                tracing::warn!(after_s = DRAIN.as_secs(), "some calls did not end and are broken off");
                server.abort();
                Ok(())
            }
        }
    }
}

fn announce(url: &str) {
    let mut out = std::io::stdout();
    // Whoever closed standard output does not want to know.
    let _ = writeln!(out, "antiphon: listening on {url}").and_then(|()| out.flush());
}

async fn told_to_stop() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(error) => {
                tracing::warn!(%error, "SIGTERM cannot be waited for");
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        () = terminated => {}
        interrupted = tokio::signal::ctrl_c() => {
            if let Err(error) = interrupted {
                tracing::warn!(%error, "Ctrl-C cannot be waited for");
                std::future::pending::<()>().await;
            }
        }
    }
}
