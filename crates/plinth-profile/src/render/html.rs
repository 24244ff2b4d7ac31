//! One page that needs nothing else: no script, no font, no network. Light or dark, as its reader's system is.

use std::fmt::Write as _;

use super::{chart, flame, text};
use crate::anchor::Stage;
use crate::limits::Roofline;
use crate::profile::Profile;
use plinth_core::html::{escape, page};
use plinth_core::units;

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1d2733; --quiet: #5b6875; --paper: #fff; --line: #dde3e9; --label: #16202b;
 --storage: #8db8e8; --decode: #93cf9b; --find: #86cfc7; --engine: #f4b66c; --move: #c3a6e6; --plan: #c4cdd6; --parse: #f09e9e; --other: #e3e7eb; --query: #c62828; --roof: #33506e }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e9ef; --quiet: #98a6b3; --paper: #14191f; --line: #2b343d; --label: #f2f5f8;
 --storage: #2c5a8c; --decode: #2f6b3a; --find: #23645e; --engine: #8c5a1a; --move: #5e4389; --plan: #46525e; --parse: #8a3b3b; --other: #333c45; --query: #ff7961; --roof: #9dc1e6 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1160px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.35rem; margin: 0 0 .3rem; overflow-wrap: anywhere } h2 { font-size: 1.1rem; margin: 2rem 0 .4rem } p { margin: .2rem 0 }
.quiet { color: var(--quiet) } p.verdict { border-left: 5px solid var(--query); padding: .3rem .8rem; margin: 1rem 0; font-weight: 600 }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif } svg text { fill: var(--ink) } svg text.quiet { fill: var(--quiet) }
.flame text { fill: var(--label); pointer-events: none } .flame g:hover rect { stroke: var(--ink); stroke-width: 1.2 }
.grid { stroke: var(--line); fill: none } .roof { stroke: var(--roof); stroke-width: 2; fill: none } .query, .wall { fill: var(--query) }
.strong { font-weight: 650 } .limit { fill: var(--storage) }
.storage { fill: var(--storage) } .decode { fill: var(--decode) } .find { fill: var(--find) } .engine { fill: var(--engine) }
.move { fill: var(--move) } .plan { fill: var(--plan) } .parse { fill: var(--parse) } .other { fill: var(--other) }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .8rem .15rem 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line) } th { color: var(--quiet); font-weight: 600 }
td:first-child, th:first-child { text-align: left; white-space: pre }
";

impl Profile {
    /// A page with the flame graph, the roofline and the table.
    pub fn to_html(&self) -> String {
        let title = if self.title.is_empty() { "plinth profile".to_owned() } else { text::one_line(&self.title) };
        let mut out = page(&title, STYLE);
        // Writing to a String can't fail.
        for line in self.summary() {
            let _ = writeln!(out, "<p class=\"quiet\">{}</p>", escape(&line));
        }
        if let Some(roofline) = &self.roofline {
            let _ = writeln!(out, "<p class=\"verdict\">{}</p>", escape(&roofline.verdict));
        }
        out.push_str("<h2>Where the time went</h2>\n<p class=\"quiet\">Width is the time of all threads; what is below happened within. Point at a bar for its figures.</p>\n");
        out.push_str(&flame::flame(self));
        if let Some(roofline) = &self.roofline {
            limits(&mut out, self, roofline);
        }
        out.push_str("<h2>Every stage</h2>\n");
        let head =
            ["stage", "time", "share", "with below", "processor", "hits", "rows", "bytes", "speed", "page faults"];
        let rows = self.table().into_iter().map(|row| {
            let some = |n: u64, text: String| if n == 0 { String::new() } else { text };
            let idle = row.anchor.stage == Stage::Idle;
            let share = |share| if idle { String::new() } else { units::percent(share) };
            let faults = row.faults.minor.saturating_add(row.faults.major);
            vec![
                "  ".repeat(row.depth) + &text::one_line(&row.name),
                units::time(row.time),
                share(row.share),
                share(row.total_share),
                units::time(row.cpu),
                some(row.hits, units::short_count(row.hits)),
                some(row.rows, units::short_count(row.rows)),
                some(row.bytes, units::bytes(row.bytes)),
                row.bytes_per_second().map_or(String::new(), units::speed),
                some(faults, units::short_count(faults)),
            ]
        });
        table(&mut out, &head, rows);
        out.push_str("</html>\n");
        out
    }
}

fn limits(out: &mut String, profile: &Profile, roofline: &Roofline) {
    out.push_str("<h2>How far that was from what the machine can do</h2>\n");
    match chart::chart(profile, roofline) {
        Some(chart) => out.push_str(&chart),
        None => out.push_str("<p class=\"quiet\">No chart: nothing was read and decoded, or no limit is known.</p>\n"),
    }
    out.push_str("<p class=\"quiet\">The time that each limit alone would have asked for:</p>\n");
    out.push_str(&chart::bars(profile, roofline));
    let head = ["limit", "moved", "ceiling", "alone", "reached", ""];
    table(out, &head, roofline.limits.iter().map(text::limit));
    if let Some(note) = &roofline.note {
        let _ = writeln!(out, "<p class=\"quiet\">Ceilings: {}</p>", escape(note));
    }
}

fn table(out: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        cells.map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect::<String>()
    };
    let _ = writeln!(out, "<div class=\"wide\"><table>\n<tr>{}</tr>", cells("th", &mut head.iter().copied()));
    for row in rows {
        let _ = writeln!(out, "<tr>{}</tr>", cells("td", &mut row.iter().map(String::as_str)));
    }
    out.push_str("</table></div>\n");
}

/// The class that colours a stage.
pub(super) fn colour(stage: Stage) -> &'static str {
    match stage {
        Stage::Submit
        | Stage::Drive
        | Stage::Wait
        | Stage::PageCache
        | Stage::Read
        | Stage::Write
        | Stage::Sync
        | Stage::Checksum => "storage",
        Stage::Decode | Stage::Encode | Stage::Decompress => "decode",
        Stage::Prune | Stage::Lookup | Stage::Filter | Stage::Intern | Stage::Sort => "find",
        Stage::Operator => "engine",
        Stage::Gather | Stage::Build | Stage::Output => "move",
        Stage::Plan | Stage::Open | Stage::Metadata | Stage::Scan => "plan",
        Stage::Structure | Stage::Parse => "parse",
        Stage::Join | Stage::Other | Stage::Idle => "other",
    }
}
