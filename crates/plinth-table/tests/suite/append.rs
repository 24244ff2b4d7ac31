//! Rows added to a table.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringArray};
use arrow_schema::DataType;
use plinth_table::{Appender, TableFolder};

use crate::data::{append, batch, names, numbers, options, read, read_numbers};

#[test]
fn rows_come_in_the_order_they_were_committed_in() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("new/table");
    let start = |value| {
        let rows = numbers([value]);
        let mut appender = Appender::create(&folder, &rows.schema(), options()).unwrap();
        appender.write(&rows).unwrap();
        appender
    };
    let (one, two, dropped) = (start(1), start(2), start(3));
    assert!(TableFolder::new(&folder).open(None).unwrap().files().is_empty());
    assert_eq!(two.finish().unwrap().rows, 1);
    drop(dropped);
    one.finish().unwrap();
    assert_eq!(names(&folder), ["000001.plinth", "000002.plinth"]);
    assert_eq!(read_numbers(&folder), [2, 1]);
    // After files whose names others gave.
    std::fs::rename(folder.join("000002.plinth"), folder.join("june.plinth")).unwrap();
    append(&folder, &numbers([4])).unwrap();
    append(&folder, &numbers([5])).unwrap();
    assert_eq!(names(&folder), ["000001.plinth", "june-000001.plinth", "june-000002.plinth", "june.plinth"]);
    assert_eq!(read_numbers(&folder), [2, 1, 4, 5]);
}

#[test]
fn rows_that_are_not_published_leave_nothing_not_even_a_new_folder() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let start = || {
        let mut appender = Appender::create(&folder, &numbers([1]).schema(), options()).unwrap();
        appender.write(&numbers([1])).unwrap();
        appender
    };
    drop(start());
    assert!(!folder.exists());
    let complete = start().complete().unwrap();
    assert!(TableFolder::new(&folder).open(None).unwrap().files().is_empty(), "complete, but not published");
    drop(complete);
    assert!(!folder.exists());
    // A folder that is in use stays.
    let abandoned = start();
    std::fs::write(folder.join("notes"), b"mine").unwrap();
    drop(abandoned);
    assert_eq!(std::fs::read(folder.join("notes")).unwrap(), b"mine");
    // And one that was there before.
    std::fs::remove_file(folder.join("notes")).unwrap();
    drop(start());
    assert!(folder.is_dir());
    start().complete().unwrap().publish().unwrap();
    assert_eq!(read_numbers(&folder), [1]);
}

#[test]
fn no_rows_make_no_file_but_for_the_first_which_has_the_columns() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(append(dir.path(), &numbers([])).unwrap().rows, 0);
    assert_eq!(names(dir.path()), ["000001.plinth"]);
    append(dir.path(), &numbers([])).unwrap();
    assert_eq!(names(dir.path()), ["000001.plinth"]);
    assert_eq!(read(dir.path()).schema().field(0).data_type(), &DataType::Int64);
    append(dir.path(), &numbers([7])).unwrap();
    assert_eq!(read_numbers(dir.path()), [7]);
}

#[test]
fn what_does_not_fit_is_refused_at_the_start_or_at_the_commit() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), &numbers([1])).unwrap();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let text = batch(&[("n", text)]);
    let error = append(dir.path(), &text).unwrap_err().to_string();
    assert!(error.contains("000001.plinth") && error.contains("the rows to append"), "{error}");

    // Both fit when they start; the one that commits first wins.
    let column = |column: ArrayRef| batch(&[("x", column)]);
    let (ints, floats) = (column(Arc::new(Int64Array::from(vec![1]))), column(Arc::new(Float64Array::from(vec![0.5]))));
    let mut first = Appender::create(dir.path(), &ints.schema(), options()).unwrap();
    let mut second = Appender::create(dir.path(), &floats.schema(), options()).unwrap();
    first.write(&ints).unwrap();
    second.write(&floats).unwrap();
    first.finish().unwrap();
    let error = second.finish().unwrap_err().to_string();
    assert!(error.contains("\"x\" is Int64 in"), "{error}");
    assert_eq!(names(dir.path()), ["000001.plinth", "000002.plinth"]);
}

#[test]
fn a_table_takes_wider_and_other_columns() {
    let dir = tempfile::tempdir().unwrap();
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    append(dir.path(), &batch(&[("n", narrow)])).unwrap();
    let (wide, other): (ArrayRef, ArrayRef) =
        (Arc::new(Int64Array::from(vec![1 << 40])), Arc::new(StringArray::from(vec!["new"])));
    append(dir.path(), &batch(&[("m", other), ("n", wide)])).unwrap();
    let rows = read(dir.path());
    assert_eq!(rows.schema().field(0).name(), "n");
    let n: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(1 << 40)]));
    assert_eq!(rows.column(0), &n);
    assert_eq!(rows.column(1).null_count(), 2);
}

#[test]
fn many_append_at_once_and_readers_see_whole_prefixes() {
    let dir = tempfile::tempdir().unwrap();
    let (writers, each) = (3i64, 12i64);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let dir = dir.path();
            scope.spawn(move || {
                for i in 0..each {
                    append(dir, &numbers([writer * 1000 + i, -1])).unwrap();
                }
            });
        }
        let mut before: Vec<i64> = Vec::new();
        while before.len() < usize::try_from(writers * each * 2).unwrap() {
            if TableFolder::new(dir.path()).list().unwrap().is_empty() {
                continue;
            }
            let now = read_numbers(dir.path());
            assert!(now.starts_with(&before), "{before:?} {now:?}");
            before = now;
        }
        for writer in 0..writers {
            let of_one: Vec<i64> = before.iter().copied().filter(|n| n / 1000 == writer && *n >= 0).collect();
            assert_eq!(of_one, (0..each).map(|i| writer * 1000 + i).collect::<Vec<_>>());
        }
    });
    assert!(names(dir.path()).iter().all(|name| name.ends_with(".plinth")));
}

#[test]
fn a_file_that_is_open_is_not_opened_again_and_one_that_was_replaced_is() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), &numbers([1])).unwrap();
    append(dir.path(), &numbers([2])).unwrap();
    let folder = TableFolder::new(dir.path());
    let first = folder.open(None).unwrap();
    assert!(first.is_of(&folder.list().unwrap()));
    append(dir.path(), &numbers([3])).unwrap();
    std::fs::remove_file(dir.path().join("000002.plinth")).unwrap();
    std::fs::copy(dir.path().join("000003.plinth"), dir.path().join("000002.plinth")).unwrap();
    assert!(!first.is_of(&folder.list().unwrap()));
    let second = folder.open(Some(&first)).unwrap();
    assert_eq!(read_numbers(dir.path()), [1, 3, 3]);
    assert_eq!(second.num_rows(), 3);
    // Of the first file no metadata is read a second time.
    assert_eq!(second.files()[0].file.metadata_bytes_read(), first.files()[0].file.metadata_bytes_read());
    assert!(TableFolder::new(dir.path().join("none")).list().unwrap_err().to_string().contains("cannot list"));
    assert!(TableFolder::new(dir.path().join("none")).open(None).is_err());
}
