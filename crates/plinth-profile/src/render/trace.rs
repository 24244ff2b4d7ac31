//! Scopes one by one, in the trace format of Chrome, which Perfetto (ui.perfetto.dev) reads as well.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;

use crate::profile::Profile;
use plinth_core::units::nanoseconds;

impl Profile {
    /// The recorded scopes as complete events ("X"), each on its thread's track. Without any
    /// ([`ProfilerOptions::spans`](crate::ProfilerOptions::spans)) the tracks are empty.
    pub fn to_trace(&self) -> String {
        let mut out = String::from("{\"displayTimeUnit\":\"ns\",\"otherData\":");
        let lost = self.spans_lost;
        out.push_str(&json!({ "title": self.title, "spans_lost": lost }).to_string());
        let process = json!({ "ph": "M", "name": "process_name", "pid": 1, "args": { "name": "plinth" } });
        // Writing to a String can't fail.
        let _ = write!(out, ",\"traceEvents\":[\n{process}");
        for (at, worker) in self.workers.iter().enumerate() {
            let thread =
                json!({ "ph": "M", "name": "thread_name", "pid": 1, "tid": at + 1, "args": { "name": worker.name } });
            let _ = write!(out, ",\n{thread}");
        }
        let heads: Vec<String> = self
            .rows
            .iter()
            .map(|row| json!({ "name": row.name, "cat": row.anchor.stage.name() }).to_string())
            .collect();
        for span in &self.spans {
            let Some(head) = heads.get(span.row).and_then(|head| head.strip_suffix('}')) else { continue };
            let (tid, start, time) = (span.worker + 1, Micros(span.start), Micros(span.time));
            let _ = write!(out, ",\n{head},\"ph\":\"X\",\"pid\":1,\"tid\":{tid},\"ts\":{start},\"dur\":{time}}}");
        }
        out.push_str("\n]}\n");
        out
    }
}

/// Microseconds to the nanosecond, as the format has them.
struct Micros(Duration);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanoseconds = nanoseconds(self.0);
        write!(f, "{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
    }
}
