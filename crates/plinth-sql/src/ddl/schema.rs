//! CREATE SCHEMA and DROP SCHEMA.

use datafusion::common::{Result, exec_err};
use datafusion::sql::sqlparser::ast::{self, ObjectName, ObjectNamePart, SchemaName};

use crate::Session;
use crate::database::{Entry, PUBLIC};
use crate::error::SqlError;
use crate::names::normal;
use crate::schemas::{CATALOG, check_name};

impl Session {
    /// CREATE SCHEMA: a folder within the folder, which its catalog names. False if there is no folder.
    pub(super) fn create_schema(&self, statement: &ast::Statement) -> Result<bool> {
        let ast::Statement::CreateSchema { schema_name, if_not_exists, with, options, default_collate_spec, clone } =
            statement
        else {
            return Ok(false);
        };
        let SchemaName::Simple(written) = schema_name else {
            return exec_err!("CREATE SCHEMA {schema_name}: AUTHORIZATION is not supported: there are no users");
        };
        if with.is_some() || options.is_some() || default_collate_spec.is_some() || clone.is_some() {
            return exec_err!("CREATE SCHEMA {written}: options of a schema are not supported");
        }
        let name = schema_of(written)?;
        check_name(&name)?;
        if self.schemas.attached(&name).is_some() {
            return exec_err!("CREATE SCHEMA {name}: a folder is attached under this name; DETACH {name} first");
        }
        let (Some(folder), Some(catalog)) = (self.database.folder(), self.database.catalog()) else { return Ok(false) };
        if catalog.read()?.schemas.contains(&name) {
            if *if_not_exists {
                return Ok(true);
            }
            return exec_err!("CREATE SCHEMA {name}: already exists");
        }
        if self.database.entries()?.keys().any(|table| *table == name) {
            return exec_err!("CREATE SCHEMA {name}: there is a table of this name, whose folder it would be");
        }
        let place = folder.join(&name);
        match std::fs::create_dir(&place) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && place.is_dir() => {}
            Err(e) => return exec_err!("CREATE SCHEMA {name}: {}: {e}", place.display()),
            Ok(()) => plinth_io::sync_folder(folder).map_err(SqlError::new)?,
        }
        catalog.change(|contents| Ok(contents.schemas.insert(name)))?;
        Ok(true)
    }

    /// DROP SCHEMA: what is in it goes first, if CASCADE says so. False if it is none of a folder.
    pub(super) async fn drop_schema(&self, written: &ObjectName, if_exists: bool, cascade: bool) -> Result<bool> {
        let name = schema_of(written)?;
        let (Some(_), Some(catalog)) = (self.database.folder(), self.database.catalog()) else { return Ok(false) };
        if name == PUBLIC {
            return exec_err!("DROP SCHEMA {name}: is the folder itself");
        }
        if self.schemas.attached(&name).is_some() {
            return exec_err!("DROP SCHEMA {name}: is a folder that is attached; DETACH {name} lets go of it");
        }
        let Some(database) = self.schemas.database(&name)? else {
            if if_exists {
                return Ok(true);
            }
            return exec_err!("DROP SCHEMA {name}: there is no such schema");
        };
        let entries = database.entries()?;
        let contents = catalog.read()?;
        let sequence = contents.sequences.keys().find(|(schema, _)| *schema == name).map(|(_, name)| name);
        if let (Some(first), false) = (entries.keys().next().or(sequence), cascade) {
            return exec_err!("DROP SCHEMA {name}: has {first:?}; DROP SCHEMA {name} CASCADE drops what is in it, too");
        }
        for (table, entry) in &entries {
            if !matches!(entry, Entry::Store(_) | Entry::View(_)) {
                database.refuse_drop(table)?;
            }
        }
        for entry in entries.values() {
            if let Entry::Store(folder) = entry {
                self.drop_store(folder).await?;
            }
        }
        catalog.change(|contents| {
            contents.views.retain(|(schema, _), _| *schema != name);
            contents.sequences.retain(|(schema, _), _| *schema != name);
            Ok(contents.schemas.remove(&name))
        })?;
        // Of other files that are in it the folder stays, without being a schema.
        if let Some(folder) = database.folder() {
            let _ = std::fs::remove_dir(folder);
        }
        let default = self.context.state_ref().read().config_options().catalog.default_schema.clone();
        if default == name {
            self.context.state_ref().write().config_mut().options_mut().catalog.default_schema = PUBLIC.to_owned();
        }
        Ok(true)
    }
}

/// The name of a schema, which may stand behind that of the catalog.
fn schema_of(name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Ok(normal(name)),
        [ObjectNamePart::Identifier(catalog), ObjectNamePart::Identifier(name)] if normal(catalog) == CATALOG => {
            Ok(normal(name))
        }
        _ => exec_err!("{name}: is no name of a schema"),
    }
}
