//! A plain model of columns: a value is its bytes, a column a list of them. Slow, and obviously right.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use plinth_core::random::Random;
use plinth_encoding::{Column, Physical, ValueSet, Values};

/// A value's little-endian bytes (a boolean's one byte), or null.
pub(crate) type Row = Option<Vec<u8>>;

/// A fixed pseudo-random sequence.
pub(crate) fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut random = Random(seed);
    move || random.next_u64()
}

/// Builds a column. Null slots get garbage where the layout allows it, for encoders must not look at them.
pub(crate) fn column(physical: Physical, rows: &[Row]) -> Column {
    let nulls = NullBuffer::from(rows.iter().map(Option::is_some).collect::<Vec<_>>());
    let values = match physical {
        Physical::Bool => Values::Bool(rows.iter().map(|row| row.as_ref().is_none_or(|v| v[0] != 0)).collect()),
        Physical::Bytes { .. } => {
            let mut heap = vec![b'#'; 5];
            let views: Vec<u128> = rows
                .iter()
                .map(|row| {
                    let mut view = [0_u8; 16];
                    let Some(value) = row else { return u128::MAX };
                    view[..4].copy_from_slice(&u32::try_from(value.len()).unwrap().to_le_bytes());
                    if value.len() <= 12 {
                        view[4..4 + value.len()].copy_from_slice(value);
                    } else {
                        view[4..8].copy_from_slice(&value[..4]);
                        view[8..12].copy_from_slice(&1_u32.to_le_bytes());
                        view[12..].copy_from_slice(&u32::try_from(heap.len()).unwrap().to_le_bytes());
                        heap.extend_from_slice(value);
                    }
                    u128::from_le_bytes(view)
                })
                .collect();
            Values::Views { views: ScalarBuffer::from(views), buffers: vec![Buffer::from(&[]), Buffer::from_vec(heap)] }
        }
        _ => {
            let width = physical.fixed_width().unwrap();
            let garbage = vec![0xA5; width];
            let bytes: Vec<u8> = rows.iter().flat_map(|row| row.clone().unwrap_or_else(|| garbage.clone())).collect();
            Values::Fixed(Buffer::from_vec(bytes))
        }
    };
    Column { len: rows.len(), values, nulls: (nulls.null_count() > 0).then_some(nulls) }
}

/// Takes a column apart, checking its shape.
pub(crate) fn rows(physical: Physical, column: &Column) -> Vec<Row> {
    if let Some(nulls) = &column.nulls {
        assert_eq!(nulls.len(), column.len);
        assert!(nulls.null_count() > 0, "nulls without a null");
    }
    let valid = |row: usize| column.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    match (&column.values, physical) {
        (Values::Bool(bits), Physical::Bool) => {
            assert_eq!(bits.len(), column.len);
            (0..column.len).map(|row| valid(row).then(|| vec![u8::from(bits.value(row))])).collect()
        }
        (Values::Views { views, buffers }, Physical::Bytes { .. }) => {
            assert_eq!(views.len(), column.len);
            (0..column.len).map(|row| valid(row).then(|| view(views[row], buffers))).collect()
        }
        (Values::Fixed(bytes), _) => {
            let width = physical.fixed_width().unwrap();
            assert_eq!(bytes.len(), column.len * width);
            if !matches!(physical, Physical::Fixed { .. }) {
                assert_eq!(bytes.as_ptr().align_offset(width.min(16)), 0, "unaligned {physical:?}");
            }
            (0..column.len).map(|row| valid(row).then(|| bytes[row * width..(row + 1) * width].to_vec())).collect()
        }
        _ => panic!("wrong layout for {physical:?}"),
    }
}

fn view(view: u128, buffers: &[Buffer]) -> Vec<u8> {
    let bytes = view.to_le_bytes();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let len = word(0);
    if len <= 12 {
        assert!(bytes[4 + len..].iter().all(|&byte| byte == 0), "padding of an inline view must be zero");
        return bytes[4..4 + len].to_vec();
    }
    let value = buffers[word(8)][word(12)..word(12) + len].to_vec();
    assert_eq!(value[..4], bytes[4..8], "prefix");
    value
}

/// Whether a test holds for a value; none where the model does not say (integers beyond 128 bits).
pub(crate) fn holds(physical: Physical, value: &[u8], test: &ValueSet) -> Option<bool> {
    Some(match physical {
        Physical::Bool => test.holds_bool(value[0] != 0),
        Physical::Int { signed, .. } => test.holds_int(int(value, signed)),
        Physical::Wide { .. } => {
            let sign = if value[15] >= 0x80 { 0xFF } else { 0 };
            if value[16..].iter().any(|&byte| byte != sign) {
                return None;
            }
            test.holds_int(int(&value[..16], true))
        }
        Physical::Float { .. } => test.holds_float(float(value)),
        Physical::Fixed { .. } | Physical::Bytes { .. } => test.holds_bytes(value),
    })
}

pub(crate) fn int(value: &[u8], signed: bool) -> i128 {
    let sign = if signed && value[value.len() - 1] >= 0x80 { 0xFF } else { 0 };
    let mut wide = [sign; 16];
    wide[..value.len()].copy_from_slice(value);
    i128::from_le_bytes(wide)
}

/// An independent conversion: by arithmetic for numbers, by bits for NaN.
pub(crate) fn float(value: &[u8]) -> f64 {
    let (bits, fraction_bits, exponent_bits) = match value.len() {
        2 => (u64::from(u16::from_le_bytes(value.try_into().unwrap())), 10, 5),
        4 => (u64::from(u32::from_le_bytes(value.try_into().unwrap())), 23, 8),
        _ => return f64::from_le_bytes(value.try_into().unwrap()),
    };
    let negative = bits >> (fraction_bits + exponent_bits) & 1;
    let exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    let fraction = bits & ((1 << fraction_bits) - 1);
    if exponent == (1 << exponent_bits) - 1 {
        return f64::from_bits(negative << 63 | 0x7FF << 52 | fraction << (52 - fraction_bits));
    }
    let bias = (1_i32 << (exponent_bits - 1)) - 1;
    let power = i32::try_from(exponent.max(1)).unwrap() - bias - fraction_bits;
    let whole = fraction + if exponent > 0 { 1 << fraction_bits } else { 0 };
    let magnitude = f64::from(u32::try_from(whole).unwrap()) * 2.0_f64.powi(power);
    if negative == 1 { -magnitude } else { magnitude }
}

/// A selection from a function of the row.
pub(crate) fn selection(len: usize, select: impl FnMut(usize) -> bool) -> BooleanBuffer {
    (0..len).map(select).collect()
}
