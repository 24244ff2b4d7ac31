//! INSERT.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::Schema;
use datafusion::arrow::compute::{concat_batches, filter_record_batch};
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::datasource::{MemTable, empty::EmptyTable};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, ConflictTarget, DoUpdate, Ident, Insert, OnConflictAction, OnInsert, SelectItem, TableObject,
};
use futures::StreamExt;
use plinth_datafusion::Writing;
use plinth_rowstore::{MultiGet, TableError};
use tokio::sync::mpsc;

use super::query::{all, alone, assigned, binary, column, named, quoted, select};
use super::returning::done;
use super::write::{Changes, Gathered, blocking, explain, keys_of};
use super::{Done, Target, refuse};
use crate::names::normal;
use crate::{Params, Session};

/// Bytes of rows beyond which an INSERT writes segments of them rather than the log.
const MANY: usize = 64 << 20;

/// Batches that wait for the segments' writer.
const IN_FLIGHT: usize = 2;

impl Session {
    /// INSERT: rows, and what becomes of those whose keys are there.
    pub(super) async fn insert(&self, target: Target, mut insert: Insert, params: &Params) -> Result<Done> {
        let statement = format!("INSERT INTO {}", target.name);
        refuse(&statement, insert.output.is_some(), "OUTPUT (RETURNING is)")?;
        let returning = insert.returning.take();
        refuse(&statement, insert.or.is_some() || insert.ignore, "OR and IGNORE (ON CONFLICT does that)")?;
        refuse(&statement, insert.overwrite || insert.replace_into, "OVERWRITE and REPLACE (ON CONFLICT does that)")?;
        let alias = insert.table_alias.take().map_or_else(|| target.alias.clone(), |alias| alias.alias);
        let conflict = match insert.on.take() {
            None => None,
            Some(OnInsert::OnConflict(conflict)) => {
                target.check_conflict(&statement, conflict.conflict_target.as_ref())?;
                Some(conflict.action)
            }
            Some(_) => return exec_err!("{statement}: ON DUPLICATE KEY is not supported; ON CONFLICT is"),
        };
        let writing = target.table.write()?;
        // What DataFusion makes of the columns, their order and their types is right; what can't be NULL, we say.
        let schema = target.schema();
        let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let columns = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let columns = self.scratch(Arc::new(EmptyTable::new(columns)))?;
        let rows = target.fill(&statement, &mut insert)?;
        let _numbers = self.kept.sequences.for_rows(rows);
        let given = self.given(&mut insert).await?;
        insert.table = TableObject::TableName(columns.name());
        let plan = Statement::Statement(Box::new(ast::Statement::Insert(insert)));
        let LogicalPlan::Dml(plan) = self.context.state().statement_to_plan(plan).await? else {
            return exec_err!("{statement}: is no INSERT");
        };
        drop(columns);
        let plan = Arc::unwrap_or_clone(plan.input);
        let plan = match given {
            Some(given) => given.put(plan)?,
            None => plan,
        };
        let stream = self.run(plan, params).await?;
        match conflict {
            None if returning.is_none() => self.insert_all(statement, target, writing, stream).await.map(Done::Rows),
            None => {
                let (gathered, rules) = (self.gather(stream).await?, target.rules.clone());
                let rows = |batch: &RecordBatch| rules.rows_of(&statement, batch, 0..batch.num_columns());
                let come = gathered.batches.iter().map(rows).collect::<Result<Vec<_>>>()?;
                let answer = self.returned(&target, &alias, returning, || Ok(come.clone()), params).await?;
                let inserted = self.apply(writing, gathered, move |batches, transaction| {
                    let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
                    Changes { come, ..Changes::default() }.apply(&statement, transaction)?;
                    Ok(rows)
                });
                Ok(done(answer, inserted.await?))
            }
            Some(OnConflictAction::DoNothing) => {
                refuse(
                    &statement,
                    returning.is_some(),
                    "RETURNING beside DO NOTHING (which rows are new shows as they are written)",
                )?;
                let (gathered, rules) = (self.gather(stream).await?, target.rules.clone());
                self.apply(writing, gathered, move |batches, transaction| {
                    let mut inserted = 0;
                    for batch in batches {
                        let rows = rules.rows_of(&statement, &batch, 0..batch.num_columns())?;
                        let added = transaction.insert_new(&rows).map_err(|error| explain(&statement, error))?;
                        inserted += added.into_iter().map(u64::from).sum::<u64>();
                    }
                    Ok(inserted)
                })
                .await
                .map(Done::Rows)
            }
            Some(OnConflictAction::DoUpdate(update)) => {
                self.upsert(statement, target, &alias, writing, stream, update, returning, params).await
            }
        }
    }

    /// All rows of a stream, which must be new. Many go to segments directly.
    pub(super) async fn insert_all(
        &self,
        statement: String,
        target: Target,
        writing: Writing,
        mut stream: SendableRecordBatchStream,
    ) -> Result<u64> {
        let mut gathered = self.nothing_gathered();
        while let Some(batch) = stream.next().await {
            gathered.push(batch?)?;
            if gathered.bytes() > MANY && !writing.is_part() {
                return self.import(statement, target, gathered, stream).await;
            }
        }
        let (rows, rules) = (gathered.rows, target.rules.clone());
        self.apply(writing, gathered, move |batches, transaction| {
            let come = batches.iter().map(|batch| rules.rows_of(&statement, batch, 0..batch.num_columns()));
            let changes = Changes { come: come.collect::<Result<_>>()?, ..Changes::default() };
            changes.apply(&statement, transaction)?;
            Ok(rows)
        })
        .await
    }

    /// Rows that are there and those that are still to come, written to segments.
    async fn import(
        &self,
        statement: String,
        target: Target,
        gathered: Gathered,
        mut stream: SendableRecordBatchStream,
    ) -> Result<u64> {
        let (table, rules) = (self.stores.writer(target.table.folder())?, target.rules.clone());
        let (sender, mut batches) = mpsc::channel::<Option<RecordBatch>>(IN_FLIGHT);
        let importing = blocking(move || {
            let Gathered { batches: first, memory, .. } = gathered;
            let mut problem = None;
            let rest = std::iter::from_fn(|| match batches.blocking_recv() {
                Some(Some(batch)) => Some(Ok(batch)),
                Some(None) => None,
                // The sender has gone before the end: nothing of it is to be there.
                None => Some(Err(DataFusionError::Execution(format!("{statement}: given up")))),
            });
            let rows = first.into_iter().map(Ok).chain(rest).map(|batch| {
                let rows = batch.and_then(|batch| rules.rows_of(&statement, &batch, 0..batch.num_columns()));
                rows.map_err(|error| {
                    problem = Some(error);
                    TableError::ReadOnly
                })
            });
            let imported = table.import(rows);
            drop(memory);
            match (imported, problem) {
                (_, Some(problem)) => Err(problem),
                (Err(error), None) => Err(explain(&statement, error)),
                (Ok(committed), None) => Ok(committed.inserted),
            }
        });
        let feeding = async move {
            while let Some(batch) = stream.next().await {
                if sender.send(Some(batch?)).await.is_err() {
                    // It has the reason.
                    return Ok(());
                }
            }
            let _ = sender.send(None).await;
            Ok::<_, DataFusionError>(())
        };
        let (fed, imported) = futures::join!(feeding, importing);
        fed?;
        imported
    }

    /// Rows of which those whose keys are there change the rows that have them.
    #[allow(clippy::too_many_arguments, reason = "the parts of a statement")]
    async fn upsert(
        &self,
        statement: String,
        target: Target,
        alias: &Ident,
        writing: Writing,
        stream: SendableRecordBatchStream,
        update: DoUpdate,
        returning: Option<Vec<SelectItem>>,
        params: &Params,
    ) -> Result<Done> {
        let gathered = self.gather(stream).await?;
        let (schema, rules) = (target.schema(), target.rules.clone());
        let whole = gathered.batches.iter().map(|batch| rules.rows_of(&statement, batch, 0..batch.num_columns()));
        let whole = concat_batches(&schema, whole.collect::<Result<Vec<_>>>()?.iter())?;
        let key = target.table.key().to_vec();
        let positions = key.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
        let keys = whole.project(&positions)?;
        let (writing, MultiGet { rows: there, found }) = blocking({
            let statement = statement.clone();
            move || {
                let many = writing
                    .read(|transaction| transaction.get_batch(&keys).map_err(|error| explain(&statement, error)))?;
                Ok((writing, many))
            }
        })
        .await?;
        let known: BooleanArray = found.iter().map(|place| Some(place.is_some())).collect();
        let fresh: BooleanArray = found.iter().map(|place| Some(place.is_none())).collect();
        let (excluded, new) = (filter_record_batch(&whole, &known)?, filter_record_batch(&whole, &fresh)?);
        // Each row that is there once, though several rows may have its key.
        let mut seen = HashSet::new();
        let first: BooleanArray = found.iter().flatten().map(|place| Some(seen.insert(*place))).collect();
        let there = match there.num_rows() == first.len() {
            true => filter_record_batch(&there, &first)?,
            false => there,
        };

        let excluded_alias = quoted("excluded");
        let others = self.scratch(Arc::new(MemTable::try_new(Arc::clone(&schema), vec![vec![excluded]])?))?;
        let own = self.scratch(Arc::new(MemTable::try_new(Arc::clone(&schema), vec![vec![there]])?))?;
        let same =
            key.iter().map(|name| binary(column(alias, name), BinaryOperator::Eq, column(&excluded_alias, name)));
        let mut items: Vec<_> =
            key.iter().enumerate().map(|(i, name)| named(column(alias, name), format!("_k{i}"))).collect();
        items.extend(target.new_values(&statement, alias, assigned(update.assignments)?)?);
        let from = vec![alone(own.as_table(alias)?), alone(others.as_table(&excluded_alias)?)];
        let types: Vec<_> = target.row_columns()?.1.into_iter().chain(target.types()).collect();
        let query = select(items, from, all(same.chain(update.selection)))?;
        let stream = self.query(query, &types, params).await?;
        let updated = self.gather(stream).await?;
        drop((others, own));
        let rows = updated.rows + new.num_rows() as u64;
        let count = key.len();
        let all = || {
            let rows = |batch: &RecordBatch| rules.rows_of(&statement, batch, count..batch.num_columns());
            updated.batches.iter().map(rows).chain([Ok(new.clone())]).collect()
        };
        let answer = self.returned(&target, alias, returning, all, params).await?;
        self.apply(writing, updated, move |batches, transaction| {
            let mut changes = Changes { once: true, ..Changes::default() };
            for batch in batches {
                changes.gone.push(keys_of(&batch, count)?);
                changes.come.push(rules.rows_of(&statement, &batch, count..batch.num_columns())?);
            }
            changes.come.push(new);
            changes.apply(&statement, transaction)?;
            drop(gathered);
            Ok(rows)
        })
        .await
        .map(|rows| done(answer, rows))
    }
}

impl Target {
    /// Conflicts are those of the primary key: there is no other.
    fn check_conflict(&self, statement: &str, target: Option<&ConflictTarget>) -> Result<()> {
        let key = self.table.key();
        if key.is_empty() {
            return exec_err!("{statement}: ON CONFLICT: the table has no primary key");
        }
        let names: HashSet<String> = match target {
            None => return Ok(()),
            Some(ConflictTarget::Columns(columns)) => columns.iter().map(normal).collect(),
            Some(ConflictTarget::OnConstraint(name)) => {
                return exec_err!("{statement}: ON CONFLICT ON CONSTRAINT {name}: name the columns of the key instead");
            }
        };
        if names == key.iter().cloned().collect() {
            return Ok(());
        }
        exec_err!("{statement}: ON CONFLICT: the primary key is ({})", key.join(", "))
    }
}
