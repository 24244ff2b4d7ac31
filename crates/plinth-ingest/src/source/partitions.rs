//! Columns whose values are in the names of folders: `part/year=2024/month=1/f.parquet`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchOptions, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::inputs::Found;
use crate::batch_source::{BatchSource, Position, Totals};
use crate::error::{IngestError, Result};
use crate::options::{SourceOptions, Whole};
use crate::values::scalar::strict_text;

/// What Hive calls a folder whose value is null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The columns of some files' folders, and each file's values.
#[derive(Clone, Debug)]
pub(super) struct Partitions {
    columns: Vec<String>,
    values: HashMap<PathBuf, Vec<Option<String>>>,
}

impl Partitions {
    /// Those of files; `None` if their folders name none.
    ///
    /// # Errors
    /// If folders of some name other columns than those of others.
    pub(super) fn of(files: &[Found]) -> Result<Option<Self>> {
        let mut columns: Option<(&Found, Vec<String>)> = None;
        let mut values = HashMap::new();
        for file in files {
            let (names, own): (Vec<_>, Vec<_>) = file.within().filter_map(partition).unzip();
            match &columns {
                Some((first, known)) if *known != names => {
                    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                    let what = format!(
                        "folders name columns ({}) above {}, but ({}) above {}; --no-hive imports the columns of files alone",
                        list(known),
                        first.path.display(),
                        list(&names),
                        file.path.display()
                    );
                    return Err(IngestError::Option { what });
                }
                Some(_) => {}
                None => columns = Some((file, names)),
            }
            values.insert(file.path.clone(), own);
        }
        let columns = columns.map(|(_, names)| names).unwrap_or_default();
        if let Some(twice) =
            columns.iter().enumerate().find(|(at, name)| columns.iter().take(*at).any(|other| other == *name))
        {
            let what =
                format!("folders name the column {:?} twice; --no-hive imports the columns of files alone", twice.1);
            return Err(IngestError::Option { what });
        }
        Ok((!columns.is_empty()).then_some(Self { columns, values }))
    }

    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The values of a file's folders.
    pub(super) fn values(&self, file: &Path) -> &[Option<String>] {
        self.values.get(file).map_or(&[], Vec::as_slice)
    }

    /// Checks that no column of files has the name of one of folders.
    ///
    /// # Errors
    /// If one has.
    pub(super) fn check<'a>(&self, of_files: impl IntoIterator<Item = &'a str>) -> Result<()> {
        match of_files.into_iter().find(|name| self.columns.iter().any(|column| column == name)) {
            None => Ok(()),
            Some(name) => {
                let what = format!(
                    "column {name:?} is in files, and in names of folders; --no-hive imports that of the files"
                );
                Err(IngestError::Option { what })
            }
        }
    }

    /// How the files themselves are to be read: without the columns of folders.
    pub(super) fn options_of_files(&self, options: &SourceOptions) -> SourceOptions {
        let without = |schema: &SchemaRef| {
            let own = schema.fields().iter().filter(|field| !self.columns.contains(field.name())).cloned();
            Arc::new(Schema::new(own.collect::<Vec<_>>()))
        };
        let whole = options.whole.as_ref().map(|whole| {
            let own = whole.names.iter().filter(|name| !self.columns.contains(name)).cloned();
            Whole { names: Arc::new(own.collect()), inferred: whole.inferred }
        });
        SourceOptions { schema: options.schema.as_ref().map(without), whole, ..options.clone() }
    }

    /// A source of the files' rows with the columns of folders behind theirs.
    ///
    /// # Errors
    /// If the files have a column of such a name, or a schema that was given has a type for one that its values do not have.
    pub(super) fn joined(
        &self,
        inner: Box<dyn BatchSource>,
        given: Option<&SchemaRef>,
        ignore_extra: bool,
    ) -> Result<Box<dyn BatchSource>> {
        let mut fields = inner.schema().fields().to_vec();
        self.check(fields.iter().map(|field| field.name().as_str()))?;
        let mut kept = Vec::new();
        for (at, name) in self.columns.iter().enumerate() {
            let field = match given.map(|schema| schema.field_with_name(name)) {
                None => Field::new(name, DataType::Utf8View, true),
                Some(Ok(field)) => {
                    crate::values::types::given_schema(&Schema::new(vec![field.clone()])).field(0).clone()
                }
                Some(Err(_)) if ignore_extra => continue,
                Some(Err(_)) => {
                    let what = format!(
                        "column {name:?} of the folders is not in the schema; add it, or pass over it with --ignore-extra or --no-hive"
                    );
                    return Err(IngestError::Option { what });
                }
            };
            kept.push((at, field.clone()));
            fields.push(Arc::new(field));
        }
        let mut columns = HashMap::with_capacity(self.values.len());
        for (path, values) in &self.values {
            let own = kept.iter().map(|(at, field)| value(path, field, values.get(*at).and_then(Option::as_deref)));
            columns.insert(path.clone(), own.collect::<Result<Vec<_>>>()?);
        }
        Ok(Box::new(Joined { inner, schema: Arc::new(Schema::new(fields)), columns }))
    }
}

/// The column and the value that a folder's name says.
fn partition(folder: &str) -> Option<(String, Option<String>)> {
    let (name, value) = folder.split_once('=')?;
    let value = unescaped(value);
    (!name.is_empty()).then(|| (unescaped(name), (value != NULL).then_some(value)))
}

/// A name in which bytes are written as `%2F`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        // Digits alone: a sign would be taken, too.
        let code = others.get(..2).filter(|two| first == b'%' && two.iter().all(u8::is_ascii_hexdigit));
        let code = code.and_then(|two| std::str::from_utf8(two).ok());
        match code.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = others.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = others;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// A value as an array of one.
fn value(path: &Path, field: &Field, value: Option<&str>) -> Result<ArrayRef> {
    let bad =
        |what: String| IngestError::Value { path: path.display().to_string(), column: field.name().clone(), what };
    if value.is_none() && !field.is_nullable() {
        return Err(bad("the folder stands for null, where a value is needed".to_owned()));
    }
    let text: ArrayRef = Arc::new(StringViewArray::from(vec![value]));
    if matches!(field.data_type(), DataType::Utf8View) {
        return Ok(text);
    }
    strict_text(&text, field.data_type()).map_err(bad)
}

/// Rows of files with the columns of their folders.
struct Joined {
    inner: Box<dyn BatchSource>,
    schema: SchemaRef,
    /// One value each.
    columns: HashMap<PathBuf, Vec<ArrayRef>>,
}

impl BatchSource for Joined {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.inner.next_batch()? else { return Ok(None) };
        let known = self.inner.path().and_then(|path| self.columns.get(path));
        let values = known.ok_or(IngestError::internal("a batch of partitioned files is of none of them"))?;
        let (mut columns, mut fields) = (batch.columns().to_vec(), batch.schema().fields().to_vec());
        for (value, field) in values.iter().zip(self.schema.fields().iter().skip(fields.len())) {
            let column = repeated(value, batch.num_rows())?;
            fields.push(Arc::new(field.as_ref().clone().with_data_type(column.data_type().clone())));
            columns.push(column);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let joined = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options);
        joined.map(Some).map_err(|_| IngestError::internal("the columns of folders do not fit those of files"))
    }

    fn totals(&self) -> Totals {
        self.inner.totals()
    }

    fn position(&self) -> Position {
        self.inner.position()
    }

    fn path(&self) -> Option<&Path> {
        self.inner.path()
    }

    fn rejects(&self) -> u64 {
        self.inner.rejects()
    }

    fn unknown_keys(&self) -> BTreeMap<String, u64> {
        self.inner.unknown_keys()
    }

    fn is_binary(&self, column: usize) -> bool {
        column < self.inner.schema().fields().len() && self.inner.is_binary(column)
    }
}

/// A value for each of some rows: of text by reference.
fn repeated(value: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    let failed = |_| IngestError::internal("the value of a folder can't be repeated");
    if matches!(value.data_type(), DataType::Utf8View) && value.is_valid(0) {
        let keys = Int32Array::from(vec![0; rows]);
        let column = DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(value)).map_err(failed)?;
        return Ok(Arc::new(column));
    }
    let places = arrow_array::UInt32Array::from(vec![0; rows]);
    arrow_select::take::take(value, &places, None).map_err(failed)
}
