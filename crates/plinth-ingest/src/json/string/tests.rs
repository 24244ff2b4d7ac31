use super::*;

#[test]
fn escapes_are_checked_and_taken() {
    let mut out = String::new();
    for (inner, expected) in [
        ("", Ok("")),
        ("plain \u{7f} \u{e9}", Ok("plain \u{7f} \u{e9}")),
        (r#"\"\\\/\b\f\n\r\t"#, Ok("\"\\/\u{8}\u{c}\n\r\t")),
        (r"\u0041\ud83d\ude00\u0000", Ok("A\u{1f600}\0")),
        (r"\ud83d", Err(0)),
        (r"x\ud83d\u0041", Err(1)),
        (r"\ude00", Err(0)),
        (r"\u12", Err(0)),
        (r"\u+123", Err(0)),
        (r"\x", Err(0)),
        ("ab\tc", Err(2)),
        ("\\\u{e9}", Err(0)),
    ] {
        let checked = escapes(inner, 100).map_err(|flaw| flaw.at - 100);
        assert_eq!(checked.map(|_| unescape(inner, &mut out)), expected, "{inner}");
    }
}
