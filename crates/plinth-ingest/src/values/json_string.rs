//! Text as JSON spells it.

/// A text between quotes, as JSON has it.
pub(crate) fn json_string(to: &mut Vec<u8>, text: &str) {
    to.push(b'"');
    let mut rest = text.as_bytes();
    let escaped = |b: &u8| matches!(b, b'"' | b'\\' | 0..0x20);
    // All bytes are looked at, for many at a time are faster than some one by one.
    if !rest.iter().fold(false, |found, byte| found | escaped(byte)) {
        to.extend_from_slice(rest);
        to.push(b'"');
        return;
    }
    while let Some(at) = rest.iter().position(escaped) {
        let (plain, tail) = rest.split_at(at);
        to.extend_from_slice(plain);
        match tail.first() {
            Some(b'\n') => to.extend_from_slice(b"\\n"),
            Some(b'\r') => to.extend_from_slice(b"\\r"),
            Some(b'\t') => to.extend_from_slice(b"\\t"),
            Some(byte @ (b'"' | b'\\')) => to.extend_from_slice(&[b'\\', *byte]),
            Some(byte) => to.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            None => {}
        }
        rest = tail.get(1..).unwrap_or_default();
    }
    to.extend_from_slice(rest);
    to.push(b'"');
}
