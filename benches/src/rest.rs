//! Waiting until a server has nothing left to do in the background.

use std::time::{Duration, Instant};

use crate::Outcome;
use crate::client::Client;
use crate::proc::CpuMeter;

/// A server that changed nothing for so long, and used less CPU than [`IDLE_CORES`] meanwhile, is at rest. Longer than
/// an idle shard waits before it merges.
const QUIET: Duration = Duration::from_secs(8);
/// In cores.
const IDLE_CORES: f64 = 0.1;
/// The longest wait.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A server at rest.
#[derive(Debug, Clone, Copy)]
pub struct AtRest {
    /// When the last change was seen.
    pub since: Instant,
    /// Sealed segments of all shards.
    pub num_segments: u64,
    /// Documents of all shards.
    pub num_docs: u64,
    /// Bytes of the segments' files.
    pub size_bytes: u64,
}

/// Waits until nothing is unsealed, segments no longer change, and the process idles.
///
/// # Errors
/// The server's, or where it takes longer than an hour.
pub async fn wait_for_rest(client: &Client, pid: u32) -> Outcome<AtRest> {
    let begun = Instant::now();
    let mut last_state = Vec::new();
    let mut since = Instant::now();
    let mut meter = CpuMeter::start(Some(pid))?;
    while begun.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let replicas = client.replicas().await?;
        let state: Vec<_> = replicas
            .iter()
            .map(|replica| (replica.num_live_rows, replica.num_segments, replica.manifest_version))
            .collect();
        if state != last_state || state.iter().any(|(num_live_rows, ..)| *num_live_rows > 0) {
            (last_state, since, meter) = (state, Instant::now(), CpuMeter::start(Some(pid))?);
        } else if since.elapsed() >= QUIET {
            if meter.shares()?.server < IDLE_CORES {
                return Ok(AtRest {
                    since,
                    num_segments: replicas.iter().map(|replica| replica.num_segments).sum(),
                    num_docs: replicas.iter().map(|replica| replica.num_docs).sum(),
                    size_bytes: replicas.iter().map(|replica| replica.size_bytes).sum(),
                });
            }
            if meter.shares()?.wall_s >= QUIET.as_secs_f64() {
                meter = CpuMeter::start(Some(pid))?;
                tokio::time::sleep(QUIET).await;
            }
        }
    }
    Err("the server did not come to rest within an hour".into())
}
