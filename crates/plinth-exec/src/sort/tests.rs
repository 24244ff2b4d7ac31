use std::sync::atomic::AtomicUsize;

use arrow_array::types::Int32Type;
use arrow_array::{Array, Int64Array, ListArray, StringViewArray};
use arrow_schema::{Field, Schema, SortOptions};
use proptest::prelude::*;

use super::*;

/// So many bytes and no more, unless they are taken all the same.
struct Few {
    held: usize,
    limit: usize,
    most: Arc<AtomicUsize>,
}

impl Memory for Few {
    fn try_resize(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.limit;
        if fits {
            self.resize(bytes);
        }
        fits
    }

    fn resize(&mut self, bytes: usize) {
        self.held = bytes;
        self.most.fetch_max(bytes, Ordering::Relaxed);
    }
}

type Row = (Option<i64>, Option<String>);

fn row() -> impl Strategy<Value = Row> {
    let text =
        prop_oneof!["[ab]{0,3}", "[a-c]{11,14}", Just("a long text that many rows have".to_owned()), "x{200,300}"];
    (prop::option::of(prop_oneof![-4..4_i64, any::<i64>()]), prop::option::of(text))
}

fn batch(rows: &[Row], from: i64) -> RecordBatch {
    let numbers = Int64Array::from_iter(rows.iter().map(|row| row.0));
    let texts = StringViewArray::from_iter(rows.iter().map(|row| row.1.as_deref()));
    let lists =
        rows.iter().map(|row| row.0.map(|n| (0..n.rem_euclid(3)).map(|i| i32::try_from(i).ok()).collect::<Vec<_>>()));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let ids = Int64Array::from_iter_values((from..).take(rows.len()));
    let schema = Schema::new(vec![
        Field::new("n", DataType::Int64, true),
        Field::new("t", DataType::Utf8View, true),
        Field::new("l", lists.data_type().clone(), true),
        Field::new("id", DataType::Int64, false),
    ]);
    let columns: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(texts), Arc::new(lists), Arc::new(ids)];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

/// By both columns, the first or the second one first.
fn sort(text_first: bool, options: [SortOptions; 2], fetch: Option<usize>, piece: usize, folder: PathBuf) -> Sort {
    let columns = if text_first { [1, 0] } else { [0, 1] };
    let schema = batch(&[], 0).schema();
    let order = columns.iter().zip(options);
    let order = order.map(|(&at, options)| OrderColumn { data_type: schema.field(at).data_type().clone(), options });
    Sort {
        order: order.collect(),
        schema,
        keys: Arc::new(move |batch| Ok(columns.iter().map(|&at| Arc::clone(batch.column(at))).collect())),
        fetch,
        rows: 7,
        piece,
        merging: usize::MAX,
        folder,
        compression: None,
        cancelled: Arc::default(),
    }
}

fn options() -> impl Strategy<Value = SortOptions> {
    (any::<bool>(), any::<bool>()).prop_map(|(descending, nulls_first)| SortOptions { descending, nulls_first })
}

/// Rows of a sort that has so much memory, what it wrote, and the most that it held.
fn sorted(sort: Sort, batches: &[RecordBatch], limit: usize) -> (Vec<RecordBatch>, Written, usize) {
    let most = Arc::<AtomicUsize>::default();
    let memory = Few { held: 0, limit, most: Arc::clone(&most) };
    let mut sorter = Sorter::new(Arc::new(sort), memory).unwrap();
    for batch in batches {
        if let Some(rest) = sorter.offer(batch).unwrap() {
            sorter.push(&rest).unwrap();
        }
    }
    let mut rows = sorter.finish().unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = rows.next_batch().unwrap() {
        assert!(batch.num_rows() > 0);
        batches.push(batch);
    }
    (batches, rows.written(), most.load(Ordering::Relaxed))
}

fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    let ids = |batch: &RecordBatch| batch.column(3).as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec();
    batches.iter().flat_map(ids).collect()
}

/// Rows as their batches have them.
fn values(batches: &[RecordBatch]) -> Vec<Row> {
    let row = |batch: &RecordBatch, row: usize| {
        let numbers = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
        let texts = batch.column(1).as_any().downcast_ref::<StringViewArray>().unwrap();
        let number = numbers.is_valid(row).then(|| numbers.value(row));
        (number, texts.is_valid(row).then(|| texts.value(row).to_owned()))
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |at| row(batch, at))).collect()
}

fn compare<T: Ord>(a: &Option<T>, b: &Option<T>, options: SortOptions) -> std::cmp::Ordering {
    match (a, b) {
        (Some(a), Some(b)) if options.descending => b.cmp(a),
        (Some(a), Some(b)) => a.cmp(b),
        (None, None) => std::cmp::Ordering::Equal,
        (None, _) if options.nulls_first => std::cmp::Ordering::Less,
        (_, None) if !options.nulls_first => std::cmp::Ordering::Less,
        _ => std::cmp::Ordering::Greater,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// With much memory and with next to none: the rows of a sort of all of them, each as it was.
    #[test]
    fn any_rows_come_out_in_order_whatever_memory_there_is(
        batches in prop::collection::vec(prop::collection::vec(row(), 0..40), 0..12),
        text_first in any::<bool>(),
        options in [options(), options()],
        fetch in prop::option::of(0..200_usize),
        piece in prop_oneof![Just(1_usize), Just(600), Just(64 << 10)],
        limit in prop_oneof![Just(0_usize), 2_000..30_000_usize, Just(usize::MAX)],
        compressed in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut from = 0;
        let given: Vec<RecordBatch> = batches.iter().map(|rows| {
            let batch = batch(rows, from);
            from += i64::try_from(rows.len()).unwrap();
            batch
        }).collect();
        let mut sort = sort(text_first, options, fetch, piece, dir.path().to_owned());
        sort.compression = compressed.then_some(arrow_ipc::CompressionType::LZ4_FRAME);
        let (out, written, _) = sorted(sort, &given, limit);
        let rows: Vec<Row> = batches.concat();
        let mut expected = rows.clone();
        expected.sort_by(|a, b| {
            let [first, second] = options;
            if text_first {
                compare(&a.1, &b.1, first).then_with(|| compare(&a.0, &b.0, second))
            } else {
                compare(&a.0, &b.0, first).then_with(|| compare(&a.1, &b.1, second))
            }
        });
        expected.truncate(fetch.unwrap_or(usize::MAX));
        prop_assert_eq!(values(&out), expected);
        // Whole rows, none twice.
        let ids = ids(&out);
        let lists: Vec<i64> = out.iter().flat_map(|batch| {
            let lists = batch.column(2).as_any().downcast_ref::<ListArray>().unwrap().clone();
            (0..batch.num_rows()).map(move |at| lists.value_length(at).into())
        }).collect();
        for ((id, list), row) in ids.iter().zip(&lists).zip(values(&out)) {
            let given = &rows[usize::try_from(*id).unwrap()];
            prop_assert_eq!(given, &row);
            prop_assert_eq!(*list, row.0.map_or(0, |n| n.rem_euclid(3)));
        }
        let mut once = ids.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), ids.len());
        prop_assert!(limit < usize::MAX || written == Written::default());
        prop_assert!(limit > 0 || written.runs > 0 || rows.is_empty());
        prop_assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn many_runs_are_merged_in_passes_within_the_memory_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<Row> = (0..40_000_i64).map(|i| (Some(i * 7919 % 40_009), Some(format!("{i:040}")))).collect();
    let batches: Vec<RecordBatch> =
        rows.chunks(500).zip((0..).step_by(500)).map(|(rows, from)| batch(rows, from)).collect();
    let limit = 100_000;
    let sort = Sort { rows: 8192, ..sort(false, [SortOptions::default(); 2], None, 4 << 10, dir.path().to_owned()) };
    let (out, written, most) = sorted(sort, &batches, limit);
    let mut expected: Vec<Option<i64>> = rows.iter().map(|row| row.0).collect();
    expected.sort_unstable();
    assert_eq!(values(&out).into_iter().map(|row| row.0).collect::<Vec<_>>(), expected);
    assert!(most <= limit, "{most} bytes");
    assert!(written.runs > 40 && written.rows > 2 * rows.len(), "{written:?}");
}

#[test]
fn text_that_batches_share_is_counted_once_and_written_as_what_rows_have() {
    let dir = tempfile::tempdir().unwrap();
    let dictionary: Vec<Row> = (0..1000).map(|i| (Some(i), Some(format!("{i:0100}")))).collect();
    let all = batch(&dictionary, 0);
    let batches: Vec<RecordBatch> = (0..100).map(|i| all.slice(i * 7, 200)).collect();
    let order = |folder| sort(true, [SortOptions::default(); 2], None, 16 << 10, folder);
    let (out, _, most) = sorted(order(dir.path().to_owned()), &batches, usize::MAX);
    assert_eq!(out.iter().map(RecordBatch::num_rows).sum::<usize>(), 20_000);
    // Keys of 145 bytes, where they begin, and places; the text of 100 kB once.
    assert!(most < 20_000 * 180 + 400_000, "{most} bytes");
    let (again, written, _) = sorted(order(dir.path().to_owned()), &batches, 300_000);
    assert_eq!(values(&out), values(&again));
    assert!(written.bytes < 3 * 20_000 * 150, "{written:?}");
}

#[test]
fn rows_that_keep_much_more_than_themselves_are_copied_before_any_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let order = sort(true, [SortOptions::default(); 2], None, 16 << 10, dir.path().to_owned());
    let page = |i: i64| {
        let rows: Vec<Row> = (0..1000).map(|row| (Some(i), Some(format!("{i:050}{row:050}")))).collect();
        batch(&rows, i * 1000).slice(500, 10)
    };
    let batches: Vec<RecordBatch> = (0..50).map(page).collect();
    let (out, written, _) = sorted(order, &batches, 1_000_000);
    assert_eq!(out.iter().map(RecordBatch::num_rows).sum::<usize>(), 500);
    assert!(written.runs < 5, "{written:?}");
}

#[test]
fn a_cancelled_sort_ends() {
    let dir = tempfile::tempdir().unwrap();
    let sort = sort(false, [SortOptions::default(); 2], None, 600, dir.path().to_owned());
    let cancelled = Arc::clone(&sort.cancelled);
    let rows: Vec<Row> = (0..100).map(|i| (Some(i), None)).collect();
    let memory = Few { held: 0, limit: 0, most: Arc::default() };
    let mut sorter = Sorter::new(Arc::new(sort), memory).unwrap();
    sorter.push(&batch(&rows, 0)).unwrap();
    cancelled.store(true, Ordering::Relaxed);
    assert!(sorter.push(&batch(&rows, 0)).unwrap_err().to_string().contains("cancelled"));
}

#[test]
fn a_folder_that_is_gone_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let sort = sort(false, [SortOptions::default(); 2], None, 600, dir.path().join("none"));
    let memory = Few { held: 0, limit: 0, most: Arc::default() };
    let mut sorter = Sorter::new(Arc::new(sort), memory).unwrap();
    let error = sorter.push(&batch(&[(Some(1), None)], 0)).unwrap_err();
    assert!(matches!(error, ExecError::Io(_)) && error.to_string().contains("none"), "{error}");
}
