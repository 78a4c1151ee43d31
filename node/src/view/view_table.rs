//! Views kept for snapshot tokens: for a bounded time, and no more than a bounded number.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use antiphon_proto::internal::ViewName;

use super::View;

/// Names remembered of views that were let go.
const MAX_EXPIRED: usize = 4096;

struct Kept {
    view: Arc<View>,
    last_named: Instant,
}

/// The views that answers of one shard named lately.
pub struct ViewTable {
    retention: Duration,
    max_views: usize,
    views: Mutex<HashMap<(u64, u64), Kept>>,
    /// Names of views that were let go, the last ones.
    expired: Mutex<VecDeque<(u64, u64)>>,
}

impl ViewTable {
    /// A table that keeps a view for `retention` after it was last named, and at most `max_views`.
    pub fn new(retention: Duration, max_views: usize) -> Self {
        Self { retention, max_views: max_views.max(1), views: Mutex::default(), expired: Mutex::default() }
    }

    /// Keeps a view from now on, and gives back the one that is kept under its name: this one, or one that was kept before,
    /// whose row addresses may be in callers' hands. Where the table is full, the one named longest ago goes.
    pub fn keep(&self, view: &Arc<View>) -> Arc<View> {
        let now = Instant::now();
        let mut views = self.lock();
        let key = (view.seq, view.manifest_version);
        if let Some(kept) = views.get_mut(&key) {
            kept.last_named = now;
            return Arc::clone(&kept.view);
        }
        if views.len() >= self.max_views {
            self.let_go(&mut views, now);
        }
        if views.len() >= self.max_views {
            let oldest = views.iter().min_by_key(|(_, kept)| kept.last_named).map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                views.remove(&oldest);
                self.note_expired([oldest]);
            }
        }
        views.insert(key, Kept { view: Arc::clone(view), last_named: now });
        Arc::clone(view)
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Lets go of one.
    pub fn forget(&self, name: &ViewName) {
        self.lock().remove(&(name.seq, name.manifest_version));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(u64, u64), Kept>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A kept view.
    pub fn find(&self, name: &ViewName) -> Option<Arc<View>> {
        let now = Instant::now();
        let mut views = self.lock();
        let kept = views.get_mut(&(name.seq, name.manifest_version))?;
        if now.duration_since(kept.last_named) >= self.retention {
            return None;
        }
        kept.last_named = now;
        Some(Arc::clone(&kept.view))
    }

    /// Lets go of views that nobody named for the retention time.
    pub fn expire(&self) {
        self.let_go(&mut self.lock(), Instant::now());
    }

    /// Whether a view was kept here and its time is over.
    pub fn has_expired(&self, name: &ViewName) -> bool {
        let key = (name.seq, name.manifest_version);
        let is_over = |kept: &Kept| kept.last_named.elapsed() >= self.retention;
        self.lock().get(&key).is_some_and(is_over) || self.lock_expired().contains(&key)
    }

    fn let_go(&self, views: &mut HashMap<(u64, u64), Kept>, now: Instant) {
        let is_over = |kept: &Kept| now.duration_since(kept.last_named) >= self.retention;
        self.note_expired(views.iter().filter(|(_, kept)| is_over(kept)).map(|(key, _)| *key));
        views.retain(|_, kept| !is_over(kept));
    }

    fn note_expired(&self, names: impl IntoIterator<Item = (u64, u64)>) {
        let mut expired = self.lock_expired();
        expired.extend(names);
        let surplus = expired.len().saturating_sub(MAX_EXPIRED);
        expired.drain(..surplus);
    }

    fn lock_expired(&self) -> MutexGuard<'_, VecDeque<(u64, u64)>> {
        self.expired.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn view(seq: u64) -> Arc<View> {
        Arc::new(View { seq, ..View::empty() })
    }

    #[test]
    fn the_view_named_longest_ago_goes_first() {
        let table = ViewTable::new(Duration::from_secs(60), 2);
        table.keep(&view(1));
        table.keep(&view(2));
        assert!(table.find(&view(1).name()).is_some());
        table.keep(&view(3));
        assert!(table.find(&view(2).name()).is_none());
        assert_eq!(table.find(&view(1).name()).unwrap().seq, 1);
        assert_eq!(table.find(&view(3).name()).unwrap().seq, 3);
    }

    #[test]
    fn a_name_means_one_view_while_it_is_kept() {
        let table = ViewTable::new(Duration::from_secs(60), 2);
        let (first, again) = (view(1), view(1));
        assert!(Arc::ptr_eq(&table.keep(&first), &first));
        assert!(Arc::ptr_eq(&table.keep(&again), &first));
        table.forget(&first.name());
        assert!(table.find(&first.name()).is_none());
        assert!(Arc::ptr_eq(&table.keep(&again), &again));
    }

    #[test]
    fn views_expire() {
        let table = ViewTable::new(Duration::ZERO, 2);
        assert!(!table.has_expired(&view(1).name()));
        table.keep(&view(1));
        assert!(table.find(&view(1).name()).is_none() && table.has_expired(&view(1).name()));
        table.expire();
        assert!(table.find(&view(1).name()).is_none() && table.has_expired(&view(1).name()));
        assert!(!table.has_expired(&view(2).name()));
    }
}
