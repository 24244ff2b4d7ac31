//! Byte strings that compare as the values they stand for, told apart by eight bytes at a time.

/// Bytes of a [`head`].
pub const HEAD: usize = 8;

/// Eight bytes of a key from a place on as a number, zeros where there are none: keys in order have heads in order, and keys
/// whose heads differ compare as these do.
#[inline]
pub fn head(key: &[u8], from: usize) -> u64 {
    let rest = key.get(from..).unwrap_or_default();
    if let Some(eight) = rest.first_chunk::<HEAD>() {
        return u64::from_be_bytes(*eight);
    }
    let mut eight = [0; HEAD];
    eight.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    u64::from_be_bytes(eight)
}

/// The number of leading bytes two keys share.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (mut at, (chunks_a, _), (chunks_b, _)) = (0, a.as_chunks::<8>(), b.as_chunks::<8>());
    for (x, y) in chunks_a.iter().zip(chunks_b) {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return at + (differ.trailing_zeros() >> 3) as usize;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
}
