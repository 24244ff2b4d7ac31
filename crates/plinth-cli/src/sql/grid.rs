//! Rows laid out for a screen: columns that fit it, or one value a line.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{screen, units};

/// What stands between two columns, and how wide it is.
const BAR: &str = " │ ";
const BAR_WIDTH: usize = 3;
/// Columns are not made narrower than this to make room for others; rather, some are left out.
const NARROW: usize = 8;

/// A text fit for a screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    width: usize,
    null: bool,
}

impl Cell {
    /// A text, its control characters spelled out, cut to a width if one is given.
    pub(crate) fn new(text: &str, limit: Option<usize>) -> Self {
        let text = printable(text, limit);
        let width = text.width();
        match limit {
            Some(limit) if width > limit => {
                let text = cut(&text, limit);
                Self { width: text.width(), text, null: false }
            }
            _ => Self { text, width, null: false },
        }
    }

    /// No value.
    pub(crate) fn null() -> Self {
        Self { text: "NULL".to_owned(), width: 4, null: true }
    }
}

/// The head of a column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: Cell,
    /// Numbers stand at the right.
    pub(crate) right: bool,
}

/// Rows under the heads of their columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// How many rows are left out, and before which of those that are here.
    pub(crate) gap: Option<(usize, u64)>,
}

/// Colours, or none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Paint {
    pub(crate) on: bool,
}

impl Paint {
    /// A style of ANSI's: `1` bold, `2` dim, `31` red.
    pub(crate) fn style(self, code: &str, text: &str) -> String {
        if self.on && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A column of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Column { at: usize, width: usize },
    LeftOut,
}

impl Grid {
    /// The lines of a table no wider than the screen, and how many columns it has no room for.
    pub(crate) fn table(&self, screen: Option<usize>, paint: Paint) -> (Vec<String>, usize) {
        let natural: Vec<usize> = self.columns.iter().enumerate().map(|(at, _)| self.natural_width(at)).collect();
        let slots = match screen {
            Some(screen) => fit(&natural, screen),
            None => natural.iter().enumerate().map(|(at, &width)| Slot::Column { at, width }).collect(),
        };
        let shown = slots.iter().filter(|slot| **slot != Slot::LeftOut).count();

        let names: Vec<Cell> = self.columns.iter().map(|column| column.name.clone()).collect();
        let mut lines = vec![self.line(&slots, &names, paint, "1")];
        let rules: Vec<String> = slots.iter().map(|slot| "─".repeat(width_of(*slot))).collect();
        lines.push(paint.style("2", &rules.join("─┼─")));
        for (at, row) in self.rows.iter().enumerate() {
            lines.extend(self.gap_line(at, screen, paint));
            lines.push(self.line(&slots, row, paint, ""));
        }
        lines.extend(self.gap_line(self.rows.len(), screen, paint));
        (lines, natural.len() - shown)
    }

    /// One value a line under the number of its row, no wider than the screen: long values go on below.
    pub(crate) fn vertical(&self, screen: Option<usize>, paint: Paint) -> Vec<String> {
        let names = self.columns.iter().map(|column| column.name.width).max().unwrap_or(0);
        // On the smallest of screens the values have no names.
        let names = match screen {
            Some(screen) if screen < 3 * BAR_WIDTH => 0,
            Some(screen) => names.min(screen / 3),
            None => names,
        };
        let room = screen.map(|screen| screen - if names > 0 { names + BAR_WIDTH } else { 0 });
        let mut lines = Vec::new();
        let mut number = 1;
        for (at, row) in self.rows.iter().enumerate() {
            lines.extend(self.gap_line(at, screen, paint));
            if let Some((before, left_out)) = self.gap
                && before == at
            {
                number += left_out;
            }
            let title = format!("── row {} ──", units::count(number));
            lines.push(paint.style("2", &screen.map_or(title.clone(), |screen| cut(&title, screen))));
            number += 1;
            for (column, cell) in self.columns.iter().zip(row) {
                let name = pad(&cut(&column.name.text, names), names, false);
                for (piece_at, piece) in wrap(&cell.text, room).into_iter().enumerate() {
                    let value = if cell.null { paint.style("2", &piece) } else { piece };
                    let name = if piece_at == 0 { paint.style("1", &name) } else { " ".repeat(names) };
                    let bar = if names > 0 { paint.style("2", BAR) } else { String::new() };
                    lines.push(format!("{name}{bar}{value}").trim_end().to_owned());
                }
            }
        }
        lines.extend(self.gap_line(self.rows.len(), screen, paint));
        lines
    }

    fn natural_width(&self, at: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width);
        cells.chain(self.columns.get(at).map(|column| column.name.width)).max().unwrap_or(0).max(1)
    }

    fn line(&self, slots: &[Slot], cells: &[Cell], paint: Paint, style: &str) -> String {
        let mut line = String::new();
        for (i, slot) in slots.iter().enumerate() {
            if i > 0 {
                line.push_str(&paint.style("2", BAR));
            }
            let Slot::Column { at, width } = *slot else {
                line.push_str(&paint.style("2", "…"));
                continue;
            };
            let right = self.columns.get(at).is_some_and(|column| column.right);
            let Some(cell) = cells.get(at) else { continue };
            let text = if cell.width > width { cut(&cell.text, width) } else { cell.text.clone() };
            let style = if cell.null { "2" } else { style };
            let padded = pad(&text, width, right);
            line.push_str(&if style.is_empty() { padded } else { paint.style(style, &padded) });
        }
        line.truncate(line.trim_end().len());
        line
    }

    fn gap_line(&self, at: usize, screen: Option<usize>, paint: Paint) -> Option<String> {
        let (before, left_out) = self.gap?;
        (before == at).then(|| {
            let text = format!("⋮ {} left out", units::counted(left_out, "row"));
            paint.style("2", &screen.map_or(text.clone(), |screen| cut(&text, screen)))
        })
    }
}

fn width_of(slot: Slot) -> usize {
    match slot {
        Slot::Column { width, .. } => width,
        Slot::LeftOut => 1,
    }
}

/// Which columns a screen has room for, the first and last ones rather than those between, and how wide each is.
fn fit(natural: &[usize], screen: usize) -> Vec<Slot> {
    let narrow = |at: usize| natural.get(at).map_or(0, |&width| width.min(NARROW));
    let bars = BAR_WIDTH * natural.len().saturating_sub(1);
    let least: usize = (0..natural.len()).map(narrow).sum();
    if least.saturating_add(bars) <= screen {
        let widths = share(natural, screen - bars);
        return widths.into_iter().enumerate().map(|(at, width)| Slot::Column { at, width }).collect();
    }
    // From both ends, as long as there is room for another and for the mark that some are missing.
    let (mut left, mut right) = (0, natural.len());
    let mut used = 1;
    while left < right {
        let from_left = left <= natural.len() - right;
        let at = if from_left { left } else { right - 1 };
        used += narrow(at) + BAR_WIDTH;
        if used > screen {
            break;
        }
        if from_left { left += 1 } else { right -= 1 }
    }
    if left == 0 {
        // Not even that: what there is shows the beginning of the first.
        let width = natural.first().map_or(1, |&width| width.min(screen).max(1));
        return vec![Slot::Column { at: 0, width }];
    }
    let shown: Vec<usize> = (0..left).chain(right..natural.len()).collect();
    let wanted: Vec<usize> = shown.iter().map(|&at| natural.get(at).copied().unwrap_or(1)).collect();
    let widths = share(&wanted, screen.saturating_sub(1 + BAR_WIDTH * shown.len()));
    let mut slots: Vec<Slot> = shown.iter().zip(widths).map(|(&at, width)| Slot::Column { at, width }).collect();
    slots.insert(left, Slot::LeftOut);
    slots
}

/// Divides a width: who wants little gets it, the others get as much as each other.
fn share(wanted: &[usize], available: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&at| wanted.get(at).copied());
    let mut widths = vec![0; wanted.len()];
    let mut left = available;
    for (given, at) in order.into_iter().enumerate() {
        let fair = left / (wanted.len() - given);
        let width = wanted.get(at).map_or(0, |&width| width.min(fair)).max(1);
        if let Some(slot) = widths.get_mut(at) {
            *slot = width;
        }
        left = left.saturating_sub(width);
    }
    widths
}

/// A text of at most this width; what is cut off leaves a mark.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    match width {
        0 => String::new(),
        _ => format!("{}…", prefix(text, width - 1)),
    }
}

/// The longest beginning that is no wider than this.
fn prefix(text: &str, width: usize) -> &str {
    let mut end = 0;
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        end = at + c.len_utf8();
    }
    let mut prefix = text.get(..end).unwrap_or_default();
    // Several characters together may be wider than each by itself.
    while prefix.width() > width {
        let last = prefix.chars().next_back().map_or(1, char::len_utf8);
        prefix = prefix.get(..prefix.len() - last).unwrap_or_default();
    }
    prefix
}

fn pad(text: &str, width: usize, right: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(text.width()));
    if right { blanks + text } else { text.to_owned() + &blanks }
}

/// A text in pieces of at most this width.
fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return vec![text.to_owned()] };
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let piece = prefix(rest, width);
        let taken = if piece.is_empty() && !rest.is_empty() {
            // A character wider than the screen.
            pieces.push(cut("……", width));
            rest.chars().next().map_or(rest.len(), char::len_utf8)
        } else {
            pieces.push(piece.to_owned());
            piece.len()
        };
        rest = rest.get(taken..).unwrap_or_default();
        if rest.is_empty() {
            return pieces;
        }
    }
}

/// Spells out characters that would move the cursor or turn the direction of writing. Of texts much longer than the
/// limit only the beginning is looked at.
fn printable(text: &str, limit: Option<usize>) -> String {
    let mut shown = String::with_capacity(text.len().min(256));
    // Characters without a width of their own do not count here, but must end somewhere too.
    let most = limit.map_or(usize::MAX, |limit| limit.saturating_mul(4).saturating_add(16));
    text.chars().take(most).for_each(|c| screen::spell(&mut shown, c));
    if limit.is_some() && text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid(names: &[&str], rows: &[&[&str]]) -> Grid {
        let cell = |text: &&str| if *text == "NULL" { Cell::null() } else { Cell::new(text, None) };
        let right = |at: usize| rows.iter().all(|row| row[at].parse::<f64>().is_ok());
        Grid {
            columns: names.iter().enumerate().map(|(i, n)| Column { name: cell(n), right: right(i) }).collect(),
            rows: rows.iter().map(|row| row.iter().map(cell).collect()).collect(),
            gap: None,
        }
    }

    #[test]
    fn a_table_aligns() {
        let (lines, left_out) = grid(&["n", "名"], &[&["1", "é"], &["100", "NULL"]]).table(None, Paint::default());
        assert_eq!(lines, ["  n │ 名", "────┼─────", "  1 │ é", "100 │ NULL"]);
        assert_eq!(left_out, 0);
        assert_eq!(Cell::new("a\tb\u{1b}[31m\u{202e}", None).text, "a\\tb\\u{1b}[31m\\u{202e}");
    }

    #[test]
    fn what_is_too_wide_is_shortened_first_and_left_out_then() {
        let wide = grid(&["id", "text"], &[&["7", "a rather long text"]]);
        assert_eq!(wide.table(Some(14), Paint::default()).0, ["id │ text", "───┼──────────", " 7 │ a rather…"]);
        let many = grid(&["aaaa", "bbbb", "cccc", "dddd", "eeee"], &[&["a", "b", "c", "d", "e"]]);
        let (lines, left_out) = many.table(Some(22), Paint::default());
        assert_eq!(lines, ["aaaa │ bbbb │ … │ eeee", "─────┼──────┼───┼─────", "a    │ b    │ … │ e"]);
        assert_eq!(left_out, 2);
    }

    #[test]
    fn one_value_a_line() {
        let mut grid = grid(&["id", "text"], &[&["7", "abcdefghij"], &["8", "NULL"]]);
        grid.gap = Some((1, 1_000));
        let lines = grid.vertical(Some(14), Paint::default());
        let expected = ["── row 1 ──", "id   │ 7", "text │ abcdefg", "     │ hij", "⋮ 1,000 rows…", "── row 1,002…"];
        assert_eq!(lines[..4], expected[..4]);
        assert!(lines[4].starts_with("⋮ 1,000 rows") && lines[5].starts_with("── row 1,00"), "{lines:?}");
        assert_eq!(lines[6..], ["id   │ 8", "text │ NULL"]);
    }

    fn any_cell() -> impl Strategy<Value = Cell> {
        prop_oneof![
            4 => "\\PC{0,30}",
            2 => "[0-9]{1,20}",
            2 => "[a-z \\n\\t\u{1b}]{0,60}",
            1 => "(👨‍👩‍👧|❤️|한|e\u{301}|\u{200b}|🇩🇪){0,12}",
        ]
        .prop_map(|text| Cell::new(&text, None))
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_the_screen(
            columns in 1usize..40, rows in 0usize..4, screen in 1usize..120, gap in any::<bool>(),
            cells in proptest::collection::vec(any_cell(), 200), colour in any::<bool>(),
        ) {
            let mut cells = cells.into_iter().cycle();
            let mut grid = Grid::default();
            for at in 0..columns {
                grid.columns.push(Column { name: cells.next().unwrap(), right: at % 2 == 0 });
            }
            for _ in 0..rows {
                grid.rows.push(cells.by_ref().take(columns).collect());
            }
            grid.gap = gap.then_some((rows / 2, 12_345));
            let paint = Paint { on: colour };
            let (lines, left_out) = grid.table(Some(screen), paint);
            prop_assert!(left_out < columns);
            prop_assert_eq!(lines.len(), 2 + rows + usize::from(gap));
            for line in lines.iter().chain(&grid.vertical(Some(screen), paint)) {
                let plain = ["1", "2"].iter().fold(line.replace("\x1b[0m", ""), |l, c| l.replace(&format!("\x1b[{c}m"), ""));
                prop_assert!(plain.width() <= screen, "{} > {screen}: {plain:?}", plain.width());
                prop_assert!(!plain.chars().any(char::is_control), "{plain:?}");
            }
            // Without a screen nothing is lost.
            let (lines, left_out) = grid.table(None, Paint::default());
            prop_assert_eq!(left_out, 0);
            for (row, line) in grid.rows.iter().zip(lines.iter().skip(2).filter(|l| !l.starts_with('⋮'))) {
                for cell in row {
                    prop_assert!(line.contains(cell.text.trim_end()), "{line:?} {cell:?}");
                }
            }
        }

        #[test]
        fn a_limit_holds(text in "\\PC{0,300}", limit in 1usize..50) {
            let cell = Cell::new(&text, Some(limit));
            prop_assert!(cell.width <= limit);
            prop_assert_eq!(cell.width, cell.text.width());
        }
    }
}
