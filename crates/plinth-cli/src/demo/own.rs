//! The user's own files in the demo: their tables, and queries picked from their columns.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use arrow_schema::DataType;
use plinth_format::File;
use plinth_ingest::inputs;

use super::{Pair, Query};
use crate::error::Result;
use crate::table::shorten;

/// Each path is a table, named by its stem.
pub(super) fn inputs(paths: &[PathBuf]) -> Result<Vec<(String, Vec<PathBuf>)>> {
    let mut taken = HashSet::new();
    let mut tables = Vec::with_capacity(paths.len());
    for path in paths {
        let files = inputs::expand(&[path])?;
        let stem = name_of(path);
        let mut name = stem.clone();
        let mut n = 2;
        while !taken.insert(name.clone()) {
            name = format!("{stem}_{n}");
            n += 1;
        }
        tables.push((name, files));
    }
    Ok(tables)
}

/// A name that needs no quotes.
fn name_of(path: &Path) -> String {
    let absolute = path.canonicalize();
    let stem = absolute.as_deref().unwrap_or(path).file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let name = name.trim_matches('_');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name.to_owned() } else { format!("t{name}") }
}

/// Counts, distinct values, the most frequent values and extremes of a few columns of each table.
pub(super) fn queries(pairs: &[Pair]) -> Result<Vec<Query>> {
    let mut queries = Vec::new();
    for pair in pairs {
        let file = File::open(&pair.plinth)?;
        let mut texts = Vec::new();
        let mut numbers = Vec::new();
        for field in file.schema().fields() {
            let bytes = file.statistics(&field.name().as_str().into()).map_or(0, |s| s.stored_bytes);
            match field.data_type() {
                DataType::Utf8View | DataType::BinaryView => texts.push((bytes, field.name().clone())),
                t if t.is_integer() || t.is_temporal() || matches!(t, DataType::Decimal128(..)) => {
                    numbers.push((bytes, field.name().clone()));
                }
                _ => {}
            }
        }
        queries.extend(table_queries(&pair.name, &pick(texts), &pick(numbers)));
    }
    Ok(queries)
}

/// The column with most bytes and the one in the middle: a hard one and a usual one.
fn pick(mut columns: Vec<(u64, String)>) -> Vec<String> {
    columns.sort_by(|a, b| b.cmp(a));
    let middle = columns.len() / 2;
    let picked = [0, middle].into_iter().take(if middle == 0 { 1 } else { 2 });
    picked.filter_map(|at| columns.get(at)).map(|(_, name)| name.clone()).collect()
}

fn table_queries(table: &str, texts: &[String], numbers: &[String]) -> Vec<Query> {
    let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let from = quote(table);
    let mut queries = Vec::new();
    let mut push = |what: &str, column: &str, sql: String| {
        queries.push(Query { title: format!("{table}: {what}{}", shorten(column, 30)), sql });
    };
    push("count", "", format!("SELECT count(*) FROM {from}"));
    for name in texts.iter().chain(numbers) {
        let c = quote(name);
        push("distinct ", name, format!("SELECT count(DISTINCT {c}), count({c}) FROM {from}"));
    }
    for name in texts.iter().chain(numbers.last()) {
        let c = quote(name);
        push(
            "top 10 ",
            name,
            format!("SELECT {c}, count(*) AS n FROM {from} GROUP BY {c} ORDER BY n DESC, {c} LIMIT 10"),
        );
    }
    for name in texts.first().into_iter().chain(numbers) {
        let c = quote(name);
        push("range of ", name, format!("SELECT min({c}), max({c}) FROM {from} WHERE {c} IS NOT NULL"));
    }
    queries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_quotes() {
        assert_eq!(name_of(Path::new("/x/Hits 2024-01.parquet")), "hits_2024_01");
        assert_eq!(name_of(Path::new("/x/2024.parquet")), "t2024");
        assert_eq!(name_of(Path::new("/x/*.parquet")), "t");
    }

    #[test]
    fn columns_are_picked_by_their_bytes() {
        let columns = [(5, "a"), (9, "b"), (1, "c")].map(|(n, name)| (n, name.to_owned()));
        assert_eq!(pick(columns.to_vec()), ["b", "a"]);
        assert_eq!(pick(columns[..1].to_vec()), ["a"]);
        assert_eq!(pick(Vec::new()), Vec::<String>::new());
        let queries = table_queries("t", &["a\"b".to_owned()], &[]);
        assert!(queries.iter().any(|q| q.sql.contains("count(DISTINCT \"a\"\"b\")")));
    }
}
