//! Queries put together from parts of statements.

use crate::names::normal;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, CaseWhen, CastKind, DataType, Expr, Ident, JoinOperator, LimitClause,
    ObjectName, ObjectNamePart, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, Statement, TableFactor,
    TableWithJoins, Value,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// `SELECT items FROM tables WHERE selection`.
pub(super) fn select(items: Vec<SelectItem>, from: Vec<TableWithJoins>, selection: Option<Expr>) -> Result<Query> {
    let mut query = template("SELECT 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        (select.projection, select.from, select.selection) = (items, from, selection);
    }
    Ok(query)
}

fn template(sql: &str) -> Result<Query> {
    let parsed = Parser::parse_sql(&GenericDialect {}, sql)?;
    match parsed.into_iter().next() {
        Some(Statement::Query(query)) => Ok(*query),
        _ => Err(DataFusionError::Internal(format!("{sql}: no query"))),
    }
}

/// What a query that was put together by hand selects from.
fn from(sql: &str) -> Result<TableFactor> {
    match *template(sql)?.body {
        SetExpr::Select(mut select) => select.from.pop().map(|from| from.relation),
        _ => None,
    }
    .ok_or_else(|| DataFusionError::Internal(format!("{sql}: selects from nothing")))
}

/// `name AS alias`.
pub(super) fn table(name: ObjectName, alias: &Ident) -> Result<TableFactor> {
    let mut table = from("SELECT 1 FROM x AS y")?;
    if let TableFactor::Table { name: its_name, alias: Some(its_alias), .. } = &mut table {
        (*its_name, its_alias.name) = (name, alias.clone());
    }
    Ok(table)
}

/// `(SELECT *, TRUE AS mark FROM source) AS alias`.
pub(super) fn marked(source: TableFactor, mark: &str, alias: &Ident) -> Result<TableFactor> {
    let mut table = from("SELECT 1 FROM (SELECT * FROM x) AS y")?;
    if let TableFactor::Derived { subquery, alias: Some(its_alias), .. } = &mut table {
        its_alias.name = alias.clone();
        if let SetExpr::Select(select) = subquery.body.as_mut() {
            select.projection.push(named(Expr::Value(Value::Boolean(true).into()), mark));
            select.from = vec![alone(source)];
        }
    }
    Ok(table)
}

/// `(query) AS alias`.
pub(super) fn derived(query: Query, alias: &Ident) -> Result<TableFactor> {
    let mut table = from("SELECT 1 FROM (SELECT 1) AS y")?;
    if let TableFactor::Derived { subquery, alias: Some(its_alias), .. } = &mut table {
        its_alias.name = alias.clone();
        **subquery = query;
    }
    Ok(table)
}

/// A table that is joined with none.
pub(super) fn alone(relation: TableFactor) -> TableWithJoins {
    TableWithJoins { relation, joins: Vec::new() }
}

/// Two tables, joined.
pub(super) fn joined(left: TableFactor, right: TableFactor, how: JoinOperator) -> TableWithJoins {
    let join = datafusion::sql::sqlparser::ast::Join { relation: right, global: false, join_operator: how };
    TableWithJoins { relation: left, joins: vec![join] }
}

/// `expr AS name`.
pub(super) fn named(expr: Expr, name: impl Into<String>) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: quoted(name) }
}

/// A name as it is.
pub(super) fn quoted(name: impl Into<String>) -> Ident {
    Ident::with_quote('"', name)
}

/// `table.name`.
pub(super) fn column(table: &Ident, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![table.clone(), quoted(name)])
}

/// NULL.
pub(super) fn null() -> Expr {
    Expr::Value(Value::Null.into())
}

/// A number.
pub(super) fn number(value: usize) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).into())
}

/// `CAST(value AS type)`.
pub(super) fn cast(value: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(value), data_type, array: false, format: None }
}

/// `left op right`.
pub(super) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    let nested = |expr| Box::new(Expr::Nested(Box::new(expr)));
    Expr::BinaryOp { left: nested(left), op, right: nested(right) }
}

/// All conditions at once; none if there are none.
pub(super) fn all(conditions: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    conditions.into_iter().reduce(|one, other| binary(one, BinaryOperator::And, other))
}

/// `CASE WHEN condition THEN result ... END`.
pub(super) fn case(arms: impl IntoIterator<Item = (Expr, Expr)>) -> Expr {
    let arm = |(condition, result)| CaseWhen { condition, result };
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: arms.into_iter().map(arm).collect(),
        else_result: None,
    }
}

/// The last part of a name.
pub(super) fn last(name: &ObjectName) -> Result<Ident> {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(ident)) => Ok(quoted(normal(ident))),
        _ => exec_err!("{name}: is no name of a table or column"),
    }
}

/// The columns that are set, and what to.
pub(super) fn assigned(assignments: Vec<Assignment>) -> Result<Vec<(String, Expr)>> {
    let mut set: Vec<(String, Expr)> = Vec::new();
    let mut add = |target: &ObjectName, value: Expr| {
        let name = last(target)?.value;
        if set.iter().any(|(known, _)| *known == name) {
            return exec_err!("SET {name}: a column can be set once");
        }
        set.push((name, value));
        Ok(())
    };
    for Assignment { target, value } in assignments {
        match (target, value) {
            (AssignmentTarget::ColumnName(name), value) => add(&name, value)?,
            (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
                names.iter().zip(values).try_for_each(|(name, value)| add(name, value))?;
            }
            (AssignmentTarget::Tuple(_), _) => {
                return exec_err!("SET (...): several columns take as many values: SET (a, b) = (1, 2)");
            }
        }
    }
    Ok(set)
}

/// Adds ORDER BY and LIMIT.
pub(super) fn limit(query: &mut Query, order_by: Vec<OrderByExpr>, limit: Option<Expr>) -> Result<()> {
    let mut other = template("SELECT 1 ORDER BY 1 LIMIT 1")?;
    if !order_by.is_empty()
        && let Some(order) = &mut other.order_by
    {
        order.kind = OrderByKind::Expressions(order_by);
        query.order_by = other.order_by;
    }
    if let (Some(wanted), Some(LimitClause::LimitOffset { limit, .. })) = (limit, &mut other.limit_clause) {
        *limit = Some(wanted);
        query.limit_clause = other.limit_clause;
    }
    Ok(())
}
