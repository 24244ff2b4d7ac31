//! Sizes of blocks and row groups for narrow and wide rows.

use super::*;

#[test]
fn wide_rows_make_small_blocks_and_row_groups() {
    let options = WriterOptions::default();
    let plan = |widths: &[u64]| Layout::plan(widths, 1024, &options);
    assert_eq!(plan(&[8 * 1024; 16]), Layout { row_group_rows: 131_072, block_rows: 8_192 });
    assert_eq!(plan(&[8 * 1024; 2000]), Layout { row_group_rows: 8_192, block_rows: 8_192 });
    assert_eq!(plan(&[6144 * 1024]), Layout { row_group_rows: 16_384, block_rows: 2_048 });
    assert_eq!(plan(&[1 << 40]), Layout { row_group_rows: 8, block_rows: 8 });
    assert_eq!(plan(&[]), Layout { row_group_rows: 131_072, block_rows: 8_192 });
}
