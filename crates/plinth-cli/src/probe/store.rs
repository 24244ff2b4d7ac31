//! `plinth probe s3://bucket/prefix`: what a store does.

use std::io::Write;
use std::time::Duration;

use plinth_objects::{ObjectStores, ObjectStoresOptions, StoreFindings, StorePlan, StoreRow};
use serde_json::json;

use super::{open, write};
use crate::cli::ProbeArgs;
use crate::error::{Failure, Result};
use crate::progress::Progress;
use crate::table::{Align, Table};
use crate::{interrupt, screen, units};

/// What a probe of a store takes at most unless told otherwise.
const SECONDS: u64 = 60;
const BYTES: u64 = 160 << 20;

/// Measures the store of a URL.
pub(super) fn run(args: &ProbeArgs, url: &str) -> Result {
    for (given, option) in [
        (args.full, "--full"),
        (args.plot.is_some(), "--plot"),
        (!matches!(args.engine, crate::cli::ProbeEngine::Auto), "--engine"),
    ] {
        if given {
            let what = "is of devices; of a store there are --seconds, --size, --json, --csv and --profile";
            return Err(Failure::new(format!("{url}: {option} {what}")));
        }
    }
    let plan =
        StorePlan { bytes: args.size.unwrap_or(BYTES), time: Duration::from_secs(args.seconds.unwrap_or(SECONDS)) };
    interrupt::listen()?;
    let outputs = [&args.json, &args.csv, &args.profile].map(|path| path.as_deref().map(open).transpose());
    let [json, csv, profile] = outputs;
    let (json, csv, profile) = (json?, csv?, profile?);
    let quiet = [&json, &csv, &profile].into_iter().flatten().any(crate::output::Output::is_stdout);
    let (requests, bytes) = plan.most();
    let first = format!("{url}: asks for at most {} and {}", units::counted(requests, "request"), units::bytes(bytes));
    let mut out = screen::stdout();
    // Before anything is asked for.
    if quiet {
        screen::say(&first)
    } else {
        writeln!(out, "{first}")?
    }
    let progress = Progress::new(1_000, args.quiet);
    let stores = ObjectStores::new(ObjectStoresOptions::default());
    let found = stores.probe(url, &plan, &interrupt::flag(), &|share, what| progress.step(share, what));
    let found = found.map_err(|e| if interrupt::check().is_err() { Failure::Interrupted } else { Failure::new(e) })?;
    drop(progress);
    let json = json.map(|output| write(output, &format!("{:#}\n", to_json(&found))));
    let csv = csv.map(|output| write(output, &to_csv(&found)));
    let profile = profile.map(|output| write(output, &to_toml(&found)));
    [json, csv, profile].into_iter().flatten().collect::<Result>()?;
    if !quiet {
        for line in lines(&found) {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
    }
    Ok(())
}

/// The report.
fn lines(found: &StoreFindings) -> Vec<String> {
    let headers = [
        ("request", Align::Right),
        ("in flight", Align::Right),
        ("requests", Align::Right),
        ("first byte p50", Align::Right),
        ("p90", Align::Right),
        ("bandwidth", Align::Right),
        ("requests/s", Align::Right),
    ];
    let mut table = Table::new(&headers);
    for row in &found.rows {
        table.row(vec![
            units::binary(row.request_bytes),
            row.in_flight.to_string(),
            units::count(row.requests),
            units::time(row.first_byte[0]),
            units::time(row.first_byte[1]),
            units::speed(row.rate()),
            format!("{:.0}", units::per_second(row.requests, row.took)),
        ]);
    }
    let mut lines = table.lines();
    if found.left_out > 0 {
        lines.push(format!(
            "no time for {} more; --seconds gives it",
            units::counted(units::count_of(found.left_out), "row")
        ));
    }
    lines.push(String::new());
    if let Some((names, more, took)) = found.listing {
        let more = if more { ", and there are more" } else { "" };
        lines.push(format!(
            "listing: {} in {}{more}",
            units::counted(units::count_of(names), "name"),
            units::time(took)
        ));
    }
    lines.push(format!("one request: {} behind its first byte", units::speed(found.rate)));
    lines.push(format!(
        "a gap between ranges is read along up to {}: more costs as much as a request",
        units::binary(found.gap)
    ));
    lines.push(format!("while an answer is waited for, {} would come", units::binary(found.bytes_a_wait)));
    let took = found.traffic;
    lines.push(format!("took {}, {}", units::counted(took.requests, "request"), units::bytes(took.bytes)));
    lines
}

/// The row with the most bytes a second.
fn best(found: &StoreFindings) -> Option<&StoreRow> {
    found.rows.iter().max_by(|a, b| a.rate().total_cmp(&b.rate()))
}

fn to_json(found: &StoreFindings) -> serde_json::Value {
    let row = |row: &StoreRow| {
        json!({
            "request_bytes": row.request_bytes,
            "in_flight": row.in_flight,
            "requests": row.requests,
            "bytes": row.bytes,
            "nanoseconds": units::nanoseconds(row.took),
            "first_byte_p50": units::nanoseconds(row.first_byte[0]),
            "first_byte_p90": units::nanoseconds(row.first_byte[1]),
            "bandwidth": row.rate(),
        })
    };
    let listing = found
        .listing
        .map(|(names, more, took)| json!({ "names": names, "more": more, "nanoseconds": units::nanoseconds(took) }));
    json!({
        "url": found.url,
        "listing": listing,
        "objects": found.objects.0,
        "object_bytes": found.objects.1,
        "rows": found.rows.iter().map(row).collect::<Vec<_>>(),
        "left_out": found.left_out,
        "request_bandwidth": found.rate,
        "gap_bytes": found.gap,
        "bytes_a_wait": found.bytes_a_wait,
        "requests": found.traffic.requests,
        "bytes": found.traffic.bytes,
    })
}

fn to_csv(found: &StoreFindings) -> String {
    let mut text =
        "request_bytes,in_flight,requests,bytes,nanoseconds,first_byte_p50,first_byte_p90,bandwidth\n".to_owned();
    for row in &found.rows {
        let [p50, p90] = row.first_byte.map(units::nanoseconds);
        let (took, rate) = (units::nanoseconds(row.took), units::whole(row.rate()));
        text.push_str(&format!(
            "{},{},{},{},{took},{p50},{p90},{rate}\n",
            row.request_bytes, row.in_flight, row.requests, row.bytes
        ));
    }
    text
}

/// The figures that matter, as the profile of a device has them: bytes a second and nanoseconds.
fn to_toml(found: &StoreFindings) -> String {
    let first_byte = found.rows.first().map_or(0, |row| units::nanoseconds(row.first_byte[0]));
    let list =
        found.listing.map_or(String::new(), |(_, _, took)| format!("list_time = {}\n", units::nanoseconds(took)));
    let best = best(found).map_or(String::new(), |row| {
        let rate = units::whole(row.rate());
        format!("bandwidth = {rate}\nin_flight = {}\nrequest_bytes = {}\n", row.in_flight, row.request_bytes)
    });
    format!(
        "# What a store did: bytes a second, nanoseconds.\n[store]\nurl = {:?}\nfirst_byte = {first_byte}\n{list}\
         request_bandwidth = {}\n{best}gap_bytes = {}\nbytes_a_wait = {}\n",
        found.url,
        units::whole(found.rate),
        found.gap,
        found.bytes_a_wait
    )
}
