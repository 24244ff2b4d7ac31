//! Postings against plain lists; then the same with damaged bytes, which may fail but must not harm.
#![no_main]

use std::sync::{Arc, Mutex};

use arrow_buffer::Buffer;
use libfuzzer_sys::fuzz_target;
use plinth_encoding::postings::{Codes, Directory, GroupSource, Place, Postings, encode, plan};
use plinth_encoding::{Effort, EncodingError, Result};
use plinth_fuzz::{Bytes, data::Random};

#[derive(Clone)]
struct Groups(Arc<Mutex<Vec<u8>>>);

impl GroupSource for Groups {
    fn read(&self, groups: &[Place]) -> Result<Vec<Buffer>> {
        let bytes = self.0.lock().unwrap();
        let range = |place: &Place| place.offset as usize..place.offset as usize + place.len as usize;
        let get = |place| bytes.get(range(place)).map(Buffer::from).ok_or_else(|| EncodingError::corrupt("no group"));
        groups.iter().map(get).collect()
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let (codes, rows) = (1 + bytes.u64() as usize % 700, bytes.u64() % 20_000);
    let (far, run, nulls, damage) = (bytes.u8() % 40, bytes.u8() % 12, bytes.u8(), bytes.u64());
    let effort = [Effort::Balanced, Effort::Compact][usize::from(bytes.u8() % 2)];
    let mut random = Random(bytes.u64());
    let mut lists: Vec<Vec<u64>> = vec![Vec::new(); codes];
    let mut code = 0;
    for row in 0..rows {
        if row % (1 << run) == 0 {
            code = (random.next_u64() % codes as u64 * (random.next_u64() % codes as u64) / codes as u64) as usize;
        }
        if random.next_u64() % 256 >= u64::from(nulls) {
            lists[code].push(row << far);
        }
    }
    let column_rows = rows << far;
    let lengths: Vec<u64> = lists.iter().map(|list| list.len() as u64).collect();
    let (mut directory, mut groups) = (Directory::default(), Vec::new());
    for share in plan(&lengths, column_rows) {
        let of = lists[share.first as usize..(share.first + share.codes) as usize].iter().flatten();
        let here: Vec<u64> = of.skip(share.skip as usize).take(share.rows as usize).copied().collect();
        let group = encode(&share, &lengths, &here, effort);
        directory.push(share.first, group.len() as u32, share.rows, 0);
        groups.extend(group);
    }
    let mut directory = directory.write();
    let open = |directory: &[u8], groups: Vec<u8>| {
        let source = Box::new(Groups(Arc::new(Mutex::new(groups))));
        Postings::open(codes as u32, column_rows, &Buffer::from(directory), source)
    };
    let postings = open(&directory, groups.clone()).unwrap();
    for _ in 0..20 {
        let (a, b) = (random.next_u64() as u32 % (codes as u32 + 1), random.next_u64() as u32 % (codes as u32 + 1));
        let asked = Codes::run(a.min(b)..a.max(b));
        let expected = lists[a.min(b) as usize..a.max(b) as usize].concat();
        let mut found = Vec::new();
        postings.read(&asked, &mut found).unwrap();
        assert_eq!(found, expected);
        assert_eq!(postings.count(&asked).unwrap(), expected.len() as u64);
        assert!(postings.cost(&asked).bytes <= postings.directory().bytes());
    }

    let target = if damage & 1 == 0 { &mut directory } else { &mut groups };
    let at = (damage >> 8) as usize % target.len().max(1);
    if let Some(byte) = target.get_mut(at) {
        *byte ^= (damage >> 40) as u8;
    }
    let Ok(postings) = open(&directory, groups) else { return };
    let all = Codes::run(0..codes as u32);
    let _ = postings.count(&Codes::run(1..codes as u32 / 2 + 1));
    let _ = postings.for_each(&all, |_, list| {
        assert!(list.is_sorted_by(|a, b| a < b) && list.iter().all(|&row| row < column_rows));
        Ok(())
    });
});
