//! What scans read, decode and hold, where they read from, and what they do with damaged files.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, StringArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::collect;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use object_store::memory::InMemory;
use object_store::path::Path as Location;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::data::{
    Pair, Whose, answer, config, properties, register, rows, session, session_with, sum_of_scans, within, write,
};
use crate::data::{Random, plan};

/// Runs a query and sums a metric of its scans.
async fn metrics(ctx: &SessionContext, sql: &str, names: &[&str]) -> Vec<usize> {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    names.iter().map(|name| sum_of_scans(&plan, name)).collect()
}

/// 40 blocks in two row groups: `n` counts, `key` repeats, `text` is long.
fn counted() -> RecordBatch {
    let count = 40 * 8_192;
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
    let key: ArrayRef = Arc::new(StringArray::from_iter_values((0..count).map(|v| format!("key {}", v % 100))));
    let text: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..count).map(|v| format!("a text of some length {v}"))));
    RecordBatch::try_from_iter([("n", n), ("key", key), ("text", text)]).unwrap()
}

fn groups_of_twenty() -> WriterProperties {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(20 * 8_192))
        .set_data_page_row_count_limit(8_192)
        .set_column_dictionary_enabled("n".into(), false)
        .build()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_of_a_column_is_decoded_once_and_only_where_it_is_wanted() {
    let pair = Pair::new(&[counted()], groups_of_twenty(), config(1, 8_192)).await;
    let names = ["blocks_decoded", "blocks_evaluated_encoded", "rows_matched", "bytes_read"];
    // The filter's column comes out, too: once a block, all the same.
    let found = metrics(&pair.ours, "SELECT n, text FROM t WHERE n % 2 = 0", &names).await;
    assert_eq!(found[..3], [80, 0, 20 * 8_192]);
    // Dictionaries are asked, their indices compared: nothing is decoded to count rows.
    let found = metrics(&pair.ours, "SELECT count(*) FROM t WHERE key LIKE '%7'", &names).await;
    assert_eq!((found[0], found[1]), (0, 40));
    // Zone maps leave one block, of which the pages are read.
    let all = metrics(&pair.ours, "SELECT text FROM t", &names).await[3];
    let found = metrics(&pair.ours, "SELECT n, text FROM t WHERE n = 100000", &names).await;
    assert_eq!((found[0], found[2]), (2, 1));
    assert!(found[3] * 5 < all, "{} of {all} bytes", found[3]);
    // No more is decoded than a limit needs.
    let found = metrics(&pair.ours, "SELECT n, text FROM t WHERE key = 'key 3' LIMIT 5", &names).await;
    assert!(found[0] <= 2, "{found:?}");
    // A tightening filter rules out what comes later.
    let found = metrics(&pair.ours, "SELECT * FROM t ORDER BY n LIMIT 10", &names).await;
    assert!(found[0] < 40, "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_the_same_within_any_memory() {
    let written = properties(&mut Random(3)).build();
    for memory in [0, 1 << 20, 64 << 20, 1 << 40] {
        let pair = Pair::within(&[rows(3, 0, 10_000)], written.clone(), config(1, 8_192), within(memory)).await;
        for sql in
            ["SELECT * FROM t", "SELECT * FROM t WHERE s LIKE 'http%' AND u < 50", "SELECT id FROM t WHERE ls IS NULL"]
        {
            pair.agree(sql).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_memory_comes_back() {
    let options = within(256 << 20);
    let budget = Arc::clone(options.io.budget());
    let pair = Pair::within(&[rows(4, 0, 10_000)], groups_of_twenty(), config(1, 8_192), options.clone()).await;
    for sql in
        ["SELECT * FROM t WHERE s = 'abc'", "SELECT * FROM t LIMIT 3", "SELECT id FROM t WHERE l IS NULL AND u = 3"]
    {
        answer(&pair.ours, sql).await.unwrap();
        let pages = budget.usage().into_iter().filter(|usage| &*usage.consumer == "parquet pages");
        assert_eq!(pages.map(|usage| usage.used).sum::<u64>(), 0, "{sql}");
    }
    assert_eq!(options.io.counters().held_bytes, 0);
}

#[tokio::test]
async fn a_setting_goes_back_to_the_engine_s_scan() {
    let pair = Pair::new(&[counted().slice(0, 100)], groups_of_twenty(), config(1, 8_192)).await;
    let sql = "SELECT n FROM t WHERE key = 'key 3'";
    let shown = plan(&pair.ours, sql).await;
    assert!(shown.contains("scan=plinth") && shown.contains("predicate=") && !shown.contains("FilterExec"), "{shown}");
    pair.ours.sql("SET plinth.parquet_scan = 'datafusion'").await.unwrap();
    let shown = plan(&pair.ours, sql).await;
    assert!(!shown.contains("scan=plinth") && shown.contains("FilterExec"), "{shown}");
    pair.agree(sql).await;
    let error = answer(&pair.ours, "SET plinth.parquet_scan = 'arrow'").await.unwrap_err().to_string();
    assert!(error.contains("'plinth', 'datafusion'"), "{error}");
    // It is as it was.
    let again = plan(&pair.ours, sql).await;
    assert_eq!(again, shown);
}

#[tokio::test]
async fn what_only_the_engine_s_scan_can_do_it_does() {
    let pair = Pair::new(&[counted().slice(0, 1_000)], groups_of_twenty(), config(1, 8_192)).await;
    pair.agree("SELECT file_row_index(), n FROM t WHERE n > 990").await;
    pair.agree("SELECT input_file_name() LIKE '%t.parquet', n FROM t WHERE n < 3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_an_object_store_answer_as_local_ones_do() {
    let dir = tempfile::tempdir().unwrap();
    let store = InMemory::new();
    for i in 0..3_u64 {
        let path = dir.path().join(format!("{i}.parquet"));
        write(&path, &[rows(i, i * 5_000, 5_000)], properties(&mut Random(50 + i)).build());
        store.put(&Location::from(format!("t/{i}.parquet")), std::fs::read(&path).unwrap().into()).await.unwrap();
    }
    let store: Arc<dyn ObjectStore> = Arc::new(store);
    let ours = session_with(Whose::Ours, config(2, 1_000), within(64 << 20));
    let url = "mem://bucket".try_into().unwrap();
    ours.runtime_env().register_object_store(&url, store);
    ours.register_parquet("t", "mem://bucket/t/", ParquetReadOptions::default()).await.unwrap();
    let theirs = session(Whose::Theirs, config(2, 1_000));
    register(&theirs, dir.path()).await;
    for sql in [
        "SELECT * FROM t ORDER BY id",
        "SELECT id, map, s FROM t WHERE s LIKE 'http%' AND i > 3 ORDER BY id",
        "SELECT s, sum(i) FROM t WHERE u IN (1, 2, 3) GROUP BY s ORDER BY s",
    ] {
        assert_eq!(answer(&ours, sql).await.unwrap(), answer(&theirs, sql).await.unwrap(), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_are_errors_and_not_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let whole = rows(9, 0, 1_000);
    let mut failed = 0;
    for seed in 0..30 {
        let r = &mut Random(seed);
        write(&path, std::slice::from_ref(&whole), properties(r).build());
        let mut bytes = std::fs::read(&path).unwrap();
        for _ in 0..=r.below(3) {
            // Anywhere but in the footer, which is read by DataFusion.
            let at = usize::try_from(r.below(bytes.len() as u64 * 8 / 10)).unwrap();
            bytes[at] ^= 1 << r.below(8);
        }
        std::fs::write(&path, &bytes).unwrap();
        let ctx = session(Whose::Ours, config(1, 1_000));
        register(&ctx, &path).await;
        for sql in ["SELECT * FROM t", "SELECT id, ls FROM t WHERE s LIKE 'http%' AND i > 3 AND dict IS NOT NULL"] {
            if let Err(error) = answer(&ctx, sql).await {
                let message = error.strip_backtrace();
                assert!(!message.contains('\n') && message.contains("t.parquet"), "{message}");
                failed += 1;
            }
        }
    }
    assert!(failed > 0, "no damage was found");
}

/// What a page's header claims is not allocated: of 2^31 values that would be 8 GB.
#[tokio::test]
async fn a_dictionary_has_no_more_values_than_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let values = Int32Array::from_iter_values(0..100);
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let list = ListArray::new(item, OffsetBuffer::from_lengths([1; 100]), Arc::new(values.clone()), None);
    let columns: [ArrayRef; 2] = [Arc::new(values), Arc::new(list)];
    for column in columns {
        let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).build();
        write(&path, &[RecordBatch::try_from_iter([("x", column)]).unwrap()], properties);
        let mut bytes = std::fs::read(&path).unwrap();
        // The header of the dictionary's page: field 7, in which field 1 are 100 values.
        let header = [0x4C, 0x15, 0xC8, 0x01];
        let at = bytes.windows(4).position(|window| window == header).unwrap();
        bytes[at + 2..at + 4].copy_from_slice(&[0xFE, 0x7F]);
        std::fs::write(&path, &bytes).unwrap();
        let ctx = session(Whose::Ours, config(1, 1_000));
        register(&ctx, &path).await;
        let message = answer(&ctx, "SELECT x FROM t").await.unwrap_err().strip_backtrace();
        assert!(message.contains("a dictionary of 8191 values has 400 bytes"), "{message}");
    }
}

#[tokio::test]
async fn a_scan_s_source_tells_what_it_took() {
    let pair = Pair::new(&[counted().slice(0, 100)], groups_of_twenty(), config(1, 8_192)).await;
    let frame = pair.ours.sql("SELECT n FROM t WHERE key = 'key 3' AND random() < 2").await.unwrap();
    let mut node = frame.create_physical_plan().await.unwrap();
    while let Some(child) = { node.children().first().map(|child| Arc::clone(child)) } {
        node = child;
    }
    let source = node.downcast_ref::<DataSourceExec>().unwrap().data_source();
    let source = source.downcast_ref::<FileScanConfig>().unwrap().file_source();
    let scan = source.downcast_ref::<plinth_datafusion::ParquetScan>().unwrap();
    assert_eq!(scan.owned_predicates().len(), 1);
}
