//! A good file of some type with changed contents and right checksums.
#![no_main]

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use libfuzzer_sys::fuzz_target;
use plinth_encoding::Effort;
use plinth_fuzz::Bytes;
use plinth_fuzz::data::all_types;
use plinth_fuzz::forge::{Sample, exercise};
use plinth_fuzz::fuzz_lite::sample;

static SAMPLES: LazyLock<Mutex<HashMap<(usize, usize), &'static Sample>>> = LazyLock::new(Mutex::default);

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let types = all_types();
    let (kind, effort) = (usize::from(bytes.u8()) % types.len(), usize::from(bytes.u8()) % 3);
    let sample: &'static Sample = SAMPLES.lock().unwrap().entry((kind, effort)).or_insert_with(|| {
        let effort = [Effort::Fast, Effort::Balanced, Effort::Compact][effort];
        Box::leak(Box::new(sample(&types[kind], kind as u64, effort)))
    });
    let _ = exercise(&sample.mutated(&mut || bytes.u64()));
});
