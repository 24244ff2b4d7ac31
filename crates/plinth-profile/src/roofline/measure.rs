//! What can be found out about a machine in a second or two, without touching a device.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::ceilings::{Ceiling, Ceilings};
use crate::limits::Origin;
use plinth_core::units::{count_of, to_f64};

/// Words each thread reads: more than its caches hold.
const WORDS: usize = 8 << 20;

/// Values of a vector, and bits of each: what bit-packing does most.
const VECTOR: usize = 1024;
const BITS: usize = 10;

impl Ceilings {
    /// Measures memory by all threads at once, and decoding by one, for about so much time in all. Both are marked as measured now.
    ///
    /// Decoding stands for all encodings: 1,024 integers of ten bits at a time, unpacked to 64 bits each within a core's cache by a
    /// loop that the compiler makes what it can of. A probe knows better.
    ///
    /// It takes 64 MiB of memory a thread meanwhile.
    pub fn measure(threads: usize, time: Duration) -> Self {
        let now = |per_second, by_thread| Some(Ceiling { per_second, by_thread, origin: Origin::Now });
        let memory = now(memory(threads.clamp(1, 256), time / 2), false);
        let decode = now(unpacking(time / 2), true).map(|ceiling| (String::new(), ceiling));
        Self { memory, decode: decode.into_iter().collect(), ..Self::default() }
    }
}

/// Bytes a second that all threads together read.
fn memory(threads: usize, time: Duration) -> f64 {
    let start = Barrier::new(threads);
    let speeds = std::thread::scope(|scope| {
        let read = || {
            // Written once, so that each page is there.
            let words = vec![1_u64; WORDS];
            start.wait();
            best(time, count_of(WORDS) * 8, || {
                black_box(words.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word)));
            })
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
        // A thread that could not read does not count.
        threads.into_iter().map(|thread| thread.join().unwrap_or(0.0)).collect::<Vec<_>>()
    });
    speeds.iter().sum()
}

/// Bytes of values a second that one thread unpacks.
fn unpacking(time: Duration) -> f64 {
    // Sixteen lanes side by side, as FastLanes has them: value i of a lane begins at bit i x BITS of the lane's words.
    let packed: Vec<[u64; 16]> =
        (0..VECTOR * BITS / 1024).map(|row| [0x9e37_79b9_7f4a_7c15 ^ count_of(row); 16]).collect();
    let mut values = vec![[0_u64; 16]; VECTOR / 16];
    let mask = (1 << BITS) - 1;
    best(time, count_of(VECTOR) * 8 * 256, || {
        for _ in 0..256 {
            for (i, values) in black_box(&mut values).iter_mut().enumerate() {
                let (word, bit) = (i * BITS / 64, i * BITS % 64);
                let (Some(low), Some(high)) = (packed.get(word), packed.get(word + 1).or(packed.last())) else {
                    return;
                };
                for ((value, low), high) in values.iter_mut().zip(low).zip(high) {
                    *value = ((low >> bit) | ((high << 1) << (63 - bit))) & mask;
                }
            }
        }
        black_box(&values);
    })
}

/// The best speed of repeated work of so many bytes: a machine is as fast as it is undisturbed.
fn best(time: Duration, bytes: u64, mut work: impl FnMut()) -> f64 {
    work();
    let (started, mut best) = (Instant::now(), 0.0_f64);
    loop {
        let round = Instant::now();
        work();
        best = best.max(to_f64(bytes) / round.elapsed().as_secs_f64().max(1e-9));
        if started.elapsed() >= time {
            return best;
        }
    }
}
