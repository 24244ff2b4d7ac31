//! `PIVOT t ON a USING sum(b)` and `UNPIVOT t ON a, b`.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::tokens::{find, is, parts, sql, text, there, there_is};
use super::{clauses, source};

/// Words that end the list before them.
const ENDS: [&str; 5] = ["using", "group", "order", "limit", "offset"];

/// `SELECT plinth_pivot(plinth_list(on), plinth_list(using), plinth_list(group)) FROM t ORDER BY ...`.
pub(super) fn pivot(first: &TokenWithSpan, rest: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let Some(on) = find(rest, 0, &["on", "using", "group"]) else {
        return plan_err!("PIVOT takes ON columns: PIVOT t ON a USING sum(b)");
    };
    let mut at = on;
    let (mut columns, mut aggregates, mut groups) = (Vec::new(), Vec::new(), None);
    if is(&rest[at], "on") {
        let end = find(rest, at + 1, &ENDS).unwrap_or(rest.len());
        columns = listed(first, &rest[at + 1..end])?;
        at = end;
    }
    if there_is(rest, at, "using") {
        let end = find(rest, at + 1, &ENDS[1..]).unwrap_or(rest.len());
        aggregates = listed(first, &rest[at + 1..end])?;
        at = end;
    }
    if there_is(rest, at, "group") && there_is(rest, at + 1, "by") {
        let end = find(rest, at + 2, &ENDS[2..]).unwrap_or(rest.len());
        groups = Some(listed(first, &rest[at + 2..end])?);
        at = end;
    }
    if columns.is_empty() {
        return plan_err!("PIVOT takes ON columns: PIVOT t ON a USING sum(b)");
    }
    let mut out = sql("SELECT plinth_pivot(plinth_list(", first)?;
    out.extend(columns);
    out.extend(sql("), plinth_list(", first)?);
    out.extend(aggregates);
    out.extend(sql(")", first)?);
    if let Some(groups) = groups {
        out.extend(sql(", plinth_list(", first)?);
        out.extend(groups);
        out.extend(sql(")", first)?);
    }
    out.extend(sql(") FROM", first)?);
    out.extend(source(first, &rest[..on])?);
    out.extend(clauses::within(&rest[at..])?);
    Ok(out)
}

/// `SELECT plinth_unpivot('name', 'value', columns) FROM t`.
pub(super) fn unpivot(first: &TokenWithSpan, rest: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let Some(on) = find(rest, 0, &["on"]) else {
        return plan_err!("UNPIVOT takes ON columns: UNPIVOT t ON a, b INTO NAME n VALUE v");
    };
    let end = find(rest, on + 1, &["into", "order", "limit", "offset"]).unwrap_or(rest.len());
    let columns = listed(first, &rest[on + 1..end])?;
    let (mut name, mut value, mut at) = ("name".to_owned(), "value".to_owned(), end);
    if there_is(rest, at, "into") {
        match rest.get(at + 1..at + 5) {
            Some([n, its, v, of]) if is(n, "name") && is(v, "value") => {
                (name, value, at) = (label(its), label(of), at + 5);
            }
            _ => return plan_err!("UNPIVOT ... INTO takes names: INTO NAME n VALUE v"),
        }
        if there(rest, at, &Token::Comma) {
            return plan_err!("UNPIVOT of several values at once: not supported; one VALUE is");
        }
    }
    let quoted = |text: &str| text.replace('\'', "''");
    let mut out = sql(&format!("SELECT plinth_unpivot('{}', '{}', ", quoted(&name), quoted(&value)), first)?;
    out.extend(columns);
    out.extend(sql(") FROM", first)?);
    out.extend(source(first, &rest[..on])?);
    out.extend(clauses::within(&rest[at..])?);
    Ok(out)
}

/// What a name is in the heading: its letters if it is quoted, else in lower case.
fn label(name: &TokenWithSpan) -> String {
    match &name.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
        Token::Word(word) => word.value.clone(),
        Token::SingleQuotedString(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Expressions as arguments: `x AS y` as `plinth_named('y', x)`, `*` as `COLUMNS(*)`.
fn listed(first: &TokenWithSpan, list: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let mut out = Vec::new();
    for (at, part) in parts(list).into_iter().enumerate() {
        if at > 0 {
            out.extend(sql(",", first)?);
        }
        if there(part, 0, &Token::Mul) {
            out.extend(sql(&format!("COLUMNS({})", text(part)), first)?);
            continue;
        }
        match part {
            [expr @ .., alias, name] if is(alias, "as") => {
                out.extend(sql(&format!("plinth_named('{}',", label(name).replace('\'', "''")), first)?);
                out.extend(clauses::within(expr)?);
                out.extend(sql(")", first)?);
            }
            part => out.extend(clauses::within(part)?),
        }
    }
    Ok(out)
}
