//! The node: the shards that it holds, opened on first use, and what they share.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antiphon_membership::{Dialer, Membership, Phase, ShardKey};
use antiphon_proto::internal::ShardRef;
use antiphon_proto::store::{Catalog, CollectionEntry};
use antiphon_store::{CatalogStore, CollectionUid, ShardId, Store, VersionedCatalog};
use futures::future::BoxFuture;
use tokio::sync::{Mutex, OnceCell};
use tokio::task::JoinHandle;

use crate::cache::{CacheUsage, SegmentCache};
use crate::cluster::{Steward, Wanted};
use crate::config::NodeConfig;
use crate::error::NodeError;
use crate::schema::ShardSchema;
use crate::search::{FilterCache, SearchPool};
use crate::shard::{Shard, ShardContext};

/// How often the node looks for collections that were deleted.
const CATALOG_INTERVAL: Duration = Duration::from_secs(2);
/// Shards opened at once at start.
const OPEN_AT_ONCE: usize = 4;

/// A shard that is open, or that whoever asks for it first opens.
#[derive(Default)]
struct Slot {
    open: OnceCell<Arc<Shard>>,
    /// The same shard under an older schema. It finishes what it took before this one is opened, for it cannot write behind a
    /// newer one.
    former: Option<Arc<Shard>>,
}

impl Slot {
    /// What is to be closed where the slot is given up.
    fn newest(&self) -> Option<&Arc<Shard>> {
        self.open.get().or(self.former.as_ref())
    }
}

/// A node. Stops with [`Node::stop`].
pub struct Node {
    config: Arc<NodeConfig>,
    catalog: CatalogStore,
    context: ShardContext,
    pool: Arc<SearchPool>,
    filters: Arc<FilterCache>,
    slots: Mutex<HashMap<(String, u32), Arc<Slot>>>,
    background: Mutex<Vec<JoinHandle<()>>>,
    membership: OnceCell<Arc<Membership>>,
    stopping: AtomicBool,
}

impl Node {
    /// Starts a node over a store. Holds no shard until it is asked for one, or for all.
    ///
    /// # Errors
    /// Where the cache directory or the search threads cannot be made, or the catalog not be read.
    pub async fn start(config: NodeConfig, store: Store) -> Result<Arc<Self>, NodeError> {
        let config = Arc::new(config);
        let pool = SearchPool::start(config.search_threads, config.search_queue)
            .map_err(|error| NodeError::Internal(format!("the search threads: {error}")))?;
        let pool = Arc::new(pool);
        let cache = SegmentCache::open(config.cache_dir.as_deref(), &config.cache)
            .map_err(|error| NodeError::Internal(format!("the cache directory: {error}")))?;
        let context =
            ShardContext { store: store.clone(), config: Arc::clone(&config), cache, threads: pool.threads() };
        let catalog = CatalogStore::new(store);
        catalog.refresh().await?;
        let node = Arc::new(Self {
            filters: Arc::new(FilterCache::new(config.filter_cache_bytes)),
            config,
            catalog,
            context,
            pool,
            slots: Mutex::default(),
            background: Mutex::default(),
            membership: OnceCell::new(),
            stopping: AtomicBool::new(false),
        });
        let background = tokio::spawn(watch_catalog(Arc::downgrade(&node)));
        node.background.lock().await.push(background);
        Ok(node)
    }

    /// Joins a cluster: from now on the node holds the shards that its members place on it. Once.
    pub async fn join(self: &Arc<Self>, membership: Arc<Membership>, dialer: Dialer) {
        if self.membership.set(Arc::clone(&membership)).is_ok() {
            let steward = Steward::start(self, membership, dialer);
            self.background.lock().await.push(steward);
        }
    }

    /// Tells the cluster that this node is about to stop, and waits until others serve its shards: for so long at most, and
    /// not at all where there is nobody else.
    pub async fn drain(&self, at_most: Duration) {
        let Some(membership) = self.membership.get() else { return };
        membership.set_phase(Phase::Draining).await;
        let held: Vec<ShardKey> = self.open_shards().await.into_keys().collect();
        let wanted = self.wanted();
        let mut members = membership.members();
        let handed_over = members.wait_for(|members| {
            let takers: Vec<_> = members.nodes().filter(|member| member.takes_shards()).collect();
            let is_served = |shard: &ShardKey| takers.iter().any(|member| member.serves(shard));
            takers.is_empty() || held.iter().filter(|shard| wanted.contains_key(*shard)).all(is_served)
        });
        if tokio::time::timeout(at_most, handed_over).await.is_err() {
            tracing::warn!(after_s = at_most.as_secs(), "others do not serve all of this node's shards yet");
        }
    }

    /// The shards of all collections, as last seen, and how many copies each should have.
    pub(crate) fn wanted(&self) -> Wanted {
        let catalog = self.catalog.cached();
        let collections = catalog.catalog.collections.iter().filter_map(|entry| entry.collection.as_ref());
        collections
            .flat_map(|collection| {
                let copies = collection.replica_count.max(1) as usize;
                (0..collection.shard_count).map(move |shard| ((collection.uid.clone(), shard), copies))
            })
            .collect()
    }

    /// The shards that are open.
    pub(crate) async fn open_shards(&self) -> BTreeMap<ShardKey, Arc<Shard>> {
        let slots = self.slots.lock().await;
        slots.iter().filter_map(|(key, slot)| Some((key.clone(), Arc::clone(slot.open.get()?)))).collect()
    }

    /// A shard that is open.
    pub(crate) async fn find_open(&self, shard: &ShardRef) -> Option<Arc<Shard>> {
        let key = (shard.collection_uid.clone(), shard.shard);
        self.slots.lock().await.get(&key).and_then(|slot| slot.open.get()).cloned()
    }

    /// Closes a shard. Who asks for it opens it anew.
    pub(crate) async fn close(&self, key: &ShardKey) {
        let slot = self.slots.lock().await.remove(key);
        if let Some(shard) = slot.as_ref().and_then(|slot| slot.newest()) {
            shard.drain().await;
            shard.stop().await;
        }
    }

    /// The settings.
    pub fn config(&self) -> &Arc<NodeConfig> {
        &self.config
    }

    /// The catalog as last seen.
    pub(crate) fn cached_catalog(&self) -> Arc<VersionedCatalog> {
        self.catalog.cached()
    }

    /// What the disk is used for.
    pub fn cache_usage(&self) -> CacheUsage {
        self.context.cache.usage()
    }

    /// The pool that searches run on.
    pub fn pool(&self) -> &Arc<SearchPool> {
        &self.pool
    }

    /// What filters of earlier searches found.
    pub fn filters(&self) -> &Arc<FilterCache> {
        &self.filters
    }

    /// Opens every shard of every collection: for a node that serves them all. One that cannot be opened is logged and
    /// tried again when it is asked for.
    pub async fn open_all(self: &Arc<Self>) {
        let catalog = self.catalog.cached();
        let collections = catalog.catalog.collections.iter().filter_map(|entry| entry.collection.as_ref());
        let shards: Vec<ShardRef> = collections
            .flat_map(|collection| {
                let uid = collection.uid.clone();
                (0..collection.shard_count).map(move |shard| ShardRef {
                    collection_uid: uid.clone(),
                    shard,
                    schema_version: 0,
                })
            })
            .collect();
        let mut opening = tokio::task::JoinSet::new();
        for shard in shards {
            while opening.len() >= OPEN_AT_ONCE {
                opening.join_next().await;
            }
            let node = Arc::clone(self);
            opening.spawn(async move {
                if let Err(error) = node.shard(&shard).await {
                    tracing::error!(collection = shard.collection_uid, shard = shard.shard, %error, "a shard cannot be opened");
                }
            });
        }
        while opening.join_next().await.is_some() {}
    }

    /// A shard, opened where it was not yet.
    ///
    /// # Errors
    /// [`NodeError::UnknownShard`]; what opening gives.
    pub async fn shard(self: &Arc<Self>, shard: &ShardRef) -> Result<Arc<Shard>, NodeError> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(NodeError::ShuttingDown);
        }
        let key = (shard.collection_uid.clone(), shard.shard);
        let slot = Arc::clone(self.slots.lock().await.entry(key).or_default());
        if let Some(open) = slot.open.get() {
            return match open.is_behind(shard.schema_version) {
                false => Ok(Arc::clone(open)),
                true => self.reopen(shard, &slot, Arc::clone(open)).await,
            };
        }
        // On its own task: opening goes on though the caller's deadline passes, so that a later call finds it done.
        let (node, shard) = (Arc::clone(self), shard.clone());
        let opening = tokio::spawn(async move {
            let opened = slot.open.get_or_try_init(|| node.open(&shard, slot.former.as_deref())).await.cloned();
            if let Err(NodeError::UnknownShard { .. }) = &opened {
                node.slots.lock().await.remove(&(shard.collection_uid.clone(), shard.shard));
            }
            opened
        });
        opening.await.map_err(|error| NodeError::Internal(error.to_string()))?
    }

    /// Opens a shard anew where the catalog has a newer schema than it was opened with.
    async fn reopen(
        self: &Arc<Self>,
        shard: &ShardRef,
        slot: &Arc<Slot>,
        open: Arc<Shard>,
    ) -> Result<Arc<Shard>, NodeError> {
        let uid = &shard.collection_uid;
        let newest = find(&self.catalog.refresh().await?.catalog, uid).map(|entry| entry.schema_version);
        match newest {
            None => return Err(NodeError::UnknownShard { uid: uid.clone(), shard: shard.shard }),
            Some(version) if version < shard.schema_version => {
                let words = format!("the catalog has no version {} of the schema", shard.schema_version);
                return Err(NodeError::StoreUnavailable(words));
            }
            Some(version) if version <= open.schema().version => return Ok(open),
            Some(_) => {}
        }
        let mut slots = self.slots.lock().await;
        let key = (uid.clone(), shard.shard);
        if slots.get(&key).is_some_and(|held| Arc::ptr_eq(held, slot)) {
            // Nobody finds it any more; who has it finishes.
            slots.insert(key, Arc::new(Slot { former: Some(open), ..Slot::default() }));
        }
        drop(slots);
        shard_of(Arc::clone(self), shard.clone()).await
    }

    async fn open(&self, shard: &ShardRef, former: Option<&Shard>) -> Result<Arc<Shard>, NodeError> {
        if let Some(former) = former {
            former.drain().await;
            former.stop().await;
        }
        let unknown = || NodeError::UnknownShard { uid: shard.collection_uid.clone(), shard: shard.shard };
        // The newest, for the shard's data may be of a schema that is newer than the cached one.
        let entry = find(&self.catalog.refresh().await?.catalog, &shard.collection_uid).cloned().ok_or_else(unknown)?;
        let (collection, version) = (entry.collection.unwrap_or_default(), entry.schema_version);
        if shard.shard >= collection.shard_count {
            return Err(unknown());
        }
        let schema = Arc::new(ShardSchema::resolve_version(&collection.schema.unwrap_or_default(), version)?);
        let uid: CollectionUid = shard.collection_uid.parse().map_err(|_| unknown())?;
        let id = ShardId::new(uid, shard.shard).map_err(|_| unknown())?;
        Ok(Arc::new(Shard::open(id, schema, self.context.clone()).await?))
    }

    /// Closes shards of collections that are gone, and deletes what is left of those that the catalog says were deleted.
    async fn drop_deleted(&self) -> Result<(), NodeError> {
        let catalog = self.catalog.refresh().await?;
        let exists = |uid: &str| {
            catalog.catalog.collections.iter().filter_map(|entry| entry.collection.as_ref()).any(|c| c.uid == uid)
        };
        let gone: Vec<Arc<Slot>> = {
            let mut slots = self.slots.lock().await;
            let keys: Vec<_> = slots.keys().filter(|(uid, _)| !exists(uid)).cloned().collect();
            keys.iter().filter_map(|key| slots.remove(key)).collect()
        };
        for shard in gone.iter().filter_map(|slot| slot.newest()) {
            shard.stop().await;
        }
        // Not merely what the catalog does not name: a catalog that was lost must not take the data along.
        let stored = self.context.store.list_dirs("collections").await?;
        let deleted = &catalog.catalog.deleted_uids;
        for uid in stored.iter().filter(|uid| deleted.contains(uid) && !exists(uid)) {
            self.context.store.delete_prefix(&format!("collections/{uid}")).await?;
            self.context.cache.forget_collection(uid);
            tracing::info!(collection = uid, "deleted what was left of a collection");
        }
        Ok(())
    }

    /// Stops: no new calls, no half-written group, no background work. Call it once nothing is served any more.
    pub async fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.background.lock().await.drain(..).for_each(|task| task.abort());
        let slots: Vec<Arc<Slot>> = self.slots.lock().await.drain().map(|(_, slot)| slot).collect();
        for shard in slots.iter().filter_map(|slot| slot.newest()) {
            shard.stop().await;
        }
    }
}

fn find<'a>(catalog: &'a Catalog, uid: &str) -> Option<&'a CollectionEntry> {
    catalog.collections.iter().find(|entry| entry.collection.as_ref().is_some_and(|found| found.uid == uid))
}

/// [`Node::shard`], for a future that it itself waits for.
fn shard_of(node: Arc<Node>, shard: ShardRef) -> BoxFuture<'static, Result<Arc<Shard>, NodeError>> {
    Box::pin(async move { node.shard(&shard).await })
}

async fn watch_catalog(node: std::sync::Weak<Node>) {
    let mut seen = None;
    loop {
        let Some(node) = node.upgrade() else { return };
        let outcome = async {
            let version = node.catalog.refresh().await.map_err(NodeError::from)?.version;
            if seen != Some(version) {
                node.drop_deleted().await?;
                seen = Some(version);
            }
            Ok::<_, NodeError>(())
        };
        if let Err(error) = outcome.await {
            tracing::warn!(%error, "the catalog could not be followed");
        }
        drop(node);
        tokio::time::sleep(CATALOG_INTERVAL).await;
    }
}
