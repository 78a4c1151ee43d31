//! What the kernel tells about processes (Linux): CPU time, anonymous memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Outcome;

/// Clock ticks a second in /proc: fixed by the kernel's interface.
const TICKS_PER_S: f64 = 100.0;

/// CPU seconds that a process has used, all its threads together.
///
/// # Errors
/// Where there is no such process.
pub fn cpu_s(pid: u32) -> Outcome<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name is in parentheses and may hold anything.
    let rest = stat.rsplit_once(')').ok_or("no stat")?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).ok_or("no stat");
    Ok((ticks(11)? + ticks(12)?) / TICKS_PER_S)
}

/// CPU seconds that the whole machine was busy.
fn machine_busy_s() -> Outcome<f64> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().ok_or("no stat")?;
    let fields: Vec<f64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = fields[..] else { return Err("no stat".into()) };
    Ok((user + nice + system + irq + softirq) / TICKS_PER_S)
}

/// A line of /proc/PID/status in bytes, as `RssAnon`.
///
/// # Errors
/// Where there is no such process or line.
pub fn status_bytes(pid: u32, name: &str) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).ok_or("no such line")?;
    let kib: u64 = line.split_whitespace().next().and_then(|number| number.parse().ok()).ok_or("no number")?;
    Ok(kib * 1024)
}

/// CPU time over a span, by who used it, in cores (1.0 is one core all the time).
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuShares {
    /// How long the span was, in seconds.
    pub wall_s: f64,
    /// This process.
    pub own: f64,
    /// The server.
    pub server: f64,
    /// All else on the machine.
    pub others: f64,
}

/// Measures a span.
#[derive(Debug, Clone, Copy)]
pub struct CpuMeter {
    server: Option<u32>,
    begun: Instant,
    own_s: f64,
    server_s: f64,
    machine_s: f64,
}

impl CpuMeter {
    /// Begins a span.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub fn start(server: Option<u32>) -> Outcome<Self> {
        let (own_s, server_s, machine_s) = Self::read(server)?;
        Ok(Self { server, begun: Instant::now(), own_s, server_s, machine_s })
    }

    fn read(server: Option<u32>) -> Outcome<(f64, f64, f64)> {
        Ok((cpu_s(std::process::id())?, server.map_or(Ok(0.0), cpu_s)?, machine_busy_s()?))
    }

    /// What was used since.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub fn shares(&self) -> Outcome<CpuShares> {
        let wall_s = self.begun.elapsed().as_secs_f64();
        let (own_s, server_s, machine_s) = Self::read(self.server)?;
        let (own, server) = ((own_s - self.own_s) / wall_s, (server_s - self.server_s) / wall_s);
        let others = ((machine_s - self.machine_s) / wall_s - own - server).max(0.0);
        Ok(CpuShares { wall_s, own, server, others })
    }
}

/// A moment of a server's memory.
#[derive(Debug, Clone, Copy)]
pub struct MemorySample {
    /// Since sampling began.
    pub at: Duration,
    /// What [`MemorySampler::progress`] stood at.
    pub progress: u64,
    /// Anonymous memory: what is not the page cache's.
    pub anon_bytes: u64,
}

/// Samples a server's anonymous memory from a thread of its own until it is stopped.
#[derive(Debug)]
pub struct MemorySampler {
    /// What the samples are told beside, such as documents acknowledged.
    pub progress: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<MemorySample>>,
}

impl MemorySampler {
    /// Begins.
    pub fn start(pid: u32, interval: Duration) -> Self {
        let (progress, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, stopped) = (Arc::clone(&progress), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let begun = Instant::now();
            let mut samples = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                if let Ok(anon_bytes) = status_bytes(pid, "RssAnon") {
                    let progress = seen.load(Ordering::Relaxed);
                    samples.push(MemorySample { at: begun.elapsed(), progress, anon_bytes });
                }
                std::thread::sleep(interval);
            }
            samples
        });
        Self { progress, stop, thread }
    }

    /// Ends, and gives the samples in order of time.
    ///
    /// # Errors
    /// Where the thread failed.
    pub fn stop(self) -> Outcome<Vec<MemorySample>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the sampler failed".into())
    }
}

/// The largest of samples.
pub fn max_anon(samples: &[MemorySample]) -> u64 {
    samples.iter().map(|sample| sample.anon_bytes).max().unwrap_or(0)
}
