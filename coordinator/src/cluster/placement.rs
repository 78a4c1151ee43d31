//! Which node serves a shard: rendezvous hashing, a pure function of the nodes and the shard.
//!
//! Source: Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous" (1996): the node with the highest weight
//! of (node, shard) has it, so a node that goes takes only its own shards along.

/// The index of the node that has the highest weight for a shard; ties go to the lesser address. None where there are no
/// nodes.
pub fn place<'a>(collection_uid: &str, shard: u32, nodes: impl Iterator<Item = &'a str>) -> Option<usize> {
    nodes
        .enumerate()
        .max_by_key(|(_, address)| (weight(collection_uid, shard, address), std::cmp::Reverse(*address)))
        .map(|(index, _)| index)
}

/// FNV-1a over the parts (Fowler, Noll, Vo), finished by SplitMix64 (Steele, Lea, Flood), whose bits all depend on each
/// other.
fn weight(collection_uid: &str, shard: u32, address: &str) -> u64 {
    let parts = [collection_uid.as_bytes(), &shard.to_le_bytes(), address.as_bytes()];
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.iter().chain(&[0xff])) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [&str; 4] = ["http://a:1", "http://b:1", "http://c:1", "http://d:1"];

    #[test]
    fn shards_spread_evenly() {
        let mut counts = [0; 4];
        for shard in 0..4000 {
            counts[place("uid", shard, NODES.into_iter()).unwrap_or(usize::MAX)] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_node_that_goes_moves_only_its_own_shards() {
        for shard in 0..1000 {
            let before = place("uid", shard, NODES.into_iter());
            let after = place("uid", shard, NODES[..3].iter().copied());
            assert!(before == Some(3) || before == after);
        }
        assert_eq!(place("uid", 0, std::iter::empty()), None);
    }

    #[test]
    fn the_order_of_the_nodes_does_not_matter() {
        for shard in 0..100 {
            let forward = place("uid", shard, NODES.into_iter()).map(|index| NODES[index]);
            let backward = place("uid", shard, NODES.into_iter().rev()).map(|index| NODES[3 - index]);
            assert_eq!(forward, backward);
        }
    }
}
