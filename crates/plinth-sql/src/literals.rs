//! Numbers as PostgreSQL has them, in the form that the parser takes: `1_000_000`, `0x1F`, `0o17`, `0b11`.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};

/// Writes the numbers of a text with digits alone.
///
/// # Errors
/// If letters follow a number: of `1E1_0` the rest would be the column's name.
pub(crate) fn plain(tokens: &mut Vec<TokenWithSpan>) -> Result {
    let mut rests = Vec::new();
    for at in 0..tokens.len() {
        let rest = tokens.get(at + 1).map(|next| next.token.clone());
        let Some(one) = tokens.get_mut(at) else { break };
        match &mut one.token {
            Token::Number(text, _) => {
                text.retain(|letter| letter != '_');
                let Some(Token::Word(rest)) = rest.filter(is_bare) else { continue };
                let Some((base, digits)) = base_of(text, &rest.value) else {
                    return Err(SqlError::new(format!(
                        "{text}{}: no number; _ stands between digits before an exponent, and a space before a name",
                        rest.value
                    )));
                };
                *text = whole(base, digits)?;
                rests.push(at + 1);
            }
            // The same token as of X'1F', which has two quotes more.
            Token::HexStringLiteral(digits) if length(&one.span) == Some(digits.len() + 2) => {
                if let Some(Token::Word(rest)) = rest.filter(is_bare) {
                    return Err(SqlError::new(format!(
                        "0x{digits}{}: {} is no hexadecimal digit",
                        rest.value, rest.value
                    )));
                }
                one.token = Token::Number(whole(16, digits)?, false);
            }
            _ => {}
        }
    }
    let mut at = 0;
    tokens.retain(|_| {
        at += 1;
        rests.binary_search(&(at - 1)).is_err()
    });
    Ok(())
}

fn is_bare(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none())
}

/// The letters of a token on one line.
fn length(span: &datafusion::sql::sqlparser::tokenizer::Span) -> Option<usize> {
    let letters = span.end.column.checked_sub(span.start.column)?;
    (span.start.line == span.end.line).then(|| usize::try_from(letters).ok()).flatten()
}

/// The base of a number of which 0 was read alone, and its digits.
fn base_of<'a>(zero: &str, rest: &'a str) -> Option<(u32, &'a str)> {
    let (letter, digits) = rest.split_at_checked(1)?;
    let base = match letter {
        "b" | "B" => 2,
        "o" | "O" => 8,
        "X" => 16,
        _ => return None,
    };
    let well = digits.chars().all(|digit| digit == '_' || digit.is_digit(base)) && !digits.ends_with('_');
    (zero == "0" && well && !digits.is_empty()).then_some((base, digits))
}

/// A whole number in decimal digits.
fn whole(base: u32, digits: &str) -> Result<String> {
    let plain: String = digits.chars().filter(|digit| *digit != '_').collect();
    let value = u128::from_str_radix(&plain, base);
    let value = value.map_err(|_| {
        let letter = match base {
            2 => 'b',
            8 => 'o',
            _ => 'x',
        };
        SqlError::new(format!("0{letter}{digits}: no whole number of the base {base} in 128 bits"))
    })?;
    Ok(value.to_string())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::meaning::PlinthDialect;

    fn written(text: &str) -> Result<String> {
        let mut tokens = Tokenizer::new(&PlinthDialect, text).tokenize_with_location().unwrap();
        plain(&mut tokens)?;
        Ok(tokens.iter().map(|token| token.token.to_string()).collect())
    }

    #[test]
    fn numbers_of_other_bases_are_whole_numbers() {
        for (text, plain) in [
            ("0x1F", "31"),
            ("SELECT 0b11, 0o17 AS x", "SELECT 3, 15 AS x"),
            ("0XfF", "255"),
            ("0x_1F", "31"),
            ("0b1_1", "3"),
            ("1_000.5", "1000.5"),
            ("X'1F'", "X'1F'"),
            ("-0x8000000000000000", "-9223372036854775808"),
            ("(0x0)", "(0)"),
            ("1 a", "1 a"),
            ("1\"a\"", "1\"a\""),
        ] {
            assert_eq!(written(text).unwrap(), plain, "{text}");
        }
    }

    #[test]
    fn letters_behind_a_number_are_refused() {
        for text in ["1a", "0b12", "0o8", "0b", "0x", "0x1G", "1E1_0", "1_2.1_2E1_0", "10from t", "0b1_"] {
            assert!(written(text).is_err(), "{text}");
        }
        let long = format!("0x{}", "F".repeat(33));
        for text in ["0x", &long] {
            let refused = written(text).unwrap_err().to_string();
            assert_eq!(refused, format!("{text}: no whole number of the base 16 in 128 bits"));
        }
    }
}
