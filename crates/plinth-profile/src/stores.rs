//! What went to object stores and came from them.

use plinth_core::units;

/// Requests and bytes of object stores, while something was profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreTraffic {
    /// Requests that were sent, each try for itself.
    pub requests: u64,
    /// Bytes of objects that came.
    pub bytes: u64,
    /// Requests that were sent once more because the first was late.
    pub hedged: u64,
    /// Requests that went on where one broke off.
    pub resumed: u64,
    /// Bytes that were read from the local drive instead.
    pub drive_bytes: u64,
    /// Ranges that were.
    pub drive_hits: u64,
}

impl StoreTraffic {
    /// One line that says it.
    pub fn line(&self) -> String {
        let (requests, bytes) = (units::counted(self.requests, "request"), units::bytes(self.bytes));
        let mut line = format!("object stores: {requests}, {bytes} read");
        if self.drive_hits > 0 {
            let (bytes, ranges) = (units::bytes(self.drive_bytes), units::counted(self.drive_hits, "range"));
            line.push_str(&format!("; {bytes} of {ranges} kept on the drive"));
        }
        if self.hedged + self.resumed > 0 {
            let (hedged, resumed) = (self.hedged, self.resumed);
            line.push_str(&format!("; {hedged} late and sent twice, {resumed} broken off and resumed"));
        }
        line
    }
}
