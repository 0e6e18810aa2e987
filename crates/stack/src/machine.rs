use record::Machine;

use crate::host::Host;

/// The machine, as its kernel names it. What it does not name is empty or 0.
pub fn machine(host: &Host) -> Machine {
    let cpuinfo = host.text("/proc/cpuinfo").unwrap_or_default();
    let status = host.text("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Machine {
        host: host.line("/proc/sys/kernel/hostname").unwrap_or_default(),
        kernel: host.line("/proc/sys/kernel/osrelease").unwrap_or_default(),
        architecture: std::env::consts::ARCH.to_owned(),
        processor: processor(&cpuinfo)
            .or_else(|| host.line("/proc/device-tree/model").map(|m| m.replace('\0', "")))
            .unwrap_or_default(),
        processors: allowed.map(count).unwrap_or_default(),
        memory_bytes: host.memory().map(|(_, total)| total).unwrap_or_default(),
    }
}

/// x86 has `model name`; arm64 has numbers only, which are still better than nothing.
fn processor(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_owned())
        })
    };
    field("model name").or_else(|| {
        let implementer = field("CPU implementer")?;
        let part = field("CPU part")?;
        Some(format!("implementer {implementer} part {part}"))
    })
}

/// How many processors a list such as `0-3,8,10-11` names.
fn count(list: &str) -> u32 {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    ranges.fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_counted() {
        for (list, n) in [("0-3", 4), ("0", 1), (" 0-1,4,8-9\n", 5), ("", 0), ("3-1", 0)] {
            assert_eq!(count(list), n, "{list}");
        }
    }

    #[test]
    fn processors_are_named() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: Fast 1\n").as_deref(), Some("Fast 1"));
        assert_eq!(
            processor("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n").as_deref(),
            Some("implementer 0x41 part 0xd0c")
        );
    }

    #[test]
    fn this_machine_has_all() {
        let machine = machine(&Host::this());
        assert!(machine.processors > 0 && machine.memory_bytes > 0, "{machine:?}");
        assert!(!machine.host.is_empty() && !machine.kernel.is_empty(), "{machine:?}");
    }
}
