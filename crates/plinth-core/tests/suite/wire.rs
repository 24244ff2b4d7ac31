//! What is written is read back; what was cut, is too large or never ends is an error.

use plinth_core::wire::{
    Reader, WireError, put_align64, put_bytes, put_int, put_signed_128, put_varint, put_varint_128,
};
use proptest::prelude::*;

proptest! {
    #[test]
    fn numbers_come_back_and_no_shorter_bytes_give_them(value: u64, wide: u128, signed: i128, shift in 0..64_u32) {
        let (value, wide, signed) = (value >> shift, wide >> (2 * shift), signed >> (2 * shift));
        let mut bytes = Vec::new();
        put_varint(&mut bytes, value);
        put_varint_128(&mut bytes, wide);
        put_signed_128(&mut bytes, signed);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(reader.varint(), Ok(value));
        prop_assert_eq!(reader.varint_128(), Ok(wide));
        prop_assert_eq!(reader.signed_128(), Ok(signed));
        prop_assert_eq!(reader.finish(), Ok(()));
        for cut in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..cut]);
            let read = reader.varint().and_then(|_| reader.varint_128()).and_then(|_| reader.signed_128());
            prop_assert_eq!(read, Err(WireError::Early));
        }
    }

    #[test]
    fn any_bytes_are_read_without_leaving_them(bytes: Vec<u8>, start in 0..20_usize, end in 0..40_usize) {
        let Ok(mut reader) = Reader::within(&bytes, start, end) else {
            prop_assert!(start > end || end > bytes.len());
            return Ok(());
        };
        for step in 0..40 {
            let _ = match step % 8 {
                0 => reader.varint().map(drop),
                1 => reader.varint_128().map(drop),
                2 => reader.bytes().map(drop),
                3 => reader.u32().map(drop),
                4 => reader.int(3).map(drop),
                5 => reader.align64(),
                6 => reader.text().map(drop),
                _ => reader.count(2).map(drop),
            };
            prop_assert!(reader.position() >= start && reader.position() <= end);
            prop_assert_eq!(reader.rest().len(), reader.left());
        }
    }
}

#[test]
fn varints_that_do_not_fit_are_refused() {
    assert_eq!(Reader::new(&[0xff; 9]).varint(), Err(WireError::Early));
    assert_eq!(Reader::new(&[0xff; 20]).varint(), Err(WireError::Varint));
    let mut largest = [0xff; 10];
    largest[9] = 1;
    assert_eq!(Reader::new(&largest).varint(), Ok(u64::MAX));
    largest[9] = 2;
    assert_eq!(Reader::new(&largest).varint(), Err(WireError::Varint));
    assert_eq!(Reader::new(&[0xff; 40]).varint_128(), Err(WireError::Varint));
    assert_eq!(Reader::new(&[0; 20]).int(9), Err(WireError::Varint));
}

#[test]
fn counts_and_lengths_are_held_against_what_follows() {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, u64::MAX);
    assert_eq!(Reader::new(&bytes).count(2), Err(WireError::Count));
    assert_eq!(Reader::new(&bytes).bytes(), Err(WireError::Count));
    let mut bytes = Vec::new();
    put_bytes(&mut bytes, &[0xff, 0xfe]);
    assert_eq!(Reader::new(&bytes).bytes(), Ok(&[0xff, 0xfe][..]));
    assert_eq!(Reader::new(&bytes).text(), Err(WireError::Text));
    assert_eq!(Reader::new(&bytes).finish(), Err(WireError::LeftOver));
}

#[test]
fn integers_of_any_width_and_alignment_come_back() {
    for width in 0..=8 {
        let mut bytes = vec![7; 3];
        put_int(&mut bytes, u64::MAX - 5, width);
        put_align64(&mut bytes, 3);
        let mut reader = Reader::new(&bytes[3..]);
        let mask = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
        assert_eq!(reader.int(usize::from(width)), Ok((u64::MAX - 5) & mask));
        assert_eq!(reader.align64(), Ok(()));
        assert_eq!(reader.finish(), Ok(()));
    }
}
