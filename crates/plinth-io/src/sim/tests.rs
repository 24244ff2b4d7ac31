#![allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]

use super::*;
use std::ops::Range;

use crate::{IoOptions, MemoryBudget, Priority, Reading, Request};

fn contents(len: usize) -> Vec<u8> {
    (0..len).map(|i| u8::try_from((i ^ i >> 8) & 0xff).unwrap()).collect()
}

fn disk(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed, &Io::new(&MemoryBudget::new(64 << 20), IoOptions::default()));
    disk.write("f", 0, &contents(100_000)).unwrap();
    disk
}

fn start(file: &SimFile, ranges: &[Range<u64>]) -> Reading {
    file.start(&Request { ranges, priority: Priority::Now, query_bytes: 0 }).unwrap().unwrap()
}

fn nothing_is_left(disk: &SimDisk) {
    while disk.step() {}
    let (held, under_way) = (disk.0.io.counters(), disk.counters().under_way);
    assert_eq!((under_way, held.extent_bytes, held.held_bytes), (0, 0, 0));
}

#[test]
fn reads_end_in_any_order_in_pieces_and_with_the_right_bytes() {
    let mut orders = std::collections::HashSet::new();
    for seed in 0..50 {
        let run = || {
            let disk = disk(seed);
            disk.set_faults(Faults { at_once: 10, short: 50, busy: 30, ..Faults::default() });
            let file = disk.open("f").unwrap();
            let ranges = [0..100_000, 77..77, 4095..4097, 99_999..100_000];
            let readings: Vec<Reading> = ranges.iter().map(|range| start(&file, std::slice::from_ref(range))).collect();
            let mut order = Vec::new();
            for _ in 0..10_000 {
                order.extend((0..4).filter(|i| readings[*i].is_done() && !order.contains(i)).collect::<Vec<_>>());
                if !disk.step() {
                    break;
                }
            }
            assert_eq!(order.len(), 4);
            for (range, reading) in ranges.iter().zip(readings) {
                let bytes = reading.wait().unwrap().remove(0);
                let (from, to) = (usize::try_from(range.start).unwrap(), usize::try_from(range.end).unwrap());
                assert!(bytes.as_slice() == &contents(100_000)[from..to]);
            }
            nothing_is_left(&disk);
            order
        };
        let order = run();
        assert_eq!(order, run(), "the same seed does the same");
        orders.insert(order);
    }
    assert!(orders.len() > 5);
}

#[test]
fn failures_name_file_and_place_and_cancelled_reads_never_begin() {
    let disk = disk(1);
    let file = disk.open("f").unwrap();
    let end = |ranges: &[Range<u64>]| {
        let reading = start(&file, ranges);
        while disk.step() {}
        reading.wait().map(|buffers| buffers.len())
    };
    disk.set_faults(Faults { failing: Some(2), ..Faults::default() });
    let error = end(&[0..10, 4000..5000]).unwrap_err().to_string();
    assert_eq!(error, "f: cannot read 1000 bytes at 4000: input/output error");
    assert_eq!(end(&[4000..5000]).unwrap(), 1);

    // The error may have come before the other read began.
    let never_begun = disk.counters().never_begun;
    drop(start(&file, &[0..10, 20..30]));
    nothing_is_left(&disk);
    assert_eq!(disk.counters().never_begun, never_begun + 2);

    disk.set_len("f", 500).unwrap();
    assert!(matches!(end(&[400..600]), Err(IoError::PastEnd { offset: 400, len: 500, .. })));
    assert!(matches!(file.read(&[400..600]), Err(IoError::PastEnd { len: 500, .. })));
    assert_eq!(end(&[400..500]).unwrap(), 1);

    disk.set_faults(Faults { vanishing: Some(0), ..Faults::default() });
    assert!(end(&[0..10]).unwrap_err().to_string().ends_with("the device is gone"));
    assert!(file.read(&[0..10]).is_err() && disk.write("f", 0, b"x").is_err() && disk.sync("f").is_err());
    nothing_is_left(&disk);
}

#[test]
fn a_thread_makes_reads_end() {
    let disk = disk(1);
    disk.set_faults(Faults { short: 30, busy: 30, ..Faults::default() });
    let file = disk.open("f").unwrap();
    let background = disk.in_background().unwrap();
    for i in 0..200 {
        assert_eq!(start(&file, &[i..i + 1000, 0..50_000]).wait().unwrap()[0].len(), 1000);
    }
    drop(background);
    nothing_is_left(&disk);
}

/// Replaces a file the safe way (or without syncing first); what is there after power failed at some step.
fn replaced(seed: u64, fails_at: u64, safe: bool) -> (Vec<u8>, bool) {
    let disk = disk(seed);
    let replace = |bytes: &[u8]| {
        disk.write("new", 0, &bytes[..50_000])?;
        disk.write("new", 50_000, &bytes[50_000..])?;
        if safe {
            disk.sync("new")?;
        }
        disk.rename("new", "f")?;
        disk.sync_names()
    };
    disk.sync("f").unwrap();
    disk.sync_names().unwrap();
    let before = disk.counters().operations;
    disk.set_faults(Faults { vanishing: Some(before + fails_at), ..Faults::default() });
    let complete = replace(&vec![1; 70_000]).is_ok();
    disk.crash();
    let file = disk.open("f").unwrap();
    (file.read(&[0..file.byte_len()]).unwrap()[0].to_vec(), complete)
}

#[test]
fn power_failures_keep_what_was_synced_and_tear_what_was_not() {
    let (old, new) = (contents(100_000), vec![1; 70_000]);
    let (mut olds, mut news, mut torn) = (0, 0, 0);
    for seed in 0..40 {
        for fails_at in 0..7 {
            let (found, complete) = replaced(seed, fails_at, true);
            assert!(found == old || found == new, "seed {seed}, step {fails_at}");
            assert!(!complete || found == new, "what was synced is there");
            (olds, news) = (olds + usize::from(found == old), news + usize::from(found == new));
            let (found, _) = replaced(seed, fails_at, false);
            torn += usize::from(found != old && found != new);
        }
    }
    assert!(olds > 20 && news > 20 && torn > 20, "{olds} {news} {torn}");
}
