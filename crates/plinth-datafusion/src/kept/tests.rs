use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use plinth_format::{Writer, WriterOptions};

use super::*;

fn write(path: &Path, rows: i64) {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
    let options = WriterOptions { replace: true, ..WriterOptions::default() };
    let mut writer = Writer::create(path, &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_table_stays_open_until_its_files_change() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("1.plinth"), dir.path().join("2.plinth"));
    write(&one, 3);
    let (kept, options) = (KeptTables::default(), FileOptions::default());
    let file = || kept.open(Named::Files(vec![one.clone()]), &options).unwrap();
    let folder = || kept.open(Named::Folder(dir.path().to_path_buf()), &options).unwrap();
    let (first, all) = (file(), folder());
    assert!(Arc::ptr_eq(&first, &file()) && Arc::ptr_eq(&all, &folder()));
    write(&two, 4);
    assert!(Arc::ptr_eq(&first, &file()));
    let more = folder();
    assert_eq!((all.num_rows(), more.num_rows()), (3, 7));
    // What was open is not opened again.
    let opened = |table: &PlinthTable| table.files().next().map(|(_, file)| file.metadata_bytes_read());
    assert_eq!(opened(&all), opened(&more));
    write(&one, 5);
    assert_eq!((file().num_rows(), folder().num_rows()), (5, 9));
    std::fs::remove_file(&one).unwrap();
    assert!(kept.open(Named::Files(vec![one.clone()]), &options).unwrap_err().to_string().contains("1.plinth"));
    assert_eq!(folder().num_rows(), 4);
    // Those who were given a table have it still.
    assert_eq!(first.num_rows(), 3);
}

#[test]
fn few_tables_stay_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    write(&path, 3);
    let (kept, options) = (KeptTables::default(), FileOptions::default());
    let open = |times: usize| kept.open(Named::Files(vec![path.clone(); times]), &options).unwrap();
    for times in [1, 2, 3] {
        open(times);
    }
    assert_eq!(lock(&kept.0).len(), 3);
    open(FILES + 1);
    assert_eq!(lock(&kept.0).len(), 3);
    open(1);
    assert_eq!(lock(&kept.0).last().unwrap().0, Key::Files(vec![path.clone()]));
}
