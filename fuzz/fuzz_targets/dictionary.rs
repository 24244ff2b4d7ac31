//! A dictionary against an ordered map; then the same with damaged bytes, which may fail but must not harm.
#![no_main]

use std::collections::BTreeSet;

use arrow_buffer::Buffer;
use libfuzzer_sys::fuzz_target;
use plinth_encoding::dictionary::{BlockSource, Dictionary, Interner, encode, keys};
use plinth_encoding::{Effort, EncodingError, Physical, Result};
use plinth_fuzz::{Bytes, PHYSICALS, model, rows};

struct Blocks(Vec<Buffer>);

impl BlockSource for Blocks {
    fn block(&self, i: usize) -> Result<Buffer> {
        self.0.get(i).cloned().ok_or_else(|| EncodingError::corrupt("no block"))
    }
}

fn key(physical: Physical, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match physical {
        Physical::Bytes { .. } => out.extend_from_slice(value),
        _ => keys::encode(physical, value, &mut out).unwrap(),
    }
    out
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let physical = PHYSICALS[1 + usize::from(bytes.u8()) % (PHYSICALS.len() - 1)];
    let damage = bytes.u64();
    let effort = if damage >> 7 & 1 == 0 { Effort::Balanced } else { Effort::Fast };
    let input = rows(physical, &mut bytes);
    let model: Vec<Vec<u8>> = input
        .iter()
        .flatten()
        .map(|value| key(physical, value))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let mut interner = Interner::new(physical).unwrap();
    let mut codes = Vec::new();
    interner.intern(&model::column(physical, &input), &mut codes).unwrap();
    let sorted = interner.sort();
    assert!(sorted.keys().eq(model.iter().map(Vec::as_slice)));
    for (row, &code) in input.iter().zip(&codes) {
        if let Some(value) = row {
            assert_eq!(sorted.key(sorted.remap()[code as usize] as usize), key(physical, value));
        }
    }
    let encoded = encode(physical, &sorted, effort).unwrap();
    let blocks: Vec<Buffer> = encoded.blocks.iter().map(|block| Buffer::from(block.as_slice())).collect();
    let dictionary = Dictionary::open(physical, &encoded.index, Box::new(Blocks(blocks.clone()))).unwrap();
    assert_eq!(dictionary.len(), model.len());
    let mut out = Vec::new();
    for probe in 0..40u64 {
        let mut wanted = match model.get((damage.wrapping_mul(probe * 2 + 1) >> 16) as usize % model.len().max(1)) {
            Some(known) => known.clone(),
            None => Vec::new(),
        };
        match probe % 4 {
            1 => drop(wanted.pop()),
            2 => wanted.push(damage as u8),
            3 => {
                if let Some(last) = wanted.last_mut() {
                    *last = last.wrapping_add(probe as u8);
                }
            }
            _ => {}
        }
        let below = model.partition_point(|key| key < &wanted);
        let exact = model.get(below) == Some(&wanted);
        assert_eq!(dictionary.lower_bound(&wanted).unwrap() as usize, below);
        assert_eq!(dictionary.upper_bound(&wanted).unwrap() as usize, below + usize::from(exact));
        assert_eq!(dictionary.find(&wanted).unwrap(), exact.then_some(below as u32));
        let prefix = dictionary.prefix(&wanted).unwrap();
        let matching = model.iter().filter(|key| key.starts_with(&wanted)).count();
        assert_eq!(prefix.len(), matching);
        if exact {
            dictionary.get(below as u32, &mut out).unwrap();
            assert_eq!(out, wanted);
        }
    }
    let all: Vec<u32> = (0..model.len() as u32).collect();
    assert_eq!(dictionary.find_all(&model).unwrap(), all);
    let gathered = dictionary.gather(&all).unwrap();
    let column = plinth_encoding::Column { len: model.len(), values: gathered, nulls: None };
    for (value, expected) in model::rows(physical, &column).into_iter().zip(&model) {
        assert_eq!(&key(physical, &value.unwrap()), expected);
    }

    let (mut index, mut blocks) = (encoded.index, encoded.blocks);
    let target = match blocks.len() {
        0 => &mut index,
        n if damage & 1 == 0 => &mut blocks[(damage >> 1) as usize % n],
        _ => &mut index,
    };
    let at = (damage >> 8) as usize % target.len().max(1);
    if let Some(byte) = target.get_mut(at) {
        *byte ^= (damage >> 40) as u8;
    }
    let blocks = blocks.into_iter().map(Buffer::from_vec).collect();
    let Ok(damaged) = Dictionary::open(physical, &index, Box::new(Blocks(blocks))) else { return };
    for wanted in model.iter().take(50) {
        let _ = damaged.find(wanted);
        let _ = damaged.prefix(wanted.get(..1).unwrap_or_default());
    }
    let _ = damaged.find_all(&model);
    for code in [0, 15, 16, 17, 4095, 4096] {
        let _ = damaged.get(code, &mut out);
    }
    let _ = damaged.gather(&[0, 3, 1]);
    let _ = damaged.values();
});
