#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::bits::dialect::Dialect;
use crate::csv::framing::Head;
use arrow_array::Array;
use proptest::prelude::*;

fn taken(text: &[u8], most: usize) -> Option<Vec<Vec<String>>> {
    let dialect = Dialect { delimiter: b',', quote: Some(b'"'), escape: None, line_end: b'\n' };
    let (path, bytes) = (Arc::from(Path::new("words")), text.to_vec().into());
    let head = Arc::new(Head { dialect, names: Vec::new() });
    let chunk = Chunk { path, head, line: 1, offset: 0, stored: 0, bytes, oversized: None };
    let values = |array: StringViewArray| {
        array.to_data().validate_full().unwrap();
        array.iter().map(|value| value.unwrap().to_owned()).collect()
    };
    Some(super::values(&chunk, 40, most)?.into_iter().map(values).collect())
}

#[test]
fn what_means_something_is_left_to_others() {
    for text in ["", "a,b\n", "\"a\"\n", "a\r\n", "a\n\nb\n", "\n", &"x".repeat(41)] {
        assert_eq!(taken(text.as_bytes(), 9), None, "{text:?}");
    }
    assert_eq!(taken(b"a\xff\n", 9), None);
    // A character may not be cut by a line end that is none.
    assert_eq!(taken(b"a\xc3\n\xa9\n", 9), None);
}

proptest! {
    #[test]
    fn lines_are_values(
        lines in prop::collection::vec("[a-zé\u{10a}\u{a0a}\u{0}]{1,16}", 1..200),
        most in 1_usize..70,
        ended: bool,
    ) {
        let mut text = lines.join("\n");
        if ended {
            text.push('\n');
        }
        let expected: Vec<Vec<String>> = lines.chunks(most).map(<[String]>::to_vec).collect();
        prop_assert_eq!(taken(text.as_bytes(), most), if lines.iter().any(|line| line.len() > 40) { None } else { Some(expected) });
    }
}
