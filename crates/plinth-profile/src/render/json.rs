//! One object for programs.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::anchor::Part;
use crate::limits::{Bound, Limit, Origin, Roofline};
use crate::profile::{Hardware, Profile, Row};
use crate::stores::StoreTraffic;
use plinth_core::units::nanoseconds;

/// It grows when a field changes its meaning.
const VERSION: u32 = 1;

impl Profile {
    /// One JSON object. Times are in nanoseconds, speeds in bytes a second, shares from 0 to 1; what is not known is null.
    pub fn to_json(&self) -> String {
        let started = self.started_at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let workers = self.workers.iter();
        let workers: Vec<_> = workers
            .map(|worker| json!({ "name": worker.name, "time": ns(worker.time), "cpu": ns(worker.cpu) }))
            .collect();
        let value = json!({
            "version": VERSION,
            "title": self.title,
            "started_at": started.map(|at| at.as_secs()),
            "wall": ns(self.wall),
            "threads": self.threads,
            "cpu": self.cpu.map(ns),
            "named": ns(self.named),
            "other": ns(self.other),
            "idle": ns(self.idle),
            "waited": ns(self.waited),
            "paused": ns(self.paused),
            "minor_faults": self.faults.minor,
            "major_faults": self.faults.major,
            "detailed": self.detailed,
            "folded": self.folded,
            "hardware": hardware(&self.hardware),
            "workers": workers,
            "stores": self.stores.map(stores),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "roofline": self.roofline.as_ref().map(roofline),
        });
        value.to_string()
    }
}

fn ns(time: Duration) -> u64 {
    nanoseconds(time)
}

fn stores(stores: StoreTraffic) -> Value {
    json!({
        "requests": stores.requests,
        "bytes": stores.bytes,
        "hedged": stores.hedged,
        "resumed": stores.resumed,
        "drive_bytes": stores.drive_bytes,
        "drive_hits": stores.drive_hits,
    })
}

fn row(row: &Row) -> Value {
    let part = match row.anchor.part {
        Part::Whole => Value::Null,
        Part::Name(name) => json!(name),
        Part::Index(index) => json!(index),
    };
    json!({
        "parent": row.parent,
        "depth": row.depth,
        "stage": row.anchor.stage.name(),
        "part": part,
        "name": row.name,
        "hits": row.hits,
        "rows": row.rows,
        "bytes": row.bytes,
        "time": ns(row.time),
        "total": ns(row.total),
        "cpu": ns(row.cpu),
        "minor_faults": row.faults.minor,
        "major_faults": row.faults.major,
        "share": row.share,
        "total_share": row.total_share,
    })
}

fn hardware(hardware: &Hardware) -> Value {
    match hardware {
        Hardware::NotAsked => Value::Null,
        Hardware::Refused(why) => json!({ "refused": why }),
        Hardware::Counted { cycles, instructions, cache_misses } => {
            json!({ "cycles": cycles, "instructions": instructions, "cache_misses": cache_misses })
        }
    }
}

fn roofline(roofline: &Roofline) -> Value {
    let bound = match roofline.bound {
        Bound::Unknown => "unknown",
        Bound::Device => "device",
        Bound::Memory => "memory",
        Bound::Stage(stage) => stage.name(),
        Bound::Latency => "latency",
        Bound::Store => "store",
        Bound::Parallelism => "parallelism",
        Bound::Crowded => "crowded",
    };
    let limits: Vec<_> = roofline.limits.iter().map(limit).collect();
    json!({ "bound": bound, "verdict": roofline.verdict, "note": roofline.note, "limits": limits })
}

fn limit(limit: &Limit) -> Value {
    let origin = limit.origin.map(|origin| match origin {
        Origin::Probe => "probe",
        Origin::Now => "measured now",
        Origin::Clock => "clock",
    });
    json!({
        "resource": limit.resource.name(),
        "moved": limit.moved,
        "ceiling": limit.ceiling,
        "origin": origin,
        "alone": limit.alone.map(ns),
        "reached": limit.reached,
        "unmeasured": limit.unmeasured,
    })
}
