//! Files whose columns differ answer as one table in memory whose columns were widened by hand.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringViewArray, new_null_array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use plinth_datafusion::PlinthTable;

use crate::data::{Random, Twins, options, structure, write};

/// A column that differs from file to file: the types it has, and the one the table then has if a file has each.
struct Family {
    name: &'static str,
    types: &'static [DataType],
    united: DataType,
}

fn families() -> Vec<Family> {
    use DataType::{
        Decimal64, Decimal128, Decimal256, Float32, Float64, Int8, Int16, Int32, Int64, Null, UInt8, UInt16, UInt32,
    };
    let family = |name, types, united| Family { name, types, united };
    vec![
        family("i", &[Int8, Int16, Int32, Int64], Int64),
        family("u", &[UInt8, UInt16, UInt32], UInt32),
        family("m", &[Int8, UInt16, UInt32], Int64),
        family("f", &[Float32, Float64, Float32], Float64),
        family("x", &[Int32, Float32, UInt8], Float64),
        family("d", &[Decimal64(10, 2), Decimal128(12, 4), Decimal128(20, 2)], Decimal128(22, 4)),
        family("w", &[Decimal128(38, 0), Decimal256(50, 6)], Decimal256(50, 6)),
        family("n", &[Null, Int16], Int16),
        family("s", &[DataType::Utf8View, Null], DataType::Utf8View),
    ]
}

/// The same values in any type: whole numbers that a byte holds.
struct Values {
    numbers: Int64Array,
    words: StringViewArray,
    structs: NullBuffer,
    lengths: Vec<usize>,
}

impl Values {
    fn new(r: &mut Random, rows: usize) -> Self {
        let small = |r: &mut Random| i64::try_from(r.below(40)).unwrap();
        let number = |r: &mut Random| (r.below(6) != 0).then(|| small(r));
        let numbers: Vec<Option<i64>> = (0..rows).map(|_| number(r)).collect();
        let words = numbers.iter().map(|n| n.map(|n| format!("word {n}, and more of it")));
        Self {
            words: words.collect(),
            structs: NullBuffer::from_iter((0..rows).map(|_| r.below(7) != 0)),
            lengths: (0..rows).map(|_| usize::try_from(r.below(3)).unwrap()).collect(),
            numbers: Int64Array::from(numbers),
        }
    }

    fn column(&self, data_type: &DataType) -> ArrayRef {
        match data_type {
            DataType::Utf8View => Arc::new(self.words.clone()),
            DataType::Null => new_null_array(&DataType::Null, self.numbers.len()),
            other => cast(&self.numbers, other).unwrap(),
        }
    }

    fn structs(&self, fields: &Fields) -> ArrayRef {
        let columns = fields.iter().map(|field| self.column(field.data_type())).collect();
        structure(fields.clone(), columns, &self.structs)
    }

    fn lists(&self, item: &DataType) -> ArrayRef {
        let total: usize = self.lengths.iter().sum();
        let items = Int64Array::from_iter_values((0..).take(total).map(|i| i % 11));
        let offsets = OffsetBuffer::from_lengths(self.lengths.iter().copied());
        let field = Arc::new(Field::new("item", item.clone(), true));
        Arc::new(ListArray::new(field, offsets, cast(&items, item).unwrap(), None))
    }
}

/// The struct's fields in the whole table.
fn united_struct() -> Fields {
    Fields::from(vec![
        Field::new("p", DataType::Int64, true),
        Field::new("q", DataType::Utf8View, true),
        Field::new("r", DataType::Float64, true),
    ])
}

/// A table of random files, and its twin.
fn table(seed: u64) -> Twins {
    let r = &mut Random(seed);
    let dir = tempfile::tempdir().unwrap();
    let (mut files, mut memory) = (Vec::new(), Vec::new());
    let mut first = 0i64;
    let kinds = families();
    for file in 0..7usize {
        let rows = usize::try_from(r.below(900)).unwrap();
        let values = Values::new(r, rows);
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((first..).take(rows)));
        first += i64::try_from(rows).unwrap();
        let mut stored: Vec<(&str, ArrayRef)> = vec![("id", Arc::clone(&ids))];
        let mut wide: Vec<ArrayRef> = vec![ids];
        for family in &kinds {
            // Each type is in some file: the first files take one after the other.
            let here = family.types.get(file).cloned();
            let any = &family.types[usize::try_from(r.below(family.types.len() as u64)).unwrap()];
            let missing = here.is_none() && r.below(3) == 0;
            let data_type = here.unwrap_or_else(|| any.clone());
            if missing || data_type.is_null() {
                wide.push(new_null_array(&family.united, rows));
            } else {
                wide.push(values.column(&family.united));
            }
            if !missing {
                stored.push((family.name, values.column(&data_type)));
            }
        }
        // Fields come and go, and widen.
        let fields: Vec<Field> = match file {
            0 => vec![Field::new("p", DataType::Int16, true)],
            1 => united_struct().iter().map(|f| f.as_ref().clone()).collect(),
            2 => vec![Field::new("r", DataType::Float32, true), Field::new("q", DataType::Utf8View, true)],
            3 => vec![Field::new("q", DataType::Null, true), Field::new("p", DataType::Int64, true)],
            _ => vec![Field::new("p", DataType::UInt8, true)],
        };
        let fields = Fields::from(fields);
        stored.push(("st", values.structs(&fields)));
        let columns = united_struct()
            .iter()
            .map(|field| match fields.find(field.name()) {
                Some((_, here)) if !here.data_type().is_null() => values.column(field.data_type()),
                _ => new_null_array(field.data_type(), rows),
            })
            .collect();
        wide.push(structure(united_struct(), columns, &values.structs));
        if file != 4 {
            stored.push(("l", values.lists(if file % 2 == 0 { &DataType::Int8 } else { &DataType::Int32 })));
        }
        let list_type = DataType::List(Arc::new(Field::new("item", DataType::Int32, true)));
        wide.push(if file == 4 { new_null_array(&list_type, rows) } else { values.lists(&DataType::Int32) });

        // In another order in each but the first.
        if file > 0 {
            let at = usize::try_from(r.below(stored.len() as u64)).unwrap();
            stored.rotate_left(at);
        }
        let path = dir.path().join(format!("{file}.plinth"));
        let schema: Vec<Field> = stored.iter().map(|(n, c)| Field::new(*n, c.data_type().clone(), true)).collect();
        let columns = stored.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(schema)), columns).unwrap();
        write(&path, &[batch], options(256));
        files.push(path);
        memory.push(RecordBatch::try_new(united(), wide).unwrap());
    }
    Twins::of(dir, files, united(), vec![memory], 3)
}

fn united() -> SchemaRef {
    let mut fields = vec![Field::new("id", DataType::Int64, true)];
    fields.extend(families().into_iter().map(|family| Field::new(family.name, family.united, true)));
    fields.push(Field::new("st", DataType::Struct(united_struct()), true));
    fields.push(Field::new("l", DataType::List(Arc::new(Field::new("item", DataType::Int32, true))), true));
    Arc::new(Schema::new(fields))
}

const NUMBERS: [&str; 8] = ["i", "u", "m", "f", "x", "d", "w", "n"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_has_the_widest_types() {
    let t = table(1);
    assert!(PlinthTable::open(t.files.clone()).unwrap().num_rows() > 0);
    let found = t.plinth.table("t").await.unwrap().schema().as_arrow().clone();
    // The order is that of the first file, whose columns came in ours.
    assert_eq!(found.fields(), united().fields());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_keep_the_same_rows() {
    for seed in [1, 2, 3] {
        let t = table(seed);
        for c in NUMBERS {
            for filter in [
                "$ = 5",
                "$ <> 5",
                "$ < 7",
                "$ <= 7",
                "$ > 31",
                "$ >= 31",
                "7 > $",
                "$ IN (1, 2, 39, 1000)",
                "$ NOT IN (1, 2, 3)",
                "$ BETWEEN 3 AND 9",
                "$ IS NULL",
                "$ IS NOT NULL",
                "NOT ($ = 5 OR $ IS NULL)",
                "$ IS DISTINCT FROM 5",
                "$ IS NOT DISTINCT FROM NULL",
                "$ > 6.5 AND $ < 8.5",
                "$ = 6.5",
                "$ = 100000",
                "$ > -1",
                "$ + 1 = 6",
                "$ = i",
                "$ = 5 AND s LIKE 'word%'",
                "$ = 5 OR st['p'] = 7",
            ] {
                t.keep_the_same(&filter.replace('$', c)).await;
            }
        }
        for filter in [
            "s IS NULL",
            "s = 'word 7, and more of it'",
            "s LIKE 'word 1%'",
            "upper(s) LIKE 'WORD 2%'",
            "st['p'] = 5",
            "st['p'] IS NULL",
            "st['p'] > 30 AND st['q'] IS NOT NULL",
            "st['q'] IS NULL",
            "st['q'] = 'word 3, and more of it'",
            "st['q'] LIKE 'word 3%'",
            "st['r'] < 3.5",
            "st['r'] IS NULL",
            "st IS NULL",
            "st IS NOT NULL AND st['r'] IS NULL",
            "st['p'] + st['r'] > 20",
            "st['p'] = i",
            "l IS NULL",
            "array_length(l) = 2",
            "l[1] = 3",
            "coalesce(st['r'], st['p'], -1) > 20",
        ] {
            t.keep_the_same(filter).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_and_statistics_are_the_same() {
    for seed in [4, 5] {
        let t = table(seed);
        for c in NUMBERS {
            t.agree(&format!("SELECT id, {c} FROM t")).await;
            // Answered from statistics where they are exact.
            t.agree(&format!("SELECT min({c}), max({c}), count({c}), count(*) FROM t")).await;
            t.agree(&format!("SELECT {c}, count(*) FROM t GROUP BY {c}")).await;
            // A filter that tightens as the rows are found.
            t.agree_in_order(&format!("SELECT {c} FROM t ORDER BY {c} DESC NULLS LAST LIMIT 7")).await;
            t.agree_in_order(&format!("SELECT {c}, id FROM t WHERE {c} IS NOT NULL ORDER BY {c}, id LIMIT 9")).await;
            t.agree(&format!(
                "SELECT t.id FROM t JOIN (SELECT {c} AS k FROM t WHERE id = 11 OR id = 40) x ON t.{c} = x.k"
            ))
            .await;
        }
        t.agree("SELECT id, s, st, l FROM t").await;
        t.agree("SELECT id, st['p'], st['q'], st['r'], st FROM t WHERE id % 3 = 0").await;
        t.agree("SELECT st['q'], count(*) FROM t GROUP BY 1").await;
        t.agree("SELECT sum(i), sum(u), sum(m), sum(d), avg(x) FROM t WHERE st['p'] < 20").await;
        t.agree("SELECT count(*) FROM t").await;
    }
}
