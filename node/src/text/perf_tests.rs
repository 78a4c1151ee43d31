#![allow(clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]
use std::time::Instant;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use super::*;
use crate::mapped::Blob;

fn zipf(rng: &mut StdRng, n: f64) -> usize { ((n.ln() * rng.random::<f64>()).exp() as usize).max(1) - 1 }

#[test]
#[ignore]
fn perf() {
    let rng = &mut StdRng::seed_from_u64(1);
    let mut words: Vec<String> = Vec::new();
    for i in 0..60_000u32 { let mut s = String::new(); let mut x = i.wrapping_mul(2654435761); for _ in 0..rng.random_range(2..9) { s.push((b'a' + (x % 26) as u8) as char); x = x.rotate_right(5).wrapping_add(i); } s.push_str(&format!("{}", i % 97)); words.push(s); }
    let specs = vec![TextFieldSpec { name: "t".into(), analyzer: std::env::var("AN").unwrap_or("standard".into()) }];
    let doc = |rng: &mut StdRng, lo: usize, hi: usize| { let n = rng.random_range(lo..hi); (0..n).map(|_| words[zipf(rng, 60_000.0)].as_str()).collect::<Vec<_>>().join(" ") };
    // fixed cost
    let docs: Vec<String> = (0..100).map(|_| doc(rng, 20, 60)).collect();
    for num_docs in [1usize, 100] {
        let mut best = f64::MAX; let mut best_open = f64::MAX; let mut len = 0;
        for _ in 0..30 {
            let t = Instant::now();
            let mut b = TextIndexBuilder::new(&specs).unwrap();
            let t1 = t.elapsed();
            for d in &docs[..num_docs] { b.add(&[vec![d.as_str()]]).unwrap(); }
            let t2 = t.elapsed();
            if std::env::var("PH").is_ok() { println!("new {t1:?} add {:?}", t2-t1); }
            let bytes = b.finish().unwrap(); len = bytes.len();
            best = best.min(t.elapsed().as_secs_f64());
            let blob = Blob::from_bytes(&bytes);
            let t = Instant::now();
            let _i = TextIndex::open(blob, &specs, num_docs as u32).unwrap();
            best_open = best_open.min(t.elapsed().as_secs_f64());
        }
        println!("{num_docs} docs: build {:.3} ms, open {:.3} ms, {len} bytes", best*1e3, best_open*1e3);
    }
    for (lo, hi) in [(5, 20), (20, 100)] {
        let docs: Vec<String> = (0..100_000).map(|_| doc(rng, lo, hi)).collect();
        let an = Analyzer::by_name(&specs[0].analyzer).unwrap();
        let t = Instant::now();
        let mut n = 0; for d in docs.iter().take(20_000) { n += an.document_terms(d).len(); }
        println!("analysis {:.1} us/doc {n}", t.elapsed().as_secs_f64() * 1e6 / 20_000.0);
        let t = Instant::now();
        let mut tokens = 0u64;
        let mut b = TextIndexBuilder::new(&specs).unwrap();
        for d in &docs { tokens += b.add(&[vec![d.as_str()]]).unwrap()[0] as u64; }
        let t_add = t.elapsed().as_secs_f64();
        let bytes = b.finish().unwrap();
        println!("100k docs {lo}..{hi}: add {:.1} us/doc, all {:.1} us/doc, {} MB, text {} MB", t_add * 10.0, t.elapsed().as_secs_f64() * 10.0, bytes.len() >> 20, docs.iter().map(String::len).sum::<usize>() >> 20);
        let index = TextIndex::open(Blob::from_bytes(&bytes), &specs, 100_000).unwrap();
        for n in [10usize, 100] { for and in [false, true] { for skew in [1.0, 1.05] {
            let queries: Vec<KeywordQuery> = (0..400).map(|_| {
                let terms = (0..rng.random_range(3..6)).map(|g| { let w = if and { zipf(rng, 300.0) } else { zipf(rng, 10_000.0) }; let text = an.terms(&words[w])[0].text.clone(); let doc_freq = index.doc_freq(0, &text).unwrap() as u64; QueryTerm { field: 0, text, group: g, doc_freq } }).collect();
                KeywordQuery { terms, fields: vec![FieldStatistics { num_docs: 100_000, num_tokens: (tokens as f64 * skew) as u64, boost: 1.0 }], require_all_groups: and }
            }).collect();
            let top = |q: &KeywordQuery| {
                let clauses: Vec<(Occur, Box<dyn Query>)> = q.terms.iter().map(|t| (if and { Occur::Must } else { Occur::Should }, Box::new(TermQuery::new(index.field(0).unwrap().term(&t.text), IndexRecordOption::WithFreqs)) as Box<dyn Query>)).collect();
                index.searcher().search(&BooleanQuery::new(clauses), &TopDocs::with_limit(n).order_by_score()).unwrap().len()
            };
            let (mut a, mut b) = (0.0, 0.0); let mut found = 0;
            for round in 0..4 { for q in &queries {
                let t = Instant::now(); let x = top(q); let da = t.elapsed().as_secs_f64();
                let t = Instant::now(); let y = index.window(q, None, n, &|| false).unwrap().len(); let db = t.elapsed().as_secs_f64();
                assert_eq!(x, y); found += x;
                if round > 0 { a += da; b += db; }
            } }
            println!("n {n} and {and} skew {skew}: topdocs {:.1} us, window {:.1} us, ratio {:.3}, found {}", a / 1200.0 * 1e6, b / 1200.0 * 1e6, b / a, found / 1600);
        } } }
    }
}
