//! A message with the line that it is about, and a mark below the place.

use plinth_sql::{SqlError, placed};
use unicode_width::UnicodeWidthStr;

use super::grid::{Paint, cut};
use crate::error::Failure;
use crate::screen;

/// Width of a line where there is no screen.
const WIDTH: usize = 100;

/// What is said of a statement that failed: with the place in its text, where that is known.
pub(crate) fn pointed(failure: Failure, sql: &str, paint: Paint) -> Failure {
    if plinth_sql::holds_secret(sql) {
        return failure;
    }
    match failure {
        // One that has its place has it on lines of its own.
        Failure::Message(message) if !message.contains('\n') => Failure::Message(with_place(&message, sql, paint)),
        other => other,
    }
}

/// The same of a text that can't be parsed.
pub(crate) fn unparsed(error: SqlError, sql: &str, paint: Paint) -> Failure {
    pointed(Failure::from(error), sql, paint)
}

fn with_place(message: &str, sql: &str, paint: Paint) -> String {
    let Some(placed) = placed(sql, message) else { return message.to_owned() };
    let message = placed.message;
    let Some(line) = placed.line.checked_sub(1).and_then(|at| sql.lines().nth(at)) else { return message };
    let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0));
    let (line, mark) = point_at(line, placed.column, width.saturating_sub(2));
    format!("{message}\n  {line}\n  {}", paint.style("31", &mark))
}

/// A line cut to a width around a column (from 1), and what marks that column below it.
fn point_at(line: &str, column: usize, width: usize) -> (String, String) {
    let clean: Vec<char> = line.chars().map(|c| if screen::is_plain(c) { c } else { ' ' }).collect();
    let at = column.saturating_sub(1).min(clean.len());
    // As much before the place as leaves room for some of what follows.
    let mut from = at;
    let width_of = |from: usize, to: usize| clean.get(from..to).unwrap_or_default().iter().collect::<String>().width();
    while from > 0 && width_of(from - 1, at) <= width * 2 / 3 {
        from -= 1;
    }
    let shown: String = clean.get(from..).unwrap_or_default().iter().collect();
    (cut(&shown, width), format!("{}^", " ".repeat(width_of(from, at))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_below_its_place() {
        assert_eq!(point_at("SELEC 1", 1, 80), ("SELEC 1".to_owned(), "^".to_owned()));
        assert_eq!(point_at("a\t名 b", 5, 80), ("a 名 b".to_owned(), "     ^".to_owned()));
        assert_eq!(point_at("ab", 9, 80), ("ab".to_owned(), "  ^".to_owned()));
        let (line, mark) = point_at(&"x".repeat(500), 250, 30);
        assert_eq!((line.width(), mark.len()), (30, 21));
        for width in 0..4 {
            let (line, _) = point_at("名前", 2, width);
            assert!(line.width() <= width);
        }
    }

    #[test]
    fn a_message_has_its_line() {
        let said = with_place("no column nope; there are a", "SELECT a,\n nope FROM t", Paint::default());
        assert_eq!(said, "no column nope; there are a\n   nope FROM t\n   ^");
        assert_eq!(with_place("division by zero", "SELECT 1 / 0", Paint::default()), "division by zero");
    }
}
