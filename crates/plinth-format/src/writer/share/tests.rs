//! Shares of memory for several writers.

use super::*;

#[test]
fn options_fit_the_memory_they_are_for() {
    let default = WriterOptions::default();
    for lanes in [0, 1, 2, 64] {
        for memory in [LEAST, 100 << 20, 1 << 30, 1 << 40] {
            let options = WriterOptions::default().within(memory, lanes);
            assert!(options.footprint(lanes) <= memory, "{lanes} lanes in {memory} bytes");
            assert!(options.row_group_bytes <= default.row_group_bytes);
        }
    }
    let small = WriterOptions::default().within(0, 1);
    assert!(small.row_group_bytes > 0 && small.dictionary_bytes > 0 && small.footprint(1) <= LEAST);
    let large = WriterOptions::default().within(768 << 20, 1);
    assert_eq!(large.row_group_bytes, default.row_group_bytes);
    assert_eq!(large.dictionary_bytes, default.dictionary_bytes);
    assert_eq!(large.dictionary_total_bytes, default.dictionary_total_bytes);
}
