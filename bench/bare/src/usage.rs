//! Processor time by the kernel's own account.

/// Processor time of a process, its ended children left out.
#[derive(Clone, Copy)]
pub struct Usage {
    pub user_ns: u64,
    pub system_ns: u64,
    /// The most memory it ever held.
    pub rss_bytes_max: u64,
}

impl Usage {
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            rss_bytes_max: self.rss_bytes_max,
        }
    }

    pub fn from_kernel(usage: &libc::rusage) -> Self {
        Self {
            user_ns: nanoseconds(usage.ru_utime),
            system_ns: nanoseconds(usage.ru_stime),
            // The kernel gives KiB.
            rss_bytes_max: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        }
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_usec).unwrap_or(0) * 1000
}

/// Of this process, so far.
pub fn of_self() -> Usage {
    // SAFETY: rusage is plain integers, for which all zeroes is a value; the kernel fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    Usage::from_kernel(&usage)
}
