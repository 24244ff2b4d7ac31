//! Files by functions: `read_parquet`, the option `filename`, `glob`, `parquet_schema`, `parquet_metadata`, COPY ... FROM.

use std::path::PathBuf;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::sql::sqlparser::ast::{
    Array, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor,
    Value, ValueWithSpan,
};

use plinth_datafusion::json_members;

use super::known::{Known, Stop};
use super::scope::Scope;
use super::{option, parquet, samples, simple_name, templates, text_of};
use crate::grants::Grants;
use crate::types::type_name;

/// Most files of a table whose files are told apart.
const MOST_FILES: usize = 1000;

/// Rewrites a table that is a call.
pub(super) fn rewrite(table: &mut TableFactor, known: &Known, scope: &Scope) -> Result<(), Stop> {
    if let TableFactor::Table { name, args: None, alias, .. } = table {
        nested(name, alias, &known.grants);
        return Ok(());
    }
    let TableFactor::Table { name, args: Some(args), alias, .. } = &*table else { return Ok(()) };
    let Some(function) = simple_name(name) else { return Ok(()) };
    let (name, alias) = (name.clone(), alias.clone());
    let query = match function.as_str() {
        "read_parquet" | "parquet_scan" => {
            let given = Given::of(&function, &args.args)?;
            if let [path] = given.paths.as_slice()
                && !given.filename
            {
                let [] = given.others.as_slice() else { return Ok(given.unknown()?) };
                if let TableFactor::Table { name, args, .. } = table {
                    *name = file(path);
                    *args = None;
                    let mut alias = None;
                    nested(name, &mut alias, &known.grants);
                }
                return Ok(());
            }
            given.each(&known.grants)?
        }
        name if name.starts_with("read_") => {
            let has_filename = args
                .args
                .iter()
                .filter_map(named)
                .any(|(name, value)| name.value.eq_ignore_ascii_case("filename") && is_true(value));
            if !has_filename {
                return Ok(());
            }
            Given::of(&function, &args.args)?.each(&known.grants)?
        }
        "glob" => {
            let mut paths = Given::of(&function, &args.args)?.files(&known.grants)?;
            // A name without a pattern is one of a file that may not be there.
            paths.retain(|path| PathBuf::from(path).exists());
            let rows: Vec<String> = paths.iter().map(|path| format!("({})", text(path))).collect();
            match rows.is_empty() {
                true => templates::query("SELECT * FROM (VALUES ('')) AS t(file) WHERE false")?,
                false => templates::query(&format!("SELECT * FROM (VALUES {}) AS t(file)", rows.join(", ")))?,
            }
        }
        "parquet_schema" => parquet::schema(&Given::of(&function, &args.args)?.files(&known.grants)?)?,
        "parquet_metadata" => parquet::metadata(&Given::of(&function, &args.args)?.files(&known.grants)?)?,
        "json_each" => members(&args.args)?,
        "plinth_copied" => copied(&args.args, known, scope)?,
        _ => return Ok(()),
    };
    let alias = alias.or_else(|| samples::alias_of(&name));
    *table = TableFactor::Derived { lateral: false, subquery: query, alias, sample: None };
    Ok(())
}

/// `part/*/*/x.parquet` as `part/**/x.parquet`, which the engine takes for folders of partitions, if that is the same files.
fn nested(name: &mut ObjectName, alias: &mut Option<TableAlias>, grants: &Grants) {
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return };
    let path = ident.value.as_str();
    let Some((folders, last)) = path.rsplit_once('/') else { return };
    let Some(first) = folders.find('*').filter(|_| !path.contains("**")) else { return };
    let root = folders.get(..first).and_then(|root| root.rsplit_once('/')).map_or("", |(root, _)| root);
    let all = if root.is_empty() { format!("**/{last}") } else { format!("{root}/**/{last}") };
    let looked = |pattern: &str| matching(pattern, grants);
    let same = looked(path).is_ok_and(|files| !files.is_empty() && looked(&all).is_ok_and(|all| all == files));
    if same {
        if alias.is_none() {
            *alias = samples::alias_of(name);
        }
        *name = file(&all);
    }
}

fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn file(path: &str) -> ObjectName {
    ObjectName::from(vec![Ident::with_quote('\'', path)])
}

/// An argument with a name.
fn named(arg: &FunctionArg) -> Option<(&Ident, &Expr)> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => option(value),
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => Some((name, value)),
        FunctionArg::ExprNamed { name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
            Some((name, value))
        }
        _ => None,
    }
}

fn is_true(value: &Expr) -> bool {
    matches!(value, Expr::Value(ValueWithSpan { value: Value::Boolean(true), .. }))
}

fn is_false(value: &Expr) -> bool {
    matches!(value, Expr::Value(ValueWithSpan { value: Value::Boolean(false), .. }))
}

/// What a function of files was given.
struct Given {
    function: String,
    paths: Vec<String>,
    filename: bool,
    /// Options that are not looked at here.
    others: Vec<FunctionArg>,
}

impl Given {
    fn of(function: &str, args: &[FunctionArg]) -> Result<Self> {
        let mut given = Self { function: function.to_owned(), paths: Vec::new(), filename: false, others: Vec::new() };
        let is_parquet = function.contains("parquet");
        for arg in args {
            if let Some((name, value)) = named(arg) {
                match name.value.to_ascii_lowercase().as_str() {
                    "filename" if is_true(value) => given.filename = true,
                    "filename" if is_false(value) => {}
                    // How it is anyhow.
                    "hive_partitioning" | "union_by_name" if is_parquet && is_true(value) => {}
                    _ => given.others.push(arg.clone()),
                }
                continue;
            }
            let paths = match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Array(Array { elem, .. }))) => {
                    elem.iter().map(|path| text_of(path).map(str::to_owned)).collect()
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => text_of(value).map(|path| vec![path.to_owned()]),
                _ => None,
            };
            match paths {
                Some(paths) if given.paths.is_empty() && !paths.is_empty() => given.paths = paths,
                _ => {
                    return plan_err!(
                        "{function}: {arg}: takes a file, a folder or a pattern as text, or a list of such"
                    );
                }
            }
        }
        if given.paths.is_empty() {
            return plan_err!("{function} takes a file, a folder or a pattern: {function}('x')");
        }
        Ok(given)
    }

    fn unknown(&self) -> Result<()> {
        match self.others.first() {
            Some(other) => plan_err!("{}: {other}: is not supported", self.function),
            None => Ok(()),
        }
    }

    /// The files that paths and patterns mean, in the order of their names.
    fn files(&self, grants: &Grants) -> Result<Vec<String>> {
        self.unknown()?;
        let mut files = Vec::new();
        for path in &self.paths {
            files.extend(matching(path, grants)?);
        }
        Ok(files)
    }

    /// The rows of each file, with its name if that is asked for.
    fn each(&self, grants: &Grants) -> Result<Box<Query>> {
        let call = self.function != "read_parquet" && self.function != "parquet_scan";
        if !call {
            self.unknown()?;
        }
        let mut paths = Vec::new();
        for path in &self.paths {
            if self.filename { paths.extend(matching(path, grants)?) } else { paths.push(path.clone()) }
        }
        if paths.is_empty() {
            return plan_err!("{}: no file matches {}", self.function, self.paths.join(", "));
        }
        if paths.len() > MOST_FILES {
            return plan_err!(
                "{}: {} files are too many to be told apart, at most {MOST_FILES} are",
                self.function,
                paths.len()
            );
        }
        if self.filename && paths.iter().any(|path| path.contains('=')) {
            return plan_err!("{}: filename of files in folders such as year=2024: not supported", self.function);
        }
        let others: String = self.others.iter().map(|arg| format!(", {arg}")).collect();
        let one = |path: &String| {
            let name = if self.filename { format!(", {} AS filename", text(path)) } else { String::new() };
            let from = if call { format!("{}({}{others})", self.function, text(path)) } else { text(path) };
            format!("SELECT *{name} FROM {from}")
        };
        let all: Vec<String> = paths.iter().map(one).collect();
        templates::query(&all.join(" UNION ALL BY NAME "))
    }
}

/// The files that a path or a pattern means.
fn matching(path: &str, grants: &Grants) -> Result<Vec<String>> {
    grants.path(path)?;
    if !path.contains(['*', '?', '[']) {
        let is_folder = PathBuf::from(path).is_dir();
        return if is_folder {
            matching(&format!("{}/*", path.trim_end_matches('/')), grants)
        } else {
            Ok(vec![path.to_owned()])
        };
    }
    let options =
        glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    let found = glob::glob_with(path, options).map_err(|e| plan_datafusion_err!("{path}: not a valid pattern: {e}"))?;
    let mut files = Vec::new();
    for file in found {
        let file = file.map_err(|e| plan_datafusion_err!("{path}: {e}"))?;
        if file.is_file() {
            files.push(file.display().to_string());
        }
    }
    Ok(files)
}

/// `json_each('{"a": 1}')`: a row for each member of a document.
fn members(args: &[FunctionArg]) -> Result<Box<Query>> {
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(document))] = args else {
        return plan_err!("json_each: takes one document");
    };
    let Some(document) = text_of(document) else {
        return plan_err!("json_each: takes a document as text; of a column take its parts with -> and json_keys");
    };
    let rows: Vec<String> = json_members(document)?
        .iter()
        .map(|(key, value, kind)| format!("({}, {}, '{kind}')", text(key), text(value)))
        .collect();
    match rows.is_empty() {
        true => templates::query("SELECT * FROM (VALUES ('', '', '')) AS t(key, value, type) WHERE false"),
        false => templates::query(&format!("SELECT * FROM (VALUES {}) AS t(key, value, type)", rows.join(", "))),
    }
}

/// A type as a schema has it, with the places of its seconds.
fn declared_type(of: &DataType) -> String {
    let DataType::Timestamp(unit, zone) = of else { return type_name(of) };
    let places = match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    format!("TIMESTAMP({places}){}", if zone.is_some() { " WITH TIME ZONE" } else { "" })
}

/// `COPY t FROM 'x'`: the rows of a file with the columns of a table.
fn copied(args: &[FunctionArg], known: &Known, scope: &Scope) -> Result<Box<Query>, Stop> {
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(table))),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(path)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(format)),
        options @ ..,
    ] = args
    else {
        return Ok(plan_err!("COPY ... FROM takes a table and a file")?);
    };
    let (path, format) = (text_of(path).unwrap_or_default(), text_of(format).unwrap_or_default());
    known.grants.path(path)?;
    let lower = path.to_ascii_lowercase();
    let is = |ending: &str| format.is_empty() && lower.contains(&format!(".{ending}"));
    let mut query = table.clone();
    query.with = scope.with(None);
    let columns = known.columns(*query)?;
    let declared: Vec<String> = columns
        .iter()
        .map(|column| format!("\"{}\" {}", column.name().replace('"', "\"\""), declared_type(column.field.data_type())))
        .collect();
    // The columns of a file without a header are the table's, one after the other.
    let columns = match options.iter().any(|arg| arg.to_string().eq_ignore_ascii_case("header => false")) {
        true => {
            let names: Vec<String> = columns.iter().map(|column| text(column.name())).collect();
            let types = columns.iter().zip(&names);
            let types =
                types.map(|(column, name)| format!("{name}: {}", text(&declared_type(column.field.data_type()))));
            format!("names => [{}], types => {{{}}}", names.join(", "), types.collect::<Vec<_>>().join(", "))
        }
        false => format!("schema => {}", text(&declared.join(", "))),
    };
    let others: String = options.iter().map(|arg| format!(", {arg}")).collect();
    let function = match format {
        "csv" => "read_csv",
        "json" | "ndjson" => "read_json",
        "parquet" | "plinth" => "",
        "" if is("csv") || is("tsv") => "read_csv",
        "" if is("json") || is("ndjson") || is("jsonl") => "read_json",
        "" if is("parquet") || is("plinth") => "",
        _ => return Ok(plan_err!("COPY ... FROM {path:?}: say which format it is: (FORMAT csv)")?),
    };
    if function.is_empty() {
        if !others.is_empty() {
            return Ok(plan_err!("COPY ... FROM {path:?}: the options are of CSV")?);
        }
        return Ok(templates::query(&format!("SELECT * FROM {}", text(path)))?);
    }
    Ok(templates::query(&format!("SELECT * FROM {function}({}, {columns}{others})", text(path)))?)
}
