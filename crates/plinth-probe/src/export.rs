//! What was found, as programs read it. Times are in nanoseconds, speeds in bytes a second.

use plinth_core::units;
use serde_json::{Value, json};

use crate::summary::{laws, sorted};
use crate::{Cell, Findings, Order, Report, Row, broken};

/// Everything as one object.
pub(crate) fn json(findings: &Findings) -> String {
    let report = &findings.report;
    let environment = &report.environment;
    let device = environment.device.as_ref().map(|device| {
        json!({
            "name": device.name, "model": device.model, "scheduler": device.scheduler, "requests": device.requests,
            "segments": device.segments, "write_cache": device.write_cache,
        })
    });
    let pair = |pair: &[Row; 2]| json!([row(&pair[0]), row(&pair[1])]);
    let syncs = report.syncs.iter().map(|cost| {
        json!({
            "method": cost.method, "operations": cost.operations, "rate": cost.rate, "mean": cost.latency.mean,
            "p50": cost.latency.p50, "p99": cost.latency.p99,
        })
    });
    let steps = report
        .ladder
        .iter()
        .map(|step| json!({ "name": step.name, "there": step.there, "found": step.found, "fix": step.fix }));
    let decode = findings.decode.iter().map(|speed| {
        json!({
            "encoding": speed.encoding, "description": speed.description, "bytes": speed.rate(),
            "values": units::whole(speed.values), "ratio": speed.ratio,
        })
    });
    let knees = report.knees.map(|knees| {
        json!({
            "peak": units::whole(knees.peak), "size": knees.size, "depth": knees.depth,
            "bandwidth": units::whole(knees.bandwidth), "p99_doubles_at": knees.p99_doubles,
        })
    });
    let object = json!({
        "folder": findings.folder.display().to_string(),
        "measured_at": report.measured_at,
        "seconds": report.elapsed.as_secs_f64(),
        "engine": report.engine,
        "file": { "bytes": report.bytes, "filled": units::whole(report.filled) },
        "environment": {
            "kernel": environment.kernel, "processors": environment.processors,
            "virtual_machine": environment.virtual_machine, "file_system": environment.file_system,
            "mount_options": environment.mount_options, "device": device,
            "direct_alignment": environment.direct_alignment,
        },
        "trust": {
            "grade": report.trust.grade.to_string(), "reasons": report.trust.reasons, "drift": report.trust.drift,
            "noise": report.trust.noise, "others": report.load.others, "stolen": report.load.stolen,
        },
        "knee": knees,
        "cache": {
            "first": units::whole(report.cache.first), "again": units::whole(report.cache.again),
            "spread": report.cache.spread, "hot": report.cache.hot,
        },
        "memory": {
            "read": units::whole(report.memory.read), "copy": units::whole(report.memory.copy),
            "page_cache": units::whole(report.memory.page_cache), "checksum": units::whole(report.memory.checksum),
        },
        "decode": decode.collect::<Vec<_>>(),
        "syncs": syncs.collect::<Vec<_>>(),
        "ladder": steps.collect::<Vec<_>>(),
        "lasting": report.lasting.as_ref().map(row),
        "rows": report.rows.iter().map(row).collect::<Vec<_>>(),
        "repetitions": report.repetitions.iter().map(pair).collect::<Vec<_>>(),
        "compared": report.compared.iter().map(pair).collect::<Vec<_>>(),
        "left_out": report.left_out.iter().map(cell).collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

fn order(cell: &Cell) -> &'static str {
    match cell.order {
        Order::Sequential => "sequential",
        Order::Random => "random",
    }
}

fn cell(cell: &Cell) -> Value {
    json!({ "order": order(cell), "reads": cell.reads, "size": cell.size, "depth": cell.depth })
}

fn row(row: &Row) -> Value {
    json!({
        "order": order(&row.cell), "reads": row.cell.reads, "size": row.cell.size, "depth": row.cell.depth,
        "engine": row.engine, "operations": row.operations, "iops": row.iops, "bandwidth": row.bandwidth,
        "mean": row.latency.mean, "p50": row.latency.p50, "p90": row.latency.p90, "p99": row.latency.p99,
        "p999": row.latency.p999, "command": row.command,
        "broken": broken(row).iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// A line a row.
pub(crate) fn csv(report: &Report) -> String {
    let mut text = String::from(
        "order,reads,size,depth,engine,operations,iops,bandwidth,mean_ns,p50_ns,p90_ns,p99_ns,p999_ns,broken,command\n",
    );
    for row in sorted(&report.rows) {
        let latency = [row.latency.mean, row.latency.p50, row.latency.p90, row.latency.p99, row.latency.p999];
        let mut fields = vec![order(&row.cell).to_owned(), row.cell.reads.to_string(), row.cell.size.to_string()];
        fields.extend([row.cell.depth.to_string(), quoted(&row.engine), row.operations.to_string()]);
        fields.extend([format!("{:.1}", row.iops), units::whole(row.bandwidth).to_string()]);
        fields.extend(latency.map(|nanoseconds| nanoseconds.to_string()));
        fields.extend([quoted(&laws(row)), quoted(&row.command)]);
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}
