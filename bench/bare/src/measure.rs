//! Runs a program on chosen processors and writes what it used and what others used there.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::usage::Usage;

/// What is written.
#[derive(Serialize)]
struct Measured {
    /// From the start of the program to its end.
    wall_ns: u64,
    user_ns: u64,
    system_ns: u64,
    rss_bytes_max: u64,
    /// Processor time that others took on the chosen processors meanwhile, interrupts and time
    /// stolen by the hypervisor included. In steps of 10 ms per processor.
    others_ns: u64,
    /// How many processors those are.
    cpus: usize,
}

pub fn run(cpus: &[u32], out: &Path, command: &[String]) -> Result<()> {
    if !cpus.is_empty() {
        pin(cpus)?;
    }
    let (program, arguments) = command.split_first().context("no program is named")?;
    let busy_before = busy(cpus)?;
    let start = Instant::now();
    let child = Command::new(program)
        .args(arguments)
        .spawn()
        .with_context(|| format!("starting {program}"))?;
    let (status, usage) = wait(child.id())?;
    let wall_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let busy_after = busy(cpus)?;
    let own = usage.user_ns + usage.system_ns;
    let measured = Measured {
        wall_ns,
        user_ns: usage.user_ns,
        system_ns: usage.system_ns,
        rss_bytes_max: usage.rss_bytes_max,
        others_ns: (busy_after.ns.saturating_sub(busy_before.ns)).saturating_sub(own),
        cpus: busy_after.cpus,
    };
    fs::write(out, serde_json::to_string(&measured)?)
        .with_context(|| format!("writing {}", out.display()))?;
    if !status.success() {
        std::process::exit(status.code().unwrap_or(1));
    }
    Ok(())
}

fn pin(cpus: &[u32]) -> Result<()> {
    // SAFETY: cpu_set_t is an array of bits, for which all zeroes is a value; CPU_SET is bounds
    // checked below, and the kernel only reads the set.
    let failed = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            if cpu >= libc::CPU_SETSIZE as u32 {
                bail!("no processor has the number {cpu}");
            }
            libc::CPU_SET(cpu as usize, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) != 0
    };
    if failed {
        bail!("pinning to {cpus:?}: {}", std::io::Error::last_os_error());
    }
    Ok(())
}

fn wait(pid: u32) -> Result<(ExitStatus, Usage)> {
    let pid = i32::try_from(pid).context("a process number beyond the kernel's range")?;
    loop {
        let mut status = 0;
        // SAFETY: rusage is plain integers, for which all zeroes is a value; both pointers are to
        // live variables that the kernel fills.
        let (got, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::wait4(pid, &mut status, 0, &mut usage), usage)
        };
        if got == pid {
            return Ok((ExitStatus::from_raw(status), Usage::from_kernel(&usage)));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("waiting for the program");
        }
    }
}

/// Processor time spent, idle and waiting left out.
struct Busy {
    ns: u64,
    cpus: usize,
}

fn busy(cpus: &[u32]) -> Result<Busy> {
    let text = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
    // SAFETY: takes and gives plain integers.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let ns_per_tick = 1_000_000_000 / u64::try_from(ticks_per_second).unwrap_or(100).max(1);
    Ok(busy_in(&text, cpus, ns_per_tick))
}

fn busy_in(stat: &str, cpus: &[u32], ns_per_tick: u64) -> Busy {
    let mut sum = Busy { ns: 0, cpus: 0 };
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        let number = words.next().and_then(|w| w.strip_prefix("cpu")).and_then(|n| n.parse().ok());
        let Some(number) = number else { continue };
        if !cpus.is_empty() && !cpus.contains(&number) {
            continue;
        }
        let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time is within user.
        let spent: u64 = ticks.iter().take(8).sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        sum.ns += (spent - idle) * ns_per_tick;
        sum.cpus += 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  9 9 9 9 9 9 9 9 9 9\n\
                        cpu0 1 2 3 100 50 4 5 6 7 0\n\
                        cpu1 10 0 0 100 50 0 0 0 0 0\nintr 5\n";

    #[test]
    fn idle_time_is_not_busy() {
        assert_eq!(busy_in(STAT, &[0], 10).ns, 210);
        assert_eq!(busy_in(STAT, &[], 10).ns, 310);
        assert_eq!(busy_in(STAT, &[], 10).cpus, 2);
    }

    #[test]
    fn a_program_is_measured() {
        let out = std::env::temp_dir().join(format!("bench-bare-{}.json", std::process::id()));
        run(&[], &out, &["true".into()]).unwrap();
        let text = fs::read_to_string(&out).unwrap();
        fs::remove_file(&out).unwrap();
        assert!(text.contains("\"rss_bytes_max\""), "{text}");
    }
}
