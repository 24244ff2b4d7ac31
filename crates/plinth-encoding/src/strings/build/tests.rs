//! Text keeps no more memory than it needs.

use super::*;
use crate::views::view_bytes;

#[test]
fn few_long_values_get_a_buffer_of_their_own_and_many_share_the_blocks() {
    let values: Vec<String> = (0..2000).map(|i| "x".repeat(i % 40) + &i.to_string()).collect();
    let heap = Buffer::from(values.concat().as_bytes());
    let lengths: Vec<u32> = values.iter().map(|value| u32::try_from(value.len()).unwrap()).collect();
    for step in [1, 3, 700] {
        let selection = BooleanBuffer::from_iter((0..2000).map(|row| row % step == 0));
        let selected = build_selected(heap.clone(), &lengths, None, &selection, true).unwrap();
        let expected: Vec<&String> = values.iter().step_by(step).collect();
        let views: Vec<[u8; 16]> = selected.views.iter().map(|view| view.to_le_bytes()).collect();
        let found = views.iter().map(|view| view_bytes(view, &selected.buffers).unwrap());
        assert!(found.eq(expected.iter().map(|value| value.as_bytes())));
        let long: usize = expected.iter().map(|value| value.len()).filter(|&len| len > 12).sum();
        let kept: usize = selected.buffers.iter().map(Buffer::len).sum();
        assert_eq!(kept, if step == 1 { heap.len() } else { long }, "{step}");
    }
    let none = build_selected(heap, &lengths, None, &BooleanBuffer::new_unset(2000), true).unwrap();
    assert!(none.views.is_empty() && none.buffers.is_empty());
}
