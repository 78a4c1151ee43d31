//! A write's way into a view: the net effect of its operations becomes a live segment and tombstones on older rows.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use antiphon_proto::store::{LogOp, log_op::Op};
use antiphon_proto::v1::{self, Document};
use antiphon_proto::vector;
use roaring::RoaringBitmap;

use super::{RowAddress, SegmentView, View};
use crate::schema::{ShardSchema, VectorFieldSpec};
use crate::segment::{BuildRow, Destination, SegmentBuilder, SegmentError};
use crate::vectors::Metric;

/// Operations of one request, at their position in the log.
#[derive(Debug)]
pub struct OpGroup {
    /// The log position.
    pub seq: u64,
    /// In order; later ones win.
    pub ops: Vec<LogOp>,
}

/// What applying gave.
pub struct Applied {
    /// The view that shows the operations.
    pub view: View,
    /// For each group, the keys that were there and are no more.
    pub num_deleted: Vec<u64>,
}

/// What is left of all operations on one key.
struct Net {
    seq: u64,
    document: Option<Document>,
    base_row: Option<RowAddress>,
}

/// Applies groups in order of their positions, which must be beyond the view's. An empty list gives the view back.
///
/// # Errors
/// [`SegmentError`] where the live segment cannot be built.
pub fn apply(
    view: &View,
    schema: &Arc<ShardSchema>,
    groups: Vec<OpGroup>,
    threads: usize,
) -> Result<Applied, SegmentError> {
    let Some(last_seq) = groups.last().map(|group| group.seq) else {
        return Ok(Applied { view: view.clone(), num_deleted: Vec::new() });
    };
    let (net, num_deleted) = net_effect(view, schema, groups);
    let mut next = View { seq: last_seq, ..view.clone() };
    bury(&mut next, net.values().filter_map(|net| net.base_row));
    let deletes: Vec<_> =
        net.iter().filter(|(_, net)| net.document.is_none()).map(|(folded, net)| (net.seq, folded.clone())).collect();
    if !deletes.is_empty() {
        next.deletes.push(Arc::new(deletes));
    }
    if let Some(segment) = build_live(schema, net, threads)? {
        next.live.push(Arc::new(segment));
    }
    Ok(Applied { view: next, num_deleted })
}

fn net_effect(view: &View, schema: &ShardSchema, groups: Vec<OpGroup>) -> (BTreeMap<String, Net>, Vec<u64>) {
    let mut net: BTreeMap<String, Net> = BTreeMap::new();
    let mut num_deleted = Vec::with_capacity(groups.len());
    for group in groups {
        let mut deleted = 0;
        for op in group.ops {
            let (key, document) = match op.op {
                Some(Op::Upsert(document)) => (document.key.clone(), Some(document)),
                Some(Op::DeleteKey(key)) => (key, None),
                None => continue,
            };
            let folded = schema.key_rule.fold(&key).into_owned();
            match net.entry(folded) {
                Entry::Vacant(entry) => {
                    let base_row = view.find(entry.key());
                    deleted += u64::from(document.is_none() && base_row.is_some());
                    entry.insert(Net { seq: group.seq, document, base_row });
                }
                Entry::Occupied(mut entry) => {
                    let net = entry.get_mut();
                    deleted += u64::from(document.is_none() && net.document.is_some());
                    net.seq = group.seq;
                    net.document = document;
                }
            }
        }
        num_deleted.push(deleted);
    }
    (net, num_deleted)
}

/// Marks rows of a view as dead.
pub(super) fn bury(view: &mut View, rows: impl Iterator<Item = RowAddress>) {
    let mut died: BTreeMap<u32, RoaringBitmap> = BTreeMap::new();
    for address in rows {
        died.entry(address.segment).or_default().insert(address.row);
    }
    let num_sealed = view.sealed.len();
    for (place, rows) in died {
        let place = place as usize;
        let segment = match place.checked_sub(num_sealed) {
            None => view.sealed.get_mut(place),
            Some(place) => view.live.get_mut(place),
        };
        if let Some(segment) = segment {
            *segment = segment.with_dead(&rows);
        }
    }
}

fn build_live(
    schema: &Arc<ShardSchema>,
    net: BTreeMap<String, Net>,
    threads: usize,
) -> Result<Option<SegmentView>, SegmentError> {
    let mut builder = SegmentBuilder::new(Arc::clone(schema), Destination::Memory, None)?;
    for (seq, document) in net.into_values().filter_map(|net| Some((net.seq, net.document?))) {
        builder.add(&build_row(schema, seq, document))?;
    }
    if builder.num_rows() == 0 {
        return Ok(None);
    }
    let segment = builder.finish(&AtomicBool::new(false))?.open(schema, threads)?;
    Ok(Some(SegmentView::new(None, Arc::new(segment), RoaringBitmap::new(), schema.texts.len())))
}

fn build_row(schema: &ShardSchema, seq: u64, mut document: Document) -> BuildRow {
    let vectors = schema.vectors.iter().map(|spec| checked_vector(&document, spec)).collect();
    BuildRow { key: std::mem::take(&mut document.key), seq, fields: document.fields, vectors }
}

/// A document's vector in a field. Writers validate before the log (INV-2); one that slipped through is left out, on
/// every replica alike.
fn checked_vector(document: &Document, spec: &VectorFieldSpec) -> Option<Vec<f32>> {
    let values = vector::components(document.vectors.get(&spec.name)?).ok()?;
    vector::validate(&values, spec.graph.dims, wire_metric(spec.graph.metric)).ok()?;
    Some(values)
}

/// The metric as the contract names it.
pub(crate) fn wire_metric(metric: Metric) -> v1::Metric {
    match metric {
        Metric::Cosine => v1::Metric::Cosine,
        Metric::Dot => v1::Metric::Dot,
        Metric::Euclidean => v1::Metric::Euclidean,
        Metric::Hamming => v1::Metric::Hamming,
    }
}
