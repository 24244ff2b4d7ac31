use super::like;

#[test]
fn names_fit_patterns() {
    for (pattern, name, fits) in [
        ("", "", true),
        ("", "a", false),
        ("%", "", true),
        ("%", "any", true),
        ("a_c", "abc", true),
        ("a_c", "ac", false),
        ("a%c", "abcbc", true),
        ("a%c", "abcb", false),
        ("%b%", "abc", true),
        ("%_", "", false),
        ("\u{fc}_", "\u{fc}\u{e4}", true),
        ("abc", "ABC", false),
    ] {
        assert_eq!(like(pattern, name), fits, "{name:?} LIKE {pattern:?}");
    }
    // Tried letter by letter, this would take years.
    assert!(!like(&"%a".repeat(40), &"a".repeat(39)));
    assert!(like(&"%a".repeat(40), &"a".repeat(40)));
}
