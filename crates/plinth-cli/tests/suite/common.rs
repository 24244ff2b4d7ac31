//! A directory of a test's own, small inputs, and the program run in it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

/// A directory that goes away.
pub(crate) struct Dir(tempfile::TempDir);

impl Dir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Names of everything in it, hidden files too.
    pub(crate) fn entries(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// How a run ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Run {
    /// It succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// It failed with one line that starts like this, and perhaps the line of the statement that it is about.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, start: &str) -> &Self {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        assert!(self.stderr.starts_with(start), "{} does not start with {start}", self.stderr);
        assert!(self.stderr.trim_end().lines().skip(1).all(|line| line.starts_with("  ")), "{}", self.stderr);
        self
    }
}

pub(crate) fn command(dir: &Dir, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plinth"));
    command.current_dir(dir.path("")).args(args).stdin(Stdio::null());
    command
}

/// Runs the program in a directory.
pub(crate) fn plinth(dir: &Dir, args: &[&str]) -> Run {
    command(dir, args).output().unwrap().into()
}

/// Runs it with something on standard input.
pub(crate) fn with_input(dir: &Dir, args: &[&str], input: &str) -> Run {
    let mut command = command(dir, args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// A table with a column of most kinds; `id` counts from zero.
pub(crate) fn people(rows: usize) -> RecordBatch {
    let (n, small) = (i64::try_from(rows).unwrap(), i32::try_from(rows).unwrap());
    let cities = ["Berlin", "Bern", "Oslo", "a city with a rather long name"];
    let city = |i: usize| (i % 11 != 3).then(|| cities[i % cities.len()]);
    let mut tags = ListBuilder::new(StringBuilder::new());
    for i in 0..n {
        for tag in 0..i % 3 {
            tags.values().append_value(format!("tag {}", tag * i % 5));
        }
        tags.append(i % 7 != 2);
    }
    let amounts = Decimal128Array::from_iter_values((0..n).map(|i| i128::from(i * 37 % 10_007)));
    let columns: [(&str, ArrayRef, bool); 6] = [
        ("id", Arc::new((0..n).collect::<Int64Array>()), false),
        ("city", Arc::new((0..rows).map(city).collect::<StringArray>()), true),
        ("amount", Arc::new(amounts.with_precision_and_scale(12, 2).unwrap()), false),
        ("score", Arc::new((0..small).map(|i| f64::from(i * 31 % 100) / 4.0 + 40.0).collect::<Float64Array>()), false),
        ("day", Arc::new(Date32Array::from_iter_values((0..small).map(|i| 19_000 + i / 10))), false),
        ("tags", Arc::new(tags.finish()), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

pub(crate) fn write_parquet(path: &Path, batch: &RecordBatch, row_group: usize) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(row_group)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// Numbers and text that don't compress: about 40 bytes a row.
pub(crate) fn big_parquet(path: &Path, rows: u64) {
    let mut writer = None;
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state ^ (state >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let mut left = rows;
    while left > 0 {
        let step = left.min(100_000);
        left -= step;
        let numbers: Int64Array = (0..step).map(|_| next().cast_signed()).collect();
        let texts = StringArray::from_iter_values((0..step).map(|_| format!("{:016x}", next())));
        let columns: [(&str, ArrayRef); 2] = [("n", Arc::new(numbers)), ("t", Arc::new(texts))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let writer = writer.get_or_insert_with(|| {
            let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
            ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap()
        });
        writer.write(&batch).unwrap();
    }
    writer.unwrap().close().unwrap();
}
