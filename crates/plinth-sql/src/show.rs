//! `SHOW TABLES`: the user's tables, without what the engine keeps beside them.

use datafusion::common::Result;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

use crate::depth;

/// Puts a query in the place of `SHOW TABLES`.
pub(crate) fn rewrite(statement: &mut Statement) -> Result<()> {
    let Statement::Statement(inner) = &*statement else { return Ok(()) };
    let ast::Statement::ShowTables { .. } = inner.as_ref() else { return Ok(()) };
    if inner.to_string() != "SHOW TABLES" {
        return Ok(());
    }
    let sql = "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY name";
    if let Some(query) = depth::parse(sql)?.pop() {
        *statement = query;
    }
    Ok(())
}
