#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn paths_are_understood() {
    let key = |name: &str| Step::Key(name.to_owned());
    for (text, steps) in [
        ("", vec![]),
        ("$", vec![]),
        ("$[*]", vec![]),
        ("pairs", vec![key("pairs")]),
        ("a.b[2]", vec![key("a"), key("b"), Step::Index(2)]),
        ("$.a.b[*]", vec![key("a"), key("b")]),
        ("$['a.b'][\"c d\"]", vec![key("a.b"), key("c d")]),
        ("$.a[*].b[*]", vec![key("a"), Step::Any, key("b")]),
        ("/a/b", vec![key("a"), key("b")]),
        ("/", vec![key("")]),
        ("/a~1b/m~0n/3/03", vec![key("a/b"), key("m~n"), Step::Either("3".to_owned(), 3), key("03")]),
    ] {
        assert_eq!(Root::parse(text).unwrap().steps, steps, "{text}");
    }
    assert!(Root::parse("$[*][*].a").unwrap().is_pattern() && !Root::parse("a[*]").unwrap().is_pattern());
    for text in ["$a", "$..a", "a..b", "$.*", "$[", "$['a]", "$['a'", "$[a]", "$[-1]", "/~2", "/a~", "$[?(@.a)]"] {
        assert!(Root::parse(text).is_err_and(|e| !e.contains('\n')), "{text}");
    }
}
