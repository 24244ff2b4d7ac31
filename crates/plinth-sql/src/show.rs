//! `SHOW TABLES`: the user's tables, without what the engine keeps beside them.

use datafusion::common::Result;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

use crate::depth;
use crate::names::SCRATCH;

/// Puts a query in the place of `SHOW TABLES` and `SHOW ALL TABLES`.
pub(crate) fn rewrite(statement: &mut Statement) -> Result<()> {
    let Statement::Statement(inner) = &*statement else { return Ok(()) };
    let text = || inner.to_string().to_ascii_uppercase();
    let sql = match inner.as_ref() {
        ast::Statement::ShowTables { .. } if text() == "SHOW TABLES" => {
            "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY name"
                .to_owned()
        }
        ast::Statement::ShowVariable { .. } if matches!(text().as_str(), "SHOW ALL TABLES" | "SHOW ALL.TABLES") => format!(
            "SELECT table_schema AS schema, table_name AS name, table_type AS type FROM information_schema.tables \
             WHERE table_schema NOT IN ('information_schema', '{SCRATCH}') ORDER BY schema, name"
        ),
        _ => return Ok(()),
    };
    if let Some(query) = depth::parse(&sql)?.pop() {
        *statement = query;
    }
    Ok(())
}
