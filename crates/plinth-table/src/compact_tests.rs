use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};

use super::*;
use crate::Appender;

fn writer() -> WriterOptions {
    WriterOptions { threads: 1, ..WriterOptions::default() }
}

fn everything() -> CompactOptions {
    CompactOptions { writer: writer(), ..CompactOptions::default() }
}

fn append_batch(folder: &Path, batch: &RecordBatch) {
    let mut appender = Appender::create(folder, &batch.schema(), writer()).unwrap();
    appender.write(batch).unwrap();
    appender.finish().unwrap();
}

fn append(folder: &Path, values: &[i64]) {
    let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
    append_batch(folder, &RecordBatch::try_from_iter([("n", column)]).unwrap());
}

fn read_all(folder: &Path) -> Vec<i64> {
    let table = TableFolder::new(folder).open(None).unwrap();
    let batches = table.files().iter().flat_map(|file| file.file.scan().select(["n"]).batches().unwrap());
    batches.flat_map(|batch| batch.unwrap().column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        names.filter(|name| ![".plinth-lock", ".plinth-compacting"].contains(&name.as_str())).collect();
    names.sort();
    names
}

fn compact_all(folder: &Path) -> Result<CompactSummary> {
    compact(folder, &everything(), &mut |_| {})
}

#[test]
fn small_files_become_one_with_the_columns_of_all() {
    let dir = tempfile::tempdir().unwrap();
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    append_batch(dir.path(), &RecordBatch::try_from_iter([("n", narrow)]).unwrap());
    append(dir.path(), &[1 << 40]);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    append_batch(dir.path(), &RecordBatch::try_from_iter([("t", text)]).unwrap());
    let before = TableFolder::new(dir.path()).open(None).unwrap();
    let mut last = CompactProgress { bytes: 0, total_bytes: 0, rows: 0 };
    let summary = compact(dir.path(), &everything(), &mut |now| {
        assert!(now.bytes >= last.bytes && now.rows >= last.rows);
        last = now;
    })
    .unwrap();
    assert_eq!((summary.files_before, summary.files_after, summary.rows), (3, 1, 4));
    assert_eq!((last.bytes, last.rows), (summary.bytes_before, 4));
    assert_eq!(names(dir.path()), ["000001-000003.plinth"]);
    let after = TableFolder::new(dir.path()).open(None).unwrap();
    assert_eq!(after.schema().fields(), before.schema().fields());
    assert_eq!(summary.bytes_after, after.byte_len());
    let batch = after.files()[0].file.scan().batches().unwrap().next().unwrap().unwrap();
    let n: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(1 << 40), None]));
    assert_eq!(batch.column(0), &n);
    assert_eq!(batch.column(1).null_count(), 3);
    // Those that have the old files open still read them.
    let old: usize = before
        .files()
        .iter()
        .map(|f| f.file.scan().batches().unwrap().map(|b| b.unwrap().num_rows()).sum::<usize>())
        .sum();
    assert_eq!(old, 4);
    // Nothing is left to do, and nothing is done.
    assert_eq!(
        compact_all(dir.path()).unwrap(),
        CompactSummary { files_before: 1, files_after: 1, ..CompactSummary::default() }
    );
    append_batch(dir.path(), &batch);
    assert_eq!(names(dir.path()), ["000001-000003.plinth", "000004.plinth"]);
    compact_all(dir.path()).unwrap();
    assert_eq!(names(dir.path()), ["000001-000004.plinth"]);
}

#[test]
fn a_column_that_is_indexed_in_one_file_is_so_in_the_file_of_all() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), &[7, 8, 7]);
    let columns = [("n", vec![8_i64, 9, 7]), ("m", vec![1, 2, 3])];
    let columns = columns.map(|(name, values)| (name, Arc::new(Int64Array::from(values)) as ArrayRef));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let options = WriterOptions { index: vec!["n".to_owned()], ..writer() };
    let mut appender = Appender::create(dir.path(), &batch.schema(), options).unwrap();
    appender.write(&batch).unwrap();
    appender.finish().unwrap();
    append(dir.path(), &[7]);
    compact_all(dir.path()).unwrap();
    let table = TableFolder::new(dir.path()).open(None).unwrap();
    let [only] = table.files() else { panic!("{} files", table.files().len()) };
    let column = |name: &str| only.file.column(name).unwrap();
    assert_eq!(column("n").index().unwrap().map(|index| index.rows), Some(7));
    assert!(column("m").index().unwrap().is_none());
    let asked = column("n").dictionary().unwrap().access(plinth_format::Access::Postings).equals(7_i64).unwrap();
    assert_eq!(asked.rows().unwrap().into_vec().unwrap(), [0, 2, 5, 6]);
}

#[test]
fn runs_are_neighbours_that_fit() {
    let choose = |sizes: &[u64], target_bytes, all| {
        let sizes: Vec<_> = sizes.iter().map(|&size| (size > 0).then_some(size)).collect();
        choose(&sizes, &CompactOptions { target_bytes, all, writer: writer(), ..CompactOptions::default() })
    };
    assert_eq!(choose(&[1, 1, 1], 100, false), vec![0..3]);
    assert_eq!(choose(&[1, 60, 1, 1, 50, 1], 100, false), vec![2..4]);
    assert_eq!(choose(&[40, 40, 40, 40, 40], 100, false), vec![0..2, 2..4]);
    assert_eq!(choose(&[1, 60, 1, 1, 50, 1], 100, true), vec![0..6]);
    // A name that a journal can't hold.
    assert_eq!(choose(&[1, 1, 0, 1, 1], 100, true), vec![0..2, 3..5]);
    assert!(choose(&[], 100, false).is_empty() && choose(&[1], 100, true).is_empty());
    assert!(choose(&[1, 1], 0, false).is_empty());
}

#[test]
fn a_second_compaction_at_once_and_an_empty_folder_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    assert!(compact_all(dir.path()).unwrap_err().to_string().contains("no file in this folder"));
    append(dir.path(), &[1]);
    append(dir.path(), &[2]);
    let mut tried = false;
    let mut step = |step: &'static str| {
        // The steps that follow hold the other lock, which this one would wait for.
        if step != "wrote the new file" {
            return Ok(());
        }
        tried = true;
        let error = compact_all(dir.path()).unwrap_err().to_string();
        assert!(error.contains("is being compacted already"), "{error}");
        Ok(())
    };
    compact_in_steps(dir.path(), &everything(), &mut |_| {}, &mut step).unwrap();
    assert!(tried);
    assert_eq!(read_all(dir.path()), [1, 2]);
}

#[test]
fn what_was_changed_meanwhile_is_not_replaced() {
    type Change = fn(&Path);
    let changes: [(Change, &str, &[i64]); 4] = [
        (|dir| std::fs::remove_file(dir.join("000001.plinth")).unwrap(), "was removed", &[2, 3]),
        (|dir| std::fs::remove_file(dir.join("000002.plinth")).unwrap(), "was removed", &[1, 3]),
        (
            |dir| assert!(std::fs::copy(dir.join("000003.plinth"), dir.join("000001-x.plinth")).is_ok()),
            "in between",
            &[1, 3, 2, 3],
        ),
        // The rows fit the files before, but not what the files become.
        (
            |dir| {
                let half: ArrayRef = Arc::new(arrow_array::Float64Array::from(vec![0.5]));
                append_batch(dir, &RecordBatch::try_from_iter([("m", half)]).unwrap());
            },
            "\"m\" is Int64 in the compacted file",
            &[1, 2, 3],
        ),
    ];
    for (change, expected, rows) in changes {
        let dir = tempfile::tempdir().unwrap();
        for n in [1, 2, 3] {
            let n_column: ArrayRef = Arc::new(Int64Array::from(vec![n]));
            let m: ArrayRef = if n == 1 {
                Arc::new(Int32Array::from(vec![1]))
            } else {
                Arc::new(arrow_array::UInt32Array::from(vec![1]))
            };
            append_batch(dir.path(), &RecordBatch::try_from_iter([("n", n_column), ("m", m)]).unwrap());
        }
        let mut step = |step: &'static str| {
            if step == "wrote the new file" {
                change(dir.path());
            }
            Ok(())
        };
        let error = compact_in_steps(dir.path(), &everything(), &mut |_| {}, &mut step).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(names(dir.path()).iter().all(|name| name.ends_with(".plinth")), "{:?}", names(dir.path()));
        if !error.contains("\"m\"") {
            assert_eq!(read_all(dir.path()), rows);
        }
    }
}

/// A folder of files with the rows 0 to 9, and those rows.
fn ten_rows() -> (tempfile::TempDir, Vec<i64>) {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), &[0, 1, 2]);
    append(dir.path(), &[3]);
    append(dir.path(), &[4, 5, 6, 7, 8, 9]);
    (dir, (0..10).collect())
}

/// Runs [`child`] on a folder, in a process of its own.
fn spawn(folder: &Path, stop: Option<usize>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "compact::tests::child", "--ignored"]).env("PLINTH_TEST_FOLDER", folder);
    command.env("PLINTH_TEST_STOP", stop.map_or_else(String::new, |stop| stop.to_string()));
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
}

/// Compacts and dies after a given number of steps, as if power had failed: nothing is dropped, nothing is cleaned up.
#[test]
#[ignore = "the part of other tests that dies"]
fn child() {
    let Some(folder) = std::env::var_os("PLINTH_TEST_FOLDER").map(PathBuf::from) else { return };
    let stop: Option<usize> = std::env::var("PLINTH_TEST_STOP").unwrap().parse().ok();
    let mut steps = 0;
    let mut step = |_: &'static str| {
        steps += 1;
        if Some(steps) == stop { std::process::abort() } else { Ok(()) }
    };
    compact_in_steps(&folder, &everything(), &mut |_| {}, &mut step).unwrap();
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for name in std::fs::read_dir(from).unwrap().map(|e| e.unwrap().file_name()) {
        std::fs::copy(from.join(&name), to.path().join(&name)).unwrap();
    }
    to
}

#[test]
fn after_a_crash_at_any_step_each_row_is_there_once() {
    let mut crashes = 0;
    for stop in 1.. {
        let (dir, mut rows) = ten_rows();
        if spawn(dir.path(), Some(stop)).wait().unwrap().success() {
            break;
        }
        crashes += 1;
        assert_eq!(read_all(dir.path()), rows, "a reader after a crash at step {stop}");
        let other = copy(dir.path());

        append(dir.path(), &[10]);
        rows.push(10);
        assert_eq!(read_all(dir.path()), rows, "the next writer after a crash at step {stop}");
        assert!(names(dir.path()).iter().all(|name| name.ends_with(".plinth")), "{:?}", names(dir.path()));

        compact_all(other.path()).unwrap();
        assert_eq!(read_all(other.path()), rows[..10], "the next compaction after a crash at step {stop}");
        assert_eq!(names(other.path()), ["000001-000003.plinth"]);
    }
    // The new file (2), the journal, the replacement, three removals and their sync, the journal's end.
    assert_eq!(crashes, 9);
}

/// Finishing what another left can be interrupted, too.
#[test]
fn after_a_crash_while_a_crash_is_recovered_from_each_row_is_there_once() {
    let (dir, rows) = ten_rows();
    assert!(!spawn(dir.path(), Some(4)).wait().unwrap().success());
    assert_eq!(names(dir.path()).len(), 5, "three files, what replaced them, and the journal");
    let mut stop = 1;
    while !spawn(dir.path(), Some(stop)).wait().unwrap().success() {
        assert_eq!(read_all(dir.path()), rows);
        stop += 1;
    }
    assert!(stop > 4, "{stop}");
    assert_eq!(names(dir.path()), ["000001-000003.plinth"]);
}

#[test]
fn killed_at_any_time_it_leaves_each_row_once() {
    for delay in 0..12 {
        let (dir, rows) = ten_rows();
        let mut child = spawn(dir.path(), None);
        std::thread::sleep(std::time::Duration::from_millis(delay * 3));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(read_all(dir.path()), rows);
        compact_all(dir.path()).unwrap();
        assert_eq!(read_all(dir.path()), rows);
        assert_eq!(names(dir.path()), ["000001-000003.plinth"]);
    }
}

#[test]
fn rows_keep_their_order_while_others_append_and_read() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), &[]);
    let (writers, each) = (2i64, 30i64);
    let appending = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| {
            let mut replaced = 0;
            while appending.load(Ordering::Relaxed) {
                let summary = compact_all(dir.path()).unwrap();
                replaced += summary.files_before - summary.files_after;
            }
            replaced
        });
        let reading = scope.spawn(|| {
            let mut before: Vec<i64> = Vec::new();
            while appending.load(Ordering::Relaxed) {
                let now = read_all(dir.path());
                assert!(now.starts_with(&before), "{before:?} {now:?}");
                before = now;
            }
            before
        });
        let writing: Vec<_> = (0..writers)
            .map(|writer| {
                let dir = dir.path();
                scope.spawn(move || (0..each).for_each(|i| append(dir, &[writer * 1000 + i, -1])))
            })
            .collect();
        writing.into_iter().for_each(|writing| writing.join().unwrap());
        appending.store(false, Ordering::Relaxed);
        assert!(compacting.join().unwrap() > 0);
        let before = reading.join().unwrap();
        let rows = read_all(dir.path());
        assert!(rows.starts_with(&before));
        assert_eq!(rows.len(), usize::try_from(writers * each * 2).unwrap());
        for writer in 0..writers {
            let of_one: Vec<i64> = rows.iter().copied().filter(|n| n / 1000 == writer && *n >= 0).collect();
            assert_eq!(of_one, (0..each).map(|i| writer * 1000 + i).collect::<Vec<_>>());
        }
    });
}
