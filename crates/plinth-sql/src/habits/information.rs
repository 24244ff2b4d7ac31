//! `information_schema.columns` with the types' names in SQL, and places that are counted from 1.

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{Ident, TableAlias, TableFactor};

use super::templates;
use crate::names::normal;

const COLUMNS: &str = "SELECT * REPLACE (ordinal_position + 1 AS ordinal_position, plinth_type_name(data_type) AS data_type) \
                       FROM information_schema.columns AS plinth_columns";
/// What the engine's own table is called there: a statement that is rewritten again has it already.
const OWN: &str = "plinth_columns";

/// Has a query select from what the engine's table is to say.
pub(super) fn of_table(table: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, alias, args: None, sample: None, .. } = table else { return Ok(()) };
    let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(normal)).collect();
    let parts = parts.unwrap_or_default();
    if parts.iter().map(String::as_str).rev().take(2).ne(["columns", "information_schema"]) || parts.len() > 3 {
        return Ok(());
    }
    if alias.as_ref().is_some_and(|alias| alias.name.value == OWN) {
        return Ok(());
    }
    let columns = || TableAlias { explicit: true, name: Ident::new("columns"), columns: Vec::new(), at: None };
    let alias = Some(alias.take().unwrap_or_else(columns));
    *table = TableFactor::Derived { lateral: false, subquery: templates::query(COLUMNS)?, alias, sample: None };
    Ok(())
}
