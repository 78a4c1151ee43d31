//! The raw libraries over the same data, and what they can do.

use std::time::{Duration, Instant};

use antiphon_benches::Outcome;
use antiphon_benches::corpus::Corpus;
use antiphon_benches::exact::{cosine, recall};
use antiphon_benches::proc::CpuMeter;
use antiphon_benches::queries::Query;
use antiphon_benches::raw_graph::{GraphOptions, RawGraph};
use antiphon_benches::raw_text::RawText;
use antiphon_benches::report::{self, Report, note};
use antiphon_benches::stats::Latencies;

use crate::Args;

/// Matches that raw tantivy is asked for, and a window of the product's holds.
pub(crate) const WINDOW: usize = 100;

/// The raw libraries, and what building with them took.
pub(crate) struct Raw {
    pub(crate) graph: RawGraph,
    pub(crate) text: RawText,
    pub(crate) docs_per_s: f64,
    pub(crate) cpu_s: f64,
    _dir: tempfile::TempDir,
}

impl Raw {
    /// Builds the graph on one thread and the text index on another.
    pub(crate) fn build(corpus: &Corpus, args: &Args, report: &mut Report) -> Outcome<Self> {
        note("raw: building graph and text index, a thread each");
        let dir = args.server.temp_dir()?;
        let (meter, begun) = (CpuMeter::start(None)?, Instant::now());
        let (graph, text) = std::thread::scope(|scope| {
            let graph = scope.spawn(|| RawGraph::build(&corpus.vectors, GraphOptions::default(), 2));
            let text = RawText::build(&corpus.entries, dir.path());
            (graph.join().unwrap_or_else(|_| Err("the build failed".into())), text)
        });
        let (graph, text, wall_s, shares) = (graph?, text?, begun.elapsed().as_secs_f64(), meter.shares()?);
        let docs_per_s = corpus.len() as f64 / wall_s;
        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        report.compare_raw("usearch build, one thread", seconds(graph.build_time));
        report.compare_raw("tantivy build, one thread", seconds(text.build_time));
        report.compare_raw("both, a thread each, documents/s", format!("{docs_per_s:.0}"));
        report.compare_raw("other processes meanwhile, cores", format!("{:.2}", shares.others));
        Ok(Self { graph, text, docs_per_s, cpu_s: shares.own * shares.wall_s, _dir: dir })
    }

    /// What the graph alone finds, its candidates scored anew as the product does.
    pub(crate) fn recall(
        &self,
        corpus: &Corpus,
        queries: &[Query],
        truths: &[Vec<usize>],
        depth: usize,
    ) -> Outcome<RawRecall> {
        let (mut at_10, mut at_100, mut times) = (0.0, 0.0, Vec::with_capacity(queries.len()));
        for (query, truth) in queries.iter().zip(truths) {
            let begun = Instant::now();
            let candidates = self.graph.search(&query.vector, depth)?;
            times.push(begun.elapsed());
            let mut scored: Vec<(f64, usize)> = candidates
                .into_iter()
                .map(|row| (cosine(&query.vector, corpus.vectors.row(row as usize)), row as usize))
                .collect();
            scored.sort_by(|a, b| b.0.total_cmp(&a.0));
            let found: Vec<usize> = scored.into_iter().map(|(_, row)| row).collect();
            let head = |rows: &[usize], count: usize| rows[..count.min(rows.len())].to_vec();
            at_10 += recall(&head(truth, 10), &head(&found, 10)) / queries.len() as f64;
            at_100 += recall(&head(truth, WINDOW), &head(&found, WINDOW)) / queries.len() as f64;
        }
        Ok(RawRecall { at_10, at_100, median_ms: Latencies::of(&times).p50_ms })
    }

    pub(crate) fn pair(&self, query: &Query) -> Outcome<()> {
        self.graph.search(&query.vector, WINDOW)?;
        self.text.search(&query.text, WINDOW)?;
        Ok(())
    }

    /// Pairs a second on two threads, and the CPU seconds of one.
    pub(crate) fn throughput(&self, queries: &[Query], span: Duration) -> Outcome<(f64, f64)> {
        let (meter, begun) = (CpuMeter::start(None)?, Instant::now());
        let counts: Vec<Outcome<usize>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut count = 0;
                        for query in queries.iter().cycle().skip(thread * queries.len() / 2) {
                            if begun.elapsed() >= span {
                                break;
                            }
                            self.pair(query)?;
                            count += 1;
                        }
                        Ok(count)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a thread failed".into()))).collect()
        });
        let (elapsed, shares) = (begun.elapsed().as_secs_f64(), meter.shares()?);
        let count = counts.into_iter().sum::<Outcome<usize>>()? as f64;
        Ok((count / elapsed, shares.own * shares.wall_s / count))
    }
}

/// Recall of the graph alone.
pub(crate) struct RawRecall {
    pub(crate) at_10: f64,
    pub(crate) at_100: f64,
    pub(crate) median_ms: f64,
}

/// Figures of the raw libraries alone.
pub(crate) trait RawFigures {
    fn compare_raw(&mut self, figure: &str, raw: String);
}

impl RawFigures for Report {
    fn compare_raw(&mut self, figure: &str, raw: String) {
        self.figures.push(report::Figure { figure: figure.into(), raw, ..report::Figure::default() });
    }
}
