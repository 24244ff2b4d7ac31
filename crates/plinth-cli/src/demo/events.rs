//! A made-up event log: the same rows every time.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{ArrowError, DataType, Field};

/// Rows of the log.
pub(super) const ROWS: usize = 500_000;

/// Rows of a batch.
const BATCH: usize = 50_000;

/// Microseconds since 1970 of the first event.
const START: i64 = 1_767_225_600_000_000;

const COUNTRIES: [&str; 12] = ["US", "IN", "DE", "BR", "GB", "FR", "JP", "CA", "NL", "PL", "KE", "NZ"];
const SECTIONS: [&str; 6] = ["products", "search", "articles", "account", "help", "checkout"];
const TAGS: [&str; 8] = ["mobile", "returning", "ad", "beta", "bot", "slow", "vip", "trial"];
const BROWSERS: [&str; 4] = ["Chrome", "Safari", "Firefox", "Edge"];
const SYSTEMS: [&str; 5] = ["Windows", "Android", "iOS", "macOS", "Linux"];
const WIDTHS: [i32; 5] = [1920, 390, 1366, 2560, 820];
const STATUSES: [i16; 16] = [200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 304, 304, 301, 404, 404, 500];

/// The log, batch by batch.
pub(super) fn batches() -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
    let mut random = Random(42);
    let mut time = START;
    (0..ROWS / BATCH).map(move |_| batch(&mut random, &mut time))
}

/// SplitMix64 (Steele, Lea and Flood 2014): small, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    fn below(&mut self, n: u32) -> u32 {
        u32::try_from((u128::from(self.next()) * u128::from(n)) >> 64).unwrap_or(0)
    }

    /// A number below `2^bits`, small ones far more often, as names and users occur in the world.
    fn skewed(&mut self, bits: u32) -> u32 {
        let bits = self.below(bits + 1);
        self.below(1 << bits)
    }

    fn pick<T: Copy + Default>(&mut self, from: &[T]) -> T {
        let at = self.below(u32::try_from(from.len()).unwrap_or(1));
        from.get(at as usize).copied().unwrap_or_default()
    }

    /// One of `from`, the first ones more often.
    fn pick_skewed<T: Copy + Default>(&mut self, from: &[T]) -> T {
        let n = u32::try_from(from.len()).unwrap_or(1);
        let at = self.below(n).min(self.below(n));
        from.get(at as usize).copied().unwrap_or_default()
    }
}

fn batch(random: &mut Random, time: &mut i64) -> Result<RecordBatch, ArrowError> {
    let times: Vec<i64> = (0..BATCH)
        .map(|_| {
            *time += i64::from(random.skewed(22));
            *time
        })
        .collect();
    let users: Int64Array = (0..BATCH).map(|_| 10_000 + i64::from(random.skewed(17))).collect();
    let countries = StringArray::from_iter_values((0..BATCH).map(|_| random.pick_skewed(&COUNTRIES)));
    let urls = StringArray::from_iter_values((0..BATCH).map(|_| {
        let (section, page) = (random.pick_skewed(&SECTIONS), random.skewed(15));
        match random.below(4) {
            0 => format!("https://example.com/{section}/{page}?ref={}", random.pick(&SYSTEMS).to_lowercase()),
            _ => format!("https://example.com/{section}/{page}"),
        }
    }));
    let statuses: Int16Array = (0..BATCH).map(|_| random.pick(&STATUSES)).collect();
    let latencies: Float64Array = (0..BATCH).map(|_| f64::from(random.skewed(16) + random.below(40)) / 10.0).collect();
    let mut tags = ListBuilder::new(StringBuilder::new());
    for _ in 0..BATCH {
        if random.below(20) == 0 {
            tags.append_null();
            continue;
        }
        for _ in 0..random.below(4) {
            tags.values().append_value(random.pick_skewed(&TAGS));
        }
        tags.append(true);
    }
    let browsers = StringArray::from_iter_values((0..BATCH).map(|_| random.pick_skewed(&BROWSERS)));
    let systems: StringArray =
        (0..BATCH).map(|_| (random.below(10) > 0).then(|| random.pick_skewed(&SYSTEMS))).collect();
    let widths: Int32Array = (0..BATCH).map(|_| random.pick_skewed(&WIDTHS)).collect();
    let field = |name: &str, data_type, nullable| Arc::new(Field::new(name, data_type, nullable));
    let attrs = StructArray::try_new(
        vec![
            field("browser", DataType::Utf8, false),
            field("os", DataType::Utf8, true),
            field("screen", DataType::Int32, false),
        ]
        .into(),
        vec![Arc::new(browsers), Arc::new(systems), Arc::new(widths)],
        None,
    )?;
    let columns: [(&str, ArrayRef, bool); 8] = [
        ("ts", Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")), false),
        ("user_id", Arc::new(users), false),
        ("country", Arc::new(countries), false),
        ("url", Arc::new(urls), false),
        ("status", Arc::new(statuses), false),
        ("latency_ms", Arc::new(latencies), false),
        ("tags", Arc::new(tags.finish()), true),
        ("attrs", Arc::new(attrs), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_the_same_every_time() {
        let first: Vec<_> = batches().take(2).map(Result::unwrap).collect();
        let again: Vec<_> = batches().take(2).map(Result::unwrap).collect();
        assert_eq!(first, again);
        assert_ne!(first[0], first[1]);
        assert_eq!(batches().map(|b| b.unwrap().num_rows()).sum::<usize>(), ROWS);
    }
}
