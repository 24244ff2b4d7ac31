//! CREATE SEQUENCE and DROP SEQUENCE.

use datafusion::catalog::SchemaProvider;
use datafusion::common::{ResolvedTableReference, Result, TableReference, exec_err};
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{ObjectName, Statement};

use crate::catalog::Sequence;
use crate::database::{Entry, PUBLIC};
use crate::rows::{DEFAULT, sequences_of_default};
use crate::sequences::missing;
use crate::{Session, engine};

impl Session {
    /// CREATE SEQUENCE: of the folder that its name says, or of the session.
    pub(super) fn create_sequence(&self, statement: &Statement) -> Result<()> {
        let Statement::CreateSequence { temporary, if_not_exists, name, data_type, sequence_options, owned_by } =
            statement
        else {
            return exec_err!("{statement}: makes no sequence");
        };
        let statement = format!("CREATE SEQUENCE {name}");
        if let Some(owner) = owned_by {
            return exec_err!("{statement}: OWNED BY {owner} is not supported: DROP SEQUENCE removes it");
        }
        let sequence = Sequence::of(&statement, data_type.as_ref(), sequence_options)?;
        let name = self.resolved(object_name_to_table_reference(name.clone(), true)?);
        if !temporary && !self.schemas.has(&name.schema)? {
            return exec_err!("{statement}: schema {:?} not found", name.schema.as_ref());
        }
        self.kept.sequences.create(&statement, name, sequence, (*temporary, *if_not_exists))
    }

    /// DROP SEQUENCE: not of one that a column takes its values from.
    pub(super) async fn drop_sequence(&self, written: &ObjectName, if_exists: bool, cascade: bool) -> Result<()> {
        if cascade {
            return exec_err!(
                "DROP SEQUENCE {written} CASCADE: not supported; ALTER TABLE t ALTER COLUMN c DROP DEFAULT first"
            );
        }
        let name = self.resolved(object_name_to_table_reference(written.clone(), true)?);
        if let Some((table, column)) = self.column_of_sequence(&name).await? {
            return exec_err!(
                "DROP SEQUENCE {written}: column {column:?} of table {table} takes its values from it; \
                 ALTER TABLE {table} ALTER COLUMN {column} DROP DEFAULT first"
            );
        }
        match self.kept.sequences.remove(&name)? {
            false if !if_exists => exec_err!("DROP SEQUENCE {written}: {}", missing(&name)),
            _ => Ok(()),
        }
    }

    /// A table of a folder, and its column whose DEFAULT takes numbers from a sequence.
    async fn column_of_sequence(&self, sequence: &ResolvedTableReference) -> Result<Option<(String, String)>> {
        for database in self.schemas.databases()? {
            for (name, entry) in database.entries()? {
                let Entry::Store(_) = entry else { continue };
                let Some(table) = database.table(&name).await? else { continue };
                for (column, text) in engine::notes(&table).into_iter().flatten() {
                    let Some(column) = column.strip_prefix(DEFAULT) else { continue };
                    let taken = sequences_of_default(text)?;
                    if taken.iter().any(|taken| self.resolved(TableReference::parse_str(taken)) == *sequence) {
                        let schema = database.name();
                        let name = if schema == PUBLIC { name } else { format!("{schema}.{name}") };
                        return Ok(Some((name, column.to_owned())));
                    }
                }
            }
        }
        Ok(None)
    }
}
