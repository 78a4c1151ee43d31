//! The nodes among the members of a cluster, with a handle each that lives as long as the member does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon_membership::{Dialer, Member, Members};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{NodeClient, NodeHandle};

/// How long a copy on a lost node is waited for. The nodes go by the same.
pub(super) const REPLACE_AFTER: Duration = Duration::from_secs(60);

type Handles = HashMap<String, (u64, Arc<NodeHandle>)>;

/// Handles by name.
pub(super) struct MemberNodes {
    members: watch::Receiver<Arc<Members>>,
    shared: Arc<Shared>,
    follower: JoinHandle<()>,
}

struct Shared {
    handles: Mutex<Handles>,
    dialer: Dialer,
    own: Option<(String, NodeClient)>,
}

impl MemberNodes {
    /// Follows the members.
    pub(super) fn new(
        members: watch::Receiver<Arc<Members>>,
        dialer: Dialer,
        own: Option<(String, NodeClient)>,
    ) -> Self {
        let shared = Arc::new(Shared { handles: Mutex::default(), dialer, own });
        let follower = tokio::spawn(follow(members.clone(), Arc::clone(&shared)));
        Self { members, shared, follower }
    }

    /// The members now.
    pub(super) fn members(&self) -> Arc<Members> {
        Arc::clone(&self.members.borrow())
    }

    /// Word of every change.
    pub(super) fn changes(&self) -> watch::Receiver<Arc<Members>> {
        self.members.clone()
    }

    /// The way to a member.
    pub(super) fn handle(&self, member: &Member) -> Option<Arc<NodeHandle>> {
        self.shared.handle(member)
    }
}

impl Drop for MemberNodes {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, member: &Member) -> Option<Arc<NodeHandle>> {
        let mut handles = self.lock();
        if let Some((generation, handle)) = handles.get(&member.id)
            && *generation == member.generation
            && handle.address == member.address
        {
            return Some(Arc::clone(handle));
        }
        let client = match &self.own {
            Some((id, client)) if *id == member.id => client.clone(),
            _ => match NodeClient::connect(&member.address, &self.dialer) {
                Ok(client) => client,
                Err(error) => {
                    tracing::warn!(node = member.id, %error, "a node cannot be asked");
                    return None;
                }
            },
        };
        let handle = Arc::new(NodeHandle::named(&member.id, &member.address, client));
        if let Some((_, former)) = handles.insert(member.id.clone(), (member.generation, Arc::clone(&handle))) {
            former.lose();
        }
        Some(handle)
    }
}

/// Lets go of nodes that are lost.
async fn follow(mut members: watch::Receiver<Arc<Members>>, shared: Arc<Shared>) {
    while members.changed().await.is_ok() {
        let mut handles = shared.lock();
        // Looked at behind the lock: a handle that is there was made of members no newer than these.
        let now = Arc::clone(&members.borrow_and_update());
        handles.retain(|id, (generation, handle)| {
            let lives = now.find(id).is_some_and(|member| member.generation == *generation);
            if !lives {
                tracing::info!(node = id, address = handle.address, "a node is lost");
                handle.lose();
            }
            lives
        });
    }
}
