//! [`FailingStore`]: an object store that fails as planned, for tests of this crate and of those that use it.
//!
//! Not for production, though always compiled: it does nothing that was not planned.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};

/// Operations that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Puts, and the begin of multipart uploads.
    Put,
    /// Gets.
    Get,
    /// Lists, with and without a delimiter.
    List,
    /// Deletes, one a path.
    Delete,
}

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done, and an error returned.
    Refuse,
    /// It is done, and an error returned. For gets and lists the same as `Refuse`.
    LoseAnswer,
    /// It is done after so long.
    Delay(Duration),
    /// It never ends; nothing is done.
    Hang,
}

#[derive(Debug)]
struct Rule {
    op: Op,
    path_contains: String,
    times: usize,
    fault: Fault,
}

#[derive(Debug, Default)]
struct Plan {
    rules: Vec<Rule>,
    /// Operations that are still carried out; beyond, all are refused.
    left: Option<usize>,
    stopped: bool,
    calls: Vec<(Op, String)>,
}

/// An object store that does what another does, but for the faults planned. Give a clone to
/// [`crate::Store::wrapped`] or [`crate::Store::with_object_store`] and plan with the other.
#[derive(Debug, Clone)]
pub struct FailingStore {
    inner: Arc<dyn ObjectStore>,
    plan: Arc<Mutex<Plan>>,
}

impl FailingStore {
    /// A store that does what `inner` does.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, plan: Arc::default() }
    }

    /// Plans that the next `times` operations of the kind `op` on paths that contain `path_contains` come to `fault`.
    /// Of several rules that fit, the one planned first is used up first.
    pub fn plan(&self, op: Op, path_contains: &str, times: usize, fault: Fault) {
        self.locked().rules.push(Rule { op, path_contains: path_contains.to_owned(), times, fault });
    }

    /// Plans that everything is refused after `operations` more of any kind: the store as a process sees it that dies at
    /// that step. Rules are still followed before.
    pub fn stop_after(&self, operations: usize) {
        self.locked().left = Some(operations);
    }

    /// Whether [`FailingStore::stop_after`] has refused something.
    pub fn has_stopped(&self) -> bool {
        self.locked().stopped
    }

    /// Forgets what is planned.
    pub fn clear(&self) {
        let mut plan = self.locked();
        plan.rules.clear();
        plan.left = None;
        plan.stopped = false;
    }

    /// How many operations of the kind `op` were begun on paths that contain `path_contains`.
    pub fn calls(&self, op: Op, path_contains: &str) -> usize {
        let plan = self.locked();
        plan.calls.iter().filter(|(called, path)| *called == op && path.contains(path_contains)).count()
    }

    fn locked(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the call, and takes the fault planned for it.
    fn next_fault(&self, op: Op, path: &str) -> Option<Fault> {
        let mut plan = self.locked();
        plan.calls.push((op, path.to_owned()));
        match &mut plan.left {
            Some(0) => {
                plan.stopped = true;
                return Some(Fault::Refuse);
            }
            Some(left) => *left -= 1,
            None => {}
        }
        let fits = |rule: &&mut Rule| rule.op == op && rule.times > 0 && path.contains(&rule.path_contains);
        let rule = plan.rules.iter_mut().find(fits)?;
        rule.times -= 1;
        Some(rule.fault)
    }

    /// Carries out what is planned before the operation; true if its answer is to be lost.
    async fn before(&self, op: Op, path: &str) -> Result<bool> {
        match self.next_fault(op, path) {
            None => Ok(false),
            Some(Fault::Refuse) => Err(planned()),
            Some(Fault::LoseAnswer) => Ok(true),
            Some(Fault::Delay(time)) => {
                tokio::time::sleep(time).await;
                Ok(false)
            }
            Some(Fault::Hang) => std::future::pending().await,
        }
    }

    fn listing(
        &self,
        prefix: Option<&Path>,
        list: impl FnOnce(&dyn ObjectStore) -> BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let (this, inner) = (self.clone(), list(&self.inner));
        let path = prefix.map(Path::to_string).unwrap_or_default();
        let begin = async move {
            match this.before(Op::List, &path).await {
                Ok(false) => Ok(inner),
                Ok(true) => Err(planned()),
                Err(error) => Err(error),
            }
        };
        stream::once(begin).try_flatten().boxed()
    }
}

fn planned() -> object_store::Error {
    object_store::Error::Generic { store: "failing store", source: "a planned fault".into() }
}

impl fmt::Display for FailingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failing {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FailingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let lose = self.before(Op::Put, location.as_ref()).await?;
        let done = self.inner.put_opts(location, payload, opts).await?;
        if lose { Err(planned()) } else { Ok(done) }
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        if self.before(Op::Put, location.as_ref()).await? {
            return Err(planned());
        }
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if self.before(Op::Get, location.as_ref()).await? {
            return Err(planned());
        }
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        locations
            .then(move |location| {
                let this = this.clone();
                async move {
                    let location = location?;
                    let lose = this.before(Op::Delete, location.as_ref()).await?;
                    let one = stream::once(async move { Ok(location) }).boxed();
                    let deleted: Vec<Path> = this.inner.delete_stream(one).try_collect().await?;
                    match deleted.into_iter().next() {
                        Some(location) if !lose => Ok(location),
                        _ => Err(planned()),
                    }
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listing(prefix, |inner| inner.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listing(prefix, |inner| inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let path = prefix.map(Path::to_string).unwrap_or_default();
        if self.before(Op::List, &path).await? {
            return Err(planned());
        }
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
