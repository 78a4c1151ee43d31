//! What the system says of the process, under the names that Prometheus' clients share.

/// Sets the gauges of the process. Elsewhere than on Linux there are none.
pub(super) fn record() {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return };
    let kib = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()
    };
    let sizes = [
        ("process_resident_memory_bytes", "VmRSS"),
        ("antiphon_memory_anonymous_bytes", "RssAnon"),
        ("antiphon_memory_mapped_bytes", "RssFile"),
    ];
    for (name, key) in sizes {
        if let Some(kib) = kib(key) {
            metrics::gauge!(name).set(kib * 1024.0);
        }
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        metrics::gauge!("process_open_fds").set(open.count() as f64);
    }
}
