#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow_schema::{DataType, Field};

use super::*;
use crate::json::tokenizer::Scratch;
use crate::stream::sample::Samples as _;
use crate::values::infer::COLUMNS;
use crate::values::infer::{MEMORY, STRUCT_FIELDS};

fn look(samples: &mut Samples, text: &str) {
    let mut scratch = Scratch::new(1_024);
    samples.json(&mut Tokenizer::new(text, &mut scratch, false)).unwrap();
}

/// Records with one column `m`, an object whose keys are the numbers.
fn keyed(keys: impl IntoIterator<Item = usize>) -> Samples {
    let mut samples = Samples::default();
    keys.into_iter().for_each(|key| look(&mut samples, &format!(r#"{{"m":{{"k{key}":{{"x":1}}}}}}"#)));
    samples
}

fn united(parts: &[&Samples]) -> Samples {
    let mut all = Samples::default();
    parts.iter().for_each(|part| all.unite((*part).clone()));
    all
}

fn type_of(samples: &Samples) -> DataType {
    samples.clone().fields().unwrap()[0].data_type().clone()
}

fn is_wide(samples: &Samples) -> bool {
    samples.check(Path::new("")).is_err()
}

fn map_of(value: DataType) -> DataType {
    let pair = vec![Field::new("key", DataType::Utf8View, false), Field::new("value", value, true)];
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair.into()), false)), false)
}

#[test]
fn an_object_with_too_many_names_is_a_map_and_keeps_none_of_them() {
    let value = DataType::Struct(vec![Field::new("x", DataType::Int64, true)].into());
    // Three times each: what counts is how many differ.
    let most = keyed((0..3).flat_map(|_| 0..STRUCT_FIELDS));
    let DataType::Struct(fields) = type_of(&most) else { unreachable!("{}", type_of(&most)) };
    assert_eq!(fields.len(), STRUCT_FIELDS);
    let wide = keyed((0..3).flat_map(|_| 0..5 * STRUCT_FIELDS));
    assert!(wide.memory() < 10_000 && most.memory() > 100_000 && !is_wide(&wide));
    // Once wide it stays wide, however few names come later.
    for samples in [&wide, &united(&[&wide, &keyed(0..1)]), &united(&[&keyed(0..1), &wide])] {
        assert_eq!(type_of(samples), map_of(value.clone()));
    }
}

#[test]
fn keys_that_hardly_come_twice_are_data() {
    assert_eq!(type_of(&keyed((0..20).chain(0..20))), map_of(type_of_x()));
    // Nineteen names, nine objects, names that come more often than twice: a struct each time.
    assert!(matches!(type_of(&keyed(0..19)), DataType::Struct(fields) if fields.len() == 19));
    assert!(matches!(type_of(&keyed((0..20).chain(0..20).chain([0]))), DataType::Struct(_)));
    let mut samples = Samples::default();
    let one = |from: usize| (from..from + 20).map(|key| format!("\"k{key}\":1")).collect::<Vec<_>>().join(",");
    (0..9).for_each(|at| look(&mut samples, &format!("{{\"m\":{{{}}}}}", one(20 * at))));
    assert!(matches!(type_of(&samples), DataType::Struct(fields) if fields.len() == 180));
    look(&mut samples, &format!("{{\"m\":{{{}}}}}", one(0)));
    assert_eq!(type_of(&samples), map_of(DataType::Int64));
    // Values of two kinds are text.
    look(&mut samples, r#"{"m":{"other":true}}"#);
    assert_eq!(type_of(&samples), map_of(DataType::Utf8View));
}

fn type_of_x() -> DataType {
    DataType::Struct(vec![Field::new("x", DataType::Int64, true)].into())
}

#[test]
fn whether_an_object_is_a_map_does_not_depend_on_the_cuts() {
    for (names, wide) in [(STRUCT_FIELDS, false), (STRUCT_FIELDS + 1, true)] {
        let all = || (0..3).flat_map(move |_| 0..names);
        let whole = keyed(all());
        for cut in [1, names / 3, names / 2, names - 1] {
            // The parts share names.
            let parts =
                [keyed(all().filter(|at| *at < cut)), keyed(all().filter(|at| *at >= cut / 2)), keyed([0, names - 1])];
            let [a, b, c] = &parts;
            for [a, b, c] in [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
                let left = united(&[&united(&[a, b]), c]);
                let right = united(&[a, &united(&[b, c])]);
                assert_eq!(left.clone().fields().unwrap(), right.clone().fields().unwrap());
                assert_eq!((left.memory(), right.memory()), (whole.memory(), whole.memory()));
                assert_eq!(matches!(type_of(&left), DataType::Map(..)), wide);
            }
        }
    }
}

#[test]
fn names_are_bounded_at_the_top_level_and_in_all() {
    let mut top = Samples::default();
    (0..COLUMNS).for_each(|key| look(&mut top, &format!(r#"{{"k{key}":1}}"#)));
    assert!(!is_wide(&top));
    look(&mut top, r#"{"k3":1,"one too many":2,"another":{"x":3}}"#);
    assert!(is_wide(&top) && top.memory() < 1_000);
    // A tree of objects none of which is wide.
    let inner = (0..STRUCT_FIELDS).map(|key| format!("\"{key}\":0")).collect::<Vec<_>>().join(",");
    let outer = (0..STRUCT_FIELDS).map(|key| format!("\"{key}\":{{{inner}}}")).collect::<Vec<_>>().join(",");
    let mut tree = Samples::default();
    look(&mut tree, &format!("{{\"a\":{{{outer}}},\"b\":[[{{{outer}}}]]}}"));
    assert!(tree.memory() <= MEMORY, "{}", tree.memory());
    // Few names, but long ones.
    let mut long = Samples::default();
    let name = |at: usize| at.to_string().repeat(1 << 20);
    (10..41).for_each(|at| look(&mut long, &format!("{{\"{}\":1}}", name(at / 2))));
    assert!(!is_wide(&long) && long.memory() > MEMORY / 2);
    (10..50).for_each(|at| look(&mut long, &format!("{{\"{}\":1}}", name(at))));
    assert!(is_wide(&long));
}

#[test]
fn json_has_structs_and_lists() {
    let list = |item| DataType::List(Arc::new(Field::new_list_field(item, true)));
    let json = |values: &[&str]| {
        let mut samples = Samples::default();
        values.iter().for_each(|value| look(&mut samples, &format!("{{\"v\":{value}}}")));
        type_of(&samples)
    };
    assert_eq!(json(&["[1,2]", "[]", "[0.5,null]"]), list(DataType::Float64));
    assert_eq!(json(&["[]"]), list(DataType::Utf8View));
    assert_eq!(json(&["\"1\"", "2"]), DataType::Utf8View);
    assert_eq!(json(&["\"1\""]), DataType::Utf8View);
    assert_eq!(json(&["{}"]), DataType::Utf8View);
    let fields = vec![Field::new("b", DataType::Int64, true), Field::new("a", list(DataType::Boolean), true)];
    assert_eq!(json(&["{}", r#"{"b":1}"#, r#"{"a":[true],"b":null}"#]), DataType::Struct(fields.into()));
}
