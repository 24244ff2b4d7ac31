//! Columns by paths: values from anywhere within records, under names of their own.
//!
//! The paths make a schema of structs in structs that has only what they lead to, by which the records are read; its leaves are
//! the columns.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use super::path::{Root, Step};
use super::reader;
use crate::batch_source::{BatchSource, Position, Totals};
use crate::error::{IngestError, Result};
use crate::options::{SourceOptions, Unknown, Whole};
use crate::stream::input::Input;
use crate::stream::text_source::TextSource;

/// The values that paths lead to.
struct Columns {
    inner: TextSource,
    schema: SchemaRef,
    /// Per column, the field at each level.
    places: Vec<Vec<usize>>,
    /// Whether the types are those of a sample.
    inferred: bool,
}

/// A column and the keys that lead to it.
struct Column<'a> {
    name: &'a str,
    path: &'a str,
    keys: Vec<String>,
}

/// Fields of an object, the path's last with what is there.
#[derive(Default)]
struct Tree {
    names: Vec<String>,
    nodes: Vec<Node>,
}

enum Node {
    Leaf(Field),
    Inner(Tree),
}

/// Opens JSON by its columns' paths.
pub(super) fn open(inputs: Vec<Arc<Input>>, options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    let mut plain = options.clone();
    plain.json.columns.clear();
    plain.json.unknown = Unknown::Report;
    let wanted = |name: &str| options.schema.as_ref().is_none_or(|schema| schema.field_with_name(name).is_ok());
    let mut columns = Vec::new();
    for (name, path) in &options.json.columns {
        if !wanted(name) && !options.ignore_extra {
            return Err(wrong(name, path, "the schema lacks the column"));
        }
        if wanted(name) {
            columns.push(Column { name, path, keys: keys(name, path)? });
        }
    }
    // Of the records as they are, not of the columns.
    plain.whole = options.whole.as_ref().filter(|whole| whole.inferred).map(|_| {
        let first = columns.iter().filter_map(|column| column.keys.first()).cloned();
        Whole { names: Arc::new(first.collect()), inferred: true }
    });
    let types = match &options.schema {
        Some(schema) => columns_of(&columns, schema)?,
        None => {
            // Decoding ahead would be for nothing.
            let sample = SourceOptions { ahead_bytes: 0, ..plain.clone() };
            let all = reader::open(inputs.clone(), &sample)?;
            let names = all.schema().fields().iter().map(|field| field.name().clone());
            plain.whole = Some(Whole { names: Arc::new(names.collect()), inferred: true });
            columns.iter().map(|column| found(column, all.schema().fields())).collect::<Result<_>>()?
        }
    };
    let mut tree = Tree::default();
    let mut places = Vec::new();
    for (column, field) in columns.iter().zip(&types) {
        places.push(
            tree.insert(&column.keys, field)
                .ok_or_else(|| wrong(column.name, column.path, "another column's path leads into the same value"))?,
        );
    }
    let inferred = options.schema.is_none();
    plain.ignore_extra = true;
    plain.schema = Some(Arc::new(Schema::new(tree.fields())));
    let inner = reader::open(inputs, &plain)?;
    // As they are handed on.
    let fields = columns.iter().zip(&places).zip(&types).map(|((column, places), field)| {
        let data_type = type_at(inner.schema().fields(), places).unwrap_or_else(|| field.data_type().clone());
        Field::new(column.name, data_type, field.is_nullable())
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(Box::new(Columns { inner, schema, places, inferred }))
}

fn wrong(name: &str, path: &str, what: &str) -> IngestError {
    IngestError::Option { what: format!("column {name:?}: {path:?}: {what}") }
}

/// The keys of a path.
fn keys(name: &str, path: &str) -> Result<Vec<String>> {
    let root = Root::parse(path).map_err(|why| wrong(name, path, &format!("{why}; write it as a.b, $.a.b or /a/b")))?;
    let key = |step: Step| match step {
        Step::Key(key) | Step::Either(key, _) => Ok(key),
        Step::Index(_) | Step::Any => {
            Err(wrong(name, path, "a column is one value, and elements of arrays are several"))
        }
    };
    let keys = root.steps.into_iter().map(key).collect::<Result<Vec<_>>>()?;
    if keys.is_empty() { Err(wrong(name, path, "it leads nowhere")) } else { Ok(keys) }
}

/// The fields of a schema that was given, in the order of the columns.
fn columns_of(columns: &[Column<'_>], schema: &Schema) -> Result<Vec<Field>> {
    let pathless = |field: &&Arc<Field>| !columns.iter().any(|column| column.name == field.name());
    if let Some(field) = schema.fields().iter().find(pathless) {
        let what = format!("column {:?} of the schema has no path", field.name());
        return Err(IngestError::Option { what });
    }
    let field = |column: &Column<'_>| schema.field_with_name(column.name).ok().cloned();
    Ok(columns.iter().filter_map(field).collect())
}

/// What a path leads to.
fn found(column: &Column<'_>, fields: &Fields) -> Result<Field> {
    let mut fields = fields;
    let mut keys = column.keys.iter().peekable();
    while let Some(key) = keys.next() {
        let Some((_, field)) = fields.find(key) else {
            return Err(wrong(column.name, column.path, &format!("nothing is called {key:?} there")));
        };
        match (keys.peek(), field.data_type()) {
            (None, _) => return Ok(field.as_ref().clone()),
            (Some(_), DataType::Struct(inner)) => fields = inner,
            (Some(_), _) => {
                return Err(wrong(column.name, column.path, &format!("{key:?} is no object with fields in all rows")));
            }
        }
    }
    Err(wrong(column.name, column.path, "it leads nowhere"))
}

fn type_at(fields: &Fields, places: &[usize]) -> Option<DataType> {
    let (first, rest) = places.split_first()?;
    let data_type = fields.get(*first)?.data_type();
    match data_type {
        DataType::Struct(inner) if !rest.is_empty() => type_at(inner, rest),
        _ => Some(data_type.clone()),
    }
}

impl Tree {
    /// The fields at each level that lead to a new leaf; `None` where another leaf is in the way.
    fn insert(&mut self, keys: &[String], leaf: &Field) -> Option<Vec<usize>> {
        let (key, rest) = keys.split_first()?;
        let at = match self.names.iter().position(|name| name == key) {
            Some(at) => at,
            None => {
                self.names.push(key.clone());
                self.nodes.push(match rest {
                    [] => Node::Leaf(leaf.clone().with_name(key)),
                    _ => Node::Inner(Self::default()),
                });
                self.nodes.len() - 1
            }
        };
        match (self.nodes.get_mut(at)?, rest) {
            (Node::Leaf(known), []) if known.data_type() == leaf.data_type() => Some(vec![at]),
            (Node::Inner(tree), [_, ..]) => {
                let mut places = tree.insert(rest, leaf)?;
                places.insert(0, at);
                Some(places)
            }
            _ => None,
        }
    }

    fn fields(self) -> Fields {
        let field = |(name, node)| match node {
            Node::Leaf(field) => field,
            Node::Inner(tree) => {
                let fields = tree.fields();
                // What has to be there needs what it is in.
                let nullable = fields.iter().all(|field| field.is_nullable());
                Field::new(name, DataType::Struct(fields), nullable)
            }
        };
        self.names.into_iter().zip(self.nodes).map(field).collect()
    }
}

/// The array at a place. Where what it is in is null, it is null itself.
fn array_at(columns: &[ArrayRef], places: &[usize]) -> Option<ArrayRef> {
    let (first, rest) = places.split_first()?;
    let array = columns.get(*first)?;
    if rest.is_empty() {
        return Some(Arc::clone(array));
    }
    array_at(array.as_struct_opt()?.columns(), rest)
}

impl Columns {
    fn project(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = self.places.iter().filter_map(|places| array_at(batch.columns(), places)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|e| IngestError::damaged(Path::new("columns"), e.to_string()))
    }
}

impl BatchSource for Columns {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self.inner.next_batch() {
            Ok(batch) => batch.map(|batch| self.project(&batch)).transpose(),
            // The types were those of a sample.
            Err(IngestError::Record(bad)) if self.inferred && bad.column.is_some() => Err(IngestError::Surprise(bad)),
            Err(e) => Err(e),
        }
    }

    fn totals(&self) -> Totals {
        self.inner.totals()
    }

    fn position(&self) -> Position {
        self.inner.position()
    }

    fn path(&self) -> Option<&std::path::Path> {
        self.inner.path()
    }

    fn rejects(&self) -> u64 {
        self.inner.rejects()
    }
}
