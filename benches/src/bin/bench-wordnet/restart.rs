//! Restarts: how long, and how much memory after.

use std::path::Path;
use std::time::Instant;

use antiphon_benches::Outcome;
use antiphon_benches::child_server::ChildServer;
use antiphon_benches::client::{Client, Method, Search, options};
use antiphon_benches::proc::status_bytes;
use antiphon_benches::queries::Query;
use antiphon_benches::report::{Report, mib, note};
use antiphon_benches::stats::median;

use crate::{Args, COLLECTION};

/// Restarts; the median is told.
const RESTARTS: usize = 3;

pub(crate) async fn restarts(
    args: &Args,
    queries: &[Query],
    mut server: ChildServer,
    data: &Path,
    report: &mut Report,
) -> Outcome<()> {
    note("restarting");
    let (mut starts, mut stops, mut firsts) = (vec![], vec![], vec![]);
    for _ in 0..RESTARTS {
        stops.push(server.stop().await?.as_secs_f64() * 1e3);
        server = args.server.start(data)?;
        starts.push(server.start_time.as_secs_f64() * 1e3);
        let client = Client::connect(&server.url).await?;
        let search = Search::new(Method::Hybrid, &queries[0], options(COLLECTION, 10));
        let begun = Instant::now();
        client.search(search).await?;
        firsts.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let start = median(&starts);
    report.add("from SIGTERM to the end, ms", format!("{:.0}", median(&stops)));
    report.add_target("from start to `listening on`, ms", format!("{start:.0}"), "< 1000", start < 1000.0);
    report.add("first search after that, ms", format!("{:.1}", median(&firsts)));
    let anon = status_bytes(server.pid(), "RssAnon")?;
    report.add_target("RssAnon after the restart", mib(anon), "< 150 MB", anon < 150_000_000);
    let client = Client::connect(&server.url).await?;
    for query in queries {
        client.search(Search::new(Method::Hybrid, query, options(COLLECTION, 10))).await?;
    }
    report.add("RssAnon after all queries", mib(status_bytes(server.pid(), "RssAnon")?));
    server.stop().await?;
    Ok(())
}
