//! The file format and its options.

use super::*;

fn parse(options: &[(&str, &str)]) -> Result<WriterOptions> {
    let options = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    with_options(WriterOptions::default(), &options)
}

#[test]
fn options_are_read_and_mistakes_named() {
    let options = parse(&[
        ("format.effort", "Compact"),
        ("index", "a, b"),
        ("format.row_group_rows", "1024"),
        ("replace", "true"),
    ])
    .unwrap();
    assert!(matches!(options.effort, Effort::Compact));
    assert_eq!(options.row_group_rows, 1024);
    assert!(options.replace);
    assert_eq!(options.index, ["a", "b"]);
    for (key, value) in
        [("effort", "most"), ("row_group_rows", "0"), ("threads", "two"), ("replace", "1"), ("level", "3")]
    {
        let error = parse(&[(key, value)]).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
}
