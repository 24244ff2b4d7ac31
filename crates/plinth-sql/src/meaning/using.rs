//! `RIGHT JOIN ... USING (k)` and `FULL JOIN ... USING (k)`, whose column `k` is that of both sides: the engine takes the left one's,
//! which is NULL where a row has no partner there. Statements that ask for this column are refused.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr, Visit, Visitor, visit_expressions,
};

/// An error if a statement asks for a column that the engine would take from the wrong side.
pub(crate) fn check(statement: &Statement) -> Result<()> {
    let mut check = Check;
    let checked = match statement {
        Statement::Statement(inner) => inner.visit(&mut check),
        Statement::Explain(explain) => return self::check(&explain.statement),
        Statement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => query.visit(&mut check),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    };
    match checked {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Check;

impl Visitor for Check {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<DataFusionError> {
        let SetExpr::Select(select) = query.body.as_ref() else { return ControlFlow::Continue(()) };
        match query.order_by.as_ref().map_or(Ok(()), |order| checked(select, order)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<DataFusionError> {
        match checked(select, select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// An error if a part of a query names a column of a join of its FROM that both sides have.
fn checked(select: &Select, part: &impl Visit) -> Result<()> {
    for join in select.from.iter().flat_map(|from| &from.joins) {
        let (word, constraint) = match &join.join_operator {
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => ("RIGHT", constraint),
            JoinOperator::FullOuter(constraint) => ("FULL", constraint),
            _ => continue,
        };
        let columns = match constraint {
            JoinConstraint::Using(columns) => columns,
            JoinConstraint::Natural => {
                return plan_err!(
                    "NATURAL {word} JOIN: is not supported; write ON l.k = r.k, and coalesce(l.k, r.k) for the column of both"
                );
            }
            _ => continue,
        };
        let names: Vec<String> = columns.iter().map(|name| name.to_string().to_lowercase()).collect();
        let all = select.projection.iter().any(|item| matches!(item, SelectItem::Wildcard(_)));
        let named = visit_expressions(part, |expr| match expr {
            Expr::Identifier(name) if names.contains(&name.to_string().to_lowercase()) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        if all || named.is_break() {
            let k = names.first().map_or("k", String::as_str);
            return plan_err!(
                "{word} JOIN with USING: the column {k} of both sides is not supported; write ON l.{k} = r.{k}, and \
                 coalesce(l.{k}, r.{k}) for it"
            );
        }
    }
    Ok(())
}
