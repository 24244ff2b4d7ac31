//! `INTERVAL (3) DAY`, of which the parser takes `(3)` for the precision of a type.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::tokens::{there, there_is, word};

/// Units that follow a number, in their singular.
const UNITS: [&str; 10] =
    ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"];

/// Takes the parentheses from numbers of intervals.
pub(super) fn without_parentheses(all: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_number = |at: usize| all.get(at).is_some_and(|token| matches!(token.token, Token::Number(..)));
    let is_unit = |at: usize| {
        let word = all.get(at).map(word).unwrap_or_default();
        UNITS.iter().any(|unit| word.strip_prefix(unit).is_some_and(|rest| matches!(rest, "" | "s")))
    };
    let is_wrapped = |at: usize| {
        there_is(&all, at, "interval")
            && there(&all, at + 1, &Token::LParen)
            && is_number(at + 2)
            && there(&all, at + 3, &Token::RParen)
            && is_unit(at + 4)
    };
    let wrapped: Vec<usize> = (0..all.len()).filter(|at| is_wrapped(*at)).collect();
    if wrapped.is_empty() {
        return all;
    }
    let is_parenthesis = |at: usize| {
        [1, 3].into_iter().any(|behind| at.checked_sub(behind).is_some_and(|at| wrapped.binary_search(&at).is_ok()))
    };
    all.into_iter().enumerate().filter(|(at, _)| !is_parenthesis(*at)).map(|(_, token)| token).collect()
}
