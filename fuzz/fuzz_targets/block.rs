//! A column, encoded and decoded, must come back; a test on the encoded block must say what the model says.
#![no_main]

use arrow_buffer::Buffer;
use libfuzzer_sys::fuzz_target;
use plinth_encoding::{Block, Effort, EncodeOptions, encode, evaluate_column};
use plinth_fuzz::{Bytes, PHYSICALS, model, rows, test};

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let physical = PHYSICALS[usize::from(bytes.u8()) % PHYSICALS.len()];
    let effort = [Effort::Fast, Effort::Balanced, Effort::Compact][usize::from(bytes.u8()) % 3];
    let pick = bytes.u64() as usize >> 8;
    let input = rows(physical, &mut bytes);
    let column = model::column(physical, &input);
    let mut out = Vec::new();
    encode(physical, &column, &EncodeOptions { effort }, &mut out).unwrap();
    let block = Block::open(physical, &Buffer::from(out), input.len()).unwrap();
    let decoded = block.decode(None).unwrap();
    assert!(model::rows(physical, &decoded) == input, "{}", block.describe());

    let selection = model::selection(input.len(), |row| (row * 7 + pick) % 11 < pick % 12);
    let selected: Vec<_> = selection.set_indices().map(|row| input[row].clone()).collect();
    let some = block.decode(Some(&selection)).unwrap();
    assert!(model::rows(physical, &some) == selected, "{} selected", block.describe());

    let near = input.get(pick % input.len().max(1)).and_then(|row| row.as_deref());
    let Some(test) = test(physical, near, &mut bytes) else { return };
    let whole = evaluate_column(physical, &decoded, &test).unwrap();
    let answers = [Some(whole), block.evaluate(&test).unwrap()];
    for mask in answers.into_iter().flatten() {
        for (row, value) in input.iter().enumerate() {
            let expected = match value {
                None => Some(false),
                Some(value) => model::holds(physical, value, &test),
            };
            assert!(expected.is_none_or(|expected| mask.is_true.value(row) == expected), "{}", block.describe());
            let unknown = mask.is_null.as_ref().is_some_and(|nulls| nulls.value(row));
            assert_eq!(unknown, value.is_none(), "{}", block.describe());
        }
    }
    let (Some(whole), Some(some)) =
        (block.evaluate(&test).unwrap(), block.evaluate_selected(&test, Some(&selection)).unwrap())
    else {
        return;
    };
    assert!(&whole.is_true & &selection == &some.is_true & &selection, "{} selected", block.describe());
    if let Some(candidates) = block.candidates(&test).unwrap() {
        assert!((&whole.is_true & &!&candidates).count_set_bits() == 0, "{}: candidates", block.describe());
    }
});
