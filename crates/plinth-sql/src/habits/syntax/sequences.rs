//! The options of CREATE SEQUENCE in any order: the parser knows one.

use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;

use super::{is, word};

/// What begins an option, in the order of the parser.
const OPTIONS: [&str; 7] = ["increment", "minvalue", "maxvalue", "start", "cache", "cycle", "owned"];

/// `CREATE [TEMP] SEQUENCE` with its options in the order of the parser; None if it is another statement.
pub(super) fn ordered(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let temporary = tokens.get(1).is_some_and(|token| is(token, "temp") || is(token, "temporary"));
    tokens.get(if temporary { 2 } else { 1 }).filter(|token| is(token, "sequence"))?;
    let place = |at: usize| {
        let token = tokens.get(at)?;
        let named = if is(token, "no") { tokens.get(at + 1)? } else { token };
        OPTIONS.iter().position(|option| *option == word(named))
    };
    // A name may be like an option: IF NOT EXISTS and a name are before them.
    let exists = tokens.iter().position(|token| is(token, "exists")).unwrap_or(if temporary { 2 } else { 1 });
    let starts = exists + 2..tokens.len();
    let mut options: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
    let mut before = tokens.get(..starts.start)?.to_vec();
    let mut negated = false;
    for at in starts {
        let token = tokens.get(at)?.clone();
        match place(at).filter(|_| !negated) {
            Some(place) => options.push((place, vec![token.clone()])),
            None => options.last_mut().map_or(&mut before, |(_, option)| option).push(token.clone()),
        }
        negated = is(&token, "no");
    }
    options.sort_by_key(|(place, _)| *place);
    before.extend(options.into_iter().flat_map(|(_, option)| option));
    Some(before)
}
