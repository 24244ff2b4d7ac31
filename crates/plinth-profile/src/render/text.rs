//! A tree for a terminal.

use crate::limits::{Limit, Origin, Resource, Roofline};
use crate::profile::{Hardware, Profile, Row};
use plinth_core::units;

/// Names are cut at so many characters, so that the numbers keep their places.
const NAME: usize = 46;

impl Profile {
    /// The tree, and below it the roofline, for a terminal of some 120 columns.
    pub fn to_text(&self) -> String {
        let mut lines = Vec::new();
        if !self.title.is_empty() {
            lines.push(one_line(&self.title));
        }
        lines.extend(self.summary());
        let head = ["stage", "time", "share", "with below", "hits", "rows", "bytes", "speed"].map(str::to_owned);
        let mut table = vec![head.to_vec()];
        let mut shown = self.table();
        if self.cpu.is_none() {
            shown.truncate(self.rows.len());
        }
        table.extend(shown.iter().map(line));
        lines.push(String::new());
        lines.extend(aligned(&table));
        if let Some(roofline) = &self.roofline {
            lines.push(String::new());
            lines.extend(limits(roofline));
            lines.extend(roofline.note.as_deref().map(|note| format!("ceilings: {}", one_line(note))));
            lines.push(String::new());
            lines.push(roofline.verdict.clone());
        }
        lines.join("\n") + "\n"
    }

    /// What a profile says before it goes into stages, as lines.
    pub(super) fn summary(&self) -> Vec<String> {
        let threads = threads(units::to_f64(units::count_of(self.threads)));
        let mut first = format!("{} on {threads}", units::time(self.wall));
        match self.cpu {
            None => first += "; processor time is not known on this system",
            Some(cpu) => {
                first += &format!("; processor {}", units::time(cpu));
                if let Some(coverage) = self.coverage() {
                    let other = units::percent(1.0 - coverage);
                    first += &format!(": {} in stages, {other} other", units::percent(coverage));
                }
                first += &format!("; idle {}", units::time(self.idle));
            }
        }
        let mut lines = vec![first];
        let faults = |n| units::short_count(n);
        let mut second = vec![format!("waited for storage {}", units::time(self.waited))];
        if !self.paused.is_zero() {
            second.push(format!("tasks suspended for it {}", units::time(self.paused)));
        }
        second.push(format!("page faults {} minor, {} major", faults(self.faults.minor), faults(self.faults.major)));
        if let Hardware::Counted { cycles, instructions, cache_misses } = self.hardware {
            let per_cycle = units::to_f64(instructions) / units::to_f64(cycles.max(1));
            let misses = units::short_count(cache_misses);
            second.push(format!(
                "{} cycles, {per_cycle:.2} instructions a cycle, {misses} cache misses",
                units::short_count(cycles)
            ));
        }
        lines.push(second.join("; "));
        lines.extend(self.stores.map(|stores| stores.line()));
        if let Hardware::Refused(why) = &self.hardware {
            lines.push(format!("hardware counters: {why}"));
        }
        if self.folded > 0 {
            lines.push(format!(
                "{} scopes were charged to those around them: too many paths",
                units::short_count(self.folded)
            ));
        }
        lines
    }
}

fn threads(count: f64) -> String {
    if count == 1.0 { "1 thread".to_owned() } else { format!("{count} threads") }
}

/// A text without line breaks or other control characters.
pub(super) fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn line(row: &Row) -> Vec<String> {
    let name = one_line(&row.name);
    let indent = "  ".repeat(row.depth.min(16));
    let room = NAME.saturating_sub(indent.len());
    let cut =
        if name.chars().count() > room { name.chars().take(room - 2).chain("..".chars()).collect() } else { name };
    let some = |n: u64, text: String| if n == 0 { String::new() } else { text };
    let share = |share| if row.anchor.stage == crate::Stage::Idle { String::new() } else { units::percent(share) };
    vec![
        indent + &cut,
        units::time(row.time),
        share(row.share),
        share(row.total_share),
        some(row.hits, units::short_count(row.hits)),
        some(row.rows, units::short_count(row.rows)),
        some(row.bytes, units::bytes(row.bytes)),
        row.bytes_per_second().map_or(String::new(), units::speed),
    ]
}

fn limits(roofline: &Roofline) -> Vec<String> {
    let head = ["limit", "moved", "ceiling", "alone", "reached", ""].map(str::to_owned).to_vec();
    aligned(&[vec![head], roofline.limits.iter().map(limit).collect()].concat())
}

/// A limit's cells: what, moved, ceiling, alone, reached, remark.
pub(super) fn limit(limit: &Limit) -> Vec<String> {
    let unknown = || "not measured".to_owned();
    let processor = limit.resource == Resource::Processor;
    let moved = match processor {
        true => units::time(std::time::Duration::from_nanos(limit.moved)),
        false => units::bytes(limit.moved),
    };
    let ceiling = match limit.ceiling {
        Some(ceiling) if processor => threads((ceiling / 1e9).round()),
        ceiling => ceiling.map_or_else(unknown, units::speed),
    };
    let mut remark = match limit.origin {
        Some(Origin::Now) => "measured now".to_owned(),
        _ => String::new(),
    };
    if limit.resource == Resource::Store {
        remark = "plinth probe URL measures it".to_owned();
    }
    if limit.unmeasured > 0 {
        remark = format!("{remark} and {} at unknown speed", units::bytes(limit.unmeasured)).trim_start().to_owned();
    }
    vec![
        limit.resource.name().to_owned(),
        moved,
        ceiling,
        limit.alone.map_or(String::new(), units::time),
        limit.reached.map_or(String::new(), units::percent),
        remark,
    ]
}

/// Columns under each other: the first to the left, the others to the right.
fn aligned(table: &[Vec<String>]) -> Vec<String> {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |at: usize| table.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let pad = |(at, (cell, width)): (usize, (&String, &usize))| {
        if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    };
    let line = |row: &Vec<String>| row.iter().zip(&widths).enumerate().map(pad).collect::<Vec<_>>().join("  ");
    table.iter().map(|row| line(row).trim_end().to_owned()).collect()
}
