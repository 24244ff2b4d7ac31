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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_shown_is_spelled_out() {
        assert_eq!(spelled("a\u{1b}[31m\n\u{9b}\u{202e}é"), "a\\u{1b}[31m\\n\\u{9b}\\u{202e}é");
        assert!(matches!(spelled("plain é 名"), Cow::Borrowed(_)));
    }
}
