//! `read_json('x.json', root => 'pairs')` and `read_csv('x.csv', delimiter => ';')`: files as tables, with the options of an
//! import by name.
//!
//! The engine's table functions take no named arguments, so the functions are planned where relations are.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, Result, TableReference, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, TableFactor, Value};
use plinth_datafusion::ForeignTable;
use plinth_ingest::{FileFormat, SourceOptions};
use plinth_io::Objects;

use plinth_core::units::parse_bytes;

use crate::grants::Grants;
use crate::habits;
use crate::source::{
    OnError, parse_character, parse_columns, parse_mark, parse_sample, parse_schema, parse_unknown, rejects,
};

/// Plans the functions.
#[derive(Debug)]
pub(crate) struct ReadFunctions {
    /// Threads that decode a scan.
    pub(crate) threads: usize,
    /// Bytes that rows may take that wait for the query, and that a record may have.
    pub(crate) ahead_bytes: usize,
    /// What inputs that are URLs are looked for in.
    pub(crate) objects: Arc<dyn Objects>,
    /// Which files may be named.
    pub(crate) grants: Grants,
}

/// One of the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Json,
    Csv,
}

/// Whether a scan of files that are named as arguments has such a name.
pub(crate) fn is_function(table: &str) -> bool {
    [Function::Json, Function::Csv].iter().any(|function| function.name() == table)
}

impl Function {
    fn of(name: &ObjectName) -> Option<Self> {
        let [name] = name.0.as_slice() else { return None };
        match name.as_ident()?.value.to_ascii_lowercase().as_str() {
            "read_json" | "read_json_auto" | "read_ndjson" | "read_ndjson_auto" => Some(Self::Json),
            "read_csv" | "read_csv_auto" => Some(Self::Csv),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "read_json",
            Self::Csv => "read_csv",
        }
    }

    /// The names of its arguments.
    fn arguments(self) -> String {
        let own = match self {
            Self::Json => "root, columns, unknown, validate",
            Self::Csv => "delimiter, quote, escape, header, null, thousands, decimal",
        };
        format!("{own}, schema, ignore_extra, hive_partitioning, sample, max_record, on_error, rejects, max_rejects")
    }

    fn format(self, inputs: &[PathBuf]) -> FileFormat {
        let tabs = |path: &PathBuf| path.to_string_lossy().to_ascii_lowercase().contains(".tsv");
        match self {
            Self::Json => FileFormat::Ndjson,
            Self::Csv if !inputs.is_empty() && inputs.iter().all(tabs) => FileFormat::Tsv,
            Self::Csv => FileFormat::Csv,
        }
    }

    /// Takes an argument that has a name.
    fn set(self, given: &mut Given, name: &str, value: &Expr, grants: &Grants) -> Result<()> {
        let wrong = |what: String| self.wrong(name, &what);
        let text = || one(value).ok_or_else(|| wrong("text or a number is expected".to_owned()));
        let flag = || truth(value).ok_or_else(|| wrong("true or false is expected".to_owned()));
        let Given { options, .. } = given;
        let SourceOptions { csv, json, .. } = options;
        match (self, name) {
            (Self::Json, "root") => json.root = Some(text()?),
            (Self::Json, "unknown") => json.unknown = parse_unknown(&text()?).map_err(wrong)?,
            (Self::Json, "columns") => {
                json.columns = pairs(value).ok_or_else(|| wrong("{'name': 'path', ...} is expected".to_owned()))?;
            }
            (Self::Json, "validate") => json.validate = flag()?,
            (Self::Csv, "delimiter" | "delim" | "sep") => {
                csv.delimiter = Some(parse_character(&text()?).map_err(wrong)?)
            }
            (Self::Csv, "quote") => csv.quote = parse_mark(&text()?).map_err(wrong)?,
            (Self::Csv, "escape") => csv.escape = parse_mark(&text()?).map_err(wrong)?,
            (Self::Csv, "header") => csv.header = Some(flag()?),
            (Self::Csv, "thousands") => csv.thousands = Some(parse_character(&text()?).map_err(wrong)?),
            (Self::Csv, "decimal") => csv.decimal = parse_character(&text()?).map_err(wrong)?,
            (Self::Csv, "columns") => {
                let columns = pairs(value).ok_or_else(|| wrong("{'name': 'type', ...} is expected".to_owned()))?;
                options.schema = Some(parse_columns(&declared(&columns)).map_err(|e| wrong(e.to_string()))?);
            }
            (Self::Csv, "types" | "dtypes" | "column_types") => {
                given.types = pairs(value).ok_or_else(|| wrong("{'name': 'type', ...} is expected".to_owned()))?;
            }
            (Self::Csv, "names" | "column_names") => {
                given.names = several(value).ok_or_else(|| wrong("a list of names is expected".to_owned()))?;
            }
            (_, "hive_partitioning") => options.hive = flag()?,
            (_, "auto_detect" | "union_by_name") if flag()? => {}
            (_, "filename") if !flag()? => {}
            (_, "filename" | "auto_detect" | "union_by_name") => {
                return Err(wrong("is not supported".to_owned()));
            }
            (Self::Csv, "null" | "nulls" | "nullstr") => {
                csv.nulls = several(value).ok_or_else(|| wrong("text is expected".to_owned()))?;
            }
            (_, "schema") => {
                let text = text()?;
                let parsed = match grants.path(&text) {
                    Ok(()) => parse_schema(&text),
                    Err(_) => parse_columns(&text),
                };
                options.schema = Some(parsed.map_err(|e| wrong(e.to_string()))?);
            }
            (_, "ignore_extra") => options.ignore_extra = flag()?,
            (_, "sample") => options.sample = parse_sample(&text()?).map_err(wrong)?,
            (_, "max_record") => {
                let most = parse_bytes(&text()?).map_err(wrong)?;
                options.record_bytes = usize::try_from(most).unwrap_or(usize::MAX);
            }
            (_, "on_error") => given.on_error = Some(OnError::parse(&text()?).map_err(wrong)?),
            (_, "rejects") => {
                let text = text()?;
                grants.written(&text)?;
                given.rejects = Some(text.into());
            }
            (_, "max_rejects") => {
                given.max_rejects = Some(text()?.parse().map_err(|_| wrong("a number is expected".to_owned()))?);
            }
            _ => return plan_err!("{} has no argument {name:?}; it has {}", self.name(), self.arguments()),
        }
        Ok(())
    }

    fn wrong(self, name: &str, what: &str) -> DataFusionError {
        DataFusionError::Plan(format!("{}: {name}: {what}", self.name()))
    }
}

/// How foreign files are read in a query, unless it says otherwise: as an import reads them.
pub(crate) fn defaults() -> SourceOptions {
    SourceOptions { hive: true, ..SourceOptions::default() }
}

/// What the arguments say.
struct Given {
    options: SourceOptions,
    on_error: Option<OnError>,
    rejects: Option<PathBuf>,
    max_rejects: Option<u64>,
    /// Types of some columns by their names; the others are inferred.
    types: Vec<(String, String)>,
    /// The names of columns of a file that has none.
    names: Vec<String>,
}

impl Given {
    fn new() -> Self {
        let (types, names) = (Vec::new(), Vec::new());
        Self { options: defaults(), on_error: None, rejects: None, max_rejects: None, types, names }
    }
}

/// Columns and types as in CREATE TABLE.
fn declared(columns: &[(String, String)]) -> String {
    let one = |(name, kind): &(String, String)| format!("\"{}\" {kind}", name.replace('"', "\"\""));
    columns.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl ReadFunctions {
    fn table(&self, function: Function, args: &[FunctionArg]) -> Result<ForeignTable> {
        let mut inputs: Option<Vec<PathBuf>> = None;
        let mut given = Given::new();
        for arg in args {
            let (name, value) = match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => match habits::option(value) {
                    Some((name, value)) => (Some(name), value),
                    None => (None, value),
                },
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => (Some(name), value),
                FunctionArg::ExprNamed { name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
                    (Some(name), value)
                }
                other => return plan_err!("{}: {other}: write name => value", function.name()),
            };
            match name {
                Some(Ident { value: name, .. }) => {
                    function.set(&mut given, &name.to_ascii_lowercase(), value, &self.grants)?
                }
                None if inputs.is_some() => {
                    return plan_err!(
                        "{}: {value}: options have names, such as {}",
                        function.name(),
                        function.arguments()
                    );
                }
                None => {
                    let paths =
                        several(value).ok_or_else(|| function.wrong("files", "text is expected, or a list of it"))?;
                    paths.iter().try_for_each(|path| self.grants.path(path))?;
                    inputs = Some(paths.into_iter().map(PathBuf::from).collect());
                }
            }
        }
        let Some(inputs) = inputs.filter(|inputs| !inputs.is_empty()) else {
            return plan_err!("{0} takes the name of a file, a folder or a pattern: {0}('x')", function.name());
        };
        if given.options.ignore_extra && given.options.schema.is_none() {
            return Err(
                function.wrong("ignore_extra", "no column is extra without a schema; name it with schema => '...'")
            );
        }
        let (rejects, misfits) = rejects(given.on_error, given.rejects, given.max_rejects)
            .map_err(|e| DataFusionError::Plan(format!("{}: {e}", function.name())))?;
        let format = Some(function.format(&inputs));
        let mut options = SourceOptions { format, rejects, misfits, ..given.options };
        if !given.names.is_empty() {
            if options.schema.is_some() {
                return Err(function.wrong("names", "the columns have names already, by schema or columns"));
            }
            if options.csv.header != Some(false) {
                return Err(function.wrong("names", "is of files without a header: add header => false"));
            }
            let mut seen = HashSet::new();
            if let Some(name) = given.names.iter().find(|name| !seen.insert(*name)) {
                return Err(function.wrong("names", &format!("{name:?} is there twice")));
            }
            options.csv.names.clone_from(&given.names);
        }
        if !given.types.is_empty() {
            if options.schema.is_some() {
                return Err(function.wrong("types", "the columns have types already, by schema or columns"));
            }
            let inferred = ForeignTable::open(inputs.clone(), self.within(options.clone()))?.schema();
            options.schema = Some(Self::with_types(function, &inferred, &given.types)?);
        }
        let table = ForeignTable::open(inputs, self.within(options))?;
        if given.names.iter().any(|name| table.schema().field_with_name(name).is_err()) {
            return Err(function.wrong("names", "there are more names than columns"));
        }
        Ok(table)
    }

    /// Columns with other types.
    fn with_types(function: Function, inferred: &SchemaRef, types: &[(String, String)]) -> Result<SchemaRef> {
        let mut fields: Vec<Field> = inferred.fields().iter().map(|field| field.as_ref().clone()).collect();
        for (name, kind) in types {
            let Some(field) = fields.iter_mut().find(|field| field.name() == name) else {
                return Err(function.wrong("types", &format!("there is no column {name:?}")));
            };
            let one = parse_columns(&declared(&[(name.clone(), kind.clone())]));
            let one = one.map_err(|e| function.wrong("types", &e.to_string()))?;
            if let Some(typed) = one.fields().first() {
                *field = typed.as_ref().clone();
            }
        }
        Ok(Arc::new(Schema::new(fields)))
    }

    /// Options within what a query may use.
    pub(crate) fn within(&self, options: SourceOptions) -> SourceOptions {
        SourceOptions {
            threads: self.threads,
            objects: Some(Arc::clone(&self.objects)),
            ahead_bytes: self.ahead_bytes,
            record_bytes: options.record_bytes.min(self.ahead_bytes),
            ..options
        }
    }
}

impl RelationPlanner for ReadFunctions {
    fn plan_relation(&self, relation: TableFactor, _: &mut dyn RelationPlannerContext) -> Result<RelationPlanning> {
        let (function, args, alias) = match &relation {
            TableFactor::Table { name, args: Some(args), alias, .. } => match Function::of(name) {
                Some(function) => (function, &args.args, alias.clone()),
                None => return Ok(RelationPlanning::Original(Box::new(relation))),
            },
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        let table = Arc::new(self.table(function, args)?);
        let name = TableReference::bare(function.name());
        let plan = LogicalPlanBuilder::scan(name, provider_as_source(table), None)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

/// A literal as text.
fn one(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => Some(number.to_string()),
            other => other.clone().into_string(),
        },
        _ => None,
    }
}

/// A literal, or an array of them.
fn several(value: &Expr) -> Option<Vec<String>> {
    match value {
        Expr::Array(array) => array.elem.iter().map(one).collect(),
        value => one(value).map(|text| vec![text]),
    }
}

/// Names and the texts they stand for: `{'a': '$.b'}`.
fn pairs(value: &Expr) -> Option<Vec<(String, String)>> {
    match value {
        Expr::Dictionary(fields) => {
            fields.iter().map(|field| Some((field.key.value.clone(), one(&field.value)?))).collect()
        }
        _ => None,
    }
}

fn truth(value: &Expr) -> Option<bool> {
    match value {
        Expr::Value(value) => match value.value {
            Value::Boolean(truth) => Some(truth),
            _ => None,
        },
        _ => None,
    }
}
