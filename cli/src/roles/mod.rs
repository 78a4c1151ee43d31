//! The server roles: what a process of each consists of.

mod coordinator;
mod embedders;
mod guard;
mod joining;
mod listen;
mod node;
mod serve;

pub(crate) use coordinator::coordinator;
pub(crate) use node::node;
pub(crate) use serve::serve;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_coordinator::CoordinatorConfig;
use antiphon_coordinator::embed::Embedders;
use antiphon_coordinator::page::PageLaw;
use antiphon_node::config::{CacheConfig, MergingConfig, SealingConfig};
use antiphon_node::{Node, NodeConfig};
use antiphon_store::Store;

use crate::failure::Failure;
use crate::settings::Settings;
use crate::telemetry::Endpoint;

fn node_config(settings: &Settings) -> NodeConfig {
    let defaults = NodeConfig::default();
    let Settings { limits, sealing, merging, views, cache, log, .. } = settings;
    NodeConfig {
        id: settings.id.clone(),
        cache_dir: Some(settings.cache_dir.clone()),
        cache: CacheConfig { max_bytes: cache.max_bytes, downloads: cache.downloads as usize },
        search_threads: match limits.search_threads {
            0 => defaults.search_threads,
            threads => threads as usize,
        },
        search_queue: limits.search_queue as usize,
        filter_cache_bytes: limits.filter_cache_bytes as usize,
        default_timeout: Duration::from_millis(limits.default_timeout_ms),
        max_unsealed_rows: limits.max_unsealed_rows,
        max_unsealed_bytes: limits.max_unsealed_bytes,
        group_bytes: log.group_bytes as usize,
        linger: Duration::from_millis(log.linger_ms),
        sealing: SealingConfig {
            rows: sealing.seal_rows,
            bytes: sealing.seal_bytes,
            age: Duration::from_secs(sealing.seal_age_s),
        },
        merging: MergingConfig {
            max_rows: merging.max_segment_rows,
            fan_in: merging.segments_per_tier as usize,
            dead_share: merging.max_deleted_share,
            ..defaults.merging
        },
        view_retention: Duration::from_secs(views.retention_s),
        max_views: views.max_views as usize,
        ..defaults
    }
}

/// `searches_a_core` is how many run at once where the settings don't say.
fn coordinator_config(settings: &Settings, embedders: Embedders, searches_a_core: usize) -> CoordinatorConfig {
    let limits = &settings.limits;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    CoordinatorConfig {
        law: PageLaw { max_result_window: limits.max_result_window, max_page_size: limits.max_page_size },
        max_message_bytes: limits.max_message_bytes as usize,
        max_response_bytes: limits.max_response_bytes as usize,
        default_timeout: Duration::from_millis(limits.default_timeout_ms),
        max_running_searches: match limits.max_concurrent_searches {
            0 => searches_a_core * cores,
            searches => searches as usize,
        },
        max_waiting_searches: limits.search_queue as usize,
        slow_search: (settings.logging.slow_search_ms > 0)
            .then(|| Duration::from_millis(settings.logging.slow_search_ms)),
        embedders,
        ..CoordinatorConfig::default()
    }
}

/// Serves metrics, where the settings say so.
async fn metrics(settings: &Settings, node: Option<&Arc<Node>>) -> Result<Option<Endpoint>, Failure> {
    // Checked with all settings.
    Endpoint::start(settings.metrics.listen.parse().ok(), node.cloned()).await
}

async fn open_store(url: &str) -> Result<Store, Failure> {
    let owned = url.to_owned();
    let opened = tokio::task::spawn_blocking(move || Store::open(&owned)).await;
    match opened {
        Ok(Ok(store)) => Ok(store),
        Ok(Err(error)) => Err(Failure::of(format!("the store {url}"), &error)),
        Err(error) => Err(Failure::of(format!("the store {url}"), &error)),
    }
}
