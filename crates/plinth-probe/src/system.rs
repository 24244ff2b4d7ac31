//! What stands between the program and the device, as far as the kernel tells.

use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plinth_core::units;
use plinth_io::{IoError, Result};
use rustix::fs::{AtFlags, CWD, StatxFlags, major, minor, statx};

/// Where a folder is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The kernel's release.
    pub kernel: String,
    /// Processors this process may use.
    pub processors: usize,
    /// What the machine calls itself, if it is a virtual one.
    pub virtual_machine: Option<String>,
    /// The kind of file system.
    pub file_system: String,
    /// Its mount options.
    pub mount_options: String,
    /// The block device below, if there is one.
    pub device: Option<BlockDevice>,
    /// What addresses, and what offsets and lengths, of direct requests must be multiples of, if the file system tells.
    pub direct_alignment: Option<(u32, u32)>,
}

/// A block device, as `/sys` describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its name in `/sys/block`.
    pub name: String,
    /// What it calls itself; virtual ones are silent.
    pub model: String,
    /// The I/O scheduler in use.
    pub scheduler: String,
    /// Most requests the kernel queues for it.
    pub requests: Option<u64>,
    /// Most pieces of memory that are not contiguous in one request.
    pub segments: Option<u64>,
    /// `write back` if it has a volatile cache, which a sync must flush.
    pub write_cache: String,
}

impl BlockDevice {
    /// Whether it is known to be made by a hypervisor, and nothing but.
    pub fn is_virtual(&self) -> bool {
        ["vd", "xvd"].iter().any(|prefix| self.name.starts_with(prefix))
            || ["QEMU", "Virtual", "VBOX", "Msft"].iter().any(|word| self.model.contains(word))
    }

    /// Name and model.
    pub fn title(&self) -> String {
        if self.model.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.model) }
    }
}

impl Environment {
    /// Looks around a folder.
    ///
    /// # Errors
    /// If the folder can't be looked at.
    pub fn of(folder: &Path) -> Result<Self> {
        let absolute = folder.canonicalize().map_err(|e| IoError::os(folder, "find it", e))?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mount = Mount::of(&absolute, &mounts).unwrap_or_default();
        Ok(Self {
            kernel: line("/proc/sys/kernel/osrelease"),
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            virtual_machine: virtual_machine(),
            file_system: mount.kind.clone(),
            mount_options: mount.options.clone(),
            device: block_device(&mount),
            direct_alignment: None,
        })
    }

    /// Asks the file system how direct requests to a file must be aligned.
    #[must_use]
    pub fn with_alignment_of(mut self, file: &Path) -> Self {
        self.direct_alignment = statx(CWD, file, AtFlags::empty(), StatxFlags::DIOALIGN).ok().and_then(|stat| {
            let told = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && stat.stx_dio_offset_align > 0;
            told.then_some((stat.stx_dio_mem_align, stat.stx_dio_offset_align))
        });
        self
    }
}

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mount {
    number: String,
    point: PathBuf,
    kind: String,
    source: String,
    options: String,
}

impl Mount {
    /// The mount that a path lies on: the last of those with the longest point.
    fn of(path: &Path, mountinfo: &str) -> Option<Self> {
        let mounts = mountinfo.lines().filter_map(Self::parse).filter(|mount| path.starts_with(&mount.point));
        mounts.max_by_key(|mount| mount.point.components().count())
    }

    fn parse(line: &str) -> Option<Self> {
        let (first, second) = line.split_once(" - ")?;
        let mut first = first.split(' ').skip(2);
        let mut second = second.split(' ');
        let number = first.next()?.to_owned();
        // Blanks in names are written in octal.
        let point = PathBuf::from(first.nth(1)?.replace("\\040", " "));
        let options = first.next()?.to_owned();
        Some(Self { number, point, kind: second.next()?.to_owned(), source: second.next()?.to_owned(), options })
    }
}

fn block_device(mount: &Mount) -> Option<BlockDevice> {
    let mut at = PathBuf::from("/sys/dev/block").join(&mount.number);
    if !at.exists() {
        // A file system of several devices, such as Btrfs, has a number of its own; its source is one of them.
        let device = std::fs::metadata(&mount.source).ok()?.st_rdev();
        at = PathBuf::from("/sys/dev/block").join(format!("{}:{}", major(device), minor(device)));
    }
    let mut at = at.canonicalize().ok()?;
    if !at.join("queue").exists() {
        // A partition; its device is above.
        at.pop();
    }
    let read = |name: &str| line(at.join(name));
    let scheduler = read("queue/scheduler");
    let chosen = scheduler.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or(&scheduler);
    Some(BlockDevice {
        name: at.file_name()?.to_string_lossy().into_owned(),
        model: [read("device/vendor"), read("device/model")]
            .into_iter()
            // A PCI vendor's number says nothing to people.
            .filter(|text| !text.is_empty() && !text.starts_with("0x"))
            .collect::<Vec<_>>()
            .join(" "),
        scheduler: chosen.to_owned(),
        requests: read("queue/nr_requests").parse().ok(),
        segments: read("queue/max_segments").parse().ok(),
        write_cache: read("queue/write_cache"),
    })
}

fn virtual_machine() -> Option<String> {
    let told = [line("/sys/class/dmi/id/sys_vendor"), line("/sys/class/dmi/id/product_name")];
    let name = told.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let hypervisor = flags.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
    let known = ["QEMU", "Amazon EC2", "VMware", "Virtual Machine", "Google Compute", "VirtualBox", "Xen", "OpenStack"];
    if !hypervisor && !Path::new("/sys/hypervisor/type").exists() && !known.iter().any(|word| name.contains(word)) {
        return None;
    }
    Some(if name.is_empty() { "unnamed".to_owned() } else { name })
}

/// The only line of a small file of the kernel; empty if there is none.
pub(crate) fn line(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).map_or_else(|_| String::new(), |text| text.trim().to_owned())
}

/// How busy the processors are with something else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Share of the processors' time that other programs took, 0 to 1.
    pub others: f64,
    /// Share that the hypervisor gave to other machines, 0 to 1.
    pub stolen: f64,
}

/// Ticks so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ticks {
    all: u64,
    busy: u64,
    stolen: u64,
    own: u64,
}

impl Ticks {
    /// The counters now; zeros where they can't be read.
    pub(crate) fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let own = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        Self::parse(&stat, &own)
    }

    fn parse(stat: &str, own: &str) -> Self {
        let all: Vec<u64> = stat
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("cpu "))
            .map(|line| line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect())
            .unwrap_or_default();
        // user nice system idle iowait irq softirq steal
        let [user, nice, system, idle, wait, irq, softirq, stolen] = all[..] else { return Self::default() };
        let busy = user + nice + system + irq + softirq;
        // The second field is a name in brackets and may hold blanks; times of this process and its children are the
        // 14th to 17th.
        let own = own.rsplit_once(')').map_or("", |(_, rest)| rest);
        let own = own.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
        Self { all: busy + idle + wait + stolen, busy, stolen, own }
    }

    /// What happened since.
    pub(crate) fn until(self, later: Self) -> Load {
        let all = units::to_f64(later.all.saturating_sub(self.all).max(1));
        let own = later.own.saturating_sub(self.own);
        let others = later.busy.saturating_sub(self.busy).saturating_sub(own);
        Load {
            others: units::to_f64(others) / all,
            stolen: units::to_f64(later.stolen.saturating_sub(self.stolen)) / all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_a_path_is_the_innermost() {
        let text = "21 1 254:0 / / rw,relatime - ext4 /dev/root rw\n\
                    30 21 0:25 / /mnt/my\\040data rw,noatime shared:1 master:2 - btrfs /dev/sdb rw,ssd\n\
                    31 21 0:26 / /mnt ro - tmpfs none rw\nnonsense\n";
        let kind = |path: &str| Mount::of(Path::new(path), text).map(|mount| (mount.kind, mount.options));
        assert_eq!(kind("/mnt/my data/x"), Some(("btrfs".into(), "rw,noatime".into())));
        assert_eq!(kind("/mnt/my"), Some(("tmpfs".into(), "ro".into())));
        assert_eq!(kind("/mntx").map(|kind| kind.0), Some("ext4".into()));
        assert_eq!(Mount::of(Path::new("/"), ""), None);
    }

    #[test]
    fn this_machine_is_described() {
        let dir = tempfile::tempdir().unwrap();
        let found = Environment::of(dir.path()).unwrap().with_alignment_of(dir.path());
        assert!(!found.kernel.is_empty() && !found.file_system.is_empty() && found.processors > 0, "{found:?}");
        assert!(Environment::of(&dir.path().join("none")).is_err());
        assert!(BlockDevice { name: "vda".into(), ..BlockDevice::default() }.is_virtual());
        assert!(!BlockDevice { name: "nvme0n1".into(), ..BlockDevice::default() }.is_virtual());
    }

    #[test]
    fn load_is_what_others_did() {
        let own = |ticks: u64| format!("7 (a b) c) S 1 1 1 1 1 1 1 1 1 1 {ticks} 1 1 1 20 0");
        let before = Ticks::parse("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1\n", &own(10));
        let after = Ticks::parse("cpu  200 0 100 850 0 0 0 50 0 0\n", &own(70));
        let load = before.until(after);
        // Of 200 ticks 100 were busy, 60 with this, and 50 stolen.
        assert!((load.others - 0.2).abs() < 1e-9 && (load.stolen - 0.25).abs() < 1e-9, "{load:?}");
        assert_eq!(Ticks::parse("", "").until(after), Ticks::default().until(after));
    }
}
