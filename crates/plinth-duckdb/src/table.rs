//! What an argument of `read_plinth` stands for: columns, and the files that rows come from.

use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, FieldRef, Schema};
use plinth_format::{File, OpenOptions};
use plinth_rowstore::TableOptions;
use plinth_table::{Listed, Snapshot};

use crate::failure::{Result, of_format, of_table, refused};
use crate::keys::{self, Key};
use crate::memory_file;
use crate::places::{Place, find};

/// An argument with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) named: Vec<String>,
    /// A last column with each row's file.
    pub(crate) filename: bool,
    /// Columns from names of folders: if said, or where all files have them.
    pub(crate) hive: Option<bool>,
    /// Whether these columns have other types than text.
    pub(crate) hive_types: bool,
    /// Whether files may lack columns; else all have those of the first.
    pub(crate) union_by_name: bool,
}

/// A column as DuckDB sees it.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    /// Of the files.
    Stored(FieldRef),
    /// A key of folders, by its place.
    Key(usize),
    /// The file's path.
    Filename,
}

/// A file of a table.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) file: File,
    pub(crate) path: String,
    /// Which rows are there, if not all.
    pub(crate) kept: Option<BooleanBuffer>,
}

/// A table at one moment.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) parts: Vec<Part>,
    pub(crate) keys: Vec<Key>,
    pub(crate) rows: u64,
    /// Bytes of all parts.
    pub(crate) bytes: u64,
    kept: Kept,
}

/// What a table holds on to.
#[derive(Debug)]
enum Kept {
    Files(Snapshot),
    /// The names of a writable table's files, which its merges would remove.
    Rows {
        _snapshot: Box<plinth_rowstore::Snapshot>,
        _table: Box<plinth_rowstore::Table>,
    },
}

impl Table {
    /// Opens what is asked for.
    ///
    /// # Errors
    /// If something is not there, is no Plinth file, is damaged, or its columns do not meet those of the others.
    pub(crate) fn open(asked: &Asked, before: Option<&Snapshot>, options: &OpenOptions) -> Result<Self> {
        match find(&asked.named)? {
            Place::Files(paths) => Self::of_files(asked, paths, before, options),
            Place::Writable(path) => Self::of_rows(asked, &path, options),
        }
    }

    fn of_files(asked: &Asked, paths: Vec<PathBuf>, before: Option<&Snapshot>, options: &OpenOptions) -> Result<Self> {
        let listed = Listed::all(paths, None).map_err(of_format)?;
        let files = Snapshot::open_with(listed, before, options).map_err(of_format)?;
        let paths = files.files().iter().map(|file| file.path.as_path());
        let keys = match asked.hive {
            Some(false) => Vec::new(),
            _ => keys::of(paths.clone(), asked.hive_types),
        };
        let part = |file: &plinth_table::TableFile| Part {
            file: file.file.clone(),
            path: file.path.to_string_lossy().into_owned(),
            kept: None,
        };
        let parts: Vec<Part> = files.files().iter().map(part).collect();
        let schema = match parts.first() {
            Some(first) if !asked.union_by_name => Arc::new(of_first(first, &parts, &files.schema())?),
            _ => files.schema(),
        };
        let (rows, bytes) = (files.num_rows(), files.byte_len());
        let columns = columns(&schema, &keys, asked)?;
        Ok(Self { columns, parts, keys, rows, bytes, kept: Kept::Files(files) })
    }

    fn of_rows(asked: &Asked, path: &FsPath, options: &OpenOptions) -> Result<Self> {
        let table_options = TableOptions { open: options.clone(), background: false, ..TableOptions::default() };
        let table = plinth_rowstore::Table::open_read_only(path, table_options).map_err(of_table)?;
        let snapshot = table.snapshot();
        let path = path.to_string_lossy().into_owned();
        let mut parts: Vec<Part> = snapshot
            .segments()
            .into_iter()
            .map(|segment| Part { file: segment.file, path: path.clone(), kept: segment.kept })
            .collect();
        let memory = snapshot.memory().map_err(of_table)?;
        let name = format!("{path}: rows in memory");
        let memory = memory_file::of(&name, &memory, options).map_err(of_format)?;
        parts.extend(memory.map(|file| Part { file, path, kept: None }));
        Ok(Self {
            columns: columns(&snapshot.schema(), &[], asked)?,
            rows: snapshot.num_rows(),
            bytes: parts.iter().map(|part| part.file.byte_len()).sum(),
            parts,
            keys: Vec::new(),
            kept: Kept::Rows { _snapshot: Box::new(snapshot), _table: Box::new(table) },
        })
    }

    /// The files, if it is no writable table.
    pub(crate) fn files(&self) -> Option<&Snapshot> {
        match &self.kept {
            Kept::Files(files) => Some(files),
            Kept::Rows { .. } => None,
        }
    }

    /// The name of a column.
    pub(crate) fn name<'a>(&'a self, column: &'a Column) -> &'a str {
        match column {
            Column::Stored(field) => field.name(),
            Column::Key(at) => self.keys.get(*at).map_or("", |key| &key.name),
            Column::Filename => FILENAME,
        }
    }

    /// The type that a column of the files has in each of them: only then a filter on it means the same in all.
    pub(crate) fn same_in_all(&self, name: &str) -> Option<&DataType> {
        let first = self.columns.iter().find_map(|column| match column {
            Column::Stored(field) if field.name() == name => Some(field.data_type()),
            _ => None,
        })?;
        let is_first =
            |part: &Part| part.file.schema().field_with_name(name).is_ok_and(|field| field.data_type() == first);
        self.parts.iter().all(is_first).then_some(first)
    }
}

/// The column with paths.
pub(crate) const FILENAME: &str = "filename";

/// The columns of the first file, with the types that hold the values of all.
fn of_first(first: &Part, parts: &[Part], union: &Schema) -> Result<Schema> {
    let mut fields = Vec::new();
    for field in first.file.schema().fields() {
        if let Some(lacks) = parts.iter().find(|part| part.file.schema().field_with_name(field.name()).is_err()) {
            return Err(refused(format!(
                "{}: has no column {:?}, which {} has; union_by_name = true reads it as NULL",
                lacks.path,
                field.name(),
                first.path
            )));
        }
        let united = union.field_with_name(field.name()).map_err(crate::failure::of_arrow)?;
        fields.push(united.clone());
    }
    Ok(Schema::new(fields))
}

/// The columns of files, those of folders (which take the place of columns of the same name), and the path.
fn columns(schema: &Schema, keys: &[Key], asked: &Asked) -> Result<Vec<Column>> {
    let is_key = |name: &str| keys.iter().any(|key| key.name.eq_ignore_ascii_case(name));
    if asked.filename && (is_key(FILENAME) || schema.field_with_name(FILENAME).is_ok()) {
        return Err(refused("filename = true would add a second column of that name; leave it out"));
    }
    let stored = schema.fields().iter().filter(|field| !is_key(field.name())).cloned().map(Column::Stored);
    let keys = (0..keys.len()).map(Column::Key);
    let all: Vec<Column> = stored.chain(keys).chain(asked.filename.then_some(Column::Filename)).collect();
    if all.is_empty() {
        return Err(refused(format!("{}: has no columns", asked.named.join(", "))));
    }
    Ok(all)
}
