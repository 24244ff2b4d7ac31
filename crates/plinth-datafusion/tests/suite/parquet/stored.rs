//! Types of other writers' files: a query gives what an import gives, or refuses by the name of the column.

use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use plinth_core::random::Random;
use plinth_ingest::SourceOptions;

use super::data::{Whose, config, session};
use super::stored_rows::{Row, cells, with_chunks, with_dictionaries_at_zero, write};

/// A query's rows by our scan.
async fn selected(path: &Path, sql: &str) -> Result<Vec<String>, String> {
    let ctx = session(Whose::Ours, config(2, 1_000));
    ctx.register_parquet("t", path.to_str().unwrap(), datafusion::prelude::ParquetReadOptions::default())
        .await
        .map_err(|e| e.to_string())?;
    let frame = ctx.sql(sql).await.map_err(|e| e.to_string())?;
    let batches: Vec<RecordBatch> = frame.collect().await.map_err(|e| e.to_string())?;
    Ok(batches.iter().flat_map(cells).collect())
}

fn imported(path: &Path) -> Vec<String> {
    let mut source = plinth_ingest::open(&[path], &SourceOptions::default()).unwrap();
    let mut rows = Vec::new();
    while let Some(batch) = source.next_batch().unwrap() {
        rows.extend(cells(&batch));
    }
    rows
}

#[tokio::test]
async fn a_query_gives_what_an_import_gives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let mut random = Random(7);
    let mut below = |end: usize| random.index(end);
    for round in 0..40 {
        let rows: Vec<Row> = (0..1 + below(60)).map(|_| Row::random(&mut below, false)).collect();
        let dictionary = below(2) == 0;
        write(&path, &rows, 1 + below(60), dictionary);
        if !dictionary {
            with_dictionaries_at_zero(&path);
        }
        let expected: Vec<String> = rows.iter().enumerate().map(|(id, row)| row.cells(id)).collect();
        assert_eq!(imported(&path), expected, "{round}");
        assert_eq!(selected(&path, "SELECT * FROM t ORDER BY id").await.unwrap(), expected, "{round}");
        // Columns by page, where predicates choose the rows.
        let chosen = selected(&path, "SELECT * FROM t WHERE t IS NOT NULL AND id % 3 <> 1 ORDER BY id").await.unwrap();
        let rows = rows.iter().enumerate().filter(|(id, row)| row.t.is_some() && id % 3 != 1);
        let expected: Vec<String> = rows.map(|(id, row)| row.cells(id)).collect();
        assert_eq!(chosen, expected, "{round}");
    }
}

#[tokio::test]
async fn what_a_query_can_not_hold_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    for (row, column) in [
        (Row { t: Some(253_402_214_400_000_000_000), ..Row::default() }, "t"),
        (Row { i: Some([14, 0, 0]), ..Row::default() }, "i"),
        (Row { i: Some([0, 0, 1 << 31]), ..Row::default() }, "i"),
    ] {
        write(&path, &[Row::default(), row], 10, true);
        for sql in [format!("SELECT id, {column} FROM t"), format!("SELECT {column} FROM t WHERE id > 0")] {
            let e = selected(&path, &sql).await.unwrap_err();
            assert!(e.contains(&format!("column \"{column}\"")) && e.contains("holds an"), "{sql}: {e}");
        }
        // Other columns are read.
        assert_eq!(selected(&path, "SELECT id FROM t WHERE id > 0").await.unwrap(), ["1"]);
    }
}

#[tokio::test]
async fn chunks_that_begin_nowhere_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    for sql in ["SELECT * FROM t", "SELECT id FROM t WHERE id >= 0"] {
        write(&path, &[Row::default()], 10, false);
        with_chunks(&path, |chunk| chunk.set_dictionary_page_offset(None).set_data_page_offset(-5));
        let e = selected(&path, sql).await.unwrap_err();
        assert!(e.contains("from byte -5 on"), "{sql}: {e}");
        write(&path, &[Row::default()], 10, false);
        with_chunks(&path, |chunk| chunk.set_total_compressed_size(-1));
        let e = selected(&path, sql).await.unwrap_err();
        assert!(e.contains("-1 bytes"), "{sql}: {e}");
    }
}

/// No row group is left out because no part of the file has the place where it is said to begin.
#[tokio::test]
async fn dictionaries_that_are_nowhere_hide_no_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let rows: Vec<Row> = (0..500).map(|_| Row::default()).collect();
    write(&path, &rows, 50, false);
    let all = selected(&path, "SELECT id FROM t WHERE id >= 0 ORDER BY id").await.unwrap();
    for offset in [-1, 0, 1 << 40, i64::MAX] {
        write(&path, &rows, 50, false);
        with_chunks(&path, |chunk| chunk.set_dictionary_page_offset(Some(offset)));
        if let Ok(found) = selected(&path, "SELECT id FROM t WHERE id >= 0 ORDER BY id").await {
            assert_eq!(found, all, "{offset}");
        }
        with_chunks(&path, |chunk| chunk.set_dictionary_page_offset(None).set_data_page_offset(1 << 40));
        assert!(selected(&path, "SELECT id FROM t WHERE id >= 0").await.is_err(), "{offset}");
    }
}
