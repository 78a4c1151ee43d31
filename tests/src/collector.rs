//! A collector of spans, as OpenTelemetry's protocol (OTLP over gRPC) has it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// A span that was received.
#[derive(Debug, Clone)]
pub struct Span {
    /// Which process it is of: its service.instance.id.
    pub process: String,
    pub name: String,
    pub trace: String,
    pub id: String,
    /// Empty for a root.
    pub parent: String,
    /// As the protocol numbers them: 1 internal, 2 server, 3 client.
    pub kind: i32,
    /// 2 is an error.
    pub status: i32,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub attributes: BTreeMap<String, String>,
    /// Ids of spans that it is linked with.
    pub links: Vec<String>,
}

/// Keeps all spans that come.
#[derive(Clone, Default)]
pub struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    /// Listens, and says where.
    pub async fn start() -> (Self, String) {
        let collector = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = TraceServiceServer::new(collector.clone());
        let incoming = TcpIncoming::from(listener);
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
        (collector, url)
    }

    /// What came so far.
    pub fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().clone()
    }

    /// Those of one trace.
    pub fn of_trace(&self, trace: &str) -> Vec<Span> {
        self.spans().into_iter().filter(|span| span.trace == trace).collect()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Value| match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes.into_iter().filter_map(|pair| Some((pair.key, text(pair.value?.value?)))).collect()
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for of_process in request.into_inner().resource_spans {
            let resource = texts(of_process.resource.unwrap_or_default().attributes);
            assert_eq!(resource["service.name"], "antiphon");
            for span in of_process.scope_spans.into_iter().flat_map(|of_scope| of_scope.spans) {
                self.spans.lock().unwrap().push(Span {
                    process: resource["service.instance.id"].clone(),
                    name: span.name,
                    trace: hex(&span.trace_id),
                    id: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    kind: span.kind,
                    status: span.status.unwrap_or_default().code,
                    begin_ns: span.start_time_unix_nano,
                    end_ns: span.end_time_unix_nano,
                    attributes: texts(span.attributes),
                    links: span.links.iter().map(|link| hex(&link.span_id)).collect(),
                });
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
