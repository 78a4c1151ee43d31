//! One node, and the way to it.

use tokio::sync::watch;

use super::NodeClient;
use super::health::Health;

/// A node and the way to it.
pub struct NodeHandle {
    /// Its name, or where it has none that is known, its address.
    pub id: String,
    /// Its address.
    pub address: String,
    /// The way to it.
    pub client: NodeClient,
    pub(super) health: Health,
    lost: watch::Sender<bool>,
}

impl NodeHandle {
    /// A node under its address.
    pub fn new(address: &str, client: NodeClient) -> Self {
        Self::named(address, address, client)
    }

    /// A node under its name.
    pub fn named(id: &str, address: &str, client: NodeClient) -> Self {
        let (id, address) = (id.to_owned(), address.to_owned());
        Self { id, address, client, health: Health::new(), lost: watch::Sender::new(false) }
    }

    /// Says that the members have lost it: calls under way need not be waited for.
    pub(super) fn lose(&self) {
        self.lost.send_replace(true);
    }

    /// Ends when it is lost.
    pub(super) async fn lost(&self) {
        let mut lost = self.lost.subscribe();
        // The sender lives as long as self.
        if lost.wait_for(|lost| *lost).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
