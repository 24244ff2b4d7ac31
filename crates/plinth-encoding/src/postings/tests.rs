use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use arrow_buffer::Buffer;
use plinth_io::{MemoryBudget, Reclaim};
use proptest::prelude::*;

use super::*;
use crate::encoding::Effort;
use crate::error::Result;
use crate::value_set::{IntSet, ValueSet};

/// Groups in memory, unchecked; counts the reads of what does not lie side by side.
#[derive(Clone, Debug, Default)]
struct Groups(Arc<Mutex<Vec<u8>>>, Arc<AtomicUsize>);

impl GroupSource for Groups {
    fn read(&self, groups: &[Place]) -> Result<Vec<Buffer>> {
        let bytes = self.0.lock().unwrap();
        let mut end = u64::MAX;
        groups
            .iter()
            .map(|place| {
                self.1.fetch_add(usize::from(place.offset != end), Relaxed);
                end = place.offset + u64::from(place.len);
                let range = place.offset as usize..end as usize;
                bytes.get(range).map(Buffer::from).ok_or_else(|| corrupt("beyond the end"))
            })
            .collect()
    }
}

/// A file's part that has the postings of some lists.
struct Built {
    codes: u32,
    rows: u64,
    directory: Vec<u8>,
    groups: Groups,
}

const EFFORTS: [Effort; 2] = [Effort::Balanced, Effort::Compact];

fn build(lists: &[Vec<u64>], rows: u64, effort: Effort) -> Built {
    let lengths: Vec<u64> = lists.iter().map(|list| list.len() as u64).collect();
    let (mut directory, mut bytes) = (Directory::default(), Vec::new());
    for share in plan(&lengths, rows) {
        let codes = share.first as usize..(share.first + share.codes) as usize;
        let here: Vec<u64> =
            lists[codes].iter().flatten().skip(share.skip as usize).take(share.rows as usize).copied().collect();
        assert!(here.len() as u64 == share.rows && share.rows <= GROUP_BITS && share.codes as usize <= GROUP_CODES);
        let group = encode(&share, &lengths, &here, effort);
        directory.push(share.first, group.len() as u32, share.rows, group.len() as u64);
        bytes.extend(group);
    }
    let groups = Groups(Arc::new(Mutex::new(bytes)), Arc::default());
    Built { codes: lists.len() as u32, rows, directory: directory.write(), groups }
}

impl Built {
    fn open(&self) -> Result<Postings> {
        let directory = Buffer::from(self.directory.as_slice());
        Postings::open(self.codes, self.rows, &directory, Box::new(self.groups.clone()))
    }

    fn bytes(&self) -> usize {
        self.groups.0.lock().unwrap().len() + self.directory.len()
    }
}

/// Gives every row a code: lists that increase, with each row at most once.
fn lists(codes: usize, rows: u64, mut code: impl FnMut(u64) -> Option<usize>) -> Vec<Vec<u64>> {
    let mut lists = vec![Vec::new(); codes];
    for row in 0..rows {
        if let Some(code) = code(row) {
            lists[code].push(row);
        }
    }
    lists
}

fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 7
}

fn check(lists: &[Vec<u64>], rows: u64) {
    EFFORTS.into_iter().for_each(|effort| check_built(lists, &build(lists, rows, effort)));
}

fn check_built(lists: &[Vec<u64>], built: &Built) {
    let postings = built.open().unwrap();
    let all = built.codes;
    assert_eq!(postings.rows(), lists.iter().map(|list| list.len() as u64).sum::<u64>());
    let mut seen: Vec<Vec<u64>> = vec![Vec::new(); lists.len()];
    postings
        .for_each(&Codes::run(0..all), |code, rows| {
            seen[code as usize].extend(rows);
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, lists);
    let mut asked = vec![Codes::run(0..all), Codes::default(), Codes::run(all / 3..all / 2)];
    for i in 0..30 {
        let (a, b) = (mix(i) as u32 % (all + 1), mix(i + 100) as u32 % (all + 1));
        asked.push(Codes::run(a.min(b)..a.max(b)));
        asked.push(Codes::run(a.min(all - 1)..a.min(all - 1) + 1));
        let some = |code: &u32| mix(u64::from(*code) + i).is_multiple_of(i * 3 + 2);
        let set: Vec<i128> = (0..all).filter(some).map(i128::from).collect();
        asked.push(Codes::of(&ValueSet::IntSet(Arc::new(IntSet::Listed(set.into()))), all));
    }
    for codes in asked {
        let expected: Vec<u64> = codes.iter().flat_map(|code| &lists[code as usize]).copied().collect();
        let mut rows = vec![7];
        postings.read(&codes, &mut rows).unwrap();
        assert_eq!(rows[1..], expected);
        assert_eq!(postings.count(&codes).unwrap(), expected.len() as u64);
        let cost = postings.cost(&codes);
        assert!((cost.reads > 0) != codes.is_empty() && cost.rows <= postings.rows() + codes.len(), "{cost:?}");
        assert!(codes.len() < u64::from(all) || cost.rows == expected.len() as u64, "{cost:?}");
        assert!(cost.bytes <= postings.directory().bytes());
        if codes.len() == 1 {
            let code = codes.runs()[0].start;
            let mut rows = Vec::new();
            postings.parts(code).for_each(|part| postings.read_part(code, part, &mut rows).unwrap());
            assert_eq!(rows, expected);
        }
    }
}

#[test]
fn lists_of_every_shape_come_back() {
    // Uniform, skewed, clustered, sorted, constant, alternating, unique, with nulls.
    check(&lists(700, 50_000, |row| Some(mix(row) as usize % 700)), 50_000);
    check(&lists(3000, 60_000, |row| Some((mix(row) % 3000 * (mix(row + 9) % 3000) / 3000) as usize)), 60_000);
    check(&lists(300, 30_000, |row| Some((row / 100) as usize)), 30_000);
    check(&lists(1, 400_000, |_| Some(0)), 400_000);
    check(&lists(2, 400_000, |row| Some((row % 2) as usize)), 400_000);
    check(&lists(5, 700_000, |row| Some(mix(row) as usize % 5)), 700_000);
    check(&lists(5000, 5000, |row| Some((row * 7 % 5000) as usize)), 5000);
    check(
        &lists(9, 300_000, |row| (row % 3 > 0).then_some(if row % 1000 == 1 { mix(row) as usize % 9 } else { 4 })),
        300_000,
    );
}

#[test]
fn rows_may_be_as_many_as_there_can_be() {
    let far = MOST_ROWS - 1;
    check(&[vec![0], vec![far], vec![1, far - 1], vec![far / 2, far - 2], vec![5]], MOST_ROWS);
    let spread: Vec<u64> = (0..40_000).map(|i| i * (MOST_ROWS / 40_000)).collect();
    check(&[vec![far], spread, vec![2, 3, 4]], MOST_ROWS);
}

#[test]
fn an_exact_question_is_one_read_and_a_range_too() {
    let lists = lists(20_000, 2_000_000, |row| Some(mix(row) as usize % 20_000));
    EFFORTS.into_iter().for_each(|effort| reads_of(&lists, &build(&lists, 2_000_000, effort)));
}

fn reads_of(lists: &[Vec<u64>], built: &Built) {
    let budget = MemoryBudget::new(1 << 20);
    let postings = built.open().unwrap().within(&budget);
    let reads = || built.groups.1.swap(0, Relaxed);
    let ask = |codes: std::ops::Range<u32>| {
        let mut rows = Vec::new();
        postings.read(&Codes::run(codes.clone()), &mut rows).unwrap();
        assert_eq!(rows, lists[codes.start as usize..codes.end as usize].concat());
    };
    ask(7000..7001);
    assert_eq!(reads(), 1);
    ask(7000..7001);
    assert_eq!((reads(), budget.used() > 0), (0, true), "kept");
    let held = budget.used();
    ask(9000..9900);
    assert_eq!((reads(), budget.used()), (1, held), "much is not kept");
    postings.count(&Codes::run(3000..12_000)).unwrap();
    assert_eq!(reads(), 2, "the ends alone");
    let held = budget.used();
    assert_eq!((postings.reclaim(u64::MAX), budget.used()), (held, 0));
    ask(7000..7001);
    assert_eq!(reads(), 1);
}

#[test]
fn lists_take_little_more_than_they_must() {
    let (codes, rows) = (7000_u32, 1_000_000);
    let random = lists(codes as usize, rows, |row| Some(mix(row) as usize % codes as usize));
    let floor = rows as f64 * (f64::from(codes).log2() + std::f64::consts::LOG2_E) / 8.0;
    for (effort, most) in EFFORTS.into_iter().zip([1.05, 1.015]) {
        let ratio = build(&random, rows, effort).bytes() as f64 / floor;
        assert!((1.0..most).contains(&ratio), "{effort:?}: {ratio}");
    }
    // Runs cost next to nothing.
    let runs = lists(40, 1_000_000, |row| Some((row / 25_000) as usize));
    let built = build(&runs, 1_000_000, Effort::Balanced);
    assert!(built.bytes() < 1_000_000 / 8, "{}", built.bytes());
    // Rows that lie together make gaps that are mostly none.
    let near = lists(400, 1_000_000, |row| Some(mix(row / 20) as usize % 400));
    let [split, gaps] = EFFORTS.map(|effort| build(&near, 1_000_000, effort).bytes());
    assert!(gaps * 2 < split, "{gaps} and {split}");
    let built = build(&lists(1, 1_000_000, |_| Some(0)), 1_000_000, Effort::Balanced);
    assert!(built.bytes() < 300, "{}", built.bytes());
}

#[test]
fn damage_is_an_error_or_rows_that_the_column_has() {
    let lists = lists(400, 9_000, |row| (row % 7 > 0).then_some((mix(row) % 400 * (mix(row) % 3) / 2) as usize % 400));
    EFFORTS.into_iter().for_each(|effort| damage(&build(&lists, 9_000, effort)));
}

fn damage(built: &Built) {
    let ask = |built: &Built| {
        let postings = built.open()?;
        let mut rows = Vec::new();
        postings.read(&Codes::run(0..400), &mut rows)?;
        assert!(rows.len() as u64 == postings.rows() && rows.iter().all(|&row| row < 9_000));
        postings.count(&Codes::run(3..77))?;
        postings.for_each(&Codes::run(0..400), |_, rows| {
            assert!(rows.is_sorted_by(|a, b| a < b));
            Ok(())
        })
    };
    ask(built).unwrap();
    let whole = built.groups.0.lock().unwrap().clone();
    let mut errors = 0;
    for at in (0..built.directory.len() + whole.len()).step_by(3) {
        for flip in [1, 0x10, 0x80, 0xff] {
            let mut damaged = Built { directory: built.directory.clone(), groups: Groups::default(), ..*built };
            let mut bytes = whole.clone();
            match damaged.directory.get_mut(at) {
                Some(byte) => *byte ^= flip,
                None => bytes[at - built.directory.len()] ^= flip,
            }
            *damaged.groups.0.lock().unwrap() = bytes;
            errors += usize::from(ask(&damaged).is_err());
        }
    }
    assert!(errors > whole.len() / 3, "{errors}");
    for cut in 0..built.directory.len() {
        let directory = built.directory[..cut].to_vec();
        assert!(Built { directory, groups: built.groups.clone(), ..*built }.open().is_err());
    }
}

#[test]
fn few_bytes_do_not_stand_for_many_rows() {
    for rows in [GROUP_BITS + 1, 1 << 40, u64::MAX] {
        let mut directory = Directory::default();
        let mut group = vec![0];
        crate::wire::put_varint(&mut group, rows - 1);
        crate::wire::put_varint(&mut group, rows);
        group.push(0);
        directory.push(0, group.len() as u32, rows, 0);
        let groups = Groups(Arc::new(Mutex::new(group)), Arc::default());
        let built = Built { codes: 1, rows: MOST_ROWS, directory: directory.write(), groups };
        assert!(built.open().unwrap_err().to_string().contains("more rows than there can be"));
    }
}

proptest! {
    #[test]
    fn any_lists_come_back(
        codes in 1..40usize, spread in 0..12u32, seed: u64, nulls in 0..4u64, rows in 1..3000u64, far in 0..20u32,
    ) {
        let mut lists = lists(codes, rows, |row| {
            let code = mix((row >> spread) ^ seed) as usize % codes;
            (mix(row ^ seed) % 4 >= nulls).then_some(code)
        });
        // Spread out, so that universes are large.
        lists.iter_mut().flatten().for_each(|row| *row <<= far);
        check(&lists, rows << far);
    }

    #[test]
    fn sets_of_codes_are_sets(a: [bool; 70], b: [bool; 70]) {
        let bits = |set: &[bool]| ValueSet::IntSet(Arc::new(IntSet::Bits(set.iter().copied().collect())));
        let of = |set: &[bool]| Codes::of(&bits(set), 70);
        let listed = |codes: &Codes| (0..70).map(|code| codes.iter().any(|c| c == code)).collect::<Vec<_>>();
        prop_assert_eq!(listed(&of(&a)), a.to_vec());
        let both: Vec<bool> = a.iter().zip(&b).map(|(a, b)| a & b).collect();
        prop_assert_eq!(of(&a).and(&of(&b)), of(&both));
        let either: Vec<bool> = a.iter().zip(&b).map(|(a, b)| a | b).collect();
        prop_assert_eq!(of(&a).or(&of(&b)), of(&either));
        let negated: Vec<bool> = a.iter().map(|a| !a).collect();
        prop_assert_eq!(Codes::of(&ValueSet::Not(Box::new(bits(&a))), 70), of(&negated));
        prop_assert_eq!(of(&a).len(), a.iter().filter(|&&member| member).count() as u64);
    }
}
