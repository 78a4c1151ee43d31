//! Tells who calls before a service hears of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use antiphon_proto::error::{ApiError, ErrorKind};
use antiphon_telemetry::CallEnd;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use tokio::sync::OwnedSemaphorePermit;
use tonic::body::Body;
use tonic::transport::server::TcpConnectInfo;
use tower::{Layer, Service};

use crate::audit::Audit;
use crate::caller::Caller;
use crate::tokens::Tokens;
use crate::watched::Watched;

/// Paths that need no token: a load balancer asks for health without one, and members show the cluster's secret instead.
const OPEN: [&str; 2] = ["/grpc.health.v1.Health/", "/antiphon.internal.v1.NodeService/"];

/// Wraps a server's services.
#[derive(Debug, Clone, Default)]
pub struct AccessLayer {
    tokens: Option<Arc<Watched<Tokens>>>,
    audit: Audit,
}

impl AccessLayer {
    /// Asks for these tokens; without any, whoever reaches the server may do everything.
    pub fn new(tokens: Option<Watched<Tokens>>, audit: Audit) -> Self {
        Self { tokens: tokens.map(Arc::new), audit }
    }

    fn admit(&self, path: &str, headers: &HeaderMap) -> Result<(Caller, Option<OwnedSemaphorePermit>), ApiError> {
        let Some(tokens) = self.tokens.as_ref().filter(|_| !OPEN.iter().any(|open| path.starts_with(open))) else {
            return Ok((Caller::new(None), None));
        };
        let sent = bearer(headers)?;
        let tokens = tokens.current();
        let token =
            tokens.find(sent).ok_or_else(|| ApiError::new(ErrorKind::TokenInvalid, "the token is not known"))?;
        token.check_expiry()?;
        let permit = token.begin()?;
        Ok((Caller::new(Some(Arc::clone(token))), permit))
    }
}

impl<S> Layer<S> for AccessLayer {
    type Service = AccessService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        AccessService { inner, access: self.clone() }
    }
}

/// The service of [`AccessLayer`].
#[derive(Debug, Clone)]
pub struct AccessService<S> {
    inner: S,
    access: AccessLayer,
}

impl<S, Sent> Service<Request<Sent>> for AccessService<S>
where
    S: Service<Request<Sent>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Sent>) -> Self::Future {
        let (caller, permit) = match self.access.admit(request.uri().path(), request.headers()) {
            Ok(admitted) => admitted,
            Err(error) => {
                metrics::counter!("antiphon_calls_refused_total", "reason" => error.kind().reason()).increment(1);
                return Box::pin(async move { Ok(error.to_status().into_http()) });
            }
        };
        request.extensions_mut().insert(caller.clone());
        // The token goes no further than here.
        request.headers_mut().remove(AUTHORIZATION);
        let (audit, method) = (self.access.audit, request.uri().path().to_owned());
        let from = request.extensions().get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr);
        let end = CallEnd::new(move |code| {
            drop(permit);
            audit.note(&caller, &method, from, code);
        });
        let response = self.inner.call(request);
        Box::pin(async move { Ok(end.follow(response.await?)) })
    }
}

fn bearer(headers: &HeaderMap) -> Result<&[u8], ApiError> {
    let refused = |words: &str| ApiError::new(ErrorKind::TokenInvalid, words);
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let value = match (sent.next(), sent.next()) {
        (Some(value), None) => value.as_bytes(),
        (None, _) => {
            return Err(refused("no token was sent; the metadata authorization holds it, as Bearer and the token"));
        }
        (Some(_), Some(_)) => return Err(refused("more than one token was sent")),
    };
    match value.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => Ok(token.trim_ascii()),
        _ => Err(refused("the metadata authorization must hold Bearer and the token")),
    }
}
