//! [`check_manifest`]: what is true of every manifest in the store.
//!
//! Not checked here: what needs other knowledge than the manifest's own (whether the files exist, whether the tombstones'
//! bitmap can be parsed and stays below `num_rows`).

use std::collections::HashSet;

use antiphon_proto::store::{Manifest, SegmentEntry};

use crate::ids::SegmentId;
use crate::path;

/// What a manifest says that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFault {
    /// Log entries in the segments whose deletes would be missing from the tombstones.
    #[error("covered_seq {covered_seq} is above tombstone_seq {tombstone_seq}")]
    TombstonesBehind {
        /// As the manifest says.
        covered_seq: u64,
        /// As the manifest says.
        tombstone_seq: u64,
    },
    /// A name that is no segment's.
    #[error("{id:?} is no segment id")]
    SegmentId {
        /// As the manifest says.
        id: String,
    },
    /// Its rows would be found twice.
    #[error("segment {id} is named twice")]
    SegmentTwice {
        /// The segment.
        id: String,
    },
    /// A segment without rows must not exist.
    #[error("segment {id} has no rows")]
    NoRows {
        /// The segment.
        id: String,
    },
    /// A segment without files cannot be read.
    #[error("segment {id} has no files")]
    NoFiles {
        /// The segment.
        id: String,
    },
    /// A name that is no file's.
    #[error("segment {id} names a file {name:?}")]
    FileName {
        /// The segment.
        id: String,
        /// As the manifest says.
        name: String,
    },
    /// Two sizes and checksums for one file.
    #[error("segment {id} names the file {name} twice")]
    FileTwice {
        /// The segment.
        id: String,
        /// The file.
        name: String,
    },
}

/// Checks a manifest, before it is written and after it is read.
pub fn check_manifest(manifest: &Manifest) -> Result<(), ManifestFault> {
    if manifest.covered_seq > manifest.tombstone_seq {
        return Err(ManifestFault::TombstonesBehind {
            covered_seq: manifest.covered_seq,
            tombstone_seq: manifest.tombstone_seq,
        });
    }
    let mut ids = HashSet::new();
    for segment in &manifest.segments {
        check_segment(segment)?;
        if !ids.insert(segment.id.as_str()) {
            return Err(ManifestFault::SegmentTwice { id: segment.id.clone() });
        }
    }
    Ok(())
}

fn check_segment(segment: &SegmentEntry) -> Result<(), ManifestFault> {
    let id = || segment.id.clone();
    if segment.id.parse::<SegmentId>().is_err() {
        return Err(ManifestFault::SegmentId { id: id() });
    }
    if segment.num_rows == 0 {
        return Err(ManifestFault::NoRows { id: id() });
    }
    if segment.files.is_empty() {
        return Err(ManifestFault::NoFiles { id: id() });
    }
    let mut names = HashSet::new();
    for file in &segment.files {
        let name = || file.name.clone();
        if !path::is_part(&file.name) {
            return Err(ManifestFault::FileName { id: id(), name: name() });
        }
        if !names.insert(file.name.as_str()) {
            return Err(ManifestFault::FileTwice { id: id(), name: name() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use antiphon_proto::store::SegmentFile;

    use super::*;

    fn good() -> Manifest {
        let file = |name: &str| SegmentFile { name: name.to_owned(), size_bytes: 1, crc32: 2 };
        let segment = || SegmentEntry {
            id: SegmentId::generate().to_string(),
            format_version: 1,
            num_rows: 3,
            files: vec![file("rows"), file("text.bundle")],
            tombstones: Default::default(),
        };
        Manifest { covered_seq: 4, tombstone_seq: 4, segments: vec![segment(), segment()], schema_version: 0 }
    }

    #[test]
    fn each_fault_is_found() {
        assert_eq!(check_manifest(&good()), Ok(()));
        assert_eq!(check_manifest(&Manifest::default()), Ok(()));
        let fault = |change: &dyn Fn(&mut Manifest)| {
            let mut manifest = good();
            change(&mut manifest);
            check_manifest(&manifest)
        };
        use ManifestFault as Fault;
        assert!(matches!(fault(&|m| m.tombstone_seq = 3), Err(Fault::TombstonesBehind { .. })));
        assert!(matches!(fault(&|m| m.segments[1] = m.segments[0].clone()), Err(Fault::SegmentTwice { .. })));
        assert!(matches!(fault(&|m| m.segments[0].id = "../x".to_owned()), Err(Fault::SegmentId { .. })));
        assert!(matches!(fault(&|m| m.segments[0].num_rows = 0), Err(Fault::NoRows { .. })));
        assert!(matches!(fault(&|m| m.segments[1].files.clear()), Err(Fault::NoFiles { .. })));
        assert!(matches!(fault(&|m| m.segments[1].files[0].name = "a/b".to_owned()), Err(Fault::FileName { .. })));
        assert!(matches!(
            fault(&|m| m.segments[1].files[0].name = "text.bundle".to_owned()),
            Err(Fault::FileTwice { .. })
        ));
    }
}
