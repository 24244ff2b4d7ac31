//! Operators that hold many batches, and the memory that reads go into.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::prelude::{SessionConfig, SessionContext};
use plinth_datafusion::{FileOptions, PlinthTable};
use plinth_encoding::Effort;
use plinth_format::{OpenOptions, Writer, WriterOptions};
use plinth_io::{Io, IoMode, IoOptions, MemoryBudget};

/// What reading ahead may take. A slab is no smaller.
const ARENA: u64 = 2 << 20;

/// Rows of two files.
const ROWS: i64 = 66_000;

/// A table of wide values that are not encoded, so that batches borrow them from where they were read.
fn table(dir: &std::path::Path) -> Vec<PathBuf> {
    let text = |i: i64| format!("{i:08}").repeat(256);
    (0..2)
        .map(|part| {
            let keys = || (0..ROWS / 2).map(move |i| (i * 2 + part) * 7919 % ROWS);
            let columns: [(&str, ArrayRef); 2] = [
                ("k", Arc::new(Int64Array::from_iter_values(keys()))),
                ("s", Arc::new(StringViewArray::from_iter_values(keys().map(text)))),
            ];
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            let path = dir.join(format!("{part}.plinth"));
            let options = WriterOptions { effort: Effort::Plain, block_rows: 128, ..WriterOptions::default() };
            let mut writer = Writer::create(&path, &batch.schema(), options).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            std::fs::File::open(&path).unwrap().sync_all().unwrap();
            path
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_of_many_times_the_memory_of_reads_is_sorted_and_joined() {
    let dir = tempfile::tempdir().unwrap();
    let files = table(dir.path());
    let bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes >= 64 * ARENA, "{bytes}");
    for mode in [IoMode::Uring, IoMode::Direct, IoMode::Auto] {
        let options = IoOptions { mode, arena_bytes: Some(ARENA), ..IoOptions::default() };
        let io = Io::new(&MemoryBudget::new(1 << 30), options);
        let open =
            FileOptions { open: OpenOptions { io: io.clone(), ..OpenOptions::default() }, ..FileOptions::default() };
        let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3));
        for name in ["a", "b"] {
            ctx.register_table(name, Arc::new(PlinthTable::open_with(files.clone(), &open).unwrap())).unwrap();
        }
        let ask = async |sql: &str| ctx.sql(sql).await.unwrap().collect().await.unwrap();

        let sorted = ask("SELECT k, s FROM a ORDER BY k").await;
        let mut next = 0;
        for batch in &sorted {
            let (keys, text) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string_view());
            for row in 0..batch.num_rows() {
                assert_eq!(keys.value(row), next);
                assert!(text.value(row).starts_with(&format!("{next:08}")) && text.value(row).len() == 2048);
                next += 1;
            }
        }
        assert_eq!(next, ROWS);
        drop(sorted);

        // One side is held whole while the other is read.
        let joined = ask("SELECT count(*), sum(a.k) FROM a JOIN b ON a.s = b.s").await;
        let number = |column: usize| joined[0].column(column).as_primitive::<Int64Type>().value(0);
        assert_eq!((number(0), number(1)), (ROWS, ROWS * (ROWS - 1) / 2));
        drop((joined, ctx));

        let counters = io.counters();
        assert_eq!((counters.extent_bytes, counters.held_bytes), (0, 0), "{mode:?} {counters:?}");
        // Beyond the arena each of the six scans may have had a window that it needed to go on, at worst all at once.
        assert!(counters.mapped_bytes <= ARENA + 6 * (2 << 20), "{mode:?} {counters:?}");
    }
}
