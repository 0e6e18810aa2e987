//! The patterns, each as a command line of fio and one of ours.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// A load that both programs can play.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pattern {
    pub name: &'static str,
    pub title: &'static str,
    suite: &'static str,
    ours: &'static [&'static str],
    fio: &'static [&'static str],
    /// Through the page cache, with the whole file in it.
    pub cached: bool,
    /// Operations whose latency is compared.
    pub operations: &'static [&'static str],
}

/// Whose turn it is. We come twice, so that the same blocks say how far a program agrees with
/// itself. fio comes twice where there is a ring: it submits each request by itself unless told
/// otherwise, we submit in the place of all that came back at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    Fio,
    FioBatched,
    Ours,
    OursAgain,
}

impl Side {
    pub const ALL: [Self; 4] = [Self::Fio, Self::FioBatched, Self::Ours, Self::OursAgain];
}

/// Where and how long both play.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    pub plimsoll: PathBuf,
    pub fio: PathBuf,
    pub file: PathBuf,
    pub store: PathBuf,
    pub seconds: u32,
    pub size: FileSize,
}

/// How large the file is.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FileSize {
    pub mebibytes: u32,
}

/// A ring on both sides, although ours would choose another back end for some of these: the
/// kernel's path should be the same.
const RING: &str = "backend=io-uring";
const BLOCKING: &str = "backend=blocking";

pub const ALL: &[Pattern] = &[
    Pattern {
        name: "read-4k-1",
        title: "random read 4 KiB, direct, blocking, QD 1",
        suite: "random-read",
        ours: &[BLOCKING],
        fio: &["--rw=randread", "--bs=4k", "--ioengine=psync", "--direct=1", "--norandommap"],
        cached: false,
        operations: &["read"],
    },
    Pattern {
        name: "read-4k-32",
        title: "random read 4 KiB, direct, io_uring, QD 32",
        suite: "random-read",
        ours: &[RING, "queue_depth=32"],
        fio: &[
            "--rw=randread",
            "--bs=4k",
            "--ioengine=io_uring",
            "--iodepth=32",
            "--direct=1",
            "--norandommap",
        ],
        cached: false,
        operations: &["read"],
    },
    Pattern {
        name: "write-4k-1",
        title: "random write 4 KiB, direct, blocking, QD 1",
        suite: "random-write",
        ours: &[BLOCKING],
        fio: &["--rw=randwrite", "--bs=4k", "--ioengine=psync", "--direct=1", "--norandommap"],
        cached: false,
        operations: &["write"],
    },
    Pattern {
        name: "write-4k-32",
        title: "random write 4 KiB, direct, io_uring, QD 32",
        suite: "random-write",
        ours: &[RING, "queue_depth=32"],
        fio: &[
            "--rw=randwrite",
            "--bs=4k",
            "--ioengine=io_uring",
            "--iodepth=32",
            "--direct=1",
            "--norandommap",
        ],
        cached: false,
        operations: &["write"],
    },
    Pattern {
        name: "sequential-128k-8",
        title: "sequential read 128 KiB, direct, io_uring, QD 8",
        suite: "sequential-read",
        ours: &[RING, "queue_depth=8"],
        fio: &["--rw=read", "--bs=128k", "--ioengine=io_uring", "--iodepth=8", "--direct=1"],
        cached: false,
        operations: &["read"],
    },
    Pattern {
        name: "mix-8k-8",
        title: "random 8 KiB, 70 % reads, direct, io_uring, QD 8",
        suite: "random-read",
        ours: &[RING, "queue_depth=8", "block_size=8K", "read_share=0.7"],
        fio: &[
            "--rw=randrw",
            "--rwmixread=70",
            "--bs=8k",
            "--ioengine=io_uring",
            "--iodepth=8",
            "--direct=1",
            "--norandommap",
        ],
        cached: false,
        operations: &["read", "write"],
    },
    Pattern {
        name: "commit-4k-1",
        title: "random write 4 KiB, fdatasync after each, direct, blocking, QD 1",
        suite: "random-write",
        ours: &[BLOCKING, "sync=fdatasync"],
        fio: &[
            "--rw=randwrite",
            "--bs=4k",
            "--ioengine=psync",
            "--direct=1",
            "--norandommap",
            "--fdatasync=1",
        ],
        cached: false,
        operations: &["write", "fdatasync"],
    },
    Pattern {
        name: "cached-4k-1",
        title: "random read 4 KiB from the page cache, blocking, QD 1",
        suite: "random-read",
        ours: &[BLOCKING, "direct=false"],
        // fio empties the page cache of its files before it starts unless told not to.
        fio: &["--rw=randread", "--bs=4k", "--ioengine=psync", "--norandommap", "--invalidate=0"],
        cached: true,
        operations: &["read"],
    },
];

/// As many at once as there are, on either way.
const BATCHED: [&str; 3] = [
    "--iodepth_batch_submit=32",
    "--iodepth_batch_complete_min=1",
    "--iodepth_batch_complete_max=32",
];

impl Pattern {
    /// Who takes part.
    pub fn sides(&self) -> Vec<Side> {
        let has_ring = self.ours.contains(&RING);
        Side::ALL.into_iter().filter(|&side| has_ring || side != Side::FioBatched).collect()
    }

    /// The words that play this pattern once.
    pub fn command(&self, side: Side, setting: &Setting, seed: u32) -> Vec<String> {
        match side {
            Side::Fio => self.fio_command(setting, seed),
            Side::FioBatched => {
                let mut words = self.fio_command(setting, seed);
                words.extend(BATCHED.map(str::to_owned));
                words
            }
            Side::Ours | Side::OursAgain => self.our_command(setting, seed),
        }
    }

    fn fio_command(&self, setting: &Setting, seed: u32) -> Vec<String> {
        let mut words = vec![
            text(&setting.fio),
            "--name=agree".to_owned(),
            format!("--filename={}", setting.file.display()),
            format!("--size={}M", setting.size.mebibytes),
            "--time_based".to_owned(),
            format!("--runtime={}", setting.seconds),
            format!("--randseed={seed}"),
            "--lat_percentiles=1".to_owned(),
            "--output-format=json".to_owned(),
        ];
        words.extend(self.fio.iter().map(|&word| word.to_owned()));
        words
    }

    fn our_command(&self, setting: &Setting, seed: u32) -> Vec<String> {
        let mut words = our_start(self.suite, setting);
        words.extend(["--time".to_owned(), format!("{}s", setting.seconds)]);
        words.extend(["--seed".to_owned(), seed.to_string()]);
        let caches = (!self.cached).then_some("caches=purge");
        let sets = ["fill=false"].into_iter().chain(caches).chain(self.ours.iter().copied());
        for set in sets {
            words.extend(["--set".to_owned(), set.to_owned()]);
        }
        words
    }
}

/// Makes the file and fills it.
pub fn making(setting: &Setting) -> Vec<String> {
    let mut words = our_start("sequential-write", setting);
    words.extend(["--time", "100ms", "--keep", "--seed", "1"].map(str::to_owned));
    words
}

fn our_start(suite: &str, setting: &Setting) -> Vec<String> {
    vec![
        text(&setting.plimsoll),
        "run".to_owned(),
        suite.to_owned(),
        "--classic".to_owned(),
        "--target".to_owned(),
        text(&setting.file),
        "--json".to_owned(),
        "--quiet".to_owned(),
        "--store".to_owned(),
        text(&setting.store),
        "--size".to_owned(),
        format!("{}MiB", setting.size.mebibytes),
        // fio writes to the file too, after which it is not known as ours any more.
        "--overwrite".to_owned(),
        text(&setting.file),
    ]
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn setting() -> Setting {
        Setting {
            plimsoll: "plimsoll".into(),
            fio: "fio".into(),
            file: "FILE".into(),
            store: "STORE".into(),
            seconds: 3,
            size: FileSize { mebibytes: 1024 },
        }
    }

    #[test]
    fn both_sides_are_told_the_same_depth_and_directness() {
        for pattern in ALL {
            let fio = pattern.command(Side::Fio, &setting(), 7).join(" ");
            let ours = pattern.command(Side::Ours, &setting(), 7).join(" ");
            let depth = |words: &str, key: &str| {
                let rest = words.split_once(key)?.1;
                rest.split_whitespace().next()?.parse::<u32>().ok()
            };
            assert_eq!(depth(&fio, "--iodepth="), depth(&ours, "queue_depth="), "{fio}\n{ours}");
            assert_eq!(fio.contains("--direct=1"), !ours.contains("direct=false"), "{fio}\n{ours}");
            assert_eq!(fio.contains("io_uring"), ours.contains("io-uring"), "{fio}\n{ours}");
            assert_eq!(fio.contains("fdatasync"), ours.contains("fdatasync"), "{fio}\n{ours}");
            assert!(fio.contains("--randseed=7") && ours.contains("--seed 7"), "{fio}\n{ours}");
            assert!(ours.contains("fill=false"), "{ours}");
            // Both start with the cache empty, or both with it full.
            assert_eq!(fio.contains("invalidate=0"), pattern.cached, "{fio}");
            assert_eq!(ours.contains("caches=purge"), !pattern.cached, "{ours}");
        }
    }

    #[test]
    fn only_rings_are_batched() {
        for pattern in ALL {
            let batched = pattern.sides().contains(&Side::FioBatched);
            let plain = pattern.command(Side::Fio, &setting(), 7);
            assert_eq!(batched, plain.contains(&"--ioengine=io_uring".to_owned()), "{plain:?}");
            assert_eq!(pattern.command(Side::FioBatched, &setting(), 7)[..plain.len()], plain);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = ALL.iter().map(|pattern| pattern.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
