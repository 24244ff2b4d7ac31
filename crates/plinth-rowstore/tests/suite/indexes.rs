//! Indexes: whatever happens to a table, they find what a look at all of its rows does.

use std::ops::Bound;

use super::model::step;
use super::*;
use arrow_array::StringViewArray;
use plinth_encoding::expr::{Expr, col};
use plinth_io::Source;
use plinth_rowstore::{KeyPart, Snapshot, TableError};

/// The indexes that these tests make: their columns, of the table's two that are no key.
pub(crate) const INDEXES: [(&str, &[&str]); 5] =
    [("by_n", &["n"]), ("by_t", &["t"]), ("by_n_t", &["n", "t"]), ("by_t_n", &["t", "n"]), ("by_t_id", &["t", "id"])];

type Row = (Option<i64>, String);

fn part(column: &str, id: i64, row: &Row) -> Option<KeyPart> {
    match column {
        "n" => row.0.map(KeyPart::from),
        "t" => Some(row.1.as_str().into()),
        _ => Some(id.into()),
    }
}

/// What a row has in the columns of an index: a null is behind all values.
type Values = Vec<(bool, Option<KeyPart>)>;

fn values(parts: impl IntoIterator<Item = Option<KeyPart>>) -> Values {
    parts.into_iter().map(|part| (part.is_none(), part)).collect()
}

/// The keys of an index, in order, and the rows they are of: those with a value in the first column.
fn entries(model: &Model, columns: &[&str]) -> Vec<(Values, i64)> {
    let key = |(&id, row): (&i64, &Row)| (values(columns.iter().map(|column| part(column, id, row))), id);
    let mut entries: Vec<(Values, i64)> = model.iter().map(key).filter(|(key, _)| !key[0].0).collect();
    entries.sort();
    entries
}

fn ids(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

fn sorted(mut ids: Vec<i64>) -> Vec<i64> {
    ids.sort_unstable();
    ids
}

/// The rows of one key are found in whatever order its columns are named, or are too many.
fn check_few(snapshot: &Snapshot, columns: &[&str], key: &Key, expected: &[(Values, i64)]) {
    if key.0.len() < columns.len() {
        return;
    }
    let array = |part: &KeyPart| match part {
        KeyPart::Int(value) => Arc::new(Int64Array::from(vec![i64::try_from(*value).unwrap()])) as ArrayRef,
        KeyPart::Bytes(bytes) => Arc::new(StringViewArray::from(vec![std::str::from_utf8(bytes).unwrap()])),
    };
    let fields = columns.iter().zip(&key.0).map(|(column, part)| (*column, array(part)));
    let given = RecordBatch::try_from_iter(fields.rev()).unwrap();
    let wanted = values(key.0.iter().cloned().map(Some));
    let wanted: Vec<i64> = expected.iter().filter(|(key, _)| *key == wanted).map(|(_, id)| *id).collect();
    // Deleted rows count among what is too much.
    if let Some(found) = snapshot.find_few(&given, 8).unwrap() {
        assert_eq!(sorted(ids(&found)), sorted(wanted), "{columns:?} {key:?}");
    }
    assert!(snapshot.find_few(&given, 0).unwrap().is_none_or(|found| found.num_rows() == 0));
}

/// Every index of a snapshot finds what the model has.
pub(crate) fn check(snapshot: &Snapshot, model: &Model, random: &mut Random) {
    for index in snapshot.indexes() {
        let columns: Vec<&str> = index.columns.iter().map(String::as_str).collect();
        let expected = entries(model, &columns);
        let all = snapshot.find_range(&index.name, ..).unwrap();
        assert_eq!(rows([Ok(all.clone())]).unwrap().len(), expected.len(), "{index:?}");
        // In the order of their keys, rows of the same key in any.
        let keys: Vec<&Values> = ids(&all).iter().map(|id| &expected.iter().find(|e| e.1 == *id).unwrap().0).collect();
        assert!(keys.is_sorted(), "{index:?}");
        for _ in 0..3 {
            let some = |random: &mut Random| match expected.len() as u64 {
                0 => Key(columns.iter().map(|c| part(c, 0, &(Some(1), "x".into())).unwrap()).collect()),
                len => {
                    let (_, id) = expected[usize::try_from(random.below(len)).unwrap()];
                    Key(columns.iter().map_while(|column| part(column, id, &model[&id])).collect())
                }
            };
            check_few(snapshot, &columns, &some(random), &expected);
            let (mut from, mut to) = (some(random), some(random));
            from.0.truncate(1 + usize::try_from(random.below(2)).unwrap());
            to.0.truncate(1 + usize::try_from(random.below(2)).unwrap());
            let (low, high) = (values(from.0.iter().cloned().map(Some)), values(to.0.iter().cloned().map(Some)));
            let begins = |key: &Values, with: &Values| key.starts_with(with);
            let found = snapshot.find(&index.name, from.clone()).unwrap();
            let wanted = expected.iter().filter(|e| begins(&e.0, &low)).map(|e| e.1).collect();
            assert_eq!(sorted(ids(&found)), sorted(wanted), "{index:?} {from:?}");
            let bounds = (
                [Bound::Included(&from), Bound::Excluded(&from), Bound::Unbounded]
                    [usize::try_from(random.below(3)).unwrap()],
                [Bound::Included(&to), Bound::Excluded(&to), Bound::Unbounded]
                    [usize::try_from(random.below(3)).unwrap()],
            );
            let within = |key: &Values| {
                let lower = match bounds.0 {
                    Bound::Included(_) => *key >= low,
                    Bound::Excluded(_) => *key > low && !begins(key, &low),
                    Bound::Unbounded => true,
                };
                lower
                    && match bounds.1 {
                        Bound::Included(_) => *key <= high || begins(key, &high),
                        Bound::Excluded(_) => *key < high,
                        Bound::Unbounded => true,
                    }
            };
            let found = snapshot.find_range(&index.name, bounds).unwrap();
            let wanted = expected.iter().filter(|e| within(&e.0)).map(|e| e.1).collect();
            assert_eq!(sorted(ids(&found)), sorted(wanted), "{index:?} {bounds:?}");
        }
    }
}

#[test]
fn indexes_find_what_a_look_at_all_rows_does() {
    for seed in 0..60 {
        let (_, storage) = disk(seed);
        let (mut random, mut model) = (Random(seed), Model::new());
        let mut table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
        let mut held = Vec::new();
        for _ in 0..50 {
            step(&table, &mut model, &mut random).unwrap();
            let (name, columns) = INDEXES[usize::try_from(random.below(5)).unwrap()];
            if random.below(4) == 0 {
                let there = table.snapshot().indexes().iter().any(|index| index.name == name);
                let done = if there { table.drop_index(name) } else { table.create_index(name, columns, false) };
                done.unwrap();
            }
            check(&table.snapshot(), &model, &mut random);
            if random.below(10) == 0 {
                held.push((table.snapshot(), model.clone()));
            }
            if random.below(15) == 0 {
                for (snapshot, then) in held.drain(..) {
                    check(&snapshot, &then, &mut random);
                }
                let before = table.snapshot().indexes();
                table.close().unwrap();
                table = Table::open_in(&storage, small()).unwrap();
                assert_eq!(table.snapshot().indexes(), before);
                check(&table.snapshot(), &model, &mut random);
            }
        }
        let found = Table::verify_in(&storage, &small()).unwrap();
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        drop(held);
        table.snapshot().indexes().iter().for_each(|index| table.drop_index(&index.name).unwrap());
        assert!(!storage.list().unwrap().iter().any(|name| name.starts_with("_index")));
    }
}

#[test]
fn a_unique_index_has_no_value_twice() {
    let mut refused = 0;
    for seed in 0..40 {
        let (_, storage) = disk(seed);
        let mut random = Random(seed);
        let mut model = Model::new();
        let mut table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
        table.create_index("one_n", &["n"], true).unwrap();
        for _ in 0..120 {
            let len = 1 + random.below(4);
            let new: Model = (0..len)
                .map(|_| {
                    let n = i64::try_from(random.below(40)).unwrap();
                    (random.key(), ((n > 0).then_some(n), String::new()))
                })
                .collect();
            let mut after = model.clone();
            let done = match random.below(6) {
                0 => {
                    after.extend(new.clone());
                    table.upsert(&batch(&new))
                }
                1 => {
                    new.keys().for_each(|id| drop(after.remove(id)));
                    table.delete(&keys(new.keys().copied()))
                }
                2 => {
                    let mut change = table.begin();
                    let gone = random.key();
                    after.remove(&gone);
                    after.extend(new.clone());
                    change.delete(&keys([gone])).unwrap();
                    change.upsert(&batch(&new)).unwrap();
                    change.commit()
                }
                3 => {
                    let new: Model = new.into_iter().filter(|(id, _)| !model.contains_key(id)).collect();
                    after.extend(new.clone());
                    if new.is_empty() { Ok(Default::default()) } else { table.import([Ok(batch(&new))]) }
                }
                4 => table.merge().map(|()| Default::default()),
                _ => {
                    table.close().unwrap();
                    table = Table::open_in(&storage, small()).unwrap();
                    Ok(Default::default())
                }
            };
            let taken = entries(&after, &["n"]);
            let unique = taken.windows(2).all(|pair| pair[0].0 != pair[1].0);
            match done {
                Ok(_) => {
                    assert!(unique);
                    model = after;
                }
                Err(TableError::NotUnique { index, .. }) => {
                    assert!(!unique && index == "one_n");
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
            assert_eq!(scan(&table).unwrap(), model);
            check(&table.snapshot(), &model, &mut random);
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn what_an_index_can_not_be() {
    let (_, storage) = disk(1);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    let rows: Model = (0..40).map(|id| (id, (Some(id / 2), format!("{id}")))).collect();
    table.import([Ok(batch(&rows))]).unwrap();
    table.insert(&one(100, 3)).unwrap();
    let message = |error: TableError| error.to_string();
    let twice = message(table.create_index("one_n", &["n"], true).unwrap_err());
    assert_eq!(twice, "a row with \"n\" = 0 is there already, and the index \"one_n\" is unique");
    assert!(table.snapshot().indexes().is_empty());
    assert!(!storage.list().unwrap().iter().any(|name| name.starts_with("_index")));
    table.create_index("by_t", &["t"], true).unwrap();
    let again = message(table.create_index("by_t", &["n"], false).unwrap_err());
    assert_eq!(again, "there is an index \"by_t\" already");
    assert!(message(table.create_index("x", &["nothing"], false).unwrap_err()).contains("nothing"));
    assert!(message(table.create_index("x", &[], false).unwrap_err()).contains("at least one column"));
    assert_eq!(message(table.drop_index("x").unwrap_err()), "the table has no index \"x\"");
    assert_eq!(message(table.snapshot().find("x", 1).unwrap_err()), "the table has no index \"x\"");
    assert!(table.snapshot().find("by_t", 1).is_err());
    let long = batch([(&200, &(None, "x".repeat(20_000)))]);
    let long = message(table.insert(&long).unwrap_err());
    assert_eq!(long, "index \"by_t\": a key of 20000 bytes cannot be indexed: the longest has 16384");
    table.insert(&one(101, 3)).unwrap();
    assert_eq!(scan(&table).unwrap().len(), 42);
}

/// What an index says can pass is all that does.
#[test]
fn few_rows_are_told_without_a_scan() {
    let (_, storage) = disk(1);
    let options = TableOptions { cache_bytes: 64 << 20, writer: WriterOptions::default(), ..small() };
    let table = Table::create_in(&storage, &schema(), &["id"], options).unwrap();
    let model: Model =
        (0..50_000).map(|id| (id, ((id % 7 > 0).then_some(id % 5_000), format!("t{}", id % 9_000)))).collect();
    table.import([Ok(batch(&model))]).unwrap();
    table.create_index("by_n_t", &["n", "t"], false).unwrap();
    table.create_index("by_t", &["t"], false).unwrap();
    table.delete(&keys((0..50_000).step_by(3))).unwrap();
    let segments = table.snapshot().segments();
    let [segment] = segments.as_slice() else { panic!() };
    let passes = |f: &dyn Fn(i64, &Row) -> bool| -> Vec<usize> {
        let there = model.iter().filter(|(id, row)| *id % 3 > 0 && f(**id, row));
        there.map(|(id, _)| usize::try_from(*id).unwrap()).collect()
    };
    let narrowed = |predicates: &[Expr]| {
        let found = segment.narrow(predicates).unwrap();
        found.map(|found| (found.index, found.rows.set_indices().collect::<Vec<_>>()))
    };
    let of = |index: &str, rows: Vec<usize>| Some((index.to_owned(), rows));
    let n = |row: &Row| row.0.unwrap_or(-1);
    assert_eq!(narrowed(&[col("n").eq(17)]), of("by_n_t", passes(&|_, row| n(row) == 17)));
    assert_eq!(narrowed(&[col("n").eq(-17)]), of("by_n_t", vec![]));
    let both = [col("n").eq(17), col("t").eq("t17")];
    assert_eq!(narrowed(&both), of("by_n_t", passes(&|_, row| n(row) == 17 && row.1 == "t17")));
    let range = [Expr::And(vec![col("n").gt_eq(100), col("n").lt(103)])];
    assert_eq!(narrowed(&range), of("by_n_t", passes(&|_, row| (100..103).contains(&n(row)))));
    let range = [col("n").gt(4_997), col("id").gt(7)];
    assert_eq!(narrowed(&range), of("by_n_t", passes(&|_, row| n(row) > 4_997)));
    let mixed = [col("n").eq(20), col("t").gt_eq("t20"), col("t").lt_eq("t3")];
    assert_eq!(
        narrowed(&mixed),
        of("by_n_t", passes(&|_, row| n(row) == 20 && ("t20"..="t3").contains(&row.1.as_str())))
    );
    let list = [col("t").is_in(["t5", "t8999", "no", "t5"].map(Into::into))];
    assert_eq!(narrowed(&list), of("by_t", passes(&|_, row| row.1 == "t5" || row.1 == "t8999")));
    let either = [Expr::Or(vec![col("n").eq(3), col("n").is_in([4_i64.into()])])];
    assert_eq!(narrowed(&either), of("by_n_t", passes(&|_, row| n(row) == 3 || n(row) == 4)));
    // Beyond what the column can have.
    assert_eq!(narrowed(&[col("n").gt(plinth_encoding::expr::Scalar::Int(i128::MAX))]), of("by_n_t", vec![]));
    // A segment without a filter finds keys by a tree, too.
    let (_, storage) = disk(2);
    let keyed = Table::create_in(&storage, &schema(), &["id"], TableOptions { filter_bytes: 0, ..small() }).unwrap();
    keyed.import([Ok(batch(&model))]).unwrap();
    let by_key = keyed.snapshot().segments()[0].narrow(&[col("id").is_in([7_i64.into(), 70_000_i64.into()])]).unwrap();
    let by_key = by_key.map(|found| (found.index, found.rows.set_indices().collect()));
    assert_eq!(by_key, of("key", vec![7]));
    for none in [
        vec![col("n").gt_eq(0)],
        vec![col("id").eq(3)],
        vec![col("n").not_eq(3)],
        vec![Expr::Or(vec![col("n").eq(3), col("t").eq("t5")])],
        vec![Expr::Not(Box::new(col("n").eq(3)))],
        vec![],
    ] {
        assert_eq!(narrowed(&none), None, "{none:?}");
    }
}

/// Keys that are sorted in several lots, and pages that leave memory while a tree is built.
#[test]
fn an_index_is_built_within_little_memory() {
    let budget = plinth_io::MemoryBudget::new(12 << 20);
    let io = plinth_io::Io::new(&budget, plinth_io::IoOptions { arena_bytes: Some(2 << 20), ..Default::default() });
    let (_, storage) = disk(1);
    let writer = WriterOptions { threads: 1, row_group_rows: 4096, block_rows: 1024, ..WriterOptions::default() };
    let options = TableOptions { open: OpenOptions { io, ..OpenOptions::default() }, writer, ..small() };
    let table = Table::create_in(&storage, &schema(), &["id"], options).unwrap();
    let text = |id: i64| format!("{:05} {}", id * 7919 % 30_000, "x".repeat(150));
    for lot in 0..10_i64 {
        let rows: Model = (lot * 3000..(lot + 1) * 3000).map(|id| (id, (Some(id % 5), text(id)))).collect();
        table.insert(&batch(&rows)).unwrap();
        table.merge().unwrap();
    }
    table.vacuum().unwrap();
    table.create_index("by_t", &["t"], true).unwrap();
    table.create_index("by_n", &["n"], false).unwrap();
    let all = table.snapshot().find_range("by_t", ..).unwrap();
    assert!(all.num_rows() == 30_000 && all.column(2).as_string_view().iter().is_sorted());
    assert_eq!(table.snapshot().find("by_n", 3).unwrap().num_rows(), 6_000);
    let (a, c) = (Key::from(1), Key::from(3));
    assert_eq!(table.snapshot().find_range("by_n", &a..&c).unwrap().num_rows(), 12_000);
    assert!(Table::verify_in(&storage, &small()).unwrap().problems.is_empty());
}

#[test]
fn a_row_that_changes_often_is_found_among_what_it_was() {
    let (_, storage) = disk(1);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    table.create_index("one_n", &["n"], true).unwrap();
    for i in 0..5_000 {
        table.upsert(&batch([(&1, &(Some(7), format!("{i}")))])).unwrap();
    }
    assert!(matches!(table.insert(&one(2, 7)), Err(TableError::NotUnique { .. })));
    assert_eq!(table.snapshot().find("one_n", 7).unwrap().num_rows(), 1);
    table.delete(&keys([1])).unwrap();
    table.insert(&one(2, 7)).unwrap();
}

#[test]
fn a_tree_that_is_gone_or_damaged_is_built_again() {
    let (disk, storage) = disk(3);
    // The table has no room for a filter: its segment has a tree of the key, too.
    let small = || TableOptions { filter_bytes: 0, ..small() };
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    let model: Model = (0..3_000).map(|id| (id, (Some(id * 7 % 1000), format!("{id}")))).collect();
    table.import([Ok(batch(&model))]).unwrap();
    table.create_index("by_n", &["n"], false).unwrap();
    table.close().unwrap();
    let names: Vec<String> = storage.list().unwrap().into_iter().filter(|name| name.starts_with("_index")).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for name in &names {
        let len = usize::try_from(Storage::source(&disk, name).unwrap().byte_len()).unwrap();
        let harms: [&dyn Fn(&SimDisk); 4] = [
            &|disk| Storage::remove(disk, name).unwrap(),
            &|disk| disk.set_len(name, len / 2).unwrap(),
            &|disk| (0..2).for_each(|slot| disk.write(name, slot * 4096 + 9, &[0xff]).unwrap()),
            // All leaves.
            &|disk| (3..len / 4096).for_each(|page| disk.write(name, page * 4096 + 100, &[0xff; 50]).unwrap()),
        ];
        for (i, harm) in harms.iter().enumerate() {
            let damaged = disk.copy(i as u64);
            harm(&damaged);
            let storage: Arc<dyn Storage> = Arc::new(damaged);
            let problems = Table::verify_in(&storage, &small()).unwrap().problems;
            assert_eq!(problems.len(), 1, "{name} {i}: {problems:?}");
            assert!(problems[0].to_string().contains(name), "{i}: {problems:?}");
            let table = Table::open_in(&storage, small()).unwrap();
            // A leaf is looked at when it is needed: then the rows are looked at instead.
            check(&table.snapshot(), &model, &mut Random(1));
            assert_eq!(sorted(ids(&table.snapshot().find("by_n", 7).unwrap())), [1, 1001, 2001]);
            assert!(table.get(2_000).unwrap().is_some() && table.get(-1).unwrap().is_none());
            assert_eq!(table.multi_get(&keys(0..3_000)).unwrap().rows.num_rows(), 3_000);
            table.merge().unwrap();
            assert!(Table::verify_in(&storage, &small()).unwrap().problems.is_empty(), "{name} {i}");
            check(&table.snapshot(), &model, &mut Random(2));
        }
    }
}

/// A table whose indexes are asked for pages of all kinds: levels above the leaves, keys that are numbers and long texts.
fn indexed() -> (SimDisk, Model) {
    let (disk, storage) = disk(4);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    let text =
        |id: i64| format!("{:x}{}", id * 2_654_435_761 % 1_000_003, "long ".repeat(usize::try_from(id % 60).unwrap()));
    let model: Model = (0..500).map(|id| (id, ((id % 5 > 0).then_some(id * 7 % 300), text(id)))).collect();
    table.import([Ok(batch(&model))]).unwrap();
    for (name, columns) in INDEXES {
        table.create_index(name, columns, false).unwrap();
    }
    table.close().unwrap();
    (disk, model)
}

/// Reads by each index what some damage has left, before a merge builds it again and after.
fn reads_right(damaged: SimDisk, model: &Model, seed: u64, of: &str) {
    let storage: Arc<dyn Storage> = Arc::new(damaged);
    let table = Table::open_in(&storage, small()).unwrap_or_else(|e| panic!("{of}: {e}"));
    check(&table.snapshot(), model, &mut Random(seed));
    table.merge().unwrap();
    check(&table.snapshot(), model, &mut Random(seed + 1));
    drop(table);
    let problems = Table::verify_in(&storage, &small()).unwrap().problems;
    assert!(problems.is_empty(), "{of}: {problems:?}");
}

#[test]
fn a_harmed_tree_answers_right_and_is_built_again() {
    let (disk, model) = indexed();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let names: Vec<String> = storage.list().unwrap().into_iter().filter(|name| name.starts_with("_index")).collect();
    let bytes = |name: &str| {
        let source = disk.open(name).unwrap();
        source.read(std::slice::from_ref(&(0..source.byte_len()))).unwrap()[0].to_vec()
    };
    let mut random = Random(9);
    let mut harmed = 0;
    for (at, name) in names.iter().enumerate() {
        let whole = bytes(name);
        let pages = whole.len() / 4096;
        let mut harm = |what: &str, harm: &dyn Fn(&SimDisk)| {
            harmed += 1;
            let damaged = disk.copy(harmed);
            harm(&damaged);
            reads_right(damaged, &model, harmed, &format!("{name}: {what}"));
        };
        harm("gone", &|disk| Storage::remove(disk, name).unwrap());
        for len in [0, 1, 4096, 8192, whole.len() / 2, whole.len() - 1] {
            harm("cut short", &|disk| disk.set_len(name, len).unwrap());
        }
        for page in (0..pages).filter(|page| *page < 4 || page % 11 == 0 || page + 1 == pages) {
            harm("a zeroed page", &|disk| disk.write(name, page * 4096, &[0; 4096]).unwrap());
            let flip = page * 4096 + usize::try_from(random.below(4096)).unwrap();
            harm("a flipped bit", &|disk| disk.write(name, flip, &[whole[flip] ^ 1 << (flip % 8)]).unwrap());
            let other = usize::try_from(random.below(pages as u64)).unwrap() * 4096;
            harm("another page", &|disk| disk.write(name, page * 4096, &whole[other..other + 4096]).unwrap());
        }
        // The whole tree of another index: all its checksums are right.
        let other = bytes(&names[(at + 1) % names.len()]);
        harm("another index", &|disk| {
            disk.set_len(name, other.len()).unwrap();
            disk.write(name, 0, &other).unwrap();
        });
    }
    println!("{harmed} harmed trees");
    assert!(harmed > 100, "{harmed}");
}

#[test]
fn a_tree_of_other_rows_is_not_believed() {
    let (disk, storage) = disk(5);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    let mut model: Model = (0..500).map(|id| (id, (Some(id % 50), format!("{id}")))).collect();
    table.import([Ok(batch(&model))]).unwrap();
    table.create_index("by_n", &["n"], false).unwrap();
    table.create_index("by_n_t", &["n", "t"], false).unwrap();
    let named = |storage: &dyn Storage| -> Vec<String> {
        storage.list().unwrap().into_iter().filter(|name| name.starts_with("_index")).collect()
    };
    let before = disk.copy(1);
    for id in 0..40 {
        table.upsert(&one(id, 7)).unwrap();
        model.insert(id, (Some(7), format!("row {id} of 7")));
    }
    table.vacuum().unwrap();
    table.close().unwrap();
    // The trees that there were, in the places of those that are there.
    for (old, new) in named(&before).iter().zip(named(&disk)) {
        let source = before.open(old).unwrap();
        let len = source.byte_len();
        let bytes = source.read(std::slice::from_ref(&(0..len))).unwrap()[0].to_vec();
        let harmed = disk.copy(2);
        harmed.set_len(&new, bytes.len()).unwrap();
        harmed.write(&new, 0, &bytes).unwrap();
        let problems = Table::verify_in(&(Arc::new(harmed.clone()) as Arc<dyn Storage>), &small()).unwrap().problems;
        assert!(problems.len() == 1 && problems[0].to_string().contains(&new), "{problems:?}");
        reads_right(harmed, &model, 3, &new);
    }
}

#[test]
fn rows_with_nulls_behind_the_first_column_are_found_and_not_unique() {
    let (_, storage) = disk(6);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    table.create_index("one_t_n", &["t", "n"], true).unwrap();
    let of = |ids: std::ops::Range<i64>, n: fn(i64) -> Option<i64>| -> Model {
        ids.map(|id| (id, (n(id), format!("t{}", id % 5)))).collect()
    };
    let mut model = of(0..300, |id| (id % 2 == 0).then_some(id));
    for merged in [false, true] {
        if merged {
            table.vacuum().unwrap();
        } else {
            table.insert(&batch(&model)).unwrap();
        }
        check(&table.snapshot(), &model, &mut Random(1));
        let found = table.snapshot().find("one_t_n", "t3").unwrap();
        assert_eq!(found.num_rows(), 60);
        for segment in table.snapshot().segments() {
            let narrowed = segment.narrow(&[col("t").eq("t3")]).unwrap().unwrap();
            assert_eq!(narrowed.rows.count_set_bits(), 60, "of all rows, those with a null too");
            let above = segment.narrow(&[col("t").eq("t3"), col("n").gt(100)]).unwrap().unwrap();
            assert_eq!(above.rows.count_set_bits(), 20);
        }
    }
    // Nulls are no values that two rows could have.
    let more = of(1_000..1_020, |_| None);
    table.insert(&batch(&more)).unwrap();
    model.extend(more);
    table.import([Ok(batch(&of(2_000..2_020, |_| None)))]).unwrap();
    model.extend(of(2_000..2_020, |_| None));
    check(&table.snapshot(), &model, &mut Random(2));
    let taken = batch([(&5_000, &(Some(8), "t3".to_owned()))]);
    let error = table.insert(&taken).unwrap_err().to_string();
    assert_eq!(error, "a row with (\"t\", \"n\") = (\"t3\", 8) is there already, and the index \"one_t_n\" is unique");
    table.drop_index("one_t_n").unwrap();
    table.create_index("again", &["t", "n"], true).unwrap();
    check(&table.snapshot(), &model, &mut Random(3));
    table.vacuum().unwrap();
    assert!(Table::verify_in(&storage, &small()).unwrap().problems.is_empty());
    // A table that is to be scanned asks no index.
    table.close().unwrap();
    let open = OpenOptions { access: plinth_format::Access::Scan, ..OpenOptions::default() };
    let table = Table::open_in(&storage, TableOptions { open, ..small() }).unwrap();
    assert!(table.snapshot().segments()[0].narrow(&[col("t").eq("t3")]).unwrap().is_none());
}
