//! Where a segment's files are built: in memory for live segments, in a directory for sealed ones.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use crate::mapped::Blob;

use super::{BuiltFile, SegmentError};

/// Where the files of one segment go.
#[derive(Debug, Clone)]
pub enum Destination {
    /// Nowhere but memory.
    Memory,
    /// An empty directory of their own.
    Directory(PathBuf),
}

/// One file being written.
pub(super) enum Output {
    Memory(Cursor<Vec<u8>>),
    File { file: File, path: PathBuf },
}

impl Destination {
    pub(super) fn create(&self, name: &str) -> io::Result<Output> {
        match self {
            Destination::Memory => Ok(Output::Memory(Cursor::new(Vec::new()))),
            Destination::Directory(directory) => {
                let path = directory.join(name);
                let file = File::options().create_new(true).read(true).write(true).open(&path)?;
                Ok(Output::File { file, path })
            }
        }
    }

    /// Writes a whole file.
    pub(super) fn put(&self, name: String, bytes: &[u8]) -> Result<BuiltFile, SegmentError> {
        let mut output = self.create(&name)?;
        output.write_all(bytes)?;
        output.close(name)
    }

    /// Where a library that writes by path shall write.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        match self {
            Destination::Memory => None,
            Destination::Directory(directory) => Some(directory.join(name)),
        }
    }

    /// Takes in a file that a library wrote by path.
    pub(super) fn adopt(&self, name: String) -> Result<BuiltFile, SegmentError> {
        let path = self.path(&name).ok_or(SegmentError::Mismatch("a file written by path, in memory"))?;
        let file = File::options().read(true).write(true).open(&path)?;
        Output::File { file, path }.close(name)
    }
}

impl Output {
    /// Ends the file: sizes it, sums it, and makes it readable.
    pub(super) fn close(self, name: String) -> Result<BuiltFile, SegmentError> {
        match self {
            Output::Memory(cursor) => {
                let bytes = cursor.into_inner();
                let crc32 = crc32fast::hash(&bytes);
                Ok(BuiltFile {
                    name,
                    size_bytes: bytes.len() as u64,
                    crc32,
                    blob: Blob::from_bytes(&bytes),
                    path: None,
                })
            }
            Output::File { mut file, path } => {
                file.flush()?;
                file.seek(SeekFrom::Start(0))?;
                let (crc32, size_bytes) = checksum(&mut file)?;
                drop(file);
                let blob = Blob::map_verified(&path, size_bytes, crc32)?;
                Ok(BuiltFile { name, size_bytes, crc32, blob, path: Some(path) })
            }
        }
    }
}

fn checksum(file: &mut File) -> io::Result<(u32, u64)> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    let mut size = 0;
    loop {
        let len = file.read(&mut buffer)?;
        if len == 0 {
            return Ok((hasher.finalize(), size));
        }
        hasher.update(&buffer[..len]);
        size += len as u64;
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Memory(cursor) => cursor.write(bytes),
            Output::File { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Memory(cursor) => cursor.flush(),
            Output::File { file, .. } => file.flush(),
        }
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Output::Memory(cursor) => cursor.seek(to),
            Output::File { file, .. } => file.seek(to),
        }
    }
}
