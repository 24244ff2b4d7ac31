use super::*;

#[test]
fn forms() {
    for (text, expected) in [
        ("0", Some(Form::Integer)),
        ("-12", Some(Form::Integer)),
        ("-0", Some(Form::Float)),
        ("007", None),
        ("+5", None),
        ("", None),
        ("-", None),
        (".", None),
        (".5", Some(Form::Float)),
        ("5.", Some(Form::Float)),
        ("1e5", Some(Form::Float)),
        ("1e", None),
        ("00.5", None),
        ("1.5x", None),
        ("e5", None),
        ("NaN", Some(Form::Special)),
        ("nan", None),
    ] {
        assert_eq!(form(text), expected, "{text}");
    }
}
