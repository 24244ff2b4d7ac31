//! The types of SQL, as clients of ODBC and JDBC ask for them.

use arrow_array::RecordBatch;
use arrow_flight::sql::metadata::{XdbcTypeInfo, XdbcTypeInfoDataBuilder};
use arrow_flight::sql::{CommandGetXdbcTypeInfo, Nullable, Searchable, XdbcDataType, XdbcDatetimeSubcode};
use tonic::Status;

use crate::failure::internal;

/// A type: its name in SQL, its number in ODBC, and how many digits, bits or letters it has.
type Kind = (&'static str, XdbcDataType, Option<i32>);

const KINDS: [Kind; 17] = [
    ("BOOLEAN", XdbcDataType::XdbcBit, Some(1)),
    ("TINYINT", XdbcDataType::XdbcTinyint, Some(3)),
    ("TINYINT UNSIGNED", XdbcDataType::XdbcTinyint, Some(3)),
    ("SMALLINT", XdbcDataType::XdbcSmallint, Some(5)),
    ("SMALLINT UNSIGNED", XdbcDataType::XdbcSmallint, Some(5)),
    ("INT", XdbcDataType::XdbcInteger, Some(10)),
    ("INT UNSIGNED", XdbcDataType::XdbcInteger, Some(10)),
    ("BIGINT", XdbcDataType::XdbcBigint, Some(19)),
    ("BIGINT UNSIGNED", XdbcDataType::XdbcBigint, Some(20)),
    ("REAL", XdbcDataType::XdbcReal, Some(24)),
    ("DOUBLE", XdbcDataType::XdbcDouble, Some(53)),
    ("DECIMAL", XdbcDataType::XdbcDecimal, Some(76)),
    ("VARCHAR", XdbcDataType::XdbcVarchar, Some(i32::MAX)),
    ("BYTEA", XdbcDataType::XdbcVarbinary, Some(i32::MAX)),
    ("DATE", XdbcDataType::XdbcDate, Some(10)),
    ("TIME", XdbcDataType::XdbcTime, Some(18)),
    ("TIMESTAMP", XdbcDataType::XdbcTimestamp, Some(29)),
];

fn info((name, kind, size): Kind) -> XdbcTypeInfo {
    let is_text = matches!(kind, XdbcDataType::XdbcVarchar);
    let quoted =
        is_text || matches!(kind, XdbcDataType::XdbcDate | XdbcDataType::XdbcTime | XdbcDataType::XdbcTimestamp);
    let is_number = !quoted && !matches!(kind, XdbcDataType::XdbcVarbinary | XdbcDataType::XdbcBit);
    let binary = matches!(kind, XdbcDataType::XdbcReal | XdbcDataType::XdbcDouble);
    let is_decimal = matches!(kind, XdbcDataType::XdbcDecimal);
    let mark = |quoted: bool| quoted.then(|| "'".to_owned());
    // The subcode of dates has the number of the year's.
    let (sql_data_type, datetime_subcode) = match kind {
        XdbcDataType::XdbcDate => (XdbcDataType::XdbcDatetime, Some(XdbcDatetimeSubcode::XdbcSubcodeYear)),
        XdbcDataType::XdbcTime => (XdbcDataType::XdbcDatetime, Some(XdbcDatetimeSubcode::XdbcSubcodeTime)),
        XdbcDataType::XdbcTimestamp => (XdbcDataType::XdbcDatetime, Some(XdbcDatetimeSubcode::XdbcSubcodeTimestamp)),
        other => (other, None),
    };
    XdbcTypeInfo {
        type_name: name.to_owned(),
        data_type: kind,
        column_size: size,
        literal_prefix: mark(quoted),
        literal_suffix: mark(quoted),
        create_params: is_decimal.then(|| vec!["precision".to_owned(), "scale".to_owned()]),
        nullable: Nullable::NullabilityNullable,
        case_sensitive: is_text,
        searchable: Searchable::Full,
        unsigned_attribute: is_number.then(|| name.ends_with("UNSIGNED")),
        fixed_prec_scale: false,
        auto_increment: is_number.then_some(false),
        local_type_name: Some(name.to_owned()),
        minimum_scale: is_decimal.then_some(0),
        maximum_scale: is_decimal.then_some(76),
        sql_data_type,
        datetime_subcode,
        num_prec_radix: is_number.then_some(if binary { 2 } else { 10 }),
        interval_precision: None,
    }
}

/// All types, or those of a number.
pub(super) fn types(query: CommandGetXdbcTypeInfo) -> Result<RecordBatch, Status> {
    let mut all = XdbcTypeInfoDataBuilder::new();
    KINDS.into_iter().for_each(|kind| all.append(info(kind)));
    query.into_builder(&all.build().map_err(internal)?).build().map_err(internal)
}
