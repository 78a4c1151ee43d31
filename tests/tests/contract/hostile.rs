//! Requests that no good client sends: huge numbers, bytes that are no message, names of a megabyte. Each is answered
//! within bounds, by an error of the contract or an honest answer, and the server goes on serving.

#![allow(clippy::unwrap_used)]

use antiphon_proto::error::ErrorKind as Kind;
use antiphon_proto::v1::*;
use antiphon_tests::contract::{check, prepare, refused, refused_for, still_serves};
use antiphon_tests::local::{Local, LocalBuilder};
use antiphon_tests::raw::{Raw, field, frame};
use antiphon_tests::sample::*;
use prost::Message;
use tonic::Code;

const UPSERT: &str = "antiphon.v1.DocumentService/UpsertDocuments";
const SEARCH: &str = "antiphon.v1.KeywordSearchService/SearchKeyword";

async fn server() -> Local {
    let server = LocalBuilder::new().start().await;
    prepare(&server).await;
    server.client.create(collection("c", 2, schema(2, Metric::Cosine))).await.unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_numbers_are_refused_or_answered() {
    let server = server().await;
    let client = &server.client;
    let numbers = [0, 1, 2, 99, 100, 1000, 1001, i32::MAX as u32, u32::MAX - 1, u32::MAX];
    for page in numbers {
        for page_size in numbers {
            for skip in numbers {
                let options = SearchOptions { skip, text_limit: u32::MAX, ..options("probe", page, page_size) };
                let outcome = client.search_hybrid(hybrid_search(&[1.0, 0.1], "apple", options)).await;
                let size = if page_size == 0 { 10 } else { page_size };
                let is_first = page <= 1 && skip == 0;
                if size > 1000 {
                    refused_for(outcome, Kind::ArgumentInvalid, "options.page_size");
                } else if page > 1 && skip > 0 {
                    refused_for(outcome, Kind::ArgumentInvalid, "options.skip");
                } else if is_first || u64::from(page.max(1)) * u64::from(size) + u64::from(skip) <= 99 {
                    let num_before = if skip > 0 { skip } else { (page.max(1) - 1) * size };
                    let wanted = 2_u32.saturating_sub(num_before).min(size);
                    assert_eq!(outcome.unwrap().matches.len(), wanted as usize, "{page} {page_size} {skip}");
                } else {
                    refused(outcome, Kind::PageOutOfRange);
                }
            }
        }
    }
    let keyword = Keyword { min_term_chars: u32::MAX, max_terms: 64, operator: 2, syntax: 0 };
    let request =
        SearchKeywordRequest { keyword: Some(keyword), ..keyword_search("apple", options("probe", 1, u32::MAX / 9)) };
    refused(client.search_keyword(request.clone()).await, Kind::ArgumentInvalid);
    let request = SearchKeywordRequest { options: Some(options("probe", 1, 1000)), ..request };
    let answer = client.search_keyword(request).await.unwrap();
    assert_eq!((answer.matches.len(), answer.warnings.len()), (0, 1));
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_a_megabyte_are_refused_in_few_words() {
    let server = server().await;
    let (client, raw) = (&server.client, Raw::connect(&server.url).await);
    let few = 8 << 10;
    for (stranger, bytes) in [("n", 1 << 20), ("北", 1 << 16), ("\u{1}", 1 << 16), ("\"\\", 1 << 16), ("🦀", 1 << 16)]
    {
        let long = stranger.repeat(bytes / stranger.len());
        refused(client.get_collection(&long).await, Kind::CollectionNotFound);
        refused(client.create(collection(&long, 1, Schema::default())).await, Kind::SchemaInvalid);
        let text_fields = vec![long.clone(); 2];
        let search = SearchKeywordRequest { text_fields, ..keyword_search("a", options("c", 1, 10)) };
        refused(client.search_keyword(search.clone()).await, Kind::FieldUnknown);
        let answer = raw.call_with(SEARCH, &[], &search).await;
        assert!(answer.num_status_bytes < few, "{} bytes", answer.num_status_bytes);
        let vectors = || [(long.clone(), Vector { kind: None })].into();
        let documents =
            (0..5).map(|_| Document { key: "k".into(), vectors: vectors(), ..Document::default() }).collect();
        let upsert = UpsertDocumentsRequest { collection: "c".into(), documents };
        let answer = raw.call_with(UPSERT, &[], &upsert).await;
        check(&answer.status, Kind::FieldUnknown);
        assert!(answer.num_status_bytes < few, "{} bytes", answer.num_status_bytes);
        let value = Value { kind: Some(value::Kind::Bool(true)) };
        let fields = [(long.clone(), value)].into();
        refused(
            client.upsert("c", vec![Document { key: "k".into(), fields, ..Document::default() }]).await,
            Kind::ArgumentInvalid,
        );
        let texts = vec![TextField { name: "t".into(), analyzer: long.clone(), boost: 1.0 }; 10];
        refused(client.create(collection("d", 1, Schema { texts, ..Schema::default() })).await, Kind::SchemaInvalid);
        refused(client.get("c", &[long.as_str(); 3]).await, Kind::KeyInvalid);
        let snapshot = SearchOptions { snapshot: long.clone(), ..options("c", 1, 10) };
        refused(client.search_keyword(keyword_search("a", snapshot)).await, Kind::TokenMalformed);
    }
    let upsert = Document { key: "\u{1}".repeat(1025), ..Document::default() };
    refused(client.upsert("c", vec![upsert; 10_000]).await, Kind::KeyInvalid);
    still_serves(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_message_are_malformed() {
    let server = server().await;
    let raw = Raw::connect(&server.url).await;
    let whole = UpsertDocumentsRequest { collection: "c".into(), documents: vec![document("k", &[1.0, 2.0], "apple")] };
    let whole = whole.encode_to_vec();
    let mut cases = vec![
        ("a length beyond the end", vec![0x0a, 0x7f, b'c']),
        ("a varint without an end", vec![0xff; 11]),
        ("field 0", vec![0x00, 0x00]),
        ("a wire type that is not", vec![0x0e, 0x00]),
        ("a group without an end", vec![0x1b]),
        ("an end without a group", vec![0x1c]),
        ("a number where a string belongs", vec![0x08, 0x01]),
        ("a string that is not UTF-8", field(1, b"c\xff\xfe")),
        ("half a surrogate pair", field(1, b"\xed\xa0\x80")),
        ("a key that is not UTF-8", field(2, &field(1, b"\xc3\x28"))),
        ("a value that is not UTF-8", field(2, &field(3, &[field(1, b"t"), field(2, &field(5, b"\xff"))].concat()))),
        ("a length of 2^63", [&[0x0a][..], &[0xff; 9], &[0x01, b'c']].concat()),
        ("groups in groups without an end", vec![0x1b; 100_000]),
    ];
    // Cut off anywhere but between two fields. Where a cut happens to leave a message, it names no collection or is `c`.
    for end in [1, 2, 4, 5, 6, 9, whole.len() / 2, whole.len() - 1] {
        cases.push(("cut off", whole[..end].to_vec()));
    }
    for (what, bytes) in cases {
        let answer = raw.call(UPSERT, &bytes).await;
        check(&answer.status, Kind::MessageMalformed);
        assert!(answer.num_status_bytes < 8 << 10, "{what}");
    }
    still_serves(&server.client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_break_the_protocol_are_malformed() {
    let server = server().await;
    let raw = Raw::connect(&server.url).await;
    let message = keyword_search("apple", options("probe", 1, 10)).encode_to_vec();
    let whole = frame(&message);
    let mut compressed = whole.clone();
    compressed[0] = 1;
    let mut unknown_flag = whole.clone();
    unknown_flag[0] = 7;
    for (what, body) in [
        ("no message", &[][..]),
        ("half a prefix", &whole[..3]),
        ("half a message", &whole[..whole.len() - 2]),
        ("a compressed message without an encoding", &compressed),
        ("a flag that is not", &unknown_flag),
    ] {
        let answer = raw.send(SEARCH, &[], body, true).await;
        assert_eq!(answer.http_status, 200, "{what}");
        check(&answer.status, Kind::MessageMalformed);
    }
    // A length of 4 GiB is refused by the prefix alone.
    let answer = raw.send(SEARCH, &[], &[0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3], false).await;
    check(&answer.status, Kind::TooLarge);
    let answer = raw.send(SEARCH, &[("grpc-encoding", "gzip")], &compressed, true).await;
    assert_eq!(answer.status.code(), Code::Unimplemented);
    let answer = raw.call("antiphon.v1.KeywordSearchService/Nothing", &message).await;
    assert_eq!(answer.status.code(), Code::Unimplemented);
    let answer = raw.call("antiphon.v1.NoService/SearchKeyword", &message).await;
    assert_eq!(answer.status.code(), Code::Unimplemented);
    still_serves(&server.client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_other_releases_are_passed_over() {
    let server = server().await;
    let raw = Raw::connect(&server.url).await;
    let known = keyword_search("apple", options("probe", 1, 10)).encode_to_vec();
    // Numbers that nobody has given out yet.
    let bodies = [
        [known.clone(), field(15, b"\x0a\x00"), field(536_870_911, &[0; 100])].concat(),
        [known.clone(), vec![0xa8, 0x06, 0x01], vec![0xb5, 0x06, 1, 2, 3, 4]].concat(),
    ];
    for body in bodies {
        let answer = raw.call(SEARCH, &body).await;
        assert_eq!(answer.status.code(), Code::Ok, "{:?}", answer.status);
        let found = SearchResponse::decode(&answer.body[5..]).unwrap();
        assert_eq!(keys(&found), ["far"]);
    }
    still_serves(&server.client).await;
}

/// Values within maps, within each other so many levels deep, as bytes of a Value.
fn nested_maps(levels: usize, mut innermost: Vec<u8>) -> Vec<u8> {
    for _ in 0..levels {
        innermost = field(8, &field(1, &[field(1, b"m"), field(2, &innermost)].concat()));
    }
    innermost
}

#[tokio::test(flavor = "multi_thread")]
async fn values_deeper_than_any_reader_follows_are_malformed() {
    let server = server().await;
    let raw = Raw::connect(&server.url).await;
    let upsert = |value: Vec<u8>| {
        let entry = [field(1, b"deep"), field(2, &value)].concat();
        [field(1, b"c"), field(2, &[field(1, b"k"), field(3, &entry)].concat())].concat()
    };
    for levels in [33, 40, 100, 1000, 20_000] {
        let answer = raw.call(UPSERT, &upsert(nested_maps(levels, vec![0x10, 0x01]))).await;
        assert_eq!(answer.status.code(), Code::InvalidArgument, "{levels}");
        check(&answer.status, if levels == 33 { answer_kind(&answer.status) } else { Kind::MessageMalformed });
        let list = (0..levels).fold(vec![0x10, 0x01], |inner, _| field(7, &field(1, &inner)));
        let answer = raw.call(UPSERT, &upsert(list)).await;
        assert_eq!(answer.status.code(), Code::InvalidArgument, "{levels}");
    }
    assert_eq!(server.client.count("c").await.unwrap(), 0);
    still_serves(&server.client).await;
}

/// At 33 levels either of two bounds may be met first.
fn answer_kind(status: &tonic::Status) -> Kind {
    match antiphon_tests::client::kind_of(status) {
        kind @ (Kind::ArgumentInvalid | Kind::MessageMalformed) => kind,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_empty_parts_are_refused_without_much_ado() {
    let server = server().await;
    let raw = Raw::connect(&server.url).await;
    // Two bytes each on the wire.
    let many = |number: u32| field(number, &[]).repeat(1 << 20);
    let started = std::time::Instant::now();
    let answer = raw.call(UPSERT, &[field(1, b"c"), many(2)].concat()).await;
    check(&answer.status, Kind::ArgumentInvalid);
    for method in ["GetDocuments", "DeleteDocuments"] {
        let answer =
            raw.call(&format!("antiphon.v1.DocumentService/{method}"), &[field(1, b"c"), many(2)].concat()).await;
        check(&answer.status, Kind::ArgumentInvalid);
    }
    let answer = raw.call(SEARCH, &[field(1, b"a"), field(6, &[field(1, b"c"), many(6)].concat())].concat()).await;
    check(&answer.status, Kind::ArgumentInvalid);
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    still_serves(&server.client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_vanish_leave_nothing_behind() {
    let server = server().await;
    for n in 0..50 {
        let raw = Raw::connect(&server.url).await;
        let message = keyword_search("apple", options("probe", 1, 10)).encode_to_vec();
        let call = async move { raw.send(SEARCH, &[], &frame(&message), n % 2 == 0).await };
        let patience = std::time::Duration::from_millis(n % 5);
        // Dropped half-way, connection and all.
        let _ = tokio::time::timeout(patience, call).await;
    }
    still_serves(&server.client).await;
}
