//! Symbol tables compress what they were made for.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn strings_come_back(texts in prop::collection::vec("[a-c\\x00]{0,40}|.{0,20}", 1..40)) {
        let values: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let compressor = Compressor::train(&values);
        let mut table = Vec::new();
        write_symbols(&compressor, &mut table);
        let mut cursor = Reader::new(&table);
        let symbols = Symbols::read(&mut cursor).unwrap();
        prop_assert_eq!(cursor.left(), 0);
        for value in values {
            let codes = compressor.compress(value);
            let mut out = vec![0; Symbols::room(codes.len())];
            let end = symbols.decode(&codes, &mut out, 0).unwrap();
            prop_assert_eq!(&out[..end], value);
            let mut visited = Vec::new();
            symbols.visit(&codes, |bytes| { visited.extend_from_slice(bytes); true }).unwrap();
            prop_assert_eq!(&visited, value);
        }
    }

    #[test]
    fn any_bytes_are_safe(table: Vec<u8>, codes: Vec<u8>) {
        if let Some(symbols) = Symbols::read(&mut Reader::new(&table)) {
            let mut out = vec![0; Symbols::room(codes.len())];
            let end = symbols.decode(&codes, &mut out, 0);
            prop_assert!(end.is_none_or(|end| end <= 8 * codes.len()));
        }
    }
}
