//! CREATE SEQUENCE and DROP SEQUENCE.

use datafusion::common::{Result, exec_err};
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{ObjectName, Statement};

use crate::Session;
use crate::catalog::Sequence;
use crate::sequences::missing;

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

    /// DROP SEQUENCE.
    pub(super) fn drop_sequence(&self, written: &ObjectName, if_exists: bool) -> Result<()> {
        let name = self.resolved(object_name_to_table_reference(written.clone(), true)?);
        match self.kept.sequences.remove(&name)? {
            false if !if_exists => exec_err!("DROP SEQUENCE {written}: {}", missing(&name)),
            _ => Ok(()),
        }
    }
}
