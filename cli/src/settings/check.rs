//! What values settings may have, alone and together, and what is filled in from others.

use std::fmt::Display;
use std::ops::RangeInclusive;

use tracing_subscriber::EnvFilter;
use url::Url;

use super::layers::{Fault, Origins};
use super::{Role, Settings};

/// Gives `store` and `cache_dir` their values where they follow from `data`, and nodes named as host:port their scheme.
pub(super) fn fill_in(settings: &mut Settings, role: Role, faults: &mut Vec<Fault>) {
    let tls = [&settings.tls.cert_file, &settings.tls.ca_file];
    let has_tls = tls.iter().any(|path| !path.as_os_str().is_empty());
    for node in &mut settings.nodes {
        if !node.contains("://") {
            node.insert_str(0, if has_tls { "https://" } else { "http://" });
        }
    }
    if settings.cache_dir.as_os_str().is_empty() {
        settings.cache_dir = settings.data.join("cache");
    }
    if settings.store.is_empty() && role == Role::Serve {
        let url = std::path::absolute(&settings.data).ok().and_then(|path| Url::from_directory_path(path).ok());
        match url {
            Some(url) => settings.store = url.as_str().trim_end_matches('/').to_owned(),
            None => faults.push(Fault {
                key: "data".to_owned(),
                words: format!("`{}` can't be written as a file URL; set store", settings.data.display()),
            }),
        }
    }
}

/// Adds a fault for each rule that is not kept.
pub(super) fn check(settings: &Settings, role: Role, origins: &Origins, faults: &mut Vec<Fault>) {
    let mut rules = Rules { origins, faults };
    let Settings { limits, sealing, merging, views, cache, log, .. } = settings;

    rules.within("limits.max_result_window", limits.max_result_window, 1..=10_000);
    rules.within("limits.max_page_size", limits.max_page_size, 1..=10_000);
    rules.within("limits.max_message_bytes", limits.max_message_bytes, 65_536..=1 << 30);
    rules.within("limits.max_response_bytes", limits.max_response_bytes, 65_536..=1 << 30);
    rules.within("limits.search_threads", limits.search_threads, 0..=1024);
    rules.within("limits.max_concurrent_searches", limits.max_concurrent_searches, 0..=1_000_000);
    rules.within("limits.search_queue", limits.search_queue, 1..=1_000_000);
    rules.within("limits.filter_cache_bytes", limits.filter_cache_bytes, 0..=16 << 30);
    rules.within("limits.default_timeout_ms", limits.default_timeout_ms, 1..=3_600_000);
    rules.within("limits.max_connection_age_s", limits.max_connection_age_s, 0..=86_400);
    rules.at_least("limits.max_unsealed_rows", limits.max_unsealed_rows, "sealing.seal_rows", sealing.seal_rows);
    rules.at_least("limits.max_unsealed_bytes", limits.max_unsealed_bytes, "sealing.seal_bytes", sealing.seal_bytes);

    rules.within("sealing.seal_rows", sealing.seal_rows, 1..=10_000_000);
    rules.within("sealing.seal_bytes", sealing.seal_bytes, 65_536..=16 << 30);
    rules.within("sealing.seal_age_s", sealing.seal_age_s, 1..=86_400);

    rules.within("merging.segments_per_tier", merging.segments_per_tier, 2..=64);
    rules.within("merging.max_segment_rows", merging.max_segment_rows, 1_000..=100_000_000);
    let share = merging.max_deleted_share;
    rules.hold("merging.max_deleted_share", &share, share > 0.0 && share <= 1.0, "must be above 0 and at most 1");

    rules.within("views.retention_s", views.retention_s, 1..=86_400);
    rules.within("views.max_views", views.max_views, 1..=1_000_000);

    rules.within("cache.max_bytes", cache.max_bytes, 0..=i64::MAX as u64);
    rules.within("cache.downloads", cache.downloads, 1..=1024);

    rules.within("log.group_bytes", log.group_bytes, 1_024..=limits.max_message_bytes.max(1_024));
    rules.within("log.linger_ms", log.linger_ms, 0..=10_000);

    if let Err(error) = EnvFilter::try_new(&settings.logging.filter) {
        rules.hold("logging.filter", &settings.logging.filter, false, &format!("is no filter: {error}"));
    }

    check_embedders(settings, &mut rules);

    let id = &settings.id;
    let id_is_good = !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_graphic());
    rules.hold("id", id, id_is_good, "must have 1 to 64 visible ASCII characters");
    rules.hold("data", &settings.data.display(), !settings.data.as_os_str().is_empty(), "must name a folder");
    if settings.store.is_empty() {
        if role != Role::Serve {
            rules.missing("store", "must be set for this role");
        }
    } else {
        rules.url("store", &settings.store, &["file", "s3", "memory"]);
    }
    for node in &settings.nodes {
        rules.url("nodes", node, &["http", "https"]);
    }
    let metrics = &settings.metrics.listen;
    let is_address = metrics.is_empty() || metrics.parse::<std::net::SocketAddr>().is_ok();
    rules.hold("metrics.listen", metrics, is_address, "must be an IP address and a port, as 127.0.0.1:7702");
    let traces = &settings.traces;
    if !traces.endpoint.is_empty() {
        rules.url("traces.endpoint", &traces.endpoint, &["http"]);
    }
    let share = traces.sample_share;
    rules.hold("traces.sample_share", &share, (0.0..=1.0).contains(&share), "must be 0 to 1");
    check_cluster(settings, &mut rules);
    check_tls(settings, &mut rules);
    if role == Role::Coordinator && settings.nodes.is_empty() && settings.cluster.gossip_listen.is_empty() {
        rules.missing("nodes", "must name at least one node for this role, unless cluster.gossip_listen is set");
    }
}

/// How the process takes part in a cluster.
fn check_cluster(settings: &Settings, rules: &mut Rules<'_>) {
    let cluster = &settings.cluster;
    rules.within("cluster.gossip_interval_ms", cluster.gossip_interval_ms, 20..=10_000);
    rules.within("cluster.drain_s", cluster.drain_s, 0..=3_600);
    let is_name = (1..=64).contains(&cluster.name.len()) && cluster.name.bytes().all(|byte| byte.is_ascii_graphic());
    rules.hold("cluster.name", &cluster.name, is_name, "must have 1 to 64 visible ASCII characters");
    let addresses =
        [("cluster.gossip_listen", &cluster.gossip_listen), ("cluster.gossip_advertise", &cluster.gossip_advertise)];
    for (key, address) in addresses.into_iter().filter(|(_, address)| !address.is_empty()) {
        let is_address = address.parse::<std::net::SocketAddr>().is_ok();
        rules.hold(key, address, is_address, "must be an IP address and a port, as 127.0.0.1:7701");
    }
    if !cluster.advertise.is_empty() {
        rules.url("cluster.advertise", &cluster.advertise, &["http", "https"]);
    }
    for seed in &cluster.seeds {
        let has_port =
            seed.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        rules.hold("cluster.seeds", seed, has_port, "must be host:port");
    }
    if cluster.gossip_listen.is_empty() && !cluster.seeds.is_empty() {
        rules.missing("cluster.gossip_listen", "must be set where there are cluster.seeds");
    }
    if !cluster.gossip_listen.is_empty() && !settings.nodes.is_empty() {
        rules.missing("nodes", "can't be named where cluster.gossip_listen is set: members find each other");
    }
}

/// Files that need each other.
fn check_tls(settings: &Settings, rules: &mut Rules<'_>) {
    let is_set = |path: &std::path::PathBuf| !path.as_os_str().is_empty();
    let tls = &settings.tls;
    if is_set(&tls.cert_file) != is_set(&tls.key_file) {
        let missing = if is_set(&tls.cert_file) { "tls.key_file" } else { "tls.cert_file" };
        rules.missing(missing, "must be set too: a certificate and its key go together");
    }
    if is_set(&tls.client_ca_file) && !is_set(&tls.cert_file) {
        rules.missing("tls.cert_file", "must be set where tls.client_ca_file is");
    }
}

/// Names and settings of embedders.
fn check_embedders(settings: &Settings, rules: &mut Rules<'_>) {
    for (name, embedder) in &settings.embedders {
        let is_name = (1..=64).contains(&name.len())
            && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
        if !is_name {
            rules.missing("embedders", &format!("the name {name:?} is not of the form [a-z0-9_-]{{1,64}}"));
        }
        for (key, words) in embedder.faults() {
            rules.missing(&format!("embedders.{name}.{key}"), &words);
        }
        // A password in a URL would be shown by --print-config.
        if !embedder.base_url.is_empty() {
            let key = format!("embedders.{name}.base_url");
            match Url::parse(&embedder.base_url) {
                Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                    rules.missing(&key, "must hold no user and no password; see api_key_file and api_key_env");
                }
                _ => rules.url(&key, &embedder.base_url, &["http", "https"]),
            }
        }
    }
}

struct Rules<'a> {
    origins: &'a Origins,
    faults: &'a mut Vec<Fault>,
}

impl Rules<'_> {
    fn hold(&mut self, key: &str, value: &dyn Display, is_good: bool, rule: &str) {
        if !is_good {
            let origin = self.origins.get(key).map_or("the default", String::as_str);
            self.faults.push(Fault { key: key.to_owned(), words: format!("`{value}` from {origin} {rule}") });
        }
    }

    fn missing(&mut self, key: &str, rule: &str) {
        self.faults.push(Fault { key: key.to_owned(), words: rule.to_owned() });
    }

    fn within<N: PartialOrd + Display>(&mut self, key: &str, value: N, range: RangeInclusive<N>) {
        let rule = format!("must be {} to {}", range.start(), range.end());
        self.hold(key, &value, range.contains(&value), &rule);
    }

    fn at_least(&mut self, key: &str, value: u64, other_key: &str, other: u64) {
        self.hold(key, &value, value >= other, &format!("must be at least {other_key}, which is {other}"));
    }

    fn url(&mut self, key: &str, text: &str, schemes: &[&str]) {
        let is_good = Url::parse(text).is_ok_and(|url| schemes.contains(&url.scheme()));
        let list = schemes.iter().map(|scheme| format!("{scheme}://")).collect::<Vec<_>>().join(", ");
        self.hold(key, &text, is_good, &format!("must be a URL that begins with {list}").replace(", ", " or "));
    }
}
