//! `SHOW TABLES`: the tables of the schema that names are looked up in, without what the engine keeps beside them.

use datafusion::common::Result;
use datafusion::config::CatalogOptions;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

use crate::database::PUBLIC;
use crate::depth;
use crate::schemas::CATALOG;

/// Puts a query in the place of `SHOW TABLES`.
pub(crate) fn rewrite(statement: &mut Statement, defaults: &CatalogOptions) -> Result<()> {
    let Statement::Statement(inner) = &*statement else { return Ok(()) };
    let ast::Statement::ShowTables { .. } = inner.as_ref() else { return Ok(()) };
    if inner.to_string() != "SHOW TABLES" {
        return Ok(());
    }
    let text = |name: &str| format!("'{}'", name.replace('\'', "''"));
    let (catalog, schema) = (text(&defaults.default_catalog), text(&defaults.default_schema));
    // An attached folder's `public` is a schema of the session's catalog, too.
    let sql = format!(
        "SELECT table_name AS name FROM information_schema.tables WHERE (table_catalog = {catalog} AND table_schema = {schema}) \
         OR ({catalog} = '{CATALOG}' AND table_catalog = {schema} AND table_schema = '{PUBLIC}') ORDER BY name"
    );
    if let Some(query) = depth::parse(&sql)?.pop() {
        *statement = query;
    }
    Ok(())
}
