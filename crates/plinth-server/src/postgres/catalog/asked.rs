//! Questions to the catalog in words that Plinth's SQL has.
//!
//! Tools write names of functions, types and operators with the schema in front (`pg_catalog.format_type`, `OPERATOR(pg_catalog.~)`), names of
//! objects as values (`'items'::regclass`) and functions that give rows where values stand. A statement that names nothing of the catalog is
//! left as it is.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, TableFactor, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use plinth_sql::Statement;

use super::functions::{SETTINGS, VECTOR_OUT};
use super::{SCHEMA, is_table};

/// Values of lists as rows, which PostgreSQL has as functions that give rows.
const OF_LISTS: [&str; 2] = ["generate_subscripts", "_pg_expandarray"];

/// Functions that are told from the user's own by their names alone.
const KNOWN: [&str; 12] = [
    "current_schemas",
    "current_setting",
    "format_type",
    "quote_ident",
    "to_regclass",
    "to_regnamespace",
    "col_description",
    "obj_description",
    "shobj_description",
    "generate_subscripts",
    "array_lower",
    "array_upper",
];

/// A statement as Plinth reads it, if it asks the catalog.
pub(in crate::postgres) fn readable(statement: &mut Statement) {
    let Statement::Statement(inner) = statement else { return };
    if let ast::Statement::ShowVariable { variable } = inner.as_ref()
        && let Some(query) = setting(variable)
    {
        **inner = query;
    }
    if matches!(inner.as_ref(), ast::Statement::Query(_)) && Visit::visit(inner.as_ref(), &mut Asks).is_break() {
        let _ = VisitMut::visit(inner.as_mut(), &mut Rewrites);
        if let ast::Statement::Query(query) = inner.as_mut()
            && let ast::SetExpr::Select(select) = query.body.as_mut()
        {
            select.projection.iter_mut().for_each(vector);
        }
    }
}

/// Columns that drivers read as vectors.
const VECTORS: [&str; 4] = ["indkey", "indcollation", "indclass", "indoption"];

/// A column of the result as a vector, if it is one: lists within the statement.
fn vector(item: &mut ast::SelectItem) {
    let (expr, alias) = match item {
        ast::SelectItem::UnnamedExpr(expr) => (expr, None),
        ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.clone())),
        _ => return,
    };
    let name = match expr {
        Expr::Identifier(name) => name.clone(),
        Expr::CompoundIdentifier(names) => match names.last() {
            Some(name) => name.clone(),
            None => return,
        },
        _ => return,
    };
    if VECTORS.contains(&name_of(&name).as_str()) {
        let expr = call(VECTOR_OUT, vec![take(expr)]);
        *item = ast::SelectItem::ExprWithAlias { expr, alias: alias.unwrap_or(name) };
    }
}

/// The query for a setting of PostgreSQL's: `SHOW transaction isolation level`.
fn setting(words: &[Ident]) -> Option<ast::Statement> {
    let name = words.iter().map(name_of).collect::<Vec<_>>().join("_");
    let name = if name == "transaction_isolation_level" { "transaction_isolation" } else { name.as_str() };
    let (known, _) = SETTINGS.iter().find(|(known, _)| *known == name)?;
    let text = format!("SELECT current_setting('{known}') AS {known}");
    Parser::parse_sql(&PostgreSqlDialect {}, &text).ok()?.pop()
}

/// The last part of a name, and whether the schema of the catalog stands before it.
fn last(name: &ObjectName) -> Option<(&Ident, bool)> {
    let mut parts = name.0.iter().rev().map(|part| part.as_ident());
    let last = parts.next()??;
    let schema = parts.next().flatten();
    Some((last, schema.is_some_and(|schema| schema.value.eq_ignore_ascii_case(SCHEMA))))
}

/// A name in small letters, unless it is quoted.
fn name_of(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
}

/// Stops at the first thing of the catalog.
struct Asks;

impl Visitor for Asks {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        match last(relation) {
            Some((_, true)) => ControlFlow::Break(()),
            Some((name, false)) if relation.0.len() == 1 && is_table(&name_of(name)) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let asks = match expr {
            Expr::Function(Function { name, .. }) => last(name).is_some_and(|(name, ours)| {
                let name = name_of(name);
                ours || name.starts_with("pg_") || KNOWN.contains(&name.as_str())
            }),
            Expr::Cast { data_type, .. } => of_catalog(data_type).is_some(),
            _ => false,
        };
        if asks { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A type of the catalog: its name without the schema.
fn of_catalog(of: &DataType) -> Option<String> {
    match of {
        DataType::Regclass => Some("regclass".to_owned()),
        DataType::Array(ast::ArrayElemTypeDef::SquareBracket(of, _)) => of_catalog(of).map(|name| format!("{name}[]")),
        DataType::Custom(name, words) if words.is_empty() => {
            let (last, ours) = last(name)?;
            let name = name_of(last);
            let alone = matches!(
                name.as_str(),
                "regproc"
                    | "regtype"
                    | "regnamespace"
                    | "regclass"
                    | "oid"
                    | "xid"
                    | "cid"
                    | "name"
                    | "char"
                    | "int2vector"
                    | "oidvector"
            );
            // CHAR is a type of SQL; that of one byte is written in quotes.
            (ours || alone && (name != "char" || last.quote_style.is_some())).then_some(name)
        }
        _ => None,
    }
}

struct Rewrites;

impl VisitorMut for Rewrites {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, args: Some(args), .. } = factor
            && let Some((function, true)) = last(name)
        {
            let values = args.args.iter().map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
                _ => None,
            });
            let lists = values.collect::<Option<Vec<_>>>().and_then(|values| lists(&name_of(function), values));
            if let Some(array_exprs) = lists {
                *factor = unnested(alias.take(), array_exprs);
            }
        }
        if let TableFactor::Table { name, args, .. } = factor {
            match (last(name), args.is_some()) {
                // Functions have no schema here.
                (Some((_, true)), true) => {
                    name.0.drain(..name.0.len() - 1);
                }
                (Some((table, false)), false) if name.0.len() == 1 && is_table(&name_of(table)) => {
                    name.0.insert(0, ObjectNamePart::Identifier(Ident::new(SCHEMA)));
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    // Behind what is within it: a cast of a cast is seen from the inside.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Collate { expr: inner, collation } if last(collation).is_some_and(|(name, _)| is_by_bytes(name)) => {
                *expr = take(inner);
            }
            Expr::BinaryOp { left, op, right } => {
                if matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq) {
                    list_of_numbers(left);
                    list_of_numbers(right);
                }
                if let BinaryOperator::PGCustomBinaryOperator(parts) = op
                    && parts.first().is_some_and(|schema| schema == SCHEMA)
                    && let Some(known) = parts.last().and_then(|name| operator(name))
                {
                    *op = known;
                }
            }
            Expr::Cast { .. } => cast(expr),
            Expr::Function(function) => {
                let known =
                    last(&function.name).is_some_and(|(name, ours)| ours || OF_LISTS.contains(&name_of(name).as_str()));
                if known {
                    let all_but_one = function.name.0.len() - 1;
                    function.name.0.drain(..all_but_one);
                }
                if known && OF_LISTS.contains(&function.name.to_string().to_ascii_lowercase().as_str()) {
                    let inner = Expr::Function(function.clone());
                    *expr = call("unnest", vec![inner]);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether texts are ordered by this as they are without it. Names in quotes, as "C" is mostly written, keep their case.
fn is_by_bytes(collation: &Ident) -> bool {
    ["default", "c", "posix", "ucs_basic"].iter().any(|known| collation.value.eq_ignore_ascii_case(known))
}

/// The lists whose values a function has as rows.
fn lists(function: &str, values: Vec<Expr>) -> Option<Vec<Expr>> {
    match (function, values.as_slice()) {
        ("unnest", _) => Some(values),
        ("generate_series", [from, to]) => {
            let whole = |value: &Expr| to_type(value.clone(), DataType::BigInt(None));
            let one = Expr::Value(Value::Number("1".to_owned(), false).into());
            let behind = Expr::BinaryOp { left: Box::new(whole(to)), op: BinaryOperator::Plus, right: Box::new(one) };
            Some(vec![call("range", vec![whole(from), behind])])
        }
        _ => None,
    }
}

/// Lists as a table, whose only column PostgreSQL calls as it calls the table.
fn unnested(mut alias: Option<ast::TableAlias>, array_exprs: Vec<Expr>) -> TableFactor {
    if let Some(alias) = &mut alias
        && alias.columns.is_empty()
    {
        alias.columns.push(ast::TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
    TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_offset_alias: None, with_ordinality: false }
}

/// Makes a list of the text that a list of numbers is compared with: `'{0}'`.
fn list_of_numbers(expr: &mut Expr) {
    let Expr::Value(ast::ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = expr else { return };
    let Some(numbers) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else { return };
    let numbers: Option<Vec<Expr>> = numbers
        .split(',')
        .map(|number| {
            let number: i32 = number.trim().parse().ok()?;
            Some(Expr::Value(Value::Number(number.to_string(), false).into()))
        })
        .collect();
    if let Some(elem) = numbers {
        *expr = Expr::Array(ast::Array { elem, named: false });
    }
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

fn operator(name: &str) -> Option<BinaryOperator> {
    Some(match name {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        ">" => BinaryOperator::Gt,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// A cast to a type of the catalog in other words.
fn cast(expr: &mut Expr) {
    let Expr::Cast { expr: inner, data_type, .. } = expr else { return };
    let Some(to) = of_catalog(data_type) else { return };
    // What is written out, or bound, is a name; what a column holds is a number, and told by its name.
    let is_name = matches!(inner.as_ref(), Expr::Value(_));
    let inner = take(inner);
    *expr = match (to.as_str(), is_name) {
        ("regclass", true) => call("regclassin", vec![inner]),
        ("regclass", false) => call("regclassout", vec![inner]),
        ("regnamespace", true) => call("regnamespacein", vec![inner]),
        ("regnamespace", false) => call("regnamespaceout", vec![inner]),
        ("regtype", true) => call("regtypein", vec![inner]),
        ("regtype", false) => call("format_type", vec![inner, Expr::Value(Value::Null.into())]),
        ("oid" | "xid" | "cid", _) => to_type(inner, DataType::Int(None)),
        // Names of functions are told as such, and lists of numbers are lists.
        ("regproc" | "int2vector" | "oidvector", _) => inner,
        (name, _) => to_type(inner, plain(name)),
    };
}

/// The type that SQL has by a name of PostgreSQL's.
fn plain(name: &str) -> DataType {
    if let Some(item) = name.strip_suffix("[]") {
        return DataType::Array(ast::ArrayElemTypeDef::SquareBracket(Box::new(plain(item)), None));
    }
    match name {
        "bool" => DataType::Boolean,
        "int2" => DataType::SmallInt(None),
        "int4" => DataType::Int(None),
        "int8" => DataType::BigInt(None),
        "float4" => DataType::Real,
        "float8" => DataType::Double(ast::ExactNumberInfo::None),
        "date" => DataType::Date,
        "timestamp" => DataType::Timestamp(None, ast::TimezoneInfo::None),
        "timestamptz" => DataType::Timestamp(None, ast::TimezoneInfo::WithTimeZone),
        "numeric" => DataType::Numeric(ast::ExactNumberInfo::None),
        _ => DataType::Text,
    }
}

fn to_type(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, format: None, array: false }
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
