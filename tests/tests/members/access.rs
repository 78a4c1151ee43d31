//! Tokens at a real server: each method asks for its right, limits hold, changes of the file count, and nothing leaks.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::time::Duration;

use antiphon_access::tokens::{TokenEntry, TokenSecret, with_token};
use antiphon_coordinator::services;
use antiphon_proto::error::ErrorKind;
use antiphon_proto::v1::*;
use antiphon_tests::client::kind_of;
use antiphon_tests::cluster::{Cluster, ClusterBuilder};
use antiphon_tests::local::wait_until;
use antiphon_tests::raw::{Raw, RawAnswer};
use antiphon_tests::sample::*;
use prost::Message;
use tonic::Code;
use tonic_types::StatusExt as _;

/// A file of tokens, and the tokens.
struct TokenFile {
    folder: tempfile::TempDir,
    text: String,
    secrets: Vec<String>,
}

impl TokenFile {
    fn new() -> Self {
        let file = Self { folder: tempfile::tempdir().unwrap(), text: String::new(), secrets: Vec::new() };
        std::fs::write(file.path(), "").unwrap();
        file
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tokens.toml")
    }

    /// Adds a token, and gives the header that it is sent in.
    fn add(&mut self, name: &str, scopes: &[&str], change: impl FnOnce(&mut TokenEntry)) -> String {
        let secret = TokenSecret::random().unwrap();
        let mut entry = TokenEntry {
            name: name.to_owned(),
            sha256: secret.sha256(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            expires: None,
            max_calls_per_s: None,
            max_concurrent_calls: None,
            max_message_bytes: None,
        };
        change(&mut entry);
        self.text = with_token(&self.text, entry).unwrap();
        std::fs::write(self.path(), &self.text).unwrap();
        self.secrets.push(secret.reveal().to_owned());
        format!("Bearer {}", secret.reveal())
    }

    async fn serve(&self) -> (Cluster, Raw) {
        let builder = ClusterBuilder::serve(1).set("access.tokens_file", self.path().display());
        let cluster = builder.set("logging.audit", "documents").start().await;
        let raw = Raw::connect(cluster.serves[0].url()).await.without_token();
        (cluster, raw)
    }

    /// None of the tokens is anywhere that the server writes to.
    fn check_log(&self, cluster: &Cluster) -> String {
        let log = cluster.serves[0].log_tail();
        for secret in &self.secrets {
            assert!(!log.contains(secret.as_str()), "a token is in the log");
        }
        log
    }
}

/// A method, the right that it asks for over the collection `c`, and a message about that.
fn methods() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let c = || "c".to_owned();
    let named = Some(collection("c", 1, schema(2, Metric::Cosine)));
    let options = || options("c", 1, 10);
    vec![
        (
            "CollectionService/CreateCollection",
            "admin",
            CreateCollectionRequest { collection: named.clone() }.encode_to_vec(),
        ),
        ("CollectionService/UpdateCollection", "admin", UpdateCollectionRequest { collection: named }.encode_to_vec()),
        ("CollectionService/SetAlias", "admin", SetAliasRequest { name: c(), collection: c() }.encode_to_vec()),
        ("CollectionService/DeleteAlias", "admin", DeleteAliasRequest { name: c() }.encode_to_vec()),
        (
            "DocumentService/UpsertDocuments",
            "write",
            UpsertDocumentsRequest { collection: c(), documents: vec![document("a", &[1.0, 0.0], "word")] }
                .encode_to_vec(),
        ),
        (
            "DocumentService/ImportDocuments",
            "write",
            ImportDocumentsRequest { collection: c(), documents: vec![document("b", &[1.0, 0.0], "word")] }
                .encode_to_vec(),
        ),
        (
            "DocumentService/DeleteDocuments",
            "write",
            DeleteDocumentsRequest { collection: c(), keys: vec!["b".into()], filter: None }.encode_to_vec(),
        ),
        (
            "DocumentService/GetDocuments",
            "read",
            GetDocumentsRequest { collection: c(), keys: vec!["a".into()], ..GetDocumentsRequest::default() }
                .encode_to_vec(),
        ),
        (
            "DocumentService/CountDocuments",
            "read",
            CountDocumentsRequest { collection: c(), filter: None }.encode_to_vec(),
        ),
        (
            "DocumentService/ExportDocuments",
            "read",
            ExportDocumentsRequest { collection: c(), ..ExportDocumentsRequest::default() }.encode_to_vec(),
        ),
        ("VectorSearchService/SearchVector", "read", vector_search(&[1.0, 0.0], options()).encode_to_vec()),
        ("KeywordSearchService/SearchKeyword", "read", keyword_search("word", options()).encode_to_vec()),
        ("HybridSearchService/SearchHybrid", "read", hybrid_search(&[1.0, 0.0], "word", options()).encode_to_vec()),
        ("CollectionService/DeleteCollection", "admin", DeleteCollectionRequest { name: c() }.encode_to_vec()),
    ]
}

async fn call(raw: &Raw, token: &str, method: &str, message: &[u8]) -> RawAnswer {
    raw.send(&format!("antiphon.v1.{method}"), &[("authorization", token)], &antiphon_tests::raw::frame(message), true)
        .await
}

fn refused(answer: &RawAnswer) -> Option<ErrorKind> {
    (answer.status.code() != Code::Ok).then(|| kind_of(&answer.status))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_method_asks_for_its_right_over_the_collection_that_is_named() {
    let mut file = TokenFile::new();
    let rights = ["read", "write", "admin"];
    let token_of = |file: &mut TokenFile, right: &str| file.add(right, &[&format!("{right}:c")], |_| ());
    let tokens: Vec<String> = rights.iter().map(|right| token_of(&mut file, right)).collect();
    let other = file.add("other", &["read:other", "write:other", "admin:other"], |_| ());
    let expired = file.add("expired", &["read:*", "write:*", "admin:*"], |entry| {
        entry.expires = Some("2020-01-01T00:00:00Z".parse().unwrap());
    });
    let (cluster, raw) = file.serve().await;
    let strange = format!("Bearer {}", TokenSecret::random().unwrap().reveal());
    let basic = tokens[0].replace("Bearer ", "Basic ");
    for (method, right, message) in methods() {
        for (token, wanted) in [
            (&strange, ErrorKind::TokenInvalid),
            (&expired, ErrorKind::TokenInvalid),
            (&basic, ErrorKind::TokenInvalid),
            (&String::new(), ErrorKind::TokenInvalid),
            (&other, ErrorKind::TokenScope),
        ] {
            assert_eq!(refused(&call(&raw, token, method, &message).await), Some(wanted), "{method} {token}");
        }
        assert_eq!(refused(&raw.call(&format!("antiphon.v1.{method}"), &message).await), Some(ErrorKind::TokenInvalid));
        // The right one last, since it changes what is there.
        for (token, of) in tokens.iter().zip(rights).filter(|(_, of)| *of != right) {
            assert_eq!(
                refused(&call(&raw, token, method, &message).await),
                Some(ErrorKind::TokenScope),
                "{method} by {of}"
            );
        }
        let token = &tokens[rights.iter().position(|of| *of == right).unwrap()];
        let outcome = refused(&call(&raw, token, method, &message).await);
        let is_fine = outcome.is_none()
            || (method.contains("Alias") && outcome.is_some_and(|kind| kind != ErrorKind::TokenScope));
        assert!(is_fine, "{method}: {outcome:?}");
    }
    // Every method there is, with a message that names nothing: what is not in the table above asks for a token all the same.
    for service in services::NAMES {
        for method in methods_of(service) {
            let answer = raw.call(&format!("{service}/{method}"), &[]).await;
            assert_eq!(refused(&answer), Some(ErrorKind::TokenInvalid), "{service}/{method}");
            let answer = raw.call_with(&format!("{service}/{method}"), &[("authorization", &other)], &()).await;
            // These two show a caller what it may know: here nothing.
            match method.as_str() {
                "ListCollections" | "ListAliases" => assert_eq!(answer.body, [0, 0, 0, 0, 0], "{method}"),
                _ => assert_eq!(refused(&answer), Some(ErrorKind::TokenScope), "{service}/{method}"),
            }
        }
    }
    let log = file.check_log(&cluster);
    for (caller, method, code) in [
        ("admin", "CollectionService/CreateCollection", "OK"),
        ("read", "CollectionService/CreateCollection", "PERMISSION_DENIED"),
        ("write", "DocumentService/UpsertDocuments", "OK"),
        ("write", "DocumentService/ImportDocuments", "OK"),
    ] {
        let is_told = |line: &str| {
            [
                "antiphon::audit",
                &format!("caller=\"{caller}\""),
                method,
                "collection=\"c\"",
                &format!("code=\"{code}\""),
            ]
            .iter()
            .all(|part| line.contains(part))
        };
        assert!(log.lines().any(is_told), "{caller} {method} {code} is not in\n{log}");
    }
    assert!(
        !log.lines().any(|line| line.contains("antiphon::audit") && line.contains("Search")),
        "reads change nothing"
    );
}

fn methods_of(service: &str) -> Vec<String> {
    let files = prost_types::FileDescriptorSet::decode(antiphon_proto::PUBLIC_DESCRIPTORS).unwrap();
    let (package, name) = service.rsplit_once('.').unwrap();
    let mut services = files.file.iter().filter(|file| file.package() == package).flat_map(|file| &file.service);
    let service = services.find(|service| service.name() == name).unwrap();
    service.method.iter().map(|method| method.name().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_see_what_they_may_know_of_and_aliases_open_no_other_collection() {
    let mut file = TokenFile::new();
    let root = file.add("root", &["read:*", "write:*", "admin:*"], |_| ());
    let mine = file.add("mine", &["read:mine-*", "admin:mine-*"], |_| ());
    let (_cluster, raw) = file.serve().await;
    for name in ["mine-1", "secret"] {
        let request = CreateCollectionRequest { collection: Some(collection(name, 1, schema(2, Metric::Cosine))) };
        assert_eq!(
            refused(&call(&raw, &root, "CollectionService/CreateCollection", &request.encode_to_vec()).await),
            None
        );
    }
    let list = async |token: &str| {
        let answer = call(&raw, token, "CollectionService/ListCollections", &[]).await;
        let listed = ListCollectionsResponse::decode(&answer.body[5..]).unwrap().collections;
        listed.into_iter().map(|collection| collection.name).collect::<Vec<_>>()
    };
    assert_eq!(list(&root).await, ["mine-1", "secret"]);
    assert_eq!(list(&mine).await, ["mine-1"]);
    let alias = |name: &str, collection: &str| {
        SetAliasRequest { name: name.to_owned(), collection: collection.to_owned() }.encode_to_vec()
    };
    let set = async |token: &str, name: &str, collection: &str| {
        refused(&call(&raw, token, "CollectionService/SetAlias", &alias(name, collection)).await)
    };
    assert_eq!(set(&mine, "mine-2", "secret").await, Some(ErrorKind::TokenScope));
    assert_eq!(set(&mine, "mine-2", "mine-1").await, None);
    assert_eq!(set(&root, "other", "mine-1").await, None);
    let answer = call(&raw, &mine, "CollectionService/ListAliases", &[]).await;
    let aliases = ListAliasesResponse::decode(&answer.body[5..]).unwrap().aliases;
    assert_eq!(aliases.iter().map(|alias| alias.name.as_str()).collect::<Vec<_>>(), ["mine-2"]);
    // What is not there and what may not be known of look alike.
    let get = async |name: &str| {
        let request = GetCollectionRequest { name: name.to_owned() };
        refused(&call(&raw, &mine, "CollectionService/GetCollection", &request.encode_to_vec()).await)
    };
    assert_eq!((get("secret").await, get("no-such").await), (Some(ErrorKind::TokenScope), Some(ErrorKind::TokenScope)));
    assert_eq!((get("mine-2").await, get("mine-3").await), (None, Some(ErrorKind::CollectionNotFound)));
    let describe = async |token: &str| refused(&call(&raw, token, "ClusterService/DescribeCluster", &[]).await);
    assert_eq!((describe(&mine).await, describe(&root).await), (Some(ErrorKind::TokenScope), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_token_hold_and_changes_of_the_file_count() {
    let mut file = TokenFile::new();
    let root = file.add("root", &["read:*", "write:*", "admin:*"], |_| ());
    let small = file.add("small", &["write:c"], |entry| entry.max_message_bytes = Some(200));
    let slow = file.add("slow", &["read:c"], |entry| entry.max_calls_per_s = std::num::NonZeroU32::new(2));
    let (cluster, raw) = file.serve().await;
    let request = CreateCollectionRequest { collection: Some(collection("c", 1, schema(2, Metric::Cosine))) };
    assert_eq!(refused(&call(&raw, &root, "CollectionService/CreateCollection", &request.encode_to_vec()).await), None);

    let documents = |words: usize| vec![document("a", &[1.0, 0.0], &"word ".repeat(words))];
    let upsert = |words| UpsertDocumentsRequest { collection: "c".into(), documents: documents(words) }.encode_to_vec();
    let import = |words| ImportDocumentsRequest { collection: "c".into(), documents: documents(words) }.encode_to_vec();
    assert_eq!(refused(&call(&raw, &small, "DocumentService/UpsertDocuments", &upsert(1)).await), None);
    assert_eq!(refused(&call(&raw, &small, "DocumentService/ImportDocuments", &import(1)).await), None);
    let too_large = Some(ErrorKind::TooLarge);
    assert_eq!(refused(&call(&raw, &small, "DocumentService/UpsertDocuments", &upsert(100)).await), too_large);
    assert_eq!(refused(&call(&raw, &small, "DocumentService/ImportDocuments", &import(100)).await), too_large);
    assert_eq!(refused(&call(&raw, &root, "DocumentService/UpsertDocuments", &upsert(100)).await), None);

    let count = CountDocumentsRequest { collection: "c".into(), filter: None }.encode_to_vec();
    let mut outcomes = Vec::new();
    for _ in 0..50 {
        let answer = call(&raw, &slow, "DocumentService/CountDocuments", &count).await;
        if answer.status.code() != Code::Ok {
            assert_eq!(kind_of(&answer.status), ErrorKind::Overloaded);
            let retry = answer.status.get_details_retry_info().unwrap().retry_delay.unwrap();
            assert!(retry <= Duration::from_secs(1), "{retry:?}");
            outcomes.push(retry);
        }
    }
    assert!(outcomes.len() >= 20, "{} of 50 calls at once were refused", outcomes.len());
    assert_eq!(refused(&call(&raw, &root, "DocumentService/CountDocuments", &count).await), None, "another's limit");

    // A token more, then one less; a file that is wrong changes nothing.
    let late = file.add("late", &["read:c"], |_| ());
    let becomes = async |token: &str, wanted: Option<ErrorKind>| {
        let raw = &raw;
        let count = &count;
        wait_until(Duration::from_secs(20), || async move {
            refused(&call(raw, token, "DocumentService/CountDocuments", count).await) == wanted
        })
        .await;
    };
    becomes(&late, None).await;
    std::fs::write(file.path(), file.text.replace("\"late\"", "\"late\"\nsha = 1")).unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(refused(&call(&raw, &late, "DocumentService/CountDocuments", &count).await), None);
    let without = file.text.split("[[tokens]]").filter(|entry| !entry.contains("\"late\"")).collect::<Vec<_>>();
    std::fs::write(file.path(), without.join("[[tokens]]")).unwrap();
    becomes(&late, Some(ErrorKind::TokenInvalid)).await;
    assert_eq!(refused(&call(&raw, &root, "DocumentService/CountDocuments", &count).await), None);
    let log = file.check_log(&cluster);
    assert!(log.contains("what was read before stays in force"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_no_token_and_reflection_one_unless_it_is_off() {
    let mut file = TokenFile::new();
    let token = file.add("any", &["read:nothing"], |_| ());
    let (_cluster, raw) = file.serve().await;
    let health = "grpc.health.v1.Health/Check";
    assert_eq!(raw.call(health, &[]).await.status.code(), Code::Ok);
    let reflect = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    assert_eq!(refused(&raw.call(reflect, &[]).await), Some(ErrorKind::TokenInvalid));
    let list_services = antiphon_tests::raw::frame(&antiphon_tests::raw::field(7, b""));
    let sent = raw.send(reflect, &[("authorization", &token)], &list_services, true).await;
    assert_eq!(sent.status.code(), Code::Ok);
    assert_eq!(raw.call("no.such.Service/Method", &[]).await.status.code(), Code::Unauthenticated);
    let builder = ClusterBuilder::serve(1).set("access.tokens_file", file.path().display());
    let cluster = builder.set("access.reflection", false).start().await;
    let raw = Raw::connect(cluster.serves[0].url()).await.without_token();
    let sent = raw.send(reflect, &[("authorization", &token)], &list_services, true).await;
    assert_eq!(sent.status.code(), Code::Unimplemented);
    assert_eq!(raw.call(health, &[]).await.status.code(), Code::Ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_makes_tokens_and_calls_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    let file = path.display().to_string();
    let run = |args: &[&str], envs: &[(&str, String)], stdin: &str| {
        let mut command = std::process::Command::new(antiphon_tests::cluster::binary());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANTIPHON_")) {
            command.env_remove(name);
        }
        let piped = std::process::Stdio::piped;
        let mut child = command
            .args(args)
            .envs(envs.iter().cloned())
            .stdin(piped())
            .stdout(piped())
            .stderr(piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), stdin.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let add = |name: &str, more: &[&str]| {
        let args = [&["token", "add", "--file", &file, "--name", name][..], more].concat();
        run(&args, &[], "")
    };
    let (code, token, _) =
        add("root", &["--scope", "admin:*", "--scope", "read:*", "--expires", "2999-12-31T00:00:00Z"]);
    assert_eq!(code, 0);
    let (code, reader, _) = add("reader", &["--scope", "read:fruit", "--max-calls-per-s", "100"]);
    assert_eq!(code, 0);
    assert!(token.starts_with("antiphon_") && token.lines().count() == 1 && token != reader);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(token.trim()) && !text.contains(reader.trim()));
    let (code, hash, _) = run(&["token", "hash"], &[], &token);
    assert!(code == 0 && text.contains(hash.trim()), "{hash} in {text}");
    for (name, more, words) in [
        ("reader", &["--scope", "read:*"][..], "another has this name"),
        ("x", &["--scope", "eat:*"], "is not of the form"),
        ("x", &["--scope", "read:*", "--expires", "tomorrow"], "is no time"),
        ("x", &["--scope", "read:*", "--expires", "2027-01-01"], "with its offset"),
        ("x y", &["--scope", "read:*"], "visible ASCII"),
    ] {
        let (code, out, err) = add(name, more);
        assert!(code == 1 && out.is_empty() && err.contains(words), "{more:?}: {err}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "what is refused changes nothing");

    let cluster = ClusterBuilder::serve(1).set("access.tokens_file", &file).start().await;
    let mut envs: Vec<(&str, String)> =
        antiphon_tests::secure::secure().map(|secure| secure.client_envs()).unwrap_or_default();
    envs.retain(|(name, _)| *name != "ANTIPHON_TOKEN_FILE");
    envs.push(("ANTIPHON_ADDRESS", cluster.serves[0].url().to_owned()));
    let with = |token: &str| [envs.clone(), vec![("ANTIPHON_TOKEN", token.to_owned())]].concat();
    let create = ["collection", "create", "fruit", "--text", "t:en"];
    let (code, _, err) = run(&create, &envs, "");
    assert!(code == 1 && err.contains("UNAUTHENTICATED TOKEN_INVALID: no token was sent"), "{err}");
    let (code, _, err) = run(&create, &with(&reader), "");
    assert!(code == 1 && err.contains("PERMISSION_DENIED TOKEN_SCOPE") && err.contains("admin:fruit"), "{err}");
    assert_eq!(run(&create, &with(&token), "").0, 0);
    let token_file = folder.path().join("reader.token");
    std::fs::write(&token_file, &reader).unwrap();
    let by_file = ["count", "--collection", "fruit", "--token-file", token_file.to_str().unwrap()];
    assert_eq!(run(&by_file, &envs, "").1, "0\n");
    let (code, _, err) = run(&["status"], &with("not a\u{7f}token"), "");
    assert!(code == 1 && err.contains("characters that no token has"), "{err}");
}
