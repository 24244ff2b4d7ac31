//! Text that can be shown: names, values and messages may hold characters that move a cursor, change colours or turn the direction
//! of writing; here they are spelled out, so that they do nothing but be seen.

use std::borrow::Cow;

/// Whether a character can be shown as it is. Besides control characters, marks of bidirectional text, line separators
/// and the byte order mark can't.
pub fn is_plain(c: char) -> bool {
    let invisible = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    !(c.is_control() || invisible)
}

/// Adds a character, or how it is written where it can't be shown.
pub fn spell(shown: &mut String, c: char) {
    match c {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        c if is_plain(c) => shown.push(c),
        c => shown.extend(c.escape_unicode()),
    }
}

/// A text on one line, with all that can't be shown spelled out.
pub fn spelled(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| spell(&mut shown, c));
    Cow::Owned(shown)
}

/// The name that a word is most likely meant to be, if one is near: whatever the case, a letter added, left out, changed or two
/// swapped in short words, twice that in long ones. Of several as near the first.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().collect();
    let most = match word.len() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let near = names.into_iter().filter_map(|name| {
        let letters: Vec<char> = name.to_lowercase().chars().collect();
        let apart = if letters.len().abs_diff(word.len()) > most { return None } else { distance(&word, &letters) };
        (apart <= most).then_some((apart, name))
    });
    near.min_by_key(|(apart, _)| *apart).map(|(_, name)| name)
}

/// How many letters have to be added, removed, changed or swapped with their neighbours to make one word of another.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX - 1);
            let mut least = (at(&last, j) + usize::from(x != y)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                least = least.min(at(&before, j - 1) + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_slip_are_known() {
        let names = ["import", "export", "inspect", "sql", "mod", "cos", "customers"];
        for (word, meant) in [
            ("imprt", Some("import")),
            ("improt", Some("import")),
            ("EXPORT", Some("export")),
            ("sq", None),
            ("sqll", Some("sql")),
            ("mop", Some("mod")),
            ("cusotmer", Some("customers")),
            ("tanh", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), meant, "{word}");
        }
    }

    #[test]
    fn what_can_not_be_shown_is_spelled_out() {
        assert_eq!(spelled("a\u{1b}[31m\n\u{9b}\u{202e}é"), "a\\u{1b}[31m\\n\\u{9b}\\u{202e}é");
        assert!(matches!(spelled("plain é 名"), Cow::Borrowed(_)));
    }
}
