//! A row after the sample that does not fit the schema inferred from it.

use std::cell::RefCell;

use arrow_schema::{DataType, Field, Schema};
use plinth_ingest::{IngestError, Sample, SourceOptions, import};

use crate::{drain, write};

#[test]
fn a_surprise_begins_the_import_again_and_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = "7\n".repeat(1_000);
    let csv = write(folder.path(), "a.csv", format!("a\n{numbers}x\n"));
    let json = write(folder.path(), "a.json", format!("{}{{\"a\":\"x\"}}\n", "{\"a\":7}\n".repeat(1_000)));
    for path in [csv, json] {
        for sample in [Sample::Rows(64), Sample::Everything] {
            let options = SourceOptions { sample, ..SourceOptions::default() };
            let (log, mut restarts) = (RefCell::new(Vec::new()), 0);
            let restarting = |record: &plinth_ingest::BadRecord| {
                assert_eq!((record.column.as_deref(), log.borrow().len()), (Some("a"), 1));
                restarts += 1;
            };
            let rows = import(&[&path], &options, restarting, |attempt| {
                let source = attempt.open().map_err(|e| e.to_string())?;
                log.borrow_mut().push(source.schema().field(0).data_type().clone());
                drain(source)
            });
            assert_eq!(rows.unwrap().num_rows(), 1_001);
            let types = log.into_inner();
            assert_eq!(types.last(), Some(&DataType::Utf8View));
            let expected = usize::from(sample != Sample::Everything);
            assert_eq!((restarts, types.len()), (expected, 1 + expected));
        }
    }
}

#[test]
fn other_failures_end_the_import() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.csv", "a\n7\nx\n");
    let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
    let given = SourceOptions { schema: Some(schema.into()), ..SourceOptions::default() };
    let mut attempts = 0;
    let result = import(
        &[&path],
        &given,
        |_| panic!("a given schema is no sample"),
        |attempt| {
            attempts += 1;
            let source = attempt.open()?;
            while source.next_batch()?.is_some() {}
            Ok::<_, IngestError>(())
        },
    );
    assert!(matches!(result, Err(IngestError::Record(_))));
    let result = import(
        &[&path],
        &SourceOptions::default(),
        |_| panic!("nothing was read"),
        |_| {
            attempts += 1;
            Err::<(), _>("the disk is full")
        },
    );
    assert_eq!((result, attempts), (Err("the disk is full"), 2));
}
