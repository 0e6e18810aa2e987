//! What a worker needs to know of its thread and its machine.

use std::fs;

use device::Errno;
use units::Nanos;

/// CPU time and context switches of one thread so far, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Time in user mode. The kernel measures the sum exactly but on many configurations divides
    /// it by sampling at clock ticks: over short stays only the sum is exact.
    pub user: Nanos,
    /// Time in the kernel; see `user`.
    pub system: Nanos,
    /// Times it waited.
    pub voluntary_switches: u64,
    /// Times it was pushed off its processor.
    pub involuntary_switches: u64,
    /// Page faults that needed no I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
}

impl ThreadUsage {
    /// What was used since `earlier`, field by field.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
        }
    }
}

/// Of the calling thread (`getrusage`, `RUSAGE_THREAD`).
pub fn thread_usage() -> ThreadUsage {
    usage(libc::RUSAGE_THREAD)
}

/// Of all threads of the process, also those that have ended.
pub fn process_usage() -> ThreadUsage {
    usage(libc::RUSAGE_SELF)
}

fn usage(who: libc::c_int) -> ThreadUsage {
    // SAFETY: all-zero is a valid rusage.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `raw` is a valid place for one rusage; the call fails only for a bad `who`.
    unsafe { libc::getrusage(who, &raw mut raw) };
    let nanos =
        |at: libc::timeval| Nanos::new(at.tv_sec as u64 * 1_000_000_000 + at.tv_usec as u64 * 1000);
    ThreadUsage {
        user: nanos(raw.ru_utime),
        system: nanos(raw.ru_stime),
        voluntary_switches: raw.ru_nvcsw as u64,
        involuntary_switches: raw.ru_nivcsw as u64,
        minor_faults: raw.ru_minflt as u64,
        major_faults: raw.ru_majflt as u64,
    }
}

/// The calling thread's number, as under `/proc/self/task`.
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// A processor, as the kernel numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu(pub u32);

/// The processors on which the calling thread may run, ascending. At most 1024 are known.
pub fn affinity() -> Result<Vec<Cpu>, Errno> {
    let set = rustix::thread::sched_getaffinity(None).map_err(|e| Errno(e.raw_os_error()))?;
    let most = rustix::thread::CpuSet::MAX_CPU;
    Ok((0..most).filter(|&cpu| set.is_set(cpu)).map(|cpu| Cpu(cpu as u32)).collect())
}

/// Binds the calling thread to `cpus`. `EINVAL` if none of them exists or may be used.
pub fn set_affinity(cpus: &[Cpu]) -> Result<(), Errno> {
    let mut set = rustix::thread::CpuSet::new();
    for &Cpu(cpu) in cpus {
        if cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
            return Err(Errno::EINVAL);
        }
        set.set(cpu as usize);
    }
    rustix::thread::sched_setaffinity(None, &set).map_err(|e| Errno(e.raw_os_error()))
}

/// Version of the running kernel: `(6, 18)`. Zeroes if it calls itself something odd.
pub(crate) fn kernel_version() -> (u32, u32) {
    let name = rustix::system::uname();
    let mut numbers = name
        .release()
        .to_str()
        .unwrap_or_default()
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// CPU time (10 ms steps: that is all that is told of other threads) and voluntary context
/// switches of threads of this process that `wanted` picks by number and name.
pub(crate) fn usage_of_threads(wanted: impl Fn(u32, &str) -> bool) -> ThreadUsage {
    let mut sum = ThreadUsage::default();
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return sum };
    for task in tasks.flatten() {
        let Some(id) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A thread that ends meanwhile counts for nothing: it is not in flight either.
        let Ok(stat) = fs::read_to_string(task.path().join("stat")) else { continue };
        if let Some((user, system)) = ticks(&stat, |name| wanted(id, name)) {
            let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
            sum.user += Nanos::new(user * tick);
            sum.system += Nanos::new(system * tick);
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            sum.voluntary_switches += field(&status, "voluntary_ctxt_switches:");
            sum.involuntary_switches += field(&status, "nonvoluntary_ctxt_switches:");
        }
    }
    sum
}

/// User and system ticks from a `stat` line, if its name is wanted.
fn ticks(stat: &str, wanted: impl Fn(&str) -> bool) -> Option<(u64, u64)> {
    // The name is in parentheses and may itself hold spaces and parentheses.
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    if !wanted(name) {
        return None;
    }
    let mut fields = rest.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn field(status: &str, name: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_stat_line_whose_name_is_hostile() {
        let line = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 77 88 0 0 20";
        assert_eq!(ticks(line, |name| name == "a) b (c"), Some((77, 88)));
        assert_eq!(ticks(line, |_| false), None);
        assert_eq!(ticks("nonsense", |_| true), None);
    }

    #[test]
    fn usage_grows_with_work() {
        let before = thread_usage();
        let mut x = 1_u64;
        while thread_usage().since(&before).user.get() + thread_usage().since(&before).system.get()
            == 0
        {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(thread_id() > 0);
        assert!(kernel_version() >= (5, 4));
        let all = usage_of_threads(|id, _| id == thread_id());
        assert!(all.voluntary_switches + all.involuntary_switches < u64::MAX / 2);
    }

    #[test]
    fn binds_to_what_it_may_use() {
        let all = affinity().unwrap();
        set_affinity(&all[..1]).unwrap();
        assert_eq!(affinity().unwrap(), &all[..1]);
        set_affinity(&all).unwrap();
        assert_eq!(set_affinity(&[Cpu(1_000_000)]), Err(Errno::EINVAL));
    }
}
