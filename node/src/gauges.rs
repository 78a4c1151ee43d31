//! What a node tells of its shards, its disk and its search threads as numbers; see docs/metrics.md.

use std::collections::HashMap;
use std::sync::Arc;

use metrics::gauge;

use crate::node::Node;
use crate::shard::Shard;

impl Node {
    /// Sets the gauges to what is so now.
    pub async fn record_gauges(&self) {
        let pool = self.pool();
        gauge!("antiphon_search_threads").set(pool.threads() as f64);
        gauge!("antiphon_search_jobs").set(pool.jobs() as f64);
        let cache = self.cache_usage();
        gauge!("antiphon_cache_bytes").set(cache.bytes as f64);
        gauge!("antiphon_cache_limit_bytes").set(cache.limit_bytes as f64);
        gauge!("antiphon_cache_is_full").set(f64::from(u8::from(cache.problem.is_some())));
        let counts = [
            ("antiphon_cache_hits_total", cache.hits),
            ("antiphon_cache_downloads_total", cache.downloads),
            ("antiphon_cache_downloaded_bytes_total", cache.downloaded_bytes),
            ("antiphon_cache_evictions_total", cache.evictions),
            ("antiphon_cache_damaged_files_total", cache.damaged),
        ];
        for (name, count) in counts {
            metrics::counter!(name).absolute(count);
        }
        let names = self.collection_names();
        for ((uid, number), shard) in self.open_shards().await {
            let collection = names.get(&uid).unwrap_or(&uid);
            record_shard(collection, number, &shard);
        }
    }

    /// The names of collections by their uids, as last seen.
    fn collection_names(&self) -> HashMap<String, String> {
        let catalog = self.cached_catalog();
        let entries = &catalog.catalog.collections;
        let named = entries.iter().filter_map(|entry| {
            let collection = entry.collection.as_ref()?;
            Some((collection.uid.clone(), collection.name.clone()))
        });
        named.collect()
    }
}

fn record_shard(collection: &str, number: u32, shard: &Arc<Shard>) {
    let view = shard.current();
    let labels = [("collection", collection.to_owned()), ("shard", number.to_string())];
    let set = |name: &'static str, value: f64| gauge!(name, &labels).set(value);
    set("antiphon_shard_documents", view.num_docs() as f64);
    set("antiphon_shard_deleted_rows", view.num_deleted() as f64);
    set("antiphon_shard_segments", view.sealed.len() as f64);
    set("antiphon_shard_bytes", view.size_bytes() as f64);
    set("antiphon_shard_unsealed_rows", view.num_unsealed() as f64);
    set("antiphon_shard_unsealed_bytes", view.live_bytes() as f64);
    set("antiphon_shard_seq", view.seq as f64);
    set("antiphon_shard_manifest_version", view.manifest_version as f64);
    set("antiphon_shard_quarantined_segments", view.quarantined.len() as f64);
    set("antiphon_shard_is_owner", f64::from(u8::from(shard.is_owner())));
    set("antiphon_shard_kept_views", shard.num_kept_views() as f64);
}
