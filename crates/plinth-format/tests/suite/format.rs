//! FORMAT.md shows a whole file byte by byte; this writes that file and compares, so that the page and the code agree.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use plinth_format::{File, WriterOptions};
use plinth_io::MemorySource;

use crate::data::write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../FORMAT.md");

/// The bytes of the page's block fenced as `hex`: up to 16 pairs a line between the offset and the comment.
fn documented() -> Vec<u8> {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (_, block) = page.split_once("```hex\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let mut bytes = Vec::new();
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let (offset, rest) = line.split_once("  ").unwrap();
        assert_eq!(usize::from_str_radix(offset, 16).unwrap(), bytes.len(), "{line}");
        let pairs = rest.split("  ").next().unwrap();
        bytes.extend(pairs.split(' ').map(|pair| u8::from_str_radix(pair, 16).unwrap()));
    }
    bytes
}

fn written() -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("n", Arc::new(Int32Array::from(vec![7, 9, 7])) as ArrayRef, false),
        ("word", Arc::new(StringArray::from(vec![Some("ab"), None, Some("cab")])) as ArrayRef, true),
    ])
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiny.plinth");
    write(&path, &batch, WriterOptions::default());
    std::fs::read(&path).unwrap()
}

#[test]
fn the_example_in_format_md_is_what_the_writer_writes() {
    let (documented, written) = (documented(), written());
    let dump: Vec<String> = written
        .chunks(16)
        .enumerate()
        .map(|(i, line)| {
            format!("{:04x}  {}", i * 16, line.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" "))
        })
        .collect();
    assert!(documented == written, "FORMAT.md shows other bytes; the writer's are\n{}", dump.join("\n"));
}

/// The example with other bytes where version and features are, and a right checksum.
fn of_version(version: u32, features: u32) -> Vec<u8> {
    let mut bytes = written();
    let tail = bytes.len() - 52;
    bytes[tail + 28..tail + 32].copy_from_slice(&version.to_le_bytes());
    bytes[tail + 32..tail + 36].copy_from_slice(&features.to_le_bytes());
    let sum = crate::forge::checksum(&bytes[tail..tail + 36]);
    bytes[tail + 36..tail + 44].copy_from_slice(&sum);
    bytes
}

#[test]
fn other_versions_and_unknown_features_are_refused_with_what_to_do() {
    let open = |bytes: Vec<u8>| File::from_source(Arc::new(MemorySource::new("x.plinth", &bytes)));
    open(of_version(1, 0)).unwrap();
    open(of_version(1, 3)).unwrap();
    for (version, features, what) in [
        (0, 3, "before version 1 of the format"),
        (2, 0, "written by a newer Plinth (format version 2, this one reads 1); update Plinth"),
        (1, 0b1000_0111, "needs features of the format that this Plinth does not know (2, 7); update Plinth"),
    ] {
        let error = open(of_version(version, features)).unwrap_err().to_string();
        assert!(error.contains("x.plinth") && error.contains(what), "{error}");
    }
}
