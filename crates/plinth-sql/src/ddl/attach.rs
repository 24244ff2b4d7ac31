//! ATTACH, DETACH and USE: the tables of other folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::common::{Result, exec_err};
use datafusion::sql::sqlparser::ast::{self, Expr, Ident, ObjectName, Use};

use crate::Session;
use crate::database::PUBLIC;
use crate::names::normal;
use crate::schemas::{CATALOG, Schemas, check_name};
use crate::view_plans::plan_views;

/// What other databases call one without a file.
const IN_MEMORY: &str = ":memory:";

impl Session {
    /// `ATTACH 'folder' AS name`: its tables are `name.table`, those of its schemas `name.schema.table`. `ATTACH NULL AS name` takes
    /// them away.
    pub(super) fn attach(&self, path: &Expr, name: &Ident) -> Result<()> {
        let name = normal(name);
        let Expr::Value(ast::ValueWithSpan { value, .. }) = path else {
            return exec_err!("ATTACH {path}: is no path; write ATTACH 'folder' AS {name}");
        };
        match value {
            ast::Value::SingleQuotedString(path) => self.attach_folder(Path::new(path), &name),
            ast::Value::Null => self.detach(&name),
            _ => exec_err!("ATTACH {path}: is no path; write ATTACH 'folder' AS {name}"),
        }
    }

    fn attach_folder(&self, path: &Path, name: &str) -> Result<()> {
        let statement = format!("ATTACH '{}' AS {name}", path.display());
        if name == CATALOG || check_name(name).is_err() {
            return exec_err!("{statement}: the name is taken; write ATTACH '{}' AS other_name", path.display());
        }
        if path.as_os_str() == IN_MEMORY {
            return exec_err!("{statement}: a database is a folder; tables in memory are made with CREATE TEMP TABLE");
        }
        self.kept.grants.path(&path.to_string_lossy())?;
        if path.is_file() {
            return exec_err!(
                "{statement}: is a file; a database is a folder of tables (FROM '{}' reads Plinth, Parquet, CSV and JSON files)",
                path.display()
            );
        }
        if !path.exists()
            && let Err(e) = std::fs::create_dir(path)
        {
            return exec_err!("{statement}: the folder can't be made: {e}");
        }
        let place: PathBuf = path.canonicalize()?;
        if let Some(known) = self.schemas.attached(name) {
            return match known.public().folder() {
                Some(folder) if folder == place => Ok(()),
                _ => exec_err!("{statement}: another folder has the name; DETACH {name} first"),
            };
        }
        if self.schemas.has(name)? {
            return exec_err!(
                "{statement}: there is a schema of this name; write ATTACH '{}' AS other_name",
                path.display()
            );
        }
        let plan_view = plan_views(self.context.state_weak_ref(), Arc::clone(&self.kept), name.to_owned());
        let database = self.database.beside(&place, plan_view)?;
        self.schemas.attach(name, Some(Arc::new(Schemas::new(Arc::new(database)))));
        Ok(())
    }

    fn detach(&self, name: &str) -> Result<()> {
        if self.schemas.attach(name, None).is_none() {
            return exec_err!("DETACH {name}: nothing is attached under this name");
        }
        let state = self.context.state_ref();
        let mut state = state.write();
        let defaults = &mut state.config_mut().options_mut().catalog;
        if defaults.default_schema == name || defaults.default_catalog == name {
            (defaults.default_catalog, defaults.default_schema) = (CATALOG.to_owned(), PUBLIC.to_owned());
        }
        Ok(())
    }

    /// `USE name`: where names without a schema are looked up.
    pub(super) fn use_schema(&self, what: &Use) -> Result<()> {
        let (Use::Object(name) | Use::Schema(name) | Use::Database(name) | Use::Catalog(name)) = what else {
            return exec_err!("{what}: is not supported; USE schema and USE folder.schema are");
        };
        let parts = parts_of(name)?;
        let (catalog, schema) = match parts.as_slice() {
            // DuckDB's name of what is `public` here.
            [one] if one == CATALOG || one == "main" => (CATALOG, PUBLIC),
            [one] => (CATALOG, one.as_str()),
            [catalog, schema] => (catalog.as_str(), schema.as_str()),
            _ => return exec_err!("USE {name}: is no name of a schema"),
        };
        let there = match catalog {
            CATALOG => self.schemas.has(schema)?,
            attached => {
                self.schemas.attached(attached).map(|schemas| schemas.has(schema)).transpose()?.unwrap_or(false)
            }
        };
        if !there {
            return exec_err!(
                "USE {name}: there is no such schema; CREATE SCHEMA makes one, ATTACH 'folder' AS name names a folder"
            );
        }
        let state = self.context.state_ref();
        let mut state = state.write();
        let defaults = &mut state.config_mut().options_mut().catalog;
        (defaults.default_catalog, defaults.default_schema) = (catalog.to_owned(), schema.to_owned());
        Ok(())
    }
}

fn parts_of(name: &ObjectName) -> Result<Vec<String>> {
    let part = |part: &ast::ObjectNamePart| match part {
        ast::ObjectNamePart::Identifier(part) => Ok(normal(part)),
        other @ ast::ObjectNamePart::Function(_) => exec_err!("{other}: is no name of a schema"),
    };
    name.0.iter().map(part).collect()
}
