//! What tables there are, and what is in them.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::{MemTable, TableType};
use plinth_datafusion::ParquetTable;
use plinth_sql::{Session, key_and_indexes, plinth_files, type_name, written};

use crate::error::Result;
use crate::sql::grid::{Cell, Column, Grid, cut};
use crate::sql::print::Look;
use crate::{screen, units};

/// The tables, a line each.
pub(super) async fn tables(session: &Session, look: &Look) -> Result<Vec<String>> {
    let mut grid = grid(&[("table", false), ("kind", false), ("rows", true), ("bytes", true), ("files", true)]);
    for name in session.table_names() {
        // One that can't be opened is there nevertheless.
        let cells = match session.context().table_provider(TableReference::bare(name.as_str())).await {
            Ok(table) => {
                let [rows, bytes, files] = match plinth_files(&table) {
                    Some((files, rows, bytes)) => [units::count(rows), units::bytes(bytes), units::count(files)],
                    None => Default::default(),
                };
                [name, kind(&table), rows, bytes, files]
            }
            Err(_) => [name, "unreadable".to_owned(), String::new(), String::new(), String::new()],
        };
        add(&mut grid, &cells);
    }
    if grid.rows.is_empty() {
        return Ok(vec!["no tables: --db DIR makes tables of a folder's files, FROM 'path' reads a file".to_owned()]);
    }
    Ok(grid.table(look.width, look.paint).0)
}

/// Where tables are kept.
pub(super) fn databases(session: &Session, folder: Option<&Path>, look: &Look) -> Vec<String> {
    let mut grid = grid(&[("database", false), ("folder", false), ("tables", true)]);
    let (name, place) = match folder {
        Some(folder) => {
            let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
            let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, whole.display().to_string())
        }
        None => ("memory".to_owned(), String::new()),
    };
    add(&mut grid, &[name, place, units::count(session.table_names().len() as u64)]);
    grid.table(look.width, look.paint).0
}

/// The functions whose names hold a text, by kind.
pub(super) fn functions(session: &Session, text: Option<&str>, look: &Look) -> Vec<String> {
    let state = session.context().state();
    let wanted = text.unwrap_or_default().to_lowercase();
    let mut found: Vec<(String, &str)> = Vec::new();
    found.extend(state.scalar_functions().keys().map(|name| (name.clone(), "scalar")));
    found.extend(state.aggregate_functions().keys().map(|name| (name.clone(), "aggregate")));
    found.extend(state.window_functions().keys().map(|name| (name.clone(), "window")));
    found.extend(state.table_functions().keys().map(|name| (name.clone(), "table")));
    found.retain(|(name, _)| name.to_lowercase().contains(&wanted));
    found.sort();
    if found.is_empty() {
        return vec![screen::spelled(&format!("no function whose name holds {wanted:?}")).into_owned()];
    }
    let mut grid = grid(&[("function", false), ("kind", false)]);
    for (name, kind) in found {
        add(&mut grid, &[name, kind.to_owned()]);
    }
    grid.table(look.width, look.paint).0
}

async fn open(session: &Session, name: &str) -> Result<Arc<dyn TableProvider>> {
    let context = session.context();
    match context.table_provider(TableReference::bare(name)).await {
        Ok(table) => Ok(table),
        // The name may be one of several parts, or in another case.
        Err(error) => Ok(context.table_provider(TableReference::from(name)).await.map_err(|_| error)?),
    }
}

/// The columns of a table with its key and indexes, and how large it is.
pub(super) async fn table(session: &Session, name: &str, look: &Look) -> Result<Vec<String>> {
    let table = open(session, name).await?;
    let keyed = key_and_indexes(&table);
    let key = keyed.as_ref().map(|(key, _)| key.clone()).unwrap_or_default();
    let mut grid = grid(&[("column", false), ("type", false), ("null", false), ("key", false)]);
    let schema = table.schema();
    for field in schema.fields() {
        let null = if field.is_nullable() { "yes" } else { "no" };
        let place = key.iter().position(|column| column == field.name());
        let place = match place {
            Some(_) if key.len() == 1 => "key".to_owned(),
            Some(at) => format!("key {}", at + 1),
            None => String::new(),
        };
        add(&mut grid, &[field.name().clone(), type_name(field.data_type()), null.to_owned(), place]);
    }
    if key.is_empty() {
        grid.columns.truncate(3);
        grid.rows.iter_mut().for_each(|row| row.truncate(3));
    }
    let mut lines = grid.table(look.width, look.paint).0;
    let fit = |line: String| look.width.map_or(line.clone(), |width| cut(&line, width));
    for (name, columns, unique) in keyed.map(|(_, indexes)| indexes).unwrap_or_default() {
        let unique = if unique { "unique index" } else { "index" };
        let line = format!("{unique} {} ({})", written(&name), names(&columns));
        lines.push(fit(screen::spelled(&line).into_owned()));
    }
    let mut summary = format!("{}: {}", kind(&table), units::counted(schema.fields().len() as u64, "column"));
    if let Some((files, rows, bytes)) = plinth_files(&table) {
        let (rows, files) = (units::counted(rows, "row"), units::counted(files, "file"));
        summary = format!("{summary}, {rows}, {} in {files}", units::bytes(bytes));
    }
    lines.push(look.paint.style("2", &fit(summary)));
    Ok(lines)
}

/// The statements that would make a table, or all tables.
pub(super) async fn statements(session: &Session, name: Option<&str>) -> Result<Vec<String>> {
    let names = name.map_or_else(|| session.table_names(), |name| vec![name.to_owned()]);
    let mut lines = Vec::new();
    for name in names {
        let table = open(session, &name).await?;
        match table.get_table_definition() {
            Some(definition) => lines.push(format!("{definition};")),
            None => lines.extend(created(&name, &table)),
        }
    }
    Ok(lines.iter().map(|line| screen::spelled(line).into_owned()).collect())
}

fn created(name: &str, table: &Arc<dyn TableProvider>) -> Vec<String> {
    let (key, indexes) = key_and_indexes(table).unwrap_or_default();
    let mut parts: Vec<String> = Vec::new();
    for field in table.schema().fields() {
        let null = if field.is_nullable() { "" } else { " NOT NULL" };
        parts.push(format!("{} {}{null}", written(field.name()), type_name(field.data_type())));
    }
    if !key.is_empty() {
        parts.push(format!("PRIMARY KEY ({})", names(&key)));
    }
    let mut lines = vec![format!("CREATE TABLE {} ({});", written(name), parts.join(", "))];
    for (index, columns, unique) in indexes {
        let unique = if unique { "UNIQUE " } else { "" };
        lines.push(format!("CREATE {unique}INDEX {} ON {} ({});", written(&index), written(name), names(&columns)));
    }
    lines
}

fn names(columns: &[String]) -> String {
    columns.iter().map(|column| written(column)).collect::<Vec<_>>().join(", ")
}

fn grid(columns: &[(&str, bool)]) -> Grid {
    let column = |(name, right): &(&str, bool)| Column { name: Cell::new(name, None), right: *right };
    Grid { columns: columns.iter().map(column).collect(), ..Grid::default() }
}

fn add(grid: &mut Grid, cells: &[String]) {
    grid.rows.push(cells.iter().map(|text| Cell::new(text, None)).collect());
}

fn kind(table: &Arc<dyn TableProvider>) -> String {
    let any: &dyn Any = table.as_ref();
    match table.table_type() {
        TableType::View => "view".to_owned(),
        _ if plinth_files(table).is_some() => "plinth".to_owned(),
        _ if any.is::<MemTable>() => "memory".to_owned(),
        _ if any.is::<ParquetTable>() => "parquet".to_owned(),
        _ => match any.downcast_ref::<ListingTable>() {
            Some(table) => table.options().format.get_ext(),
            None => "table".to_owned(),
        },
    }
}
