//! Catalogs, schemas, tables, columns and keys, as `AdbcConnectionGetObjects` nests them.

#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int16Array, Int32Array, ListArray, RecordBatch, StringArray, StructArray, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::common::TableReference;
use datafusion::datasource::TableType;
use plinth_datafusion::StoreTable;

use crate::connection::{CATALOG, DB_SCHEMA, Link};
use crate::error::{Failure, Result};
use crate::run::{Answer, wait};

/// How deep to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    Catalogs,
    Schemas,
    Tables,
    Columns,
}

/// What to look for: patterns of LIKE, or all.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) depth: Depth,
    pub(crate) catalog: Option<String>,
    pub(crate) db_schema: Option<String>,
    pub(crate) table: Option<String>,
    pub(crate) types: Option<Vec<String>>,
    pub(crate) column: Option<String>,
}

/// Whether a name fits a pattern in which `%` stands for any letters and `_` for one. Of several `%` only the last is tried again, so
/// that no pattern takes long.
fn like(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut letter, mut any) = (0, 0, None);
    while let Some(here) = name.get(letter) {
        match pattern.get(at) {
            Some('%') => {
                at += 1;
                any = Some((at, letter));
            }
            Some(one) if *one == '_' || one == here => {
                at += 1;
                letter += 1;
            }
            _ => {
                let Some((behind, from)) = any else { return false };
                at = behind;
                letter = from + 1;
                any = Some((behind, letter));
            }
        }
    }
    pattern.iter().skip(at).all(|left| *left == '%')
}

fn fits(pattern: Option<&String>, name: &str) -> bool {
    pattern.is_none_or(|pattern| like(pattern, name))
}

struct Table {
    name: String,
    kind: &'static str,
    schema: SchemaRef,
    key: Vec<String>,
}

fn tables(link: &Link, wanted: &Wanted) -> Result<Vec<Table>> {
    let engine = &link.engine;
    let mut found = Vec::new();
    let mut names = engine.session.table_names();
    names.sort();
    for name in names.into_iter().filter(|name| fits(wanted.table.as_ref(), name)) {
        let looked = wait(&engine.handle, &link.stop(), async {
            Ok(engine.session.context().table_provider(TableReference::bare(name.as_str())).await?)
        });
        // One that can't be read now is no reason to tell nothing of the others.
        let Ok(table) = looked else { continue };
        let kind = if table.table_type() == TableType::View { "VIEW" } else { "BASE TABLE" };
        if wanted.types.as_ref().is_some_and(|types| !types.iter().any(|one| one == kind)) {
            continue;
        }
        let any: &dyn Any = table.as_ref();
        let key = any.downcast_ref::<StoreTable>().map(|table| table.key().to_vec()).unwrap_or_default();
        found.push(Table { name, kind, schema: table.schema(), key });
    }
    Ok(found)
}

fn arrow(error: arrow_schema::ArrowError) -> Failure {
    Failure::internal(error.to_string())
}

/// A field of lists of these values.
fn list_field(name: &str, values: &Fields, nullable: bool) -> Field {
    let item = Field::new("item", DataType::Struct(values.clone()), true);
    Field::new(name, DataType::List(Arc::new(item)), nullable)
}

/// Lists of so many of the values each, or one of null.
fn lists(field: &Field, values: ArrayRef, lengths: Option<Vec<usize>>) -> Result<ArrayRef> {
    let DataType::List(item) = field.data_type() else { return Err(Failure::internal("no field of lists")) };
    let nulls = lengths.is_none().then(|| NullBuffer::new_null(1));
    let offsets = OffsetBuffer::from_lengths(lengths.unwrap_or_else(|| vec![0]));
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, nulls).map_err(arrow)?))
}

fn structs(fields: &Fields, columns: Vec<ArrayRef>, rows: usize) -> Result<ArrayRef> {
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, None, rows).map_err(arrow)?))
}

fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from(values.into_iter().collect::<Vec<_>>()))
}

const COLUMN_FIELDS: [(&str, DataType); 19] = [
    ("column_name", DataType::Utf8),
    ("ordinal_position", DataType::Int32),
    ("remarks", DataType::Utf8),
    ("xdbc_data_type", DataType::Int16),
    ("xdbc_type_name", DataType::Utf8),
    ("xdbc_column_size", DataType::Int32),
    ("xdbc_decimal_digits", DataType::Int16),
    ("xdbc_num_prec_radix", DataType::Int16),
    ("xdbc_nullable", DataType::Int16),
    ("xdbc_column_def", DataType::Utf8),
    ("xdbc_sql_data_type", DataType::Int16),
    ("xdbc_datetime_sub", DataType::Int16),
    ("xdbc_char_octet_length", DataType::Int32),
    ("xdbc_is_nullable", DataType::Utf8),
    ("xdbc_scope_catalog", DataType::Utf8),
    ("xdbc_scope_schema", DataType::Utf8),
    ("xdbc_scope_table", DataType::Utf8),
    ("xdbc_is_autoincrement", DataType::Boolean),
    ("xdbc_is_generatedcolumn", DataType::Boolean),
];

fn column_fields() -> Fields {
    COLUMN_FIELDS.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), *name != "column_name")).collect()
}

fn usage_fields() -> Fields {
    let names = [("fk_catalog", true), ("fk_db_schema", true), ("fk_table", false), ("fk_column_name", false)];
    names.iter().map(|(name, nullable)| Field::new(*name, DataType::Utf8, *nullable)).collect()
}

fn constraint_fields() -> Fields {
    let names = DataType::List(Arc::new(Field::new("", DataType::Utf8, true)));
    Fields::from(vec![
        Field::new("constraint_name", DataType::Utf8, true),
        Field::new("constraint_type", DataType::Utf8, false),
        Field::new("constraint_column_names", names, false),
        list_field("constraint_column_usage", &usage_fields(), true),
    ])
}

fn table_fields() -> Fields {
    Fields::from(vec![
        Field::new("table_name", DataType::Utf8, false),
        Field::new("table_type", DataType::Utf8, false),
        list_field("table_columns", &column_fields(), true),
        list_field("table_constraints", &constraint_fields(), true),
    ])
}

fn schema_fields() -> Fields {
    Fields::from(vec![
        Field::new("db_schema_name", DataType::Utf8, true),
        list_field("db_schema_tables", &table_fields(), true),
    ])
}

/// The columns of tables that fit, and how many each table has.
fn columns(tables: &[Table], wanted: &Wanted) -> Result<(ArrayRef, Vec<usize>)> {
    let (mut fields, mut positions, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    for table in tables {
        let before = fields.len();
        for (field, at) in table.schema.fields().iter().zip(1_i32..) {
            if fits(wanted.column.as_ref(), field.name()) {
                fields.push(field);
                positions.push(at);
            }
        }
        lengths.push(fields.len() - before);
    }
    let rows = fields.len();
    let types: Vec<_> = fields.iter().map(|field| field.data_type().to_string()).collect();
    let all = COLUMN_FIELDS.iter().map(|(name, data_type)| -> ArrayRef {
        match *name {
            "column_name" => texts(fields.iter().map(|field| field.name().as_str())),
            "ordinal_position" => Arc::new(Int32Array::from(positions.clone())),
            "xdbc_type_name" => texts(types.iter().map(String::as_str)),
            "xdbc_nullable" => {
                Arc::new(fields.iter().map(|f| Some(i16::from(f.is_nullable()))).collect::<Int16Array>())
            }
            "xdbc_is_nullable" => texts(fields.iter().map(|f| if f.is_nullable() { "YES" } else { "NO" })),
            "xdbc_is_autoincrement" | "xdbc_is_generatedcolumn" => Arc::new(BooleanArray::from(vec![false; rows])),
            _ => new_null_array(data_type, rows),
        }
    });
    Ok((structs(&column_fields(), all.collect(), rows)?, lengths))
}

/// The keys of tables, and how many each table has.
fn constraints(tables: &[Table]) -> Result<(ArrayRef, Vec<usize>)> {
    let fields = constraint_fields();
    let keyed: Vec<&Table> = tables.iter().filter(|table| !table.key.is_empty()).collect();
    let rows = keyed.len();
    let (Some(names), Some(usage)) = (fields.get(2), fields.get(3)) else {
        return Err(Failure::internal("a constraint has four fields"));
    };
    let columns = texts(keyed.iter().flat_map(|table| table.key.iter().map(String::as_str)));
    let all = vec![
        new_null_array(&DataType::Utf8, rows),
        texts(keyed.iter().map(|_| "PRIMARY KEY")),
        lists(names, columns, Some(keyed.iter().map(|table| table.key.len()).collect()))?,
        new_null_array(usage.data_type(), rows),
    ];
    Ok((structs(&fields, all, rows)?, tables.iter().map(|table| usize::from(!table.key.is_empty())).collect()))
}

/// The answer of `AdbcConnectionGetObjects`.
pub(crate) fn objects(link: &Link, wanted: &Wanted) -> Result<Answer> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("catalog_name", DataType::Utf8, true),
        list_field("catalog_db_schemas", &schema_fields(), true),
    ]));
    if !fits(wanted.catalog.as_ref(), CATALOG) {
        return Ok(Answer::of(schema, Vec::new(), None));
    }
    let (schemas_field, tables_field) = (schema.field(1).clone(), schema_fields());
    let Some(tables_field) = tables_field.get(1) else { return Err(Failure::internal("a schema has two fields")) };
    let fitting = usize::from(fits(wanted.db_schema.as_ref(), DB_SCHEMA));
    let schemas = if wanted.depth == Depth::Catalogs {
        let none = structs(
            &schema_fields(),
            vec![new_null_array(&DataType::Utf8, 0), new_null_array(tables_field.data_type(), 0)],
            0,
        )?;
        lists(&schemas_field, none, None)?
    } else {
        let of_schema = if fitting == 0 {
            new_null_array(tables_field.data_type(), 0)
        } else if wanted.depth == Depth::Schemas {
            new_null_array(tables_field.data_type(), 1)
        } else {
            let found = tables(link, wanted)?;
            let values = structs(&table_fields(), of_tables(&found, wanted)?, found.len())?;
            lists(tables_field, values, Some(vec![found.len()]))?
        };
        let values = structs(&schema_fields(), vec![texts(vec![DB_SCHEMA; fitting]), of_schema], fitting)?;
        lists(&schemas_field, values, Some(vec![fitting]))?
    };
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![texts([CATALOG]), schemas]).map_err(arrow)?;
    Ok(Answer::of(schema, vec![batch], None))
}

fn of_tables(found: &[Table], wanted: &Wanted) -> Result<Vec<ArrayRef>> {
    let fields = table_fields();
    let (Some(columns_field), Some(constraints_field)) = (fields.get(2), fields.get(3)) else {
        return Err(Failure::internal("a table has four fields"));
    };
    let (of_columns, of_constraints) = if wanted.depth == Depth::Columns {
        let (columns, lengths) = columns(found, wanted)?;
        let (constraints, keys) = constraints(found)?;
        (lists(columns_field, columns, Some(lengths))?, lists(constraints_field, constraints, Some(keys))?)
    } else {
        let none = |field: &Field| new_null_array(field.data_type(), found.len());
        (none(columns_field), none(constraints_field))
    };
    Ok(vec![
        texts(found.iter().map(|table| table.name.as_str())),
        texts(found.iter().map(|table| table.kind)),
        of_columns,
        of_constraints,
    ])
}
