//! FORMAT.md shows a whole file byte by byte; this writes that file and compares, so that the page and the code agree.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use plinth_format::WriterOptions;

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
