use std::collections::BTreeSet;

use record::stack::{Setting, StackHost};

use super::{cut, line};
use crate::host::Host;

/// Processors beyond this many are not asked for their clock.
const PROCESSORS_MAX: usize = 4096;

const SETTINGS: [&str; 6] = [
    "vm.dirty_ratio",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_bytes",
    "vm.dirty_expire_centisecs",
    "vm.swappiness",
];

/// The machine around a stack.
pub(super) fn host(host: &Host) -> StackHost {
    let setting = |name: &&str| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        // Of each pair one is 0: the other counts.
        line(host, path).filter(|value| value != "0").map(|value| named(name, value))
    };
    let nodes = host.names("/sys/devices/system/node");
    let nodes = nodes.iter().filter(|name| numbered(name, "node")).count();
    StackHost {
        kernel: line(host, "/proc/sys/kernel/osrelease"),
        product: product(host),
        within: within(host),
        numa_nodes: u32::try_from(nodes).ok().filter(|&nodes| nodes > 0),
        governors: governors(host),
        mitigations: mitigations(host),
        vulnerabilities: vulnerabilities(host),
        settings: SETTINGS.iter().filter_map(setting).collect(),
    }
}

fn named(name: &str, value: String) -> Setting {
    Setting { name: name.to_owned(), value }
}

fn numbered(name: &str, prefix: &str) -> bool {
    let rest = name.strip_prefix(prefix);
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn product(host: &Host) -> Option<String> {
    let words =
        ["sys_vendor", "product_name"].map(|name| line(host, format!("/sys/class/dmi/id/{name}")));
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn within(host: &Host) -> Option<String> {
    let text = host.text("/proc/cpuinfo").unwrap_or_default();
    let is = |name: &str, word: &str| {
        text.lines().take(64).any(|line| {
            line.split_once(':').is_some_and(|(key, value)| {
                key.trim() == name && value.split_whitespace().any(|found| found == word)
            })
        })
    };
    if is("vendor_id", "User") || is("model name", "UML") {
        return Some("User-Mode Linux".to_owned());
    }
    if let Some(kind) = line(host, "/sys/hypervisor/type") {
        return Some(format!("a virtual machine ({kind})"));
    }
    if is("flags", "hypervisor") || is("Features", "hypervisor") {
        return Some("a virtual machine".to_owned());
    }
    host.exists("/.dockerenv").then(|| "a container".to_owned())
}

fn governors(host: &Host) -> Vec<String> {
    let root = "/sys/devices/system/cpu";
    let processors = host.names(root).into_iter().filter(|name| numbered(name, "cpu"));
    let found: BTreeSet<String> = processors
        .take(PROCESSORS_MAX)
        .filter_map(|name| line(host, format!("{root}/{name}/cpufreq/scaling_governor")))
        .collect();
    found.into_iter().collect()
}

/// Of the kernel's command line nothing else: people put secrets there.
fn mitigations(host: &Host) -> Vec<String> {
    let text = host.text("/proc/cmdline").unwrap_or_default();
    let is_one = |word: &&str| {
        let name = word.split('=').next().unwrap_or_default();
        [
            "mitigations",
            "nopti",
            "pti",
            "nospectre_v1",
            "nospectre_v2",
            "spectre_v2",
            "retbleed",
            "mds",
            "l1tf",
        ]
        .contains(&name)
    };
    text.split_whitespace().filter(is_one).map(cut).collect()
}

fn vulnerabilities(host: &Host) -> Vec<Setting> {
    let root = "/sys/devices/system/cpu/vulnerabilities";
    let states = host.names(root).into_iter().filter_map(|name| {
        let state = line(host, format!("{root}/{name}"))?;
        (state != "Not affected").then(|| named(&name, state))
    });
    states.collect()
}
