//! Where in a text the thing stands that a message is about: for those who put a mark below it.

use std::sync::LazyLock;

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use regex::Regex;

use crate::meaning::PlinthDialect;

/// A message and the place in the statement that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The message without the numbers of the place.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
}

/// The place in a text that a message is about: what the parser says, else where the name or the value stands that the message
/// begins with. None where that is not known.
pub fn placed(sql: &str, message: &str) -> Option<Placed> {
    if let Some(placed) = said(message) {
        return Some(placed);
    }
    let tokens = tokens(sql);
    let Location { line, column } = find(&tokens, &Named::of(message)?)?;
    let place = |at: u64| usize::try_from(at).ok();
    Some(Placed { message: message.to_owned(), line: place(line)?, column: place(column)? })
}

/// The texts of the statements in a text, each up to its semicolon; blank ones and comments alone are none.
pub fn statement_texts(sql: &str) -> Vec<&str> {
    let tokens = tokens(sql);
    let mut starts = sql.char_indices();
    let mut at = Location::new(1, 1);
    let mut byte_of = |place: Location| {
        while (at.line, at.column) < (place.line, place.column) {
            match starts.next() {
                Some((_, '\n')) => at = Location::new(at.line + 1, 1),
                Some(_) => at.column += 1,
                None => break,
            }
        }
        starts.as_str().as_ptr().addr() - sql.as_ptr().addr()
    };
    let (mut texts, mut begun, mut any) = (Vec::new(), 0, false);
    for token in &tokens {
        match token.token {
            Token::SemiColon => {
                let end = byte_of(token.span.start);
                if std::mem::take(&mut any) {
                    texts.extend(sql.get(begun..end));
                }
                begun = byte_of(token.span.end);
            }
            Token::Whitespace(_) | Token::EOF => {}
            _ => any = true,
        }
    }
    if any {
        texts.extend(sql.get(begun..));
    }
    texts
}

fn tokens(sql: &str) -> Vec<TokenWithSpan> {
    let mut tokens = Vec::new();
    // Up to a quote that does not end.
    let _ = Tokenizer::new(&PlinthDialect, sql).tokenize_with_location_into_buf(&mut tokens);
    tokens
}

/// The place that a parser's message says, taken out of it.
fn said(message: &str) -> Option<Placed> {
    let at = message.rfind(" at Line: ")?;
    let (before, place) = message.split_at(at);
    let (line, rest) = place.strip_prefix(" at Line: ")?.split_once(", Column: ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (column, after) = rest.split_at(digits);
    Some(Placed { message: format!("{before}{after}"), line: line.parse().ok()?, column: column.parse().ok()? })
}

/// What a message is about.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    /// A column, and the table before it.
    Column(Option<String>, String),
    Function(String),
    /// A table, a file, a setting: any word or text.
    Name(String),
    /// A literal.
    Value(String),
}

/// How messages begin that name something.
static BEGINNINGS: LazyLock<Vec<(Regex, Kind)>> = LazyLock::new(|| {
    let patterns = [
        (r#"^no column ((?:"[^"]*"|[^";: ])+)"#, Kind::Column),
        (r"^column (\S+?) may be one of several", Kind::Column),
        (r#"^column "(.*?)" must be in GROUP BY"#, Kind::Column),
        (r#"^column "(.*?)" occurs twice"#, Kind::Column),
        (r"^no (?:table )?function (\w+)", Kind::Function),
        (r"^function '(\w+)'", Kind::Function),
        (r"^(\w+): takes? ", Kind::Function),
        (r#"^no (?:table|setting|variable) "?([^";]+)"?"#, Kind::Name),
        (r"^no field (.*?) in the struct", Kind::Name),
        (r"^no statement (\S+) was prepared", Kind::Name),
        (r"^(.+?): no such file", Kind::Name),
        (r"^(.+?): only files of this machine", Kind::Name),
        (r"^'(.*?)' is no ", Kind::Value),
        (r"^(-?[0-9.]+) is no ", Kind::Value),
        (r#"^there is no time zone "(.*?)""#, Kind::Value),
    ];
    patterns.iter().filter_map(|(pattern, kind)| Some((Regex::new(pattern).ok()?, *kind))).collect()
});

#[derive(Clone, Copy, Debug)]
enum Kind {
    Column,
    Function,
    Name,
    Value,
}

impl Named {
    fn of(message: &str) -> Option<Self> {
        let (name, kind) =
            BEGINNINGS.iter().find_map(|(pattern, kind)| Some((pattern.captures(message)?.get(1)?.as_str(), *kind)))?;
        Some(match kind {
            Kind::Column => {
                let mut parts = parts(name);
                let column = parts.pop()?;
                Self::Column(parts.pop(), column)
            }
            Kind::Function => Self::Function(name.to_owned()),
            Kind::Name => Self::Name(name.to_owned()),
            Kind::Value => Self::Value(name.to_owned()),
        })
    }
}

/// The parts of a name, without their quotes.
fn parts(name: &str) -> Vec<String> {
    let (mut parts, mut part, mut quoted) = (Vec::new(), String::new(), false);
    for letter in name.chars() {
        match letter {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(std::mem::take(&mut part)),
            letter => part.push(letter),
        }
    }
    parts.push(part);
    parts
}

fn find(tokens: &[TokenWithSpan], named: &Named) -> Option<Location> {
    let solid: Vec<&TokenWithSpan> =
        tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF)).collect();
    let word = |at: usize, name: &str| match solid.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => word.value.eq_ignore_ascii_case(name),
        _ => false,
    };
    let is =
        |at: Option<usize>, token: &Token| at.and_then(|at| solid.get(at)).is_some_and(|other| other.token == *token);
    let text = |at: usize, name: &str| match solid.get(at).map(|token| &token.token) {
        Some(Token::SingleQuotedString(text) | Token::Number(text, _)) => text == name,
        _ => false,
    };
    let called = |at: usize| is(Some(at + 1), &Token::LParen);
    let all = || 0..solid.len();
    let at = match named {
        Named::Column(Some(table), column) => all()
            .find(|&at| word(at, table) && is(Some(at + 1), &Token::Period) && word(at + 2, column))
            .or_else(|| all().find(|&at| word(at, column) && !called(at))),
        Named::Column(None, column) => {
            let given = |at: usize| at.checked_sub(1).is_some_and(|before| word(before, "as"));
            let bare = |at: usize| !is(at.checked_sub(1), &Token::Period);
            all()
                .find(|&at| word(at, column) && !called(at) && !given(at) && bare(at))
                .or_else(|| all().find(|&at| word(at, column)))
        }
        Named::Function(name) => {
            all().find(|&at| word(at, name) && called(at)).or_else(|| all().find(|&at| word(at, name)))
        }
        Named::Name(name) => {
            let last = parts(name).pop().unwrap_or_default();
            all().find(|&at| text(at, name) || word(at, name)).or_else(|| all().find(|&at| word(at, &last)))
        }
        Named::Value(value) => all().find(|&at| text(at, value)),
    };
    solid.get(at?).map(|token| token.span.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_places() {
        for (sql, message, expected) in [
            ("SELECT a,\n  nope FROM t", "no column nope; there are a, b", Some((2, 3))),
            ("SELECT 1 AS nope, nope FROM t", "no column nope; there are a, b", Some((1, 19))),
            ("SELECT t.x, u.x FROM t, u", "no column u.x; there are t.x", Some((1, 13))),
            ("SELECT \"A b\" FROM t", "no column \"A b\"; there are t.x", Some((1, 8))),
            ("SELECT mod, mod(1) FROM t", "no function mod; is cos meant?", Some((1, 13))),
            ("SELECT * FROM nope", "no table \"nope\"; SHOW TABLES lists", Some((1, 15))),
            ("SELECT * FROM s.nope", "no table \"s.nope\"; SHOW TABLES lists", Some((1, 17))),
            ("SELECT * FROM 'x.csv'", "x.csv: no such file", Some((1, 15))),
            ("SELECT CAST('x' AS INT)", "'x' is no INT", Some((1, 13))),
            ("SELECT é, nope", "SQL: Expected: y, found: x at Line: 3, Column: 17", Some((3, 17))),
            ("SELECT 1 / 0", "division by zero", None),
        ] {
            let place = placed(sql, message).map(|placed| (placed.line, placed.column));
            assert_eq!(place, expected, "{sql}: {message}");
        }
        let said = placed("", "SQL: Expected: x, found: SELEC at Line: 2, Column: 17").map(|placed| placed.message);
        assert_eq!(said.as_deref(), Some("SQL: Expected: x, found: SELEC"));
    }

    #[test]
    fn texts_are_those_of_statements() {
        assert_eq!(
            statement_texts(" ;SELECT 'é;';-- none\n; -- one\nSELECT\n2"),
            ["SELECT 'é;'", " -- one\nSELECT\n2"]
        );
        assert!(statement_texts("-- none").is_empty());
    }
}
