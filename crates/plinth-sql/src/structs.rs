//! `STRUCT(a INT, b TEXT)` as the parser has it, `STRUCT<a INT, b TEXT>`.
//!
//! `struct(a, b)` is a function, too. A type stands behind the name of a column or of a field, behind `::`, and behind the AS of a cast.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Words that stand before an expression.
const BEFORE_VALUES: [Keyword; 22] = [
    Keyword::SELECT,
    Keyword::DISTINCT,
    Keyword::ALL,
    Keyword::NOT,
    Keyword::AND,
    Keyword::OR,
    Keyword::WHERE,
    Keyword::HAVING,
    Keyword::QUALIFY,
    Keyword::ON,
    Keyword::BY,
    Keyword::CASE,
    Keyword::WHEN,
    Keyword::THEN,
    Keyword::ELSE,
    Keyword::IN,
    Keyword::BETWEEN,
    Keyword::LIKE,
    Keyword::IS,
    Keyword::FROM,
    Keyword::RETURNING,
    Keyword::DEFAULT,
];

/// Writes the types of structs with angle brackets. Tokens may have white space among them.
pub(crate) fn in_angles(tokens: &mut [TokenWithSpan]) {
    // The two words before a token.
    let (mut before, mut last) = (Token::EOF, Token::EOF);
    // Of each parenthesis that is open, whether it is a struct's.
    let mut open = Vec::new();
    let mut is_type = false;
    for token in tokens {
        let token = &mut token.token;
        if matches!(token, Token::Whitespace(_)) {
            continue;
        }
        match token {
            Token::LParen => {
                open.push(is_type);
                if is_type {
                    *token = Token::Lt;
                }
            }
            Token::RParen if open.pop() == Some(true) => *token = Token::Gt,
            _ => {}
        }
        is_type = is_struct(token) && stands_as_type(&before, &last, open.last() == Some(&true));
        before = std::mem::replace(&mut last, token.clone());
    }
}

fn is_struct(token: &Token) -> bool {
    matches!(token, Token::Word(Word { quote_style: None, keyword: Keyword::STRUCT, .. }))
}

/// Whether a type stands behind two tokens, of which the first may begin the columns of a table.
fn stands_as_type(before: &Token, last: &Token, within: bool) -> bool {
    match last {
        Token::DoubleColon => true,
        Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::AS => true,
        Token::Word(word) => {
            within
                || word.quote_style.is_some()
                || word.keyword == Keyword::NoKeyword
                || (matches!(before, Token::LParen | Token::Comma | Token::Word(_))
                    && !BEFORE_VALUES.contains(&word.keyword))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    #[test]
    fn types_have_angles_and_functions_parentheses() {
        for (text, written) in [
            (
                "CREATE TABLE t (s STRUCT(x INT, y STRUCT(z TEXT))[])",
                "CREATE TABLE t (s STRUCT<x INT, y STRUCT<z TEXT>>[])",
            ),
            (
                "CREATE TABLE t (id INT, \"a b\" struct (x DECIMAL(4, 2)))",
                "CREATE TABLE t (id INT, \"a b\" struct <x DECIMAL(4, 2)>)",
            ),
            ("CREATE TABLE t (value STRUCT(x INT))", "CREATE TABLE t (value STRUCT<x INT>)"),
            ("SELECT x::STRUCT(a INT), CAST(y AS STRUCT(b INT))", "SELECT x::STRUCT<a INT>, CAST(y AS STRUCT<b INT>)"),
            ("SELECT struct(a, b), (struct(a)) FROM t", "SELECT struct(a, b), (struct(a)) FROM t"),
            (
                "SELECT DISTINCT struct(a) FROM t ORDER BY struct(a)",
                "SELECT DISTINCT struct(a) FROM t ORDER BY struct(a)",
            ),
            ("SELECT count(DISTINCT struct(a)), x = struct(b)", "SELECT count(DISTINCT struct(a)), x = struct(b)"),
            ("ALTER TABLE t ADD COLUMN s STRUCT(x INT)", "ALTER TABLE t ADD COLUMN s STRUCT<x INT>"),
            ("INSERT INTO t VALUES (1, struct(2))", "INSERT INTO t VALUES (1, struct(2))"),
            ("SELECT 1 WHERE a AND struct(b) = c", "SELECT 1 WHERE a AND struct(b) = c"),
        ] {
            let mut tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().unwrap();
            in_angles(&mut tokens);
            let text: String = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!(text, written);
        }
    }
}
