//! Standard input as a table: `FROM stdin`, `read_csv('-')`.
//!
//! A statement may read a table more than once, and its columns are told from its rows, so what comes is written to a file first.

use std::io::{IsTerminal, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use datafusion::sql::parser::CopyToSource;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, TableFactor, Value, VisitMut, VisitorMut,
};
use plinth_io::TEMPORARY_SUFFIX;
use plinth_sql::{Session, Statement};

use crate::error::{Failure, Result};
use crate::interrupt;

/// Bytes that are looked at to tell what they are.
const LOOK: usize = 1 << 16;

/// The file that holds standard input, which goes away.
#[derive(Debug)]
pub(crate) struct Stdin {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

impl Stdin {
    /// Has statements that name standard input read a file with all of it. None if none does.
    ///
    /// # Errors
    /// If there is no input to read, or it can't be kept.
    pub(crate) fn for_statements<'s>(
        session: &Session,
        statements: impl IntoIterator<Item = &'s mut Statement>,
        holds_statements: bool,
    ) -> Result<Option<Self>> {
        // A table of this name is the table.
        let table = session.table_names().iter().any(|name| name.eq_ignore_ascii_case("stdin"));
        let mut statements: Vec<&mut Statement> = statements.into_iter().collect();
        let mut looking = Uses { by_name: !table, format: None, found: false, file: None };
        for statement in &mut statements {
            looking.visit(statement);
        }
        if !looking.found {
            return Ok(None);
        }
        if holds_statements {
            return Err(Failure::new("stdin: holds the statements themselves; give these with -c or -f"));
        }
        if std::io::stdin().is_terminal() {
            return Err(Failure::new("stdin: is the keyboard; send a file to it: plinth -c '...' < FILE"));
        }
        let (folder, file) = keep(std::io::stdin().lock(), looking.format)?;
        let mut replacing = Uses { file: Some(file.clone()), ..looking };
        for statement in &mut statements {
            replacing.visit(statement);
        }
        Ok(Some(Self { _folder: folder, file }))
    }

    /// A failure that names what the user named, in the place of the file that stands for it.
    pub(crate) fn named(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Message(what) => {
                Failure::Message(what.replace(&self.file.display().to_string(), "standard input"))
            }
            other => other,
        }
    }
}

/// Writes all of an input to a file whose name says what it holds.
fn keep(mut input: impl Read, format: Option<&'static str>) -> Result<(tempfile::TempDir, PathBuf)> {
    let failed =
        |e: std::io::Error| Failure::new(format!("stdin: can't be kept in {}: {e}", std::env::temp_dir().display()));
    // The folder is made when all is there: what sweeps up after an interrupt removes files alone.
    interrupt::writes_into(std::env::temp_dir());
    let suffix = format!(".{}-0{TEMPORARY_SUFFIX}", std::process::id());
    let mut copy = || -> std::io::Result<(tempfile::TempDir, PathBuf)> {
        let mut file = tempfile::Builder::new().prefix(".stdin").suffix(&suffix).tempfile()?;
        let mut start = Vec::new();
        (&mut input).take(LOOK as u64).read_to_end(&mut start)?;
        file.write_all(&start)?;
        std::io::copy(&mut input, &mut file)?;
        let folder = tempfile::Builder::new().prefix("plinth-stdin-").tempdir()?;
        let whole = folder.path().join(format!("stdin.{}", extension(&start, format)));
        file.persist(&whole)?;
        Ok((folder, whole))
    };
    copy().map_err(failed)
}

/// What the first bytes of an input are, of a format that a statement may have named.
fn extension(start: &[u8], format: Option<&'static str>) -> String {
    let pressed = match start {
        [0x1f, 0x8b, ..] => ".gz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ".zst",
        [0x04, 0x22, 0x4d, 0x18, ..] => ".lz4",
        [b'B', b'Z', b'h', ..] => ".bz2",
        _ => "",
    };
    let first = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).iter().find(|byte| !byte.is_ascii_whitespace());
    let told = match first {
        _ if start.starts_with(b"PAR1") => "parquet",
        Some(b'{' | b'[') => "json",
        _ => "csv",
    };
    format!("{}{pressed}", format.unwrap_or(told))
}

/// Where statements name standard input.
struct Uses {
    /// Whether the name `stdin` alone means it.
    by_name: bool,
    /// The format that a function says it has.
    format: Option<&'static str>,
    found: bool,
    /// What is named in its place.
    file: Option<PathBuf>,
}

impl Uses {
    fn visit(&mut self, statement: &mut Statement) {
        let _ = match statement {
            Statement::Statement(inner) => inner.visit(self),
            Statement::Explain(explain) => return self.visit(&mut explain.statement),
            Statement::CopyTo(copy) => match &mut copy.source {
                CopyToSource::Query(query) => query.visit(self),
                CopyToSource::Relation(name) => {
                    self.name(name);
                    ControlFlow::Continue(())
                }
            },
            _ => ControlFlow::Continue(()),
        };
    }

    fn name(&mut self, name: &mut ObjectName) {
        let [part] = name.0.as_slice() else { return };
        let Some(ident) = part.as_ident() else { return };
        if !(is_path(&ident.value) || (self.by_name && ident.value.eq_ignore_ascii_case("stdin"))) {
            return;
        }
        self.found = true;
        if let Some(file) = &self.file {
            *name = ObjectName::from(vec![Ident::with_quote('\'', file.display().to_string())]);
        }
    }

    fn argument(&mut self, argument: &mut FunctionArg, format: Option<&'static str>) {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) = argument else { return };
        let Value::SingleQuotedString(text) = &mut value.value else { return };
        if is_path(text) {
            self.found = true;
            self.format = self.format.or(format);
            if let Some(file) = &self.file {
                *text = file.display().to_string();
            }
        }
    }
}

fn is_path(text: &str) -> bool {
    text == "-" || Path::new(text) == Path::new("/dev/stdin")
}

/// The format that a function of tables reads.
fn format_of(function: &ObjectName) -> Option<Option<&'static str>> {
    let [part] = function.0.as_slice() else { return None };
    Some(match part.as_ident()?.value.to_ascii_lowercase().as_str() {
        "read_csv" | "read_csv_auto" => Some("csv"),
        "read_json" | "read_json_auto" | "read_ndjson" | "read_ndjson_auto" => Some("json"),
        "read_parquet" | "parquet_scan" => Some("parquet"),
        _ => return None,
    })
}

impl VisitorMut for Uses {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args, alias, .. } = table {
            match args {
                None => {
                    let before = name.clone();
                    self.name(name);
                    if *name != before && alias.is_none() {
                        let columns = Vec::new();
                        let name = Ident::new("stdin");
                        *alias = Some(datafusion::sql::sqlparser::ast::TableAlias {
                            explicit: true,
                            name,
                            columns,
                            at: None,
                        });
                    }
                }
                Some(args) => {
                    if let Some(format) = format_of(name) {
                        args.args.iter_mut().for_each(|argument| self.argument(argument, format));
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_told_by_their_first_bytes() {
        for (start, format, expected) in [
            (&b"a,b\n1,2\n"[..], None, "csv"),
            (b"\xef\xbb\xbf {\"a\":1}", None, "json"),
            (b"[[1,2]]", None, "json"),
            (b"PAR1....", None, "parquet"),
            (b"\x1f\x8b\x08", None, "csv.gz"),
            (b"\x1f\x8b\x08", Some("json"), "json.gz"),
            (b"{\"a\":1}", Some("csv"), "csv"),
            (b"", None, "csv"),
        ] {
            assert_eq!(extension(start, format), expected);
        }
    }
}
