//! SHOW CREATE TABLE: the statement that makes a table or a view again.

use std::any::Any;

use arrow_schema::{DataType, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, exec_err};
use datafusion::datasource::MemTable;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{ObjectName, ShowCreateObject};
use plinth_datafusion::StoreTable;

use crate::Session;

impl Session {
    /// What SHOW CREATE answers: the parts of the name, and the statement.
    pub(super) async fn show_create(
        &self,
        object: ShowCreateObject,
        written: &ObjectName,
    ) -> Result<Vec<(&'static str, String)>> {
        if !matches!(object, ShowCreateObject::Table | ShowCreateObject::View) {
            return exec_err!("SHOW CREATE {object}: is not supported; SHOW CREATE TABLE is, of tables and views");
        }
        let reference = object_name_to_table_reference(written.clone(), true)?;
        let name = self.resolved(reference.clone());
        let statement = format!("SHOW CREATE {object} {written}");
        let kept = self.database_of(&name)?.filter(|database| !database.is_registered(&name.table));
        let view = kept.and_then(|database| {
            let contents = database.catalog()?.read().ok()?;
            contents.view(&name.schema, &name.table).map(|(_, view)| view.sql.clone())
        });
        let definition = match view {
            // As it was written: its tables need not be there any more.
            Some(sql) => sql,
            None => {
                let table = self.context.table_provider(reference).await?;
                let any: &dyn Any = table.as_ref();
                if let Some(store) = any.downcast_ref::<StoreTable>() {
                    of_store(&written.to_string(), store)?
                } else if any.is::<MemTable>() {
                    let schema = table.schema();
                    let columns =
                        schema.fields().iter().map(|field| column(field.name(), field)).collect::<Result<Vec<_>>>()?;
                    let temporary = if self.database.folder().is_some() { "TEMP " } else { "" };
                    format!("CREATE {temporary}TABLE {written} ({})", columns.join(", "))
                } else if let Some(sql) = table.get_table_definition() {
                    sql.to_owned()
                } else {
                    return exec_err!(
                        "{statement}: is made of files, not by a statement; DESCRIBE {written} shows its columns"
                    );
                }
            }
        };
        Ok(vec![
            ("table_catalog", name.catalog.to_string()),
            ("table_schema", name.schema.to_string()),
            ("table_name", name.table.to_string()),
            ("definition", definition),
        ])
    }
}

/// The statements that make a writable table and its indexes.
fn of_store(name: &str, table: &StoreTable) -> Result<String> {
    let stored = table.with_row_columns()?;
    let mut parts =
        table.schema().fields().iter().map(|field| column(field.name(), field)).collect::<Result<Vec<_>>>()?;
    let cluster = match table.key() {
        [] => stored.key().split_last().map(|(_, columns)| columns.to_vec()).unwrap_or_default(),
        key => {
            parts.push(format!("PRIMARY KEY ({})", list(key)));
            Vec::new()
        }
    };
    let order = if cluster.is_empty() { String::new() } else { format!(" CLUSTER BY ({})", list(&cluster)) };
    let mut all = vec![format!("CREATE TABLE {name} ({}){order}", parts.join(", "))];
    for index in table.indexes()? {
        let unique = if index.unique { "UNIQUE " } else { "" };
        all.push(format!("CREATE {unique}INDEX {} ON {name} ({})", quoted(&index.name), list(&index.columns)));
    }
    Ok(all.join("; "))
}

fn list(columns: &[String]) -> String {
    columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

/// A name, in quotes where it needs them.
fn quoted(name: &str) -> String {
    let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    // A name that is a word of SQL may need them, too; with them it means the same.
    let word =
        plain && datafusion::sql::sqlparser::keywords::ALL_KEYWORDS.contains(&name.to_ascii_uppercase().as_str());
    if plain && !word { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn column(name: &str, field: &arrow_schema::Field) -> Result<String> {
    let Some(sql) = type_name(field.data_type()) else {
        return exec_err!("SHOW CREATE TABLE: column {name:?}: no statement makes the type {}", field.data_type());
    };
    Ok(format!("{} {sql}{}", quoted(name), if field.is_nullable() { "" } else { " NOT NULL" }))
}

/// What CREATE TABLE calls a type. None if nothing gives it.
fn type_name(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "TINYINT UNSIGNED".to_owned(),
        DataType::UInt16 => "SMALLINT UNSIGNED".to_owned(),
        DataType::UInt32 => "INTEGER UNSIGNED".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Float32 => "REAL".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "TEXT".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BYTEA".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Time64(TimeUnit::Nanosecond) => "TIME".to_owned(),
        DataType::Timestamp(unit, zone) => {
            let digits = match unit {
                TimeUnit::Second => "(0)",
                TimeUnit::Millisecond => "(3)",
                TimeUnit::Microsecond => "(6)",
                TimeUnit::Nanosecond => "(9)",
            };
            match zone.as_deref() {
                None => format!("TIMESTAMP{digits}"),
                Some("UTC" | "+00:00") => format!("TIMESTAMP{digits} WITH TIME ZONE"),
                Some(_) => return None,
            }
        }
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) if *scale >= 0 => {
            format!("DECIMAL({precision}, {scale})")
        }
        DataType::List(item) | DataType::LargeList(item) => format!("{}[]", type_name(item.data_type())?),
        _ => return None,
    })
}
