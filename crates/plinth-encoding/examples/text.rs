//! Questions to blocks of text: the time to evaluate them as they are encoded over that to decode them first, on one core, in
//! cache: `cargo run --release -p plinth-encoding --example text`.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, clippy::cast_possible_truncation)]

use std::hint::black_box;
use std::time::Instant;

use arrow_buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use plinth_core::random::Random;
use plinth_encoding::expr::CompareOp::{Eq, GtEq, Lt};
use plinth_encoding::expr::Scalar;
use plinth_encoding::{
    Block, Column, Effort, EncodeOptions, Encoding, Pattern, Physical, ValueSet, Values, encode, evaluate_column,
};

const ROWS: usize = 8192;
const UTF8: Physical = Physical::Bytes { utf8: true };
const WORDS: [&str; 24] = [
    "carefully",
    "final",
    "deposits",
    "sleep",
    "quickly",
    "furiously",
    "regular",
    "ironic",
    "requests",
    "above",
    "the",
    "slyly",
    "express",
    "accounts",
    "among",
    "bold",
    "packages",
    "wake",
    "blithely",
    "pending",
    "theodolites",
    "are",
    "foxes",
    "über",
];

fn text(values: &[String]) -> Column {
    let mut heap = vec![];
    let views: Vec<u128> = values
        .iter()
        .map(|value| {
            let (at, len) = (heap.len() as u128, value.len() as u128);
            let mut head = [0; 16];
            let bytes = &value.as_bytes()[..value.len().min(12)];
            head[..bytes.len()].copy_from_slice(bytes);
            let head = u128::from_le_bytes(head);
            if len <= 12 {
                return head << 32 | len;
            }
            heap.extend_from_slice(value.as_bytes());
            at << 96 | (head & 0xFFFF_FFFF) << 32 | len
        })
        .collect();
    let values = Values::Views { views: ScalarBuffer::from(views), buffers: vec![Buffer::from_vec(heap)] };
    Column { len: ROWS, values, nulls: None }
}

fn word(random: &mut Random) -> &'static str {
    WORDS[random.below(24) as usize]
}

fn columns() -> Vec<(&'static str, Vec<String>)> {
    let mut random = Random(5);
    let random = &mut random;
    let name = |random: &mut Random| -> String {
        (0..4 + random.below(7)).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
    };
    let comment = |random: &mut Random| -> String {
        let words: Vec<&str> = (0..3 + random.below(5)).map(|_| word(random)).collect();
        words.join(" ")
    };
    let url = |random: &mut Random| {
        let (a, b) = (word(random), word(random));
        format!("http://{a}.example.com/{b}/{}/item?id={:x}", name(random), random.below(1 << 20))
    };
    vec![
        ("names", (0..ROWS).map(|_| name(random)).collect()),
        ("comments", (0..ROWS).map(|_| comment(random)).collect()),
        ("addresses", (0..ROWS).map(|_| url(random)).collect()),
        ("long comments", (0..ROWS).map(|_| (0..8).map(|_| comment(random)).collect::<Vec<_>>().join("; ")).collect()),
    ]
}

fn questions(values: &[String]) -> Vec<(&'static str, ValueSet)> {
    let compare = |op, value: &str| ValueSet::compare(UTF8, op, &value.into()).unwrap();
    let contains = |text: &str| ValueSet::BytesLike(Pattern::containing(text.as_bytes()));
    let middle = &values[ROWS / 2];
    let absent: String = middle.chars().rev().collect();
    let prefix = |text: &str| {
        let mut end = text.to_owned().into_bytes();
        *end.last_mut().unwrap() += 1;
        let end = String::from_utf8(end).unwrap();
        compare(GtEq, text).of_both(&compare(Lt, &end)).unwrap()
    };
    let any = ValueSet::any_of(UTF8, &[middle.as_str().into(), absent.as_str().into()]).unwrap();
    let short = |text: &str| text.chars().take(4).collect::<String>();
    vec![
        ("= one row's", compare(Eq, middle)),
        ("= no row's", compare(Eq, &absent)),
        ("IN two", any),
        ("< one row's", compare(Lt, middle)),
        ("LIKE 'rare%'", prefix(&absent.chars().take(8).collect::<String>())),
        ("LIKE 'four%'", prefix(&short(middle))),
        ("LIKE '%rare%'", contains("zebra crossing")),
        ("LIKE '%in one%'", contains(middle)),
        ("LIKE '%word%'", contains("ironic")),
        ("LIKE '%e%'", contains("e")),
        ("LIKE '%in%ire%'", ValueSet::BytesLike(Pattern::new(b"", [&b"in"[..], b"ire"], b""))),
    ]
}

fn nanos(run: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64
}

/// The median time of each of two ways, asked in turn.
fn compare(mut one: impl FnMut(), mut other: impl FnMut()) -> (f64, f64) {
    let (mut ones, mut others): (Vec<f64>, Vec<f64>) = (0..201).map(|_| (nanos(&mut one), nanos(&mut other))).unzip();
    ones.sort_by(f64::total_cmp);
    others.sort_by(f64::total_cmp);
    (ones[100], others[100])
}

fn main() {
    println!(
        "{:<14} {:<9} {:<16} {:>6} {:>12} {:>12} {:>6}",
        "text", "encoding", "question", "rows", "decoded, µs", "encoded, µs", "ratio"
    );
    for (name, values) in columns() {
        let column = text(&values);
        let mut seen: Vec<Encoding> = vec![];
        for effort in [Effort::Fast, Effort::Balanced, Effort::Compact, Effort::Plain] {
            let mut out = vec![];
            encode(UTF8, &column, &EncodeOptions { effort }, &mut out).unwrap();
            let block = Block::open(UTF8, &Buffer::from(out.as_slice()), ROWS).unwrap();
            if seen.contains(&block.encoding()) {
                continue;
            }
            seen.push(block.encoding());
            for (question, set) in questions(&values) {
                let rows = evaluate_column(UTF8, &column, &set).unwrap().is_true.count_set_bits();
                // Of what is listed, rows of another length need not be decoded.
                let lengths: Option<Vec<usize>> = set.members().map(|members| {
                    let len = |member: Scalar| match member {
                        Scalar::Bytes(member) => member.len(),
                        _ => 0,
                    };
                    members.into_iter().map(len).collect()
                });
                let candidates: Option<BooleanBuffer> =
                    lengths.map(|lengths| values.iter().map(|value| lengths.contains(&value.len())).collect());
                let (decoded, encoded) = compare(
                    || {
                        let values = block.decode(candidates.as_ref()).unwrap();
                        drop(black_box(evaluate_column(UTF8, &values, &set).unwrap()));
                    },
                    || drop(black_box(block.evaluate(&set).unwrap().unwrap())),
                );
                let (decoded, encoded) = (decoded / 1e3, encoded / 1e3);
                println!(
                    "{name:<14} {:<9} {question:<16} {rows:>6} {decoded:>12.1} {encoded:>12.1} {:>6.2}",
                    block.encoding().name(),
                    encoded / decoded
                );
            }
        }
    }
}
