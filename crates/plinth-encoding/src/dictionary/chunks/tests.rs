//! Byte strings come back from where they were put.

use super::*;

#[test]
fn bytes_stay_where_they_are_and_little_room_is_left() {
    for most in [40, 5_000, SPARE, SPARE + 1, 3 * CHUNK] {
        let (mut chunks, mut kept, mut sum) = (Chunks::default(), Vec::new(), 0);
        for i in 0..600_usize {
            let bytes = vec![i.to_le_bytes()[0]; i * 7919 % most];
            sum += bytes.len();
            kept.push((chunks.push(&bytes).unwrap(), bytes));
            if sum > 64 << 20 {
                break;
            }
        }
        for (place, bytes) in &kept {
            assert_eq!(chunks.get(*place, bytes.len()), bytes);
        }
        assert!(chunks.memory() <= sum + sum / 4 + 2 * CHUNK, "{} for {sum}", chunks.memory());
    }
    assert_eq!(Chunks::default().get(3 << 32, 1), b"");
}
