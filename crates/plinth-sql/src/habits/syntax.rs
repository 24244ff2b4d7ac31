//! Statements and clauses that the parser does not know, in words that it does.
//!
//! The tokens of a text are rewritten before it is parsed. What a form means is said later, where the parsed statement and its
//! tables are known ([`super::expand`]): here `SUMMARIZE t` becomes `SELECT plinth_summarize() FROM t`.

mod attach;
mod clauses;
mod copies;
mod from_first;
mod intervals;
mod pivots;
mod sequences;
mod tokens;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use tokens::{close, find, is, sql, word};

/// Most parentheses within one another in what is looked at.
const DEEPEST: usize = 200;

/// Words of which one is in each form that is rewritten here, beside signs.
const WORDS: [&str; 36] = [
    "summarize",
    "describe",
    "desc",
    "pivot",
    "pivot_wider",
    "unpivot",
    "pragma",
    "all",
    "checkpoint",
    "export",
    "attach",
    "detach",
    "import",
    "install",
    "load",
    "variable",
    "function",
    "copy",
    "for",
    "like",
    "ilike",
    "glob",
    "similar",
    "tablesample",
    "using",
    "limit",
    "asof",
    "positional",
    "global",
    "apply",
    "exclude",
    "reset",
    "not",
    "table",
    "sequence",
    "materialized",
];

/// Rewrites the statements of a text.
///
/// # Errors
/// If a form asks for what can't be done.
pub(crate) fn rewrite(all: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let known = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => word.quote_style.is_none() && WORDS.iter().any(|w| word.value.eq_ignore_ascii_case(w)),
        Token::Mul => true,
        _ => false,
    };
    let mut all = all;
    all.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    // What is deeper the parser refuses; looking for ends of groups would take too long.
    if tokens::depth(&all) > DEEPEST {
        return Ok(all);
    }
    let all = intervals::without_parentheses(from_first::rewrite(all)?);
    if !all.iter().any(known) {
        return Ok(all);
    }
    let mut out = Vec::with_capacity(all.len() + 16);
    for statement in all.split_inclusive(|token| token.token == Token::SemiColon) {
        let (body, end) = match statement.split_last() {
            Some((last, body)) if last.token == Token::SemiColon => (body, Some(last)),
            _ => (statement, None),
        };
        out.extend(of_statement(body)?);
        out.extend(end.cloned());
    }
    Ok(out)
}

/// A statement without the semicolon behind it.
fn of_statement(tokens: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let Some(first) = tokens.first() else { return Ok(Vec::new()) };
    let rest = tokens.get(1..).unwrap_or_default();
    match word(first).as_str() {
        "explain" => {
            let words = ["analyze", "verbose"];
            let mut behind = 1 + rest.iter().take_while(|token| words.iter().any(|w| is(token, w))).count();
            if tokens.get(behind).is_some_and(|token| token.token == Token::LParen) {
                // EXPLAIN (FORMAT tree), or a query in parentheses.
                let end = close(tokens, behind);
                behind = if tokens.get(end + 1).is_some() { end + 1 } else { behind };
            }
            let (before, statement) = tokens.split_at(behind.min(tokens.len()));
            let mut out = before.to_vec();
            out.extend(of_statement(statement)?);
            Ok(out)
        }
        "pragma" => pragma(first, rest),
        "show" if rest.len() == 2 && is(&rest[0], "all") && is(&rest[1], "tables") => {
            sql("SELECT plinth_all_tables()", first)
        }
        "checkpoint" if rest.is_empty() => plan_err!(
            "CHECKPOINT: nothing waits to be written, what a statement changed is on the disk when it returns; VACUUM merges \
             what a table keeps"
        ),
        "export" | "import" if rest.first().is_some_and(|token| is(token, "database")) => plan_err!(
            "{} DATABASE: a folder with its files is the database and can be copied as it is; COPY table TO 'file' writes one \
             table",
            word(first).to_uppercase()
        ),
        "attach" => attach::attach(tokens),
        "detach" => attach::detach(tokens),
        "install" | "load" => plan_err!(
            "{} {}: there are no extensions; Parquet, CSV, JSON and Plinth files are read without one",
            word(first).to_uppercase(),
            rest.first().map(|token| token.to_string()).unwrap_or_default()
        ),
        "set" if rest.first().is_some_and(|token| is(token, "variable")) => variable(first, rest),
        "reset" if rest.len() == 2 && is(&rest[0], "variable") => {
            let name = rest[1].to_string();
            sql(&format!("SET plinth_variable.{name} = NULL"), first)
        }
        "create" => created(tokens),
        "copy" => copies::copy(tokens),
        "with" => {
            let forms = ["pivot", "pivot_wider", "unpivot", "summarize", "describe"];
            match find(tokens, 0, &["select", "from", "pivot", "pivot_wider", "unpivot", "summarize", "describe"]) {
                Some(at) if forms.iter().any(|form| is(&tokens[at], form)) => {
                    let mut out = clauses::within(&tokens[..at])?;
                    out.extend(query(&tokens[at..])?);
                    Ok(out)
                }
                _ => clauses::within(tokens),
            }
        }
        _ => query(tokens),
    }
}

/// A query, in parentheses or not.
fn query(tokens: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let Some((first, rest)) = tokens.split_first() else { return Ok(Vec::new()) };
    match word(first).as_str() {
        "summarize" if !rest.is_empty() => about("plinth_summarize()", first, rest),
        "describe" | "desc" if !rest.is_empty() => about("plinth_describe()", first, rest),
        "pivot" | "pivot_wider" if !rest.is_empty() => pivots::pivot(first, rest),
        "unpivot" if !rest.is_empty() => pivots::unpivot(first, rest),
        "table" if !rest.is_empty() => {
            let mut out = sql("SELECT * FROM", first)?;
            out.extend(clauses::within(rest)?);
            Ok(out)
        }
        _ => clauses::within(tokens),
    }
}

/// `SELECT call FROM` what a statement is about.
fn about(call: &str, at: &TokenWithSpan, what: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    // DESCRIBE TABLE t
    let what = match what.split_first() {
        Some((table, named)) if is(table, "table") && !named.is_empty() => named,
        _ => what,
    };
    let mut out = sql(&format!("SELECT {call} FROM"), at)?;
    out.extend(source(at, what)?);
    Ok(out)
}

/// A table, a path or a query as something to select from.
fn source(at: &TokenWithSpan, what: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let starts =
        ["select", "from", "with", "values", "table", "pivot", "pivot_wider", "unpivot", "summarize", "describe"];
    if what.first().is_some_and(|first| starts.iter().any(|start| is(first, start))) {
        let mut out = sql("(", at)?;
        out.extend(query(what)?);
        out.extend(sql(")", at)?);
        return Ok(out);
    }
    clauses::within(what)
}

/// `PRAGMA table_info('t')`, of which SQLite has the name; others are settings.
fn pragma(first: &TokenWithSpan, rest: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    match rest {
        [name, open, table, end]
            if (is(name, "table_info") || is(name, "show"))
                && open.token == Token::LParen
                && end.token == Token::RParen =>
        {
            let mut out = sql("SELECT plinth_table_info() FROM", first)?;
            // A name in quotes may be that of a table in several parts.
            match &table.token {
                Token::SingleQuotedString(text) if !text.contains(['/', '.', '*']) => {
                    out.extend(sql(&format!("\"{}\"", text.replace('"', "\"\"")), table)?);
                }
                _ => out.push(table.clone()),
            }
            Ok(out)
        }
        [name] if is(name, "show_tables") => sql("SHOW TABLES", first),
        _ => plan_err!("PRAGMA: only table_info('t') and show_tables are known; SET name = value changes a setting"),
    }
}

/// `SET VARIABLE x = 1`.
fn variable(first: &TokenWithSpan, rest: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    match rest {
        [_, name, equals, value @ ..]
            if matches!(name.token, Token::Word(_))
                && (equals.token == Token::Eq || is(equals, "to"))
                && !value.is_empty() =>
        {
            let mut out = sql(&format!("SET plinth_variable.{} = (", name.token), first)?;
            out.extend(clauses::within(value)?);
            out.extend(sql(")", first)?);
            Ok(out)
        }
        _ => plan_err!("SET VARIABLE takes a name and a value: SET VARIABLE x = 1"),
    }
}

/// CREATE: of a macro by its other name, or of what a form that is no SELECT answers.
fn created(tokens: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let forms = ["pivot", "pivot_wider", "unpivot", "summarize", "describe"];
    if let Some(ordered) = sequences::ordered(tokens) {
        return Ok(ordered);
    }
    let mut tokens = tokens.to_vec();
    if let Some(at) = find(&tokens, 0, &["function"]).filter(|at| *at <= 4) {
        // Without RETURNS it is a macro.
        let end = tokens.iter().position(|token| token.token == Token::LParen).map(|open| close(&tokens, open));
        if end.and_then(|end| tokens.get(end + 1)).is_some_and(|token| is(token, "as")) {
            let macros = sql("MACRO", &tokens[at])?;
            tokens.splice(at..=at, macros);
        }
    }
    match find(&tokens, 0, &["as"]) {
        Some(at) if tokens.get(at + 1).is_some_and(|next| forms.iter().any(|form| is(next, form))) => {
            let mut out = tokens[..=at].to_vec();
            out.extend(query(&tokens[at + 1..])?);
            Ok(out)
        }
        _ => clauses::within(&tokens),
    }
}
