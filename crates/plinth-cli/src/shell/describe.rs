//! What tables there are, and what is in them.

use std::any::Any;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::{MemTable, TableType};
use plinth_sql::{Session, plinth_files};

use crate::error::Result;
use crate::sql::grid::{Cell, Column, Grid, cut};
use crate::sql::print::Look;
use crate::units;

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
        grid.rows.push(cells.iter().map(|text| Cell::new(text, None)).collect());
    }
    if grid.rows.is_empty() {
        return Ok(vec!["no tables: --db DIR makes tables of a folder's files, FROM 'path' reads a file".to_owned()]);
    }
    Ok(grid.table(look.width, look.paint).0)
}

/// The columns of a table, and how large it is.
pub(super) async fn table(session: &Session, name: &str, look: &Look) -> Result<Vec<String>> {
    let context = session.context();
    let table = match context.table_provider(TableReference::bare(name)).await {
        Ok(table) => table,
        // The name may be one of several parts, or in another case.
        Err(error) => match context.table_provider(TableReference::from(name)).await {
            Ok(table) => table,
            Err(_) => return Err(error.into()),
        },
    };
    let mut grid = grid(&[("column", false), ("type", false), ("null", false)]);
    let schema = table.schema();
    for field in schema.fields() {
        let null = if field.is_nullable() { "yes" } else { "no" };
        let cells = [field.name().as_str(), &field.data_type().to_string(), null];
        grid.rows.push(cells.iter().map(|text| Cell::new(text, None)).collect());
    }
    let mut lines = grid.table(look.width, look.paint).0;
    let mut summary = format!("{}: {}", kind(&table), units::counted(schema.fields().len() as u64, "column"));
    if let Some((files, rows, bytes)) = plinth_files(&table) {
        let (rows, files) = (units::counted(rows, "row"), units::counted(files, "file"));
        summary = format!("{summary}, {rows}, {} in {files}", units::bytes(bytes));
    }
    lines.push(look.paint.style("2", &look.width.map_or(summary.clone(), |width| cut(&summary, width))));
    Ok(lines)
}

fn grid(columns: &[(&str, bool)]) -> Grid {
    let column = |(name, right): &(&str, bool)| Column { name: Cell::new(name, None), right: *right };
    Grid { columns: columns.iter().map(column).collect(), ..Grid::default() }
}

fn kind(table: &Arc<dyn TableProvider>) -> String {
    let any: &dyn Any = table.as_ref();
    match table.table_type() {
        TableType::View => "view".to_owned(),
        _ if plinth_files(table).is_some() => "plinth".to_owned(),
        _ if any.is::<MemTable>() => "memory".to_owned(),
        _ => match any.downcast_ref::<ListingTable>() {
            Some(table) => table.options().format.get_ext(),
            None => "table".to_owned(),
        },
    }
}
