//! Values and rows by question: the same through postings, through a scan, and by looking at every row; reads are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, Float64Array, Int16Array, Int64Array, RecordBatch, StringArray};
use arrow_buffer::Buffer;
use plinth_encoding::Effort;
use plinth_encoding::expr::{Expr, Scalar, col};
use plinth_format::lookup::{Dictionary, Matches};
use plinth_format::{Access, File, OpenOptions, Writer, WriterOptions};
use plinth_io::{Io, IoOptions, LocalFile, MemoryBudget, Source};

use crate::data::{Random, array, assert_same, read_all, small, write};

/// The values of a column as what they are compared with; nulls too.
type Model = Vec<Option<Vec<u8>>>;

const ACCESS: [Access; 3] = [Access::Auto, Access::Scan, Access::Postings];

fn indexed(columns: &[&str], options: WriterOptions) -> WriterOptions {
    WriterOptions { index: columns.iter().map(|&name| name.to_owned()).collect(), ..options }
}

fn word(n: u64) -> String {
    if n == 0 { String::new() } else { format!("{}wörd{n}", ["a", "b", "ab", ""][n as usize % 4]) }
}

/// Rows of words, some null, with a payload of their numbers.
fn words(rows: usize, distinct: u64, nulls: u64, seed: u64) -> (RecordBatch, Model) {
    let mut random = Random(seed);
    let model: Model = (0..rows)
        .map(|_| {
            (!random.chance(nulls))
                .then(|| word(random.below(distinct) * random.below(distinct) / distinct).into_bytes())
        })
        .collect();
    let text = model.iter().map(|value| value.as_deref().map(|value| std::str::from_utf8(value).unwrap()));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("w", Arc::new(StringArray::from_iter(text)) as ArrayRef, true),
        ("n", Arc::new(Int64Array::from_iter_values(0..rows as i64)), false),
    ]);
    (batch.unwrap(), model)
}

/// Compares everything that a set of matches says with the rows that a predicate holds for.
fn check(matches: &Matches, model: &Model, forced: bool, holds: impl Fn(&[u8]) -> bool) {
    let rows: Vec<u64> =
        (0..).zip(model).filter(|(_, value)| value.as_deref().is_some_and(&holds)).map(|(row, _)| row).collect();
    let found = matches.rows().unwrap();
    assert!(!forced || matches.choose().unwrap() == found.used());
    assert_eq!(found.into_vec().unwrap(), rows);
    assert_eq!(matches.rows().unwrap().map(Result::unwrap).collect::<Vec<_>>(), rows);
    assert_eq!(matches.count().unwrap(), rows.len() as u64);
    let values: BTreeSet<&[u8]> = model.iter().flatten().map(Vec::as_slice).filter(|value| holds(value)).collect();
    assert_eq!(matches.distinct().unwrap(), values.len() as u64);
    let found = matches.values().unwrap();
    let found: Vec<&[u8]> = match found.data_type() {
        arrow_schema::DataType::Utf8View => found.as_string_view().iter().map(|v| v.unwrap().as_bytes()).collect(),
        _ => found.as_binary_view().iter().map(Option::unwrap).collect(),
    };
    assert_eq!(found, values.into_iter().collect::<Vec<_>>());
}

fn check_text(dictionary: &Dictionary, model: &Model, forced: bool) {
    let present: Vec<&Vec<u8>> = model.iter().flatten().take(20).collect();
    for value in [&b""[..], b"nowhere"].into_iter().chain(present.iter().map(|value| value.as_slice())) {
        let matches = dictionary.equals(Scalar::Bytes(value.into())).unwrap();
        check(&matches, model, forced, |v| v == value);
    }
    for prefix in [&b""[..], b"a", b"aw", b"abw\xc3\xb6rd1", b"z", &[0xff]] {
        check(&dictionary.prefix(prefix).unwrap(), model, forced, |v| v.starts_with(prefix));
    }
    let bytes = |value: &[u8]| Scalar::Bytes(value.into());
    check(&dictionary.range(bytes(b"a")..bytes(b"b")).unwrap(), model, forced, |v| {
        v >= b"a".as_slice() && v < b"b".as_slice()
    });
    check(&dictionary.range(..=bytes(b"abw\xc3\xb6rd2")).unwrap(), model, forced, |v| {
        v <= b"abw\xc3\xb6rd2".as_slice()
    });
    let above = (Bound::Excluded(bytes(b"")), Bound::Unbounded);
    check(&dictionary.range(above).unwrap(), model, forced, |v| v > b"".as_slice());
    check(&dictionary.range(..).unwrap(), model, forced, |_| true);
    check(&dictionary.range(bytes(b"b")..bytes(b"a")).unwrap(), model, forced, |_| false);
    let odd = |v: &[u8]| v.last().is_some_and(|last| last % 2 == 1);
    check(&dictionary.matches(odd).unwrap(), model, forced, odd);
    check(&dictionary.matches(|_| false).unwrap(), model, forced, |_| false);
}

#[test]
fn every_question_is_answered_the_same_whichever_way() {
    let dir = tempfile::tempdir().unwrap();
    for (i, (rows, distinct, nulls)) in
        [(0, 1, 0), (1, 1, 0), (500, 3, 10), (9_000, 700, 0), (12_345, 5_000, 25), (3_000, 1, 0), (2_000, 9, 100)]
            .into_iter()
            .enumerate()
    {
        let (batch, model) = words(rows, distinct, nulls, 7 + i as u64);
        let options = WriterOptions { threads: 1 + i % 3, ..small() };
        let file = write(&dir.path().join(format!("{i}")), &batch, indexed(&["w"], options));
        let index = file.column("w").unwrap().index().unwrap().unwrap();
        assert_eq!(index.rows, model.iter().flatten().count() as u64);
        assert!(file.column("n").unwrap().index().unwrap().is_none());
        for access in ACCESS {
            let dictionary = file.column("w").unwrap().dictionary().unwrap().access(access);
            assert_eq!(dictionary.len(), model.iter().flatten().collect::<BTreeSet<_>>().len());
            check_text(&dictionary, &model, access != Access::Auto);
        }
        file.verify(2, &|_| {}).unwrap();
    }
}

#[test]
fn without_postings_questions_are_answered_by_scans() {
    let dir = tempfile::tempdir().unwrap();
    let (batch, model) = words(9_000, 700, 20, 3);
    let file = write(&dir.path().join("t"), &batch, small());
    let dictionary = file.column("w").unwrap().dictionary().unwrap();
    check_text(&dictionary, &model, true);
    let error = dictionary.access(Access::Postings).equals("a").unwrap().rows().unwrap_err().to_string();
    assert!(error.contains("column w has no postings"), "{error}");
    let error = file.column("n").unwrap().dictionary().unwrap_err().to_string();
    assert!(error.contains("column n has no dictionary"), "{error}");
}

#[test]
fn rows_of_every_dictionary_are_found() {
    let dir = tempfile::tempdir().unwrap();
    // Few values first, then ever more.
    let mut random = Random(5);
    let model: Model = (0..8_000_u64)
        .map(|row| (!random.chance(5)).then(|| word(random.below(1 + row * row / 20_000)).into_bytes()))
        .collect();
    let text = StringArray::from_iter(model.iter().map(|v| v.as_deref().map(|v| std::str::from_utf8(v).unwrap())));
    let batch = RecordBatch::try_from_iter_with_nullable([("w", Arc::new(text) as ArrayRef, true)]).unwrap();
    let options = WriterOptions { row_group_rows: 1_000, dictionary_values: 400, ..small() };
    let file = write(&dir.path().join("t"), &batch, indexed(&["w"], options));
    let report = &file.report().unwrap().columns[0];
    assert!(report.note.is_none() && report.dictionaries > 2, "{report:?}");
    let index = file.column("w").unwrap().index().unwrap().unwrap();
    assert_eq!((index.rows, index.bytes), (model.iter().flatten().count() as u64, report.index_bytes));
    for access in ACCESS {
        check_text(&file.column("w").unwrap().dictionary().unwrap().access(access), &model, false);
        for (value, predicate) in [("awörd4", col("w").eq("awörd4")), ("awörd400", col("w").eq("awörd400"))] {
            let mut scan = file.scan().filter(predicate).access(access).build().unwrap();
            let rows: usize = scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
            assert_eq!(rows, model.iter().flatten().filter(|v| **v == value.as_bytes()).count(), "{value}");
            // A scan of so few rows costs less than a read of a list; that a value has no list takes no read.
            let column = file.column("w").unwrap().dictionary().unwrap();
            let is_listed = !column.equals(value).unwrap().codes().is_empty();
            let by_postings = access == Access::Postings || (access == Access::Auto && !is_listed);
            assert_eq!(scan.metrics().postings_conjuncts.load(Relaxed), u64::from(by_postings), "{value} {access:?}");
        }
    }
    file.verify(1, &|_| {}).unwrap();
}

#[test]
fn columns_of_all_types_can_be_indexed() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(11);
    let rows = 3_000;
    let mut seen = 0;
    for (i, data_type) in crate::data::all_types().into_iter().enumerate() {
        let values = array(&mut random, &data_type, rows, 10);
        let batch = RecordBatch::try_from_iter_with_nullable([("c", values, true)]).unwrap();
        let path = dir.path().join(format!("{i}"));
        let options =
            indexed(&["c"], WriterOptions { effort: if i % 2 == 0 { Effort::Plain } else { Effort::Fast }, ..small() });
        let mut writer = match Writer::create(&path, &batch.schema(), options) {
            Ok(writer) => writer,
            Err(error) => {
                assert!(error.to_string().contains("column \"c\" can't be indexed: "), "{data_type}: {error}");
                continue;
            }
        };
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let file = File::open(&path).unwrap();
        // One row a value and the values of all rows: the lists are right if every value leads to its rows.
        let dictionary = file.column("c").unwrap().dictionary().unwrap().access(Access::Postings);
        let all = dictionary.range(..).unwrap();
        let plain = read_all(file.scan().build().unwrap());
        let valid: Vec<u64> = (0..rows as u64).filter(|&row| plain.column(0).is_valid(row as usize)).collect();
        assert_eq!(all.rows().unwrap().into_vec().unwrap(), valid, "{data_type}");
        file.verify(1, &|_| {}).unwrap();
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn numbers_are_asked_in_the_terms_of_their_column() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(2);
    let ints: Vec<i16> = (0..5_000).map(|_| random.below(300) as i16 - 150).collect();
    let floats: Vec<f64> = ints.iter().map(|&i| f64::from(i) / 4.0).collect();
    let batch = RecordBatch::try_from_iter([
        ("i", Arc::new(Int16Array::from(ints.clone())) as ArrayRef),
        ("f", Arc::new(Float64Array::from(floats)) as ArrayRef),
    ]);
    let file = write(&dir.path().join("t"), &batch.unwrap(), indexed(&["i", "f"], small()));
    for access in ACCESS {
        let ask = |name: &str| file.column(name).unwrap().dictionary().unwrap().access(access);
        let rows = |holds: &dyn Fn(i16) -> bool| -> Vec<u64> {
            (0..).zip(&ints).filter(|(_, value)| holds(**value)).map(|(row, _)| row).collect()
        };
        let found = |matches: Matches| matches.rows().unwrap().into_vec().unwrap();
        for value in [-150, 0, 149, 150, 40_000] {
            assert_eq!(found(ask("i").equals(value).unwrap()), rows(&|v| i64::from(v) == value));
            assert_eq!(found(ask("f").equals(value as f64 / 4.0).unwrap()), rows(&|v| i64::from(v) == value));
        }
        let range = Scalar::from(-3_i64)..=Scalar::from(77_i64);
        assert_eq!(found(ask("i").range(range).unwrap()), rows(&|v| (-3..=77).contains(&v)));
        let range = (Bound::Excluded(Scalar::from(1.0)), Bound::Unbounded);
        assert_eq!(found(ask("f").range(range).unwrap()), rows(&|v| v > 4));
        assert!(ask("i").equals("text").unwrap_err().to_string().contains("cannot compare"));
        assert!(ask("i").prefix("1").unwrap_err().to_string().contains("has no prefixes"));
        assert!(ask("f").matches(|_| true).unwrap_err().to_string().contains("can't be matched"));
    }
}

#[test]
fn a_range_from_zero_to_zero_has_both_zeros() {
    let dir = tempfile::tempdir().unwrap();
    let floats = (0..5_000).map(|row| [0.0, -0.0, 1.5, -1.5][row % 4]);
    let column: ArrayRef = Arc::new(Float64Array::from_iter_values(floats));
    let batch = RecordBatch::try_from_iter([("f", column)]).unwrap();
    let file = write(&dir.path().join("t"), &batch, indexed(&["f"], small()));
    for access in ACCESS {
        let column = file.column("f").unwrap().dictionary().unwrap().access(access);
        let matches = column.range(Scalar::from(-0.0)..=Scalar::from(0.0)).unwrap();
        let expected: Vec<u64> = (0..5_000).filter(|row| row % 4 < 2).collect();
        assert_eq!(matches.rows().unwrap().into_vec().unwrap(), expected);
        assert_eq!(column.equals(0.0).unwrap().count().unwrap(), 1_250);
    }
}

#[test]
fn what_can_not_be_indexed_is_said_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (batch, _) = words(10, 3, 0, 1);
    let error = Writer::create(dir.path().join("t"), &batch.schema(), indexed(&["W"], small())).unwrap_err();
    assert_eq!(error.to_string(), "column \"W\" can't be indexed: there is no such column");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn the_same_rows_give_the_same_postings_whatever_the_threads_and_the_memory() {
    let dir = tempfile::tempdir().unwrap();
    // Of one word so many rows that its list has parts in several passes, if there are several.
    let mut random = Random(8);
    let (rare, model) = words(600_000, 3_000, 10, 77);
    let text = model.iter().map(|word| match word {
        Some(word) if random.chance(30) => Some(std::str::from_utf8(word).unwrap()),
        Some(_) => Some("abwörd1"),
        None => None,
    });
    let text: Vec<Option<&str>> = text.collect();
    let columns = [("w", Arc::new(StringArray::from(text.clone())) as ArrayRef), ("n", Arc::clone(rare.column(1)))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let bytes = |name: &str, options: WriterOptions| {
        let path = dir.path().join(name);
        let file = write(&path, &batch, indexed(&["w"], options));
        let dictionary = file.column("w").unwrap().dictionary().unwrap().access(Access::Postings);
        for word in ["abwörd1", "awörd400"] {
            let expected: Vec<u64> = (0..).zip(&text).filter(|(_, w)| **w == Some(word)).map(|(row, _)| row).collect();
            assert_eq!(dictionary.equals(word).unwrap().rows().unwrap().into_vec().unwrap(), expected);
        }
        std::fs::read(path).unwrap()
    };
    let one = bytes("1", WriterOptions { threads: 1, ..WriterOptions::default() });
    for (threads, dictionary_total_bytes) in [(2, 384 << 20), (5, 384 << 20), (1, 1 << 20), (3, 2 << 20)] {
        let options = WriterOptions { threads, dictionary_total_bytes, ..WriterOptions::default() };
        assert!(bytes(&format!("{threads} {dictionary_total_bytes}"), options) == one);
    }
}

/// Remembers what was read.
#[derive(Debug)]
struct Counted(LocalFile, Mutex<Vec<Range<u64>>>, AtomicUsize);

impl Source for Counted {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }

    fn read(&self, ranges: &[Range<u64>]) -> plinth_io::Result<Vec<Buffer>> {
        self.1.lock().unwrap().extend_from_slice(ranges);
        self.2.fetch_add(ranges.len(), Relaxed);
        self.0.read(ranges)
    }
}

fn counted(path: &Path) -> (Arc<Counted>, File) {
    let source = Arc::new(Counted(LocalFile::open(path).unwrap(), Mutex::default(), AtomicUsize::new(0)));
    let io = Io::new(&MemoryBudget::new(64 << 20), IoOptions::default());
    let file = File::from_source_with(Arc::clone(&source) as _, &OpenOptions { io, ..OpenOptions::default() }).unwrap();
    (source, file)
}

#[test]
fn a_cold_question_is_one_or_two_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut random = Random(21);
    let model: Vec<u64> = (0..400_000).map(|_| random.below(30_000)).collect();
    let text = StringArray::from_iter_values(model.iter().map(|&n| word(n)));
    let batch = RecordBatch::try_from_iter([("w", Arc::new(text) as ArrayRef)]).unwrap();
    write(&path, &batch, indexed(&["w"], WriterOptions::default()));
    let (source, file) = counted(&path);
    let dictionary = file.column("w").unwrap().dictionary().unwrap();
    let reads = || source.2.swap(0, Relaxed);
    reads();
    for value in [5, 17_000, 29_999] {
        let rows = dictionary.equals(word(value).as_str()).unwrap().rows().unwrap().into_vec().unwrap();
        assert_eq!(rows, (0..).zip(&model).filter(|(_, n)| **n == value).map(|(row, _)| row).collect::<Vec<u64>>());
        // A block of the dictionary and a group of lists.
        assert_eq!(reads(), 2, "{value}");
        dictionary.equals(word(value).as_str()).unwrap().rows().unwrap().into_vec().unwrap();
        assert_eq!(reads(), 0, "both are kept");
    }
    // A prefix: at most two blocks of the dictionary, and lists that lie together.
    let matches = dictionary.prefix("bwörd12").unwrap();
    assert!(reads() <= 2);
    let rows = matches.rows().unwrap();
    assert_eq!(rows.used(), Access::Postings);
    let rows = rows.into_vec().unwrap();
    assert!(rows.len() > 1_000 && matches.codes().len() > 50);
    assert!(reads() <= 2, "one for the ends, one for all");
    assert_eq!(matches.count().unwrap(), rows.len() as u64);
    let largest = source.1.lock().unwrap().iter().map(|range| range.end - range.start).max().unwrap();
    assert!(largest < 1 << 20, "{largest}");
}

#[test]
fn a_scan_lets_postings_choose_its_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let (rows, distinct) = (60_000, 20_000);
    let (batch, model) = words(rows, distinct, 5, 31);
    let options = WriterOptions { row_group_rows: 16_384, block_rows: 1_024, ..WriterOptions::default() };
    let file = write(&dir.path().join("t"), &batch, indexed(&["w"], options));
    let mut count: BTreeMap<&[u8], usize> = BTreeMap::new();
    model.iter().flatten().for_each(|value| *count.entry(value).or_default() += 1);
    let rare = std::str::from_utf8(count.iter().find(|(_, rows)| **rows == 1).unwrap().0).unwrap();
    let row = model.iter().position(|value| value.as_deref() == Some(rare.as_bytes())).unwrap();
    let run = |predicate: Expr, access: Access| {
        let mut scan = file.scan().filter(predicate).access(access).build().unwrap();
        let metrics = Arc::clone(scan.metrics());
        let batches: Vec<RecordBatch> = scan.by_ref().map(Result::unwrap).collect();
        (arrow_select::concat::concat_batches(scan.schema(), &batches).unwrap(), metrics)
    };
    let (found, metrics) = run(col("w").eq(rare), Access::Auto);
    assert_eq!(found.column(1).as_primitive::<arrow_array::types::Int64Type>().values()[..], [row as i64]);
    assert_eq!(metrics.postings_conjuncts.load(Relaxed), 1);
    assert_eq!((metrics.postings_rows.load(Relaxed), metrics.postings_bytes.load(Relaxed) > 0), (1, true));
    assert_eq!(metrics.blocks_total.load(Relaxed) - metrics.blocks_pruned.load(Relaxed), 1);
    assert_eq!((metrics.blocks_evaluated.load(Relaxed), metrics.blocks_decoded.load(Relaxed)), (0, 2));

    let predicates = [
        Expr::And(vec![col("w").eq(rare), col("n").lt(row as i64)]),
        Expr::And(vec![col("w").eq(rare), col("n").gt_eq(row as i64)]),
        Expr::starts_with(&"w".into(), b"abw\xc3\xb6rd1"),
        Expr::Or(vec![col("w").eq(rare), col("w").eq("awörd4"), col("w").lt("a")]),
        Expr::Or(vec![col("w").eq(rare), col("n").lt(17)]),
        col("w").is_in(["awörd4".into(), "bwörd1".into(), "nowhere".into()]),
        Expr::Not(Box::new(col("w").eq(rare))),
        col("w").eq("nowhere"),
        Expr::And(vec![col("w").is_null(), col("w").eq(rare)]),
        Expr::And(vec![col("w").gt("a"), col("w").lt("aw"), col("n").gt(30_000)]),
    ];
    for predicate in predicates {
        let (expected, metrics) = run(predicate.clone(), Access::Scan);
        assert_eq!(metrics.postings_conjuncts.load(Relaxed), 0);
        for access in [Access::Auto, Access::Postings] {
            assert_same(&run(predicate.clone(), access).0, &expected);
        }
        // Parts of the file, and limits.
        for groups in [0..1, 1..4, 2..2, 3..4] {
            let scan = |access| {
                let scan = file.scan().filter(predicate.clone()).row_groups(groups.clone()).limit(40);
                read_all(scan.access(access).build().unwrap())
            };
            assert_same(&scan(Access::Postings), &scan(Access::Scan));
        }
    }
}

#[test]
fn damaged_postings_are_errors_and_not_other_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let binary = BinaryArray::from_iter_values((0..6_000_u64).map(|row| [b'k', (row * row % 251) as u8]));
    let batch = RecordBatch::try_from_iter([("b", Arc::new(binary) as ArrayRef)]).unwrap();
    let file = write(&path, &batch, indexed(&["b"], small()));
    let expected = |value: u8| -> Vec<u64> { (0..6_000).filter(|row| (row * row % 251) as u8 == value).collect() };
    let bytes = std::fs::read(&path).unwrap();
    let length = file.byte_len();
    drop(file);
    let ask = |file: &File| -> plinth_format::Result<()> {
        let dictionary = file.column("b")?.dictionary()?.access(Access::Postings);
        for value in [0_u8, 4, 100, 250] {
            let found = dictionary.equals(Scalar::Bytes([b'k', value].as_slice().into()))?.rows()?.into_vec()?;
            assert_eq!(found, expected(value));
        }
        dictionary.range(..)?.rows()?.into_vec()?;
        Ok(())
    };
    let open = |bytes: &[u8]| File::from_source(Arc::new(plinth_io::MemorySource::new("damaged", bytes)));
    ask(&open(&bytes).unwrap()).unwrap();
    let (mut errors, mut unverified) = (0, 0);
    for at in (64..length as usize).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x24;
        let Ok(file) = open(&damaged) else { continue };
        let failed = ask(&file).is_err();
        errors += usize::from(failed);
        unverified += usize::from(failed && file.verify(1, &|_| {}).is_ok());
    }
    assert!(errors > 200, "{errors}");
    assert_eq!(unverified, 0, "what a question finds damaged, checking the file does");
}
