//! What was found, as one page that needs nothing else: no script, no font, no network.

use std::fmt::Write as _;

use plinth_core::html::{self, escape};
use plinth_core::units;

use crate::plot::{Quantity, Range, curve, heat_map};
use crate::summary::{about, laws, place, sorted};
use crate::{Cell, Findings, Order, Report};

const STYLE: &str = "
:root { color-scheme: light }
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733; background: #fff; max-width: 1160px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 0 .2rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem } h3 { font-size: .95rem; margin: 0 0 .2rem; font-weight: 600 }
p { margin: .2rem 0 } .quiet { color: #5b6875 }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); gap: 12px; margin: 1.2rem 0 }
.tile { border: 1px solid #d9e0e7; border-radius: 8px; padding: .7rem .9rem }
.tile b { display: block; font-size: 1.55rem; font-weight: 650 }
.grade { border-left: 6px solid; padding: .3rem .9rem; margin: 1rem 0 }
.A { border-color: #2e7d32 } .B { border-color: #9e9d24 } .C { border-color: #ef8f00 } .D { border-color: #c62828 }
.maps { display: flex; flex-wrap: wrap; gap: 14px 18px }
svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif } .axis { fill: #5b6875; font-size: 11.5px }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .7rem .15rem 0; text-align: right; white-space: nowrap } th { color: #5b6875; font-weight: 600 }
td.text, th.text { text-align: left } code { font-size: 11.5px }
";

/// The mixes there are, in the order of the page.
const MIXES: [(Order, u8); 6] = [
    (Order::Random, 100),
    (Order::Random, 70),
    (Order::Random, 50),
    (Order::Random, 0),
    (Order::Sequential, 100),
    (Order::Sequential, 0),
];

/// The page.
pub(crate) fn page(findings: &Findings) -> String {
    let report = &findings.report;
    let mut out = html::page(&format!("plinth probe: {}", place(findings)), STYLE);
    out.push_str(
        "<svg width=\"0\" height=\"0\" style=\"position:absolute\"><defs><pattern id=\"none\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#f4f6f8\"/><path d=\"M0 0V6\" stroke=\"#dde3e9\" stroke-width=\"2\"/></pattern></defs></svg>\n",
    );
    for line in about(findings) {
        let _ = writeln!(out, "<p class=\"quiet\">{}</p>", escape(&line));
    }
    tiles(&mut out, report);
    let grade = report.trust.grade;
    let _ = writeln!(out, "<div class=\"grade {grade}\"><b>Grade {grade}</b>");
    for reason in &report.trust.reasons {
        let _ = writeln!(out, "<p>{}</p>", escape(reason));
    }
    out.push_str("</div>\n<h2>Latency over bandwidth</h2>\n");
    out.push_str("<p class=\"quiet\">A line is a request size, a point a depth: 1, 4, 16, 64. Solid is the median, dashed the p99. Where a line turns up, more requests only wait.</p>\n<div class=\"maps\">\n");
    for (order, reads) in MIXES {
        let points = report.rows.iter().filter(|row| (row.cell.order, row.cell.reads) == (order, reads)).count();
        if points < 8 {
            continue;
        }
        let _ = writeln!(out, "<div><h3>{}</h3>{}</div>", mix(order, reads), curve(&report.rows, order, reads));
    }
    out.push_str("</div>\n<p class=\"quiet\">Below: colours mean the same on every map of a kind, on a logarithmic scale; what is hatched was not measured, and ! marks rows that break a law. Point at a square for its percentiles.</p>\n");
    for (order, reads) in MIXES {
        if !report.rows.iter().any(|row| (row.cell.order, row.cell.reads) == (order, reads)) {
            continue;
        }
        let _ = writeln!(out, "<h2>{}</h2>\n<div class=\"maps\">", mix(order, reads));
        for quantity in Quantity::ALL {
            let map = heat_map(&report.rows, order, reads, quantity, Range::over(&report.rows, quantity));
            let _ = writeln!(out, "<div><h3>{}</h3>{map}</div>", quantity.title());
        }
        out.push_str("</div>\n");
    }
    table(&mut out, report);
    out.push_str("</html>\n");
    out
}

/// What a mix is called at the head of a section.
fn mix(order: Order, reads: u8) -> String {
    let text = Cell { order, reads, ..Cell::KEY }.mix();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    let reads = if matches!(reads, 0 | 100) { "" } else { " reads to writes" };
    first.into_iter().chain(chars).collect::<String>() + reads
}

fn tiles(out: &mut String, report: &Report) {
    out.push_str("<div class=\"tiles\">\n");
    for row in Cell::HEADLINES.iter().filter_map(|cell| report.row(cell)) {
        // Small requests are counted, large ones weighed.
        let (large, small) = (units::speed(row.bandwidth), format!("{} IOPS", units::count(units::whole(row.iops))));
        let (first, second) = if row.cell.size > Cell::LONE_READ.size { (large, small) } else { (small, large) };
        let _ = writeln!(
            out,
            "<div class=\"tile\">{}<b>{first}</b><span class=\"quiet\">{second}, p50 {}, p99 {}</span></div>",
            row.cell,
            units::latency(row.latency.p50),
            units::latency(row.latency.p99)
        );
    }
    out.push_str("</div>\n");
}

fn table(out: &mut String, report: &Report) {
    out.push_str("<h2>Every row</h2>\n<div class=\"wide\"><table>\n<tr><th class=\"text\">what</th>");
    for name in ["size", "depth", "bandwidth", "IOPS", "mean", "p50", "p90", "p99", "p99.9"] {
        let _ = write!(out, "<th>{name}</th>");
    }
    out.push_str("<th class=\"text\">broken law</th><th class=\"text\">the same with fio</th></tr>\n");
    for row in sorted(&report.rows) {
        let cell = &row.cell;
        let latency = [row.latency.mean, row.latency.p50, row.latency.p90, row.latency.p99, row.latency.p999];
        let mut fields = vec![units::binary(cell.size), cell.depth.to_string(), units::speed(row.bandwidth)];
        fields.push(units::count(units::whole(row.iops)));
        fields.extend(latency.map(units::latency));
        let fields = fields.into_iter().map(|field| format!("<td>{field}</td>")).collect::<String>();
        let (laws, command) = (escape(&laws(row)), escape(&row.command));
        let _ = writeln!(
            out,
            "<tr><td class=\"text\">{}</td>{fields}<td class=\"text\">{laws}</td><td class=\"text\"><code>{command}</code></td></tr>",
            cell.mix()
        );
    }
    out.push_str("</table></div>\n");
}
