//! What a coordinator can be told.

use std::time::Duration;

use crate::embed::Embedders;
use crate::page::PageLaw;

/// Settings of a coordinator; [`CoordinatorConfig::default`] gives those of a release.
#[derive(Debug, Clone)]
pub struct CoordinatorConfig {
    /// How far pages reach.
    pub law: PageLaw,
    /// Largest message taken, in bytes.
    pub max_message_bytes: usize,
    /// Largest answer given, in bytes. Clients refuse more than 4 MiB unless told otherwise.
    pub max_response_bytes: usize,
    /// Longest a call may take where its caller set no deadline, or a later one.
    pub default_timeout: Duration,
    /// Searches that run at once.
    pub max_running_searches: usize,
    /// Searches that wait for their turn.
    pub max_waiting_searches: usize,
    /// From here on a search is told in the log, with its phases; `None`: none is.
    pub slow_search: Option<Duration>,
    /// How old the coordinator's catalog may be.
    pub catalog_interval: Duration,
    /// What makes vectors of texts. Without any, the services that need one are not there.
    pub embedders: Embedders,
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        Self {
            law: PageLaw { max_result_window: 100, max_page_size: 1000 },
            max_message_bytes: 16 << 20,
            max_response_bytes: 4 << 20,
            default_timeout: Duration::from_secs(30),
            max_running_searches: 1024,
            max_waiting_searches: 1024,
            slow_search: Some(Duration::from_secs(1)),
            catalog_interval: Duration::from_secs(1),
            embedders: Embedders::default(),
        }
    }
}
