use super::*;

const MIB: usize = 1 << 20;

fn address(zeroed: &Zeroed) -> usize {
    zeroed.as_ptr().addr()
}

#[test]
fn memory_that_is_gone_is_taken_again_and_is_zero() {
    let budget = MemoryBudget::new(1 << 30);
    let mut first = Zeroed::new(4 * MIB, &budget).unwrap();
    assert!(first.iter().all(|&byte| byte == 0));
    first.fill(7);
    let place = address(&first);
    drop(first);
    assert_eq!((budget.spare().bytes(), budget.used()), (4 << 20, 0));
    let second = Zeroed::new(3 * MIB, &budget).unwrap();
    assert_eq!((address(&second), second.len(), budget.spare().bytes()), (place, 3 * MIB, 0));
    assert!(second.iter().all(|&byte| byte == 0));
    drop(second);
    // What it holds is too much for this.
    let third = Zeroed::new(MIB, &budget).unwrap();
    assert_ne!(address(&third), place);
}

#[test]
fn a_reservation_comes_before_what_is_kept() {
    let budget = MemoryBudget::new(64 << 20);
    let tables: Vec<Zeroed> = (0..4).map(|_| Zeroed::new(4 * MIB, &budget).unwrap()).collect();
    drop(tables);
    assert_eq!(budget.spare().bytes(), 16 << 20);
    assert_eq!(budget.left(), 64 << 20);
    let held = budget.reserve("test", 52 << 20).unwrap();
    assert_eq!(budget.spare().bytes(), 12 << 20);
    let all = budget.reserve("test", 12 << 20).unwrap();
    assert_eq!(budget.spare().bytes(), 0);
    drop((held, all));
    let mut charged = budget.open("test");
    drop(Zeroed::new(4 * MIB, &budget));
    charged.charge(80 << 20);
    assert_eq!(budget.spare().bytes(), 0);
    drop(Zeroed::new(4 * MIB, &budget));
    assert_eq!(budget.spare().bytes(), 0, "there is no room to keep it");
}

#[test]
fn a_quarter_of_the_limit_is_kept_at_most() {
    let budget = MemoryBudget::new(32 << 20);
    drop(Zeroed::new(16 * MIB, &budget));
    assert_eq!(budget.spare().bytes(), 0);
    drop((Zeroed::new(6 * MIB, &budget), Zeroed::new(6 * MIB, &budget)));
    assert_eq!(budget.spare().bytes(), 6 << 20);
}

#[test]
fn longer_memory_has_what_it_had_and_zeros_behind() {
    let budget = MemoryBudget::new(1 << 30);
    let kept = [None, Some(4 * MIB), Some(9 * MIB)];
    for (kept, first) in kept.into_iter().flat_map(|kept| [MIB, 3 * MIB, 4 * MIB].map(|first| (kept, first))) {
        if let Some(len) = kept {
            Zeroed::new(len, &budget).unwrap().fill(0xee);
        }
        let mut zeroed = Zeroed::new(first, &budget).unwrap();
        zeroed.iter_mut().zip((1..=250).cycle()).for_each(|(byte, value)| *byte = value);
        let mut before = first;
        for len in [first, 5 * MIB + 3, 8 * MIB, 33 * MIB] {
            assert!(zeroed.lengthen(len));
            assert_eq!(zeroed.len(), len);
            assert!(zeroed[..first].iter().zip((1..=250).cycle()).all(|(&byte, value)| byte == value), "{len}");
            assert!(zeroed[first..before].iter().all(|&byte| byte == 9), "{len}");
            assert!(zeroed[before..].iter().all(|&byte| byte == 0), "{len}, {kept:?}");
            zeroed[before..].fill(9);
            before = len;
        }
        assert_eq!(address(&zeroed) % crate::HUGE_PAGE, 0);
    }
}
