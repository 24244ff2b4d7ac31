//! MERGE.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, BooleanArray};
use arrow_schema::DataType;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::{Result, exec_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, Merge, MergeAction, MergeClause, MergeClauseKind,
    MergeInsertKind, TableFactor,
};

use super::defaults::is_default;
use super::query::{all, assigned, binary, case, column, joined, last, marked, named, null, number, quoted, select};
use super::write::{Changes, keys_of};
use super::{Target, refuse};
use crate::names::normal;
use crate::{Params, Session};

/// The column that says of a row of the join that it has one of the source.
const MARK: &str = "_plinth_source";

/// What a clause does.
enum Action {
    Insert,
    Update,
    Delete,
}

/// A WHEN clause: when it applies, what it does, and the row that it makes.
struct Clause {
    condition: Expr,
    action: Action,
    values: Vec<Expr>,
}

impl Session {
    /// MERGE: each row of the join with the number of the first clause that applies, and the row that this makes.
    pub(super) async fn merge(&self, target: Target, alias: Ident, merge: Merge, params: &Params) -> Result<u64> {
        let statement = format!("MERGE INTO {}", target.name);
        refuse(&statement, merge.output.is_some(), "OUTPUT")?;
        let source_alias = alias_of(&merge.source)?;
        let is_same = normal(&source_alias) == normal(&alias);
        refuse(&statement, is_same, "a source of the same name (USING t AS another gives it one)")?;
        let mut conditions = merge.clauses.iter().filter_map(|clause| clause.predicate.as_ref());
        if let Some(condition) = conditions.find(|condition| self.rewriter().draws(condition)) {
            return exec_err!(
                "{statement}: WHEN ... AND {condition}: it would be another for each column; make it a column of the source"
            );
        }
        let writing = target.table.write()?;
        let (old, mut types) = target.row_columns()?;
        let kinds: Vec<MergeClauseKind> = merge.clauses.iter().map(|clause| clause.clause_kind).collect();
        let there = |name: &str, of: &Ident, there: bool| {
            let column = Box::new(column(of, name));
            if there { Expr::IsNotNull(column) } else { Expr::IsNull(column) }
        };
        let row = old.first().cloned().unwrap_or_default();
        let clauses = merge.clauses.into_iter().map(|clause| {
            let (in_target, in_source) = match clause.clause_kind {
                MergeClauseKind::Matched => (true, true),
                MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => (false, true),
                MergeClauseKind::NotMatchedBySource => (true, false),
            };
            let sides = [there(&row, &alias, in_target), there(MARK, &source_alias, in_source)];
            target.clause(&statement, &alias, clause, sides)
        });
        let clauses = clauses.collect::<Result<Vec<_>>>()?;

        let by_target =
            |kind: &MergeClauseKind| matches!(kind, MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget);
        let on = JoinConstraint::On(*merge.on);
        let how = match (kinds.iter().any(by_target), kinds.contains(&MergeClauseKind::NotMatchedBySource)) {
            (false, false) => JoinOperator::Inner(on),
            (true, false) => JoinOperator::RightOuter(on),
            (false, true) => JoinOperator::LeftOuter(on),
            (true, true) => JoinOperator::FullOuter(on),
        };
        let scratch = self.scratch(target.stored()?)?;
        let from = joined(scratch.as_table(&alias)?, marked(merge.source, MARK, &source_alias)?, how);
        let arms = clauses.iter().enumerate().map(|(i, clause)| (clause.condition.clone(), number(i)));
        let which = case(arms);
        let mut items: Vec<_> =
            old.iter().enumerate().map(|(i, name)| named(column(&alias, name), format!("_k{i}"))).collect();
        items.push(named(which.clone(), "_clause"));
        types.push(DataType::Int64);
        let mut actions = Vec::with_capacity(clauses.len());
        for (i, Clause { action, values, .. }) in clauses.into_iter().enumerate() {
            for (j, value) in values.into_iter().enumerate() {
                // Not evaluated for rows that it is not about: it may be an error there.
                let applies = binary(which.clone(), BinaryOperator::Eq, number(i));
                items.push(named(case([(applies, value)]), format!("_c{i}_{j}")));
            }
            if !matches!(action, Action::Delete) {
                types.extend(target.types());
            }
            actions.push(action);
        }
        let stream = self.query(select(items, vec![from], None)?, &types, params).await?;
        let gathered = self.gather(stream).await?;
        drop(scratch);

        let (rules, keys) = (target.rules.clone(), old.len());
        self.apply(writing, gathered, move |batches, transaction| {
            let mut changes = Changes { once: true, ..Changes::default() };
            let mut changed = 0;
            for batch in batches {
                let mut column = keys + 1;
                let Some(which) = batch.columns().get(keys).and_then(|which| which.as_primitive_opt::<Int64Type>())
                else {
                    return exec_err!("{statement}: the number of the clause is missing");
                };
                for (i, action) in (0_i64..).zip(&actions) {
                    let applies: BooleanArray =
                        (0..which.len()).map(|row| Some(which.is_valid(row) && which.value(row) == i)).collect();
                    let rows = filter_record_batch(&batch, &applies)?;
                    changed += rows.num_rows() as u64;
                    if !matches!(action, Action::Insert) {
                        changes.gone.push(keys_of(&rows, keys)?);
                    }
                    if !matches!(action, Action::Delete) {
                        let end = column + rules.schema().fields().len();
                        changes.come.push(rules.rows_of(&statement, &rows, column..end)?);
                        column = end;
                    }
                }
            }
            changes.apply(&statement, transaction)?;
            Ok(changed)
        })
        .await
    }
}

impl Target {
    fn clause(&self, statement: &str, alias: &Ident, clause: MergeClause, sides: [Expr; 2]) -> Result<Clause> {
        let MergeClause { clause_kind, predicate, action, .. } = clause;
        let condition = all(sides.into_iter().chain(predicate)).unwrap_or_else(null);
        let matched = matches!(clause_kind, MergeClauseKind::Matched | MergeClauseKind::NotMatchedBySource);
        let schema = self.schema();
        let (action, values) = match action {
            MergeAction::Delete { .. } if matched => (Action::Delete, Vec::new()),
            MergeAction::Update(update) if matched => {
                let oracle = update.update_predicate.is_some() || update.delete_predicate.is_some();
                refuse(statement, oracle, "WHERE after SET (write WHEN MATCHED AND ...)")?;
                (Action::Update, self.values(statement, alias, assigned(update.assignments)?)?)
            }
            MergeAction::Insert(insert) if !matched => {
                refuse(
                    statement,
                    insert.insert_predicate.is_some(),
                    "WHERE after VALUES (write WHEN NOT MATCHED AND ...)",
                )?;
                let names = match insert.columns.as_slice() {
                    [] => schema.fields().iter().map(|field| field.name().clone()).collect(),
                    columns => columns.iter().map(|name| Ok(last(name)?.value)).collect::<Result<Vec<_>>>()?,
                };
                let MergeInsertKind::Values(mut rows) = insert.kind else {
                    return exec_err!("{statement}: INSERT ROW is not supported; write INSERT (...) VALUES (...)");
                };
                let row = rows.rows.pop().map(|row| row.content).unwrap_or_default();
                if row.len() != names.len() || !rows.rows.is_empty() {
                    return exec_err!(
                        "{statement}: INSERT of {} columns takes one row of as many values, not {}",
                        names.len(),
                        row.len()
                    );
                }
                let mut given: Vec<(String, Expr)> = names.into_iter().zip(row).collect();
                let values = schema.fields().iter().map(|field| {
                    let at = given.iter().position(|(name, _)| name == field.name());
                    match at.map(|at| given.swap_remove(at).1) {
                        Some(value) if !is_default(&value) => value,
                        _ => self.default_of(field.name()),
                    }
                });
                let values = values.collect();
                if let Some((name, _)) = given.first() {
                    return exec_err!("{statement}: no column {name:?}, or named twice");
                }
                (Action::Insert, values)
            }
            _ => {
                return exec_err!(
                    "{statement}: WHEN {clause_kind} can't be followed by that: a row that is there is updated or deleted, one that \
                     is not is inserted"
                );
            }
        };
        Ok(Clause { condition, action, values })
    }
}

/// What a source is called.
fn alias_of(source: &TableFactor) -> Result<Ident> {
    match source {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Ok(quoted(crate::names::normal(&alias.name)))
        }
        TableFactor::Table { name, .. } => last(name),
        _ => exec_err!("MERGE: the source needs a name: USING (...) AS s"),
    }
}
