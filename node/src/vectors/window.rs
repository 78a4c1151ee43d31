//! The first n matches of a vector channel over one segment, by graph or by exact scan.
//!
//! Not for merging segments. Invariants: the order is (score descending, row ascending); scores come from the float32
//! rows; how rows are searched, and so the ranking, depends on the view, the query and the depth, never on n, so that a
//! window is the head of every longer one.

use std::sync::OnceLock;

use crate::attributes::{NodeSet, Selection};
use crate::graph::{Admitted, Graph, GraphError};
use crate::vectors::kernel::prefetch;
use crate::vectors::top::Top;
use crate::vectors::{Metric, Scorer, VectorFile};

/// Rows between two looks at whether to stop.
const STOP_INTERVAL: u32 = 1024;

/// What visiting a graph costs for each candidate wanted, in rows scanned one after another. From 100,000 vectors of 384
/// elements at depth 128, where graph and scan take the same time when a fifth of the rows is live:
/// `20,000 rows = 31 × 128 / 0.2`.
const ROWS_PER_CANDIDATE: f64 = 31.0;

/// What scanning one of the scattered rows that a filter selects costs, in rows scanned one after another. From 63,436
/// vectors of 256 elements: 54 ns a row of all, 136 to 155 ns at shares of 0.5 to 0.3 (`bench-filter`, raw scans).
/// Less than these say, for a scan is exact.
const ROWS_PER_SCATTERED_ROW: f64 = 2.0;

/// Bytes of rows asked from memory ahead of their scoring; a quarter of a usual first-level cache.
const PREFETCH_BYTES: usize = 8192;

/// Why a segment could not be searched by vector.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// The caller went away or its deadline passed.
    #[error("the search was stopped")]
    Stopped,
    /// The graph could not be searched.
    #[error("the graph could not be searched")]
    Graph {
        /// What the graph said.
        #[from]
        source: GraphError,
    },
}

/// The best `n` of the rows that may be found and have a vector, best first, with their scores.
///
/// `graph` was built from `file`, and is asked for `depth` candidates: one number whatever the page. `n` cuts the ranking
/// and changes nothing else. The rows are scanned where there is no graph, where the caller wants them `exact`, where a
/// scan is estimated to be cheaper, where the query ranks nothing (a zero vector), and where the graph finds fewer
/// candidates than there are. `nodes` keeps the graph's nodes of [`Selection::Only`] for the next search of the same rows.
///
/// # Errors
/// [`VectorError::Stopped`] when `stop` said so (asked every thousand rows), [`VectorError::Graph`].
#[expect(clippy::too_many_arguments, reason = "each is one word of the question; a struct would only name them again")]
pub fn vector_window(
    file: &VectorFile,
    graph: Option<&Graph>,
    scorer: &Scorer,
    depth: usize,
    rows: Selection<'_>,
    nodes: Option<&OnceLock<NodeSet>>,
    n: usize,
    exact: bool,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<(u32, f64)>, VectorError> {
    if stop() {
        return Err(VectorError::Stopped);
    }
    let own_nodes = OnceLock::new();
    let search = SegmentSearch { file, scorer, rows, nodes: nodes.unwrap_or(&own_nodes), stop };
    let depth = depth.max(1);
    if let Some(graph) = graph
        && !exact
        && search.graph_is_cheaper(depth, graph.strays().len())
        && search.query_ranks()
        && let Some(nodes) = search.search_graph(graph, depth)?
    {
        return search.rescore(&nodes, n);
    }
    search.scan(n)
}

/// One search of one segment.
struct SegmentSearch<'a> {
    file: &'a VectorFile,
    scorer: &'a Scorer,
    /// Those that may be found.
    rows: Selection<'a>,
    /// The graph's nodes among them, where they are a set.
    nodes: &'a OnceLock<NodeSet>,
    stop: &'a dyn Fn() -> bool,
}

impl SegmentSearch<'_> {
    /// Whether asking the graph is estimated to take less time than scanning the rows that may be found. Depends on the
    /// graph, the numbers of rows, and the depth alone.
    fn graph_is_cheaper(&self, depth: usize, num_strays: usize) -> bool {
        let count = f64::from(self.file.len());
        let num_rows = self.file.num_rows();
        let share = f64::from(self.rows.len(num_rows)) / f64::from(num_rows.max(1));
        // The graph visits other nodes as well until it has found enough of these.
        let graph_cost = ROWS_PER_CANDIDATE * depth as f64 / share + num_strays as f64;
        let row_cost = if matches!(self.rows, Selection::Only { .. }) { ROWS_PER_SCATTERED_ROW } else { 1.0 };
        share > 0.0 && graph_cost < count * share * row_cost
    }

    /// Whether the query tells rows apart: under the inner product a zero vector does not.
    fn query_ranks(&self) -> bool {
        self.scorer.metric() != Metric::Dot || self.scorer.query().iter().any(|&value| value != 0.0)
    }

    /// Whether one of the rows that the node stands for may be found.
    fn node_may_be_found(&self, node: u32) -> bool {
        self.file.group_of(node).any(|slot| self.file.row_of_slot(slot).is_some_and(|row| self.rows.contains(row)))
    }

    /// The graph's `depth` nearest nodes with a row that may be found, and its strays, or `None` where it finds fewer
    /// although there are more: deleted neighbours, or such as a filter rules out, must not hide others.
    fn search_graph(&self, graph: &Graph, depth: usize) -> Result<Option<Vec<u32>>, VectorError> {
        let set = match self.rows {
            Selection::Only { rows, .. } => Some(self.nodes.get_or_init(|| self.file.nodes_of_rows(rows))),
            Selection::All | Selection::Except(_) => None,
        };
        let by_row = |node: u32| self.node_may_be_found(node);
        let may_be_found = |node: u32| set.map_or_else(|| by_row(node), |set| set.slots.contains(node));
        let admitted = match set {
            Some(set) if set.len == self.file.num_graph_nodes() => Admitted::All,
            Some(set) => Admitted::Among(&set.slots),
            None if self.rows.is_all() => Admitted::All,
            None => Admitted::By(&by_row),
        };
        let mut nodes = graph.search(self.scorer.query(), depth, admitted)?;
        let is_full = nodes.len() >= depth;
        nodes.sort_unstable();
        let is_missing = |stray: &&u32| nodes.binary_search(stray).is_err() && may_be_found(**stray);
        let strays: Vec<u32> = graph.strays().iter().filter(is_missing).copied().collect();
        nodes.extend(strays);
        let is_complete = is_full
            || match set {
                Some(set) => nodes.len() >= set.len as usize,
                None => nodes.len() >= self.nodes_up_to(nodes.len() + 1)?,
            };
        Ok(is_complete.then_some(nodes))
    }

    /// Counts the nodes with a row that may be found, up to `limit`.
    fn nodes_up_to(&self, limit: usize) -> Result<usize, VectorError> {
        if self.rows.is_all() {
            return Ok(limit.min(self.file.num_graph_nodes() as usize));
        }
        let mut found = 0;
        for slot in 0..self.file.len() {
            self.poll(slot)?;
            found += usize::from(self.file.is_graph_node(slot) && self.node_may_be_found(slot));
            if found == limit {
                break;
            }
        }
        Ok(found)
    }

    /// The best of the rows that the nodes stand for, as far as they may be found.
    fn rescore(&self, nodes: &[u32], n: usize) -> Result<Vec<(u32, f64)>, VectorError> {
        let slots = nodes.iter().flat_map(|&node| self.file.group_of(node));
        let may_be_found = |slot: &u32| self.file.row_of_slot(*slot).is_some_and(|row| self.rows.contains(row));
        self.score_slots(&slots.filter(may_be_found).collect::<Vec<u32>>(), n)
    }

    /// The best of scattered rows.
    fn score_slots(&self, slots: &[u32], n: usize) -> Result<Vec<(u32, f64)>, VectorError> {
        let mut top = Top::new(n);
        let (dims, vectors, norms) = (self.file.dims(), self.file.vectors(), self.file.norms());
        let vector = |slot: u32| {
            let from = slot as usize * dims;
            vectors.get(from..from + dims)
        };
        // The rows lie far apart: each is on its way from memory while those before it are scored.
        let ahead = (PREFETCH_BYTES / (4 * dims.max(1))).max(1);
        let ask_for = |slot: &u32| vector(*slot).map(prefetch).unwrap_or_default();
        slots.iter().take(ahead).for_each(ask_for);
        for (visited, &slot) in slots.iter().enumerate() {
            self.poll(visited as u32)?;
            slots.get(visited + ahead).map(ask_for).unwrap_or_default();
            if let (Some(vector), Some(norm), Some(row)) =
                (vector(slot), norms.get(slot as usize), self.file.row_of_slot(slot))
            {
                top.push(row, self.scorer.score(vector, *norm));
            }
        }
        Ok(top.into_sorted())
    }

    fn scan(&self, n: usize) -> Result<Vec<(u32, f64)>, VectorError> {
        let dead = match self.rows {
            Selection::All => None,
            Selection::Except(dead) => Some(dead),
            // The others are not even looked at.
            Selection::Only { rows, .. } => {
                let slots: Vec<u32> = rows.iter().filter_map(|row| self.file.slot_of_row(row)).collect();
                return self.score_slots(&slots, n);
            }
        };
        let mut top = Top::new(n);
        // Rows ascend with slots, so walking along the dead rows is cheaper than looking each one up.
        let mut dead = dead.into_iter().flatten().peekable();
        for slot in 0..self.file.len() {
            self.poll(slot)?;
            let Some(row) = self.file.row_of_slot(slot) else { continue };
            while dead.next_if(|&dead| dead < row).is_some() {}
            if dead.peek() != Some(&row) {
                self.score_into(&mut top, slot, row);
            }
        }
        Ok(top.into_sorted())
    }

    fn score_into(&self, top: &mut Top, slot: u32, row: u32) {
        if let Some((vector, norm)) = self.file.vector(slot).zip(self.file.norm(slot)) {
            top.push(row, self.scorer.score(vector, norm));
        }
    }

    fn poll(&self, visited: u32) -> Result<(), VectorError> {
        if visited % STOP_INTERVAL == STOP_INTERVAL - 1 && (self.stop)() {
            return Err(VectorError::Stopped);
        }
        Ok(())
    }
}
