use proptest::prelude::*;

use super::*;

/// Widens a layout until rows fit, and packs them.
fn packed(layout: &mut Layout, numbers: &[Vec<i64>], rows: usize) -> Vec<Vec<u64>> {
    let mut words = Vec::new();
    let mut tries = 0;
    while let Err(Beyond(field)) = layout.pack(numbers, rows, &mut words) {
        let (min, max) = (numbers[field].iter().min().unwrap(), numbers[field].iter().max().unwrap());
        *layout = layout.widened(field, *min, *max);
        tries += 1;
        assert!(tries <= numbers.len(), "a widened field fits");
    }
    words
}

fn key(words: &[Vec<u64>], layout: &Layout, row: usize) -> Vec<Word> {
    words[..layout.words()].iter().map(|word| word[row].to_ne_bytes()).collect()
}

fn repacked(to: &Layout, from: &Layout, key: &[Word]) -> Vec<Word> {
    let mut wider = vec![0; to.words()];
    to.repack(from, key, &mut wider);
    wider.into_iter().map(u64::to_ne_bytes).collect()
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -3..3_i64, Just(i64::MIN), Just(i64::MAX), 1_000_000..1_000_100_i64]
}

proptest! {
    #[test]
    fn numbers_come_back_however_the_layout_grew(
        chunks in prop::collection::vec(prop::collection::vec(prop::array::uniform4(number()), 1..5), 1..12),
    ) {
        let mut layout = Layout::new(&[None; 4]);
        let mut kept: Vec<(Vec<Word>, [i64; 4])> = Vec::new();
        for rows in chunks {
            let numbers: Vec<Vec<i64>> = (0..4).map(|field| rows.iter().map(|row| row[field]).collect()).collect();
            let before = layout.clone();
            let words = packed(&mut layout, &numbers, rows.len());
            for (key, _) in &mut kept {
                *key = repacked(&layout, &before, key);
            }
            kept.extend(rows.iter().enumerate().map(|(at, row)| (key(&words, &layout, at), *row)));
            for (key, row) in &kept {
                for (field, number) in row.iter().enumerate() {
                    prop_assert_eq!(layout.unpack(key, field), *number);
                }
            }
        }
    }

    #[test]
    fn a_layout_of_both_has_room_for_both(one in prop::array::uniform2(number()), two in prop::array::uniform2(number())) {
        let of = |numbers: [i64; 2]| {
            let mut layout = Layout::new(&[None; 2]);
            let words = packed(&mut layout, &numbers.map(|number| vec![number]), 1);
            let key = key(&words, &layout, 0);
            (layout, key)
        };
        let ((first, first_key), (second, second_key)) = (of(one), of(two));
        let both = first.of_both(&second);
        for (layout, key, numbers) in [(first, first_key, one), (second, second_key, two)] {
            let wider = repacked(&both, &layout, &key);
            prop_assert_eq!([both.unpack(&wider, 0), both.unpack(&wider, 1)], numbers);
        }
    }
}

#[test]
fn a_null_is_the_same_key_before_and_after_a_range_grew() {
    let mut layout = Layout::new(&[Some(1), None]);
    let null = |layout: &Layout| vec![vec![layout.base(0)], vec![1]];
    let before = {
        let numbers = null(&layout);
        packed(&mut layout, &numbers, 1)
    };
    let narrow = layout.clone();
    layout = layout.widened(0, -5, 5).widened(0, -5000, 5);
    let repacked = repacked(&layout, &narrow, &key(&before, &narrow, 0));
    let numbers = null(&layout);
    let after = packed(&mut layout, &numbers, 1);
    assert_eq!(repacked, key(&after, &layout, 0));
}

/// Threads that met some of the values each have the layout of both.
#[test]
fn ranges_of_some_values_become_those_of_others() {
    let minutes = |least, greatest| Layout::new(&[None]).widened(0, 20, 30).widened(0, least, greatest);
    let all = minutes(0, 59);
    assert_eq!(all.bits(), Some(6));
    for (least, greatest) in [(1, 59), (0, 58), (20, 52), (11, 43)] {
        assert_eq!(minutes(least, greatest), all);
        assert_eq!(minutes(least, greatest).of_both(&all), all);
    }
    // No more bits are taken for that.
    assert_eq!(Layout::new(&[None]).widened(0, -1, 1).bits(), Some(2));
}

#[test]
fn few_bits_lie_in_one_word() {
    let layout = Layout::new(&[None; 3]).widened(0, 0, 1000).widened(1, -4, 3).widened(2, 7, 7);
    assert_eq!((layout.words(), layout.bits()), (1, Some(13)));
    let wide = layout.widened(1, i64::MIN, i64::MAX);
    assert_eq!((wide.words(), wide.bits()), (2, None));
}
