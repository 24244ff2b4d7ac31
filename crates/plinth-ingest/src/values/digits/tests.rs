use super::*;

#[test]
fn usual_doubles_are_taken_at_once_and_others_left() {
    let taken = |text: &str| usual_float(format!("{text}{}", " ".repeat(USUAL)).as_bytes(), 0).map(|(_, end)| end);
    for usual in [
        "0",
        "-0",
        "7",
        "1234567",
        "-0.5",
        "0.25",
        "179.1234567890123456",
        "0.12345678901234567",
        "1.123456789012345678",
    ] {
        assert_eq!(taken(usual), Some(usual.len()), "{usual}");
    }
    for other in [
        "12345678",
        "1.",
        "-",
        "",
        "01",
        "-01.5",
        "00",
        "1e5",
        "1.5E5",
        "1.1234567890123456789",
        "12.1234567890123456789",
        ".5",
        "x",
    ] {
        assert_eq!(taken(other), None, "{other}");
    }
    assert_eq!(usual_float(b"1.5", 0), None);
}
