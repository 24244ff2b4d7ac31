//! Texts with a meaning of their own, in the form that the engine's functions take: of times, and of what a regular expression found.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value};

use super::{templates, text_of};

/// `regexp_replace(s, 'a', '$1')`, whose `$` is a letter: the engine has groups by it, beside `\\1`.
pub(super) fn replacement(call: &Function) -> Result<Option<Expr>> {
    let mut call = call.clone();
    let FunctionArguments::List(list) = &mut call.args else { return Ok(None) };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(with))) = list.args.get_mut(2) else { return Ok(None) };
    *with = match text_of(with) {
        Some(text) if !text.contains('$') => return Ok(None),
        Some(text) => Expr::Value(Value::SingleQuotedString(text.replace('$', "$$")).into()),
        None => templates::expression("replace($1, '$', '$$')", std::slice::from_ref(with))?,
    };
    Ok(Some(Expr::Function(call)))
}

/// `to_char(ts, 'YYYY-MM-DD')`, whose form is PostgreSQL's unless it is that of `strftime`.
pub(super) fn of_time(args: &[FunctionArg]) -> Result<Option<Expr>> {
    const PARTS: [(&str, &str); 26] = [
        ("YYYY", "%Y"),
        ("YY", "%y"),
        ("IYYY", "%G"),
        ("IW", "%V"),
        ("MONTH", "%B"),
        ("Month", "%B"),
        ("MON", "%b"),
        ("Mon", "%b"),
        ("MM", "%m"),
        ("MI", "%M"),
        ("MS", "%3f"),
        ("US", "%6f"),
        ("DDD", "%j"),
        ("DD", "%d"),
        ("DAY", "%A"),
        ("Day", "%A"),
        ("DY", "%a"),
        ("Dy", "%a"),
        ("ID", "%u"),
        ("HH24", "%H"),
        ("HH12", "%I"),
        ("HH", "%I"),
        ("SS", "%S"),
        ("AM", "%p"),
        ("PM", "%p"),
        ("TZ", "%Z"),
    ];
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value)), FunctionArg::Unnamed(FunctionArgExpr::Expr(form))] = args
    else {
        return Ok(None);
    };
    let Some(text) = text_of(form).filter(|text| !text.contains('%')) else { return Ok(None) };
    let (mut rest, mut out) = (text, String::new());
    while let Some(letter) = rest.chars().next() {
        // What is quoted means itself.
        if letter == '"' {
            let Some((quoted, behind)) = rest.get(1..).and_then(|rest| rest.split_once('"')) else {
                return plan_err!("to_char: a quote in {text:?} has no end");
            };
            out.push_str(quoted);
            rest = behind;
            continue;
        }
        if rest.starts_with("SSSS") {
            return plan_err!("to_char: SSSS, the seconds of the day, is not supported");
        }
        // Names in capitals, and the fillers of FM, are another matter.
        if let Some((part, of)) = PARTS.iter().find(|(part, _)| rest.starts_with(part)) {
            if matches!(*part, "MONTH" | "MON" | "DAY" | "DY") {
                return plan_err!("to_char: {part} in capitals is not supported; write upper(to_char(t, '{of}'))");
            }
            out.push_str(of);
            rest = rest.get(part.len()..).unwrap_or_default();
        } else if letter.is_ascii_alphabetic() && letter != 'T' {
            return plan_err!(
                "to_char: {rest} in {text:?} is not known; write a form of strftime, as '%Y-%m-%d %H:%M:%S'"
            );
        } else {
            out.push(letter);
            rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        }
    }
    let form = Expr::Value(Value::SingleQuotedString(out).into());
    templates::expression("to_char($1, $2)", &[value.clone(), form]).map(Some)
}
