//! A plan as a table whose first column is a tree.

use plinth_sql::{Explained, Step};

use super::grid::{Cell, Column, Grid};
use super::print::{Look, Printer};
use crate::error::Result;
use crate::{screen, units};

/// Prints a plan, with what its operators did if it ran.
pub(crate) fn print(explained: &Explained, printer: &mut Printer, look: &Look) -> Result {
    let ran = explained.ran.is_some();
    let mut columns = vec![("operator", false), ("expected", true)];
    if ran {
        columns.extend([("rows", true), ("time", true), ("memory", true)]);
    }
    columns.push(("of", false));
    let column = |(name, right): &(&str, bool)| Column { name: Cell::new(name, None), right: *right };
    let mut grid = Grid { columns: columns.iter().map(column).collect(), ..Grid::default() };
    let mut spilled = 0;
    add(&mut grid, &explained.root, "", None, ran, &mut spilled);
    let planned = units::duration(explained.planned);
    let summary = match explained.ran {
        None => format!("planned in {planned}; EXPLAIN ANALYZE runs it, EXPLAIN VERBOSE shows all steps of planning"),
        Some((rows, elapsed)) => {
            let spilled = if spilled > 0 { format!(", {} spilled", units::bytes(spilled)) } else { String::new() };
            let elapsed = units::duration(elapsed);
            format!(
                "{} in {elapsed}, planned in {planned}{spilled}; times are those of all threads",
                units::counted(rows, "row")
            )
        }
    };
    let mut lines = vec![summary];
    lines.extend(explained.alone.as_ref().map(|why| format!("no worker has a part in it: {why}")));
    lines.extend(explained.far.map(|far| far.line()));
    printer.show(&grid, &lines, look)
}

/// Adds an operator, behind the lines of the branches that lead to it, and all below it. `last` is whether it is the last of its
/// neighbours; the root has none.
fn add(grid: &mut Grid, step: &Step, before: &str, last: Option<bool>, ran: bool, spilled: &mut u64) {
    let (branch, below) = match last {
        None => ("", ""),
        Some(true) => ("└─ ", "   "),
        Some(false) => ("├─ ", "│  "),
    };
    let expected = match step.expected {
        Some((rows, true)) => units::count(rows),
        Some((rows, false)) => format!("~{}", units::count(rows)),
        None => String::new(),
    };
    let mut cells = vec![format!("{before}{branch}{}", step.name), expected];
    if ran {
        let done = step.done.unwrap_or_default();
        *spilled += done.spilled;
        cells.push(done.rows.map(units::count).unwrap_or_default());
        cells.push(done.time.map(units::duration).unwrap_or_default());
        cells.push(done.memory.map(units::bytes).unwrap_or_default());
    }
    cells.push(screen::spelled(&step.details).into_owned());
    grid.rows.push(cells.iter().map(|text| Cell::new(text, None)).collect());
    let before = format!("{before}{below}");
    let many = step.inputs.len();
    for (at, input) in step.inputs.iter().enumerate() {
        add(grid, input, &before, Some(at + 1 == many), ran, spilled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::grid::Paint;

    #[test]
    fn branches_lead_to_operators() {
        let step = |name: &str, inputs: Vec<Step>| Step {
            name: name.to_owned(),
            details: String::new(),
            expected: Some((1_000, false)),
            done: None,
            inputs,
        };
        let tree = step("a", vec![step("b", vec![step("c", vec![])]), step("d", vec![step("e", vec![])])]);
        let column = |name: &str| Column { name: Cell::new(name, None), right: false };
        let mut grid = Grid { columns: ["operator", "expected", "of"].map(column).into(), ..Grid::default() };
        add(&mut grid, &tree, "", None, false, &mut 0);
        let lines = grid.table(None, Paint::default()).0;
        let names: Vec<&str> = lines.iter().skip(2).map(|line| line.split(" │").next().unwrap().trim_end()).collect();
        assert_eq!(names, ["a", "├─ b", "│  └─ c", "└─ d", "   └─ e"]);
    }
}
