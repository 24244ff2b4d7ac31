//! Any bytes as a block of each physical type.
#![no_main]

use arrow_buffer::{BooleanBuffer, Buffer};
use libfuzzer_sys::fuzz_target;
use plinth_encoding::{Block, Values};
use plinth_fuzz::{Bytes, PHYSICALS, test};

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let len = bytes.u64() as usize % 5000;
    let physical = PHYSICALS[usize::from(bytes.u8()) % PHYSICALS.len()];
    let test = test(physical, None, &mut bytes);
    let Ok(block) = Block::open(physical, &Buffer::from(bytes.0), len) else { return };
    let _ = block.describe();
    let _ = block.nulls();
    let some: BooleanBuffer = (0..len).map(|row| row % 5 == 0).collect();
    for selection in [None, Some(&some)] {
        let Ok(column) = block.decode(selection) else { continue };
        assert_eq!(column.len, selection.map_or(len, BooleanBuffer::count_set_bits));
        let slots = match &column.values {
            Values::Bool(bits) => bits.len(),
            Values::Fixed(bytes) => {
                assert_eq!(bytes.len(), column.len * physical.fixed_width().unwrap());
                column.len
            }
            // Panics where a view points outside its buffers.
            Values::Views { views, .. } => {
                let _ = plinth_fuzz::model::rows(physical, &column);
                views.len()
            }
        };
        assert_eq!(slots, column.len);
    }
    let Some(test) = test else { return };
    if let Ok(Some(candidates)) = block.candidates(&test) {
        assert_eq!(candidates.len(), len);
    }
    for selection in [None, Some(&some)] {
        if let Ok(Some(mask)) = block.evaluate_selected(&test, selection) {
            assert_eq!(mask.is_true.len(), len);
        }
    }
});
