//! The types of the parameters of a statement that changes rows: those of the columns that they are stored in or compared with.
//!
//! They are told by a query in its place, `SELECT 1 FROM t WHERE a = $1 AND b = $2`, for the engine plans no such statement.

use std::collections::BTreeMap;

use arrow_schema::DataType;
use datafusion::common::Result;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    self, Assignment, AssignmentTarget, BinaryOperator, ConflictTarget, Delete, Expr, FromTable, Ident, Insert,
    ObjectName, OnConflictAction, OnInsert, Query, SelectItem, SetExpr, TableObject, TableWithJoins, Update, Value,
    ValueWithSpan,
};

use super::query;
use crate::Session;
use crate::params::types_of;

/// What a place asks for, if something does.
pub(crate) type Types = BTreeMap<String, Option<DataType>>;

impl Session {
    /// The types of the places of INSERT, UPDATE and DELETE. Of another statement, and of one that can't be planned so, nothing is said.
    pub(crate) async fn types_of_change(&self, statement: &Statement) -> Result<Types> {
        let Statement::Statement(statement) = statement else { return Ok(Types::new()) };
        let mut types = Types::new();
        let (table, conditions) = match statement.as_ref() {
            ast::Statement::Insert(insert) => {
                if let Some(source) = insert.source.as_ref().filter(|source| !is_values(source)) {
                    types = self.types_in(source.as_ref().clone()).await;
                }
                let TableObject::TableName(name) = &insert.table else { return Ok(types) };
                let columns = match insert.columns.is_empty() {
                    true => self.named_columns(name).await,
                    false => insert.columns.iter().filter_map(last).cloned().collect(),
                };
                (query::table(name.clone(), &Ident::new("t"))?, inserted(insert, &columns))
            }
            ast::Statement::Update(update) if update.table.joins.is_empty() && update.from.is_none() => {
                (update.table.relation.clone(), updated(update))
            }
            ast::Statement::Delete(Delete { from, using: None, selection, .. }) => {
                let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = from;
                let [TableWithJoins { relation, .. }] = tables.as_slice() else { return Ok(types) };
                (relation.clone(), selection.iter().cloned().collect())
            }
            _ => return Ok(types),
        };
        if let Some(condition) = all(conditions) {
            let one = Expr::Value(Value::Number("1".to_owned(), false).into());
            let items = vec![SelectItem::UnnamedExpr(one)];
            types.extend(self.types_in(query::select(items, vec![query::alone(table)], Some(condition))?).await);
        }
        Ok(types)
    }

    /// The types of a query's places; none if it can't be planned.
    async fn types_in(&self, query: Query) -> Types {
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let planned = self.rewriter().planned(statement).await;
        planned.and_then(|(_, plan)| types_of(&plan)).unwrap_or_default()
    }

    async fn named_columns(&self, name: &ObjectName) -> Vec<Ident> {
        let Ok(reference) = object_name_to_table_reference(name.clone(), true) else { return Vec::new() };
        let Ok(table) = self.context.table_provider(reference).await else { return Vec::new() };
        table.schema().fields().iter().map(|field| Ident::with_quote('"', field.name())).collect()
    }
}

fn is_values(query: &Query) -> bool {
    matches!(query.body.as_ref(), SetExpr::Values(_))
}

/// The conditions that say what is stored in which column.
fn inserted(insert: &Insert, columns: &[Ident]) -> Vec<Expr> {
    let mut conditions = Vec::new();
    if let Some(SetExpr::Values(values)) = insert.source.as_ref().map(|source| source.body.as_ref()) {
        for row in &values.rows {
            let stored = columns.iter().zip(row.iter()).filter(|(_, value)| is_place(value));
            conditions.extend(stored.map(|(column, value)| equal(column, value)));
        }
    }
    if let Some(OnInsert::OnConflict(conflict)) = &insert.on
        && let OnConflictAction::DoUpdate(update) = &conflict.action
        && !matches!(conflict.conflict_target, Some(ConflictTarget::OnConstraint(_)))
    {
        conditions.extend(assigned(&update.assignments));
    }
    conditions
}

fn updated(update: &Update) -> Vec<Expr> {
    let mut conditions = assigned(&update.assignments);
    conditions.extend(update.selection.clone());
    conditions
}

fn assigned(assignments: &[Assignment]) -> Vec<Expr> {
    let of = |assignment: &Assignment| match &assignment.target {
        AssignmentTarget::ColumnName(name) if is_place(&assignment.value) => {
            Some(equal(last(name)?, &assignment.value))
        }
        _ => None,
    };
    assignments.iter().filter_map(of).collect()
}

fn equal(column: &Ident, value: &Expr) -> Expr {
    let (left, right) = (Box::new(Expr::Identifier(column.clone())), Box::new(value.clone()));
    Expr::BinaryOp { left, op: BinaryOperator::Eq, right }
}

fn is_place(value: &Expr) -> bool {
    matches!(value, Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. }))
}

fn last(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(|part| part.as_ident())
}

/// Conditions as one, with as few levels as there can be.
fn all(mut conditions: Vec<Expr>) -> Option<Expr> {
    let both = |one, other| Expr::BinaryOp { left: Box::new(one), op: BinaryOperator::And, right: Box::new(other) };
    while conditions.len() > 1 {
        let mut rest = conditions.into_iter();
        let mut pairs = Vec::with_capacity(rest.len().div_ceil(2));
        while let Some(one) = rest.next() {
            pairs.push(match rest.next() {
                Some(other) => both(one, other),
                None => one,
            });
        }
        conditions = pairs;
    }
    conditions.pop()
}
