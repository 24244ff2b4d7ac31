//! What a scan keeps of blocks that were filtered ahead of their turn, against what it says it keeps.

use std::fs;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, StructArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::WriterProperties;
use plinth_encoding::expr::{ColumnFunction, Expr, Function, Path};
use plinth_format::scan::{AdaptiveStats, Plan};
use plinth_format::{PushdownMode, Scan, ScanMetrics};
use plinth_io::{Io, IoOptions, LocalFile, MemoryBudget};

use super::columns::ParquetColumns;
use super::file::ParquetFile;

#[path = "../../../plinth-format/tests/suite/counting.rs"]
mod counting;

const ROWS: i64 = 40 * 8_192;

/// One text in ten, told by the digit it ends with: few enough to wait.
#[derive(Debug)]
struct EndsInSeven;

impl ColumnFunction for EndsInSeven {
    fn name(&self) -> String {
        "ends in 7".into()
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        let column = columns.first().ok_or("no column")?;
        let text = column.as_struct_opt().map_or(column, |pair| pair.column(0));
        let texts = text.as_string_opt::<i32>().ok_or("no texts")?;
        Ok(texts.iter().map(|text| Some(text?.ends_with('7'))).collect())
    }
}

/// A file of a flat and of a nested text, a page a block.
fn written(path: &std::path::Path) {
    let text: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|v| format!("a text of some length {v}"))));
    let number: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let pair = StructArray::try_from(vec![("text", Arc::clone(&text)), ("number", number)]).unwrap();
    let same: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| 7)));
    let columns = [("text", text), ("pair", Arc::new(pair) as ArrayRef), ("same", same)];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(20 * 8_192))
        .set_data_page_row_count_limit(8_192)
        .set_write_batch_size(8_192)
        .set_dictionary_enabled(false)
        .set_column_dictionary_enabled("same".into(), true)
        .build();
    let mut writer = ArrowWriter::try_new(fs::File::create(path).unwrap(), rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
}

/// What this thread holds after each chunk of a scan that may keep so many bytes, the rows that came, and the most it says to
/// have kept.
fn live(path: &std::path::Path, column: &Path, look_ahead: u64, mode: PushdownMode) -> (Vec<i64>, usize, u64) {
    let budget = MemoryBudget::new(1 << 30);
    let io = Io::new(&budget, IoOptions::default());
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let read = ArrowReaderMetadata::load(&fs::File::open(path).unwrap(), options).unwrap();
    let file = ParquetFile {
        source: Arc::new(LocalFile::open_with(path, &io).unwrap()),
        metadata: Arc::clone(read.metadata()),
        schema: Arc::clone(read.schema()),
    };
    let groups: Vec<usize> = (0..read.metadata().num_row_groups()).collect();
    let metrics = Arc::<ScanMetrics>::default();
    let row_groups = 0..groups.len();
    let mut columns = ParquetColumns::new(file, groups, &io, 0, Arc::clone(&metrics));
    let output = vec![column.clone(), Path::column("same")];
    let schema = columns.schema(&output).unwrap();
    // What is not filtered takes next to nothing, so that nothing else waits: what grows on this thread from one chunk to the
    // next is what the scan keeps.
    let function = Function { columns: vec![column.clone()], function: Arc::new(EndsInSeven) };
    let predicate = vec![Expr::Function(function)];
    let plan = Plan {
        columns: output,
        stats: AdaptiveStats::shared(None, &predicate, 0),
        predicate,
        dynamic: Vec::new(),
        row_groups,
        limit: None,
        totals: None,
        mode,
        look_ahead,
        budget,
    };
    let mut scan = Scan::start(columns, schema, plan, 8_192, metrics).unwrap();
    let (mut live, mut rows) = (Vec::new(), 0);
    while let Some(chunk) = scan.next_chunk().unwrap() {
        rows += chunk.rows;
        drop(chunk);
        live.push(counting::live());
    }
    (live, rows, scan.adaptive_stats().retained_peak())
}

#[test]
fn what_is_kept_of_filtered_blocks_is_never_more_than_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    written(&path);
    let modes = [PushdownMode::AfterDecode, PushdownMode::Interleaved, PushdownMode::FilterFirst];
    for (column, mode) in ["text", "pair"].into_iter().flat_map(|column| modes.map(|mode| (Path::column(column), mode)))
    {
        let (alone, expected, peak) = live(&path, &column, 0, mode);
        assert_eq!(peak, 0);
        for look_ahead in [0, 500_000, 1 << 20, 64 << 20, u64::MAX] {
            let (ahead, rows, peak) = live(&path, &column, look_ahead, mode);
            assert_eq!((rows, ahead.len()), (expected, alone.len()));
            let most = ahead.iter().zip(&alone).map(|(ahead, alone)| ahead - alone).max().unwrap();
            // What is decoded before it is filtered does not wait.
            let waits = mode != PushdownMode::AfterDecode && look_ahead >= 1 << 20;
            assert!(peak <= look_ahead && (peak > 0) == waits, "{column} {mode}: {peak} of {look_ahead}");
            // The queues themselves take some, too.
            assert!(most <= i64::try_from(peak).unwrap() + 8_000, "{column} {mode}: {most} where {peak} were counted");
        }
    }
}
