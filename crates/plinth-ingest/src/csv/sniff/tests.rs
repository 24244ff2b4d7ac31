#![allow(clippy::unwrap_used)]

use super::*;

fn sniffed(text: &str, options: &CsvOptions) -> (Dialect, bool) {
    let sniffing = SniffOptions::new(options, b',', None).unwrap();
    let found = sniff(text.as_bytes(), true, &sniffing, Level::Scalar);
    for level in Level::all() {
        assert_eq!(sniff(text.as_bytes(), true, &sniffing, level), found, "{text:?}");
    }
    found
}

#[test]
fn delimiters_are_told_by_records_of_equally_many_fields() {
    for (text, delimiter) in [
        ("a,b\n1,2\n", b','),
        ("a;b\n1;2\n", b';'),
        ("a\tb\n1\t2\n", b'\t'),
        ("a|b\n1|2\n", b'|'),
        ("a^b\n1^2\n", b'^'),
        ("a\u{1f}b\n1\u{1f}2\n", 0x1f),
        ("a;b", b';'),
        // What is usual where both are possible.
        ("a,b;c\n1,2;3\n", b','),
        ("a;b;c\n1,5;2,5;3,5\n2,5;3,5;4,5\n", b';'),
        ("a|b;c;d\n1|2;3;4\n", b';'),
        // Nothing speaks for another.
        ("a\n1;2\n3\n", b','),
        ("", b','),
        ("word\nanother\n", b','),
        ("at\n12:30\n12:45\n", b','),
        ("a b\n1 2\n", b','),
        // Delimiters in quotes are none.
        ("\"a,b\";c\n\"1,2\";3\n", b';'),
        ("a;\"b;c\"\n1;\"2\n3\"\n", b';'),
        // Most records.
        ("a;b\n1;2\n1;2\n1;2\n1;2\n1;2\n1;2\n1;2\n1\n", b';'),
        ("a;b\n1\n1;2\n1\n", b','),
        ("time,x\n12:30:00,1\n12:30:00,1\n12:30:00,1\n12:30:00,1\n12:30:00,1\n12:30:00\n", b','),
    ] {
        assert_eq!(char::from(sniffed(text, &CsvOptions::default()).0.delimiter), char::from(delimiter), "{text:?}");
    }
    let told = CsvOptions { delimiter: Some(b';'), ..CsvOptions::default() };
    assert_eq!(sniffed("a,b\n1,2\n", &told).0.delimiter, b';');
}

#[test]
fn quotes_and_escapes_are_told_by_what_they_make_whole() {
    let of = |text| sniffed(text, &CsvOptions::default()).0;
    for (text, quote, escape) in [
        ("a,b\n\"1,2\",3\n", Some(b'"'), None),
        ("a,b\n'1,2',3\n", Some(b'\''), None),
        ("a,b\n'1','2'\n", Some(b'\''), None),
        // One of two values in quotes is a name like any other.
        ("a,b\n'1','2'\n3,4\n", Some(b'"'), None),
        // Quotes around a name with a comma are not torn apart.
        ("\"Name, first\"\n\"Doe, J\"\n", Some(b'"'), None),
        ("'Name, first'\n'Doe, J'\n", Some(b'\''), None),
        ("\"it's, 'a'\",'b\n\"c, d\",'e\n", Some(b'"'), None),
        ("'tis, but\n'twas, too\n", Some(b'"'), None),
        // Quotes that open fields and close none are characters like others.
        ("a,b\n\"x,1\n\"y,2\n", None, None),
        ("size,n\n\"5\"\" pipe,1\n\"x,2\n\"y,3\n", None, None),
        ("a,b\n\"x\",1\n\"y\",2\n\"z,3\n", Some(b'"'), None),
        ("a,b\n\"1\\\",2\",3\n", Some(b'"'), Some(b'\\')),
        ("a,b\n\"1\\\\\",3\n", Some(b'"'), None),
        ("a,b\n'1\\',2',3\n", Some(b'\''), Some(b'\\')),
        ("a,b\nO'Brien,3\n", Some(b'"'), None),
    ] {
        let dialect = of(text);
        assert_eq!((dialect.quote, dialect.escape), (quote, escape), "{text:?}");
    }
    let told = CsvOptions { quote: Mark::None, ..CsvOptions::default() };
    assert_eq!(sniffed("a,b\n\"1\",2\n", &told).0.quote, None);
}

#[test]
fn lines_end_with_a_carriage_return_where_none_ends_otherwise() {
    let of = |text| sniffed(text, &CsvOptions::default());
    assert_eq!(of("a;b\r1;2\r").0, Dialect { delimiter: b';', quote: Some(b'"'), escape: None, line_end: b'\r' });
    assert_eq!(of("a,b\r\n1,2\r\n").0.line_end, b'\n');
    assert_eq!(of("a,\"b\r\"\n1,2\n").0.line_end, b'\n');
    assert_eq!(of("a,b").0.line_end, b'\n');
}

#[test]
fn headers_are_told_by_what_is_below() {
    for (text, header) in [
        ("a,b\n1,2\n", true),
        ("1,2\n3,4\n", false),
        ("a,b\nc,d\n", true),
        ("id,2019,2020\nx,1,2\n", false),
        ("id,2019,2020\n1,1,2\n", true),
        ("x,1\ny,2\n", false),
        ("x,2024-01-01\ny,2024-01-02\n", false),
        ("2024-01-01T10:00,x\n2024-01-01T10:30,y\n", false),
        ("true\nfalse\n", false),
        ("1\n", false),
        ("0,0", false),
        ("a,1\n", false),
        ("a,b\n", true),
        ("a,\n", false),
        ("", true),
        ("a,\n1,2\n", true),
        (",5\n1,2\n", false),
        ("x,1\n,\n", true),
        ("1,2\n3,x\n", false),
        ("\"1\",\"a b\"\n3,x\n", false),
    ] {
        assert_eq!(sniffed(text, &CsvOptions::default()).1, header, "{text:?}");
    }
    let told = CsvOptions { header: Some(true), ..CsvOptions::default() };
    assert!(sniffed("1,2\n3,4\n", &told).1);
    let with = |names: &[&str], text: &str| {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<HashSet<String>>().into();
        let sniffing = SniffOptions::new(&CsvOptions::default(), b',', Some(names)).unwrap();
        sniff(text.as_bytes(), true, &sniffing, Level::Scalar).1
    };
    assert!(with(&["2019"], "2019,2020\n1,2\n") && with(&["x"], "1,2\n1,2\n") && with(&["column1"], "column1\n1\n"));
    assert!(!with(&["column1", "column2"], "a,b\n1,2\n"));
}

#[test]
fn what_is_cut_off_says_nothing() {
    let sniffing = SniffOptions::new(&CsvOptions::default(), b',', None).unwrap();
    assert_eq!(sniff(b"a;b\n1;2\n3", false, &sniffing, Level::Scalar).0.delimiter, b';');
    assert_eq!(sniff(b"a;b\n1;2\n3", true, &sniffing, Level::Scalar).0.delimiter, b',');
}

#[test]
fn dialects_that_there_are_not() {
    let odd = |options: CsvOptions| SniffOptions::new(&options, b',', None).is_err();
    let default = CsvOptions::default;
    assert!(odd(CsvOptions { delimiter: Some(b'\n'), ..default() }));
    assert!(odd(CsvOptions { delimiter: Some(b'"'), quote: Mark::Byte(b'"'), ..default() }));
    assert!(odd(CsvOptions { delimiter: Some(b'\\'), escape: Mark::Byte(b'\\'), ..default() }));
    assert!(odd(CsvOptions { quote: Mark::Byte(0xe9), ..default() }));
    assert!(odd(CsvOptions { thousands: Some(b'.'), ..default() }));
    assert!(odd(CsvOptions { thousands: Some(b'1'), ..default() }));
    assert!(!odd(CsvOptions { thousands: Some(b'.'), decimal: b',', ..default() }));
}
