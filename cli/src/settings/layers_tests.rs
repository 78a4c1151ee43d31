//! Which layer wins, and that all faults are found at once.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;

use super::*;
use crate::settings::{LogFormat, print};

const NO_LOGGING: LoggingArgs = LoggingArgs { filter: None, format: None };

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("antiphon.toml");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn environment(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

#[test]
fn flag_over_environment_over_file_over_default() {
    let (_folder, path) = file(
        "listen = '127.0.0.1:1'\nid = 'file'\n[limits]\nmax_page_size = 1\nsearch_queue = 1\n[log]\nlinger_ms = 1\n\
         [merging]\nmax_deleted_share = 0.5\n",
    );
    let args = ServerArgs {
        config: Some(path),
        listen: Some("127.0.0.1:3".to_owned()),
        set: vec!["limits.max_page_size=3".to_owned()],
        ..ServerArgs::default()
    };
    let variables = environment(&[
        ("ANTIPHON_LISTEN", "127.0.0.1:2"),
        ("ANTIPHON_LIMITS_MAX_PAGE_SIZE", "2"),
        ("ANTIPHON_LIMITS_SEARCH_QUEUE", "2"),
        ("ANTIPHON_NODES", "http://a:1, http://b:2"),
        ("ANTIPHON_LOGGING_FORMAT", "json"),
        ("ANTIPHON_PORT", "tcp://10.0.0.1:7700"),
    ]);
    let settings = load_with(Role::Serve, &args, &NO_LOGGING, &variables).unwrap();
    assert_eq!(settings.listen.port(), 3);
    assert_eq!(settings.id, "file");
    assert_eq!((settings.limits.max_page_size, settings.limits.search_queue), (3, 2));
    assert_eq!((settings.limits.max_result_window, settings.log.linger_ms), (100, 1));
    assert_eq!(settings.nodes, ["http://a:1", "http://b:2"]);
    assert_eq!(settings.logging.format, LogFormat::Json);
    assert!((settings.merging.max_deleted_share - 0.5).abs() < f64::EPSILON);
}

#[test]
fn all_faults_of_all_layers_are_listed() {
    let (_folder, path) = file(
        "colour = 'red'\nlisten = 7700\n[limits]\nmax_page_size = 'many'\nmax_pages = 3\nsearch_queue = 0\n[extra]\na = 1\n",
    );
    let args = ServerArgs {
        config: Some(path),
        set: vec!["views.retention_s=0".to_owned(), "nonsense".to_owned(), "log.lingers=1".to_owned()],
        ..ServerArgs::default()
    };
    let variables = environment(&[("ANTIPHON_SEALING_SEAL_ROWS", "x"), ("ANTIPHON_SEALING_SEAL_BYTES", "999999999")]);
    let logging = LoggingArgs { filter: Some("a=b=c".to_owned()), format: None };
    let faults = load_with(Role::Coordinator, &args, &logging, &variables).unwrap_err();
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    for key in [
        "colour",
        "listen",
        "limits.max_page_size",
        "limits.max_pages",
        "limits.search_queue",
        "extra",
        "views.retention_s",
        "--set",
        "log.lingers",
        "sealing.seal_rows",
        "limits.max_unsealed_bytes",
        "logging.filter",
        "store",
        "nodes",
    ] {
        assert!(keys.contains(&key), "{key} is missing from {faults:#?}");
    }
    assert_eq!(keys.len(), 14, "{faults:#?}");
    let queue = faults.iter().find(|fault| fault.key == "limits.search_queue").unwrap();
    assert!(queue.words.contains("antiphon.toml") && queue.words.contains("1 to 1000000"), "{}", queue.words);
}

#[test]
fn a_file_that_is_missing_or_no_toml_is_a_fault() {
    let args = ServerArgs { config: Some(PathBuf::from("/nowhere/antiphon.toml")), ..ServerArgs::default() };
    let faults = load_with(Role::Serve, &args, &NO_LOGGING, &|_| None).unwrap_err();
    assert!(faults[0].words.contains("can't be read"));
    let (_folder, path) = file("[limits\n");
    let args = ServerArgs { config: Some(path), ..ServerArgs::default() };
    let faults = load_with(Role::Serve, &args, &NO_LOGGING, &|_| None).unwrap_err();
    assert!(faults[0].words.contains("is not TOML") && !faults[0].words.contains('\n'));
}

#[test]
fn store_and_cache_follow_the_data_folder() {
    let args = ServerArgs { data: Some(PathBuf::from("/srv/my data")), ..ServerArgs::default() };
    let settings = load_with(Role::Serve, &args, &NO_LOGGING, &|_| None).unwrap();
    assert_eq!(settings.store, "file:///srv/my%20data");
    assert_eq!(settings.cache_dir, PathBuf::from("/srv/my data/cache"));
}

#[test]
fn nodes_may_be_named_as_host_and_port() {
    let nodes = Some(vec!["a:1".to_owned(), "http://b:2".to_owned()]);
    let args = ServerArgs { nodes, store: Some("memory://".to_owned()), ..ServerArgs::default() };
    let settings = load_with(Role::Coordinator, &args, &NO_LOGGING, &|_| None).unwrap();
    assert_eq!(settings.nodes, ["http://a:1", "http://b:2"]);
}

#[test]
fn what_is_printed_reads_back_the_same() {
    let args = ServerArgs { set: vec!["nodes=http://a:1,http://b:2".to_owned()], ..ServerArgs::default() };
    let settings = load_with(Role::Serve, &args, &NO_LOGGING, &|_| None).unwrap();
    let text = print(&settings);
    let (_folder, path) = file(&text);
    let args = ServerArgs { config: Some(path), ..ServerArgs::default() };
    assert_eq!(load_with(Role::Serve, &args, &NO_LOGGING, &|_| None).unwrap(), settings, "{text}");
    assert!(text.contains("# ANTIPHON_LIMITS_MAX_RESULT_WINDOW\nmax_result_window = 100\n"), "{text}");
}

#[test]
fn embedders_take_their_keys_from_every_layer() {
    let (_folder, path) = file(
        "[embedders.mini-lm]\nkind = 'static'\npath = '/file'\nthreads = 1\nqueue = 5\n\
         [embedders.remote]\nkind = 'openai'\nbase_url = 'http://h:1/v1'\nmodel = 'm'\n",
    );
    let args = ServerArgs {
        config: Some(path),
        set: vec!["embedders.mini-lm.threads=3".to_owned(), "embedders.flag.kind=static".to_owned()],
        ..ServerArgs::default()
    };
    let variables = environment(&[
        ("ANTIPHON_EMBEDDERS", "env, remote"),
        ("ANTIPHON_EMBEDDERS_MINI_LM_THREADS", "2"),
        ("ANTIPHON_EMBEDDERS_MINI_LM_PATH", "/environment"),
        ("ANTIPHON_EMBEDDERS_ENV_KIND", "static"),
        ("ANTIPHON_EMBEDDERS_ENV_PATH", "/env"),
        ("ANTIPHON_EMBEDDERS_FLAG_PATH", "/flag"),
        ("ANTIPHON_EMBEDDERS_REMOTE_RETRIES", "7"),
        ("ANTIPHON_EMBEDDERS_REMOTE_API_KEY_ENV", "THE_KEY"),
    ]);
    let settings = load_with(Role::Serve, &args, &NO_LOGGING, &variables).unwrap();
    let names: Vec<&str> = settings.embedders.keys().map(String::as_str).collect();
    assert_eq!(names, ["env", "flag", "mini-lm", "remote"]);
    let mini = &settings.embedders["mini-lm"];
    assert_eq!((mini.path.to_str().unwrap(), mini.threads, mini.queue), ("/environment", 3, 5));
    assert_eq!(settings.embedders["flag"].path.to_str(), Some("/flag"));
    let remote = &settings.embedders["remote"];
    assert_eq!((remote.retries, remote.api_key_env.as_str(), remote.max_batch_texts), (7, "THE_KEY", 32));
    // What is printed is read again as the same.
    let (_folder, path) = file(&print(&settings));
    let args = ServerArgs { config: Some(path), ..ServerArgs::default() };
    assert_eq!(load_with(Role::Serve, &args, &NO_LOGGING, &|_| None).unwrap(), settings);
}

#[test]
fn faults_of_embedders_are_named_by_their_keys() {
    let (_folder, path) = file(
        "[embedders.bad]\n[embedders.local]\nkind = 'static'\npath = '/m'\nmodel = 'm'\nqueue = 0\ncolour = 'red'\n\
         [embedders.remote]\nkind = 'openai'\nbase_url = 'http://user:secret@h/v1'\nmodel = 'm'\n\
         [embedders.\"Bad Name\"]\nkind = 'magic'\n[embedders]\nflat = 1\n",
    );
    let args = ServerArgs {
        config: Some(path),
        set: vec!["embedders.local.threads=many".to_owned(), "embedders.x=1".to_owned()],
        ..ServerArgs::default()
    };
    let faults = load_with(Role::Serve, &args, &NO_LOGGING, &|_| None).unwrap_err();
    let mut keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    keys.sort_unstable();
    let wanted = [
        "embedders",
        "embedders.Bad Name.kind",
        "embedders.bad.kind",
        "embedders.flat",
        "embedders.local.colour",
        "embedders.local.model",
        "embedders.local.queue",
        "embedders.local.threads",
        "embedders.remote.base_url",
        "embedders.x",
    ];
    assert_eq!(keys, wanted);
    assert!(faults.iter().all(|fault| !fault.words.contains("secret")), "{faults:?}");
}

#[test]
fn files_of_tls_need_each_other_and_make_nodes_be_called_over_it() {
    let faults = |set: &[&str]| {
        let set = set.iter().map(|pair| (*pair).to_owned()).collect();
        let args = ServerArgs { set, ..ServerArgs::default() };
        load_with(Role::Serve, &args, &NO_LOGGING, &environment(&[]))
            .map_err(|faults| faults.into_iter().map(|fault| fault.key).collect::<Vec<_>>())
    };
    assert_eq!(faults(&["tls.cert_file=a.pem"]).unwrap_err(), ["tls.key_file"]);
    assert_eq!(faults(&["tls.key_file=a.key"]).unwrap_err(), ["tls.cert_file"]);
    assert_eq!(faults(&["tls.client_ca_file=ca.pem"]).unwrap_err(), ["tls.cert_file"]);
    assert_eq!(faults(&["logging.audit=some"]).unwrap_err(), ["logging.audit"]);
    assert_eq!(faults(&["nodes=a:1,http://b:1"]).unwrap().nodes, ["http://a:1", "http://b:1"]);
    assert_eq!(faults(&["nodes=a:1,http://b:1", "tls.ca_file=c"]).unwrap().nodes, ["https://a:1", "http://b:1"]);
}
