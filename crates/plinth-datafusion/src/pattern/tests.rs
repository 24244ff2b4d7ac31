//! LIKE patterns as comparisons.

use super::*;

#[test]
fn patterns_are_read_with_their_escapes() {
    let equals = |text: &str| Some(Shape::Equals(text.into()));
    let starts = |text: &str| Some(Shape::StartsWith(text.into()));
    assert_eq!(shape(""), equals(""));
    assert_eq!(shape("abc"), equals("abc"));
    assert_eq!(shape("abc%"), starts("abc"));
    assert_eq!(shape("%"), starts(""));
    assert_eq!(shape(r"a\%b%"), starts("a%b"));
    assert_eq!(shape(r"a\_\\%"), starts(r"a_\"));
    assert_eq!(shape(r"100\%"), equals("100%"));
    for opaque in ["a%b", "%a", "a_", "_", "a%%", r"a\", r"a\b%"] {
        assert_eq!(shape(opaque), None, "{opaque}");
    }
}

#[test]
fn text_between_two_wildcards_is_contained() {
    for (pattern, text) in [("%abc%", "abc"), (r"%a\%b%", "a%b"), ("%%", "")] {
        assert_eq!(contained(pattern).as_deref(), Some(text), "{pattern}");
    }
    for other in ["", "%", "abc", "%abc", "abc%", "%a%b%", "%a_b%", "%%a%", r"\%a%"] {
        assert_eq!(contained(other), None, "{other}");
    }
}
