//! What Parquet files say of themselves: `parquet_schema('x')` and `parquet_metadata('x')`.

use std::fs::File;

use datafusion::common::{Result, exec_datafusion_err};
use datafusion::sql::sqlparser::ast::Query;
use parquet::basic::Type as Physical;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;

use super::templates;

fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn opened(path: &str) -> Result<ParquetMetaData> {
    plinth_io::regular::check(std::path::Path::new(path)).map_err(|e| exec_datafusion_err!("{e}"))?;
    let file = File::open(path).map_err(|e| exec_datafusion_err!("{path}: {e}"))?;
    let reader = SerializedFileReader::new(file).map_err(|e| exec_datafusion_err!("{path}: {e}"))?;
    Ok(reader.metadata().clone())
}

/// A row for each node of the schemas of files, the root first.
pub(super) fn schema(paths: &[String]) -> Result<Box<Query>> {
    let mut rows = Vec::new();
    for path in paths {
        let metadata = opened(path)?;
        let mut waiting: Vec<&Type> = vec![metadata.file_metadata().schema()];
        while let Some(node) = waiting.pop() {
            let info = node.get_basic_info();
            let (kind, length, children) = match node {
                Type::PrimitiveType { physical_type, type_length, .. } => {
                    let length = (*physical_type == Physical::FIXED_LEN_BYTE_ARRAY).then(|| type_length.to_string());
                    (text(&physical_type.to_string()), length, None)
                }
                Type::GroupType { fields, .. } => {
                    waiting.extend(fields.iter().rev().map(AsRef::as_ref));
                    ("CAST(NULL AS VARCHAR)".to_owned(), None, Some(fields.len().to_string()))
                }
            };
            let repetition = match info.has_repetition() {
                true => text(&info.repetition().to_string()),
                false => "CAST(NULL AS VARCHAR)".to_owned(),
            };
            let logical = match info.logical_type_ref() {
                Some(logical) => text(&format!("{logical:?}")),
                None => "CAST(NULL AS VARCHAR)".to_owned(),
            };
            let number =
                |value: Option<String>| format!("CAST({} AS BIGINT)", value.unwrap_or_else(|| "NULL".to_owned()));
            rows.push(format!(
                "({}, {}, {kind}, {}, {repetition}, {}, {}, {logical})",
                text(path),
                text(info.name()),
                number(length),
                number(children),
                text(&info.converted_type().to_string()),
            ));
        }
    }
    let names = "file_name, name, type, type_length, repetition_type, num_children, converted_type, logical_type";
    values(&rows, names)
}

/// A row for each column of each row group of files.
pub(super) fn metadata(paths: &[String]) -> Result<Box<Query>> {
    let mut rows = Vec::new();
    for path in paths {
        let metadata = opened(path)?;
        for (group, row_group) in metadata.row_groups().iter().enumerate() {
            for (at, column) in row_group.columns().iter().enumerate() {
                let nulls = column.statistics().and_then(|statistics| statistics.null_count_opt());
                let nulls = nulls.map_or_else(|| "NULL".to_owned(), |nulls| nulls.to_string());
                rows.push(format!(
                    "({}, {group}, {}, {}, {}, {at}, {}, {}, {}, CAST({nulls} AS BIGINT), {}, {}, {})",
                    text(path),
                    row_group.num_rows(),
                    row_group.num_columns(),
                    row_group.total_byte_size(),
                    column.num_values(),
                    text(&column.column_path().parts().join(", ")),
                    text(&column.column_type().to_string()),
                    text(&column.compression().to_string()),
                    column.compressed_size(),
                    column.uncompressed_size(),
                ));
            }
        }
    }
    let names = "file_name, row_group_id, row_group_num_rows, row_group_num_columns, row_group_bytes, column_id, num_values, \
                 path_in_schema, type, stats_null_count, compression, total_compressed_size, total_uncompressed_size";
    values(&rows, names)
}

fn values(rows: &[String], names: &str) -> Result<Box<Query>> {
    if rows.is_empty() {
        let nulls: Vec<String> = names.split(',').map(|name| format!("NULL AS {name}")).collect();
        return templates::query(&format!("SELECT {} WHERE false", nulls.join(", ")));
    }
    templates::query(&format!("SELECT * FROM (VALUES {}) AS t({names})", rows.join(", ")))
}
