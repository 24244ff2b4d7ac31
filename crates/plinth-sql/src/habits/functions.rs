//! Functions of DuckDB, PostgreSQL and MySQL by others that the engine has.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, DataType, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgOperator, FunctionArguments, Subscript, TimezoneInfo, UnaryOperator, Value,
};

use plinth_datafusion::unescaped_bytes;

use super::equivalents::{NAMES, QUANTILE, TEMPLATES};
use super::{aggregates, forms, intervals, simple_name, templates, text_of};
use crate::meaning::{MAP, function_of_any, of_aggregates, whole_interval};
use crate::names::normal;

/// Rewrites an expression whose parts have been.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    let rewritten = match expr {
        Expr::Function(function) => of_function(function)?,
        Expr::BinaryOp { left, op: BinaryOperator::PGStartsWith, right } => {
            Some(templates::expression("starts_with($1, $2)", &[(**left).clone(), (**right).clone()])?)
        }
        Expr::AnyOp { left, compare_op, right, .. } => any(left, compare_op, right, false)?,
        Expr::AllOp { left, compare_op, right } => any(left, compare_op, right, true)?,
        Expr::BinaryOp { left, op: BinaryOperator::BitwiseXor, right } => {
            let args = [(**left).clone(), (**right).clone()];
            Some(templates::expression("power(CAST($1 AS DOUBLE), CAST($2 AS DOUBLE))", &args)?)
        }
        // All bits are ones in -1, so that nothing is carried.
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr } => {
            Some(templates::expression("(-1 - ($1 | 0))", std::slice::from_ref(&**expr))?)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Custom(name), right } if name.ends_with("GLOB") => {
            let Some(pattern) = text_of(right) else { return plan_err!("GLOB takes a pattern as text: x GLOB 'a*'") };
            let pattern = Expr::Value(Value::SingleQuotedString(of_glob(pattern)).into());
            let op = if name.starts_with("NOT") { "!~" } else { "~" };
            Some(templates::expression(&format!("$1 {op} $2"), &[(**left).clone(), pattern])?)
        }
        Expr::SimilarTo { negated, expr, pattern, escape_char: None } => {
            // All of the text, not a part of it.
            let pattern = match text_of(pattern) {
                Some(pattern) => Expr::Value(Value::SingleQuotedString(format!("^(?:{pattern})$")).into()),
                None => templates::expression("'^(?:' || $1 || ')$'", &[(**pattern).clone()])?,
            };
            let op = if *negated { "!~" } else { "~" };
            Some(templates::expression(&format!("$1 {op} $2"), &[(**expr).clone(), pattern])?)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Arrow, right } => {
            Some(templates::expression("json_extract($1, $2)", &[(**left).clone(), (**right).clone()])?)
        }
        Expr::BinaryOp { left, op: BinaryOperator::LongArrow, right } => {
            Some(templates::expression("json_extract_string($1, $2)", &[(**left).clone(), (**right).clone()])?)
        }
        Expr::Cast { kind, expr, data_type, .. } => cast(kind, expr, data_type)?,
        Expr::CompoundFieldAccess { root, access_chain } => field(root, access_chain)?,
        Expr::Interval(interval) => {
            if let Some(product) = intervals::computed(interval)? {
                *expr = product;
                return Ok(());
            }
            if let (Expr::Value(value), None) = (interval.value.as_ref(), &interval.leading_field)
                && let Value::Number(number, _) = &value.value
            {
                // The engine would take seconds, and an unknown unit for the column's name.
                return plan_err!(
                    "INTERVAL {number}: no unit that is known follows; write INTERVAL '{number} seconds'"
                );
            }
            // In the frame of a window the engine takes text alone.
            if let (Expr::Value(value), Some(unit)) = (interval.value.as_mut(), &interval.leading_field)
                && let Value::Number(number, _) = &value.value
            {
                let text = format!("{number} {unit}");
                value.value = Value::SingleQuotedString(text);
                interval.leading_field = None;
            }
            if let Expr::Value(value) = interval.value.as_mut()
                && let Value::SingleQuotedString(text) = &mut value.value
            {
                let unit = interval.leading_field.as_ref().map(ToString::to_string).unwrap_or_default();
                if let Some(whole) = whole_interval(&format!("{text} {unit}")) {
                    *text = whole;
                    interval.leading_field = None;
                }
            }
            None
        }
        Expr::TypedString(typed) if is_bytes(&typed.data_type) => {
            cast(&CastKind::Cast, &Expr::Value(typed.value.clone()), &typed.data_type)?
        }
        Expr::TypedString(typed) => {
            let stamp = matches!(
                typed.data_type,
                DataType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) | DataType::Datetime(_)
            );
            if let (true, Value::SingleQuotedString(text)) = (stamp, &mut typed.value.value)
                && lacks_seconds(text)
            {
                text.push_str(":00");
            }
            None
        }
        _ => None,
    };
    if let Some(rewritten) = rewritten {
        *expr = rewritten;
    }
    Ok(())
}

/// `x = ANY(list)`, which holds of one item, and `x = ALL(list)`, which fails of none; of a subquery the engine's plans tell.
fn any(left: &Expr, op: &BinaryOperator, right: &Expr, all: bool) -> Result<Option<Expr>> {
    if matches!(right, Expr::Subquery(_)) {
        return Ok(None);
    }
    if let (BinaryOperator::Eq, false, Expr::Array(list)) = (op, all, right)
        && !list.elem.is_empty()
        && list.elem.iter().all(|item| matches!(item, Expr::Value(_)))
    {
        let (expr, list) = (Box::new(left.clone()), list.elem.clone());
        return Ok(Some(Expr::Nested(Box::new(Expr::InList { expr, list, negated: false }))));
    }
    let negated = match op {
        BinaryOperator::Eq => "<>",
        BinaryOperator::NotEq => "=",
        BinaryOperator::Lt => ">=",
        BinaryOperator::LtEq => ">",
        BinaryOperator::Gt => "<=",
        BinaryOperator::GtEq => "<",
        _ => {
            return plan_err!(
                "{op} {}: of lists not supported; =, <>, <, <=, > and >= are",
                if all { "ALL" } else { "ANY" }
            );
        }
    };
    let sign = if all { negated.to_owned() } else { op.to_string() };
    let Some(function) = function_of_any(&sign) else { return Ok(None) };
    let call = if all { format!("(NOT {function}($1, $2))") } else { format!("{function}($1, $2)") };
    templates::expression(&call, &[left.clone(), right.clone()]).map(Some)
}

/// The regular expression of a pattern with `*`, `?` and `[...]`.
fn of_glob(pattern: &str) -> String {
    let mut out = String::from("^(?s:");
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '[' => {
                out.push('[');
                if letters.peek() == Some(&'!') {
                    letters.next();
                    out.push('^');
                }
                for letter in letters.by_ref() {
                    if letter == ']' {
                        break;
                    }
                    if matches!(letter, '[' | '\\' | '&' | '~' | '^') {
                        out.push('\\');
                    }
                    out.push(letter);
                }
                out.push(']');
            }
            other => {
                if !other.is_alphanumeric() && other.is_ascii() {
                    out.push('\\');
                }
                out.push(other);
            }
        }
    }
    out.push_str(")$");
    out
}

/// `-2 ^ 2` is the square of -2.
pub(super) fn signed_powers(expr: &mut Expr) {
    let Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } = expr else { return };
    let is_power = |expr: &Expr| matches!(expr, Expr::BinaryOp { op: BinaryOperator::BitwiseXor, .. });
    if !is_power(inner) {
        return;
    }
    let mut power = std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()));
    let mut base = &mut power;
    while let Expr::BinaryOp { left, op: BinaryOperator::BitwiseXor, .. } = base {
        base = left.as_mut();
    }
    let value = std::mem::replace(base, Expr::Value(Value::Null.into()));
    *base = Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(value) };
    *expr = power;
}

fn is_bytes(to: &DataType) -> bool {
    matches!(to, DataType::Blob(_) | DataType::Bytea | DataType::Binary(_) | DataType::Varbinary(_))
}

/// Casts of what is written out to bytes, and casts to types that are text here: JSON and UUID.
fn cast(kind: &CastKind, value: &Expr, to: &DataType) -> Result<Option<Expr>> {
    // A BYTEA is PostgreSQL's, whose drivers write all bytes behind one \x; a BLOB has an \x before each.
    if let Some(digits) = text_of(value).and_then(|text| text.strip_prefix("\\x"))
        && matches!(to, DataType::Bytea)
        && digits.len().is_multiple_of(2)
        && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    {
        return Ok(Some(Expr::Value(Value::HexStringLiteral(digits.to_owned()).into())));
    }
    if let Some(text) = text_of(value).filter(|text| is_bytes(to) && text.contains('\\')) {
        return match unescaped_bytes(text) {
            Some(bytes) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
                Ok(Some(Expr::Value(Value::HexStringLiteral(digits).into())))
            }
            None if *kind == CastKind::TryCast => Ok(Some(Expr::Value(Value::Null.into()))),
            None => plan_err!("'{text}' is no BLOB: a byte is written \\x and two hexadecimal digits"),
        };
    }
    let function = match (to, kind) {
        (DataType::JSON, _) => "plinth_json",
        (DataType::Uuid, _) => "plinth_uuid",
        // What is written is its letters.
        (to, _) if !is_bytes(to) || matches!(value, Expr::Value(_)) => return Ok(None),
        (_, _) if is_uuid(value) => {
            return plan_err!("{value}: a UUID is text here: write decode(replace(x, '-', ''), 'hex') for its bytes");
        }
        (_, CastKind::TryCast | CastKind::SafeCast) => {
            return templates::expression("plinth_try_blob($1)", std::slice::from_ref(value)).map(Some);
        }
        _ => "plinth_blob",
    };
    if !matches!(kind, CastKind::Cast | CastKind::DoubleColon) {
        return plan_err!("TRY_CAST to {to}: not supported; CAST is");
    }
    templates::expression(&format!("{function}($1)"), std::slice::from_ref(value)).map(Some)
}

/// Whether an expression makes a UUID.
fn is_uuid(value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) => is_uuid(inner),
        Expr::Function(function) => {
            matches!(simple_name(&function.name).as_deref(), Some("uuid" | "plinth_uuid"))
        }
        _ => false,
    }
}

/// `{'a': 1}.a`: a field of what is no column.
fn field(root: &Expr, chain: &mut [AccessExpr]) -> Result<Option<Expr>> {
    for access in chain.iter_mut() {
        if let AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) = access {
            let number = |text: &str| Expr::Value(Value::Number(text.to_owned(), false).into());
            let first = || number("1");
            let last = || Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number("1")) };
            // Backwards a slice begins with the last item.
            let is_open = lower_bound.is_none() || upper_bound.is_none();
            let backwards = match stride {
                None => false,
                Some(Expr::Value(_)) => false,
                Some(Expr::UnaryOp { op: UnaryOperator::Minus, expr }) if matches!(**expr, Expr::Value(_)) => true,
                Some(other) if is_open => {
                    return plan_err!("[::{other}]: with a step that is no number, write both bounds of the slice");
                }
                Some(_) => false,
            };
            lower_bound.get_or_insert_with(|| if backwards { last() } else { first() });
            upper_bound.get_or_insert_with(|| if backwards { first() } else { last() });
        }
    }
    // The first names may be those of a table.
    if matches!(root, Expr::Identifier(_)) {
        return Ok(None);
    }
    let [AccessExpr::Dot(Expr::Identifier(name)), rest @ ..] = chain else { return Ok(None) };
    let name = Expr::Value(Value::SingleQuotedString(normal(name)).into());
    let first = templates::expression("get_field($1, $2)", &[root.clone(), name])?;
    if rest.is_empty() {
        return Ok(Some(first));
    }
    match field(&first, rest)? {
        Some(all) => Ok(Some(all)),
        None => Ok(Some(Expr::CompoundFieldAccess { root: Box::new(first), access_chain: rest.to_vec() })),
    }
}

/// The arguments of a call that are values.
pub(super) fn arguments(function: &Function) -> Option<Vec<Expr>> {
    match &function.args {
        FunctionArguments::List(list) => list.args.iter().map(unnamed).collect(),
        FunctionArguments::None => Some(Vec::new()),
        FunctionArguments::Subquery(_) => None,
    }
}

/// Whether a time stamp ends with its minutes: `2024-01-01 10:30`.
fn lacks_seconds(text: &str) -> bool {
    let form = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
    let form: Vec<u8> = text.bytes().map(form).collect();
    form == b"0000-00-00 00:00" || form == b"0000-00-00T00:00"
}

/// `percentile_disc(0.5) WITHIN GROUP (ORDER BY x)`.
fn discrete(function: &Function) -> Result<Option<Expr>> {
    let args = arguments(function).unwrap_or_default();
    let ([part], [by]) = (args.as_slice(), function.within_group.as_slice()) else {
        return plan_err!("percentile_disc: write percentile_disc(0.5) WITHIN GROUP (ORDER BY x)");
    };
    if function.filter.is_some() || function.over.is_some() || by.options.asc == Some(false) {
        return plan_err!("percentile_disc: takes no FILTER, OVER or DESC here; write quantile_disc(x, 0.5)");
    }
    templates::expression(QUANTILE, &[by.expr.clone(), part.clone()]).map(Some)
}

fn of_function(function: &mut Function) -> Result<Option<Expr>> {
    let Some(name) = simple_name(&function.name) else { return Ok(None) };
    if matches!(name.as_str(), "string_agg" | "group_concat" | "listagg")
        && let FunctionArguments::List(list) = &mut function.args
        && list.args.len() == 1
    {
        let comma = Expr::Value(Value::SingleQuotedString(",".to_owned()).into());
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(comma)));
    }
    if name == "count"
        && let FunctionArguments::List(list) = &function.args
        && list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
        && matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)])
    {
        // The engine would count rows as if they were one value.
        return plan_err!("count(DISTINCT *): name the columns, as in count(DISTINCT (a, b))");
    }
    if name == "mode"
        && let FunctionArguments::List(list) = &mut function.args
        && list.args.is_empty()
        && function.within_group.len() == 1
    {
        // mode() WITHIN GROUP (ORDER BY x)
        let by = function.within_group.drain(..).map(|by| FunctionArg::Unnamed(FunctionArgExpr::Expr(by.expr)));
        list.args.extend(by);
        return Ok(None);
    }
    if let Some(calls) = aggregates::of_each_part(&name, function)? {
        let each = |mut call| Ok(of_function(&mut call)?.unwrap_or(Expr::Function(call)));
        return aggregates::listed(calls.into_iter().map(each).collect::<Result<_>>()?);
    }
    if let Some((_, known)) = NAMES.iter().find(|(habit, _)| *habit == name) {
        function.name = datafusion::sql::sqlparser::ast::ObjectName::from(vec![(*known).into()]);
        return Ok(None);
    }
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    if matches!(name.as_str(), "lag" | "lead")
        && let Some([value, Expr::Value(offset), ..]) = arguments(function).as_deref()
        && matches!(&offset.value, Value::Number(number, _) if number == "0")
    {
        // The row itself, where the engine gives the default for NULL.
        return Ok(Some(value.clone()));
    }
    if name == "map" && list.args.len() == 2 {
        function.name = datafusion::sql::sqlparser::ast::ObjectName::from(vec![MAP.into()]);
        return Ok(None);
    }
    // What takes the place of these has no such clauses.
    if matches!(name.as_str(), "to_char" | "regexp_replace" | "struct_pack" | "json_object" | "json_array")
        && let Some(clause) = of_aggregates(function)
    {
        return plan_err!("{name}: takes no {clause}: it is no aggregate");
    }
    if name == "to_char" {
        return forms::of_time(&list.args);
    }
    if name == "regexp_replace" {
        return forms::replacement(function);
    }
    if name == "percentile_disc" {
        return discrete(function);
    }
    if matches!(name.as_str(), "json_object" | "json_array") {
        return json(&name, &list.args);
    }
    if name == "struct_pack" {
        return fields(&list.args);
    }
    if name == "strftime" {
        // The engine's time stamps are of several kinds.
        let mut args = arguments(function).unwrap_or_default();
        if let [one, other] = args.as_mut_slice() {
            let time = if text_of(one).is_some() { other } else { one };
            *time = templates::expression("CAST($1 AS TIMESTAMP(6))", std::slice::from_ref(time))?;
            if let FunctionArguments::List(list) = &mut function.args {
                let arg = |value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value));
                list.args = args.into_iter().map(arg).collect();
            }
        }
        return Ok(None);
    }
    let args: Option<Vec<Expr>> = list.args.iter().map(unnamed).collect();
    let Some(mut args) = args else { return Ok(None) };
    if let Some(aggregate) = aggregates::of_list(&name, &args)? {
        return Ok(Some(aggregate));
    }
    let meaning = match name.as_str() {
        "date_diff" | "datediff" if args.len() == 3 => {
            let part = args.remove(0);
            let Some(part) = text_of(&part) else {
                return plan_err!("{name}: takes the part as text: {name}('day', a, b)");
            };
            format!("date_diff {}", part.to_ascii_lowercase().trim_end_matches('s'))
        }
        "time_bucket" if args.len() == 2 => {
            let width = args.first().map(ToString::to_string).unwrap_or_default().to_ascii_lowercase();
            let months = ["mon", "quarter", "year", "decade", "cent"].iter().any(|unit| width.contains(unit));
            format!("time_bucket {}", if months { "months" } else { "days" })
        }
        _ => name.clone(),
    };
    let found = TEMPLATES.iter().find(|(habit, count, _)| *habit == meaning && *count == args.len());
    let Some((_, _, template)) = found else {
        return if meaning.starts_with("date_diff ") {
            plan_err!("{name}: takes year, quarter, month, week, day, hour, minute or second")
        } else {
            Ok(None)
        };
    };
    if let Some(aggregate) = aggregates::with_clauses(function, template, &args)? {
        return Ok(Some(aggregate));
    }
    if of_aggregates(function).is_some() {
        return plan_err!("{name}: takes no DISTINCT, ORDER BY, FILTER or OVER here; write {template} instead");
    }
    templates::expression(template, &args).map(Some)
}

/// `json_object('a', 1, 'b', 2)` and `json_array(1, 'b')`.
fn json(name: &str, args: &[FunctionArg]) -> Result<Option<Expr>> {
    let Some(values) = args.iter().map(unnamed).collect::<Option<Vec<_>>>() else {
        return plan_err!("{name}: its arguments have no names");
    };
    let places = |place: fn(usize) -> String| (1..=values.len()).map(place).collect::<Vec<_>>();
    let template = match name {
        "json_array" => {
            let items = places(|at| format!("coalesce(CAST(to_json(${at}) AS TEXT), 'null')"));
            format!("concat('[', {} ']')", items.join(", ',', ") + if items.is_empty() { "" } else { "," })
        }
        _ if values.is_empty() => "'{}'".to_owned(),
        _ if values.len() % 2 == 1 => return plan_err!("json_object: a key has no value"),
        _ => format!("to_json(named_struct({}))", places(|at| format!("${at}")).join(", ")),
    };
    templates::expression(&template, &values).map(Some)
}

/// `struct_pack(a := 1)`.
fn fields(args: &[FunctionArg]) -> Result<Option<Expr>> {
    let mut template = Vec::new();
    let mut values = Vec::new();
    for arg in args {
        let FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), operator: FunctionArgOperator::Assignment } =
            arg
        else {
            return plan_err!("struct_pack: {arg}: write name := value");
        };
        values.push(value.clone());
        template.push(format!("'{}', ${}", name.value.replace('\'', "''"), values.len()));
    }
    templates::expression(&format!("named_struct({})", template.join(", ")), &values).map(Some)
}

fn unnamed(arg: &FunctionArg) -> Option<Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    }
}
