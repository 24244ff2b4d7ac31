//! What a session may touch beside the tables of its folder: the one place that says which paths a statement may name.
//!
//! Statements name files in many ways: `FROM 'x.csv'`, `read_csv`, its `rejects` and `schema`, `glob`, COPY, ATTACH, CREATE EXTERNAL TABLE.
//! Each of them asks [`Grants::path`] before it looks at the file system, so that a refusal tells nothing of what is there.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement as PlannedStatement};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

use crate::error::{ErrorKind, SqlError};

/// Most entries of a folder that is looked through for links.
const MOST_ENTRIES: usize = 100_000;

/// Settings that a session whose files are bounded may make: those that name no folder and raise no limit.
const SETTINGS: [&str; 5] = [
    "plinth.",
    "datafusion.explain.",
    "datafusion.execution.time_zone",
    "datafusion.catalog.default_",
    "datafusion.execution.target_partitions",
];

/// What statements of a session may touch beside the tables of its folder, and whether they may change those. By default all that its
/// process may.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    reach: Reach,
    read_only: bool,
}

#[derive(Clone, Debug, Default)]
enum Reach {
    #[default]
    Everything,
    /// What lies below a folder, whose links are resolved.
    Below(Arc<Path>),
    Nothing,
}

impl Grants {
    /// No file and no object: the tables of the folder alone.
    #[must_use]
    pub fn tables_alone() -> Self {
        Self { reach: Reach::Nothing, read_only: false }
    }

    /// The tables of the folder, and files below another one: without `..`, without links that lead out, and no object of a store.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn files_below(root: &Path) -> std::io::Result<Self> {
        Ok(Self { reach: Reach::Below(root.canonicalize()?.into()), read_only: false })
    }

    /// The same for reading alone: no statement changes a table, a file, a sequence or what a folder keeps.
    #[must_use]
    pub fn for_reading(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// Whether files and objects are bounded.
    pub(crate) fn is_bounded(&self) -> bool {
        !matches!(self.reach, Reach::Everything)
    }

    /// Whether a statement may name a path, a pattern or a URL.
    ///
    /// # Errors
    /// If not. What is there makes no difference to what is said, unless it may be named.
    pub(crate) fn path(&self, named: &str) -> Result<()> {
        let refused = |why: &str| Err(SqlError::of(ErrorKind::Denied, format!("{named}: {why}")).into());
        match &self.reach {
            Reach::Everything => Ok(()),
            Reach::Nothing => refused("this session reaches the tables of its database alone, no files and no URLs"),
            Reach::Below(_) if has_scheme(named) => refused(
                "this session reaches no URLs; files are named by their paths below the folder that was granted",
            ),
            Reach::Below(root) => match is_below(root, Path::new(named)) {
                true => Ok(()),
                false => refused("is not below the folder that was granted to this session, without .. and links"),
            },
        }
    }

    /// Whether a file may be read, where no statement names it: what another process has planned.
    ///
    /// # Errors
    /// If not. What is there makes no difference to what is said, unless it may be read.
    pub fn may_read(&self, path: &Path) -> Result<()> {
        match path.to_str() {
            Some(named) => self.path(named),
            None => denied("the name of a file is not text in UTF-8"),
        }
    }

    /// As [`Grants::path`], of a file that is written.
    ///
    /// # Errors
    /// As there; if the session only reads.
    pub(crate) fn written(&self, named: &str) -> Result<()> {
        self.changes("a file")?;
        self.path(named)
    }

    /// Whether the session may change something.
    ///
    /// # Errors
    /// If it only reads.
    pub(crate) fn changes(&self, what: &str) -> Result<()> {
        if self.read_only { Err(only_reads(what).into()) } else { Ok(()) }
    }

    /// Whether a name that no table has may be looked for among files. A plain word that may not is no table, as any other.
    ///
    /// # Errors
    /// If it is a path that the session does not reach.
    pub(crate) fn table(&self, name: &str) -> Result<bool> {
        let asked = self.path(name);
        let is_path = name.contains(['/', '\\', '.', '*', '?', '[', ':']);
        if is_path { asked.map(|()| true) } else { Ok(asked.is_ok()) }
    }

    /// Whether a statement may run, as far as it says so by itself.
    ///
    /// # Errors
    /// If it would change something and the session only reads; if it is about secrets, and the session reaches no stores.
    pub(crate) fn statement(&self, statement: &Statement) -> Result<()> {
        if self.is_bounded() && is_of_secrets(statement) {
            return denied("secrets are for object stores, which this session does not reach");
        }
        if self.read_only && !reads(statement) {
            return Err(only_reads(first_words(statement).as_str()).into());
        }
        Ok(())
    }

    /// Whether a plan may run: what it writes, and where it reads from.
    ///
    /// # Errors
    /// If it does what the session may not.
    pub(crate) fn plan(&self, plan: &LogicalPlan, threads: usize) -> Result<()> {
        if !self.is_bounded() && !self.read_only {
            return Ok(());
        }
        plan.apply_with_subqueries(|node| {
            match node {
                LogicalPlan::Copy(copy) => self.written(&copy.output_url)?,
                LogicalPlan::Dml(dml) => self.changes(dml.op.name())?,
                LogicalPlan::Ddl(ddl) => {
                    self.changes("a definition")?;
                    if let DdlStatement::CreateExternalTable(create) = ddl {
                        create.locations.iter().try_for_each(|location| self.path(location))?;
                    }
                }
                LogicalPlan::Statement(PlannedStatement::SetVariable(set)) => {
                    self.setting(&set.variable)?;
                    let threads_wanted = set.value.parse::<usize>().unwrap_or(usize::MAX);
                    if set.variable.ends_with("target_partitions") && threads_wanted > threads {
                        return denied(format!("SET threads: this session has {threads}, and may be given fewer"));
                    }
                }
                LogicalPlan::Statement(PlannedStatement::ResetVariable(reset)) => self.setting(&reset.variable)?,
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    fn setting(&self, name: &str) -> Result<()> {
        let name = name.to_ascii_lowercase();
        if self.is_bounded() && !SETTINGS.iter().any(|allowed| name.starts_with(allowed)) {
            return denied(format!(
                "SET {name}: is for who runs the program; sessions of others set plinth.NAME, datafusion.explain.NAME, threads and the \
                 time zone"
            ));
        }
        Ok(())
    }
}

fn denied<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(SqlError::of(ErrorKind::Denied, what).into())
}

fn only_reads(what: &str) -> SqlError {
    SqlError::of(ErrorKind::Denied, format!("{what}: this session only reads, and changes nothing"))
}

/// The words that tell which statement it is, without what it is about.
fn first_words(statement: &Statement) -> String {
    let text = statement.to_string();
    let words =
        text.split_whitespace().take(2).take_while(|word| word.chars().all(|letter| letter.is_ascii_uppercase()));
    match words.collect::<Vec<_>>().join(" ") {
        words if words.is_empty() => "this statement".to_owned(),
        words => words,
    }
}

fn is_of_secrets(statement: &Statement) -> bool {
    matches!(statement, Statement::Statement(inner)
        if matches!(inner.as_ref(), ast::Statement::CreateSecret { .. } | ast::Statement::DropSecret { .. }))
}

/// Whether a statement is one of those that change nothing but their session. What is within a query, its plan tells.
fn reads(statement: &Statement) -> bool {
    match statement {
        Statement::Explain(explain) => reads(&explain.statement),
        Statement::Statement(inner) => reads_of_parser(inner),
        Statement::Reset(_) => true,
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) => false,
    }
}

fn reads_of_parser(statement: &ast::Statement) -> bool {
    match statement {
        ast::Statement::Prepare { statement, .. } | ast::Statement::Explain { statement, .. } => {
            reads_of_parser(statement)
        }
        ast::Statement::Query(_)
        | ast::Statement::ExplainTable { .. }
        | ast::Statement::Execute { .. }
        | ast::Statement::Deallocate { .. }
        | ast::Statement::Set(_)
        | ast::Statement::Use(_)
        | ast::Statement::StartTransaction { .. }
        | ast::Statement::Commit { .. }
        | ast::Statement::Rollback { .. }
        | ast::Statement::Savepoint { .. }
        | ast::Statement::ReleaseSavepoint { .. }
        | ast::Statement::ShowCreate { .. }
        | ast::Statement::ShowColumns { .. }
        | ast::Statement::ShowFunctions { .. }
        | ast::Statement::ShowTables { .. }
        | ast::Statement::ShowVariable { .. }
        | ast::Statement::ShowVariables { .. }
        | ast::Statement::ShowDatabases { .. }
        | ast::Statement::ShowSchemas { .. }
        | ast::Statement::ShowViews { .. } => true,
        _ => false,
    }
}

/// Whether a name is a URL, in whatever form the engine takes one.
fn has_scheme(named: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ['+', '-', '.'].contains(&letter);
    named.split_once(':').is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(plain))
}

/// Whether a path or a pattern leads to what is below a folder, whatever links there are on the way.
fn is_below(root: &Path, named: &Path) -> bool {
    if named.components().any(|part| part == Component::ParentDir) {
        return false;
    }
    let is_pattern = |part: &OsStr| part.to_string_lossy().contains(['*', '?', '[']);
    let fixed: PathBuf = named.components().take_while(|part| !is_pattern(part.as_os_str())).collect();
    // What looks like a pattern may be a name.
    leads_below(root, named) && leads_below(root, &fixed) && has_no_way_out(root, &fixed)
}

/// Whether a path, or as much of it as is there, lies below a folder.
fn leads_below(root: &Path, path: &Path) -> bool {
    let mut path = path;
    loop {
        let here = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match here.canonicalize() {
            Ok(whole) => return whole.starts_with(root),
            // A link to nowhere: what is written to it would be made there.
            Err(e) if e.kind() != std::io::ErrorKind::NotFound || here.symlink_metadata().is_ok() => return false,
            Err(_) => {}
        }
        match path.parent() {
            Some(parent) => path = parent,
            None => return false,
        }
    }
}

/// Whether no link in a folder leads out of another one. Of a file there is none.
fn has_no_way_out(root: &Path, folder: &Path) -> bool {
    let start = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let (mut waiting, mut seen) = (vec![start.to_path_buf()], 0_usize);
    while let Some(folder) = waiting.pop() {
        if !folder.is_dir() {
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else { return false };
        for entry in entries {
            seen += 1;
            let Ok(entry) = entry else { return false };
            let Ok(kind) = entry.file_type() else { return false };
            if seen > MOST_ENTRIES {
                return false;
            }
            if kind.is_symlink() {
                match entry.path().canonicalize() {
                    Ok(whole) if whole.starts_with(root) => {}
                    _ => return false,
                }
            } else if kind.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    true
}

#[cfg(test)]
mod tests;
