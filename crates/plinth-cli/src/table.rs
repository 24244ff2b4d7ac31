//! Plain tables for reports: aligned columns, no frame.

use crate::screen;

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells under a header.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        Self { columns: columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| screen::spelled(cell).into_owned()).collect());
    }

    /// The lines, without blanks at their ends.
    pub(crate) fn lines(&self) -> Vec<String> {
        let width = |at: usize, name: &str| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            cells.chain([name.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = self.columns.iter().enumerate().map(|(at, (name, _))| width(at, name)).collect();
        let line = |cells: &[String]| {
            let mut text = String::new();
            for (at, ((_, align), width)) in self.columns.iter().zip(&widths).enumerate() {
                let cell = cells.get(at).map_or("", String::as_str);
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                if at > 0 {
                    text.push_str("  ");
                }
                match align {
                    Align::Left => text.extend([cell, &padding]),
                    Align::Right => text.extend([padding.as_str(), cell]),
                }
            }
            text.trim_end().to_owned()
        };
        let header: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let mut lines = vec![line(&header)];
        lines.extend(self.rows.iter().map(|row| line(row)));
        lines
    }
}

/// A text of at most `width` characters: longer ones are cut and marked, what can't be shown is spelled out.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    // More than enough characters, so that a long text takes no longer than what is shown of it.
    let head: String = text.chars().take(width + 1).collect();
    let clean = screen::spelled(&head);
    if clean.chars().count() <= width {
        return clean.into_owned();
    }
    clean.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_align_by_characters() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(vec!["é".into(), "10".into()]);
        table.row(vec!["abcdef".into()]);
        assert_eq!(table.lines(), ["name     n", "é       10", "abcdef"]);
        assert_eq!(shorten("abc\ndef", 6), "abc\\n…");
        assert_eq!(shorten("abc", 3), "abc");
    }
}
