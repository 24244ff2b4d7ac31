//! Columns in the names of folders.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Field, Schema};
use plinth_ingest::{SourceOptions, open};

use super::drain;

fn hive() -> SourceOptions {
    SourceOptions { hive: true, threads: 2, ..SourceOptions::default() }
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn put_parquet(folder: &Path, name: &str, values: Vec<i64>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let batch = RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(values)) as _)]).unwrap();
    let file = fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn rows(input: &str, options: &SourceOptions) -> Result<Vec<String>, String> {
    let mut source = open(&[input], options).map_err(|e| e.to_string())?;
    let batch = drain(source.as_mut())?;
    let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    let row = |row: usize| {
        let cell = |column| array_value_to_string(column, row).unwrap();
        batch.columns().iter().map(|column| cell(column)).collect::<Vec<_>>().join(" ")
    };
    Ok(std::iter::once(names.join(" ")).chain((0..batch.num_rows()).map(row)).collect())
}

#[test]
fn folders_name_columns_of_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    put(dir.path(), "csv/y=2024/m=1/f.csv", "a,b\n1,x\n2,y\n");
    put(dir.path(), "csv/y=2024/m=1/g.csv", "a\n3\n");
    put(dir.path(), "csv/y=2025/m=__HIVE_DEFAULT_PARTITION__/f.csv", "a,b\n4,z\n");
    put(dir.path(), "json/s=a%2Fb/f.ndjson", "{\"a\":1}\n{\"a\":2}\n");
    put(dir.path(), "json/s=/f.ndjson", "{\"a\":3}\n");
    put_parquet(dir.path(), "parquet/y=1/f.parquet", (0..3).collect());
    put_parquet(dir.path(), "parquet/y=2/f.parquet", vec![9]);
    let csv = ["a b y m", "1 x 2024 1", "2 y 2024 1", "3  2024 1", "4 z 2025 "];
    assert_eq!(rows(&at("csv"), &hive()).unwrap(), csv);
    assert_eq!(rows(&at("csv/*/*/*.csv"), &hive()).unwrap(), csv);
    assert_eq!(rows(&at("json"), &hive()).unwrap(), ["a s", "3 ", "1 a/b", "2 a/b"]);
    assert_eq!(rows(&at("parquet"), &hive()).unwrap(), ["a y", "0 1", "1 1", "2 1", "9 2"]);
    // What is named is where columns begin.
    assert_eq!(rows(&at("csv/y=2025"), &hive()).unwrap(), ["a b m", "4 z "]);
    assert_eq!(rows(&at("parquet/y=2/f.parquet"), &hive()).unwrap(), ["a", "9"]);
    assert_eq!(rows(&at("parquet"), &SourceOptions::default()).unwrap(), ["a", "0", "1", "2", "9"]);
}

#[test]
fn a_schema_gives_their_types() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("p").display().to_string();
    put(dir.path(), "p/y=2024/f.csv", "a\n1\n");
    put(dir.path(), "p/y=2025/f.csv", "a\n2\n");
    let typed = |data_type| {
        let fields = vec![Field::new("a", DataType::Int64, true), Field::new("y", data_type, true)];
        SourceOptions { schema: Some(Arc::new(Schema::new(fields))), ..hive() }
    };
    assert_eq!(open(&[&input], &typed(DataType::Int32)).unwrap().schema().field(1).data_type(), &DataType::Int32);
    assert_eq!(rows(&input, &typed(DataType::Int32)).unwrap(), ["a y", "1 2024", "2 2025"]);
    let refused = rows(&input, &typed(DataType::Date32)).unwrap_err();
    assert!(refused.contains("\"y\"") && refused.contains("2024"), "{refused}");
    let without = Some(Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)])));
    let refused = rows(&input, &SourceOptions { schema: without.clone(), ..hive() }).unwrap_err();
    assert!(refused.contains("--ignore-extra"), "{refused}");
    let options = SourceOptions { schema: without, ignore_extra: true, ..hive() };
    assert_eq!(rows(&input, &options).unwrap(), ["a", "1", "2"]);
}

#[test]
fn what_folders_do_not_agree_about_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    put(dir.path(), "mixed/y=1/f.csv", "a\n1\n");
    put(dir.path(), "mixed/f.csv", "a\n2\n");
    put(dir.path(), "own/a=1/f.csv", "a\n1\n");
    put(dir.path(), "twice/y=1/y=2/f.csv", "a\n1\n");
    for (input, why) in [("mixed", "folders name columns"), ("own", "is in files"), ("twice", "twice")] {
        let refused = rows(&at(input), &hive()).unwrap_err();
        assert!(refused.contains(why) && refused.contains("--no-hive"), "{refused}");
        assert!(rows(&at(input), &SourceOptions::default()).is_ok());
    }
}
