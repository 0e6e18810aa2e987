//! What a plan needs of the kernel and the kernel lacks, told before anything is built or loaded.

use layout::{Action, Step};

use crate::host::Host;

/// Lists of a kernel's modules, below the directory of its release.
const MODULE_LISTS: [&str; 2] = ["modules.dep", "modules.builtin"];

/// What steps need that the kernel neither has nor is seen to have a module for: file systems, and
/// `md`. Nothing where the kernel does not say what it has.
pub fn lacks<'a>(host: &Host, steps: impl IntoIterator<Item = &'a Step>) -> Vec<String> {
    let Ok(known) = host.text("/proc/filesystems") else { return Vec::new() };
    let modules = modules(host);
    let has = |name: &str| is_file_system(&known, name) || is_module(&modules, name);
    let has_md = host.path("/proc/mdstat").exists() || is_module(&modules, "md-mod");
    let mut lacking: Vec<String> = Vec::new();
    for step in steps {
        let Action::Run { argv } = &step.action else { continue };
        let name = match mounted_kind(argv) {
            Some(kind) if !has(kind) => kind,
            None if argv.first().is_some_and(|word| word == "mdadm") && !has_md => "md",
            _ => continue,
        };
        if !lacking.iter().any(|known| known == name) {
            lacking.push(name.to_owned());
        }
    }
    lacking
}

/// The file system that a mount asks for and that is none of those known to the kernel.
///
/// * `known`: as `/proc/filesystems` has them; nothing is lacking where that is not known.
pub(super) fn lacking<'a>(argv: &'a [String], known: &str) -> Option<&'a str> {
    mounted_kind(argv).filter(|kind| !known.is_empty() && !is_file_system(known, kind))
}

fn mounted_kind(argv: &[String]) -> Option<&str> {
    let mut words = argv.iter().map(String::as_str);
    let is_mount = words.next() == Some("mount");
    words.skip_while(|word| *word != "-t").nth(1).filter(|_| is_mount)
}

fn is_file_system(known: &str, kind: &str) -> bool {
    known.lines().any(|line| line.split_whitespace().next_back() == Some(kind))
}

/// The lists of the modules of the kernel that runs, one after the other.
fn modules(host: &Host) -> String {
    let release = host.line("/proc/sys/kernel/osrelease").unwrap_or_default();
    let list = |name| host.text(format!("/lib/modules/{release}/{name}")).unwrap_or_default();
    MODULE_LISTS.map(list).join("\n")
}

/// By lines such as `kernel/fs/jfs/jfs.ko.xz: kernel/...`.
fn is_module(modules: &str, name: &str) -> bool {
    let file = format!("/{name}.ko");
    let paths = modules.lines().filter_map(|line| line.split(':').next());
    paths.filter_map(|path| path.split_once(&file)).any(|(_, rest)| !rest.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn step(line: &str) -> Step {
        Step {
            what: "do it".to_owned(),
            stage: layout::Stage::FileSystem,
            action: Action::Run { argv: argv(line) },
            writes_to: vec![],
            makes: vec![],
            undo: vec![],
            waits_for: None,
            expect: vec![],
        }
    }

    #[test]
    fn a_file_system_that_the_kernel_lacks_is_known_by_its_list() {
        let of = |line: &str, known: &str| lacking(&argv(line), known).map(str::to_owned);
        let known = "nodev\tsysfs\n\text4\nnodev\tzfs\n";
        assert_eq!(of("mount -t jfs /dev/a /m", known).as_deref(), Some("jfs"));
        for line in ["mount -t ext4 /dev/a /m", "mount -t zfs a /m", "mkfs.jfs -t jfs", "mount /m"]
        {
            assert_eq!(of(line, known), None, "{line}");
        }
        assert_eq!(of("mount -t jfs /dev/a /m", ""), None);
    }

    #[test]
    fn what_is_neither_there_nor_a_module_is_lacking_once() {
        let root = std::env::temp_dir().join(format!("lacks-{}", std::process::id()));
        let host = Host::captured(&root);
        let put = |path: &str, text: &str| {
            let path = host.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let steps = [
            "mdadm --create /dev/md/a",
            "mount -t ext4 /dev/a /m",
            "mount -t jfs /dev/a /m",
            "mount -t jfs /dev/b /m",
            "mount -t f2fs /dev/b /m",
            "mkfs.nilfs2 /dev/a",
        ]
        .map(step);
        assert_eq!(lacks(&host, &steps), Vec::<String>::new(), "nothing is known");
        put("/proc/filesystems", "nodev\tsysfs\n\text4\n");
        put("/proc/sys/kernel/osrelease", "6.1\n");
        assert_eq!(lacks(&host, &steps), ["md", "jfs", "f2fs"]);
        put("/lib/modules/6.1/modules.dep", "kernel/fs/f2fs/f2fs.ko.xz: kernel/lib/x.ko\n");
        put("/lib/modules/6.1/modules.builtin", "kernel/drivers/md/md-mod.ko\n");
        assert_eq!(lacks(&host, &steps), ["jfs"]);
        std::fs::remove_dir_all(root).unwrap();
    }
}
