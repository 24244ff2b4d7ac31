//! Filters pushed into the scan: whatever the mode and the budget, the same rows, and nothing decoded twice.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use plinth_encoding::expr::{ColumnFunction, CompareOp, Expr, Function, Path, Scalar, col};
use plinth_format::{File, OpenOptions, PushdownMode, ScanBuilder};
use plinth_io::{Io, IoOptions, MemoryBudget};

use crate::counting;
use crate::data::{read_all, small, write};
use crate::scans::{EvenLength, function};

/// Columns that are filtered, put out and part of one another.
fn nested() -> (tempfile::TempDir, File) {
    let rows = 20_000;
    let x = Int64Array::from_iter((0..rows).map(|i| (i % 11 != 0).then_some(i % 1000)));
    let text = StringArray::from_iter(
        (0..rows).map(|i| (i % 13 != 0).then(|| format!("a text that does not repeat {}", i * 7919))),
    );
    let s = StructArray::try_from(vec![("x", Arc::new(x) as ArrayRef), ("text", Arc::new(text) as ArrayRef)]).unwrap();
    let lengths = (0..rows).map(|i| usize::try_from(i % 4).unwrap());
    let items: usize = lengths.clone().sum();
    let items = Int32Array::from_iter((0..items).map(|i| (i % 5 != 0).then_some(i32::try_from(i % 700).unwrap())));
    let field = Arc::new(Field::new("item", DataType::Int32, true));
    let l = ListArray::new(field, OffsetBuffer::from_lengths(lengths), Arc::new(items), None);
    let y = Int64Array::from_iter_values(0..rows);
    let same = Int64Array::from_iter_values((0..rows).map(|_| 7));
    let batch = RecordBatch::try_from_iter([
        ("s", Arc::new(s) as ArrayRef),
        ("l", Arc::new(l) as ArrayRef),
        ("y", Arc::new(y) as ArrayRef),
        ("same", Arc::new(same) as ArrayRef),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir.path().join("t.plinth"), &batch.unwrap(), small());
    (dir, file)
}

/// Whether a list has two items or more; and whether a text is longer than a number.
#[derive(Debug)]
struct HasTwo;

impl ColumnFunction for HasTwo {
    fn name(&self) -> String {
        "has two".into()
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        Ok(columns[0].as_list::<i32>().iter().map(|list| list.map(|list| list.len() >= 2)).collect())
    }
}

#[derive(Debug)]
struct LongerThan;

impl ColumnFunction for LongerThan {
    fn name(&self) -> String {
        "longer than".into()
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        let (text, number) = (columns[0].as_string_view(), columns[1].as_primitive::<arrow_array::types::Int64Type>());
        let longer =
            |(text, number): (Option<&str>, Option<i64>)| Some(i64::try_from(text?.len()).ok()? > number? % 40);
        Ok(text.iter().zip(number.iter()).map(longer).collect())
    }
}

#[test]
fn no_arm_decodes_a_block_twice_and_all_give_the_same_rows_within_any_budget() {
    let (_dir, file) = nested();
    let text = Path::column("s").child("text");
    let x = Path::column("s").child("x");
    let longer = Expr::Function(Function { columns: vec![text.clone(), x.clone()], function: Arc::new(LongerThan) });
    let like = Expr::Function(Function { columns: vec![text.clone()], function: Arc::new(EvenLength) });
    let equal =
        Expr::Compare { column: text, op: CompareOp::Eq, value: Scalar::from("a text that does not repeat 791900") };
    let above = Expr::Compare { column: x.clone(), op: CompareOp::Gt, value: Scalar::Int(500) };
    let filters: [Vec<Expr>; 6] = [
        vec![longer.clone(), like.clone(), above.clone()],
        vec![function(HasTwo, &["l"]), above.clone()],
        vec![equal.clone()],
        vec![Expr::Or(vec![equal, Expr::Not(Box::new(like))]), longer],
        vec![Expr::IsNull(x), function(HasTwo, &["l"])],
        vec![col("y").gt(3_000), above],
    ];
    let outputs: [&[&str]; 3] = [&["s", "l", "y"], &["y"], &["l", "s"]];
    for (filter, output) in filters.iter().flat_map(|filter| outputs.iter().map(move |output| (filter, output))) {
        let mut expected: Option<RecordBatch> = None;
        for mode in
            [PushdownMode::AfterDecode, PushdownMode::Interleaved, PushdownMode::FilterFirst, PushdownMode::Auto]
        {
            for budget in [0, 1 << 20, 64 << 20, u64::MAX] {
                let scan = file.scan().select(output.iter().copied()).pushdown_mode(mode).look_ahead(budget);
                let scan = filter.iter().cloned().fold(scan, ScanBuilder::filter).build().unwrap();
                let (metrics, stats) = (Arc::clone(scan.metrics()), Arc::clone(scan.adaptive_stats()));
                let rows = read_all(scan);
                assert!(rows.num_rows() > 0, "{filter:?}");
                assert_eq!(metrics.blocks_decoded_again.load(Relaxed), 0, "{mode} {filter:?} {output:?}");
                assert!(stats.retained_peak() <= budget, "{mode} {budget} {filter:?}: {}", stats.retained_peak());
                match &expected {
                    None => expected = Some(rows),
                    Some(expected) => assert_eq!(*expected, rows, "{mode} {budget} {filter:?} {output:?}"),
                }
            }
        }
    }
}

#[test]
fn what_is_kept_of_filtered_blocks_is_never_more_than_allowed() {
    // What is not filtered takes next to nothing, so that nothing else waits: what grows on this thread from one chunk to the next is what the
    // scan keeps.
    let (_dir, file) = nested();
    let even =
        || Expr::Function(Function { columns: vec![Path::column("s").child("text")], function: Arc::new(EvenLength) });
    let live = |budget: u64| {
        let columns = vec![Path::column("s").child("text"), Path::column("same")];
        let mut scan = file.scan().project(columns).filter(even()).look_ahead(budget).build().unwrap();
        let mut live = Vec::new();
        while let Some(chunk) = scan.next_chunk().unwrap() {
            drop(chunk);
            live.push(counting::live());
        }
        (live, scan.adaptive_stats().retained_peak())
    };
    // Read twice, blocks are kept as they are stored, for every reader: then that is done.
    live(0);
    live(0);
    let (alone, peak) = live(0);
    assert_eq!(peak, 0);
    for budget in [40_000, 200_000, 1 << 20, u64::MAX] {
        let (ahead, peak) = live(budget);
        assert!(peak <= budget && (peak > 0 || budget < 100_000), "{peak} of {budget}");
        let most = ahead.iter().zip(&alone).map(|(ahead, alone)| ahead - alone).max().unwrap();
        // The queues themselves take some, too.
        assert!(most <= i64::try_from(peak).unwrap() + 20_000, "{most} where {peak} were counted of {budget}");
    }
}

#[test]
fn a_scan_that_has_reached_its_limit_keeps_nothing() {
    let (dir, _) = nested();
    let budget = MemoryBudget::new(256 << 20);
    let options = OpenOptions { io: Io::new(&budget, IoOptions::default()), ..OpenOptions::default() };
    let file = File::open_with(dir.path().join("t.plinth"), &options).unwrap();
    let held = || budget.usage().iter().find(|usage| &*usage.consumer == "look-ahead of scans").map(|usage| usage.used);
    let text = Path::column("s").child("text");
    let even = Expr::Function(Function { columns: vec![text.clone()], function: Arc::new(EvenLength) });
    let mut scan = file.scan().project(vec![text, Path::column("same")]).filter(even).limit(5_000).build().unwrap();
    let (mut rows, mut most) = (0, 0);
    while let Some(chunk) = scan.next_chunk().unwrap() {
        rows += chunk.rows;
        most = most.max(held().unwrap());
    }
    assert!(rows == 5_000 && most > 0, "{rows} rows, {most} bytes");
    assert_eq!(held(), Some(0));
    drop(scan);
}

#[test]
fn conjuncts_are_asked_in_the_order_that_costs_least_and_tell_how_they_fared() {
    let (_dir, file) = nested();
    let text = Path::column("s").child("text");
    let dear = Expr::Function(Function { columns: vec![text], function: Arc::new(EvenLength) });
    let rare = Expr::Compare { column: Path::column("s").child("x"), op: CompareOp::Eq, value: Scalar::Int(500) };
    let scan = file.scan().select(["y"]).filter(dear).filter(rare.clone()).filter(col("y").gt_eq(0)).build().unwrap();
    let stats = Arc::clone(scan.adaptive_stats());
    let rows = read_all(scan).num_rows() as u64;
    let report = stats.report();
    assert_eq!(report[0].name, rare.to_string(), "{report:?}");
    assert!(report[0].blocks_encoded + report[0].blocks_decoded > 10 && report[0].rows_in > 15_000, "{report:#?}");
    let dear = report.iter().find(|conjunct| conjunct.name == "even_length").unwrap();
    // It is asked about the rows that are left, but for the samples.
    assert!(dear.blocks_residual > 10 && dear.rows_in < 5_000 && dear.rows_kept >= rows, "{report:?}");
    let known = report.iter().find(|conjunct| conjunct.name == "y >= 0").unwrap();
    assert!(known.blocks_all_pass > 10 && known.rows_in == 0, "{report:?}");
    assert!(known.to_string().ends_with("known to pass"), "{known}");
}
