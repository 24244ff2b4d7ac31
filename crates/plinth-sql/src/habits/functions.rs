//! Functions of DuckDB, PostgreSQL and MySQL by others that the engine has.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator,
    FunctionArguments, Subscript, TimezoneInfo, UnaryOperator, Value,
};

use plinth_datafusion::unescaped_bytes;

use super::{forms, simple_name, templates, text_of};
use crate::meaning::{MAP, function_of_any, whole_interval};
use crate::names::normal;

/// NULL in a list is none of its items.
const HAS_ANY: &str =
    "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN array_has_any(array_compact($1), array_compact($2)) END";
const HAS_ALL: &str =
    "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN array_has_all(array_compact($1), array_compact($2)) END";
const SPLIT: &str = "CASE WHEN $1 IS NULL THEN NULL WHEN $2 IS NULL THEN make_array($1) WHEN $2 = '' THEN string_to_array($1, NULL) \
                     ELSE string_to_array($1, $2) END";

const MAP_EXTRACT: &str =
    "CASE WHEN array_has(map_keys($1), $2) THEN map_extract($1, $2) ELSE array_pop_back(map_extract($1, $2)) END";

/// The first value that so many are not greater than.
const QUANTILE: &str = "array_element(array_agg($1 ORDER BY $1) FILTER (WHERE $1 IS NOT NULL), CAST(greatest(ceil(count($1) * $2), 1) AS BIGINT))";

/// Functions with another name.
const NAMES: [(&str, &str); 19] = [
    ("approx_count_distinct", "approx_distinct"),
    ("approx_quantile", "approx_percentile_cont"),
    ("first", "first_value"),
    ("sign", "signum"),
    ("last", "last_value"),
    ("list", "array_agg"),
    ("quantile_cont", "percentile_cont"),
    ("regexp_matches", "regexp_like"),
    ("gen_random_uuid", "uuid"),
    ("list_filter", "array_filter"),
    ("filter", "array_filter"),
    ("list_transform", "array_transform"),
    ("list_apply", "array_transform"),
    ("apply", "array_transform"),
    ("list_value", "make_array"),
    ("list_pack", "make_array"),
    ("ucase", "upper"),
    ("lcase", "lower"),
    ("variance", "var_samp"),
];

/// Functions by their name and the number of their arguments, and what they mean.
const TEMPLATES: &[(&str, usize, &str)] = &[
    ("mod", 2, "$1 % $2"),
    // The engine has a list of NULL for a key that is not there.
    ("map_extract", 2, MAP_EXTRACT),
    ("element_at", 2, MAP_EXTRACT),
    ("if", 3, "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("iff", 3, "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("count_if", 1, "count(CASE WHEN $1 THEN 1 END)"),
    ("countif", 1, "count(CASE WHEN $1 THEN 1 END)"),
    ("year", 1, "date_part('year', $1)"),
    ("quarter", 1, "date_part('quarter', $1)"),
    ("month", 1, "date_part('month', $1)"),
    ("week", 1, "date_part('week', $1)"),
    ("day", 1, "date_part('day', $1)"),
    ("dayofmonth", 1, "date_part('day', $1)"),
    ("dayofweek", 1, "date_part('dow', $1)"),
    ("dayofyear", 1, "date_part('doy', $1)"),
    ("hour", 1, "date_part('hour', $1)"),
    ("minute", 1, "date_part('minute', $1)"),
    ("epoch", 1, "date_part('epoch', $1)"),
    ("isodow", 1, "date_part('isodow', $1)"),
    ("weekday", 1, "date_part('dow', $1)"),
    ("weekofyear", 1, "date_part('week', $1)"),
    ("millisecond", 1, "date_part('millisecond', $1)"),
    ("microsecond", 1, "date_part('microsecond', $1)"),
    ("second", 1, "CAST(floor(date_part('second', $1)) AS BIGINT)"),
    (
        "epoch_ms",
        1,
        "CAST(arrow_cast(arrow_cast($1, 'Timestamp(Microsecond, None)'), 'Timestamp(Millisecond, None)') AS BIGINT)",
    ),
    ("epoch_us", 1, "CAST(arrow_cast($1, 'Timestamp(Microsecond, None)') AS BIGINT)"),
    ("epoch_ns", 1, "CAST(arrow_cast($1, 'Timestamp(Nanosecond, None)') AS BIGINT)"),
    (
        "make_timestamp",
        6,
        "CAST(make_date($1, $2, $3) AS TIMESTAMP) + arrow_cast(CAST(round(($4 * 3600 + $5 * 60 + $6) * 1000000.0) AS BIGINT), 'Duration(Microsecond)')",
    ),
    (
        "age",
        2,
        "plinth_age(arrow_cast($1, 'Timestamp(Microsecond, None)'), arrow_cast($2, 'Timestamp(Microsecond, None)'))",
    ),
    (
        "age",
        1,
        "plinth_age(arrow_cast(current_date(), 'Timestamp(Microsecond, None)'), arrow_cast($1, 'Timestamp(Microsecond, None)'))",
    ),
    ("list_has_any", 2, HAS_ANY),
    ("array_has_any", 2, HAS_ANY),
    ("list_has_all", 2, HAS_ALL),
    ("array_has_all", 2, HAS_ALL),
    // Without a separator letters, and with NULL for one the whole: the engine's have it the other way round.
    ("string_split", 2, SPLIT),
    ("str_split", 2, SPLIT),
    ("split", 2, SPLIT),
    ("list_count", 1, "len(array_compact($1))"),
    ("list_distinct", 1, "array_compact(array_distinct($1))"),
    ("array_distinct", 1, "array_compact(array_distinct($1))"),
    ("list_unique", 1, "len(array_compact(array_distinct($1)))"),
    ("list_first", 1, "$1[1]"),
    ("list_last", 1, "$1[-1]"),
    ("list_reverse_sort", 1, "array_sort($1, 'DESC', 'NULLS LAST')"),
    ("regexp_full_match", 2, "regexp_like($1, concat('^(?:', $2, ')$'))"),
    ("prefix", 2, "starts_with($1, $2)"),
    ("suffix", 2, "ends_with($1, $2)"),
    ("position", 2, "strpos($2, $1)"),
    ("xor", 2, "($1 | $2) - ($1 & $2)"),
    ("getvariable", 1, "plinth_variable($1)"),
    ("dayname", 1, "to_char($1, '%A')"),
    ("monthname", 1, "to_char($1, '%B')"),
    ("last_day", 1, "CAST(date_trunc('month', $1) + INTERVAL '1 month' - INTERVAL '1 day' AS DATE)"),
    ("to_years", 1, "INTERVAL '1 year' * $1"),
    ("to_months", 1, "INTERVAL '1 month' * $1"),
    ("to_weeks", 1, "INTERVAL '7 days' * $1"),
    ("to_days", 1, "INTERVAL '1 day' * $1"),
    ("to_hours", 1, "INTERVAL '1 hour' * $1"),
    ("to_minutes", 1, "INTERVAL '1 minute' * $1"),
    ("to_seconds", 1, "INTERVAL '1 second' * $1"),
    ("to_milliseconds", 1, "INTERVAL '1 millisecond' * $1"),
    ("to_microseconds", 1, "INTERVAL '1 microsecond' * $1"),
    ("quantile_disc", 2, QUANTILE),
    ("struct_extract", 2, "get_field($1, $2)"),
    ("isinf", 1, "abs(CAST($1 AS DOUBLE)) = CAST('inf' AS DOUBLE)"),
    ("isfinite", 1, "CAST($1 AS DOUBLE) < CAST('inf' AS DOUBLE) AND CAST($1 AS DOUBLE) > CAST('-inf' AS DOUBLE)"),
    ("date_add", 2, "$1 + $2"),
    ("date_sub", 2, "$1 - $2"),
    ("arg_max", 2, "first_value($1 ORDER BY $2 DESC NULLS LAST) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("max_by", 2, "first_value($1 ORDER BY $2 DESC NULLS LAST) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("arg_min", 2, "first_value($1 ORDER BY $2 ASC NULLS LAST) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("min_by", 2, "first_value($1 ORDER BY $2 ASC NULLS LAST) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    (
        "regexp_extract",
        2,
        "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN coalesce(regexp_match($1, concat('(', $2, ')'))[1], '') END",
    ),
    (
        "regexp_extract",
        3,
        "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN coalesce(regexp_match($1, concat('(', $2, ')'))[$3 + 1], '') END",
    ),
    ("date_diff day", 2, "CAST($2 AS DATE) - CAST($1 AS DATE)"),
    (
        "date_diff week",
        2,
        "CAST((date_part('epoch', date_trunc('week', $2)) - date_part('epoch', date_trunc('week', $1))) / 604800 AS BIGINT)",
    ),
    (
        "date_diff quarter",
        2,
        "(date_part('year', $2) - date_part('year', $1)) * 4 + date_part('quarter', $2) - date_part('quarter', $1)",
    ),
    ("date_diff year", 2, "date_part('year', $2) - date_part('year', $1)"),
    (
        "date_diff month",
        2,
        "(date_part('year', $2) - date_part('year', $1)) * 12 + date_part('month', $2) - date_part('month', $1)",
    ),
    (
        "date_diff hour",
        2,
        "CAST((date_part('epoch', date_trunc('hour', $2)) - date_part('epoch', date_trunc('hour', $1))) / 3600 AS BIGINT)",
    ),
    (
        "date_diff minute",
        2,
        "CAST((date_part('epoch', date_trunc('minute', $2)) - date_part('epoch', date_trunc('minute', $1))) / 60 AS BIGINT)",
    ),
    (
        "date_diff second",
        2,
        "CAST(date_part('epoch', date_trunc('second', $2)) - date_part('epoch', date_trunc('second', $1)) AS BIGINT)",
    ),
    ("time_bucket days", 2, "date_bin($1, $2, TIMESTAMP '2000-01-03 00:00:00')"),
    ("time_bucket months", 2, "date_bin($1, $2, TIMESTAMP '2000-01-01 00:00:00')"),
    ("strlen", 1, "octet_length($1)"),
];

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
                None => templates::expression("concat('^(?:', $1, ')$')", &[(**pattern).clone()])?,
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
    if name == "to_char" {
        return forms::of_time(&list.args);
    }
    if name == "regexp_replace" {
        return forms::replacement(function);
    }
    if name == "percentile_disc" {
        return discrete(function);
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
    let special = list.duplicate_treatment.is_some()
        || !list.clauses.is_empty()
        || function.filter.is_some()
        || function.over.is_some()
        || !function.within_group.is_empty();
    if special {
        return plan_err!("{name}: takes no DISTINCT, ORDER BY, FILTER or OVER here; write {template} instead");
    }
    templates::expression(template, &args).map(Some)
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
