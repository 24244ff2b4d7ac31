//! Any bytes as a file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = plinth_fuzz::forge::exercise(data);
});
