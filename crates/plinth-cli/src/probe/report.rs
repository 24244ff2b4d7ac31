//! What was found, as people read it: four lines first, then how far to trust them, then everything else.

use std::collections::BTreeMap;
use std::path::Path;

use plinth_probe::summary::{about, laws, place, sorted};
use plinth_probe::{Cell, Findings, Report, cheapest};

use crate::table::{Align, Table};
use crate::units;

/// The report.
pub(super) fn lines(findings: &Findings, profile: &Path) -> Vec<String> {
    let report = &findings.report;
    let mut lines = headlines(report);
    lines.push(String::new());
    lines.push(format!("{}: grade {}", place(findings), report.trust.grade));
    lines.extend(report.trust.reasons.iter().map(|reason| format!("  - {reason}")));
    lines.extend(about(findings));
    lines.push(format!("profile: {}", profile.display()));
    for (title, table) in [
        ("durability of 4 KiB", syncs(report)),
        ("one thread, no device", memory(findings)),
        ("what the kernel grants", ladder(report)),
    ] {
        lines.extend([String::new(), format!("{title}:")]);
        lines.extend(table);
    }
    if !report.compared.is_empty() {
        lines.extend([String::new(), "two engines:".to_owned()]);
        lines.extend(compared(report));
    }
    lines.extend([String::new(), format!("measured by {}:", report.engine)]);
    lines.extend(rows(report));
    lines.extend(left_out(report));
    lines.extend([String::new(), "the same with fio (of each row: --json, --csv):".to_owned()]);
    let commands = Cell::HEADLINES.iter().filter_map(|cell| report.row(cell));
    lines.extend(commands.map(|row| format!("  {}", row.command)));
    if cfg!(debug_assertions) {
        lines
            .push("This is a build without optimisation: its speeds mean nothing. Use cargo run --release.".to_owned());
    }
    lines
}

/// The four lines that a person wants.
fn headlines(report: &Report) -> Vec<String> {
    let columns = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right];
    let mut table = Table::new(&columns.map(|align| ("", align)));
    for row in Cell::HEADLINES.iter().filter_map(|cell| report.row(cell)) {
        table.row(vec![
            row.cell.mix(),
            format!("{} x {}", units::binary(row.cell.size), row.cell.depth),
            units::speed(row.bandwidth),
            format!("{} IOPS", units::count(units::whole(row.iops))),
            format!("p50 {}", units::latency(row.latency.p50)),
            format!("p99 {}", units::latency(row.latency.p99)),
        ]);
    }
    table.lines().split_off(1)
}

fn syncs(report: &Report) -> Vec<String> {
    let headers = [
        ("method", Align::Left),
        ("rate", Align::Right),
        ("mean", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&headers);
    let best = cheapest(&report.syncs);
    for cost in &report.syncs {
        table.row(vec![
            cost.method.to_owned(),
            units::frequency(cost.rate),
            units::latency(cost.latency.mean),
            units::latency(cost.latency.p50),
            units::latency(cost.latency.p99),
            if best == Some(cost) { "cheapest".to_owned() } else { String::new() },
        ]);
    }
    indented(&table)
}

fn memory(findings: &Findings) -> Vec<String> {
    let mut table = Table::new(&[("", Align::Left), ("speed", Align::Right), ("", Align::Left)]);
    let memory = &findings.report.memory;
    for (name, speed) in [
        ("read memory", memory.read),
        ("copy memory", memory.copy),
        ("read page cache", memory.page_cache),
        ("checksum XXH3", memory.checksum),
    ] {
        table.row(vec![name.to_owned(), units::speed(speed)]);
    }
    for speed in &findings.decode {
        let details = format!("{}, {}", units::ratio(speed.ratio, 1.0), speed.description);
        table.row(vec![format!("decode {}", speed.encoding), units::speed(speed.bytes), details]);
    }
    indented(&table).split_off(1)
}

fn ladder(report: &Report) -> Vec<String> {
    let mut table = Table::new(&[("", Align::Left), ("", Align::Left), ("", Align::Left)]);
    for step in &report.ladder {
        let fix = step.fix.as_ref().map_or_else(String::new, |fix| format!("; to get it: {fix}"));
        let there = if step.there { "yes" } else { "no" };
        table.row(vec![step.name.to_owned(), there.to_owned(), format!("{}{fix}", step.found)]);
    }
    indented(&table).split_off(1)
}

fn compared(report: &Report) -> Vec<String> {
    let names = report.compared.first().map_or([""; 2], |[a, b]| [a.engine.as_str(), b.engine.as_str()]);
    let mut table = Table::new(&[
        ("", Align::Left),
        (names[0], Align::Right),
        (names[1], Align::Right),
        ("ratio", Align::Right),
        ("p50", Align::Right),
        ("p50", Align::Right),
    ]);
    for [a, b] in &report.compared {
        table.row(vec![
            a.cell.to_string(),
            units::speed(a.bandwidth),
            units::speed(b.bandwidth),
            units::ratio(b.bandwidth, a.bandwidth),
            units::latency(a.latency.p50),
            units::latency(b.latency.p50),
        ]);
    }
    indented(&table)
}

fn rows(report: &Report) -> Vec<String> {
    let mut table = Table::new(&[
        ("what", Align::Left),
        ("size", Align::Right),
        ("depth", Align::Right),
        ("bandwidth", Align::Right),
        ("IOPS", Align::Right),
        ("mean", Align::Right),
        ("p50", Align::Right),
        ("p90", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("broken law", Align::Left),
    ]);
    for row in sorted(&report.rows) {
        let latency = [row.latency.mean, row.latency.p50, row.latency.p90, row.latency.p99, row.latency.p999];
        let cell = &row.cell;
        let mut cells = vec![cell.mix(), units::binary(cell.size), cell.depth.to_string(), units::speed(row.bandwidth)];
        cells.push(units::count(units::whole(row.iops)));
        cells.extend(latency.map(units::latency));
        cells.push(laws(row));
        table.row(cells);
    }
    indented(&table)
}

fn left_out(report: &Report) -> Option<String> {
    let mut mixes: BTreeMap<String, usize> = BTreeMap::new();
    for cell in &report.left_out {
        *mixes.entry(cell.mix()).or_default() += 1;
    }
    let mixes: Vec<String> = mixes.iter().map(|(mix, cells)| format!("{cells} of {mix}")).collect();
    let all = report.rows.len() + report.left_out.len();
    (!mixes.is_empty()).then(|| {
        let (cells, mixes) = (report.left_out.len(), mixes.join(", "));
        format!("no time for {cells} of {all} combinations ({mixes}): --seconds gives more, --full enough")
    })
}

fn indented(table: &Table) -> Vec<String> {
    table.lines().into_iter().map(|line| format!("  {line}").trim_end().to_owned()).collect()
}
