//! Parts of queries: samples, joins, lists, frames and signs.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::query;
use super::tokens::{close, closes, find, find_where, is, sql, text, there, there_is, word};

/// Words that follow the tables of a SELECT.
const BEHIND_TABLES: [&str; 9] = ["where", "group", "having", "window", "qualify", "using", "select", "order", "limit"];

/// The tokens of a query or a part of one.
pub(super) fn within(tokens: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let sampled = sample_behind(tokens)?;
    let tokens = sampled.as_deref().unwrap_or(tokens);
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let taken = match &token.token {
            Token::LParen => group(tokens, at, &mut out)?,
            Token::LBracket => comprehension(tokens, at, &mut out)?,
            Token::Mul => star(tokens, at, &mut out)?,
            Token::Word(_) => clause(tokens, at, &mut out)?,
            _ => 0,
        };
        if taken == 0 {
            out.push(token.clone());
            at += 1;
        } else {
            at += taken;
        }
    }
    Ok(out)
}

/// A form in parentheses that is no SELECT, or a SELECT with a sample behind it.
fn group(tokens: &[TokenWithSpan], at: usize, out: &mut Vec<TokenWithSpan>) -> Result<usize> {
    let forms = ["summarize", "describe", "pivot", "pivot_wider", "unpivot"];
    let Some(first) = tokens.get(at + 1) else { return Ok(0) };
    let selects = ["select", "from"].iter().any(|word| is(first, word));
    // `pivot` may be the name of a column.
    let form = forms.iter().any(|form| is(first, form))
        && tokens
            .get(at + 2)
            .is_some_and(|next| matches!(next.token, Token::Word(_) | Token::SingleQuotedString(_) | Token::LParen));
    if !form && !selects {
        return Ok(0);
    }
    let end = close(tokens, at);
    if end >= tokens.len() {
        return Ok(0);
    }
    out.push(tokens[at].clone());
    out.extend(query(&tokens[at + 1..end])?);
    out.push(tokens[end].clone());
    Ok(end + 1 - at)
}

/// `[x + 1 FOR x IN l IF x > 1]`.
fn comprehension(tokens: &[TokenWithSpan], at: usize, out: &mut Vec<TokenWithSpan>) -> Result<usize> {
    let end = close(tokens, at);
    let inner = tokens.get(at + 1..end).unwrap_or_default();
    let Some(for_at) = find(inner, 0, &["for"]) else { return Ok(0) };
    let Some(in_at) = find(inner, for_at, &["in"]) else { return Ok(0) };
    let names = text(&inner[for_at + 1..in_at]);
    let if_at = find(inner, in_at, &["if"]).unwrap_or(inner.len());
    let list = within(&inner[in_at + 1..if_at])?;
    let lambda = |body: &[TokenWithSpan]| -> Result<Vec<TokenWithSpan>> {
        let mut lambda = sql(&format!(", ({names}) ->"), &tokens[at])?;
        lambda.extend(sql("(", &tokens[at])?);
        lambda.extend(within(body)?);
        lambda.extend(sql("))", &tokens[at])?);
        Ok(lambda)
    };
    out.extend(sql("array_transform(", &tokens[at])?);
    match inner.get(if_at + 1..) {
        Some(condition) if if_at < inner.len() => {
            out.extend(sql("array_filter(", &tokens[at])?);
            out.extend(list);
            out.extend(lambda(condition)?);
        }
        _ => out.extend(list),
    }
    out.extend(lambda(&inner[..for_at])?);
    Ok(end + 1 - at)
}

/// `* LIKE 'a%'` as `COLUMNS(plinth_like('a%'))`, `2 ** 3` as `2 ^ 3`.
fn star(tokens: &[TokenWithSpan], at: usize, out: &mut Vec<TokenWithSpan>) -> Result<usize> {
    let before = out.last();
    let begins = before
        .is_none_or(|it| matches!(it.token, Token::Comma | Token::LParen) || is(it, "select") || is(it, "distinct"));
    if !begins && there(tokens, at + 1, &Token::Mul) && tokens[at].span.end == tokens[at + 1].span.start {
        out.extend(sql("^", &tokens[at])?);
        return Ok(2);
    }
    if !begins {
        return Ok(0);
    }
    let negated = there_is(tokens, at + 1, "not");
    let of = at + 1 + usize::from(negated);
    let name = tokens.get(of).map(word).unwrap_or_default();
    if !matches!(name.as_str(), "like" | "ilike" | "glob" | "similar") {
        return Ok(0);
    }
    let of = of + usize::from(name == "similar");
    let Some(Token::SingleQuotedString(pattern)) = tokens.get(of + 1).map(|it| &it.token) else {
        return plan_err!("* {}: takes a pattern as text", name.to_uppercase());
    };
    let not = if negated { "not " } else { "" };
    let quoted = pattern.replace('\'', "''");
    out.extend(sql(&format!("COLUMNS(plinth_named('{not}{name}', '{quoted}'))"), &tokens[at])?);
    Ok(of + 2 - at)
}

/// A clause that begins with a word.
fn clause(tokens: &[TokenWithSpan], at: usize, out: &mut Vec<TokenWithSpan>) -> Result<usize> {
    let token = &tokens[at];
    match word(token).as_str() {
        "tablesample" => {
            let Some((sample, taken)) = sample(&tokens[at + 1..])? else { return Ok(0) };
            out.extend(sql(&format!("TABLESAMPLE {sample}"), token)?);
            Ok(1 + taken)
        }
        "limit" => {
            let percent = tokens.get(at + 2).is_some_and(|it| it.token == Token::Mod || is(it, "percent"));
            match tokens.get(at + 1).map(|it| &it.token) {
                Some(Token::Number(number, _)) if percent => {
                    // `LIMIT 10 % 3` is a remainder.
                    if tokens.get(at + 3).is_some_and(|it| matches!(it.token, Token::Number(..) | Token::LParen)) {
                        return Ok(0);
                    }
                    out.extend(sql(&format!("LIMIT plinth_percent({number})"), token)?);
                    Ok(3)
                }
                _ => Ok(0),
            }
        }
        "asof" if ["join", "left", "inner", "right", "full"].iter().any(|w| there_is(tokens, at + 1, w)) => {
            if there_is(tokens, at + 1, "right") || there_is(tokens, at + 1, "full") {
                return plan_err!("ASOF RIGHT and ASOF FULL JOIN: not supported; write ASOF LEFT JOIN the other way");
            }
            out.extend(sql("GLOBAL", token)?);
            Ok(1)
        }
        "positional" if there_is(tokens, at + 1, "join") => {
            out.extend(sql("CROSS APPLY", token)?);
            Ok(2)
        }
        "global" if ["join", "left", "inner", "right", "full"].iter().any(|w| there_is(tokens, at + 1, w)) => {
            plan_err!("GLOBAL JOIN: not supported; write JOIN")
        }
        "apply" if out.last().is_some_and(|before| is(before, "cross") || is(before, "outer")) => {
            plan_err!("APPLY: not supported; write JOIN LATERAL")
        }
        // Whether what WITH names is computed once, the planner says.
        "materialized" if there(tokens, at + 1, &Token::LParen) => {
            let negated = out.last().is_some_and(|before| is(before, "not"));
            let behind = out.len().checked_sub(1 + usize::from(negated)).and_then(|before| out.get(before));
            if !behind.is_some_and(|before| is(before, "as")) {
                return Ok(0);
            }
            if negated {
                out.pop();
            }
            Ok(1)
        }
        "exclude" => frame(tokens, at, out.last()),
        _ => Ok(0),
    }
}

/// EXCLUDE in the frame of a window.
fn frame(tokens: &[TokenWithSpan], at: usize, before: Option<&TokenWithSpan>) -> Result<usize> {
    if !before.is_some_and(|it| ["row", "following", "preceding"].iter().any(|word| is(it, word))) {
        return Ok(0);
    }
    if there_is(tokens, at + 1, "no") && there_is(tokens, at + 2, "others") {
        return Ok(3);
    }
    let what: Vec<String> = tokens[at..].iter().take_while(|it| !closes(it)).map(ToString::to_string).collect();
    plan_err!(
        "{}: windows leave no rows out; take what belongs to the row itself off again, as in sum(x) OVER (...) - x",
        what.join(" ")
    )
}

/// What stands behind TABLESAMPLE or USING SAMPLE, as the parser knows it, and how many tokens it is.
fn sample(tokens: &[TokenWithSpan]) -> Result<Option<(String, usize)>> {
    let unit = |at: usize| match tokens.get(at) {
        Some(it) if it.token == Token::Mod || is(it, "percent") => Some("PERCENT"),
        Some(it) if is(it, "rows") => Some("ROWS"),
        _ => None,
    };
    let number = |at: usize| match tokens.get(at).map(|it| &it.token) {
        Some(Token::Number(text, _)) => Some(text.clone()),
        _ => None,
    };
    if let Some(text) = number(0) {
        let taken = 1 + usize::from(unit(1).is_some());
        if there(tokens, taken, &Token::LParen) {
            let end = close(tokens, taken);
            return match tokens.get(taken + 1..end) {
                Some([_]) => Ok(Some((format!("({text} {})", unit(1).unwrap_or("ROWS")), end + 1))),
                _ => plan_err!("a sample with a seed: not supported, samples differ each time"),
            };
        }
        return Ok(Some((format!("({text} {})", unit(1).unwrap_or("ROWS")), taken)));
    }
    let named = tokens.first().is_some_and(|it| ["reservoir", "system", "bernoulli"].iter().any(|w| is(it, w)));
    let open = usize::from(named);
    if there(tokens, open, &Token::LParen)
        && let (Some(text), Some(unit)) = (number(open + 1), unit(open + 2))
        && there(tokens, open + 3, &Token::RParen)
    {
        return Ok(Some((format!("({text} {unit})"), open + 4)));
    }
    Ok(None)
}

/// `USING SAMPLE` as TABLESAMPLE of the table: it samples what FROM has, before WHERE.
fn sample_behind(tokens: &[TokenWithSpan]) -> Result<Option<Vec<TokenWithSpan>>> {
    let mut from = 0;
    let found = loop {
        let Some(at) = find(tokens, from, &["using"]) else { return Ok(None) };
        if there_is(tokens, at + 1, "sample") {
            break at;
        }
        from = at + 1;
    };
    let Some((sample, taken)) = sample(&tokens[found + 2..])? else {
        return plan_err!("USING SAMPLE takes rows or percents: USING SAMPLE 10%, USING SAMPLE 100 ROWS");
    };
    // The SELECT that it is of is the last before it.
    let mut tables = None;
    let mut from = 0;
    while let Some(at) = find(tokens, from, &["from"]).filter(|at| *at < found) {
        tables = Some(at);
        from = at + 1;
    }
    let Some(tables) = tables else { return plan_err!("USING SAMPLE: there is no FROM whose rows it could be of") };
    let end = find(tokens, tables + 1, &BEHIND_TABLES).unwrap_or(found).min(found);
    let several = |it: &TokenWithSpan| it.token == Token::Comma || is(it, "join");
    if find_where(tokens, tables + 1, several).is_some_and(|at| at < end) {
        return plan_err!("USING SAMPLE of several tables: not supported; sample a subquery of them");
    }
    let mut out = tokens[..end].to_vec();
    out.extend(sql(&format!("TABLESAMPLE {sample}"), &tokens[found])?);
    out.extend(tokens[end..found].iter().cloned());
    out.extend(tokens.get(found + 2 + taken..).unwrap_or_default().iter().cloned());
    Ok(Some(out))
}
