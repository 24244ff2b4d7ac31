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
