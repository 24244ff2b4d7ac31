//! LIKE patterns, as they are read.

use super::*;

#[test]
fn patterns_are_read_with_their_escapes() {
    for (pattern, expected) in [
        ("", &[""][..]),
        ("abc", &["abc"]),
        ("abc%", &["abc", ""]),
        ("%", &["", ""]),
        (r"a\%b%", &["a%b", ""]),
        (r"a\_\\%", &[r"a_\", ""]),
        (r"100\%", &["100%"]),
        ("%a%%b", &["", "a", "", "b"]),
    ] {
        assert_eq!(parts(pattern).unwrap(), expected, "{pattern}");
    }
    for opaque in ["a_", "_", "%a_b%", r"a\", r"a\b%"] {
        assert_eq!(parts(opaque), None, "{opaque}");
    }
}

#[test]
fn comparisons_are_told_from_patterns() {
    let column = Path::column("c");
    for comparison in ["", "abc", "abc%", "%", r"a\%b%"] {
        assert!(like(&column, comparison).is_some(), "{comparison}");
    }
    for pattern in ["a%b", "%a", "a%%", "%a%"] {
        assert!(like(&column, pattern).is_none(), "{pattern}");
        assert!(of_like(pattern).is_some(), "{pattern}");
    }
    assert_eq!(of_like("%a%b%").unwrap(), Pattern::new(b"", [&b"a"[..], b"b"], b""));
    assert!(of_like("abc").is_none());
}
