//! A read of a shard: from one replica, from another where that fails, from both where it is slow. One answer counts.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_proto::error::{ApiError, ErrorKind};
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::{Cluster, NodeHandle, Target};
use crate::cluster::health::HedgeBudget;

/// Replicas asked for one read.
const MAX_ASKED: usize = 3;
/// How long a read waits for a node where none answers.
const WAIT_FOR_NODE: Duration = Duration::from_secs(3);

/// Reads of all shards.
static BUDGET: std::sync::LazyLock<HedgeBudget> = std::sync::LazyLock::new(HedgeBudget::new);

/// An answer and who gave it.
pub struct Answered<T> {
    /// The node.
    pub node: Arc<NodeHandle>,
    /// What it said.
    pub answer: T,
}

/// Which replica is asked first.
#[derive(Clone, Default)]
pub enum First {
    /// The one with the least to do.
    #[default]
    Idlest,
    /// The same one for the same number, as long as it lives.
    Same(u64),
    /// This one.
    Node(Arc<NodeHandle>),
}

impl First {
    /// The same replica for the same text, as long as it lives.
    pub fn same(text: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Self::Same(hasher.finish())
    }
}

impl Cluster {
    /// Asks the replicas of a shard until one answers: at most three of them, one at a time unless one is slow. An answer
    /// that is not `whole` counts where there is no better one. Where none answers and the target is patient, once more a
    /// little later: another node may have taken the shard over.
    ///
    /// # Errors
    /// That of the replica that failed first, where none answers; SHARD_UNAVAILABLE where there is none.
    pub async fn read<T, F>(
        &self,
        target: Target<'_>,
        first: &First,
        is_whole: impl Fn(&T) -> bool,
        ask: impl Fn(Arc<NodeHandle>) -> F,
    ) -> Result<Answered<T>, ApiError>
    where
        F: Future<Output = Result<T, ApiError>>,
    {
        let until = Instant::now() + WAIT_FOR_NODE;
        loop {
            match self.read_once(target, first, &is_whole, &ask).await {
                Err(error)
                    if target.is_patient
                        && matches!(error.kind(), ErrorKind::ShardUnavailable | ErrorKind::ShuttingDown)
                        && Instant::now() < until =>
                {
                    if !self.change().await {
                        return Err(error);
                    }
                }
                outcome => return outcome,
            }
        }
    }

    async fn read_once<T, F>(
        &self,
        target: Target<'_>,
        first: &First,
        is_whole: &impl Fn(&T) -> bool,
        ask: &impl Fn(Arc<NodeHandle>) -> F,
    ) -> Result<Answered<T>, ApiError>
    where
        F: Future<Output = Result<T, ApiError>>,
    {
        let replicas = order(self.replicas(target)?, first);
        if let [only] = replicas.as_slice() {
            // The way of a single process, without any of the machinery.
            return asked(Arc::clone(only), ask).await.2.map(|answer| Answered { node: Arc::clone(only), answer });
        }
        BUDGET.earn();
        let mut next = replicas.into_iter().take(MAX_ASKED);
        let mut running = FuturesUnordered::new();
        let mut waiting: Vec<(Arc<NodeHandle>, Instant)> = Vec::new();
        let (mut error, mut partial) = (None, None);
        let mut hedge_after = Duration::MAX;
        if let Some(node) = next.next() {
            hedge_after = node.health.hedge_after();
            waiting.push((Arc::clone(&node), Instant::now()));
            running.push(asked(node, ask));
        }
        loop {
            let hedge = tokio::time::sleep(hedge_after);
            let ended = tokio::select! {
                ended = running.next() => ended,
                () = hedge, if hedge_after != Duration::MAX => {
                    hedge_after = Duration::MAX;
                    if BUDGET.spend()
                        && let Some(node) = next.next()
                    {
                        metrics::counter!("antiphon_hedged_reads_total").increment(1);
                        waiting.push((Arc::clone(&node), Instant::now()));
                        running.push(asked(node, ask));
                    }
                    continue;
                }
            };
            let Some((node, _, outcome)) = ended else { break };
            waiting.retain(|(other, _)| !Arc::ptr_eq(other, &node));
            match outcome {
                Ok(answer) if is_whole(&answer) => {
                    // Whoever was asked before and did not answer yet is slow, to say the least.
                    let now = Instant::now();
                    waiting.iter().for_each(|(slow, _)| slow.health.failed(now));
                    return Ok(Answered { node, answer });
                }
                Ok(answer) => drop(partial.get_or_insert(Answered { node, answer })),
                Err(failed) if may_be_better_elsewhere(failed.kind()) => {
                    error.get_or_insert(failed);
                }
                Err(failed) => return Err(failed),
            }
            if running.is_empty() {
                match next.next() {
                    Some(node) => {
                        metrics::counter!("antiphon_retried_reads_total").increment(1);
                        waiting.push((Arc::clone(&node), Instant::now()));
                        running.push(asked(node, ask));
                    }
                    None => break,
                }
            }
        }
        partial
            .ok_or_else(|| error.unwrap_or_else(|| ApiError::new(ErrorKind::ShardUnavailable, "no replica answered")))
    }
}

/// Whether another replica may answer what one could not.
fn may_be_better_elsewhere(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ShardUnavailable
            | ErrorKind::StoreUnavailable
            | ErrorKind::ShuttingDown
            | ErrorKind::Overloaded
            | ErrorKind::Corruption
            | ErrorKind::DiskFull
            | ErrorKind::Internal
    )
}

/// Asks one node, and notes how it answered.
async fn asked<T, F>(
    node: Arc<NodeHandle>,
    ask: &impl Fn(Arc<NodeHandle>) -> F,
) -> (Arc<NodeHandle>, Duration, Result<T, ApiError>)
where
    F: Future<Output = Result<T, ApiError>>,
{
    let began = Instant::now();
    let outcome = {
        let _call = node.health.begin();
        tokio::select! {
            outcome = ask(Arc::clone(&node)) => outcome,
            () = node.lost() => {
                let words = format!("the node {} was lost while it was waited for", node.id);
                Err(ApiError::new(ErrorKind::ShardUnavailable, words))
            }
        }
    };
    let took = began.elapsed();
    match &outcome {
        Err(error) if error.kind() == ErrorKind::ShardUnavailable => node.health.failed(Instant::now()),
        Err(error) if error.kind() == ErrorKind::Deadline => {}
        _ => node.health.answered(took),
    }
    (node, took, outcome)
}

/// Replicas in the order in which they are asked: those that fail again and again last.
fn order(mut replicas: Vec<Arc<NodeHandle>>, first: &First) -> Vec<Arc<NodeHandle>> {
    if replicas.len() < 2 {
        return replicas;
    }
    let now = Instant::now();
    match first {
        First::Idlest => {
            let turn = rand::random_range(0..replicas.len());
            replicas.rotate_left(turn);
            replicas.sort_by_key(|node| (node.health.is_passed_over(now), node.health.calls()));
        }
        First::Same(number) => replicas.sort_by_cached_key(|node| {
            let mut hasher = DefaultHasher::new();
            (number, &node.id).hash(&mut hasher);
            (node.health.is_passed_over(now), hasher.finish())
        }),
        First::Node(first) => replicas.sort_by_key(|node| (!Arc::ptr_eq(node, first), node.health.is_passed_over(now))),
    }
    replicas
}
