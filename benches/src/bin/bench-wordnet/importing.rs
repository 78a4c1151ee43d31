//! Import: how fast, how soon visible, how much memory, and how long until all is sealed and merged.

use std::time::{Duration, Instant};

use antiphon_benches::Outcome;
use antiphon_benches::child_server::ChildServer;
use antiphon_benches::client::Client;
use antiphon_benches::corpus::Corpus;
use antiphon_benches::documents::document;
use antiphon_benches::import::{ImportPlan, import};
use antiphon_benches::proc::{CpuMeter, MemorySampler, cpu_s, max_anon};
use antiphon_benches::report::{Report, mib, note};
use antiphon_benches::rest::wait_for_rest;
use antiphon_benches::stats::Latencies;

use crate::COLLECTION;
use crate::raw::Raw;

pub(crate) async fn import_all(
    corpus: &Corpus,
    raw: &Raw,
    server: &ChildServer,
    client: &Client,
    report: &mut Report,
) -> Outcome<()> {
    note("ours: importing, then waiting until all is sealed and merged");
    client.create(COLLECTION, corpus.vectors.dims, 1).await?;
    let sampler = MemorySampler::start(server.pid(), Duration::from_millis(20));
    let (meter, begun) = (CpuMeter::start(Some(server.pid()))?, Instant::now());
    let plan = ImportPlan { collection: COLLECTION, batch: 500, probe_every: 5, progress: Some(&sampler.progress) };
    let imported = import(client, plan, (0..corpus.len()).map(|row| document(corpus, row))).await?;
    let importing = meter.shares()?;
    let rest = wait_for_rest(client, server.pid()).await?;
    let to_rest_s = rest.since.duration_since(begun).as_secs_f64();
    let server_cpu_s = cpu_s(server.pid())?;
    let whole = meter.shares()?;
    let samples = sampler.stop()?;
    if (imported.num_docs, rest.num_docs) != (corpus.len() as u64, corpus.len() as u64) {
        return Err(format!("{} acknowledged, {} there", imported.num_docs, rest.num_docs).into());
    }

    let docs = corpus.len() as f64;
    let rate = docs / imported.elapsed.as_secs_f64();
    report.compare(
        "import, documents/s acknowledged",
        format!("{rate:.0}"),
        format!("{:.0}", raw.docs_per_s),
        rate / raw.docs_per_s,
    );
    let rate = docs / to_rest_s;
    let words = "documents/s until sealed and merged, waits of 30 s and 5 s included";
    report.compare(words, format!("{rate:.0}"), format!("{:.0}", raw.docs_per_s), rate / raw.docs_per_s);
    let ours = format!("{server_cpu_s:.1} s");
    report.compare("CPU time of it all", ours, format!("{:.1} s", raw.cpu_s), server_cpu_s / raw.cpu_s);
    let shares = format!("{:.2} / {:.2}", importing.own, importing.server);
    report.add("importing: cores of client / server", shares);
    report.add("importing: other processes, cores", format!("{:.2}", importing.others));
    report.add("until at rest: other processes, cores", format!("{:.2}", whole.others));
    let probes = Latencies::of(&imported.probes);
    let words = format!("acknowledged batches not visible to the next search, of {}", probes.count);
    report.add_target(&words, imported.num_invisible.to_string(), "0", imported.num_invisible == 0);
    report.add("search while importing, ms median / max", format!("{:.2} / {:.2}", probes.p50_ms, probes.max_ms));
    report.add("RssAnon, highest until at rest", mib(max_anon(&samples)));
    report.add("segments at rest; their files", format!("{}; {}", rest.num_segments, mib(rest.size_bytes)));
    Ok(())
}
