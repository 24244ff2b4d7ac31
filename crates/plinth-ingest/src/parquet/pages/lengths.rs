//! Lengths of texts that are packed as differences (DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY).
//!
//! A stream of them begins with their number, for which the decoders of the `parquet` crate make room at once: where it is 2^40, by a few
//! bytes of a damaged page, the process ends. Streams are walked over here, block by block, without being unpacked.

use parquet::basic::Encoding;
use parquet::errors::{ParquetError, Result};

/// Most lengths that a byte stands for. Writers have blocks of 128 to 2048 values, of which each takes some bytes.
const MOST: usize = 1024;

/// Bytes of the longest number of variable length.
const LONGEST: usize = 10;

/// Checks that a page of so many values has no more lengths, and room for those that it claims.
///
/// # Errors
/// If it has not, or ends within the lengths.
pub(super) fn check(encoding: Encoding, values: &[u8], count: usize) -> Result<()> {
    // Of nothing but nulls there may be nothing.
    if values.is_empty() {
        return Ok(());
    }
    let behind = match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => return stream(values, count).map(drop),
        // The lengths that a text shares with the one before, and those of the rest.
        Encoding::DELTA_BYTE_ARRAY => stream(values, count)?,
        _ => return Ok(()),
    };
    stream(values.get(behind..).unwrap_or_default(), count).map(drop)
}

/// Walks over a stream. Gives the bytes that it takes.
fn stream(bytes: &[u8], most: usize) -> Result<usize> {
    let mut at = 0;
    let block = number(bytes, &mut at)?;
    let parts = number(bytes, &mut at)?;
    let count = number(bytes, &mut at)?;
    number(bytes, &mut at)?;
    if count > most || count / MOST > bytes.len() {
        return Err(ParquetError::EOF(format!("{count} lengths of {most} values have {} bytes", bytes.len())));
    }
    let values = block.checked_div(parts).filter(|values| *values > 0);
    let values = values.ok_or_else(|| ParquetError::General(format!("{block} lengths in {parts} parts")))?;
    // The first is in the header.
    let mut left = count.saturating_sub(1);
    while left > 0 {
        number(bytes, &mut at)?;
        let widths = at.checked_add(parts).and_then(|end| bytes.get(at..end)).ok_or_else(ends)?;
        at += parts;
        for width in widths {
            if left == 0 {
                break;
            }
            let packed = values.checked_mul(usize::from(*width)).map(|bits| bits / 8);
            at = packed.and_then(|packed| at.checked_add(packed)).ok_or_else(ends)?;
            left = left.saturating_sub(values);
        }
    }
    Ok(at)
}

/// A number of variable length, seven bits a byte, the lowest first.
fn number(bytes: &[u8], at: &mut usize) -> Result<usize> {
    let mut number = 0_u64;
    for (place, byte) in bytes.get(*at..).unwrap_or_default().iter().take(LONGEST).enumerate() {
        // Of the tenth byte one bit has room, as the crate has it.
        number |= u64::from(byte & 0x7F).wrapping_shl(u32::try_from(7 * place).unwrap_or(u32::MAX));
        if byte & 0x80 == 0 {
            *at += place + 1;
            return usize::try_from(number).map_err(|_| ends());
        }
    }
    Err(ends())
}

fn ends() -> ParquetError {
    ParquetError::EOF("a page ends within the lengths of its texts".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 lengths in blocks of 128 values and four parts, of which those of the first block take 3 bits and those of the second none.
    fn two_blocks() -> Vec<u8> {
        let mut bytes = vec![0x80, 0x01, 4, 0xC8, 0x01, 6];
        bytes.extend([0, 3, 3, 3, 3]);
        bytes.extend([0xAB; 4 * 32 * 3 / 8]);
        bytes.extend([0, 0, 0, 0, 7]);
        bytes
    }

    #[test]
    fn streams_end_where_the_next_begins() {
        let bytes = two_blocks();
        assert_eq!(stream(&bytes, 200).unwrap(), bytes.len());
        assert_eq!(stream(&[0x80, 0x01, 4, 1, 6], 1).unwrap(), 5);
        assert_eq!(stream(&[0x80, 0x01, 4, 0, 0], 0).unwrap(), 5);
        let twice = [bytes.clone(), bytes].concat();
        check(Encoding::DELTA_BYTE_ARRAY, &twice, 200).unwrap();
        check(Encoding::DELTA_LENGTH_BYTE_ARRAY, &twice, 200).unwrap();
    }

    #[test]
    fn more_lengths_than_values_or_bytes_are_refused() {
        let bytes = two_blocks();
        assert!(stream(&bytes, 199).is_err());
        // 2^40 lengths in one block of as many.
        let mut many = vec![0x80; 5];
        many.push(0x20);
        let mut claims = many.clone();
        claims.push(1);
        claims.extend(many);
        claims.extend([0, 0, 0]);
        let most = usize::MAX;
        for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
            let error = check(encoding, &claims, most).unwrap_err().to_string();
            assert!(error.contains("1099511627776 lengths"), "{error}");
            let behind = [bytes.clone(), claims.clone()].concat();
            assert_eq!(check(encoding, &behind, 200).is_err(), encoding == Encoding::DELTA_BYTE_ARRAY);
        }
        check(Encoding::PLAIN, &claims, most).unwrap();
    }

    #[test]
    fn what_ends_early_is_an_error() {
        let bytes = two_blocks();
        // The last part's bits are not looked at.
        for end in 0..bytes.len() - 5 - 4 * 32 * 3 / 8 {
            assert!(stream(&bytes[..end], 200).is_err(), "{end}");
        }
        for bytes in [&[0x80; 12][..], &[0x80, 0x01, 0, 5, 0], &[0, 4, 5, 0], &[0xFF; 10]] {
            assert!(stream(bytes, 200).is_err());
        }
    }
}
