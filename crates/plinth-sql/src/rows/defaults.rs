//! DEFAULT: the values of columns that a statement gives none.

use datafusion::common::{Result, exec_err};
use datafusion::sql::sqlparser::ast::{Expr, Insert, ObjectName, Query, SelectItem, SetExpr};

use super::Target;
use super::query::{alone, derived, last, null, quoted, select};

/// Whether an expression is the word DEFAULT.
pub(super) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default"))
}

impl Target {
    /// The value of a column that is given none.
    pub(super) fn default_of(&self, column: &str) -> Expr {
        self.rules.default(column).cloned().unwrap_or_else(null)
    }

    /// Puts defaults in the places of DEFAULT and of columns that an INSERT does not name. Answers how many rows are written out.
    pub(super) fn fill(&self, statement: &str, insert: &mut Insert) -> Result<usize> {
        let schema = self.schema();
        let Some(query) = insert.source.as_mut() else {
            if !insert.columns.is_empty() || !insert.assignments.is_empty() || insert.format_clause.is_some() {
                return exec_err!("{statement}: VALUES or a query is missing");
            }
            // INSERT INTO t DEFAULT VALUES
            let row = schema.fields().iter().map(|field| SelectItem::UnnamedExpr(self.default_of(field.name())));
            insert.source = Some(Box::new(select(row.collect(), Vec::new(), None)?));
            return Ok(1);
        };
        let named = insert.columns.iter().map(|name| Ok(last(name)?.value)).collect::<Result<Vec<_>>>()?;
        let missing: Vec<&String> = match named.is_empty() {
            true => Vec::new(),
            false => {
                let fields = schema.fields().iter().map(|field| field.name());
                fields.filter(|name| !named.contains(name) && self.rules.default(name).is_some()).collect()
            }
        };
        let given = match named.is_empty() {
            true => schema.fields().iter().map(|field| field.name().clone()).collect(),
            false => named,
        };
        let mut count = 0;
        if let Some(rows) = values_of(query) {
            count = rows.len();
            if !missing.is_empty() && rows.iter().any(|row| row.content.len() != given.len()) {
                return exec_err!(
                    "{statement}: a row has not as many values as there are names of columns, {}",
                    given.len()
                );
            }
            for row in rows {
                for (value, column) in row.content.iter_mut().zip(&given) {
                    if is_default(value) {
                        *value = self.default_of(column);
                    }
                }
                row.content.extend(missing.iter().map(|column| self.default_of(column)));
            }
        } else if !missing.is_empty() {
            let inner = std::mem::replace(query.as_mut(), select(Vec::new(), Vec::new(), None)?);
            let mut items = vec![SelectItem::Wildcard(Default::default())];
            items.extend(missing.iter().map(|column| SelectItem::UnnamedExpr(self.default_of(column))));
            **query = select(items, vec![alone(derived(inner, &quoted("given"))?)], None)?;
        }
        insert.columns.extend(missing.into_iter().map(|column| ObjectName::from(vec![quoted(column)])));
        Ok(count)
    }
}

/// The rows of a query that is `VALUES (...), (...)`.
fn values_of(query: &mut Query) -> Option<&mut Vec<datafusion::sql::sqlparser::ast::Parens<Vec<Expr>>>> {
    let plain = query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none();
    match query.body.as_mut() {
        SetExpr::Values(values) if plain => Some(&mut values.rows),
        _ => None,
    }
}
