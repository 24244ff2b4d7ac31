//! What has been typed: its statements and commands, whether it is complete, its tokens.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace};

use super::command::is_command;

/// Words that are highlighted and completed. A parser of SQL knows a thousand, most of which are common names of columns.
#[rustfmt::skip]
pub(super) const KEYWORDS: [&str; 108] = [
    "ALL", "ALTER", "ANALYZE", "AND", "ANTI", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "COLUMNS", "COPY",
    "CREATE", "CROSS", "CUBE", "CURRENT", "DEALLOCATE", "DELETE", "DESC", "DESCRIBE", "DISTINCT", "DROP", "ELSE",
    "END", "ESCAPE", "EXCEPT", "EXCLUDE", "EXECUTE", "EXISTS", "EXPLAIN", "EXTERNAL", "EXTRACT", "FALSE", "FETCH",
    "FILTER", "FIRST", "FOLLOWING", "FROM", "FULL", "GROUP", "GROUPING", "HAVING", "ILIKE", "IN", "INNER", "INSERT",
    "INTERSECT", "INTERVAL", "INTO", "IS", "JOIN", "LAST", "LATERAL", "LEFT", "LIKE", "LIMIT", "LOCATION",
    "NATURAL", "NOT", "NULL", "NULLS", "OFFSET", "ON", "OPTIONS", "OR", "ORDER", "OUTER", "OVER", "PARTITION",
    "PARTITIONED", "PRECEDING", "PREPARE", "QUALIFY", "RANGE", "RECURSIVE", "REPLACE", "RESPECT", "RIGHT", "ROLLUP",
    "ROW", "ROWS", "SELECT", "SEMI", "SET", "SETS", "SHOW", "SIMILAR", "SOME", "STORED", "TABLE", "TABLES", "THEN",
    "TO", "TRUE", "TRY_CAST", "UNBOUNDED", "UNION", "UNNEST", "UPDATE", "USING", "VALUES", "VERBOSE", "VIEW",
    "WHEN", "WHERE", "WINDOW", "WITH",
];

/// Whether a word is one of [`KEYWORDS`].
pub(super) fn is_keyword(word: &str) -> bool {
    let upper = word.to_ascii_uppercase();
    KEYWORDS.binary_search(&upper.as_str()).is_ok()
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Statements, the last perhaps without its semicolon.
    Sql(&'a str),
    /// A command where a statement could begin, up to the end of the line.
    Command(&'a str),
}

/// A text in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split<'a> {
    pub(super) pieces: Vec<Piece<'a>>,
    /// Nothing is open: no quote, comment or statement.
    pub(super) complete: bool,
}

/// Divides a text.
pub(super) fn split(text: &str) -> Split<'_> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let Tokens { tokens, open } = tokens(rest);
        let mut places = Places::new(rest);
        let (mut begun, mut any) = (false, false);
        let mut command = None;
        for token in &tokens {
            match &token.token {
                Token::Whitespace(_) => {}
                Token::SemiColon => begun = false,
                _ if begun => {}
                _ => {
                    let start = places.of(token.span.start);
                    let line = rest.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
                    if is_command(line) {
                        command = Some(start);
                        break;
                    }
                    (begun, any) = (true, true);
                }
            }
        }
        let (sql, after) = rest.split_at(command.unwrap_or(rest.len()));
        if any || (command.is_none() && open.is_some()) {
            pieces.push(Piece::Sql(sql.trim()));
        }
        if command.is_none() {
            return Split { pieces, complete: !begun && open.is_none() };
        }
        let (line, next) = after.split_once('\n').unwrap_or((after, ""));
        pieces.push(Piece::Command(line.trim()));
        rest = next;
    }
}

/// What a text consists of.
pub(super) struct Tokens {
    pub(super) tokens: Vec<TokenWithSpan>,
    /// Where a quote or comment begins that does not end.
    pub(super) open: Option<Location>,
}

/// The tokens of a text, up to a quote or comment that does not end.
pub(super) fn tokens(text: &str) -> Tokens {
    let mut tokens = Vec::new();
    let result = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens);
    // An error may be reported at the end of the text; what is open begins after the last token.
    let after = tokens.last().map_or(Location::new(1, 1), |token| token.span.end);
    Tokens { open: result.is_err().then_some(after), tokens }
}

/// Finds bytes by lines and columns, which must be asked for in rising order.
pub(super) struct Places<'a> {
    rest: std::str::CharIndices<'a>,
    len: usize,
    at: Location,
    byte: usize,
}

impl<'a> Places<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.char_indices(), len: text.len(), at: Location::new(1, 1), byte: 0 }
    }

    pub(super) fn of(&mut self, place: Location) -> usize {
        while (self.at.line, self.at.column) < (place.line, place.column) {
            let Some((at, c)) = self.rest.next() else { return self.len };
            self.byte = at + c.len_utf8();
            self.at = match c {
                '\n' => Location::new(self.at.line + 1, 1),
                _ => Location::new(self.at.line, self.at.column + 1),
            };
        }
        self.byte
    }
}

/// The end of a text from a byte on, with its tokens in colours.
pub(super) fn highlight(text: &str, from: usize) -> String {
    if text.get(from..).is_some_and(is_command) {
        return text.get(from..).unwrap_or_default().to_owned();
    }
    let Tokens { tokens, open } = tokens(text);
    let mut places = Places::new(text);
    let mut coloured = String::with_capacity(text.len() * 2);
    for token in &tokens {
        let (start, end) = (places.of(token.span.start), places.of(token.span.end));
        let part = text.get(start.max(from)..end).unwrap_or_default();
        paint(&mut coloured, style(&token.token), part);
    }
    if let Some(open) = open {
        let begun = places.of(open);
        let whole = text.get(begun..).unwrap_or_default();
        let comment = whole.trim_start().starts_with("/*");
        let part = text.get(begun.max(from)..).unwrap_or_default();
        let blank = part.len() - part.trim_start().len();
        coloured.push_str(part.get(..blank).unwrap_or_default());
        paint(&mut coloured, if comment { COMMENT } else { TEXT }, part.get(blank..).unwrap_or_default());
    }
    coloured
}

const KEYWORD: &str = "36";
const TEXT: &str = "32";
const NUMBER: &str = "33";
const PARAMETER: &str = "35";
const COMMENT: &str = "2";

fn style(token: &Token) -> &'static str {
    match token {
        Token::Word(word) if word.quote_style.is_none() && is_keyword(&word.value) => KEYWORD,
        Token::Number(..) => NUMBER,
        Token::Placeholder(_) => PARAMETER,
        Token::SingleQuotedString(_)
        | Token::DollarQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::UnicodeStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::HexStringLiteral(_) => TEXT,
        Token::Whitespace(Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_)) => COMMENT,
        _ => "",
    }
}

fn paint(coloured: &mut String, style: &str, part: &str) {
    if style.is_empty() || part.is_empty() {
        coloured.push_str(part);
    } else {
        // A style that runs over a line break would colour the blanks the editor draws there.
        for (at, line) in part.split('\n').enumerate() {
            if at > 0 {
                coloured.push('\n');
            }
            if !line.is_empty() {
                coloured.push_str(&format!("\x1b[{style}m{line}\x1b[0m"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_keyword("select") && !is_keyword("name"));
    }

    #[test]
    fn statements_end_with_semicolons_that_are_not_in_quotes_or_comments() {
        for (text, complete) in [
            ("", true),
            ("  \n", true),
            ("-- a comment", true),
            ("SELECT 1", false),
            ("SELECT 1;", true),
            ("SELECT 1; -- done", true),
            ("SELECT 1; SELECT", false),
            ("SELECT ';", false),
            ("SELECT ';'", false),
            ("SELECT 'it''s;';", true),
            ("SELECT \"a;", false),
            ("SELECT 1 /* ; ", false),
            ("SELECT 1 /* ; */;", true),
            ("SELECT 1 -- ;", false),
            ("SELECT $$ ; $$", false),
            ("SELECT $$ ; $$;", true),
            ("\\d", true),
            ("\\o it's", true),
            ("SELECT 1 \\d", false),
            (".tables", true),
            ("exit", true),
            ("SELECT 1\nexit", false),
        ] {
            assert_eq!(split(text).complete, complete, "{text:?}");
        }
    }

    #[test]
    fn commands_stand_where_statements_could_begin() {
        let text = "-- first\n\\timing\nSELECT 'é'; \\d 'x y'\n\nSELECT 2;\nSELECT 3\n;\\q";
        let expected = [
            Piece::Command("\\timing"),
            Piece::Sql("SELECT 'é';"),
            Piece::Command("\\d 'x y'"),
            Piece::Sql("SELECT 2;\nSELECT 3\n;"),
            Piece::Command("\\q"),
        ];
        assert_eq!(split(text), Split { pieces: expected.to_vec(), complete: true });
        assert_eq!(split("SELECT 'open").pieces, [Piece::Sql("SELECT 'open")]);
        assert_eq!(split("'open").pieces, [Piece::Sql("'open")]);
        assert_eq!(split(" ; ;; ").pieces, []);
        let text = ".mode csv\nSELECT 1;\nexit\nSELECT exit;";
        let expected =
            [Piece::Command(".mode csv"), Piece::Sql("SELECT 1;"), Piece::Command("exit"), Piece::Sql("SELECT exit;")];
        assert_eq!(split(text), Split { pieces: expected.to_vec(), complete: true });
    }

    #[test]
    fn colours_follow_tokens() {
        let coloured = highlight("select 'a;b', n -- é\n FROM \"from\" WHERE x = 1.5 AND y = $1 AND 'open\nend", 0);
        for part in [
            "\x1b[36mselect\x1b[0m \x1b[32m'a;b'\x1b[0m, n \x1b[2m-- é\x1b[0m\n \x1b[36mFROM\x1b[0m \"from\" ",
            "\x1b[33m1.5\x1b[0m",
            "\x1b[35m$1\x1b[0m",
            "\x1b[32m'open\x1b[0m\n\x1b[32mend\x1b[0m",
        ] {
            assert!(coloured.contains(part), "{part:?} in {coloured:?}");
        }
        assert_eq!(highlight("\\d select", 0), "\\d select");
        // A line of a statement that was begun on others.
        let text = "SELECT 'a\nb', 1 FROM t";
        assert_eq!(highlight(text, 10), "\x1b[32mb'\x1b[0m, \x1b[33m1\x1b[0m \x1b[36mFROM\x1b[0m t");
    }

    proptest! {
        #[test]
        fn no_colour_changes_the_text(text in "[a-z0-9 '\"$;\\\\\n/*é.-]{0,60}") {
            let coloured = highlight(&text, 0);
            let mut plain = coloured.replace("\x1b[0m", "");
            for style in [KEYWORD, TEXT, NUMBER, PARAMETER, COMMENT] {
                plain = plain.replace(&format!("\x1b[{style}m"), "");
            }
            prop_assert_eq!(plain, text);
        }

        #[test]
        fn splitting_loses_nothing_but_blanks(text in "[a-c '\"$;\\\\\n/*é-]{0,60}") {
            let split = split(&text);
            for piece in &split.pieces {
                let (Piece::Sql(part) | Piece::Command(part)) = piece;
                prop_assert!(text.contains(part));
            }
            // A semicolon on a line of its own, after whatever is open was closed, completes anything.
            let closed = format!("{text}\n");
            prop_assert_eq!(super::split(&closed).complete, split.complete);
        }
    }
}
