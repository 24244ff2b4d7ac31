use plinth_io::{Io, IoOptions, MemoryBudget, Priority, Reading};
use proptest::prelude::*;

use super::*;

fn parts(ranges: &[Range<u64>]) -> (Reading, Vec<Part>) {
    let io = Io::new(&MemoryBudget::new(64 << 20), IoOptions::default());
    let (reading, replies) = Reading::new(ranges.len());
    let part = |(range, reply): (&Range<u64>, Reply)| {
        let memory = io.memory(usize::try_from(range.end - range.start).unwrap(), Priority::Now).unwrap().unwrap();
        Part::new(range.clone(), 0, memory, reply)
    };
    (reading, ranges.iter().zip(replies).map(part).collect())
}

proptest! {
    #[test]
    fn each_part_gets_its_bytes_whatever_pieces_come(
        wanted in prop::collection::vec((0_u64..2000, 1_u64..300), 1..12),
        pieces in prop::collection::vec(1_usize..400, 1..30),
        gap in 0_u64..200, most in 1_u64..2000,
    ) {
        let object: Vec<u8> = (0..2300_u32).map(|i| (i % 251) as u8).collect();
        let of = |range: &Range<u64>| &object[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
        let ranges: Vec<_> = wanted.iter().map(|&(start, len)| start..start + len).collect();
        let (reading, parts) = parts(&ranges);
        let runs = runs(parts, gap, most);
        let longest = ranges.iter().map(|range| range.end - range.start).max().unwrap();
        for mut run in runs {
            prop_assert!(run.range.end - run.range.start <= most.max(longest));
            let (mut at, mut sizes) = (run.range.start, pieces.iter().cycle());
            while at < run.range.end {
                let end = (at + *sizes.next().unwrap() as u64).min(run.range.end);
                run.parts.iter_mut().for_each(|part| part.take(at, of(&(at..end))));
                at = end;
            }
            for part in run.parts {
                prop_assert!(part.is_full());
                part.answer();
            }
        }
        for (range, buffer) in ranges.iter().zip(reading.wait().unwrap()) {
            prop_assert_eq!(buffer.as_slice(), of(range));
        }
    }
}
