//! UPDATE and DELETE.

use arrow_array::RecordBatch;
use datafusion::common::{Result, exec_err};
use datafusion::sql::sqlparser::ast::{
    Delete, Expr, FromTable, Ident, SelectItem, TableFactor, TableWithJoins, Update, UpdateTableFromKind,
};

use super::query::{alone, assigned, column, last, named, select};
use super::returning::done;
use super::write::{Changes, keys_of};
use super::{Done, Target, refuse};
use crate::names::normal;
use crate::{Params, Session};

impl Session {
    /// UPDATE: the rows as they are to be, beside what tells those that they replace.
    pub(super) async fn update(&self, target: Target, alias: Ident, update: Update, params: &Params) -> Result<Done> {
        let statement = format!("UPDATE {}", target.name);
        refuse(&statement, update.output.is_some(), "OUTPUT (RETURNING is)")?;
        refuse(&statement, update.or.is_some(), "OR")?;
        refuse(&statement, !update.order_by.is_empty() || update.limit.is_some(), "ORDER BY and LIMIT")?;
        refuse(&statement, !update.table.joins.is_empty(), "a join before SET (FROM after SET joins)")?;
        let others = match update.from {
            None => Vec::new(),
            Some(UpdateTableFromKind::BeforeSet(tables) | UpdateTableFromKind::AfterSet(tables)) => tables,
        };
        let set = assigned(update.assignments)?;
        self.replace_rows(&statement, target, &alias, set, others, update.selection, update.returning, params).await
    }

    /// Replaces the rows that are selected.
    #[allow(clippy::too_many_arguments, reason = "the parts of a statement")]
    async fn replace_rows(
        &self,
        statement: &str,
        target: Target,
        alias: &Ident,
        set: Vec<(String, Expr)>,
        others: Vec<TableWithJoins>,
        selection: Option<Expr>,
        returning: Option<Vec<SelectItem>>,
        params: &Params,
    ) -> Result<Done> {
        let writing = target.table.write()?;
        let (old, types) = target.row_columns()?;
        let scratch = self.scratch(target.stored()?)?;
        let mut items: Vec<_> =
            old.iter().enumerate().map(|(i, name)| named(column(alias, name), format!("_k{i}"))).collect();
        items.extend(target.new_values(statement, alias, set)?);
        let mut from = vec![alone(scratch.as_table(alias)?)];
        refuse_same_name(statement, alias, &others)?;
        from.extend(others);
        let types: Vec<_> = types.into_iter().chain(target.types()).collect();
        let stream = self.query(select(items, from, selection)?, &types, params).await?;
        let gathered = self.gather(stream).await?;
        drop(scratch);
        let (rows, count, rules, statement) = (gathered.rows, old.len(), target.rules.clone(), statement.to_owned());
        let new = || {
            let rows = |batch: &RecordBatch| rules.rows_of(&statement, batch, count..batch.num_columns());
            gathered.batches.iter().map(rows).collect()
        };
        let answer = self.returned(&target, alias, returning, new, params).await?;
        self.apply(writing, gathered, move |batches, transaction| {
            let mut changes = Changes { once: true, ..Changes::default() };
            for batch in batches {
                changes.gone.push(keys_of(&batch, count)?);
                changes.come.push(rules.rows_of(&statement, &batch, count..batch.num_columns())?);
            }
            changes.apply(&statement, transaction)?;
            Ok(rows)
        })
        .await
        .map(|rows| done(answer, rows))
    }

    /// DELETE: what tells the rows that go.
    pub(super) async fn delete(&self, target: Target, alias: Ident, delete: Delete, params: &Params) -> Result<Done> {
        let statement = format!("DELETE FROM {}", target.name);
        refuse(&statement, delete.output.is_some(), "OUTPUT (RETURNING is)")?;
        let (answers, using) = (delete.returning.is_some(), delete.using.is_some());
        // A row that several rows of the others match comes once for each of them.
        refuse(&statement, answers && using, "RETURNING beside USING (write WHERE ... IN (SELECT ...))")?;
        let writing = target.table.write()?;
        let (old, mut types) = target.row_columns()?;
        let scratch = self.scratch(target.stored()?)?;
        let mut items: Vec<_> =
            old.iter().enumerate().map(|(i, name)| named(column(&alias, name), format!("_k{i}"))).collect();
        if answers {
            items.extend(target.new_values(&statement, &alias, Vec::new())?);
            types.extend(target.types());
        }
        let mut from = vec![alone(scratch.as_table(&alias)?)];
        let others = delete.using.unwrap_or_default();
        refuse_same_name(&statement, &alias, &others)?;
        from.extend(others);
        let mut query = select(items, from, delete.selection)?;
        super::query::limit(&mut query, delete.order_by, delete.limit)?;
        let stream = self.query(query, &types, params).await?;
        let gathered = self.gather(stream).await?;
        drop(scratch);
        let (count, rules) = (old.len(), target.rules.clone());
        let gone = || {
            let rows = |batch: &RecordBatch| rules.rows_of(&statement, batch, count..batch.num_columns());
            gathered.batches.iter().map(rows).collect()
        };
        let answer = self.returned(&target, &alias, delete.returning, gone, params).await?;
        self.apply(writing, gathered, move |batches, transaction| {
            let gone = batches.iter().map(|batch| keys_of(batch, count)).collect::<Result<_>>()?;
            Changes { gone, ..Changes::default() }.apply(&statement, transaction)
        })
        .await
        .map(|rows| done(answer, rows))
    }
}

/// An error if another table has the name of the one that is changed: which of them a column is of could not be told.
fn refuse_same_name(statement: &str, alias: &Ident, others: &[TableWithJoins]) -> Result<()> {
    for TableWithJoins { relation, joins } in others {
        for table in std::iter::once(relation).chain(joins.iter().map(|join| &join.relation)) {
            if let TableFactor::Table { name, alias: None, args: None, .. } = table
                && last(name).is_ok_and(|last| normal(&last) == normal(alias))
            {
                return exec_err!(
                    "{statement}: {name} has the name of the table that is changed; write {name} AS another"
                );
            }
        }
    }
    Ok(())
}

/// The one table that a DELETE is from, and its other name.
pub(super) fn deleted_from(delete: &Delete) -> Result<&TableFactor> {
    let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
    match tables.as_slice() {
        [TableWithJoins { relation, joins }] if joins.is_empty() && delete.tables.is_empty() => Ok(relation),
        _ => exec_err!("DELETE: from one table at a time; USING names others that it depends on"),
    }
}
