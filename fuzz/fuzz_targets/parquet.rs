//! Parquet files of every type that can be written, with some bytes changed: rows or an error of one line, no panic, no memory
//! beyond what the rows take. Parquet has no checksums by default, so changed values are not noticed.
#![no_main]

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{LazyLock, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use libfuzzer_sys::fuzz_target;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterVersion};
use plinth_fuzz::Bytes;
use plinth_fuzz::data::{Random, all_types, array};
use plinth_fuzz::forge::{change, resize};
use plinth_ingest::{FileFormat, SourceOptions, open};

const ROWS: usize = 150;

type Key = (usize, u8);

/// The crate parquet panics on some metadata, which is caught where footers are read. The fuzzer's own hook would end the run there; an
/// uncaught panic still does, and says then what it was.
static CAUGHT: LazyLock<()> = LazyLock::new(|| {
    std::panic::set_hook(Box::new(|panic| *LAST.lock().unwrap_or_else(|e| e.into_inner()) = panic.to_string()));
});

static LAST: Mutex<String> = Mutex::new(String::new());

static SAMPLES: LazyLock<Mutex<HashMap<Key, Option<&'static [u8]>>>> = LazyLock::new(Mutex::default);

/// A small file of one column; none for a type that Parquet's writer refuses.
fn sample(kind: usize, how: u8) -> Option<&'static [u8]> {
    let data_type = &all_types()[kind];
    let mut random = Random(kind as u64);
    let column = array(&mut random, data_type, ROWS, kind as u64 % 3 * 20);
    let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).ok()?;
    let compression =
        [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::LZ4_RAW, Compression::ZSTD(Default::default())];
    let mut properties = WriterProperties::builder()
        .set_compression(compression[usize::from(how & 3)])
        .set_dictionary_enabled(how & 4 != 0)
        .set_data_page_row_count_limit(64)
        .set_write_batch_size(32)
        .set_max_row_group_row_count(Some(96));
    if how & 8 != 0 {
        properties = properties.set_writer_version(WriterVersion::PARQUET_2_0);
    }
    // Without a dictionary the second version has shared beginnings, unless something else is said.
    if how & 16 != 0 && matches!(data_type, DataType::Utf8 | DataType::Binary | DataType::Utf8View) {
        properties = properties.set_encoding(Encoding::DELTA_LENGTH_BYTE_ARRAY);
    }
    // The writer panics on values of no bytes.
    let written = std::panic::catch_unwind(AssertUnwindSafe(move || {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build())).ok()?;
        writer.write(&batch).ok()?;
        writer.close().ok()?;
        Some(bytes)
    }));
    Some(written.ok()??.leak())
}

fn read(bytes: &[u8]) -> Result<usize, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("x.parquet");
    std::fs::write(&path, bytes).map_err(|e| e.to_string())?;
    let options = SourceOptions { format: Some(FileFormat::Parquet), ..SourceOptions::default() };
    let mut source = open(&[&path], &options).map_err(|e| e.to_string())?;
    let mut rows = 0;
    while let Some(batch) = source.next_batch().map_err(|e| e.to_string())? {
        rows += batch.num_rows();
    }
    Ok(rows)
}

fuzz_target!(|data: &[u8]| {
    LazyLock::force(&CAUGHT);
    let mut bytes = Bytes(data);
    let kinds = all_types().len();
    let key = (usize::from(bytes.u8()) % kinds, bytes.u8() & 31);
    let sample = *SAMPLES.lock().unwrap_or_else(|e| e.into_inner()).entry(key).or_insert_with(|| sample(key.0, key.1));
    let Some(sample) = sample else { return };
    let mut file = sample.to_vec();
    for _ in 0..1 + bytes.u8() % 4 {
        let place = bytes.u64() as usize;
        let count = bytes.u8();
        // Most of a small file is its footer; every other change is one of pages.
        let (from, to) = if count & 1 == 0 { (0, file.len()) } else { (file.len().saturating_sub(600), file.len()) };
        let start = from + place % (to - from).max(1);
        let end = (start + 1 + usize::from(count >> 1) % 16).min(file.len());
        change(&mut file[start..end], &mut || bytes.u64());
    }
    if bytes.u8() % 16 == 0 {
        resize(&mut file, &mut || bytes.u64());
    }
    let wrong = match std::panic::catch_unwind(|| read(&file)) {
        Ok(Ok(_)) => None,
        // Damaged pages the decoder may give up, if it is said where.
        Ok(Err(e)) => {
            let is_lost = e.contains("gave up") && !e.contains("row group");
            (e.is_empty() || e.contains('\n') || is_lost).then_some(e)
        }
        Err(_) => Some("a panic".to_owned()),
    };
    if let Some(wrong) = wrong {
        eprintln!("{wrong}; the last panic: {}", LAST.lock().unwrap_or_else(|e| e.into_inner()));
        std::process::abort();
    }
});
