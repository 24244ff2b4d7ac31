//! Tokens stand for what they were found in.

use proptest::prelude::*;

use super::*;
use crate::dictionary::alphabet::BitWriter;

fn occurring(pieces: &[&[u8]]) -> [bool; 256] {
    let mut occurring = [false; 256];
    pieces.iter().copied().flatten().for_each(|&byte| occurring[usize::from(byte)] = true);
    occurring
}

/// Writes pieces and reads them again, all of them one after the other in one bit stream.
fn check(pieces: &[&[u8]]) -> Tokens {
    let tokenizer = Tokenizer::train(pieces, &occurring(pieces));
    let mut table = Vec::new();
    tokenizer.write(&mut table);
    let mut cursor = Reader::new(&table);
    let tokens = Tokens::read(&mut cursor).unwrap();
    assert_eq!((cursor.left(), tokens.bits()), (0, tokenizer.bits() as usize));
    let mut packed = Vec::new();
    let mut writer = BitWriter::new(&mut packed);
    let lengths = tokenizer.pack(pieces, &mut writer);
    writer.finish();
    assert_eq!(tokenizer.packed_len(pieces), lengths.iter().sum::<usize>() * tokens.bits() / 8);
    let mut bit = 0;
    for (&piece, len) in pieces.iter().zip(lengths) {
        let mut out = vec![0xaa; 3 + Tokens::room(len)];
        let end = tokens.decode(&packed, bit, len, &mut out, 3).unwrap();
        assert_eq!(&out[3..end], piece);
        let mut visited = Vec::new();
        let visit = |bytes: &[u8]| {
            visited.extend_from_slice(bytes);
            visited.len() < 9
        };
        tokens.visit(&packed, bit, len, visit).unwrap();
        assert!(piece.starts_with(&visited) && (visited.len() >= 9 || visited == piece));
        bit += len * tokens.bits();
    }
    tokens
}

proptest! {
    #[test]
    fn pieces_come_back(texts in prop::collection::vec("[a-c\\x00]{1,60}|(abcdefgh|xyz){0,9}|.{0,20}", 1..60)) {
        prop_assume!(texts.iter().any(|text| !text.is_empty()));
        check(&texts.iter().map(String::as_bytes).collect::<Vec<_>>());
    }

    #[test]
    fn what_was_learned_is_used_again(texts in prop::collection::vec("[a-c]{1,60}|(abcdefgh|xyz){0,9}", 1..60)) {
        let pieces: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let occurring = occurring(&pieces);
        let learned = Tokenizer::train(&pieces, &occurring);
        let again = Tokenizer::of(learned.learned(), &occurring).unwrap();
        let packed = |tokenizer: &Tokenizer| {
            let mut packed = Vec::new();
            let mut writer = BitWriter::new(&mut packed);
            let lengths = tokenizer.pack(&pieces, &mut writer);
            writer.finish();
            (lengths, packed)
        };
        prop_assert!(packed(&learned) == packed(&again));
        let mut more = occurring;
        more[usize::from(b'!')] = true;
        prop_assert!(Tokenizer::of(learned.learned(), &more).is_none());
    }

    #[test]
    fn any_bytes_are_safe(table: Vec<u8>, packed: Vec<u8>, bit in 0_usize..9, len in 0_usize..99) {
        if let Some(tokens) = Tokens::read(&mut Reader::new(&table)) {
            let mut out = vec![0; Tokens::room(len)];
            let end = tokens.decode(&packed, bit, len, &mut out, 0);
            prop_assert!(end.is_none_or(|end| end <= LONGEST * len));
            prop_assert!(tokens.decode(&packed, bit, len + 2, &mut out[..4], 0).is_none());
        }
    }

    #[test]
    fn a_damaged_table_is_refused_or_another(at: usize, byte: u8) {
        let texts: Vec<String> = (0..90).map(|i| format!("{}{}", "tick tock ".repeat(i % 4), i * i)).collect();
        let pieces: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let mut table = Vec::new();
        Tokenizer::train(&pieces, &occurring(&pieces)).write(&mut table);
        let at = at % table.len();
        table[at] = byte;
        if let Some(tokens) = Tokens::read(&mut Reader::new(&table)) {
            let mut before: Vec<u8> = Vec::new();
            for entry in tokens.entries.iter().take_while(|entry| len_of(entry) > 0) {
                prop_assert!(before.as_slice() < bytes_of(entry));
                before = bytes_of(entry).to_vec();
            }
        }
    }
}

#[test]
fn what_is_often_together_is_a_token() {
    let texts: Vec<String> = (0..999).map(|i| format!("https://example.org/{i}")).collect();
    let pieces: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let tokens = check(&pieces);
    let url = "https://example.org/";
    let of_url = |entry: &Entry| url.contains(std::str::from_utf8(bytes_of(entry)).unwrap());
    assert!(tokens.entries.iter().any(|entry| len_of(entry) > 8 && of_url(entry)));
}

#[test]
fn a_table_may_be_as_large_as_numbers_reach() {
    // Pairs of letters come often, and so do pairs of pairs.
    let mut random = plinth_core::random::Random(7);
    let all: Vec<u8> = (0..3_000_000).map(|_| b"abcdefghijklmnopqrstuvwxyz"[random.index(26)]).collect();
    let tokens = check(&all.chunks(30).collect::<Vec<_>>());
    assert_eq!((tokens.bits(), tokens.entries.iter().filter(|entry| len_of(entry) > 0).count()), (16, MOST));
}

#[test]
fn a_single_token_has_a_bit() {
    assert_eq!(check(&[b"a"]).bits(), 1);
}
