//! Compiles the protos with protox, so that no protoc is needed, and keeps the descriptors for reflection.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

const PUBLIC: [&str; 6] = [
    "antiphon/v1/collection_service.proto",
    "antiphon/v1/document_service.proto",
    "antiphon/v1/vector_search_service.proto",
    "antiphon/v1/keyword_search_service.proto",
    "antiphon/v1/hybrid_search_service.proto",
    "antiphon/v1/cluster_service.proto",
];
/// Served only where there is an embedder.
const EMBEDDING: [&str; 2] = ["antiphon/v1/text_search_service.proto", "antiphon/v1/hybrid_text_search_service.proto"];
const INTERNAL: [&str; 2] = ["antiphon/store/v1/store.proto", "antiphon/internal/v1/node_service.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // Callers see the public contract alone by reflection.
    std::fs::write(out.join("public.bin"), protox::compile(PUBLIC, ["proto"])?.encode_to_vec())?;
    let embedding = protox::compile(PUBLIC.iter().chain(&EMBEDDING), ["proto"])?;
    std::fs::write(out.join("public_embedding.bin"), embedding.encode_to_vec())?;
    let all = protox::compile(PUBLIC.iter().chain(&EMBEDDING).chain(&INTERNAL), ["proto"])?;
    tonic_prost_build::configure()
        .bytes(".antiphon.v1.Vector.float32_le")
        .bytes(".antiphon.internal.v1.VectorQuery.vector")
        .btree_map(".antiphon.v1.Document")
        .btree_map(".antiphon.v1.ValueMap")
        .emit_rerun_if_changed(false)
        .compile_fds(all)?;
    Ok(())
}
