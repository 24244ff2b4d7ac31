//! Functions of DuckDB, PostgreSQL and MySQL by others that the engine has.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArguments,
    TimezoneInfo, Value,
};

use super::{simple_name, templates, text_of};

/// Functions with another name.
const NAMES: [(&str, &str); 14] = [
    ("approx_count_distinct", "approx_distinct"),
    ("first", "first_value"),
    ("last", "last_value"),
    ("list", "array_agg"),
    ("quantile_cont", "percentile_cont"),
    ("regexp_matches", "regexp_like"),
    ("string_split", "string_to_array"),
    ("str_split", "string_to_array"),
    ("split", "string_to_array"),
    ("gen_random_uuid", "uuid"),
    ("list_filter", "array_filter"),
    ("list_transform", "array_transform"),
    ("list_apply", "array_transform"),
    ("ucase", "upper"),
];

/// Functions by their name and the number of their arguments, and what they mean.
const TEMPLATES: [(&str, usize, &str); 37] = [
    ("mod", 2, "$1 % $2"),
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
    ("dayname", 1, "to_char($1, '%A')"),
    ("monthname", 1, "to_char($1, '%B')"),
    ("last_day", 1, "CAST(date_trunc('month', $1) + INTERVAL '1 month' - INTERVAL '1 day' AS DATE)"),
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
    ("strftime", 2, "to_char($1, $2)"),
    ("time_bucket days", 2, "date_bin($1, $2, TIMESTAMP '2000-01-03 00:00:00')"),
    ("time_bucket months", 2, "date_bin($1, $2, TIMESTAMP '2000-01-01 00:00:00')"),
    ("strlen", 1, "octet_length($1)"),
];

/// What is written in a format of dates alike everywhere.
const FORMATS: &str = "YymdHMSpIjaAbB%";

/// Rewrites an expression whose parts have been.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    let rewritten = match expr {
        Expr::Function(function) => of_function(function)?,
        Expr::BinaryOp { left, op: BinaryOperator::PGStartsWith, right } => {
            Some(templates::expression("starts_with($1, $2)", &[(**left).clone(), (**right).clone()])?)
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

/// Whether a time stamp ends with its minutes: `2024-01-01 10:30`.
fn lacks_seconds(text: &str) -> bool {
    let form = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
    let form: Vec<u8> = text.bytes().map(form).collect();
    form == b"0000-00-00 00:00" || form == b"0000-00-00T00:00"
}

fn of_function(function: &mut Function) -> Result<Option<Expr>> {
    let Some(name) = simple_name(&function.name) else { return Ok(None) };
    if let Some((_, known)) = NAMES.iter().find(|(habit, _)| *habit == name) {
        function.name = datafusion::sql::sqlparser::ast::ObjectName::from(vec![(*known).into()]);
        return Ok(None);
    }
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    if name == "struct_pack" {
        return fields(&list.args);
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
        "strftime" => match args.get(1).and_then(text_of) {
            Some(format) if is_alike(format) => name.clone(),
            _ => {
                return plan_err!(
                    "strftime: takes a format as text, of these: %Y %m %d %H %M %S and %y %p %I %j %a %A %b %B"
                );
            }
        },
        _ => name.clone(),
    };
    let found = TEMPLATES.iter().find(|(habit, count, _)| *habit == meaning && *count == args.len());
    let Some((_, _, template)) = found else {
        return if meaning.starts_with("date_diff ") {
            plan_err!("{name}: takes year, month, day, hour, minute or second")
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

fn is_alike(format: &str) -> bool {
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' && !letters.next().is_some_and(|of| FORMATS.contains(of)) {
            return false;
        }
    }
    true
}
