//! What a study may touch. Every action is held against this right before it is done, whoever
//! planned it: a slip in the planning, or a journal that somebody edited, writes nothing.

use layout::{Action, FileSystemKind};

/// In front of every name that is given.
const PREFIX: &str = "plimsoll-";

/// The label of every file system that is made.
const LABEL: &str = "plimsoll";

/// Programs that may be started, `mkfs` apart.
const PROGRAMS: [&str; 18] = [
    "mdadm", "pvcreate", "vgcreate", "lvcreate", "lvchange", "lvremove", "vgremove", "vgchange",
    "pvremove", "wipefs", "mount", "umount", "btrfs", "zpool", "zfs", "blockdev", "zfs-fuse",
    "udevadm",
];

/// Those whose last word is what they remove.
const REMOVE_LAST: [&str; 3] = ["vgremove", "lvremove", "umount"];

/// So that LVM writes nothing below /etc.
const LVM_NO_BACKUP: &str = "backup/backup=0 backup/archive=0";

/// Settings of a queue that may be changed.
const SETTINGS: [&str; 3] = ["scheduler", "nr_requests", "read_ahead_kb"];

/// What a study may touch, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Paths as the operator named them.
    devices: Vec<String>,
    /// Kernel names of the disks whose queues may be set.
    queues: Vec<String>,
    /// `plimsoll-KEY`: begins every name of an array, a group, a pool.
    tag: String,
    /// Mount points are below this.
    mounts: String,
}

/// An action that is of no concern of this study.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{action}` is not done: {why}")]
pub struct NotAllowed {
    /// The words of the command.
    action: String,
    /// What is wrong with it.
    why: String,
}

impl Allowed {
    /// * `devices`: paths as the operator named them; `queues`: kernel names of the disks that
    ///   these are or lie on.
    /// * `key`: the study's; `mount_root`: as in the names that are given.
    pub fn new(devices: Vec<String>, queues: Vec<String>, key: &str, mount_root: &str) -> Self {
        let root = mount_root.trim_end_matches('/');
        Self { devices, queues, tag: format!("{PREFIX}{key}"), mounts: format!("{root}/{key}") }
    }

    /// Whether an action touches only what it may.
    pub fn check(&self, action: &Action) -> Result<(), NotAllowed> {
        let refuse = |why: String| Err(NotAllowed { action: words(action), why });
        match action {
            Action::Run { argv } => match self.run(argv) {
                Some(why) => refuse(why),
                None => Ok(()),
            },
            Action::WriteFile { path, .. } | Action::PutBack { path } => {
                let puts_back = matches!(action, Action::PutBack { .. });
                let known = self.queues.iter().any(|queue| {
                    let file = path.strip_prefix(&format!("/sys/block/{queue}/queue/"));
                    file.is_some_and(|file| {
                        SETTINGS.contains(&file) || puts_back && is_of_scheduler(file)
                    })
                });
                if known { Ok(()) } else { refuse(format!("{path} is no setting of its devices")) }
            }
            Action::MakeDirectory { path } | Action::RemoveDirectory { path } => {
                if self.is_mount(path) {
                    Ok(())
                } else {
                    refuse(format!("{path} is not below {}", self.mounts))
                }
            }
        }
    }

    /// Why a command is not to be run.
    fn run(&self, argv: &[String]) -> Option<String> {
        let (program, arguments) = match argv.split_first() {
            Some(parts) => parts,
            None => return Some("it has no words".to_owned()),
        };
        let mkfs = program
            .strip_prefix("mkfs.")
            .is_some_and(|kind| FileSystemKind::ALL.iter().any(|known| known.name() == kind));
        if !mkfs && !PROGRAMS.contains(&program.as_str()) {
            return Some(format!("{program} is none of the programs that build stacks"));
        }
        if let Some(word) = elsewhere(program, arguments) {
            return Some(format!("`{word}` makes it write to something besides its device"));
        }
        if let Some((word, why)) = unlike_a_plain_mount(program, arguments) {
            return Some(format!("the mount option `{word}` {why}"));
        }
        if let Some(word) = shifted(program, arguments) {
            return Some(format!(
                "`{word}` puts the file system elsewhere than at the device's first byte, where a \
                 study knows its own"
            ));
        }
        if let Some(word) = otherwise(program, arguments) {
            return Some(format!(
                "`{word}` makes something else of it, or calls it otherwise than `{LABEL}`, by which \
                 a study knows its own"
            ));
        }
        // What LVM is told besides: keys of its configuration look like paths.
        let settings = |word: &&String| word.as_str() != LVM_NO_BACKUP;
        for word in arguments.iter().filter(settings) {
            let upper = word.to_ascii_uppercase();
            if ["LABEL=", "UUID="].iter().any(|by| upper.contains(by)) {
                return Some(format!("`{word}` names a device by what is written on it"));
            }
            let pieces = word.split([',', '=', ' ', '\t', '\n']);
            // By-path names of devices have colons in them.
            let strange = pieces
                .filter(|piece| !self.may(piece))
                .flat_map(|piece| piece.split(':'))
                .find(|part| part.contains('/') && !self.may(part));
            if let Some(part) = strange {
                return Some(format!("{part} is neither in [devices] nor made by this study"));
            }
        }
        let last = arguments.last().map(String::as_str).unwrap_or_default();
        let destroys =
            program == "zpool" && arguments.first().is_some_and(|word| word == "destroy");
        if (REMOVE_LAST.contains(&program.as_str()) || destroys) && !self.is_ours(last) {
            return Some(format!("{last} was not made by this study"));
        }
        None
    }

    /// Whether a word with a slash in it is a device of the study, or something that it made.
    fn may(&self, word: &str) -> bool {
        if word.split('/').any(|part| part == ".." || part == ".") {
            return false;
        }
        self.devices.iter().any(|device| device == word) || self.is_ours(word)
    }

    /// Whether a name is one that this study gives.
    fn is_ours(&self, word: &str) -> bool {
        let tagged = |rest: &str| {
            rest.strip_prefix(&self.tag)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '/']))
        };
        if word.split('/').any(|part| part == "..") {
            return false;
        }
        let path = word.strip_prefix("/dev/md/").or_else(|| word.strip_prefix("/dev/"));
        self.is_mount(word) || tagged(path.unwrap_or(word))
    }

    fn is_mount(&self, path: &str) -> bool {
        let plain = !path.split('/').any(|part| part == "..");
        plain
            && path
                .strip_prefix(&self.mounts)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Whether a file of a queue is one of its scheduler's own.
fn is_of_scheduler(file: &str) -> bool {
    let name = file.strip_prefix("iosched/");
    name.is_some_and(|name| !name.is_empty() && !name.contains('/') && !name.starts_with('.'))
}

/// The word by which a `mkfs` would write to a file, or another device, that is named without a slash.
fn elsewhere<'a>(program: &str, arguments: &'a [String]) -> Option<&'a str> {
    let kind = program.strip_prefix("mkfs.")?;
    // Letters that take no value may stand before one that does.
    let (before, letters) = match kind {
        "ext2" | "ext3" | "ext4" => ("cjnqvDFKSV", "z"),
        "f2fs" => ("fmqS", "c"),
        "jfs" => ("cfOqV", "j"),
        _ => ("", ""),
    };
    let by_letter = |word: &str| {
        let rest = word
            .strip_prefix('-')
            .map(|rest| rest.trim_start_matches(|c: char| before.contains(c)));
        rest.is_some_and(|rest| rest.starts_with(|c: char| letters.contains(c)))
    };
    let by_name = |word: &str| {
        let names = ["logdev=", "rtdev=", "name=", "file=", "device="];
        word.split([',', ' ']).any(|part| {
            // `-dname=x`: one letter and its value in one word.
            let joined = part.strip_prefix('-').and_then(|rest| rest.get(1..)).unwrap_or(part);
            names.iter().any(|name| joined.starts_with(name) && !part.contains('/'))
        })
    };
    arguments.iter().map(String::as_str).find(|word| by_letter(word) || by_name(word))
}

/// The word by which a `mkfs` would give another label than ours, or make another kind than its own.
fn otherwise<'a>(program: &str, arguments: &'a [String]) -> Option<&'a str> {
    let kind = program.strip_prefix("mkfs.")?;
    // Letters that take no value may stand before one that does.
    let (before, letters) = match kind {
        "ext2" | "ext3" | "ext4" => ("cjnqvDFKSV", "Lt"),
        "f2fs" => ("fmqS", "l"),
        "jfs" => ("cfOqV", "L"),
        "xfs" => ("fKNqV", "L"),
        "nilfs2" => ("cfKnqvV", "L"),
        "btrfs" => ("fKqvV", "L"),
        _ => ("", ""),
    };
    let others = arguments.iter().skip(1).map(String::as_str).chain([""]);
    let mut found = arguments.iter().map(String::as_str).zip(others);
    found.find_map(|(word, next)| {
        let by_letter = word.strip_prefix('-').is_some_and(|rest| {
            let rest = rest.trim_start_matches(|c: char| before.contains(c));
            rest.starts_with(|c: char| letters.contains(c))
        });
        // Tools take the beginning of a long option for the whole.
        let option = word.split('=').next().unwrap_or_default();
        let is_label = option.len() > 2 && "--label".starts_with(option);
        let by_name = is_label || word.contains("journal_dev");
        let is_ours = word.len() == 2 && next == LABEL;
        ((by_letter || by_name) && !is_ours).then_some(word)
    })
}

/// The mount option by which something else would be mounted than the study's device, and why it is
/// not taken.
fn unlike_a_plain_mount<'a>(
    program: &str,
    arguments: &'a [String],
) -> Option<(&'a str, &'static str)> {
    if program != "mount" {
        return None;
    }
    let given = arguments.iter().zip(arguments.iter().skip(1)).filter(|(word, _)| *word == "-o");
    given.flat_map(|(_, options)| options.split(',')).find_map(|option| {
        let name = option.split('=').next().unwrap_or_default();
        let why = match name {
            "loop" | "offset" | "sizelimit" | "encryption" => {
                "puts a loop device of its own over the study's, which is none of [devices]"
            }
            "bind" | "rbind" | "move" | "remount" => {
                "mounts no file system of a device: it changes what is mounted already"
            }
            "X-mount.subdir" => "mounts a part of the file system elsewhere in it",
            "helper" | "uhelper" => "has another program mount or unmount it",
            "journal_dev" => "names another device by its number",
            name if name.starts_with("verity.") => {
                "puts a device of its own over the study's, which is none of [devices]"
            }
            _ => return None,
        };
        Some((option, why))
    })
}

/// The word by which a `mkfs` would begin further on than at the first byte.
fn shifted<'a>(program: &str, arguments: &'a [String]) -> Option<&'a str> {
    program.strip_prefix("mkfs.")?;
    arguments.iter().map(String::as_str).find(|word| word.contains("offset="))
}

/// An action as a line.
fn words(action: &Action) -> String {
    match action {
        Action::Run { argv } => argv.join(" "),
        Action::WriteFile { path, value } => format!("write {value} to {path}"),
        Action::PutBack { path } => format!("put {path} back"),
        Action::MakeDirectory { path } => format!("mkdir {path}"),
        Action::RemoveDirectory { path } => format!("rmdir {path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Allowed {
        let devices =
            ["/dev/loop1", "/dev/disk/by-id/ata-X_1", "/dev/disk/by-path/pci-0:0:1f.2-ata-1"];
        let devices = devices.map(str::to_owned).to_vec();
        let queues = vec!["loop1".to_owned(), "sda".to_owned()];
        Allowed::new(devices, queues, "0123abcd", "/run/plimsoll")
    }

    fn run(line: &str) -> Result<(), NotAllowed> {
        let argv = line.split(' ').map(str::to_owned).collect();
        allowed().check(&Action::Run { argv })
    }

    #[test]
    fn what_the_study_named_or_made_may_be_touched() {
        for line in [
            "mkfs.xfs -f -L plimsoll -d su=64k,sw=2 /dev/loop1",
            "mdadm --create /dev/md/plimsoll-0123abcd-leg0 --level=5 /dev/loop1 /dev/disk/by-id/ata-X_1",
            "mdadm --zero-superblock /dev/loop1",
            "mkfs.ext4 -q -F -L plimsoll -T largefile /dev/disk/by-path/pci-0:0:1f.2-ata-1",
            "mount -o device=/dev/disk/by-path/pci-0:0:1f.2-ata-1 /dev/loop1 /run/plimsoll/0123abcd/data",
            "mkfs.f2fs -f -l plimsoll -t 1 /dev/loop1",
            "mkfs.btrfs -f -L plimsoll --nodiscard /dev/loop1",
            "pvcreate --yes /dev/md/plimsoll-0123abcd-leg0",
            "lvcreate --yes --name data plimsoll-0123abcd /dev/loop1",
            "lvchange --rebuild /dev/loop1 plimsoll-0123abcd-leg0/data",
            "vgremove --yes --force plimsoll-0123abcd-leg0",
            "mkfs.ext4 -q /dev/plimsoll-0123abcd/data",
            "mkfs.ext4 -q -F -L plimsoll -O ^resize_inode,quota -N 4096 -j /dev/loop1",
            "mkfs.xfs -f -m crc=1 -l size=64m /dev/loop1",
            "mount -o noatime,loopy,commit=9 /dev/loop1 /run/plimsoll/0123abcd/data",
            "mount -t btrfs -o noatime,device=/dev/loop1 /dev/loop1 /run/plimsoll/0123abcd/data",
            "umount /run/plimsoll/0123abcd/data",
            "zpool destroy plimsoll-0123abcd",
            "wipefs --all --types xfs /dev/loop1",
        ] {
            assert_eq!(run(line), Ok(()), "{line}");
        }
        let path = "/sys/block/sda/queue/scheduler".to_owned();
        assert!(allowed().check(&Action::PutBack { path }).is_ok());
        let path = "/run/plimsoll/0123abcd/data".to_owned();
        assert!(allowed().check(&Action::MakeDirectory { path }).is_ok());
    }

    /// Whatever the layout plans over its devices may be done, and nothing of it over others.
    #[test]
    fn all_that_is_planned_over_the_named_devices_is_allowed() {
        use layout::{
            ArrayState, DeviceFacts, DeviceId, FileSystem, Leg, Level, Maker, Names, Settings,
            StackSpec, Stripe,
        };
        let devices: Vec<DeviceId> = (1..=8).map(|k| DeviceId::new(format!("/dev/x{k}"))).collect();
        let paths = |from: usize| devices[from..].iter().map(|d| d.as_str().to_owned()).collect();
        let queues: Vec<String> = (1..=8).map(|k| format!("x{k}")).collect();
        let named = Allowed::new(paths(0), queues, "0123abcd", Names::MOUNT_ROOT);
        let lacking = Allowed::new(paths(1), vec![], "0123abcd", Names::MOUNT_ROOT);
        let names = Names::new("0123abcd").unwrap();
        let facts = DeviceFacts::assumed(&devices, units::Bytes::gib(4));
        let leg = |maker, level: Level, from: usize| Leg {
            maker,
            level: Some(level),
            chunk: (level.has_chunk() && matches!(maker, Maker::Md | Maker::Lvm))
                .then_some(units::Bytes::kib(64)),
            members: devices[from..from + 4].to_vec(),
            spares: vec![],
        };
        let (mut planned, mut lacked) = (0, 0);
        for maker in [Maker::Md, Maker::Lvm, Maker::Btrfs, Maker::Zfs] {
            for level in Level::ALL {
                for kind in FileSystemKind::ALL {
                    for legs in 1..=2 {
                        for state in [ArrayState::Healthy, ArrayState::Rebuilding] {
                            let all = (0..legs).map(|k| leg(maker, level, 4 * k)).collect();
                            let mut stack = StackSpec::of(all);
                            let (by, level) = (Maker::Md, Level::Raid0);
                            let stripe = Stripe { maker: by, level, chunk: None };
                            stack.stripe = (legs > 1).then_some(stripe);
                            stack.file_system = Some(FileSystem { kind, options: vec![] });
                            stack.state = state;
                            let scheduler = Some("none".to_owned());
                            stack.settings = Settings { scheduler, ..Settings::default() };
                            let Ok(steps) = layout::steps::build(&stack, &names, &facts) else {
                                continue;
                            };
                            planned += 1;
                            let undos = steps.iter().flat_map(|step| &step.undo);
                            let actions = steps.iter().map(|step| &step.action);
                            for action in actions.chain(undos.map(|undo| &undo.action)) {
                                assert_eq!(named.check(action), Ok(()));
                                let names_it = words(action).contains("/dev/x1");
                                assert!(!names_it || lacking.check(action).is_err());
                                lacked += usize::from(names_it);
                            }
                        }
                    }
                }
            }
        }
        assert!(planned > 100 && lacked > 100, "{planned} stacks, {lacked} actions on the first");
    }

    #[test]
    fn nothing_else_is_ever_touched() {
        for line in [
            "mkfs.xfs -f /dev/loop2",
            "mkfs.xfs -f /dev/disk/by-path/pci-0:0:1f.2-ata-2",
            "mkfs.ext4 -J device=/dev/loop1:/dev/sdb /dev/loop1",
            "mkfs.ext4 -L plimsoll -L x /dev/loop1",
            "mkfs.ext4 -qLx /dev/loop1",
            "mkfs.ext4 -L plimsoll -t ext3 /dev/loop1",
            "mkfs.ext4 -L plimsoll -O journal_dev /dev/loop1",
            "mkfs.xfs -f -L x /dev/loop1",
            "mkfs.btrfs --label=x /dev/loop1",
            "mkfs.btrfs --lab x /dev/loop1",
            "mkfs.f2fs -lx /dev/loop1",
            "mkfs.xfs -f /dev/loop11",
            "mkfs.xfs -f /dev/../dev/loop2",
            "mkfs.xfs -f dev/sdb",
            "mkfs.xfs -f ./dev/sdb",
            "mkfs.xfs -l logdev=/dev/sdb /dev/loop1",
            "mkfs.ext4 -J device=/dev/sdb /dev/loop1",
            "mkfs.ext4 -J device=UUID=77 /dev/loop1",
            "mkfs.ext4 -z victim.txt /dev/loop1",
            "mkfs.ext4 -qFzvictim.txt /dev/loop1",
            "mkfs.ext4 -J device=victim /dev/loop1",
            "mkfs.xfs -l logdev=victim /dev/loop1",
            "mkfs.xfs -d su=64k,file=1,name=victim /dev/loop1",
            "mkfs.f2fs -f -c victim /dev/loop1",
            "mkfs.jfs -q -jvictim /dev/loop1",
            "mkfs.ext4 -J device=LABEL=x /dev/loop1",
            "mkfs.vfat /dev/loop1",
            "mkfs.ext4 -E stride=16,offset=4096 /dev/loop1",
            "mkfs.ext4 -q -Eoffset=4096 /dev/loop1",
            "mount -o loop /dev/loop1 /run/plimsoll/0123abcd/data",
            "mount -t ext4 -o noatime,offset=0 /dev/loop1 /run/plimsoll/0123abcd/data",
            "mount -o sizelimit=4096 /dev/loop1 /run/plimsoll/0123abcd/data",
            "mount -o bind /dev/loop1 /run/plimsoll/0123abcd/data",
            "mount -o remount,ro /dev/loop1 /run/plimsoll/0123abcd/data",
            "mount -o verity.roothash=00 /dev/loop1 /run/plimsoll/0123abcd/data",
            "mount -t ext4 -o noatime,journal_dev=0x702 /dev/loop1 /run/plimsoll/0123abcd/data",
            "dd of=/dev/loop1",
            "sh -c true",
            "/bin/mount /dev/loop1 /run/plimsoll/0123abcd/data",
            "mount /dev/loop1 /home",
            "mount /dev/loop1 /run/plimsoll/0123abcd/../../../home",
            "mount /dev/loop1 /run/plimsoll/0123abcde/data",
            "umount /home",
            "umount -a",
            "vgremove --yes system",
            "vgremove --yes plimsoll-0123abcd system",
            "zpool destroy tank",
            "mdadm --stop /dev/md/other",
            "mdadm --stop /dev/md/plimsoll-ffffffff-leg0",
            "mdadm --stop /dev/md0",
            "mdadm --zero-superblock /dev/sdb",
            "lvchange --rebuild /dev/loop1 system/data",
            "wipefs --all /dev/sda",
        ] {
            assert!(run(line).is_err(), "{line}");
        }
        assert!(allowed().check(&Action::Run { argv: vec![] }).is_err());
        for path in [
            "/sys/block/sdb/queue/scheduler",
            "/sys/block/sda/queue/wbt_lat_usec",
            "/sys/block/sda/queue/../../sdb/queue/scheduler",
            "/sys/block/sda/queue/iosched/../scheduler",
            "/sys/block/sda/queue/iosched/",
            "/sys/block/sdb/queue/iosched/low_latency",
            "/etc/passwd",
        ] {
            let (path, value) = (path.to_owned(), "x".to_owned());
            assert!(allowed().check(&Action::PutBack { path: path.clone() }).is_err());
            assert!(allowed().check(&Action::WriteFile { path: path.clone(), value }).is_err());
            assert!(allowed().check(&Action::RemoveDirectory { path }).is_err());
        }
        for path in ["/run/plimsoll", "/", "/run/plimsoll/0123abcd/../x", "/run/plimsoll/0123abcde"]
        {
            let path = path.to_owned();
            assert!(
                allowed().check(&Action::MakeDirectory { path: path.clone() }).is_err(),
                "{path}"
            );
        }
    }
}
