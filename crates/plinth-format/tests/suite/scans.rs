use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use plinth_encoding::Pattern;
use plinth_encoding::expr::{ColumnFunction, Expr, Function, Path, Scalar, col};
use plinth_format::{DynamicFilter, File, OpenOptions, PushdownMode, ScanColumn, WriterOptions};
use plinth_io::{Io, IoOptions, MemoryBudget};
use proptest::prelude::*;

use crate::data::{Random, all_types, array, assert_same, read_all, small, words, write};

/// Columns that take every way through the scan: sorted, random, constant, dictionary, direct text, nulls.
fn table(rows: usize) -> RecordBatch {
    let mut random = Random(42);
    let sorted: Int64Array = (0..rows as i64).map(|i| Some(i / 3)).collect();
    let noise: Int32Array =
        (0..rows).map(|_| if random.chance(10) { None } else { Some(random.below(100) as i32) }).collect();
    let text = words(&mut random, rows, 40, 3);
    let unique: Vec<String> = (0..rows).map(|i| format!("row {i} {}", random.below(1000))).collect();
    let mostly: Int32Array = (0..rows).map(|i| Some(if i % 997 == 0 { i as i32 } else { 7 })).collect();
    let text: StringArray = text.into_iter().enumerate().map(|(i, s)| (i % 11 != 0).then_some(s)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("sorted", Arc::new(sorted)),
        ("noise", Arc::new(noise)),
        ("text", Arc::new(text)),
        ("unique", Arc::new(StringArray::from(unique))),
        ("mostly", Arc::new(mostly)),
    ];
    let fields: Vec<_> = columns.iter().map(|(n, a)| Field::new(*n, a.data_type().clone(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|(_, a)| a).collect()).unwrap()
}

/// The rows a predicate keeps, by the definition of SQL's logic.
fn naive(expr: &Expr, batch: &RecordBatch, row: usize) -> Option<bool> {
    let value = |path: &Path| {
        let column = batch.column_by_name(&path.parts()[0]).unwrap();
        column.is_valid(row).then(|| match column.data_type() {
            DataType::Int32 => Scalar::Int(column.as_primitive::<Int32Type>().value(row).into()),
            DataType::Int64 => Scalar::Int(column.as_primitive::<Int64Type>().value(row).into()),
            _ => Scalar::from(column.as_string::<i32>().value(row)),
        })
    };
    let compare = |a: &Scalar, b: &Scalar| match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => a.cmp(b),
        (Scalar::Bytes(a), Scalar::Bytes(b)) => a.cmp(b),
        _ => unreachable!(),
    };
    match expr {
        Expr::Literal(value) => *value,
        Expr::Compare { column, op, value: constant } => {
            use plinth_encoding::expr::CompareOp::*;
            let ordering = compare(&value(column)?, constant);
            Some(match op {
                Eq => ordering.is_eq(),
                NotEq => ordering.is_ne(),
                Lt => ordering.is_lt(),
                LtEq => ordering.is_le(),
                Gt => ordering.is_gt(),
                GtEq => ordering.is_ge(),
            })
        }
        Expr::In { column, values } => {
            let value = value(column)?;
            Some(values.iter().any(|v| compare(v, &value).is_eq()))
        }
        Expr::Keys { column, keys } => match value(column)? {
            Scalar::Int(value) => Some(i64::try_from(value).is_ok_and(|value| keys.contains(value))),
            other => panic!("{other} among keys"),
        },
        Expr::IsNull(column) => Some(value(column).is_none()),
        Expr::Not(inner) => naive(inner, batch, row).map(|v| !v),
        Expr::And(parts) => {
            let parts: Vec<_> = parts.iter().map(|p| naive(p, batch, row)).collect();
            if parts.contains(&Some(false)) {
                Some(false)
            } else if parts.contains(&None) {
                None
            } else {
                Some(true)
            }
        }
        Expr::Or(parts) => {
            let parts: Vec<_> = parts.iter().map(|p| naive(p, batch, row)).collect();
            if parts.contains(&Some(true)) {
                Some(true)
            } else if parts.contains(&None) {
                None
            } else {
                Some(false)
            }
        }
        Expr::Function(function) => {
            let columns: Vec<ArrayRef> = function
                .columns
                .iter()
                .map(|p| {
                    let column = batch.column_by_name(&p.parts()[0]).unwrap().slice(row, 1);
                    if column.data_type() == &DataType::Utf8 {
                        arrow_cast::cast(&column, &DataType::Utf8View).unwrap()
                    } else {
                        column
                    }
                })
                .collect();
            let answer = function.function.evaluate(&columns).unwrap();
            answer.is_valid(0).then(|| answer.value(0))
        }
    }
}

/// Text of even length; unknown for "1..." and true for null, so that every answer occurs.
#[derive(Debug)]
pub struct EvenLength;

impl ColumnFunction for EvenLength {
    fn name(&self) -> String {
        "even_length".into()
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        Ok(columns[0]
            .as_string_view()
            .iter()
            .map(|v| match v {
                None => Some(true),
                Some(v) if v.starts_with('1') => None,
                Some(v) => Some(v.len() % 2 == 0),
            })
            .collect())
    }
}

/// Text that contains others, one after the other, or does not, which blocks of text are asked themselves.
#[derive(Debug)]
struct Contains {
    parts: Vec<String>,
    negated: bool,
}

impl ColumnFunction for Contains {
    fn name(&self) -> String {
        format!("contains {:?}, negated: {}", self.parts, self.negated)
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        let contains = |value: &str| {
            let behind = |rest: Option<usize>, part: &String| {
                let rest = rest?;
                Some(rest + value[rest..].find(part.as_str())? + part.len())
            };
            self.parts.iter().fold(Some(0), behind).is_some() != self.negated
        };
        Ok(columns[0].as_string_view().iter().map(|value| value.map(contains)).collect())
    }

    fn pattern(&self) -> Option<(Pattern, bool)> {
        Some((Pattern::new(b"", self.parts.iter().map(String::as_bytes), b""), self.negated))
    }
}

/// `sorted % 50 < noise`.
#[derive(Debug)]
struct TwoColumns;

impl ColumnFunction for TwoColumns {
    fn name(&self) -> String {
        "two_columns".into()
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        let (a, b) = (columns[0].as_primitive::<Int64Type>(), columns[1].as_primitive::<Int32Type>());
        Ok(a.iter().zip(b).map(|(a, b)| Some(a? % 50 < i64::from(b?))).collect())
    }
}

pub fn function(function: impl ColumnFunction + 'static, columns: &[&str]) -> Expr {
    Expr::Function(Function {
        columns: columns.iter().map(|c| Path::column(*c)).collect(),
        function: Arc::new(function),
    })
}

fn leaf() -> impl Strategy<Value = Expr> {
    let ints = (prop_oneof![Just("sorted"), Just("noise"), Just("mostly")], -5i64..3000, 0..6u8);
    let texts = (prop_oneof![Just("text"), Just("unique")], "[0-9a-f]{1,2}|row 1.{0,3}|", 0..6u8);
    fn compare(column: &str, value: Scalar, op: u8) -> Expr {
        let c = col(column);
        match op {
            0 => c.eq(value),
            1 => c.not_eq(value),
            2 => c.lt(value),
            3 => c.lt_eq(value),
            4 => c.gt(value),
            _ => c.gt_eq(value),
        }
    }
    prop_oneof![
        4 => ints.prop_map(|(c, v, op)| compare(c, Scalar::from(v), op)),
        4 => texts.prop_map(|(c, v, op)| compare(c, Scalar::from(v.as_str()), op)),
        1 => proptest::collection::vec(0i64..200, 0..5).prop_map(|v| col("noise").is_in(v.into_iter().map(Scalar::from))),
        1 => proptest::collection::vec("[0-9a-f]{1,2}-wörd", 0..5)
            .prop_map(|v| col("text").is_in(v.iter().map(|s| Scalar::from(s.as_str())))),
        1 => prop_oneof![Just("sorted"), Just("noise"), Just("text")].prop_map(|c| col(c).is_null()),
        1 => prop_oneof![Just("text"), Just("unique")].prop_map(|c| function(EvenLength, &[c])),
        1 => (
            prop_oneof![Just("text"), Just("unique")],
            proptest::collection::vec("[0-9a-f]{1,2}|ow 8|row|", 1..3),
            any::<bool>(),
        )
            .prop_map(|(c, parts, negated)| function(Contains { parts, negated }, &[c])),
        1 => Just(()).prop_map(|()| function(TwoColumns, &["sorted", "noise"])),
        1 => prop_oneof![Just(None), Just(Some(true)), Just(Some(false))].prop_map(Expr::Literal),
    ]
}

fn predicate() -> impl Strategy<Value = Expr> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|e| Expr::Not(Box::new(e))),
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Expr::And),
            proptest::collection::vec(inner, 0..4).prop_map(Expr::Or),
        ]
    })
}

struct Fixture {
    _dir: tempfile::TempDir,
    batch: RecordBatch,
    file: File,
}

fn fixture() -> &'static Fixture {
    static FIXTURE: std::sync::OnceLock<Fixture> = std::sync::OnceLock::new();
    FIXTURE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let batch = table(9_000);
        let file = write(&dir.path().join("t.plinth"), &batch, small());
        Fixture { _dir: dir, batch, file }
    })
}

fn mode() -> impl Strategy<Value = PushdownMode> {
    proptest::sample::select(vec![
        PushdownMode::Auto,
        PushdownMode::AfterDecode,
        PushdownMode::Interleaved,
        PushdownMode::FilterFirst,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_filter_keeps_exactly_the_rows_for_which_it_is_true(
        expr in predicate(),
        select in 0..4usize,
        limit in proptest::option::of(0..500u64),
        mode in mode(),
        look_ahead in proptest::sample::select(vec![0, 20_000, u64::MAX]),
    ) {
        let Fixture { batch, file, .. } = fixture();
        let columns: &[&str] = [&["sorted", "text"][..], &["noise"], &["unique", "mostly", "noise", "text", "sorted"], &[]][select];
        let mut kept: Vec<usize> = (0..batch.num_rows()).filter(|&row| naive(&expr, batch, row) == Some(true)).collect();
        if let Some(limit) = limit {
            kept.truncate(limit as usize);
        }
        let mut scan = file.scan().select(columns.iter().copied()).filter(expr.clone()).pushdown_mode(mode).look_ahead(look_ahead);
        if let Some(limit) = limit {
            scan = scan.limit(limit);
        }
        let scan = scan.build().unwrap();
        let (schema, metrics, stats) = (scan.schema().clone(), Arc::clone(scan.metrics()), Arc::clone(scan.adaptive_stats()));
        let batches: Vec<_> = scan.map(|b| b.unwrap()).collect();
        prop_assert_eq!(metrics.blocks_decoded_again.load(std::sync::atomic::Ordering::Relaxed), 0);
        prop_assert!(stats.retained_peak() <= look_ahead);
        prop_assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), kept.len());
        if !columns.is_empty() {
            let read = arrow_select::concat::concat_batches(&schema, &batches).unwrap();
            let rows = arrow_array::UInt64Array::from_iter_values(kept.iter().map(|&row| row as u64));
            for (name, column) in columns.iter().zip(read.columns()) {
                let all = batch.column_by_name(name).unwrap();
                let expected = arrow_select::take::take(all, &rows, None).unwrap();
                let expected = arrow_cast::cast(&expected, column.data_type()).unwrap();
                prop_assert_eq!(&expected.to_data(), &column.to_data());
            }
        }
    }
}

#[test]
fn values_of_every_type_that_were_decoded_are_kept_for_the_rows_that_pass() {
    let dir = tempfile::tempdir().unwrap();
    for (i, data_type) in all_types().into_iter().enumerate() {
        let mut random = Random(i as u64);
        let values = array(&mut random, &data_type, 3_000, 10);
        let number: ArrayRef = Arc::new(Int32Array::from_iter_values((0..3_000).map(|_| random.below(100) as i32)));
        let batch = RecordBatch::try_from_iter_with_nullable([("n", number, true), ("x", values, true)]).unwrap();
        let file = write(&dir.path().join(format!("{i}.plinth")), &batch, small());
        let passed: BooleanArray = batch["n"].as_primitive::<Int32Type>().iter().map(|n| n.map(|n| n < 30)).collect();
        let expected = arrow_select::filter::filter_record_batch(&batch, &passed).unwrap();
        for mode in
            [PushdownMode::Auto, PushdownMode::AfterDecode, PushdownMode::Interleaved, PushdownMode::FilterFirst]
        {
            let scan = file.scan().filter(col("n").lt(30)).pushdown_mode(mode).build().unwrap();
            let read = read_all(scan);
            let schema = read.schema();
            let columns = expected.columns().iter().zip(schema.fields());
            let columns = columns.map(|(column, field)| arrow_cast::cast(column, field.data_type()).unwrap()).collect();
            assert_same(&RecordBatch::try_new(Arc::clone(&schema), columns).unwrap(), &read);
        }
    }
}

#[test]
fn what_text_contains_is_asked_of_its_blocks_unless_they_come_out() {
    let Fixture { batch, file, .. } = fixture();
    let holds = |row: &str| row.contains("8 7");
    let expected = batch["unique"].as_string::<i32>().iter().filter(|row| row.is_some_and(holds)).count();
    for (output, encoded) in [("sorted", true), ("unique", false)] {
        let scan = file
            .scan()
            .select([output])
            .filter(function(Contains { parts: vec!["8 7".into()], negated: false }, &["unique"]));
        let scan = scan.pushdown_mode(PushdownMode::FilterFirst).build().unwrap();
        let stats = Arc::clone(scan.adaptive_stats());
        assert_eq!(read_all(scan).num_rows(), expected);
        let report = &stats.report()[0];
        assert_eq!(report.blocks_residual, 0, "{report:?}");
        assert_eq!((report.blocks_encoded > 0, report.blocks_decoded > 0), (encoded, !encoded), "{report:?}");
    }
}

#[test]
fn zone_maps_skip_what_they_can() {
    let Fixture { file, .. } = fixture();
    let mut scan = file.scan().select(["unique"]).filter(col("sorted").eq(2_500)).build().unwrap();
    assert_eq!(scan.by_ref().map(|b| b.unwrap().num_rows()).sum::<usize>(), 3);
    let metrics = scan.metrics();
    let get = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((get(&metrics.row_groups_total), get(&metrics.row_groups_pruned)), (3, 2));
    assert_eq!((get(&metrics.blocks_total), get(&metrics.blocks_pruned)), (9, 8));
    assert_eq!((get(&metrics.rows_in), get(&metrics.rows_out)), (1024, 3));
    let nothing = file.scan().filter(col("text").eq("not there")).build().unwrap();
    let metrics = Arc::clone(nothing.metrics());
    assert_eq!(nothing.count(), 0);
    assert_eq!(get(&metrics.bytes_read), 0, "the dictionary alone says that the value does not occur");
}

#[test]
fn no_block_is_decoded_twice() {
    let Fixture { file, .. } = fixture();
    let filter = function(EvenLength, &["unique"]);
    let mut scan = file.scan().select(["unique", "sorted"]).filter(filter).build().unwrap();
    assert!(scan.by_ref().map(|b| b.unwrap().num_rows()).sum::<usize>() > 1000);
    let decoded = scan.metrics().blocks_decoded.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(decoded, 9 * 2);
}

#[test]
fn dictionary_columns_come_out_as_codes_in_value_order() {
    let Fixture { file, batch, .. } = fixture();
    let mut scan = file.scan().select(["text", "sorted"]).build().unwrap();
    let mut row = 0;
    let mut seen: Vec<(u32, String)> = Vec::new();
    while let Some(chunk) = scan.next_chunk().unwrap() {
        let ScanColumn::Codes { ids, nulls, dictionary } = &chunk.columns[0] else { panic!("no codes") };
        assert!(matches!(chunk.columns[1], ScanColumn::Arrow(_)));
        let text = batch.column_by_name("text").unwrap().as_string::<i32>();
        for i in 0..chunk.rows {
            assert_eq!(nulls.as_ref().is_none_or(|n| n.is_valid(i)), text.is_valid(row));
            if text.is_valid(row) {
                let mut key = Vec::new();
                dictionary.get(ids[i], &mut key).unwrap();
                assert_eq!(key, text.value(row).as_bytes());
                seen.push((ids[i], text.value(row).to_owned()));
            }
            row += 1;
        }
    }
    assert_eq!(row, 9_000);
    seen.sort();
    assert!(seen.is_sorted_by_key(|(_, value)| value));
}

/// Fails on one value.
#[derive(Debug)]
struct FailsOn(&'static str);

impl ColumnFunction for FailsOn {
    fn name(&self) -> String {
        "fails".into()
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        columns[0]
            .as_string_view()
            .iter()
            .map(|v| if v == Some(self.0) { Err(format!("{v:?} fails")) } else { Ok(v.map(|_| true)) })
            .collect()
    }
}

#[test]
fn a_function_that_fails_matters_only_if_a_surviving_row_holds_the_value() {
    let Fixture { file, .. } = fixture();
    for column in ["text", "unique"] {
        let culprit = if column == "text" { "3-wörd" } else { "row 5 0" };
        let culprit: &'static str = if column == "unique" {
            let batch = read_all(file.scan().select(["unique"]).limit(6).build().unwrap());
            batch.column(0).as_string_view().value(5).to_owned().leak()
        } else {
            culprit
        };
        let fails = || function(FailsOn(culprit), &[column]);
        let all: Result<Vec<_>, _> = file.scan().filter(fails()).build().unwrap().collect();
        assert!(all.unwrap_err().to_string().contains("fails"));
        let others: Result<Vec<_>, _> =
            file.scan().filter(fails()).filter(col(column).not_eq(culprit)).build().unwrap().collect();
        assert!(others.unwrap().iter().map(RecordBatch::num_rows).sum::<usize>() > 1000);
    }
}

/// Tightens as it is asked.
#[derive(Debug)]
struct Tightening(Mutex<u64>);

impl DynamicFilter for Tightening {
    fn newer_than(&self, seen: u64) -> Option<(u64, Expr)> {
        let mut asked = self.0.lock().unwrap();
        *asked += 1;
        // The last version lets nothing through any more.
        let version = (*asked).min(6);
        let bound = if version < 6 { 100_000 } else { -1 };
        (version > seen).then(|| (version, col("sorted").lt(bound)))
    }
}

#[test]
fn a_dynamic_filter_stops_the_scan_as_it_tightens() {
    let Fixture { file, .. } = fixture();
    let filter = Arc::new(Tightening(Mutex::new(0)));
    let scan = file.scan().select(["sorted"]).dynamic_filter(filter).build().unwrap();
    let metrics = Arc::clone(scan.metrics());
    let rows: usize = scan.map(|b| b.unwrap().num_rows()).sum();
    assert!(rows > 0 && rows < 9_000, "{rows}");
    assert!(metrics.row_groups_pruned.load(std::sync::atomic::Ordering::Relaxed) > 0);
}

/// Tightens by the rows that came out, as the bounds of an engine's operator do.
#[derive(Debug, Default)]
struct ByRows(Mutex<Option<i64>>);

impl DynamicFilter for ByRows {
    fn newer_than(&self, seen: u64) -> Option<(u64, Expr)> {
        let least = *self.0.lock().unwrap();
        least.filter(|_| seen == 0).map(|least| (1, col("sorted").lt(least)))
    }
}

#[test]
fn the_rows_that_tighten_a_filter_do_not_wait_for_a_batch() {
    let Fixture { file, .. } = fixture();
    let filter = Arc::new(ByRows::default());
    let wanted = || file.scan().select(["sorted"]).filter(col("sorted").gt_eq(0)).batch_rows(1 << 20);
    let mut scan = wanted().dynamic_filter(Arc::clone(&filter) as _).build().unwrap();
    let first = scan.next().unwrap().unwrap();
    let all = read_all(wanted().build().unwrap()).num_rows();
    assert!(first.num_rows() > 0 && first.num_rows() * 2 < all, "{} of {all}", first.num_rows());
    *filter.0.lock().unwrap() = Some(i64::MIN);
    let rest: usize = scan.map(|batch| batch.unwrap().num_rows()).sum();
    assert!((first.num_rows() + rest) * 2 < all, "{rest} of {all}");
}

#[test]
fn bad_requests_are_errors() {
    let Fixture { file, .. } = fixture();
    assert!(file.scan().select(["none"]).build().unwrap_err().to_string().contains("no column \"none\""));
    assert!(file.scan().filter(col("none").eq(1)).build().is_err());
    assert!(file.scan().filter(col("text").eq(1)).build().unwrap_err().to_string().contains("text"));
    assert!(file.scan().row_groups(2..9).build().is_err());
    assert_eq!(read_all(file.scan().row_groups(1..2).build().unwrap()).num_rows(), 4096);
    assert_eq!(read_all(file.scan().batch_rows(0).limit(3).build().unwrap()).num_rows(), 3);
}

/// [`EvenLength`], and how many values it was asked about.
#[derive(Debug, Default)]
struct Counted(AtomicU64);

impl ColumnFunction for Counted {
    fn name(&self) -> String {
        "counted".into()
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        self.0.fetch_add(columns[0].len() as u64, Relaxed);
        EvenLength.evaluate(columns)
    }
}

#[test]
fn scans_side_by_side_ask_about_each_distinct_value_once() {
    const VALUES: u64 = 30_000;
    let words = StringArray::from_iter(
        (0..4 * VALUES).map(|row| (row % 9 > 0).then(|| format!("{}", row % VALUES * 7919 % 1_000_003))),
    );
    let distinct = words.iter().flatten().collect::<std::collections::HashSet<_>>().len() as u64;
    let batch = RecordBatch::try_from_iter([("a", Arc::new(words) as ArrayRef)]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    let expected = read_all(
        write(&path, &batch, WriterOptions::default()).scan().filter(function(EvenLength, &["a"])).build().unwrap(),
    );
    assert!(expected.num_rows() > 1000);
    // With room for all values at once, and without.
    for memory in [256 << 20, 400 << 10] {
        let options =
            OpenOptions { io: Io::new(&MemoryBudget::new(memory), IoOptions::default()), ..OpenOptions::default() };
        let file = File::open_with(&path, &options).unwrap();
        let counted = Arc::new(Counted::default());
        let filter = || {
            let function = Arc::clone(&counted) as Arc<dyn ColumnFunction>;
            Expr::Function(Function { columns: vec![Path::column("a")], function })
        };
        let scan = || file.scan().filter(filter()).build().unwrap();
        // One lives on, and what it knows with it.
        let first = scan();
        let all = std::thread::scope(|threads| {
            let scans: Vec<_> = (0..4).map(|_| threads.spawn(|| read_all(scan()))).collect();
            scans.into_iter().map(|scan| scan.join().unwrap()).collect::<Vec<_>>()
        });
        for one in all.into_iter().chain([read_all(first)]) {
            assert_same(&one, &expected);
        }
        assert_eq!(counted.0.load(Relaxed), distinct + 1, "and about null");
    }
}
