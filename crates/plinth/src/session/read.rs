//! `read_json('x.json', root => 'pairs')` and `read_csv('x.csv', delimiter => ';')`: files as tables, with the options of an
//! import by name.
//!
//! The engine's table functions take no named arguments, so the functions are planned where relations are.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use datafusion::common::{DataFusionError, Result, TableReference, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, TableFactor, Value};
use plinth_datafusion::ForeignTable;
use plinth_ingest::{FileFormat, SourceOptions};

use crate::cli::{OnError, SourceArgs, UnknownKeys, parse_character, parse_quote, parse_sample};
use crate::units::parse_bytes;

/// Plans the functions.
#[derive(Debug)]
pub(super) struct ReadFunctions {
    /// Threads that decode a scan.
    pub(super) threads: usize,
    /// Bytes that rows may take that wait for the query, and that a record may have.
    pub(super) ahead_bytes: usize,
}

/// One of the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Json,
    Csv,
}

impl Function {
    fn of(name: &ObjectName) -> Option<Self> {
        let [name] = name.0.as_slice() else { return None };
        match name.as_ident()?.value.to_ascii_lowercase().as_str() {
            "read_json" => Some(Self::Json),
            "read_csv" => Some(Self::Csv),
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
        format!("{own}, schema, ignore_extra, sample, max_record, on_error, rejects, max_rejects")
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
    fn set(self, args: &mut SourceArgs, name: &str, value: &Expr) -> Result<()> {
        let wrong = |what: &str| self.wrong(name, what);
        let text = || one(value).ok_or_else(|| wrong("text or a number is expected"));
        let flag = || truth(value).ok_or_else(|| wrong("true or false is expected"));
        match (self, name) {
            (Self::Json, "root") => args.root = Some(text()?),
            (Self::Json, "unknown") => {
                args.unknown = Some(UnknownKeys::from_str(&text()?, true).map_err(|e| wrong(&e))?)
            }
            (Self::Json, "columns") => {
                args.columns = pairs(value).ok_or_else(|| wrong("{'name': 'path', ...} is expected"))?;
            }
            (Self::Json, "validate") => args.unchecked = !flag()?,
            (Self::Csv, "delimiter" | "delim") => {
                args.delimiter = Some(parse_character(&text()?).map_err(|e| wrong(&e))?);
            }
            (Self::Csv, "quote") => args.quote = Some(parse_quote(&text()?).map_err(|e| wrong(&e))?),
            (Self::Csv, "escape") => args.escape = Some(parse_quote(&text()?).map_err(|e| wrong(&e))?),
            (Self::Csv, "header") => (args.header, args.no_header) = (flag()?, !flag()?),
            (Self::Csv, "thousands") => {
                args.thousands = Some(parse_character(&text()?).map_err(|e| wrong(&e))?);
            }
            (Self::Csv, "decimal") => args.decimal = Some(parse_character(&text()?).map_err(|e| wrong(&e))?),
            (Self::Csv, "null" | "nulls") => args.null = several(value).ok_or_else(|| wrong("text is expected"))?,
            (_, "schema") => args.schema = Some(text()?),
            (_, "ignore_extra") => args.ignore_extra = flag()?,
            (_, "sample") => args.sample = Some(parse_sample(&text()?).map_err(|e| wrong(&e))?),
            (_, "max_record") => args.max_record = Some(parse_bytes(&text()?).map_err(|e| wrong(&e))?),
            (_, "on_error") => args.on_error = Some(OnError::from_str(&text()?, true).map_err(|e| wrong(&e))?),
            (_, "rejects") => args.rejects = Some(text()?.into()),
            (_, "max_rejects") => {
                args.max_rejects = Some(text()?.parse().map_err(|_| wrong("a number is expected"))?);
            }
            _ => return plan_err!("{} has no argument {name:?}; it has {}", self.name(), self.arguments()),
        }
        Ok(())
    }

    fn wrong(self, name: &str, what: &str) -> DataFusionError {
        DataFusionError::Plan(format!("{}: {name}: {what}", self.name()))
    }
}

impl ReadFunctions {
    fn table(&self, function: Function, args: &[FunctionArg]) -> Result<ForeignTable> {
        let mut inputs: Option<Vec<PathBuf>> = None;
        let mut options = SourceArgs::default();
        for arg in args {
            let (name, value) = match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (None, value),
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => (Some(name), value),
                FunctionArg::ExprNamed { name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
                    (Some(name), value)
                }
                other => return plan_err!("{}: {other}: write name => value", function.name()),
            };
            match name {
                Some(Ident { value: name, .. }) => function.set(&mut options, &name.to_ascii_lowercase(), value)?,
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
                    inputs = Some(paths.into_iter().map(PathBuf::from).collect());
                }
            }
        }
        let Some(inputs) = inputs.filter(|inputs| !inputs.is_empty()) else {
            return plan_err!("{0} takes the name of a file, a folder or a pattern: {0}('x')", function.name());
        };
        let options = options.options().map_err(|e| DataFusionError::Plan(format!("{}: {e}", function.name())))?;
        let options = SourceOptions { format: Some(function.format(&inputs)), ..options };
        ForeignTable::open(inputs, self.within(options))
    }

    /// Options within what a query may use.
    pub(super) fn within(&self, options: SourceOptions) -> SourceOptions {
        SourceOptions {
            threads: self.threads,
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
