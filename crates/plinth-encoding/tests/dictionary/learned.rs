//! Dictionaries of one column, each of which has what the one before learned.

use plinth_encoding::dictionary::{Learned, Sorted, encode_like};

use super::*;

/// Keys of a long beginning that all share and some words.
fn keys(words: &[&str], seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    let mut key = || {
        let words: Vec<&str> = (0..5).map(|_| words[random.index(words.len())]).collect();
        format!("{}{}", "beginning ".repeat(40), words.join("-")).into_bytes()
    };
    let mut keys: Vec<Vec<u8>> = (0..9000).map(|_| key()).collect();
    keys.sort();
    keys.dedup();
    keys
}

fn sorted(keys: &[Vec<u8>]) -> Sorted {
    let mut interner = Interner::new(TEXT).unwrap();
    let rows: Vec<Option<Vec<u8>>> = keys.iter().cloned().map(Some).collect();
    interner.intern(&column(TEXT, &rows), &mut Vec::new()).unwrap();
    interner.sort()
}

/// Encodes keys after others; gives whether they came out as they do alone, too.
fn alone_too(keys: &[Vec<u8>], learned: &mut Learned) -> bool {
    let sorted = sorted(keys);
    let encoded = encode_like(TEXT, &sorted, Effort::Balanced, learned).unwrap();
    assert!(encoded.has_tokens());
    let (dictionary, _) = open(TEXT, &encoded).unwrap();
    assert_eq!(rows_of(TEXT, dictionary.values().unwrap().values()), keys);
    let alone = encode(TEXT, &sorted, Effort::Balanced).unwrap();
    encoded.index == alone.index && encoded.blocks == alone.blocks
}

#[test]
fn tokens_serve_the_next_dictionary_while_they_fit() {
    let words = ["umbrella", "notebook", "mountain", "elephant", "sandwich", "hospital", "airplane", "birthday"];
    let others = ["quixotic", "zephyrus", "jukebox!", "wyvern--", "kohlrabi", "flummox.", "vivacity", "cryptics"];
    let mut learned = Learned::default();
    assert!(alone_too(&keys(&words, 1), &mut learned));
    assert!(!alone_too(&keys(&words, 2), &mut learned), "the tokens of the first serve the second");
    assert!(alone_too(&keys(&others, 3), &mut learned), "bytes that have no token");
    let rearranged: Vec<String> = others.iter().map(|word| word.chars().rev().collect()).collect();
    let rearranged: Vec<&str> = rearranged.iter().map(String::as_str).collect();
    assert!(alone_too(&keys(&rearranged, 4), &mut learned), "tokens that fit badly");
}
