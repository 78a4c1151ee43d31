//! `antiphon status`: nodes, shards and collections, and what is wrong with them in words.

use antiphon_proto::v1;
use antiphon_proto::v1::cluster_service_client::ClusterServiceClient;
use antiphon_proto::v1::collection_service_client::CollectionServiceClient;
use serde_json::{Value, json};

use super::collection;
use crate::args::StatusArgs;
use crate::client::{self, MAX_ANSWER_BYTES};
use crate::failure::Failure;
use crate::output::{CollectionJson, Table, bytes, count, plain, print, print_json};

/// Runs the command.
///
/// # Errors
/// Those of the calls.
pub(crate) async fn run(args: &StatusArgs) -> Result<(), Failure> {
    let channel = client::connect(&args.connection).await?;
    let mut cluster_client = ClusterServiceClient::new(channel.clone()).max_decoding_message_size(MAX_ANSWER_BYTES);
    let mut collections_client = CollectionServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
    let cluster =
        cluster_client.describe_cluster(client::request(v1::DescribeClusterRequest {}, &args.connection)).await;
    let cluster = cluster.map_err(|status| client::failure(&status))?.into_inner();
    let collections = collection::list(&mut collections_client, &args.connection).await?;
    if args.json {
        print_json(&json(&cluster, &collections))
    } else {
        print(&words(&args.connection.address, &cluster, &collections))
    }
}

fn words(address: &str, cluster: &v1::DescribeClusterResponse, collections: &[v1::Collection]) -> String {
    let mut nodes = Table::new(&["member", "role", "address", "zone", "state", "version"]);
    for node in &cluster.nodes {
        let state = match (node.reachable, node.state.as_str()) {
            (false, "lost") => "lost",
            (false, _) => "unreachable",
            (true, "draining") => "draining",
            (true, _) => "reachable",
        };
        let zone = if node.zone.is_empty() { "-" } else { &node.zone };
        let cells = [&node.id, &node.role, &node.address, zone, state, &node.version];
        nodes.row(cells.map(str::to_owned));
    }
    let mut shards = Table::new(&[
        "collection",
        "#shard",
        "node",
        "state",
        "#documents",
        "#deleted",
        "#segments",
        "#size",
        "#unsealed",
        "#position",
        "#lag",
    ]);
    for shard in &cluster.shards {
        for replica in &shard.replicas {
            shards.row([
                shard.collection.clone(),
                shard.shard.to_string(),
                if replica.node_id.is_empty() { &replica.node_address } else { &replica.node_id }.clone(),
                match (replica.serving, replica.owner) {
                    (true, true) => "serving, owner",
                    (true, false) => "serving",
                    (false, _) => "not serving",
                }
                .to_owned(),
                count(replica.num_docs),
                count(replica.num_deleted),
                count(replica.num_segments),
                bytes(replica.size_bytes),
                format!("{} ({})", count(replica.num_live_rows), bytes(replica.live_bytes)),
                count(replica.seq),
                count(replica.lag),
            ]);
        }
    }
    let mut out = format!("{address} runs antiphon {}\n", plain(&cluster.version));
    let mut embedders = Table::new(&["embedder", "kind", "model", "#dimensions"]);
    for embedder in &cluster.embedders {
        let dimensions = embedder.dimensions.to_string();
        embedders.row([embedder.name.clone(), embedder.kind.clone(), embedder.model.clone(), dimensions]);
    }
    for table in [nodes, embedders, collection::table(collections), shards] {
        if !table.is_empty() {
            out.push('\n');
            out.push_str(&table.render(0));
        }
    }
    let problems = problems(cluster);
    out.push('\n');
    if problems.is_empty() {
        out.push_str("No problems.\n");
    }
    for problem in problems {
        out.push_str(&format!("Problem: {}\n", plain(&problem)));
    }
    out
}

/// What is wrong, a sentence each.
fn problems(cluster: &v1::DescribeClusterResponse) -> Vec<String> {
    let mut problems = Vec::new();
    let because = |why: &str| if why.is_empty() { String::new() } else { format!(": {why}") };
    for node in &cluster.nodes {
        if !node.reachable || !node.problem.is_empty() {
            let what = match (node.reachable, node.state.as_str()) {
                (true, _) => "has a problem",
                (false, "lost") => "is lost",
                (false, _) => "is unreachable",
            };
            let role = if node.role == "coordinator" { "coordinator" } else { "node" };
            problems.push(format!("{role} {} at {} {what}{}", node.id, node.address, because(&node.problem)));
        }
    }
    for shard in &cluster.shards {
        let name = format!("shard {} of {}", shard.shard, shard.collection);
        if !shard.problem.is_empty() {
            problems.push(format!("{name}: {}", shard.problem));
        }
        for replica in &shard.replicas {
            let node = if replica.node_id.is_empty() { &replica.node_address } else { &replica.node_id };
            if !replica.serving {
                problems.push(format!("{name} is not served by {node}{}", because(&replica.problem)));
            } else if !replica.problem.is_empty() {
                problems.push(format!("{name} on {node}: {}", replica.problem));
            }
            if !replica.quarantined_segments.is_empty() {
                let segments = replica.quarantined_segments.join(", ");
                problems.push(format!("{name} on {node} has set damaged segments aside: {segments}"));
            }
        }
    }
    problems
}

fn json(cluster: &v1::DescribeClusterResponse, collections: &[v1::Collection]) -> Value {
    let replica = |replica: &v1::Replica| {
        json!({
            "node_address": replica.node_address, "serving": replica.serving, "problem": replica.problem, "seq": replica.seq,
            "manifest_version": replica.manifest_version, "num_docs": replica.num_docs, "num_deleted": replica.num_deleted,
            "num_segments": replica.num_segments, "size_bytes": replica.size_bytes, "num_live_rows": replica.num_live_rows,
            "live_bytes": replica.live_bytes, "quarantined_segments": replica.quarantined_segments,
            "node_id": replica.node_id, "owner": replica.owner, "lag": replica.lag,
        })
    };
    json!({
        "version": cluster.version,
        "nodes": cluster.nodes.iter().map(|node| json!({
            "id": node.id, "address": node.address, "reachable": node.reachable, "problem": node.problem, "version": node.version,
            "role": node.role, "state": node.state, "zone": node.zone,
        })).collect::<Vec<_>>(),
        "shards": cluster.shards.iter().map(|shard| json!({
            "collection": shard.collection, "shard": shard.shard, "replica_count": shard.replica_count, "problem": shard.problem,
            "replicas": shard.replicas.iter().map(replica).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "embedders": cluster.embedders.iter().map(|embedder| json!({
            "name": embedder.name, "kind": embedder.kind, "model": embedder.model, "dimensions": embedder.dimensions,
        })).collect::<Vec<_>>(),
        "collections": collections.iter().map(CollectionJson::from).collect::<Vec<_>>(),
        "problems": problems(cluster),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_is_a_sentence() {
        let replica = |serving, problem: &str, quarantined: &[&str]| v1::Replica {
            node_address: "http://n1".to_owned(),
            serving,
            problem: problem.to_owned(),
            quarantined_segments: quarantined.iter().map(|name| (*name).to_owned()).collect(),
            ..v1::Replica::default()
        };
        let shard = |shard, replicas, problem: &str| v1::Shard {
            collection: "c".to_owned(),
            shard,
            replicas,
            replica_count: 1,
            problem: problem.to_owned(),
        };
        let cluster = v1::DescribeClusterResponse {
            nodes: vec![v1::Node {
                id: "n1".into(),
                address: "http://n1".into(),
                problem: "refused".into(),
                ..v1::Node::default()
            }],
            shards: vec![
                shard(0, vec![replica(true, "", &[])], ""),
                shard(1, vec![replica(false, "no manifest", &[])], "no node serves it"),
                shard(2, vec![replica(true, "", &["01AB"])], ""),
            ],
            version: "1".to_owned(),
            embedders: vec![v1::Embedder { name: "m".into(), kind: "static".into(), ..v1::Embedder::default() }],
        };
        assert_eq!(
            problems(&cluster),
            [
                "node n1 at http://n1 is unreachable: refused",
                "shard 1 of c: no node serves it",
                "shard 1 of c is not served by http://n1: no manifest",
                "shard 2 of c on http://n1 has set damaged segments aside: 01AB",
            ]
        );
        assert!(words("http://x", &cluster, &[]).contains("Problem: shard 2"));
        assert!(words("http://x", &cluster, &[]).contains("embedder"));
        assert!(words("http://x", &v1::DescribeClusterResponse::default(), &[]).contains("No problems."));
    }
}
