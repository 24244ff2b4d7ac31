//! Names in SQL.

use datafusion::sql::sqlparser::ast::Ident;

/// The schema of what statements read beside the tables that they name.
pub(crate) const SCRATCH: &str = "plinth_statement";

/// What a name means: its letters if it is quoted, else in lower case.
pub(crate) fn normal(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}
