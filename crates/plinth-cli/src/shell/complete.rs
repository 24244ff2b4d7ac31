//! What a word that is being typed may become.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use rustyline::completion::{FilenameCompleter, Pair};

use super::command::{COMMANDS, formats};
use crate::screen;

use super::text::{KEYWORDS, Piece, Places, is_keyword, split, tokens};

/// Tables that are looked into for columns where a statement names none yet.
const TABLES: usize = 50;

/// The names that can be completed.
pub(super) trait Names {
    fn tables(&self) -> Vec<String>;
    /// None if there is no such table.
    fn columns(&self, table: &str) -> Option<Vec<String>>;
    fn functions(&self) -> Vec<String>;
}

/// Where the word begins, and what may stand there. Names come from files of anybody's: what is listed is spelled out, and
/// what the line would show as something else than it is, but for the end of a line, is left out.
pub(super) fn complete(line: &str, cursor: usize, names: &dyn Names) -> (usize, Vec<Pair>) {
    let (start, mut found) = candidates(line, cursor, names);
    found.retain(|pair| pair.replacement.chars().all(|c| c == '\n' || screen::is_plain(c)));
    for pair in &mut found {
        pair.display = screen::spelled(&pair.display).into_owned();
    }
    (start, found)
}

fn candidates(line: &str, cursor: usize, names: &dyn Names) -> (usize, Vec<Pair>) {
    let Some(before) = line.get(..cursor) else { return (cursor, Vec::new()) };
    match split(before).pieces.last() {
        Some(Piece::Command(command)) if before.trim_end().ends_with(command) => {
            // The blanks at its end are part of it: they begin the next word.
            let start = before.rfind(command).unwrap_or(cursor);
            return complete_command(before, start, names);
        }
        _ => {}
    }
    if before.trim().is_empty() {
        return (cursor, Vec::new());
    }
    let open = tokens(before).open.map(|place| Places::new(before).of(place));
    let inside = open.and_then(|at| before.get(at..)).map(str::trim_start).unwrap_or_default();
    if inside.starts_with('\'') {
        return FilenameCompleter::new()
            .complete_path(inside, inside.len())
            .map_or((cursor, Vec::new()), |(at, paths)| (cursor - inside.len() + at, paths));
    }
    if inside.starts_with("/*") || inside.starts_with('$') {
        return (cursor, Vec::new());
    }
    let word_start =
        |text: &str| text.len() - text.chars().rev().take_while(|c| is_word(*c)).map(char::len_utf8).sum::<usize>();
    let start = if inside.starts_with('"') { cursor - inside.len() } else { word_start(before) };
    let word = before.get(start..).unwrap_or_default();
    let sentence = Sentence::around(line, start);
    (start, Words { word, names, sentence: &sentence }.candidates())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn complete_command(before: &str, command: usize, names: &dyn Names) -> (usize, Vec<Pair>) {
    let text = before.get(command..).unwrap_or_default();
    let Some((name, arguments)) = text.split_once(char::is_whitespace) else {
        let fitting = COMMANDS.iter().flat_map(|(names, ..)| *names).filter(|name| name.starts_with(text));
        return (command, fitting.map(|name| plain(name)).collect());
    };
    let argument = arguments.trim_start();
    let start = before.len() - argument.len();
    let of = |words: &mut dyn Iterator<Item = String>| {
        words.filter(|word| word.starts_with(argument)).map(|word| plain(&word)).collect()
    };
    let candidates = match name {
        "\\d" | ".tables" | ".schema" => of(&mut names.tables().into_iter()),
        "\\f" | ".mode" => of(&mut formats()),
        "\\df" | ".functions" => of(&mut names.functions().into_iter()),
        "\\x" | "\\timing" | "\\pager" | ".timer" | ".pager" => of(&mut ["on", "off"].map(str::to_owned).into_iter()),
        "\\i" | "\\o" | ".read" | ".output" => {
            // Blanks in paths need no quotes here.
            let quoted = format!("'{argument}");
            return FilenameCompleter::new()
                .complete_path(&quoted, quoted.len())
                .map_or((start, Vec::new()), |(at, paths)| (start + at.saturating_sub(1), paths));
        }
        _ => Vec::new(),
    };
    (start, candidates)
}

fn plain(text: &str) -> Pair {
    Pair { display: text.to_owned(), replacement: text.to_owned() }
}

/// The statement a word stands in.
#[derive(Debug, Default)]
struct Sentence {
    /// Tables and their aliases.
    tables: Vec<(String, Option<String>)>,
    /// Names that WITH gives to queries.
    queries: Vec<String>,
    /// The last word before.
    previous: Option<String>,
    /// What stands before a dot before the word.
    qualifier: Option<String>,
}

impl Sentence {
    fn around(line: &str, start: usize) -> Self {
        let before = tokens(line.get(..start).unwrap_or_default()).tokens;
        let begin = before.iter().rposition(|token| token.token == Token::SemiColon).map_or(0, |at| at + 1);
        let solid = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
        let mut back = before.iter().skip(begin).rev().filter(solid).map(|token| &token.token);
        let mut sentence = Self::default();
        match back.next() {
            Some(Token::Period) => sentence.qualifier = back.next().and_then(name),
            Some(Token::Word(word)) => sentence.previous = Some(word.value.to_ascii_uppercase()),
            _ => {}
        }
        // Tables may be named after the word too: SELECT | FROM t.
        let all = tokens(line).tokens;
        let statement = all.iter().skip(begin).take_while(|token| token.token != Token::SemiColon);
        sentence.find_tables(&statement.filter(solid).map(|token| &token.token).collect::<Vec<_>>());
        sentence
    }

    fn find_tables(&mut self, tokens: &[&Token]) {
        let keyword = |token: &Token| match token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
            _ => None,
        };
        let mut from = false;
        let mut at = 0;
        while let Some(&token) = tokens.get(at) {
            at += 1;
            let word = keyword(token);
            match word.as_deref() {
                Some("FROM" | "JOIN" | "INTO" | "UPDATE" | "DESCRIBE") => from = true,
                Some("AS") if matches!(tokens.get(at), Some(Token::LParen)) => {
                    self.queries.extend(at.checked_sub(2).and_then(|i| tokens.get(i)).and_then(|t| name(t)));
                }
                Some(word) if is_keyword(word) => from = false,
                // A list of tables goes on after a comma.
                None if from && *token == Token::Comma => {}
                _ if from => {
                    let Some(mut table) = name(token) else {
                        from = matches!(token, Token::LParen);
                        continue;
                    };
                    while let (Some(Token::Period), Some(part)) =
                        (tokens.get(at), tokens.get(at + 1).and_then(|t| name(t)))
                    {
                        table = format!("{table}.{part}");
                        at += 2;
                    }
                    if tokens.get(at).and_then(|t| keyword(t)).as_deref() == Some("AS") {
                        at += 1;
                    }
                    let alias = tokens
                        .get(at)
                        .filter(|t| matches!(t, Token::Word(w) if w.quote_style.is_some() || !is_keyword(&w.value)));
                    let alias = alias.and_then(|t| name(t));
                    at += usize::from(alias.is_some());
                    self.tables.push((table, alias));
                    from = matches!(tokens.get(at), Some(Token::Comma));
                }
                _ => {}
            }
        }
    }
}

/// The name a token is: of a table, a column or a file.
fn name(token: &Token) -> Option<String> {
    match token {
        // Names without quotes are in lower case.
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_lowercase()),
        Token::Word(word) => Some(word.value.clone()),
        Token::SingleQuotedString(text) => Some(text.clone()),
        _ => None,
    }
}

struct Words<'a> {
    word: &'a str,
    names: &'a dyn Names,
    sentence: &'a Sentence,
}

impl Words<'_> {
    fn candidates(&self) -> Vec<Pair> {
        let mut found: Vec<Pair> = Vec::new();
        let sentence = self.sentence;
        if let Some(qualifier) = &sentence.qualifier {
            let aliased = sentence.tables.iter().find(|(_, alias)| alias.as_ref() == Some(qualifier));
            let table = aliased.map_or(qualifier, |(table, _)| table);
            found.extend(self.identifiers(self.names.columns(table).unwrap_or_default()));
        } else if matches!(
            sentence.previous.as_deref(),
            Some("FROM" | "JOIN" | "INTO" | "UPDATE" | "TABLE" | "DESCRIBE")
        ) {
            found.extend(self.identifiers(self.names.tables()));
            found.extend(self.identifiers(sentence.queries.clone()));
        } else {
            for (table, alias) in &sentence.tables {
                found.extend(self.identifiers(self.names.columns(table).unwrap_or_default()));
                found.extend(self.identifiers(alias.iter().cloned()));
            }
            // Before FROM any table may be meant.
            if sentence.tables.is_empty() && sentence.previous.is_some() && !self.word.is_empty() {
                for table in self.names.tables().iter().take(TABLES) {
                    found.extend(self.identifiers(self.names.columns(table).unwrap_or_default()));
                }
            }
            found.extend(self.identifiers(self.names.tables()));
            found.extend(self.identifiers(sentence.queries.clone()));
            // A list of all there is would not help.
            if !self.word.is_empty() && !self.word.starts_with('"') {
                let functions = self.names.functions();
                let fitting = functions.iter().filter(|name| name.starts_with(&self.word.to_lowercase()));
                found.extend(fitting.map(|name| Pair { display: name.clone(), replacement: format!("{name}(") }));
                found.extend(self.keywords());
            }
        }
        let mut seen = std::collections::HashSet::new();
        found.retain(|pair| seen.insert(pair.replacement.clone()));
        found
    }

    /// Names that begin like the word, whatever the case, in quotes where SQL wants them.
    fn identifiers(&self, names: impl IntoIterator<Item = String>) -> Vec<Pair> {
        let (quoted, word) = self.word.strip_prefix('"').map_or((false, self.word), |word| (true, word));
        let begins = |name: &str| name.to_lowercase().starts_with(&word.to_lowercase());
        let names = names.into_iter().filter(|name| begins(name));
        names
            .map(|name| {
                let first = name.chars().next().is_some_and(|c| c.is_ascii_lowercase() || c == '_');
                let rest = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
                let bare = first && rest && !is_keyword(&name) && !quoted;
                let replacement = if bare { name.clone() } else { format!("\"{}\"", name.replace('"', "\"\"")) };
                Pair { display: name, replacement }
            })
            .collect()
    }

    /// Keywords in the case of the word.
    fn keywords(&self) -> impl Iterator<Item = Pair> {
        let upper = self.word.to_ascii_uppercase();
        let lower = self.word.chars().any(|c| c.is_ascii_lowercase());
        let fitting = KEYWORDS.iter().filter(move |keyword| keyword.starts_with(&upper));
        fitting.map(move |keyword| plain(&if lower { keyword.to_ascii_lowercase() } else { (*keyword).to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Fixed;

    impl Names for Fixed {
        fn tables(&self) -> Vec<String> {
            ["hits", "orders", "Order Lines", "two\nlines", "red\u{1b}[31m"].map(str::to_owned).to_vec()
        }

        fn columns(&self, table: &str) -> Option<Vec<String>> {
            let columns: &[&str] = match table {
                "hits" => &["CounterID", "url", "user_id"],
                "orders" => &["id", "user_id", "order"],
                "a.parquet" => &["ab", "ac"],
                _ => return None,
            };
            Some(columns.iter().map(|name| (*name).to_owned()).collect())
        }

        fn functions(&self) -> Vec<String> {
            ["sum", "substr", "upper"].map(str::to_owned).to_vec()
        }
    }

    /// What may stand at the bar.
    fn at_bar(line: &str) -> Vec<String> {
        let cursor = line.find('|').unwrap();
        let line = line.replace('|', "");
        let (start, found) = complete(&line, cursor, &Fixed);
        found
            .iter()
            .map(|pair| format!("{}{}", &line[..start], pair.replacement))
            .map(|l| l[start..].to_owned())
            .collect()
    }

    #[test]
    fn words_become_what_fits_their_place() {
        let columns = ["\"CounterID\"", "url", "user_id"];
        for (line, expected) in [
            ("sel|", &["select"][..]),
            ("SEL|", &["SELECT"]),
            ("SELECT * FROM |", &["hits", "orders", "\"Order Lines\"", "\"two\nlines\""]),
            ("SELECT * FROM re|", &[]),
            ("SELECT * FROM h|", &["hits"]),
            ("SELECT * FROM ord|", &["orders", "\"Order Lines\""]),
            ("SELECT * FROM \"Or|", &["\"orders\"", "\"Order Lines\""]),
            ("SELECT u| FROM hits", &["url", "user_id", "upper(", "unbounded", "union", "unnest", "update", "using"]),
            ("SELECT counter| FROM hits", &["\"CounterID\""]),
            ("SELECT h.| FROM hits AS h", &columns),
            ("SELECT hits.| FROM hits", &columns),
            ("SELECT x FROM a, hits h JOIN orders o ON o.|", &["id", "user_id", "\"order\""]),
            ("SELECT x FROM 'a.parquet' p WHERE p.a|", &["ab", "ac"]),
            ("SELECT 1 FROM orders; SELECT cou|nt FROM hits", &["\"CounterID\""]),
            ("WITH mine AS (SELECT 1) SELECT * FROM m|", &["mine"]),
            ("SELECT su|", &["sum(", "substr("]),
            ("SELECT cou|", &["\"CounterID\""]),
            ("SELECT user|", &["user_id"]),
            ("SELECT nothing_like_it|", &[]),
            ("SELECT 1 /* sel|", &[]),
            ("|", &[]),
            ("\\ti|", &["\\timing"]),
            (".tab|", &[".tables"]),
            (".schema o|", &["orders"]),
            ("\\timing o|", &["on", "off"]),
            ("\\d o|", &["orders"]),
            ("\\f js|", &["json"]),
        ] {
            assert_eq!(at_bar(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_listed_does_nothing_to_the_terminal() {
        let line = "SELECT * FROM ";
        let (_, found) = complete(line, line.len(), &Fixed);
        assert!(found.iter().all(|pair| pair.display.chars().all(screen::is_plain)), "{:?}", found[3].display);
        assert_eq!(found[3].display, "two\\nlines");
    }

    #[test]
    fn paths_are_completed_in_quotes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("some file.plinth"), "").unwrap();
        let path = dir.path().display();
        let expected = [format!("{path}/some file.plinth'")];
        assert_eq!(
            at_bar(&format!("SELECT * FROM '{path}/so|")).first().map(|p| p.trim_end_matches('\'')),
            expected.first().map(|p| p.trim_end_matches('\''))
        );
        assert_eq!(
            at_bar(&format!("\\i {path}/so|")).first().map(|p| p.trim_end_matches('\'')),
            expected.first().map(|p| p.trim_end_matches('\''))
        );
    }

    proptest! {
        #[test]
        fn any_text_can_be_completed(text in "(select|from| |hits|h|\\.|,|'|\"|\\(|\\)|;|\n|\\\\d|é|/\\*|--|as|\\$\\$){0,20}", at in 0usize..60) {
            let cursor = (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap();
            let (start, _) = complete(&text, cursor, &Fixed);
            prop_assert!(start <= cursor && text.is_char_boundary(start));
        }
    }
}
