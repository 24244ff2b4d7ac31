//! What the kernel grants for fast I/O, found out by asking for it, and what to do where it does not.

use std::io::{ErrorKind, IoSliceMut};

use io_uring::IoUring;
use plinth_io::{HUGE_PAGE, PAGE, Ring, Slab};
use rustix::fs::OFlags;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use rustix::process::{Resource, getrlimit};

use crate::system::{Environment, line};
use crate::target::Target;

/// A capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is called.
    pub name: &'static str,
    /// Whether it is there.
    pub there: bool,
    /// What was found.
    pub found: String,
    /// What makes it there, in one line.
    pub fix: Option<String>,
}

impl Step {
    fn new(name: &'static str, there: bool, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, there, found: found.into(), fix: (!there).then(|| fix.into()) }
    }
}

/// Tries every step on a file.
pub fn climb(target: &Target, environment: &Environment) -> Vec<Step> {
    let mut steps = rings();
    let limit = limit(&line("/proc/self/status"), getrlimit(Resource::Memlock).current);
    steps.push(registered(most_registered(), &limit));
    let no_direct = "put DIR on a file system that has O_DIRECT: ext4, XFS, Btrfs";
    let direct = if target.is_direct() { "requests pass by the page cache" } else { "refused by the file system" };
    steps.push(Step::new("O_DIRECT", target.is_direct(), direct, no_direct));
    let alignment = environment.direct_alignment;
    let found = alignment.map_or_else(
        || "the file system does not tell; 4 KiB is assumed".to_owned(),
        |(memory, offset)| format!("addresses {memory}, offsets {offset}"),
    );
    steps.push(Step::new("statx DIOALIGN", alignment.is_some(), found, "Linux 6.1 or later, on ext4, XFS or F2FS"));
    steps.push(no_wait(target));
    steps.push(cache_statistics(&environment.kernel));
    steps.push(transparent(&line("/sys/kernel/mm/transparent_hugepage/enabled")));
    steps.push(reserved(line("/proc/sys/vm/nr_hugepages").parse().unwrap_or(0)));
    steps
}

fn rings() -> Vec<Step> {
    let setup = IoUring::new(8);
    let there = setup.is_ok();
    let (found, fix) = match &setup {
        Ok(_) => ("a ring was set up".to_owned(), String::new()),
        Err(e) => (e.to_string(), why_refused(e, &line("/proc/sys/kernel/io_uring_disabled")).to_owned()),
    };
    let mut steps = vec![Step::new("io_uring", there, found, &fix)];
    let mut flag = |name, since: &str, ring: std::io::Result<IoUring>| {
        let found = ring.as_ref().map_or_else(|e| e.to_string(), |_| "granted".to_owned());
        let fix = if there { format!("Linux {since} or later") } else { fix.clone() };
        steps.push(Step::new(name, ring.is_ok(), found, fix));
    };
    flag("SUBMIT_ALL", "5.18", IoUring::builder().setup_submit_all().build(8));
    flag("SINGLE_ISSUER", "6.0", IoUring::builder().setup_single_issuer().build(8));
    flag("DEFER_TASKRUN", "6.1", IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(8));
    steps
}

/// Why a ring was refused, as what to do about it.
fn why_refused(e: &std::io::Error, disabled: &str) -> &'static str {
    match (e.kind(), disabled) {
        (_, "1" | "2") => "sysctl kernel.io_uring_disabled=0",
        (ErrorKind::PermissionDenied, _) => {
            "allow io_uring_setup, io_uring_enter and io_uring_register in the container's seccomp profile"
        }
        (ErrorKind::Unsupported, _) => "Linux 5.1 or later, built with CONFIG_IO_URING",
        (ErrorKind::OutOfMemory, _) => "ulimit -l unlimited",
        _ => "see what the kernel says; plain reads are used instead",
    }
}

/// What the engine wants to register.
const ENOUGH: usize = 64 << 20;

/// The largest piece of memory that a ring of this thread takes for its own, in bytes.
fn most_registered() -> std::io::Result<usize> {
    let mut ring = Ring::<()>::new(PAGE)?;
    let mut len = ENOUGH;
    loop {
        match Slab::new(len, true).and_then(|slab| ring.register(&slab)) {
            Ok(true) => return Ok(len),
            Ok(false) => return Err(ErrorKind::Unsupported.into()),
            Err(_) if len > HUGE_PAGE => len /= 2,
            Err(e) => return Err(e),
        }
    }
}

fn registered(most: std::io::Result<usize>, limit: &str) -> Step {
    let there = most.as_ref().is_ok_and(|most| *most >= ENOUGH);
    let fix = match &most {
        Err(e) if e.kind() == ErrorKind::Unsupported => "Linux 5.19 or later",
        _ => "ulimit -l unlimited (memlock in /etc/security/limits.conf, LimitMEMLOCK= of a systemd unit)",
    };
    let found = most.map_or_else(|e| e.to_string(), |most| format!("{} MiB at once", most >> 20));
    Step::new("registered buffers", there, format!("{found}; {limit}"), fix)
}

/// What the user may pin.
fn limit(status: &str, limit: Option<u64>) -> String {
    // CAP_IPC_LOCK, which is above the limit.
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    match limit {
        _ if set.is_some_and(|set| set >> 14 & 1 == 1) => "no limit (CAP_IPC_LOCK)".to_owned(),
        None => "no limit".to_owned(),
        Some(limit) => format!("limit of {} KiB for all processes of the user", limit >> 10),
    }
}

/// Whether a read can be refused rather than wait for the device.
fn no_wait(target: &Target) -> Step {
    let mut byte = [0];
    let answer = target
        .open(OFlags::empty())
        .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
        .and_then(|file| preadv2(&file, &mut [IoSliceMut::new(&mut byte)], 0, ReadWriteFlags::NOWAIT));
    let found = match answer {
        Ok(_) | Err(Errno::AGAIN) => "reads of what is not resident are refused".to_owned(),
        Err(e) => std::io::Error::from(e).to_string(),
    };
    let there = matches!(answer, Ok(_) | Err(Errno::AGAIN));
    Step::new("RWF_NOWAIT", there, found, "put DIR on a file system that has it: ext4, XFS, Btrfs")
}

fn cache_statistics(kernel: &str) -> Step {
    let mut parts = kernel.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse::<u32>().ok());
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    Step::new("cachestat", version >= (6, 5), format!("by the kernel's version, {kernel}"), "Linux 6.5 or later")
}

fn transparent(mode: &str) -> Step {
    let chosen = mode.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or("not built in");
    let there = matches!(chosen, "always" | "madvise");
    let fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
    Step::new("transparent huge pages", there, chosen, fix)
}

fn reserved(pages: u64) -> Step {
    let found = if pages == 0 { "none".to_owned() } else { format!("{pages} pages") };
    let fix = "sysctl vm.nr_hugepages=80 (only fio's buffers need them: without, its large requests may look slower)";
    Step::new("reserved huge pages", pages > 0, found, fix)
}

/// Whether a ring can be set up at all.
pub(crate) fn has_ring(steps: &[Step]) -> bool {
    steps.iter().any(|step| step.name == "io_uring" && step.there)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_missing_step_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let target = Target::fill(dir.path(), 16 << 20, Duration::ZERO).unwrap();
        let environment = Environment::of(dir.path()).unwrap().with_alignment_of(target.path());
        let steps = climb(&target, &environment);
        assert_eq!(steps.len(), 11);
        for step in &steps {
            assert_eq!(step.there, step.fix.is_none(), "{step:?}");
            assert!(!step.found.is_empty() && !step.found.contains('\n'), "{step:?}");
        }
        assert_eq!(has_ring(&steps), IoUring::new(2).is_ok());
    }

    #[test]
    fn what_refuses_is_told_apart() {
        let denied = std::io::Error::from(ErrorKind::PermissionDenied);
        assert!(why_refused(&denied, "2").contains("sysctl"));
        assert!(why_refused(&denied, "0").contains("seccomp"));
        assert!(why_refused(&ErrorKind::Unsupported.into(), "").contains("CONFIG_IO_URING"));
        let small = registered(Ok(4 << 20), &limit("Name:\tx\nCapEff:\t0000000000000000\n", Some(8 << 20)));
        assert_eq!(small.found, "4 MiB at once; limit of 8192 KiB for all processes of the user");
        assert!(small.fix.is_some_and(|fix| fix.starts_with("ulimit")));
        assert!(registered(Ok(ENOUGH), &limit("CapEff:\t0000000000004000\n", Some(0))).found.contains("CAP_IPC_LOCK"));
        assert!(registered(Err(ErrorKind::Unsupported.into()), "").fix.is_some_and(|fix| fix.starts_with("Linux")));
        assert!(
            !cache_statistics("6.4.12-x").there
                && cache_statistics("6.18.44-fc").there
                && cache_statistics("7.0").there
        );
        assert!(transparent("always [madvise] never").there && !transparent("always madvise [never]").there);
        assert!(!transparent("").there && !reserved(0).there && reserved(4).there);
    }
}
