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

/// Appends bytes that more of a key follows: each 00 as 00 ff, then 00 00. Keys with such parts compare part by part.
#[inline]
pub fn put_terminated(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// The bytes up to the end that [`put_terminated`] wrote, each 00 still as 00 ff, and what follows it.
#[inline]
pub fn split_terminated(key: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    // A zero of the value has another byte than zero behind it.
    while key.get(at).is_some_and(|&byte| byte != 0) || key.get(at + 1) == Some(&0xff) {
        at += if key.get(at) == Some(&0) { 2 } else { 1 };
    }
    let (head, rest) = key.split_at_checked(at).unwrap_or((key, &[]));
    (head, rest.get(2..).unwrap_or_default())
}
