//! SHOW CREATE TABLE: the statement that makes a table or a view again.

use std::any::Any;
use std::collections::BTreeMap;

use arrow_schema::{DataType, Field, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, exec_err};
use datafusion::datasource::MemTable;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{ObjectName, ShowCreateObject};
use plinth_datafusion::StoreTable;

use crate::Session;
use crate::rows::{CHECK, DEFAULT};
use crate::types::{type_name, written};

impl Session {
    /// What SHOW CREATE answers: the parts of the name, and the statement.
    pub(super) async fn show_create(
        &self,
        object: ShowCreateObject,
        named: &ObjectName,
    ) -> Result<Vec<(&'static str, String)>> {
        if !matches!(object, ShowCreateObject::Table | ShowCreateObject::View) {
            return exec_err!("SHOW CREATE {object}: is not supported; SHOW CREATE TABLE is, of tables and views");
        }
        let reference = object_name_to_table_reference(named.clone(), true)?;
        let name = self.resolved(reference.clone());
        let statement = format!("SHOW CREATE {object} {named}");
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
                    of_store(&named.to_string(), store)?
                } else if any.is::<MemTable>() {
                    let schema = table.schema();
                    let columns = schema
                        .fields()
                        .iter()
                        .map(|field| column(field, &BTreeMap::new()))
                        .collect::<Result<Vec<_>>>()?;
                    let temporary = if self.database.folder().is_some() { "TEMP " } else { "" };
                    format!("CREATE {temporary}TABLE {named} ({})", columns.join(", "))
                } else if let Some(sql) = table.get_table_definition() {
                    sql.to_owned()
                } else {
                    return exec_err!(
                        "{statement}: is made of files, not by a statement; DESCRIBE {named} shows its columns"
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
        table.schema().fields().iter().map(|field| column(field, table.notes())).collect::<Result<Vec<_>>>()?;
    let cluster = match table.key() {
        [] => stored.key().split_last().map(|(_, columns)| columns.to_vec()).unwrap_or_default(),
        key => {
            parts.push(format!("PRIMARY KEY ({})", list(key)));
            Vec::new()
        }
    };
    let checks = table.notes().iter().filter_map(|(name, text)| Some((name.strip_prefix(CHECK)?, text)));
    parts.extend(checks.map(|(name, text)| format!("CONSTRAINT {} CHECK ({text})", written(name))));
    let order = if cluster.is_empty() { String::new() } else { format!(" CLUSTER BY ({})", list(&cluster)) };
    let mut all = vec![format!("CREATE TABLE {name} ({}){order}", parts.join(", "))];
    for index in table.indexes()? {
        let unique = if index.unique { "UNIQUE " } else { "" };
        all.push(format!("CREATE {unique}INDEX {} ON {name} ({})", written(&index.name), list(&index.columns)));
    }
    Ok(all.join("; "))
}

fn list(columns: &[String]) -> String {
    columns.iter().map(|name| written(name)).collect::<Vec<_>>().join(", ")
}

fn column(field: &Field, notes: &BTreeMap<String, String>) -> Result<String> {
    let name = field.name();
    let Some(sql) = made_by(field.data_type()) else {
        return exec_err!("SHOW CREATE TABLE: column {name:?}: no statement makes the type {}", field.data_type());
    };
    let default = notes.get(&format!("{DEFAULT}{name}")).map(|text| format!(" DEFAULT {text}")).unwrap_or_default();
    Ok(format!("{} {sql}{default}{}", written(name), if field.is_nullable() { "" } else { " NOT NULL" }))
}

/// What CREATE TABLE calls a type. None if nothing gives it.
fn made_by(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::Timestamp(unit, zone) => {
            let digits = match unit {
                TimeUnit::Second => 0,
                TimeUnit::Millisecond => 3,
                TimeUnit::Microsecond => 6,
                TimeUnit::Nanosecond => 9,
            };
            match zone.as_deref() {
                None => Some(format!("TIMESTAMP({digits})")),
                Some("UTC" | "+00:00") => Some(format!("TIMESTAMP({digits}) WITH TIME ZONE")),
                Some(_) => None,
            }
        }
        DataType::List(item) | DataType::LargeList(item) => Some(format!("{}[]", made_by(item.data_type())?)),
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::Date32
        | DataType::Time64(TimeUnit::Nanosecond)
        | DataType::Decimal128(_, 0..)
        | DataType::Decimal256(_, 0..) => Some(type_name(data_type)),
        _ => None,
    }
}
