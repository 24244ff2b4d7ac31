//! What was found, in sentences.

use plinth_core::units;

use crate::{Cell, Findings, Row, broken};

/// The folder and what is below it.
pub fn place(findings: &Findings) -> String {
    let environment = &findings.report.environment;
    let device = environment.device.as_ref().map_or_else(|| "no block device".to_owned(), |device| device.title());
    let machine = if environment.virtual_machine.is_some() { " in this VM" } else { "" };
    format!("{} on {device}{machine}, {}", findings.folder.display(), environment.file_system)
}

/// How it was measured and what follows from it.
pub fn about(findings: &Findings) -> Vec<String> {
    let report = &findings.report;
    let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
    let mut lines = vec![format!(
        "{} for {}, a file of {} filled at {}; Linux {}, {}",
        report.engine,
        units::duration(report.elapsed),
        units::binary(report.bytes),
        units::speed(report.filled),
        report.environment.kernel,
        units::counted(report.environment.processors as u64, "processor"),
    )];
    if let Some(device) = &report.environment.device {
        let number = |n: Option<u64>| n.map_or("?".to_owned(), |n| n.to_string());
        lines.push(format!(
            "{}: scheduler {}, queue of {}, {} segments a request, cache {}; mounted {}",
            device.name,
            device.scheduler,
            number(device.requests),
            number(device.segments),
            device.write_cache,
            report.environment.mount_options
        ));
    }
    let cache = &report.cache;
    lines.push(format!(
        "{} repeated: drift {}, noise {}; re-read {:.2}x as fast as first read, the same 1 MiB {:.2}x as fast as any",
        Cell::KEY,
        percent(report.trust.drift),
        percent(report.trust.noise),
        cache.again_ratio(),
        cache.hot_ratio()
    ));
    if let Some(lasting) = &report.lasting {
        lines.push(format!("the fastest read, {}, for longer: {}", lasting.cell, units::speed(lasting.bandwidth)));
    }
    if let Some(knees) = &report.knees {
        let doubles = knees.p99_doubles.map_or_else(
            || "the p99 of 4 KiB reads does not double with depth".to_owned(),
            |depth| format!("the p99 of 4 KiB reads has doubled at depth {depth}"),
        );
        lines.push(format!(
            "knee: {} x {} reaches {} of the {} that random reads can; {doubles}",
            units::binary(knees.size),
            knees.depth,
            units::speed(knees.bandwidth),
            units::speed(knees.peak)
        ));
    }
    lines
}

/// Rows by what they do rather than by when they were measured: sequential first, reads before mixes before writes.
pub fn sorted(rows: &[Row]) -> Vec<&Row> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| (row.cell.order, std::cmp::Reverse(row.cell.reads), row.cell.size, row.cell.depth));
    rows
}

/// The laws a row breaks.
pub fn laws(row: &Row) -> String {
    broken(row).iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
