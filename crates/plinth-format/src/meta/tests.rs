//! Metadata comes back as it was written.

use super::*;

fn bytes_zone(min: &[u8], max: &[u8]) -> Zone {
    Zone::exact(Bounds { min: Scalar::Bytes(min.into()), max: Scalar::Bytes(max.into()) })
}

fn example() -> StreamMeta {
    let zones = [
        Some(bytes_zone(b"", &[0xff; 100])),
        Some(bytes_zone(&[b'a'; 100], &[b'z'; 100])),
        None,
        Some(Zone::exact(Bounds { min: Scalar::Int(i128::MIN), max: Scalar::Int(i128::MAX) })),
        Some(Zone::exact(Bounds { min: Scalar::Float(-0.0), max: Scalar::Float(f64::NAN) })),
    ];
    let mut position = 64;
    let mut blocks = |values: &[u32]| {
        values
            .iter()
            .zip(zones.iter().cycle())
            .map(|(&values, zone)| {
                let len = values * 2;
                let encoding = if len > 8000 { 2 } else { 3 };
                let offset = block_start(position, u64::from(len), encoding);
                position = offset + u64::from(len);
                BlockMeta { offset, len, values, nulls: 1, encoding, checksum: 9, zone: zone.clone() }
            })
            .collect()
    };
    let chunks = vec![
        ChunkMeta { dictionary: Some(1), blocks: blocks(&[4096, 4096, 10]) },
        ChunkMeta { dictionary: None, blocks: blocks(&[4096, 1]) },
    ];
    StreamMeta {
        nulls: 5,
        values: 4096 * 3 + 11,
        value_bytes: 1 << 40,
        zone: Some(bytes_zone(b"a", &[0xff; 2000])),
        order: Order { ascends: true, descends: false, differs: true },
        sum: Some(-5),
        distinct: Some(77),
        extras: vec![(99, Section { offset: 20, len: 2, checksum: 3 })],
        dictionaries: vec![
            DictionaryMeta {
                values: 3,
                index: Section { offset: 1, len: 2, checksum: 3 },
                blocks: vec![Section { offset: 4, len: 5, checksum: 6 }],
                postings: None,
            },
            DictionaryMeta {
                values: 1,
                index: Section { offset: 9, len: 2, checksum: 3 },
                blocks: vec![Section { offset: 11, len: 5, checksum: 6 }],
                postings: None,
            },
        ],
        note: "given up".into(),
        chunks,
    }
}

#[test]
fn metadata_is_read_as_written_and_every_cut_of_it_is_an_error() {
    let mut meta = example();
    for one_value_a_row in [true, false] {
        let directory = Section { offset: 7, len: 8, checksum: 9 };
        meta.dictionaries[1].postings = one_value_a_row.then_some(PostingsMeta { offset: 77, bytes: 8_100, directory });
        let bytes = meta.write(one_value_a_row);
        let shape = Shape { row_groups: &[4096 * 2 + 10, 4097], block_rows: 4096, one_value_a_row, value_width: 1 };
        let read = StreamMeta::read(&bytes, shape, 1 << 20).unwrap();
        assert_eq!(read.write(one_value_a_row), bytes);
        assert_eq!(read.chunks[0].blocks[1].offset, meta.chunks[0].blocks[1].offset);
        assert_eq!(read.chunks[0].blocks[1].zone.as_ref().unwrap().exact, (false, false));
        for cut in 0..bytes.len() {
            assert!(StreamMeta::read(&bytes[..cut], shape, 1 << 20).is_err());
        }
        assert!(StreamMeta::read(&bytes, shape, 8_000).is_err());
        let huge = Shape { row_groups: &[u64::MAX, 1], block_rows: 1, one_value_a_row, value_width: 1 };
        assert!(StreamMeta::read(&bytes, huge, 1 << 20).is_err());
        let wide = Shape { value_width: 1 << 20, ..shape };
        assert!(StreamMeta::read(&bytes, wide, 1 << 20).unwrap_err().to_string().contains("no writer"));
    }
}

#[test]
fn cut_bounds_still_bound() {
    let zone = bytes_zone(&[b'a'; 40], &[b'b', 0xff, 0xff]).cut(2);
    assert_eq!(zone.bounds.min, Scalar::Bytes((*b"aa").into()));
    assert_eq!(zone.bounds.max, Scalar::Bytes((*b"c").into()));
    assert_eq!(zone.exact, (false, false));
    let zone = bytes_zone(b"", &[0xff; 40]).cut(2);
    assert_eq!((zone.bounds.max, zone.exact), (Scalar::Bytes([0xff; 40].into()), (true, true)));
}

#[test]
fn a_part_without_bounds_leaves_the_whole_without() {
    let zone = |min, max| Some(Zone::exact(Bounds { min: Scalar::Int(min), max: Scalar::Int(max) }));
    let mut all = None;
    widen(&mut all, None, false);
    widen(&mut all, zone(3, 5).as_ref(), true);
    widen(&mut all, zone(-1, 4).as_ref(), true);
    assert_eq!(all, Some(zone(-1, 5)));
    widen(&mut all, None, true);
    widen(&mut all, zone(3, 5).as_ref(), true);
    assert_eq!(all, Some(None));
}
