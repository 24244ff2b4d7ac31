//! Random tables, random indexes, random histories: every way to rows finds what a look at all of them does.
//!
//! `PLINTH_HISTORIES` says how many to try:
//!
//! ```text
//! PLINTH_HISTORIES=5000 cargo test --release -p plinth-rowstore --test suite histories -- --nocapture
//! ```

use std::collections::HashSet;
use std::ops::Bound;

use arrow_array::{Array, BinaryArray, FixedSizeBinaryArray, Float64Array, Int32Array, UInt16Array};
use plinth_encoding::expr::{Expr, Scalar, col};
use plinth_rowstore::{KeyPart, Snapshot, TableError};

use super::*;

/// A value; a null is behind all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Value {
    Int(i64),
    Bytes(Vec<u8>),
    /// By its bits: -0.0 is not 0.0, and a NaN is itself.
    Float(u64),
    Null,
}

type Row = Vec<Value>;
type Rows = BTreeMap<i64, Row>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Long,
    Int,
    Short,
    Text,
    Binary,
    Fixed(i32),
    Float,
}

/// A column, and what its values are: few, so that rows share them, or many.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    kind: Kind,
    nullable: bool,
    /// Percent.
    nulls: u64,
    values: Vec<Value>,
}

fn index(random: &mut Random, len: usize) -> usize {
    usize::try_from(random.below(len as u64)).unwrap()
}

fn pick<T: Clone>(random: &mut Random, of: &[T]) -> T {
    of[index(random, of.len())].clone()
}

/// Bytes of 0 to 300: of few values or of all, with a beginning in common or not.
fn bytes(random: &mut Random, text: bool, begin: &[u8]) -> Vec<u8> {
    let most = pick(random, &[0, 1, 8, 9, 16, 40, 300]);
    let (len, values) = (random.below(most + 1), pick(random, &[1, 2, 16, if text { 90 } else { 256 }]));
    let first = if text { 32 } else { 0 };
    let mut bytes = if random.below(3) > 0 { begin.to_vec() } else { Vec::new() };
    bytes.extend((0..len).map(|_| u8::try_from(first + random.below(values)).unwrap()));
    bytes.truncate(300);
    bytes
}

fn value(random: &mut Random, kind: Kind, begin: &[u8]) -> Value {
    let small = i64::try_from(random.below(40)).unwrap() - 20;
    match kind {
        Kind::Long => Value::Int(pick(random, &[small, small, small << 40, i64::MIN, i64::MAX])),
        Kind::Int => Value::Int(pick(random, &[small, small, i32::MIN.into(), i32::MAX.into()])),
        Kind::Short => Value::Int(pick(random, &[small + 20, 0, u16::MAX.into()])),
        Kind::Text => Value::Bytes(bytes(random, true, begin)),
        Kind::Binary => Value::Bytes(bytes(random, false, begin)),
        Kind::Fixed(width) => {
            let len = usize::try_from(width).unwrap();
            Value::Bytes((0..len).map(|_| u8::try_from(random.below(3) * 127).unwrap()).collect())
        }
        Kind::Float => {
            let odd = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -1e300];
            Value::Float(pick(random, &odd).to_bits())
        }
    }
}

fn columns(random: &mut Random) -> Vec<Column> {
    let kinds = [Kind::Long, Kind::Int, Kind::Short, Kind::Text, Kind::Text, Kind::Binary, Kind::Fixed(3), Kind::Float];
    let column = |i: u64, random: &mut Random| {
        let kind = pick(random, &kinds);
        let begin = bytes(random, true, b"");
        let many = pick(random, &[1, 3, 20, 200]);
        let values = (0..many).map(|_| value(random, kind, &begin)).collect();
        let nulls = pick(random, &[0, 0, 5, 50, 95, 100]);
        Column { name: format!("c{i}"), kind, nullable: nulls > 0 || random.below(2) == 0, nulls, values }
    };
    (0..2 + random.below(4)).map(|i| column(i, random)).collect()
}

fn row(random: &mut Random, columns: &[Column]) -> Row {
    let cell = |column: &Column, random: &mut Random| {
        if random.below(100) < column.nulls { Value::Null } else { pick(random, &column.values) }
    };
    columns.iter().map(|column| cell(column, random)).collect()
}

fn fields(columns: &[Column]) -> Schema {
    let field = |column: &Column| {
        let kind = match column.kind {
            Kind::Long => DataType::Int64,
            Kind::Int => DataType::Int32,
            Kind::Short => DataType::UInt16,
            Kind::Text => DataType::Utf8,
            Kind::Binary => DataType::Binary,
            Kind::Fixed(width) => DataType::FixedSizeBinary(width),
            Kind::Float => DataType::Float64,
        };
        Field::new(&column.name, kind, column.nullable)
    };
    let id = Field::new("id", DataType::Int64, false);
    Schema::new([id].into_iter().chain(columns.iter().map(field)).collect::<Vec<_>>())
}

fn batch_of(columns: &[Column], rows: &Rows) -> RecordBatch {
    let int = |value: &Value| if let Value::Int(value) = value { Some(*value) } else { None };
    let raw = |value: &Value| if let Value::Bytes(bytes) = value { Some(bytes.clone()) } else { None };
    let column = |(i, column): (usize, &Column)| -> ArrayRef {
        let cells = || rows.values().map(move |row| &row[i]);
        match column.kind {
            Kind::Long => Arc::new(Int64Array::from_iter(cells().map(int))),
            Kind::Int => Arc::new(Int32Array::from_iter(cells().map(|v| int(v).map(|v| i32::try_from(v).unwrap())))),
            Kind::Short => Arc::new(UInt16Array::from_iter(cells().map(|v| int(v).map(|v| u16::try_from(v).unwrap())))),
            Kind::Text => {
                Arc::new(StringArray::from_iter(cells().map(|v| raw(v).map(|v| String::from_utf8(v).unwrap()))))
            }
            Kind::Binary => Arc::new(BinaryArray::from_iter(cells().map(raw))),
            Kind::Fixed(width) => {
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(cells().map(raw), width).unwrap())
            }
            Kind::Float => Arc::new(Float64Array::from_iter(
                cells().map(|v| if let Value::Float(bits) = v { Some(f64::from_bits(*bits)) } else { None }),
            )),
        }
    };
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.keys().copied()));
    let arrays = [ids].into_iter().chain(columns.iter().enumerate().map(column)).collect();
    RecordBatch::try_new(Arc::new(fields(columns)), arrays).unwrap()
}

fn cell(array: &ArrayRef, row: usize) -> Value {
    use arrow_array::types::{Float64Type, Int32Type, UInt16Type};
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Int64 => Value::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::Int32 => Value::Int(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::UInt16 => Value::Int(array.as_primitive::<UInt16Type>().value(row).into()),
        DataType::Utf8View => Value::Bytes(array.as_string_view().value(row).as_bytes().to_vec()),
        DataType::BinaryView => Value::Bytes(array.as_binary_view().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => Value::Bytes(array.as_fixed_size_binary().value(row).to_vec()),
        DataType::Float64 => Value::Float(array.as_primitive::<Float64Type>().value(row).to_bits()),
        other => panic!("{other}"),
    }
}

/// The rows of some batches, in their order.
fn read(batches: impl IntoIterator<Item = Result<RecordBatch>>) -> Vec<(i64, Row)> {
    let mut rows = Vec::new();
    for batch in batches {
        let batch = batch.unwrap();
        let ids = batch.column(0).as_primitive::<Int64Type>().clone();
        let cells = |i| batch.columns().iter().skip(1).map(move |array| cell(array, i)).collect();
        rows.extend((0..batch.num_rows()).map(|i| (ids.value(i), cells(i))));
    }
    rows
}

fn part(value: &Value) -> KeyPart {
    match value {
        Value::Int(value) => (*value).into(),
        Value::Bytes(bytes) => KeyPart::Bytes(bytes.clone()),
        other => panic!("{other:?}"),
    }
}

fn scalar(value: &Value) -> Scalar {
    match value {
        Value::Int(value) => (*value).into(),
        Value::Bytes(bytes) => Scalar::Bytes(bytes.as_slice().into()),
        other => panic!("{other:?}"),
    }
}

/// A table as it should be.
struct History {
    of: String,
    columns: Vec<Column>,
    model: Rows,
    random: Random,
    /// What was asked of indexes.
    asked: usize,
    narrowed: usize,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let columns = columns(&mut random);
        Self { of: format!("history {seed}"), columns, model: Rows::new(), random, asked: 0, narrowed: 0 }
    }

    /// What a row has in the columns of an index.
    fn values(&self, names: &[String], id: i64, row: &Row) -> Row {
        let value = |name: &String| match self.columns.iter().position(|column| column.name == *name) {
            Some(at) => row[at].clone(),
            None => Value::Int(id),
        };
        names.iter().map(value).collect()
    }

    /// The keys of an index, in order.
    fn entries(&self, rows: &Rows, names: &[String]) -> Vec<(Row, i64)> {
        let mut entries: Vec<(Row, i64)> = rows.iter().map(|(&id, row)| (self.values(names, id, row), id)).collect();
        entries.sort();
        entries
    }

    fn is_unique(&self, rows: &Rows, names: &[String]) -> bool {
        let mut seen = HashSet::new();
        let entries = self.entries(rows, names);
        entries.into_iter().all(|(key, _)| key.contains(&Value::Null) || seen.insert(key))
    }

    fn some_rows(&mut self) -> Rows {
        let most = pick(&mut self.random, &[1, 8, 60, 400]);
        let keys = pick(&mut self.random, &[20, 200, 5_000]);
        let len = 1 + self.random.below(most);
        (0..len)
            .map(|_| {
                let id = i64::try_from(self.random.below(keys)).unwrap();
                (id, row(&mut self.random, &self.columns))
            })
            .collect()
    }

    /// One change, which unique indexes may refuse.
    fn step(&mut self, table: &Table) {
        let mut after = self.model.clone();
        let done = match self.random.below(12) {
            0..=4 => {
                let new = self.some_rows();
                after.extend(new.clone());
                table.upsert(&batch_of(&self.columns, &new))
            }
            5 => {
                let mut new = self.some_rows();
                new.retain(|id, _| !self.model.contains_key(id));
                after.extend(new.clone());
                if new.is_empty() {
                    return;
                }
                table.insert(&batch_of(&self.columns, &new))
            }
            6 => {
                let mut new = self.some_rows();
                new.retain(|id, _| !self.model.contains_key(id));
                after.extend(new.clone());
                if new.is_empty() {
                    return;
                }
                table.import([Ok(batch_of(&self.columns, &new))])
            }
            7 | 8 => {
                let gone: Vec<i64> = self.some_rows().into_keys().collect();
                gone.iter().for_each(|id| drop(after.remove(id)));
                table.delete(&keys(gone))
            }
            9 => {
                let (new, gone) = (self.some_rows(), self.random.key());
                let mut change = table.begin();
                after.remove(&gone);
                after.extend(new.clone());
                change.delete(&keys([gone])).unwrap();
                change.upsert(&batch_of(&self.columns, &new)).unwrap();
                change.commit()
            }
            10 => return table.merge().unwrap(),
            _ => return table.vacuum().unwrap(),
        };
        let unique = |index: &plinth_rowstore::TableIndex| !index.unique || self.is_unique(&after, &index.columns);
        let allowed = table.snapshot().indexes().iter().all(unique);
        match done {
            Ok(_) => {
                assert!(allowed, "{}", self.of);
                self.model = after;
            }
            Err(TableError::NotUnique { .. }) => assert!(!allowed, "{}", self.of),
            Err(other) => panic!("{}: {other}", self.of),
        }
    }

    /// Creates an index of any columns, or takes one away.
    fn change_index(&mut self, table: &Table) {
        let there = table.snapshot().indexes();
        if there.len() > 3 || (!there.is_empty() && self.random.below(3) == 0) {
            return table.drop_index(&pick(&mut self.random, &there).name).unwrap();
        }
        let able = self.columns.iter().filter(|column| column.kind != Kind::Float).map(|column| column.name.clone());
        let mut able: Vec<String> = able.chain(["id".to_owned()]).collect();
        let len = (1 + index(&mut self.random, 3)).min(able.len());
        let names: Vec<String> = (0..len).map(|_| able.swap_remove(index(&mut self.random, able.len()))).collect();
        let (name, unique) = (format!("i{}", self.random.below(1_000_000)), self.random.below(4) == 0);
        let columns: Vec<&str> = names.iter().map(String::as_str).collect();
        match table.create_index(&name, &columns, unique) {
            Ok(()) => assert!(!unique || self.is_unique(&self.model, &names), "{} {names:?}", self.of),
            Err(TableError::NotUnique { .. }) => assert!(unique && !self.is_unique(&self.model, &names), "{}", self.of),
            Err(other) => panic!("{}: {names:?}: {other}", self.of),
        }
    }

    /// Each way to rows finds what the model has.
    fn check(&mut self, snapshot: &Snapshot) {
        let scanned: Rows = read(snapshot.scan().unwrap()).into_iter().collect();
        assert!(scanned == self.model, "{}: a scan", self.of);
        for index in snapshot.indexes() {
            let entries = self.entries(&self.model, &index.columns);
            for _ in 0..3 {
                self.find(snapshot, &index.name, &index.columns, &entries);
                self.filter(snapshot, &index.columns, &entries);
            }
        }
    }

    /// The first values of a row's key, or of none that is there; no nulls.
    fn some_key(&mut self, names: &[String], entries: &[(Row, i64)]) -> Row {
        let mut key: Row = match entries.len() {
            0 => Vec::new(),
            len => entries[index(&mut self.random, len)].0.clone(),
        };
        if key.is_empty() || self.random.below(5) == 0 {
            let row = row(&mut self.random, &self.columns);
            let id = self.random.key();
            key = self.values(names, id, &row);
        }
        key.truncate(1 + index(&mut self.random, names.len()));
        key.into_iter().take_while(|value| *value != Value::Null).collect()
    }

    fn find(&mut self, snapshot: &Snapshot, name: &str, names: &[String], entries: &[(Row, i64)]) {
        let (low, high) = (self.some_key(names, entries), self.some_key(names, entries));
        let of = format!("{}: {name} {names:?}", self.of);
        if !low.is_empty() {
            let found = read([snapshot.find(name, low.iter().map(part).collect::<Vec<_>>())]);
            let mut found: Vec<i64> = found.into_iter().map(|row| row.0).collect();
            found.sort_unstable();
            let mut wanted: Vec<i64> = entries.iter().filter(|e| e.0.starts_with(&low)).map(|e| e.1).collect();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{of}: {low:?}");
            self.asked += 1;
        }
        let bound = |key: &Row, kind| match kind {
            _ if key.is_empty() => Bound::Unbounded,
            0 => Bound::Included(Key(key.iter().map(part).collect())),
            1 => Bound::Excluded(Key(key.iter().map(part).collect())),
            _ => Bound::Unbounded,
        };
        let bounds = (bound(&low, self.random.below(3)), bound(&high, self.random.below(3)));
        let within = |key: &Row| {
            let lower = match bounds.0 {
                Bound::Included(_) => *key >= low,
                Bound::Excluded(_) => *key > low && !key.starts_with(&low),
                Bound::Unbounded => true,
            };
            let upper = match bounds.1 {
                Bound::Included(_) => *key <= high || key.starts_with(&high),
                Bound::Excluded(_) => *key < high,
                Bound::Unbounded => true,
            };
            lower && upper && key[0] != Value::Null
        };
        let found = read([snapshot.find_range(name, (bounds.0.as_ref(), bounds.1.as_ref()))]);
        let found: Vec<(Row, i64)> = found.iter().map(|(id, row)| (self.values(names, *id, row), *id)).collect();
        assert!(found.is_sorted_by_key(|entry| &entry.0), "{of}: {bounds:?}");
        let found: BTreeMap<i64, Row> = found.into_iter().map(|(key, id)| (id, key)).collect();
        let wanted: BTreeMap<i64, Row> =
            entries.iter().filter(|e| within(&e.0)).map(|(key, id)| (*id, key.clone())).collect();
        assert!(found == wanted, "{of}: {bounds:?}: {} rows, not {}", found.len(), wanted.len());
        self.asked += 1;
    }

    /// What predicates leave of files, by the rows that an index knows, and of rows in memory.
    fn filter(&mut self, snapshot: &Snapshot, names: &[String], entries: &[(Row, i64)]) {
        let key = self.some_key(names, entries);
        let (mut predicates, mut tests): (Vec<Expr>, Vec<(usize, u64, Row)>) = (Vec::new(), Vec::new());
        for (at, value) in key.iter().enumerate() {
            let last = at + 1 == key.len();
            let how = if last { self.random.below(4) } else { 3 };
            let other = entries.get(index(&mut self.random, entries.len().max(1))).map(|e| e.0[at].clone());
            let other = other.filter(|value| *value != Value::Null).unwrap_or_else(|| value.clone());
            let column = || col(&names[at]);
            predicates.push(match how {
                0 => column().gt(scalar(value)),
                1 => Expr::And(vec![column().lt_eq(scalar(value)), column().gt_eq(scalar(&other))]),
                2 => column().is_in([scalar(value), scalar(&other)]),
                _ => column().eq(scalar(value)),
            });
            tests.push((at, how, vec![value.clone(), other]));
        }
        let passes = |key: &Row| {
            tests.iter().all(|(at, how, of)| {
                let value = &key[*at];
                *value != Value::Null
                    && match how {
                        0 => *value > of[0],
                        1 => *value <= of[0] && *value >= of[1],
                        2 => of.contains(value),
                        _ => *value == of[0],
                    }
            })
        };
        let mut found: Vec<i64> = Vec::new();
        for segment in snapshot.segments() {
            let mut scan = segment.file.scan().select(["id"]);
            let narrowed = segment.narrow(&predicates).unwrap();
            self.narrowed += usize::from(narrowed.is_some());
            if let Some(only) = narrowed.map(|narrowed| narrowed.rows).or(segment.kept.clone()) {
                scan = scan.only_rows(only);
            }
            for predicate in &predicates {
                scan = scan.filter(predicate.clone());
            }
            for batch in scan.batches().unwrap() {
                found.extend_from_slice(batch.unwrap().column(0).as_primitive::<Int64Type>().values());
            }
        }
        for (id, row) in read(snapshot.memory().unwrap().into_iter().map(Ok)) {
            if passes(&self.values(names, id, &row)) {
                found.push(id);
            }
        }
        found.sort_unstable();
        let mut wanted: Vec<i64> = entries.iter().filter(|e| passes(&e.0)).map(|e| e.1).collect();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{}: {predicates:?}", self.of);
        self.asked += 1;
    }

    /// From an empty table to one that is verified: how often indexes were asked, and narrowed what was scanned.
    fn run(mut self, seed: u64) -> (usize, usize) {
        let options = || TableOptions {
            filter_bytes: if seed.is_multiple_of(3) { 0 } else { small().filter_bytes },
            index_bytes: if seed.is_multiple_of(4) { 64 << 10 } else { small().index_bytes },
            ..small()
        };
        let (_, storage) = disk(seed);
        let mut table = Table::create_in(&storage, &fields(&self.columns), &["id"], options()).unwrap();
        for _ in 0..25 {
            self.step(&table);
            if self.random.below(3) == 0 {
                self.change_index(&table);
            }
            if self.random.below(3) == 0 {
                self.check(&table.snapshot());
            }
            if self.random.below(12) == 0 {
                if self.random.below(2) == 0 {
                    table.close().unwrap()
                } else {
                    std::mem::forget(table)
                }
                table = Table::open_in(&storage, options()).unwrap();
                self.check(&table.snapshot());
            }
        }
        table.merge().unwrap();
        self.check(&table.snapshot());
        drop(table);
        let problems = Table::verify_in(&storage, &options()).unwrap().problems;
        assert!(problems.is_empty(), "{}: {problems:?}", self.of);
        (self.asked, self.narrowed)
    }
}

#[test]
fn every_way_to_rows_finds_what_a_scan_does() {
    let histories = trials("PLINTH_HISTORIES", 60);
    let run = |first: u64| {
        let done = (first..histories).step_by(2).map(|seed| History::new(seed).run(seed));
        done.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    };
    let (asked, narrowed) = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        let (mine, other) = (run(0), other.join().unwrap());
        (mine.0 + other.0, mine.1 + other.1)
    });
    println!("{histories} histories: indexes were asked {asked} times, {narrowed} scans were narrowed");
    assert!(asked > 1_000 && narrowed > 100, "{asked} {narrowed}");
}
