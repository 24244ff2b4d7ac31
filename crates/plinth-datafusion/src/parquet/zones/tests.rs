//! Statistics of Parquet files that are missing, old or wrong.

use std::sync::Arc;

use parquet::basic::SortOrder;
use parquet::data_type::ByteArray;
use parquet::file::metadata::{ColumnChunkMetaData, FileMetaData};
use parquet::file::statistics::Statistics;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use plinth_encoding::Physical;
use plinth_encoding::expr::CompareOp;

use super::*;

/// The zones of a column of ten rows.
fn zones(column: &str, data_type: &DataType, statistics: Statistics, ordered: bool) -> Zones {
    let message = parse_message_type(&format!("message m {{ optional {column}; }}")).unwrap();
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(message)));
    let chunk = ColumnChunkMetaData::builder(schema.column(0)).set_num_values(10).set_statistics(statistics);
    let group = RowGroupMetaData::builder(Arc::clone(&schema)).set_num_rows(10);
    let group = group.add_column_metadata(chunk.build().unwrap()).build().unwrap();
    let orders = ordered.then(|| vec![ColumnOrder::TYPE_DEFINED_ORDER(SortOrder::SIGNED)]);
    let file = FileMetaData::new(2, 10, None, None, schema, orders);
    let metadata = ParquetMetaData::new(file, vec![group]);
    Zones::new(&StatisticsOf { metadata: &metadata, group: 0, leaf: 0, data_type, in_struct: false })
}

fn compare(physical: Physical, op: CompareOp, value: Scalar) -> ColumnPredicate {
    ColumnPredicate::In(ValueSet::compare(physical, op, &value).unwrap())
}

fn more_than(physical: Physical, value: Scalar) -> ColumnPredicate {
    compare(physical, CompareOp::Gt, value)
}

const INT: Physical = Physical::Int { width: 8, signed: true };

#[test]
fn a_null_count_that_is_missing_is_not_zero() {
    let of = |nulls| zones("int64 x", &DataType::Int64, Statistics::int64(Some(1), Some(3), None, nulls, false), true);
    assert_eq!(
        of(None).of_chunk(&ColumnPredicate::IsNull),
        ZoneMapResult { may_be_true: true, may_be_false: true, may_be_null: false }
    );
    assert_eq!(
        of(Some(0)).of_chunk(&ColumnPredicate::IsNull),
        ZoneMapResult { may_be_true: false, may_be_false: true, may_be_null: false }
    );
    assert_eq!(
        of(Some(10)).of_chunk(&ColumnPredicate::IsNull),
        ZoneMapResult { may_be_true: true, may_be_false: false, may_be_null: false }
    );
    // More nulls than rows are no count.
    assert_eq!(of(Some(11)).of_chunk(&ColumnPredicate::IsNull), of(None).of_chunk(&ColumnPredicate::IsNull));
    let test = more_than(INT, Scalar::Int(0));
    assert!(!of(None).of_chunk(&test).always_true() && of(Some(0)).of_chunk(&test).always_true());
}

#[test]
fn old_and_unordered_bounds_rule_out_signed_integers_only() {
    for (deprecated, ordered, trusted) in [(false, true, true), (true, true, false), (false, false, false)] {
        let int = Statistics::int64(Some(1), Some(3), None, Some(0), deprecated);
        let found = zones("int64 x", &DataType::Int64, int.clone(), ordered);
        assert!(!found.of_chunk(&more_than(INT, Scalar::Int(5))).may_be_true);
        let unsigned = Physical::Int { width: 8, signed: false };
        let found = zones("int64 x (UINT_64)", &DataType::UInt64, int, ordered);
        assert_eq!(found.of_chunk(&more_than(unsigned, Scalar::Int(5))).may_be_true, !trusted);
        let text = |text: &str| Some(ByteArray::from(text));
        let text = Statistics::byte_array(text("a"), text("c"), None, Some(0), deprecated);
        let found = zones("binary x (UTF8)", &DataType::Utf8View, text, ordered);
        let test = more_than(Physical::Bytes { utf8: true }, Scalar::from("d"));
        assert_eq!(found.of_chunk(&test).may_be_true, !trusted);
    }
}

#[test]
fn bounds_that_are_none_rule_nothing_out() {
    let float = Physical::Float { width: 8 };
    for (min, max) in [(f64::NAN, 3.0), (1.0, f64::NAN), (3.0, 1.0)] {
        let statistics = Statistics::double(Some(min), Some(max), None, Some(0), false);
        let found = zones("double x", &DataType::Float64, statistics, true);
        let test = compare(float, CompareOp::Lt, Scalar::Float(-5.0));
        assert!(found.of_chunk(&test).may_be_true, "{min} {max}");
    }
    let statistics = Statistics::double(Some(1.0), Some(3.0), None, Some(0), false);
    let found = zones("double x", &DataType::Float64, statistics, true);
    // A NaN is greater than any number; no number is.
    assert!(found.of_chunk(&more_than(float, Scalar::Float(5.0))).may_be_true);
    let range = compare(float, CompareOp::Eq, Scalar::Float(5.0));
    assert!(!found.of_chunk(&range).may_be_true);
    let statistics = Statistics::int64(Some(3), Some(1), None, Some(0), false);
    let found = zones("int64 x", &DataType::Int64, statistics, true);
    assert!(found.of_chunk(&more_than(INT, Scalar::Int(5))).may_be_true);
}
