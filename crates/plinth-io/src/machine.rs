//! What this machine has.

/// Bytes of memory a process should use at most unless told otherwise: a quarter of what there is, or of what the control
/// group allows.
pub fn default_memory() -> u64 {
    // Where it can't be told, a figure that every machine of today can spare.
    machine_memory().map_or(2 << 30, |total| (total / 4).max(128 << 20))
}

/// Bytes of memory that there are, or that the control group allows.
pub(crate) fn machine_memory() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| mem_total(&text));
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    machine.into_iter().chain(group).min()
}

fn mem_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found() {
        assert_eq!(mem_total("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
        assert_eq!(mem_total("nothing"), None);
        assert!(default_memory() >= 128 << 20);
    }
}
