//! Tokens: what they are, where groups of them end.

use datafusion::common::{Result, internal_datafusion_err};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::meaning::PlinthDialect;

/// Whether a token is a word that is not quoted.
pub(super) fn is(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(it) if it.quote_style.is_none() && it.value.eq_ignore_ascii_case(word))
}

/// A word that is not quoted, in lower case; nothing of any other token.
pub(super) fn word(token: &TokenWithSpan) -> String {
    match &token.token {
        Token::Word(it) if it.quote_style.is_none() => it.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// Whether there is this token at a place.
pub(super) fn there(tokens: &[TokenWithSpan], at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|it| it.token == *token)
}

/// Whether there is this word at a place.
pub(super) fn there_is(tokens: &[TokenWithSpan], at: usize, word: &str) -> bool {
    tokens.get(at).is_some_and(|it| is(it, word))
}

/// The tokens of a text, in the place of another token.
pub(super) fn sql(text: &str, at: &TokenWithSpan) -> Result<Vec<TokenWithSpan>> {
    let tokens = Tokenizer::new(&PlinthDialect, text).tokenize();
    let tokens = tokens.map_err(|error| internal_datafusion_err!("{text}: {error}"))?;
    let tokens = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_)));
    Ok(tokens.map(|token| TokenWithSpan { token, span: at.span }).collect())
}

pub(super) fn opens(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::LParen | Token::LBracket | Token::LBrace)
}

pub(super) fn closes(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::RParen | Token::RBracket | Token::RBrace)
}

/// Most groups within one another.
pub(super) fn depth(tokens: &[TokenWithSpan]) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for token in tokens {
        if opens(token) {
            depth += 1;
            most = most.max(depth);
        } else if closes(token) {
            depth = depth.saturating_sub(1);
        }
    }
    most
}

/// Where the group ends that the token at a place opens; the end of all if it does not.
pub(super) fn close(tokens: &[TokenWithSpan], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if opens(token) {
            depth += 1;
        } else if closes(token) {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at;
            }
        }
    }
    tokens.len()
}

/// The first place from one on, in no parentheses and before any that closes, where a test holds.
pub(super) fn find_where(
    tokens: &[TokenWithSpan],
    from: usize,
    test: impl Fn(&TokenWithSpan) -> bool,
) -> Option<usize> {
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        if test(token) {
            return Some(at);
        }
        if opens(token) {
            at = close(tokens, at);
        } else if closes(token) {
            return None;
        }
        at += 1;
    }
    None
}

/// The first of some words.
pub(super) fn find(tokens: &[TokenWithSpan], from: usize, words: &[&str]) -> Option<usize> {
    find_where(tokens, from, |token| words.iter().any(|word| is(token, word)))
}

/// The parts between commas.
pub(super) fn parts(tokens: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(at) = find_where(tokens, from, |token| token.token == Token::Comma) {
        parts.extend(tokens.get(from..at));
        from = at + 1;
    }
    parts.extend(tokens.get(from..).filter(|last| !last.is_empty()));
    parts
}

/// The text of tokens, as SQL that means the same.
pub(super) fn text(tokens: &[TokenWithSpan]) -> String {
    tokens.iter().map(written).collect::<Vec<_>>().join(" ")
}

/// A token as it was written: quotes within a name are two.
pub(super) fn written(token: &TokenWithSpan) -> String {
    match &token.token {
        Token::Word(name) if name.quote_style == Some('"') => format!("\"{}\"", name.value.replace('"', "\"\"")),
        other => other.to_string(),
    }
}
