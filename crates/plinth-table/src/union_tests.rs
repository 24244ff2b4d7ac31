use super::*;

fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields: Vec<Field> =
        columns.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), false)).collect();
    Arc::new(Schema::new(fields))
}

fn meet(types: &[DataType]) -> Result<DataType> {
    let mut union = SchemaUnion::new();
    for (i, data_type) in types.iter().enumerate() {
        union.add(&format!("{i}.plinth"), &schema(&[("x", data_type.clone())]))?;
    }
    Ok(union.schema().field(0).data_type().clone())
}

fn item(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("item", data_type, true))
}

#[test]
fn numbers_meet_where_both_are_exact() {
    use DataType::{
        Date32, Decimal32, Decimal64, Decimal128, Decimal256, Float16, Float32, Float64, Int8, Int16, Int32, Int64,
        Null, UInt8, UInt16, UInt32, UInt64, Utf8View,
    };
    for (a, b, met) in [
        (Int8, Int16, Some(Int16)),
        (Int32, Int64, Some(Int64)),
        (UInt8, UInt64, Some(UInt64)),
        (UInt8, Int8, Some(Int16)),
        (UInt16, Int8, Some(Int32)),
        (UInt32, Int64, Some(Int64)),
        (UInt64, Int8, None),
        (Int32, Float64, Some(Float64)),
        (UInt32, Float32, Some(Float64)),
        (Int8, Float16, Some(Float64)),
        (Int64, Float64, None),
        (UInt64, Float64, None),
        (Float16, Float32, Some(Float32)),
        (Null, Int8, Some(Int8)),
        (Null, Utf8View, Some(Utf8View)),
        (Int32, Utf8View, None),
        (Int32, Date32, None),
        (Int32, Decimal128(38, 0), None),
        (Decimal128(10, 2), Decimal128(12, 2), Some(Decimal128(12, 2))),
        (Decimal128(10, 2), Decimal128(10, 4), Some(Decimal128(12, 4))),
        (Decimal32(9, 0), Decimal32(9, 9), Some(Decimal64(18, 9))),
        (Decimal64(5, 2), Decimal128(4, 2), Some(Decimal128(5, 2))),
        (Decimal128(38, 0), Decimal128(38, 10), Some(Decimal256(48, 10))),
        (Decimal128(5, -3), Decimal128(4, 2), Some(Decimal128(10, 2))),
        (Decimal256(76, 0), Decimal256(76, 1), None),
    ] {
        for (a, b) in [(&a, &b), (&b, &a)] {
            assert_eq!(meet(&[a.clone(), b.clone()]).ok(), met, "{a} {b}");
            if let Some(met) = &met {
                assert!(can_widen(a, met) && can_widen(b, met), "{a} {b}");
            }
            assert_eq!(can_widen(a, b), met.as_ref() == Some(b), "{a} to {b}");
        }
    }
}

#[test]
fn what_types_unite_to_does_not_depend_on_their_order() {
    use DataType::{Float32, Float64, Int8, Int16, Int32, Int64, Null, UInt8, UInt16, UInt32, UInt64};
    let types = [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32, Float64, Null];
    for a in &types {
        for b in &types {
            for c in &types {
                let all = |x: &DataType, y: &DataType, z: &DataType| meet(&[x.clone(), y.clone(), z.clone()]).ok();
                let met = all(a, b, c);
                for other in [all(a, c, b), all(b, a, c), all(b, c, a), all(c, a, b), all(c, b, a)] {
                    assert_eq!(met, other, "{a} {b} {c}");
                }
                if let Some(met) = met {
                    assert!([a, b, c].iter().all(|one| can_widen(one, &met)), "{a} {b} {c}");
                }
            }
        }
    }
}

#[test]
fn columns_and_fields_keep_the_order_they_appeared_in() {
    use DataType::{Int8, Int32, List, Struct, Utf8View};
    let inner = |fields: &[(&str, DataType)]| Struct(schema(fields).fields().clone());
    let mut union = SchemaUnion::new();
    union.add("a", &schema(&[("x", Int8), ("s", inner(&[("p", Int8)]))])).unwrap();
    union
        .add("b", &schema(&[("s", inner(&[("q", List(item(Int8))), ("p", Int32)])), ("y", Utf8View), ("x", Int32)]))
        .unwrap();
    let s = Fields::from(vec![Field::new("p", Int32, false), Field::new("q", List(item(Int8)), true)]);
    let expected = Schema::new(vec![
        Field::new("x", Int32, false),
        Field::new("s", Struct(s), false),
        Field::new("y", Utf8View, true),
    ]);
    assert_eq!(union.schema().as_ref(), &expected);
    // What was there before does not change the table.
    union.add("a", &schema(&[("x", Int8), ("s", inner(&[("p", Int8)]))])).unwrap();
    assert_eq!(union.schema().as_ref(), &expected);
}

#[test]
fn a_conflict_names_the_place_both_types_and_both_files() {
    use DataType::{Float64, Int32, Int64, List, Struct, UInt32};
    let nested = |leaf: DataType| List(item(Struct(schema(&[("a", leaf)]).fields().clone())));
    let mut union = SchemaUnion::new();
    union.add("1.plinth", &schema(&[("x", nested(Int32))])).unwrap();
    union.add("2.plinth", &schema(&[("x", nested(Int64))])).unwrap();
    union.add("3.plinth", &schema(&[("x", nested(UInt32))])).unwrap();
    let before = union.schema();
    let error = union.add("4.plinth", &schema(&[("x", nested(Float64))])).unwrap_err().to_string();
    assert!(error.contains("\"x[].a\" is Int64 in 2.plinth but Float64 in 4.plinth"), "{error}");
    assert_eq!(union.schema(), before);
}
