//! ATTACH and DETACH as users of DuckDB write them.

use std::path::Path;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::tokens::written;
use super::{is, sql, word};

/// `ATTACH [DATABASE] [IF NOT EXISTS] 'folder' [AS name] [(TYPE plinth)]`, with the name that is left out.
pub(super) fn attach(tokens: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let Some((first, rest)) = tokens.split_first() else { return Ok(Vec::new()) };
    let rest = without(without(rest, &["database"]), &["if", "not", "exists"]);
    let Some((TokenWithSpan { token: Token::SingleQuotedString(path), .. }, behind)) = rest.split_first() else {
        return plan_err!("ATTACH: the path of a folder is missing, as in ATTACH 'folder' AS name");
    };
    let (name, behind) = match behind {
        [what, name, behind @ ..] if is(what, "as") => (written(name), behind),
        _ => {
            let stem = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            (format!("\"{}\"", stem.to_lowercase().replace('"', "\"\"")), behind)
        }
    };
    if let Some(option) = behind.first() {
        return plan_err!(
            "ATTACH '{path}': {option}: options are not supported: a folder is read and written as --db DIR is"
        );
    }
    sql(&format!("ATTACH '{}' AS {name}", path.replace('\'', "''")), first)
}

/// `DETACH [DATABASE] name`
pub(super) fn detach(tokens: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let Some((first, rest)) = tokens.split_first() else { return Ok(Vec::new()) };
    match without(rest, &["database"]) {
        [name] if !word(name).is_empty() => sql(&format!("ATTACH NULL AS {}", written(name)), first),
        _ => plan_err!("DETACH: write DETACH name"),
    }
}

/// What follows words, if they are there.
fn without<'t>(tokens: &'t [TokenWithSpan], words: &[&str]) -> &'t [TokenWithSpan] {
    let there = tokens.len() >= words.len() && tokens.iter().zip(words).all(|(token, word)| is(token, word));
    if there { tokens.get(words.len()..).unwrap_or_default() } else { tokens }
}
