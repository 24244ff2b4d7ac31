//! `FROM t WHERE a > 1`: a query without SELECT, which gives all columns.

use datafusion::common::Result;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::tokens::{close, is, opens, sql, word};

/// What is known of the parentheses that are open.
#[derive(Default)]
struct Open {
    /// Whether a WITH has begun whose query is still to come.
    with: bool,
    /// Whether an INSERT has begun whose rows are still to come.
    insert: bool,
}

/// The places of FROM where a query begins that has no SELECT.
fn places(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut open = vec![Open::default()];
    // Whether a query may begin here.
    let mut begins = true;
    // Whether what stands here may belong to UNION or EXPLAIN, as ALL does.
    let mut joins = false;
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let begun = std::mem::replace(&mut begins, false);
        let joined = std::mem::replace(&mut joins, false);
        match &token.token {
            Token::SemiColon => {
                open = vec![Open::default()];
                begins = true;
            }
            Token::LParen => {
                open.push(Open::default());
                // trim(FROM 'x')
                begins = !before.is_some_and(|before| is(before, "trim"));
            }
            Token::RParen => {
                if open.len() > 1 {
                    open.pop();
                }
                let next = tokens.get(at + 1);
                if let Some(around) = open.last_mut().filter(|around| around.with)
                    && !next.is_some_and(|next| next.token == Token::Comma || is(next, "as"))
                {
                    around.with = false;
                    begins = true;
                }
            }
            Token::Word(_) => {
                let Some(around) = open.last_mut() else { continue };
                match word(token).as_str() {
                    "from" => {
                        if (begun || around.insert) && !has_select(tokens, at + 1) {
                            places.push(at);
                        }
                        around.insert = false;
                    }
                    "with" => around.with |= begun,
                    "insert" => around.insert |= begun,
                    "select" | "values" | "on" => around.insert = false,
                    "union" | "except" | "intersect" | "explain" => (begins, joins) = (true, true),
                    "as" | "describe" | "summarize" | "table" => begins = true,
                    "all" | "distinct" | "by" | "name" | "analyze" | "verbose" if joined => {
                        (begins, joins) = (begun, true)
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    places
}

/// Whether the query of a FROM has a SELECT behind it.
fn has_select(tokens: &[TokenWithSpan], from: usize) -> bool {
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        match token.token {
            Token::SemiColon | Token::RParen => return false,
            _ if is(token, "select") => return true,
            _ if ["union", "except", "intersect"].iter().any(|end| is(token, end)) => return false,
            _ if opens(token) => at = close(tokens, at),
            _ => {}
        }
        at += 1;
    }
    false
}

/// Puts `SELECT *` before each FROM that has none.
pub(super) fn rewrite(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let places = places(&tokens);
    if places.is_empty() {
        return Ok(tokens);
    }
    let mut out = Vec::with_capacity(tokens.len() + 2 * places.len());
    for (at, token) in tokens.into_iter().enumerate() {
        if places.binary_search(&at).is_ok() {
            out.extend(sql("SELECT *", &token)?);
        }
        out.push(token);
    }
    Ok(out)
}
