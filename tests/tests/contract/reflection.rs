//! Reflection (v1 and v1alpha) and grpc.health.v1 of the real binary: they list what is served and nothing else.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use antiphon_coordinator::services;
use antiphon_tests::cluster::ClusterBuilder;
use antiphon_tests::models;
use antiphon_tests::raw::Raw;
use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorProto};
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

/// The two versions differ in their names alone.
const VERSIONS: [&str; 2] = ["v1", "v1alpha"];

/// The services that a version of reflection must list; the other version it may list or not.
fn expected(version: &str, with_embedder: bool) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = services::NAMES.iter().map(|name| (*name).to_owned()).collect();
    if with_embedder {
        names.extend(services::EMBEDDING_NAMES.iter().map(|name| (*name).to_owned()));
    }
    names.extend(["grpc.health.v1.Health".to_owned(), reflection(version)]);
    names
}

fn reflection(version: &str) -> String {
    format!("grpc.reflection.{version}.ServerReflection")
}

/// What reflection answers; its error code where it has none.
async fn ask(raw: &Raw, version: &str, question: MessageRequest) -> Result<MessageResponse, i32> {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let method = format!("{}/ServerReflectionInfo", reflection(version));
    let answer = raw.call_with(&method, &[], &request).await;
    let Some(message) = answer.body.get(5..) else { return Err(answer.status.code() as i32) };
    match ServerReflectionResponse::decode(message).unwrap().message_response.unwrap() {
        MessageResponse::ErrorResponse(error) => Err(error.error_code),
        other => Ok(other),
    }
}

async fn files(raw: &Raw, version: &str, question: MessageRequest) -> Vec<FileDescriptorProto> {
    match ask(raw, version, question.clone()).await {
        Ok(MessageResponse::FileDescriptorResponse(files)) => {
            let files = files.file_descriptor_proto.iter();
            files.map(|file| FileDescriptorProto::decode(file.as_slice()).unwrap()).collect()
        }
        other => panic!("{question:?}: {other:?}"),
    }
}

/// The files of a symbol and all they import, by name, as a client of reflection gathers them.
async fn closure(raw: &Raw, version: &str, symbol: &str) -> BTreeMap<String, FileDescriptorProto> {
    let mut known: BTreeMap<String, FileDescriptorProto> = BTreeMap::new();
    let mut new = files(raw, version, MessageRequest::FileContainingSymbol(symbol.to_owned())).await;
    while let Some(file) = new.pop() {
        for name in &file.dependency {
            if !known.contains_key(name) {
                new.extend(files(raw, version, MessageRequest::FileByFilename(name.clone())).await);
            }
        }
        known.insert(file.name().to_owned(), file);
    }
    known
}

/// The full names of all messages and enums of a file, with a dot before.
fn types(file: &FileDescriptorProto) -> Vec<String> {
    fn of_message(prefix: &str, message: &DescriptorProto, names: &mut Vec<String>) {
        let name = format!("{prefix}.{}", message.name());
        names.extend(message.enum_type.iter().map(|inner| format!("{name}.{}", inner.name())));
        message.nested_type.iter().for_each(|inner| of_message(&name, inner, names));
        names.push(name);
    }
    let prefix = format!(".{}", file.package());
    let mut names: Vec<String> = file.enum_type.iter().map(|inner| format!("{prefix}.{}", inner.name())).collect();
    file.message_type.iter().for_each(|message| of_message(&prefix, message, &mut names));
    names
}

fn refers_to<'a>(message: &'a DescriptorProto, names: &mut Vec<&'a str>) {
    names.extend(message.field.iter().map(|field| field.type_name()).filter(|name| !name.is_empty()));
    message.nested_type.iter().for_each(|inner| refers_to(inner, names));
}

fn with_embedder() -> ClusterBuilder {
    let folder = models::folder("model2vec");
    ClusterBuilder::serve(1).set("embedders.made.kind", "static").set("embedders.made.path", folder.display())
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_and_health_tell_what_is_served() {
    tell_what_is_served(ClusterBuilder::serve(1), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_embedder_more_is_served_and_told() {
    tell_what_is_served(with_embedder(), true).await;
}

async fn tell_what_is_served(cluster: ClusterBuilder, embeds: bool) {
    let cluster = cluster.start().await;
    let raw = Raw::connect(cluster.serves[0].url()).await;
    for version in VERSIONS {
        match ask(&raw, version, MessageRequest::ListServices(String::new())).await {
            Ok(MessageResponse::ListServicesResponse(list)) => {
                let names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
                let mut distinct: BTreeSet<String> = names.iter().cloned().collect();
                assert_eq!(names.len(), distinct.len(), "{version}: {names:?}");
                let other = VERSIONS.into_iter().find(|other| *other != version).unwrap();
                distinct.remove(&reflection(other));
                assert_eq!(distinct, expected(version, embeds), "{version}");
            }
            other => panic!("{version}: {other:?}"),
        }
        for service in expected(version, embeds) {
            let files = closure(&raw, version, &service).await;
            let defined: BTreeSet<String> = files.values().flat_map(types).collect();
            let mut referred = Vec::new();
            for file in files.values() {
                file.message_type.iter().for_each(|message| refers_to(message, &mut referred));
                for method in file.service.iter().flat_map(|service| &service.method) {
                    referred.extend([method.input_type(), method.output_type()]);
                }
            }
            for name in referred {
                assert!(defined.contains(name), "{service} refers to {name}");
            }
            assert!(files.keys().all(|name| !name.contains("internal") && !name.contains("store")), "{service}");
        }
        let absent = if embeds { &[][..] } else { &services::EMBEDDING_NAMES };
        for unknown in ["antiphon.internal.v1.NodeService", "antiphon.store.v1.Catalog", "", "x"].iter().chain(absent) {
            let answer = ask(&raw, version, MessageRequest::FileContainingSymbol((*unknown).to_owned())).await;
            assert_eq!(answer, Err(Code::NotFound as i32), "{version} {unknown}");
        }
    }

    let check = async |service: &str| {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = raw.call_with("grpc.health.v1.Health/Check", &[], &request).await;
        let status = answer.body.get(5..).map(|message| HealthCheckResponse::decode(message).unwrap().status());
        (status, answer.status.code())
    };
    for service in services::NAMES.iter().chain(&[""]) {
        assert_eq!(check(service).await, (Some(ServingStatus::Serving), Code::Ok), "{service:?}");
    }
    for service in services::EMBEDDING_NAMES {
        let wanted = if embeds { (Some(ServingStatus::Serving), Code::Ok) } else { (None, Code::NotFound) };
        assert_eq!(check(service).await, wanted, "{service}");
    }
}

/// Every method that reflection lists is there: an empty message gets an answer or an error of the contract.
#[tokio::test(flavor = "multi_thread")]
async fn every_method_listed_is_served() {
    let cluster = with_embedder().start().await;
    let raw = Raw::connect(cluster.serves[0].url()).await;
    for service in services::NAMES.iter().chain(&services::EMBEDDING_NAMES) {
        let files = closure(&raw, "v1", service).await;
        let (package, short) = service.rsplit_once('.').unwrap();
        let mut of_package = files.values().filter(|file| file.package() == package).flat_map(|file| &file.service);
        let found = of_package.find(|found| found.name() == short).unwrap();
        for method in &found.method {
            let answer = raw.call(&format!("{service}/{}", method.name()), &[]).await;
            match answer.status.code() {
                Code::Ok => {}
                code => {
                    assert_eq!(antiphon_tests::client::kind_of(&answer.status).code(), code, "{service} {method:?}")
                }
            }
        }
    }
}
