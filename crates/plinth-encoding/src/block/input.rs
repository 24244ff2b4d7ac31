//! The values of a column as the encoders take them: checked, and with the slots of null rows left out or filled with
//! something cheap.

use arrow_buffer::{BooleanBuffer, Buffer, ScalarBuffer};

use crate::bits::filter_bits;
use crate::error::{EncodingError, Result};
use crate::physical::IntKind;
use crate::views::view_bytes;

/// What the column says besides its values.
pub(super) struct Input<'a> {
    pub(super) len: usize,
    pub(super) valid: Option<&'a BooleanBuffer>,
    pub(super) compacted: bool,
}

impl Input<'_> {
    /// Values that the block stores.
    pub(super) fn stored(&self) -> usize {
        match self.valid {
            Some(valid) if self.compacted => valid.count_set_bits(),
            _ => self.len,
        }
    }

    /// Calls `each` for every stored slot with the row whose value it takes: the nearest row before a null that is not
    /// null, else the first that is not.
    fn rows(&self, mut each: impl FnMut(usize)) {
        match self.valid {
            None => (0..self.len).for_each(each),
            Some(valid) if self.compacted => valid.set_indices().for_each(each),
            Some(valid) => {
                let mut held = valid.set_indices().next().unwrap_or(0);
                for row in 0..self.len {
                    if valid.value(row) {
                        held = row;
                    }
                    each(held);
                }
            }
        }
    }

    fn check(&self, found: usize) -> Result<()> {
        if found == self.len {
            return Ok(());
        }
        Err(EncodingError::invalid(format!("{found} values for {} rows", self.len)))
    }

    pub(super) fn bools(&self, values: &BooleanBuffer) -> Result<BooleanBuffer> {
        self.check(values.len())?;
        Ok(match self.valid {
            Some(valid) if self.compacted => filter_bits(values, valid),
            Some(_) => {
                let mut out = Vec::with_capacity(self.len);
                self.rows(|row| out.push(values.value(row)));
                BooleanBuffer::from(out)
            }
            None => values.clone(),
        })
    }

    /// Integers, extended by their sign.
    pub(super) fn ints(&self, bytes: &Buffer, kind: IntKind) -> Result<Vec<u64>> {
        let width = usize::from(kind.width);
        if !matches!(width, 1 | 2 | 4 | 8) {
            return Err(EncodingError::invalid(format!("numbers of {width} bytes")));
        }
        if !bytes.len().is_multiple_of(width) {
            return Err(EncodingError::invalid(format!("{} bytes of numbers of {width}", bytes.len())));
        }
        self.check(bytes.len() / width)?;
        fn read<const W: usize>(input: &Input<'_>, bytes: &[u8], kind: IntKind) -> Vec<u64> {
            let values = bytes.as_chunks::<W>().0;
            let mut out = Vec::with_capacity(input.stored());
            let load = |bytes: &[u8; W]| {
                let mut wide = [0; 8];
                wide[..W].copy_from_slice(bytes);
                kind.extend(u64::from_le_bytes(wide))
            };
            if input.valid.is_none() {
                out.extend(values.iter().map(load));
            } else {
                input.rows(|row| out.push(values.get(row).map_or(0, load)));
            }
            out
        }
        Ok(match width {
            1 => read::<1>(self, bytes, kind),
            2 => read::<2>(self, bytes, kind),
            4 => read::<4>(self, bytes, kind),
            _ => read::<8>(self, bytes, kind),
        })
    }

    /// The integer that all rows have, if there is only one and no null.
    pub(super) fn only_int(&self, bytes: &Buffer, kind: IntKind) -> Option<u64> {
        let width = usize::from(kind.width);
        let whole = self.valid.is_none() && bytes.len() == self.len.saturating_mul(width);
        let rest = bytes.get(width..).filter(|_| whole)?;
        let first = Input { len: 1, valid: None, compacted: false };
        let same = bytes.get(..rest.len()) == Some(rest);
        if same { first.ints(&bytes.slice_with_length(0, width), kind).ok()?.first().copied() } else { None }
    }

    /// Values of `width` bytes, end to end.
    pub(super) fn fixed(&self, bytes: &Buffer, width: usize) -> Result<Vec<u8>> {
        if bytes.len() != self.len.saturating_mul(width) {
            return Err(EncodingError::invalid(format!("{} bytes for {} rows of {width}", bytes.len(), self.len)));
        }
        if self.valid.is_none() {
            return Ok(bytes.to_vec());
        }
        let mut out = Vec::with_capacity(self.stored() * width);
        self.rows(|row| out.extend_from_slice(bytes.get(row * width..(row + 1) * width).unwrap_or_default()));
        Ok(out)
    }

    /// Byte strings. A null is filled with the empty string, or with the value that all others are equal to.
    pub(super) fn strings<'b>(&self, views: &'b ScalarBuffer<u128>, buffers: &'b [Buffer]) -> Result<Vec<&'b [u8]>> {
        self.check(views.len())?;
        let views = views.inner().as_slice().as_chunks::<16>().0;
        let mut out = Vec::with_capacity(self.stored());
        match self.valid {
            None => {
                for view in views {
                    out.push(view_bytes(view, buffers)?);
                }
            }
            Some(valid) if self.compacted => {
                for view in valid.set_indices().filter_map(|row| views.get(row)) {
                    out.push(view_bytes(view, buffers)?);
                }
            }
            Some(valid) => {
                let mut distinct = None;
                let mut equal = true;
                for (row, view) in views.iter().enumerate() {
                    let value = if valid.value(row) { view_bytes(view, buffers)? } else { &[] };
                    if valid.value(row) {
                        equal &= *distinct.get_or_insert(value) == value;
                    }
                    out.push(value);
                }
                if equal && let Some(value) = distinct {
                    out.fill(value);
                }
            }
        }
        Ok(out)
    }
}
