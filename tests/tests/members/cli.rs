//! The command line end to end: the real binary as server and as client, as a person uses it.
//!
//! Not for what needs no server: see cli/tests/command_line.rs.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_proto::v1::{Document, Value, value};
use antiphon_tests::cluster::{Cluster, ClusterBuilder, binary};
use antiphon_tests::secure::{Secure, secure};
use prost_types::Timestamp;
use serde_json::json;

/// A server, and a folder for files.
struct Setup {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

/// What a command did.
#[derive(Debug)]
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run(address: Option<&str>, args: &[&str], stdin: &[u8]) -> Ended {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANTIPHON_")) {
        command.env_remove(name);
    }
    if let Some(address) = address {
        command.env("ANTIPHON_ADDRESS", address);
        command.envs(secure().map(Secure::client_envs).unwrap_or_default());
    }
    let mut child =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that does not read it closes its end.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Setup {
    async fn new() -> Self {
        Self { cluster: ClusterBuilder::serve(1).start().await, folder: tempfile::tempdir().unwrap() }
    }

    /// With a collection `fruit`: a vector `v` of two dimensions, a text `t` in two shards.
    async fn with_fruit() -> Self {
        let setup = Self::new().await;
        setup.succeeds(&["collection", "create", "fruit", "--shards", "2", "--vector", "v:2:cosine", "--text", "t:en"]);
        setup
    }

    fn run(&self, args: &[&str]) -> Ended {
        self.run_with(args, b"")
    }

    fn run_with(&self, args: &[&str], stdin: &[u8]) -> Ended {
        run(Some(self.cluster.serves[0].url()), args, stdin)
    }

    /// What the command prints; it must succeed and have nothing to say on stderr.
    fn succeeds(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{args:?}: {ended:?}");
        ended.stdout
    }

    /// What the command says on stderr, in one line; it must fail with 1 and print nothing.
    fn fails(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{args:?}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {ended:?}");
        assert!(ended.stderr.starts_with("antiphon: "), "{args:?}: {ended:?}");
        ended.stderr
    }

    fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.succeeds(args)).unwrap()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path: PathBuf = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn lines(range: std::ops::Range<u32>) -> String {
    let line = |n: u32| {
        let words = if n.is_multiple_of(2) { "red apples" } else { "green pears" };
        json!({"key": format!("d{n}"), "vectors": {"v": [1.0, n]}, "fields": {"t": words, "n": n}}).to_string() + "\n"
    };
    range.map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_are_created_listed_shown_and_deleted() {
    let setup = Setup::new().await;
    assert_eq!(setup.succeeds(&["collection", "list"]), "There are no collections.\n");
    assert_eq!(setup.json(&["collection", "list", "--json"]), json!([]));
    let spec =
        ["--vector", "v:3:dot:float16", "--text", "title:en:2", "--text", "body", "--shards", "3", "--case-sensitive"];
    let created = setup.succeeds(&[&["collection", "create", "a-1"], &spec[..]].concat());
    assert!(created.contains("a-1") && created.contains('3'), "{created}");
    let words = setup.fails(&[&["collection", "create", "a-1"], &spec[..]].concat());
    assert!(words.contains("ALREADY_EXISTS COLLECTION_EXISTS") && words.contains("a-1"), "{words}");
    let words = setup.fails(&["collection", "create", "Not A Name", "--shards", "999"]);
    for part in ["INVALID_ARGUMENT SCHEMA_INVALID", "collection.name", "Not A Name", "collection.shard_count", "999"] {
        assert!(words.contains(part), "{part} in {words}");
    }
    let words = setup.fails(&["collection", "create", "b", "--text", "t:klingon"]);
    assert!(words.contains("klingon") && words.contains("standard"), "{words}");

    setup.succeeds(&["collection", "create", "b"]);
    let list = setup.succeeds(&["collection", "list"]);
    assert_eq!(list.lines().count(), 3, "{list}");
    let shown = setup.json(&["collection", "show", "a-1", "--json"]);
    assert_eq!(shown["shard_count"], 3);
    assert_eq!(shown["vectors"][0], json!({"name": "v", "dimensions": 3, "metric": "dot", "element": "float16"}));
    assert_eq!(shown["texts"][0], json!({"name": "title", "analyzer": "en", "boost": 2.0}));
    assert_eq!(shown["texts"][1]["analyzer"], "standard");
    assert_eq!(shown["case_sensitive"], true);
    let shown = setup.succeeds(&["collection", "show", "a-1"]);
    for part in ["a-1", "--vector v:3:dot:float16", "--text title:en:2", "--case-sensitive"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let words = setup.fails(&["collection", "show", "nobody"]);
    assert!(words.contains("NOT_FOUND COLLECTION_NOT_FOUND") && words.contains("nobody"), "{words}");

    let words = setup.fails(&["collection", "delete", "b"]);
    assert!(words.contains("--yes"), "{words}");
    assert!(setup.succeeds(&["collection", "delete", "b", "--yes"]).contains('b'));
    assert!(setup.fails(&["collection", "delete", "b", "--yes"]).contains("COLLECTION_NOT_FOUND"));
    assert_eq!(setup.json(&["collection", "list", "--json"]).as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_imported_from_files_of_every_kind_and_from_standard_input() {
    let setup = Setup::with_fruit().await;
    let plain = setup.file("plain.jsonl", lines(0..100).as_bytes());
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(lines(100..200).as_bytes()).unwrap();
    let gz = setup.file("more.jsonl.gz", &gz.finish().unwrap());
    let zst = zstd::bulk::compress(lines(200..300).as_bytes(), 1).unwrap();
    let zst = setup.file("more.jsonl.zst", &zst);
    let ended = setup.run(&["import", "--collection", "fruit", &plain, &gz, &zst, "--batch", "30"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{ended:?}");
    assert!(ended.stderr.contains("imported 300 documents") && ended.stderr.contains("rejected 0"), "{}", ended.stderr);
    let ended = setup.run_with(&["import", "-c", "fruit", "-", "--quiet"], lines(300..350).as_bytes());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(setup.json(&["collection", "show", "fruit", "--json"])["num_docs"], 350);
    // Again: the same documents, not others.
    assert_eq!(setup.run(&["import", "-c", "fruit", &gz]).code, 0);
    assert_eq!(setup.json(&["collection", "show", "fruit", "--json"])["num_docs"], 350);

    let ended = setup.run_with(&["import", "-c", "fruit", "-"], b"{\"fields\":{\"t\":\"no key\"}}\n{}\n");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stderr.contains("2 without a key"), "{}", ended.stderr);
    let empty = setup.file("empty.jsonl", b"");
    assert!(setup.run(&["import", "-c", "fruit", &empty]).stderr.contains("imported 0 documents"));
    assert!(setup.fails(&["import", "-c", "nobody", &plain]).contains("COLLECTION_NOT_FOUND"));
    let words = setup.fails(&["import", "-c", "fruit", "/nowhere/to/be/found.jsonl"]);
    assert!(words.contains("/nowhere/to/be/found.jsonl") && words.contains("No such file"), "{words}");
    let torn = setup.file("torn.jsonl.gz", &std::fs::read(&gz).unwrap()[..200]);
    let ended = setup.run(&["import", "-c", "fruit", &torn]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("torn.jsonl.gz"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_are_named_by_file_and_line_and_the_others_go_on() {
    let setup = Setup::with_fruit().await;
    let file = setup.file(
        "mixed.jsonl",
        [
            r#"{"key":"good-1","vectors":{"v":[1,2]}}"#,
            r#"{"key":"bad-json""#,
            "",
            r#"{"key":"bad-dimension","vectors":{"v":[1,2,3]}}"#,
            r#"{"key":"bad-field","vectors":{"w":[1]}}"#,
            r#"{"key":"zero","vectors":{"v":[0,0]}}"#,
            r#"{"key":"bad-text","fields":{"t":7}}"#,
            r#"{"key":"   "}"#,
            r#"{"key":"good-2","fields":{"t":"red apples","huge":"wide"}}"#,
            r#"[1]"#,
        ]
        .join("\n")
        .as_bytes(),
    );
    let rejects = setup.folder.path().join("rejects.jsonl");
    let ended = setup.run(&["import", "-c", "fruit", &file, "--rejects", rejects.to_str().unwrap()]);
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.stderr.contains("imported 2 documents") && ended.stderr.contains("rejected 7"), "{}", ended.stderr);
    let words = ["column", "3 components", "\"w\"", "zero", "string", "white space", "JSON object"];
    let written = std::fs::read_to_string(&rejects).unwrap();
    let mut written: Vec<serde_json::Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    written.sort_by_key(|reject| reject["line"].as_u64());
    for ((line, words), reject) in [2, 4, 5, 6, 7, 8, 10].into_iter().zip(words).zip(&written) {
        assert_eq!((&reject["line"], reject["file"].as_str()), (&json!(line), Some(file.as_str())));
        assert!(reject["reason"].as_str().unwrap().contains(words), "{words} in {reject}");
        assert!(ended.stderr.contains(&format!("{file}:{line}: ")), "{line} in {}", ended.stderr);
    }
    assert_eq!(written.len(), 7);
    assert_eq!(written[1]["document"]["key"], "bad-dimension");
    assert_eq!(written[0]["document"], r#"{"key":"bad-json""#);
    assert_eq!(setup.json(&["collection", "show", "fruit", "--json"])["num_docs"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_document_is_rejected_alone() {
    let setup = Setup::with_fruit().await;
    let large = json!({"key": "large", "fields": {"t": "word ".repeat(2 << 20)}}).to_string();
    let largest = json!({"key": "largest", "fields": {"t": "word ".repeat(8 << 20)}}).to_string();
    let file = setup.file("large.jsonl", format!("{}{large}\n{largest}\n{}", lines(0..20), lines(20..40)).as_bytes());
    let ended = setup.run(&["import", "-c", "fruit", &file]);
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.stderr.contains("imported 40 documents") && ended.stderr.contains("rejected 2"), "{}", ended.stderr);
    for line in [21, 22] {
        assert!(ended.stderr.contains(&format!("{file}:{line}: ")), "{}", ended.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_show_a_table_or_json() {
    let setup = Setup::with_fruit().await;
    let file = setup.file("fruit.jsonl", lines(0..20).as_bytes());
    assert_eq!(setup.run(&["import", "-c", "fruit", &file]).code, 0);
    let vector = setup.file("vector.json", b"[1, 0]\n");
    let table = setup.succeeds(&["search", "-c", "fruit", "apple", "--vector", &vector, "--page-size", "4"]);
    let rows: Vec<Vec<&str>> = table.lines().take(5).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["rank", "key", "channel", "vector", "keyword", "score", "text"]);
    assert_eq!(rows[1][..3], ["1", "d0", "vector"]);
    assert_eq!(rows[2][1..3], ["d1", "vector"], "the keywords' turn was lost to what is placed already");
    assert_eq!(rows[3][1..3], ["d10", "keyword"]);
    assert!(table.contains("has_more  yes; last_page 24") && table.contains("all of 2 shards"), "{table}");

    let answer = setup.json(&["search", "-c", "fruit", "apple", "--vector", &vector, "--page-size", "4", "--json"]);
    let keys = |answer: &serde_json::Value| -> Vec<String> {
        answer["matches"].as_array().unwrap().iter().map(|found| found["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(&answer)[0], "d0");
    assert_eq!((&answer["has_more"], &answer["last_page"]), (&json!(true), &json!(24)));
    assert_eq!(answer["matches"][0]["document"]["fields"]["n"], 0);
    let snapshot = answer["snapshot"].as_str().unwrap();
    let second = [
        "search",
        "-c",
        "fruit",
        "apple",
        "--vector",
        &vector,
        "--page-size",
        "4",
        "--page",
        "2",
        "--json",
        "--snapshot",
    ];
    let second = setup.json(&[&second[..], &[snapshot]].concat());
    assert_eq!(second["matches"][0]["rank"], 5);
    let skipped = ["search", "-c", "fruit", "apple", "--vector", &vector, "--page-size", "4", "--skip", "4", "--json"];
    assert_eq!(keys(&setup.json(&skipped)), keys(&second));

    let by_vector = setup.json(&["search", "-c", "fruit", "--vector", &vector, "--json", "--exact", "--fields", "n"]);
    assert_eq!(keys(&by_vector), (0..10).map(|n| format!("d{n}")).collect::<Vec<_>>());
    assert_eq!(by_vector["matches"][3]["document"]["fields"], json!({"n": 3}));
    let by_text = setup.json(&["search", "-c", "fruit", "green apple", "--all-words", "--json"]);
    assert_eq!(keys(&by_text), [""; 0]);
    assert_eq!(keys(&setup.json(&["search", "-c", "fruit", "pears", "--text-field", "t", "--json"])).len(), 10);
    let stdin = setup.run_with(&["search", "-c", "fruit", "--vector", "-", "--json", "--page-size", "1"], b"[1.0, 19]");
    assert_eq!(keys(&serde_json::from_str(&stdin.stdout).unwrap()), ["d19"]);
    for fusion in ["turn-taking", "rrf", "max", "relative", "distribution"] {
        let answer = setup.json(&["search", "-c", "fruit", "apple", "--vector", &vector, "--fusion", fusion, "--json"]);
        assert_eq!(keys(&answer).len(), 10, "{fusion}");
    }
    let none = setup.succeeds(&["search", "-c", "fruit", ">>>"]);
    assert!(none.starts_with("No matches.\n") && none.contains("warning"), "{none}");

    let words = setup.fails(&["search", "-c", "fruit", "apple", "--page", "10"]);
    assert!(words.contains("OUT_OF_RANGE PAGE_OUT_OF_RANGE") && words.contains('9'), "{words}");
    assert!(setup.fails(&["search", "-c", "nobody", "apple"]).contains("COLLECTION_NOT_FOUND"));
    assert!(setup.fails(&["search", "-c", "fruit", "x", "--snapshot", "zzz"]).contains("TOKEN_MALFORMED"));
    let bad = setup.file("bad.json", b"{\"v\": 1}");
    assert!(setup.fails(&["search", "-c", "fruit", "--vector", &bad]).contains("bad.json"));
    assert!(setup.fails(&["search", "-c", "fruit", "--vector", "/nowhere.json"]).contains("/nowhere.json"));
    let long = setup.file("long.json", b"[1, 2, 3]");
    let words = setup.fails(&["search", "-c", "fruit", "--vector", &long]);
    assert!(words.contains("DIMENSION_MISMATCH") && words.contains('3') && words.contains('2'), "{words}");
}

fn keys(answer: &serde_json::Value) -> Vec<&str> {
    answer["matches"].as_array().unwrap().iter().map(|found| found["key"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn several_queries_are_asked_at_once() {
    let setup = Setup::new().await;
    let create = ["collection", "create", "fruit", "--shards", "2", "--vector", "v:2", "--vector", "w:1:euclidean"];
    setup.succeeds(&[&create[..], &["--text", "t:en", "--text", "u:en"]].concat());
    let lines = r#"{"key":"apple","vectors":{"v":[1,0],"w":[1]},"fields":{"t":"red apples","u":"sweet"}}
{"key":"pear","vectors":{"v":[0,1]},"fields":{"t":"green pears","u":"red spots"}}
{"key":"plum","vectors":{"w":[5]},"fields":{"t":"blue plums"}}
"#;
    assert_eq!(setup.run_with(&["import", "-c", "fruit", "-", "--quiet"], lines.as_bytes()).code, 0);
    let search = |args: &[&str]| setup.succeeds(&[&["search", "-c", "fruit"], args].concat());
    let json =
        |args: &[&str]| -> serde_json::Value { serde_json::from_str(&search(&[args, &["--json"]].concat())).unwrap() };
    let places = |answer: &serde_json::Value, at: usize| -> Vec<(String, u64)> {
        let places = answer["matches"][at]["places"].as_array().unwrap().iter();
        places.map(|place| (place["channel"].as_str().unwrap().into(), place["query"].as_u64().unwrap())).collect()
    };

    let in_u = r#"{"text": "red", "text_fields": ["u"]}"#;
    let in_t = r#"{"text": "red", "text_fields": ["t"]}"#;
    let nearest = r#"{"vector": [5], "vector_field": "w"}"#;
    assert_eq!(keys(&json(&["--query", in_u])), ["pear"]);
    assert_eq!(keys(&json(&["--query", in_u, "--query", in_t])), ["pear", "apple"], "by turns, in their order");
    assert_eq!(keys(&json(&["--query", in_u, "--query", nearest, "--page-size", "1"])), ["plum"], "vectors first");
    let words_first = ["--query", in_u, "--query", nearest, "--page-size", "1", "--first-channel", "keyword"];
    assert_eq!(keys(&json(&words_first)), ["pear"]);
    // Weights decide between lists of one match each.
    for (weights, first) in [("1,2", "apple"), ("2,1", "pear")] {
        let answer = json(&["--query", in_u, "--query", in_t, "--fusion", "rrf", "--weights", weights]);
        assert_eq!(keys(&answer)[0], first, "{weights}");
    }
    let steep = json(&["--query", in_u, "--query", in_t, "--fusion", "rrf", "--fusion-k", "1"]);
    assert_eq!(steep["matches"][0]["score"], 0.5);
    let all = r#"{"text": "red spots", "keyword": {"operator": "AND"}}"#;
    assert_eq!(keys(&json(&["--query", all])), ["pear"]);
    let operators = r#"{"text": "+red -t:pears", "keyword": {"syntax": "QUERY"}}"#;
    assert_eq!(keys(&json(&["--query", operators])), ["apple"]);

    // The same from a file, and a query by both, which is two lists.
    let file = setup.file(
        "queries.json",
        format!(r#"[{{"vector": [1, 0], "vector_field": "v", "text": "apple"}}, {in_u}]"#).as_bytes(),
    );
    let answer = json(&["--queries", &file]);
    assert_eq!(keys(&answer), ["apple", "pear"]);
    assert_eq!(places(&answer, 0), [("vector".to_owned(), 0), ("keyword".to_owned(), 0)]);
    assert_eq!(places(&answer, 1), [("vector".to_owned(), 0), ("keyword".to_owned(), 1)]);
    let stdin = setup.run_with(&["search", "-c", "fruit", "--queries", "-"], std::fs::read(&file).unwrap().as_slice());
    let rows: Vec<Vec<&str>> = stdin.stdout.lines().take(3).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1][1..5], ["apple", "vector", "1/-", "1/-"]);
    assert_eq!(rows[2][1..5], ["pear", "keyword", "2/-", "-/1"]);

    let refused = |args: &[&str]| setup.fails(&[&["search", "-c", "fruit"], args].concat());
    assert!(refused(&["--query", r#"{"text": "x", "text_fields": ["z"]}"#]).contains("queries[0].text_fields[0]"));
    assert!(refused(&["--query", "{}"]).contains("QUERY_EMPTY"));
    assert!(
        refused(&["--query", in_u, "--query", in_t, "--fusion", "rrf", "--weights", "1"]).contains("fusion.weights")
    );
    assert!(refused(&["--query", nearest, "--embed"]).contains("queries[0] has no text"));
    let bad = setup.file("bad.json", br#"[{"text": "x"}, {"txt": "y"}]"#);
    let words = refused(&["--queries", &bad]);
    assert!(words.contains("bad.json: queries[1]: unknown field `txt`"), "{words}");
    let many = format!("[{}]", vec![in_u; 17].join(","));
    assert!(refused(&["--queries", &setup.file("many.json", many.as_bytes())]).contains("16"));
    for args in [
        &["--query", "red"][..],
        &["red", "--query", in_u],
        &["--query", in_u, "--queries", "f"],
        &["--query", in_u, "--vector", "f"],
        &["red", "--weights", "1"],
    ] {
        assert_eq!(setup.run(&[&["search", "-c", "fruit"], args].concat()).code, 2, "{args:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_returned_can_be_chosen() {
    let setup = Setup::with_fruit().await;
    let line = r#"{"key":"a","vectors":{"v":[1,0.5]},"fields":{"t":"北京大学 🦀🦀 apples","n":7}}"#;
    assert_eq!(setup.run_with(&["import", "-c", "fruit", "-", "--quiet"], line.as_bytes()).code, 0);
    let document = |args: &[&str]| {
        let answer = setup.json(&[&["search", "-c", "fruit", "apple", "--json"], args].concat());
        answer["matches"][0]["document"].clone()
    };
    assert_eq!(document(&["--fields", "n"]), json!({"key": "a", "fields": {"n": 7}}));
    assert_eq!(document(&["--fields", "t", "--text-limit", "6"])["fields"], json!({"t": "北京大学 🦀"}));
    assert_eq!(document(&["--vectors"])["vectors"], json!({"v": [1.0, 0.5]}));
    assert!(setup.succeeds(&["search", "-c", "fruit", "apple", "--text-limit", "2"]).contains("北京\n"));
    let client = setup.cluster.client(0);
    let written = client.upsert("fruit", vec![Document { key: "b".into(), ..Document::default() }]).await.unwrap();
    setup.succeeds(&["search", "-c", "fruit", "apple", "--at-least", &written.version]);
    assert!(setup.fails(&["search", "-c", "fruit", "apple", "--at-least", "x"]).contains("TOKEN_MALFORMED"));
}

/// JSON has neither times nor doubles without a fraction, and documents that had them were refused.
#[tokio::test(flavor = "multi_thread")]
async fn attributes_get_the_types_that_the_schema_says() {
    let setup = Setup::new().await;
    let create = ["collection", "create", "news", "--attribute", "at:timestamp", "--attribute", "price:double"];
    setup.succeeds(&create);
    let lines = r#"{"key":"a","fields":{"at":"2024-05-01T12:00:00+02:00","price":3,"other":"2024-05-01"}}
{"key":"b","fields":{"at":["2025-01-01","2026-01-01T00:00:00.000000001Z"],"price":[1,2.5]}}
{"key":"c","fields":{"at":"yesterday"}}
{"key":"d","fields":{"at":1714557600}}
{"key":"e","fields":{"at":null}}
"#;
    let ended = setup.run_with(&["import", "-c", "news", "-", "--quiet"], lines.as_bytes());
    assert_eq!(ended.code, 3, "{ended:?}");
    for words in ["stdin:3: fields.at: \"yesterday\" is no time", "stdin:4: fields.at: a number is no time"] {
        assert!(ended.stderr.contains(words), "{words} in {}", ended.stderr);
    }
    let count = |filter: &str| setup.succeeds(&["count", "-c", "news", "--filter", filter]).trim().to_owned();
    assert_eq!(count(r#"{"equal": {"field": "at", "value": {"timestamp": "2024-05-01T10:00:00Z"}}}"#), "1");
    assert_eq!(count(r#"{"range": {"field": "at", "gt": {"timestamp": "2026-01-01T00:00:00Z"}}}"#), "1");
    assert_eq!(count(r#"{"range": {"field": "price", "gte": 2.5}}"#), "2");
    // What was exported is the same when it is read again.
    let exported = setup.succeeds(&["export", "-c", "news"]);
    assert!(exported.contains(r#""at":"2024-05-01T10:00:00Z""#) && exported.contains(r#""price":3.0"#), "{exported}");
    setup.succeeds(&[&["collection", "create", "again"], &create[3..]].concat());
    assert_eq!(setup.run_with(&["import", "-c", "again", "-", "--quiet"], exported.as_bytes()).code, 0);
    assert_eq!(setup.succeeds(&["export", "-c", "again"]), exported);
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_that_the_server_or_the_collection_cannot_do_say_what_can_be_done() {
    let setup = Setup::with_fruit().await;
    for flag in ["--embed", "--embed-only"] {
        let words = setup.fails(&["search", "-c", "fruit", "apple", flag]);
        assert!(words.contains("UNIMPLEMENTED") && words.contains("the server has no embedder"), "{words}");
        assert!(words.contains("docs/embedders.md") && words.contains("--vector"), "{words}");
    }
    setup.succeeds(&["collection", "create", "bare", "--vector", "v:2"]);
    let words = setup.fails(&["search", "-c", "bare", "apple"]);
    assert!(
        words.contains("the schema has no text field") && words.contains("collection update bare --text"),
        "{words}"
    );

    let folder = antiphon_tests::models::folder("model2vec");
    let cluster = ClusterBuilder::serve(1).set("embedders.made.kind", "static");
    let cluster = cluster.set("embedders.made.path", folder.display()).start().await;
    let setup = Setup { cluster, folder: tempfile::tempdir().unwrap() };
    setup.succeeds(&["collection", "create", "fruit", "--vector", "v:8", "--text", "t:en"]);
    for flag in ["--embed", "--embed-only"] {
        let words = setup.fails(&["search", "-c", "fruit", "bread", flag]);
        assert!(words.contains("FIELD_TYPE") && words.contains("\"v\" has no embedder"), "{words}");
        assert!(words.contains("antiphon collection update fruit --embedder FIELD=EMBEDDER"), "{words}");
    }
    setup.succeeds(&["collection", "update", "fruit", "--embedder", "v=made"]);
    setup.succeeds(&["search", "-c", "fruit", "bread", "--embed"]);
    let queries = ["--query", r#"{"text": "bread"}"#, "--query", r#"{"text": "bicycle"}"#];
    assert_eq!(setup.run_with(&["import", "-c", "fruit", "-"], br#"{"key":"a","fields":{"t":"bread"}}"#).code, 0);
    for (flag, lists) in [("--embed", 3), ("--embed-only", 2)] {
        let answer = setup.json(&[&["search", "-c", "fruit", flag, "--json"], &queries[..]].concat());
        assert_eq!(answer["matches"][0]["places"].as_array().unwrap().len(), lists, "{flag}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn get_prints_what_import_reads_and_names_what_is_missing() {
    let setup = Setup::with_fruit().await;
    let line = r#"{"key":"Dé","vectors":{"v":[1.0,0.5]},"fields":{"deep":[{"a":[null,true]}],"n":9007199254740993,"t":"red\napples","x":0.5}}"#;
    assert_eq!(setup.run_with(&["import", "-c", "fruit", "-"], line.as_bytes()).code, 0);
    assert_eq!(setup.succeeds(&["get", "-c", "fruit", "dé", "--vectors"]).trim_end(), line);
    let only = setup.json(&["get", "-c", "fruit", "DÉ", "--fields", "n,x"]);
    assert_eq!(only, json!({"key": "Dé", "fields": {"n": 9_007_199_254_740_993_i64, "x": 0.5}}));
    let ended = setup.run(&["get", "-c", "fruit", "nobody", "dé", "\u{1b}[31mred"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 1);
    assert!(ended.stderr.contains("no document `nobody`"), "{}", ended.stderr);
    assert!(!ended.stderr.contains('\u{1b}'), "control characters reach the terminal");
    assert!(setup.fails(&["get", "-c", "fruit", " "]).contains("KEY_INVALID"));
}

/// Times that no calendar has can be stored; printing them must not fail.
#[tokio::test(flavor = "multi_thread")]
async fn documents_are_counted_exported_found_and_deleted_by_filter() {
    let setup = Setup::new().await;
    let create = ["collection", "create", "fruit", "--shards", "2", "--vector", "v:2", "--text", "t:en"];
    setup.succeeds(&[&create[..], &["--attribute", "size:integer"]].concat());
    let document =
        |key: u32| json!({"key": key.to_string(), "vectors": {"v": [1.0, key]}, "fields": {"t": "red", "size": key}});
    let documents: String = (1..=6).map(|key| format!("{}\n", document(key))).collect();
    assert_eq!(setup.run_with(&["import", "-", "-c", "fruit"], documents.as_bytes()).code, 0);
    let filter = r#"{"range": {"field": "size", "gt": 4}}"#;
    let of = |command: &str| [command, "-c", "fruit", "--filter", filter].map(str::to_owned);
    let run = |command: &str| setup.succeeds(&of(command).each_ref().map(String::as_str));

    assert_eq!(setup.succeeds(&["count", "-c", "fruit"]).trim(), "6");
    assert_eq!(run("count").trim(), "2");
    let found = setup.json(&["search", "red", "-c", "fruit", "--filter", filter, "--json"]);
    let mut keys: Vec<&str> = found["matches"].as_array().unwrap().iter().map(|m| m["key"].as_str().unwrap()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["5", "6"]);
    // What was exported can be imported again.
    let exported = setup.succeeds(&["export", "-c", "fruit", "--filter", filter, "--vectors"]);
    assert_eq!(exported.lines().count(), 2);
    run("delete");
    assert_eq!(run("count").trim(), "0");
    assert_eq!(setup.run_with(&["import", "-", "-c", "fruit"], exported.as_bytes()).code, 0);
    assert_eq!(run("count").trim(), "2");
    let stranger = setup.fails(&["count", "-c", "fruit", "--filter", r#"{"exists": {"field": "colour"}}"#]);
    assert!(stranger.contains("FIELD_UNKNOWN"), "{stranger}");
}

#[tokio::test(flavor = "multi_thread")]
async fn times_beyond_any_calendar_are_printed_somehow() {
    let setup = Setup::with_fruit().await;
    let client = setup.cluster.client(0);
    let times = [(i64::MAX, i32::MAX), (i64::MIN, i32::MIN), (0, -1), (253_402_300_800, 0)];
    for (n, (seconds, nanos)) in times.into_iter().enumerate() {
        let time = Value { kind: Some(value::Kind::Timestamp(Timestamp { seconds, nanos })) };
        let fields = [("when".to_owned(), time)].into();
        client.upsert("fruit", vec![Document { key: format!("t{n}"), fields, ..Document::default() }]).await.unwrap();
    }
    let printed = setup.succeeds(&["get", "-c", "fruit", "t0", "t1", "t2", "t3"]);
    assert_eq!(printed.lines().count(), 4, "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_nodes_shards_and_collections() {
    let setup = Setup::with_fruit().await;
    assert_eq!(setup.run_with(&["import", "-c", "fruit", "-"], lines(0..10).as_bytes()).code, 0);
    let words = setup.succeeds(&["status"]);
    for part in ["fruit", "serving", "reachable", "No problems."] {
        assert!(words.contains(part), "{part} in {words}");
    }
    let status = setup.json(&["status", "--json"]).to_string();
    assert!(status.contains("fruit"), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_command_line_are_told_with_what_there_is() {
    let cases: [(&[&str], i32, &str); 9] = [
        (&["serch"], 2, "search"),
        (&["search", "-c", "a"], 2, "TEXT"),
        (&["search", "-c", "a", "x", "--page", "two"], 2, "two"),
        (&["search", "-c", "a", "x", "--fusion", "best"], 2, "turn-taking"),
        (&["collection", "create", "a", "--vector", "v:0"], 2, "65536"),
        (&["collection", "create", "a", "--vector", "v:3:manhattan"], 2, "euclidean"),
        (&["import", "a.jsonl"], 2, "--collection"),
        (&["serve", "--set", "limits.max_page=5", "--print-config"], 1, "limits.max_page"),
        (&["coordinator", "--print-config"], 1, "nodes"),
    ];
    for (args, code, words) in cases {
        let ended = run(None, args, b"");
        assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(words), "{words} in {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
    let ended = run(None, &["serve", "--print-config"], b"");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    for key in ["max_result_window = 100", "[sealing]", "listen = \"127.0.0.1:7700\"", "# ANTIPHON_LIMITS_SEARCH_QUEUE"]
    {
        assert!(ended.stdout.contains(key), "{key} in {}", ended.stdout);
    }
    assert!(run(None, &["--version"], b"").stdout.starts_with("antiphon "));
    assert_eq!(run(Some("http://127.0.0.1:1"), &["status"], b"").code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_told() {
    let setup = Setup::new().await;
    let taken = setup.cluster.serves[0].url().split_once("://").unwrap().1;
    let data = setup.folder.path().join("other");
    let words = setup.fails(&["serve", "--data", data.to_str().unwrap(), "--listen", taken, "--log", "error"]);
    assert!(words.contains(taken) && words.contains("in use"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_runs_to_its_end_and_shows_both_channels_in_three_languages() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("demo");
    let started = Instant::now();
    let ended = run(None, &["demo", "--data", data.to_str().unwrap()], b"");
    assert_eq!(ended.code, 0, "{ended:?}");
    for part in ["vector", "keyword", "English", "Russian", "Chinese", "Page 2"] {
        assert!(ended.stdout.contains(part), "{part} in {}", ended.stdout);
    }
    for question in ["── English: ", "── Russian: ", "── Chinese: "] {
        assert!(ended.stdout.contains(question), "{question} in {}", ended.stdout);
    }
    assert!(!ended.stderr.contains("ERROR") && !ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_are_updated_and_aliases_move() {
    let setup = Setup::with_fruit().await;
    let lines = b"{\"key\":\"a\",\"fields\":{\"t\":\"red pear\",\"note\":\"keep\"}}\n{\"key\":\"b\",\"fields\":{\"t\":\"red apple\"}}\n";
    assert_eq!(setup.run_with(&["import", "-", "--collection", "fruit", "--quiet"], lines).code, 0);
    let update = ["collection", "update", "fruit", "--text", "note", "--text", "t::2", "--expansion-search", "v:512"];
    assert_eq!(setup.succeeds(&update), "updated fruit\n");
    let shown = setup.succeeds(&["collection", "show", "fruit"]);
    assert!(shown.contains("--text t:en:2") && shown.contains("--text note:standard:1"), "{shown}");
    let conflict = setup.fails(&["collection", "update", "fruit", "--vector", "v:3"]);
    assert!(conflict.contains("SCHEMA_CONFLICT") || conflict.contains("cannot become"), "{conflict}");
    assert!(setup.fails(&["collection", "update", "fruit", "--expansion-search", "w:64"]).contains("`w`"));

    assert_eq!(setup.succeeds(&["alias", "list"]), "There are no aliases.\n");
    assert_eq!(setup.succeeds(&["alias", "set", "live", "fruit"]), "live means fruit\n");
    assert_eq!(setup.json(&["alias", "list", "--json"]), json!([{ "name": "live", "collection": "fruit" }]));
    let keys = |args: &[&str]| -> Vec<String> {
        let answer = setup.json(args);
        answer["matches"].as_array().unwrap().iter().map(|found| found["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(&["search", "--collection", "live", "keep", "--json"]), ["a"]);
    assert_eq!(keys(&["search", "--collection", "live", "+red -pear", "--query-syntax", "--json"]), ["b"]);
    assert_eq!(keys(&["search", "--collection", "live", "+red -pear", "--json"]).len(), 2);
    assert!(setup.fails(&["search", "--collection", "live", "(red", "--query-syntax"]).contains("character"));
    setup.succeeds(&["alias", "delete", "live"]);
    setup.fails(&["search", "--collection", "live", "red"]);
}

/// A collection whose vectors the server makes: created, filled and searched without a vector being sent.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_makes_vectors_of_texts() {
    let folder = antiphon_tests::models::folder("model2vec");
    let cluster = ClusterBuilder::serve(1).set("embedders.made.kind", "static");
    let cluster = cluster.set("embedders.made.path", folder.display()).start().await;
    let setup = Setup { cluster, folder: tempfile::tempdir().unwrap() };
    let create = ["collection", "create", "repairs", "--vector", "v:8", "--text", "title:en", "--text", "body:en"];
    setup.succeeds(&[&create[..], &["--embedder", "v=made:body"]].concat());
    assert!(setup.succeeds(&["collection", "show", "repairs"]).contains("--embedder v=made:body"));
    let path = setup.folder.path().join("docs.jsonl");
    let lines = r#"{"key":"wheel","fields":{"title":"bread","body":"bicycle wheel"}}
{"key":"loaf","fields":{"title":"x","body":"dough and flour"}}
"#;
    std::fs::write(&path, lines).unwrap();
    assert_eq!(setup.run(&["import", "-c", "repairs", "--quiet", path.to_str().unwrap()]).code, 0);
    let first = |args: &[&str]| {
        let answer = setup.succeeds(&[&["search", "-c", "repairs", "--json", "bread"], args].concat());
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        answer["matches"][0]["key"].as_str().unwrap().to_owned()
    };
    assert_eq!(first(&["--embed-only", "--vector-field", "v"]), "loaf");
    assert_eq!(first(&["--embed", "--fusion", "rrf", "--text-field", "title"]), "wheel");
    assert_eq!(first(&[]), "wheel");
    let status = setup.succeeds(&["status"]);
    assert!(status.contains("made") && status.contains("static") && status.contains("model2vec"), "{status}");
    let status: serde_json::Value = serde_json::from_str(&setup.succeeds(&["status", "--json"])).unwrap();
    assert_eq!(status["embedders"], json!([{"name": "made", "kind": "static", "model": "model2vec", "dimensions": 8}]));
    assert!(setup.fails(&["search", "-c", "repairs", "--embed", " "]).contains("QUERY_EMPTY"));
    assert!(
        setup.fails(&["collection", "create", "c", "--vector", "v:9", "--embedder", "v=made"]).contains("8 dimensions")
    );
    assert!(
        setup.fails(&["collection", "create", "c", "--vector", "v:8", "--embedder", "w=made"]).contains("--embedder w")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embedder_that_cannot_start_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let set = ["--set", "embedders.made.kind=static", "--set", "embedders.made.path=/nowhere"];
    let data = folder.path().to_str().unwrap();
    let ended = run(None, &[&["serve", "--listen", "127.0.0.1:0", "--data", data], &set[..]].concat(), b"");
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("the embedder made cannot start: /nowhere holds no weights"), "{ended:?}");
}
