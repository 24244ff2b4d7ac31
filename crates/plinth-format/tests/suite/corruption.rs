use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use plinth_core::random::trials;
use plinth_encoding::expr::col;
use plinth_format::{Access, File, FormatError, Result, WriterOptions};
use plinth_io::MemorySource;

use crate::data::{Random, small, wide_batch, write};

/// Bits to flip, one choice a byte; `PLINTH_FLIPS` says how many times each byte is flipped, beyond the first by a number of its own.
const FLIPS: [u8; 5] = [0x01, 0x80, 0xff, 0x7f, 0x10];

fn open(bytes: &[u8]) -> Result<File> {
    File::from_source(Arc::new(MemorySource::new("test.plinth", bytes)))
}

fn read(bytes: &[u8]) -> Result<Vec<RecordBatch>> {
    open(bytes)?.scan().build()?.collect()
}

/// Reads with a predicate, too: another path through metadata, dictionaries and blocks.
fn filtered(bytes: &[u8]) -> Result<Vec<RecordBatch>> {
    open(bytes)?.scan().filter(col("c4").gt_eq(0)).filter(col("c32").not_eq("3-wörd")).build()?.collect()
}

fn example() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    write(&path, &wide_batch(5, 40, 10), small());
    std::fs::read(&path).unwrap()
}

/// A column with several dictionaries and their postings, beside one of numbers.
fn with_dictionaries() -> Vec<u8> {
    let mut random = Random(23);
    let text: Vec<String> = (0..1_500).map(|i| format!("value {} of some", random.below(20 + i / 8))).collect();
    let numbers = Int64Array::from_iter_values(0..1_500);
    let columns: [(&str, ArrayRef); 2] = [("text", Arc::new(StringArray::from(text))), ("n", Arc::new(numbers))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    let sizes = WriterOptions { row_group_rows: 256, block_rows: 128, dictionary_values: 40, ..small() };
    let file = write(&path, &batch, WriterOptions { index: vec!["text".into()], ..sizes });
    assert!(file.report().unwrap().columns[0].dictionaries > 2);
    std::fs::read(&path).unwrap()
}

/// As [`filtered`], by the dictionaries and by the postings.
fn looked_up(bytes: &[u8]) -> Result<Vec<RecordBatch>> {
    let file = open(bytes)?;
    let scan = |access| -> Result<Vec<RecordBatch>> {
        file.scan().filter(col("text").eq("value 7 of some")).access(access).build()?.collect()
    };
    let (scanned, listed) = (scan(Access::Scan)?, scan(Access::Postings)?);
    assert!(scanned == listed, "postings and codes disagree");
    Ok(scanned)
}

#[test]
fn every_flipped_byte_is_noticed_or_harmless() {
    flip_each(&example(), filtered);
}

#[test]
fn every_flipped_byte_of_a_file_with_several_dictionaries_is_noticed_or_harmless() {
    flip_each(&with_dictionaries(), looked_up);
}

fn flip_each(good: &[u8], filtered: fn(&[u8]) -> Result<Vec<RecordBatch>>) {
    let (answer, filtered_answer) = (read(good).unwrap(), filtered(good).unwrap());
    assert!(!filtered_answer.is_empty());
    let rounds = trials("PLINTH_FLIPS", 1);
    let mut harmless = 0;
    for (round, i) in (0..rounds).flat_map(|round| (0..good.len()).map(move |i| (round, i))) {
        let mut bad = good.to_vec();
        bad[i] ^= match round {
            0 => FLIPS[i % FLIPS.len()],
            _ => u8::try_from(1 + Random(round << 32 | i as u64).below(255)).unwrap(),
        };
        match read(&bad) {
            Ok(batches) => {
                assert!(batches == answer, "byte {i} changed the answer");
                harmless += usize::from(open(&bad).is_ok_and(|file| file.verify(1, &|_| {}).is_ok()));
            }
            Err(FormatError::Corrupt { file, .. } | FormatError::Version { file, .. }) => {
                assert_eq!(file, "test.plinth")
            }
            Err(other) => panic!("byte {i}: {other}"),
        }
        if let Ok(batches) = filtered(&bad) {
            assert!(batches == filtered_answer, "byte {i} changed the filtered answer");
        }
    }
    let flips = good.len() * usize::try_from(rounds).unwrap();
    println!("{flips} flips, {harmless} harmless");
    // Only the header and padding may change unnoticed.
    assert!(harmless < flips / 3, "{harmless} of {flips} flips went unnoticed");
}

#[test]
fn every_truncation_is_an_error_that_names_the_file() {
    let good = example();
    for len in 0..good.len() {
        let error = read(&good[..len]).unwrap_err().to_string();
        assert!(error.contains("test.plinth"), "{error}");
    }
    let mut longer = good.clone();
    longer.extend_from_slice(b"more");
    assert!(read(&longer).is_err());
}

#[test]
fn damage_is_reported_with_column_block_and_offset() {
    let good = example();
    let file = File::from_source(Arc::new(MemorySource::new("t", &good))).unwrap();
    let mut bad = good.clone();
    bad[64] ^= 1;
    let error = read(&bad).unwrap_err().to_string();
    for part in ["test.plinth", "column \"c", "row group 0", "block 0", "offset 64", "checksum"] {
        assert!(error.contains(part), "{error} lacks {part}");
    }
    let damaged = File::from_source(Arc::new(MemorySource::new("t", &bad))).unwrap();
    assert!(damaged.verify(1, &|_| {}).is_err());
    assert!(file.verify(1, &|_| {}).is_ok());
}

/// Seals damaged metadata with the right checksums, so that only the reader's own checks stand between it and harm.
#[test]
fn hostile_metadata_with_valid_checksums_never_harms() {
    let good = example();
    let checksum = |bytes: &[u8]| plinth_core::wire::checksum(bytes).to_le_bytes();
    let tail = good.len() - 52;
    let footer_at = u64::from_le_bytes(good[tail..tail + 8].try_into().unwrap()) as usize;
    let mut outcomes = [0, 0];
    for i in footer_at..tail {
        let mut bad = good.clone();
        bad[i] ^= FLIPS[i % FLIPS.len()];
        let sum = checksum(&bad[footer_at..tail]);
        bad[tail + 12..tail + 20].copy_from_slice(&sum);
        let sum = checksum(&bad[tail..tail + 36]);
        bad[tail + 36..tail + 44].copy_from_slice(&sum);
        outcomes[usize::from(read(&bad).is_ok())] += 1;
    }
    assert!(outcomes[0] > 0, "{outcomes:?}");
    // The same for the column metadata, whose checksums stand in the footer's directory.
    let streams = (tail - footer_at) / 20;
    for entry in 0..streams {
        let at = tail - (entry + 1) * 20;
        let offset = u64::from_le_bytes(good[at..at + 8].try_into().unwrap()) as usize;
        let len = u32::from_le_bytes(good[at + 8..at + 12].try_into().unwrap()) as usize;
        if offset < 64 || offset + len > footer_at {
            break;
        }
        for i in offset..offset + len {
            let mut bad = good.clone();
            bad[i] ^= FLIPS[i % FLIPS.len()];
            let sum = checksum(&bad[offset..offset + len]);
            bad[at + 12..at + 20].copy_from_slice(&sum);
            let sum = checksum(&bad[footer_at..tail]);
            bad[tail + 12..tail + 20].copy_from_slice(&sum);
            let sum = checksum(&bad[tail..tail + 36]);
            bad[tail + 36..tail + 44].copy_from_slice(&sum);
            outcomes[usize::from(read(&bad).is_ok())] += 1;
            let _ = filtered(&bad);
        }
    }
    assert!(outcomes[0] > 1000, "{outcomes:?}");
}

#[test]
fn other_files_are_not_mistaken_for_ours() {
    for bytes in [&b""[..], b"x", &[0; 51], &[0; 52], &[0xff; 5000], b"PAR1 nothing of ours PAR1"] {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains("test.plinth: not a Plinth file"), "{error}");
    }
}
