//! What goes wrong: damaged dictionaries, sources that fail, wrong arguments. Errors or other answers, never worse.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn damage_is_safe(
        (physical, rows) in every_physical(),
        places in prop::collection::vec(any::<(usize, u8)>(), 1..5),
    ) {
        let mut encoded = build(physical, &rows, 1);
        for (place, byte) in places {
            let mut at = place % (encoded.index.len() + encoded.blocks.iter().map(Vec::len).sum::<usize>());
            for part in std::iter::once(&mut encoded.index).chain(&mut encoded.blocks) {
                if at < part.len() {
                    part[at] = byte;
                    break;
                }
                at -= part.len();
            }
        }
        exercise(physical, &encoded);
    }
}

/// Asks everything; answers may be errors, and must be no worse.
fn exercise(physical: Physical, encoded: &EncodedDictionary) {
    let Ok((dictionary, _)) = open(physical, encoded) else { return };
    let mut key = Vec::new();
    for code in [0, 3, 15, 16, 40, 4095, 4096, 4100] {
        let _ = dictionary.get(code, &mut key);
        let _ = dictionary.gather(&[code, 2, code]);
        for probe in [&key[..], &key[..key.len() / 2], b"https://www.example.org/3/article-9", b""] {
            let _ = dictionary.find(probe);
            let _ = dictionary.prefix(probe);
        }
    }
    let _ = (dictionary.min(), dictionary.max());
    if let Ok(decoded) = dictionary.values()
        && physical.fixed_width() != Some(0)
    {
        // What decodes is in order, so it is a dictionary, if not the one that was written.
        let rows = rows_of(physical, decoded.values());
        assert!(rows.is_sorted_by(|a, b| key_of(physical, a) < key_of(physical, b)));
        assert_eq!(rows.len(), dictionary.len());
    }
    assert!(crate::memory::LARGEST.load(Ordering::Relaxed) < 64 << 20);
}

/// Every cut of `part`, every byte of it flipped in several ways, and a byte too many.
fn damaged(part: &[u8], mut check: impl FnMut(Vec<u8>)) {
    for at in 0..part.len() {
        check(part[..at].to_vec());
        for flip in [1, 0x10, 0x80, 0xff] {
            let mut bytes = part.to_vec();
            bytes[at] ^= flip;
            check(bytes);
        }
    }
    check([part, &[0]].concat());
}

#[test]
fn every_flipped_byte_and_every_cut_of_a_block_is_safe() {
    let mut forms = 0;
    let repeated = random(5).take(70).map(|x| Some(format!("{}{}", x % 999, "tick tock ".repeat(9)).into_bytes()));
    let repeated: Vec<_> = repeated.collect();
    let wide = Physical::Wide { width: 16 };
    let mut try_all = |physical, encoded: EncodedDictionary| {
        forms |= 1 << encoded.index[0];
        damaged(&encoded.blocks[0], |block| {
            exercise(physical, &EncodedDictionary { blocks: vec![block], index: encoded.index.clone() });
        });
        damaged(&encoded.index, |index| {
            exercise(physical, &EncodedDictionary { blocks: encoded.blocks.clone(), index });
        });
    };
    for (physical, rows) in [
        (TEXT, sample(TEXT, 70)),
        (TEXT, repeated.clone()),
        (BINARY, random(9).take(70).map(|x| Some(x.to_le_bytes()[..(x % 9) as usize].to_vec())).collect()),
        (wide, sample(wide, 40)),
        (Physical::CODES, sample(Physical::CODES, 70)),
        (Physical::Fixed { width: 3 }, sample(Physical::Fixed { width: 3 }, 70)),
    ] {
        try_all(physical, build(physical, &rows, 1));
    }
    try_all(TEXT, build_with(TEXT, &repeated, 1, Effort::Fast));
    assert_eq!(forms, 0b11111, "all layouts were tried");
}

#[test]
fn every_flipped_byte_and_every_cut_of_an_index_is_safe() {
    for physical in [TEXT, Physical::Int { width: 8, signed: true }, Physical::Wide { width: 16 }] {
        let encoded = build(physical, &sample(physical, 8500), 1);
        assert!(encoded.blocks.len() >= 2);
        let mut index = encoded.index.clone();
        // A few places of a symbol table stand for all: decoding 8,000 values takes its time.
        let skipped = index.len().saturating_sub(120);
        let tail = index.split_off(skipped);
        let head = index;
        let ask = |index: Vec<u8>| {
            let damaged = EncodedDictionary { blocks: encoded.blocks.clone(), index };
            let Ok((dictionary, _)) = open(physical, &damaged) else { return };
            let _ = (dictionary.find(b"https://www.example.org/3/"), dictionary.min(), dictionary.max());
            let _ = (dictionary.gather(&[4100]), dictionary.values().is_ok());
            assert!(crate::memory::LARGEST.load(Ordering::Relaxed) < 64 << 20);
        };
        damaged(&tail, |tail| ask([&head[..], &tail].concat()));
        damaged(&head[..head.len().min(20)], |start| ask([&start[..], &head[head.len().min(20)..], &tail].concat()));
        let swapped = EncodedDictionary { blocks: encoded.blocks.iter().rev().cloned().collect(), ..encoded.clone() };
        assert!(open(physical, &swapped).unwrap().0.values().is_err());
    }
}

#[test]
fn wrong_arguments_are_refused() {
    assert!(Interner::new(Physical::Bool).is_err());
    let mut interner = Interner::new(TEXT).unwrap();
    let ints = column(Physical::CODES, &[Some(vec![1, 0, 0, 0])]);
    assert!(interner.intern(&ints, &mut Vec::new()).is_err());
    let views = vec![100u128 | (5 << 96)];
    let outside = Values::Views { views: views.into(), buffers: vec![Buffer::from(vec![0u8; 104])] };
    assert!(interner.intern(&Column { len: 1, values: outside, nulls: None }, &mut Vec::new()).is_err());
    let short = Column { len: 2, ..ints };
    assert!(Interner::new(Physical::CODES).unwrap().intern(&short, &mut Vec::new()).is_err());
    assert!(encode(BINARY, &interner.sort(), Effort::Balanced).is_err());
    assert!(open(Physical::CODES, &build(BINARY, &[Some(vec![0xff])], 1)).is_err());
}

#[test]
fn text_that_is_not_utf8_is_an_error() {
    // End to end, the second two are UTF-8; apart they are not.
    for values in [[&b"a\xc3"[..], b"b"], [b"\xc3", b"\xc3\xa9"], [b"\xc3", b"\xc4\xa9"]] {
        let encoded = build(BINARY, &values.map(|value| Some(value.to_vec())), 1);
        let (dictionary, _) = open(TEXT, &encoded).unwrap();
        assert!(dictionary.values().is_err());
        assert!(dictionary.gather(&[0]).is_err());
        assert!(open(BINARY, &encoded).unwrap().0.values().is_ok());
    }
    let joined = build(BINARY, &[Some(b"a\xc3".to_vec()), Some(b"\xa9".to_vec())], 1);
    assert!(open(TEXT, &joined).unwrap().0.values().is_err());
}

#[test]
fn a_source_that_fails_is_reported() {
    struct Failing;
    impl BlockSource for Failing {
        fn block(&self, _: usize) -> Result<Buffer> {
            Err(EncodingError::corrupt("the disk is gone"))
        }
    }
    let encoded = build(TEXT, &sample(TEXT, 10), 1);
    let dictionary = Dictionary::open(TEXT, &encoded.index, Box::new(Failing)).unwrap();
    for result in [dictionary.find(b"x").map(drop), dictionary.values().map(drop), dictionary.gather(&[0]).map(drop)] {
        assert!(result.unwrap_err().to_string().contains("the disk is gone"));
    }
}
