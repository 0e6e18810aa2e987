//! The patterns, each as a command line of another program and one of ours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use super::peers::{BATCHED, Bonnie, Fio, Ioping, Peer, PgTestFsync, Sysbench};

/// A load that both programs can play.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    pub name: &'static str,
    pub title: &'static str,
    suite: &'static str,
    ours: &'static [&'static str],
    pub peer: &'static dyn Peer,
    /// What it is told.
    theirs: &'static [&'static str],
    /// Through the page cache, with the whole file in it.
    pub cached: bool,
    pub compares: Compares,
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub enum Compares {
    /// The rate, and median and 99th percentile of these operations.
    Latencies(&'static [&'static str]),
    /// The rate alone.
    Rate,
    /// The rate and the mean time of this operation.
    Mean(&'static str),
    /// The rate, and how often this operation flushed.
    Syncs(&'static str),
    /// The rates of several phases.
    Phases(&'static [Phase]),
}

/// A phase of ours and what the other calls it.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    pub name: &'static str,
    pub label: &'static str,
    /// The other counts so many of our requests as one.
    pub together: f64,
}

const fn phase(name: &'static str, label: &'static str, together: f64) -> Phase {
    Phase { name, label, together }
}

/// Whose turn it is. We come twice, so that the same blocks say how far a program agrees with
/// itself. fio comes twice where there is a ring: it submits each request by itself unless told
/// otherwise, we submit in the place of all that came back at once. Others are in fio's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    Peer,
    FioBatched,
    Ours,
    OursAgain,
}

impl Side {
    pub const ALL: [Self; 4] = [Self::Peer, Self::FioBatched, Self::Ours, Self::OursAgain];
}

/// Where and how long both play.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    pub plimsoll: PathBuf,
    /// The others that are here, by name.
    pub peers: BTreeMap<&'static str, PathBuf>,
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
        peer: &Fio,
        theirs: &["--rw=randread", "--bs=4k", "--ioengine=psync", "--direct=1", "--norandommap"],
        cached: false,
        compares: Compares::Latencies(&["read"]),
    },
    Pattern {
        name: "read-4k-32",
        title: "random read 4 KiB, direct, io_uring, QD 32",
        suite: "random-read",
        ours: &[RING, "queue_depth=32"],
        peer: &Fio,
        theirs: &[
            "--rw=randread",
            "--bs=4k",
            "--ioengine=io_uring",
            "--iodepth=32",
            "--direct=1",
            "--norandommap",
        ],
        cached: false,
        compares: Compares::Latencies(&["read"]),
    },
    Pattern {
        name: "write-4k-1",
        title: "random write 4 KiB, direct, blocking, QD 1",
        suite: "random-write",
        ours: &[BLOCKING],
        peer: &Fio,
        theirs: &["--rw=randwrite", "--bs=4k", "--ioengine=psync", "--direct=1", "--norandommap"],
        cached: false,
        compares: Compares::Latencies(&["write"]),
    },
    Pattern {
        name: "write-4k-32",
        title: "random write 4 KiB, direct, io_uring, QD 32",
        suite: "random-write",
        ours: &[RING, "queue_depth=32"],
        peer: &Fio,
        theirs: &[
            "--rw=randwrite",
            "--bs=4k",
            "--ioengine=io_uring",
            "--iodepth=32",
            "--direct=1",
            "--norandommap",
        ],
        cached: false,
        compares: Compares::Latencies(&["write"]),
    },
    Pattern {
        name: "sequential-128k-8",
        title: "sequential read 128 KiB, direct, io_uring, QD 8",
        suite: "sequential-read",
        ours: &[RING, "queue_depth=8"],
        peer: &Fio,
        theirs: &["--rw=read", "--bs=128k", "--ioengine=io_uring", "--iodepth=8", "--direct=1"],
        cached: false,
        compares: Compares::Latencies(&["read"]),
    },
    Pattern {
        name: "mix-8k-8",
        title: "random 8 KiB, 70 % reads, direct, io_uring, QD 8",
        suite: "random-read",
        ours: &[RING, "queue_depth=8", "block_size=8K", "read_share=0.7"],
        peer: &Fio,
        theirs: &[
            "--rw=randrw",
            "--rwmixread=70",
            "--bs=8k",
            "--ioengine=io_uring",
            "--iodepth=8",
            "--direct=1",
            "--norandommap",
        ],
        cached: false,
        compares: Compares::Latencies(&["read", "write"]),
    },
    Pattern {
        name: "commit-4k-1",
        title: "random write 4 KiB, fdatasync after each, direct, blocking, QD 1",
        suite: "random-write",
        ours: &[BLOCKING, "sync=fdatasync"],
        peer: &Fio,
        theirs: &[
            "--rw=randwrite",
            "--bs=4k",
            "--ioengine=psync",
            "--direct=1",
            "--norandommap",
            "--fdatasync=1",
        ],
        cached: false,
        compares: Compares::Latencies(&["write", "fdatasync"]),
    },
    Pattern {
        name: "cached-4k-1",
        title: "random read 4 KiB from the page cache, blocking, QD 1",
        suite: "random-read",
        ours: &[BLOCKING, "direct=false"],
        // fio empties the page cache of its files before it starts unless told not to.
        peer: &Fio,
        theirs: &[
            "--rw=randread",
            "--bs=4k",
            "--ioengine=psync",
            "--norandommap",
            "--invalidate=0",
        ],
        cached: true,
        compares: Compares::Latencies(&["read"]),
    },
    Pattern {
        name: "sysbench-rndrd",
        title: "sysbench rndrd, 16 KiB, direct",
        suite: "sysbench-rndrd",
        ours: &["file_count=1", "direct=true", BLOCKING],
        peer: &Sysbench,
        theirs: &["--file-test-mode=rndrd", "--file-extra-flags=direct"],
        cached: false,
        compares: Compares::Rate,
    },
    Pattern {
        name: "sysbench-rndwr",
        title: "sysbench rndwr, 16 KiB, fsync per 100",
        suite: "sysbench-rndwr",
        ours: &["file_count=1", BLOCKING],
        peer: &Sysbench,
        theirs: &["--file-test-mode=rndwr"],
        cached: true,
        compares: Compares::Syncs("fsync"),
    },
    Pattern {
        name: "sysbench-rndrw",
        title: "sysbench rndrw 3:2, 16 KiB, fsync per 100",
        suite: "sysbench-rndrw",
        ours: &["file_count=1", BLOCKING],
        peer: &Sysbench,
        theirs: &["--file-test-mode=rndrw"],
        cached: true,
        compares: Compares::Syncs("fsync"),
    },
    Pattern {
        name: "sysbench-seqrd",
        title: "sysbench seqrd, 16 KiB, direct",
        suite: "sysbench-seqrd",
        ours: &["file_count=1", "direct=true", BLOCKING],
        peer: &Sysbench,
        theirs: &["--file-test-mode=seqrd", "--file-extra-flags=direct"],
        cached: false,
        compares: Compares::Rate,
    },
    Pattern {
        name: "ioping-seek-rate",
        title: "ioping -R -D over the whole file",
        suite: "random-read",
        ours: &[BLOCKING],
        peer: &Ioping,
        theirs: &["-direct"],
        cached: false,
        compares: Compares::Mean("read"),
    },
    Pattern {
        name: "pg-test-fsync",
        title: "pg_test_fsync, commits by method",
        suite: "pg-test-fsync",
        ours: &[BLOCKING],
        peer: &PgTestFsync,
        theirs: &[],
        cached: false,
        compares: Compares::Phases(&[
            phase("one-open-datasync", "one open_datasync", 1.0),
            phase("one-fdatasync", "one fdatasync", 1.0),
            phase("one-fsync", "one fsync", 1.0),
            phase("one-open-sync", "one open_sync", 1.0),
            phase("two-open-datasync", "two open_datasync", 1.0),
            phase("two-fdatasync", "two fdatasync", 1.0),
            phase("two-fsync", "two fsync", 1.0),
            phase("two-open-sync", "two open_sync", 1.0),
        ]),
    },
    Pattern {
        name: "bonnie",
        title: "bonnie++, blocks of 8 KiB through the page cache",
        suite: "bonnie",
        ours: &[
            BLOCKING,
            "write-block.bytes={size}",
            "rewrite.operations={blocks-8k}",
            "read-block.bytes={size}",
        ],
        peer: &Bonnie,
        theirs: &[],
        cached: true,
        // Its rates are in KiB; a rewrite and a seek that updates are one operation in both.
        compares: Compares::Phases(&[
            phase("write-block", "write K/s", 1.0 / 8.0),
            phase("rewrite", "rewrite K/s", 1.0 / 8.0),
            phase("read-block", "read K/s", 1.0 / 8.0),
            phase("seek", "seeks/s", 1.0),
        ]),
    },
];

impl Pattern {
    /// Who takes part.
    pub fn sides(&self) -> Vec<Side> {
        let has_ring = self.peer.name() == "fio" && self.ours.contains(&RING);
        Side::ALL.into_iter().filter(|&side| has_ring || side != Side::FioBatched).collect()
    }

    /// The words that play this pattern once.
    pub fn command(&self, side: Side, setting: &Setting, seed: u32) -> Result<Vec<String>> {
        if matches!(side, Side::Ours | Side::OursAgain) {
            return Ok(self.our_command(setting, seed));
        }
        let name = self.peer.name();
        let program = setting.peers.get(name).with_context(|| format!("no {name} here"))?;
        let mut words = vec![text(program)];
        words.extend(self.peer.words(self.theirs, setting, seed));
        if side == Side::FioBatched {
            words.extend(BATCHED.map(str::to_owned));
        }
        Ok(words)
    }

    fn our_command(&self, setting: &Setting, seed: u32) -> Vec<String> {
        let mut words = our_start(self.suite, setting);
        // What has so much to do takes what time it takes.
        if !self.ours.iter().any(|set| set.contains("{size}")) {
            words.extend(["--time".to_owned(), format!("{}s", setting.seconds)]);
        }
        words.extend(["--seed".to_owned(), seed.to_string()]);
        let caches = (!self.cached).then_some("caches=purge");
        let sets = ["fill=false"].into_iter().chain(caches).chain(self.ours.iter().copied());
        for set in sets {
            let size = u64::from(setting.size.mebibytes);
            let set = set
                .replace("{size}", &format!("{size}MiB"))
                .replace("{blocks-8k}", &(size * 128).to_string());
            words.extend(["--set".to_owned(), set]);
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
            peers: ALL.iter().map(|p| (p.peer.name(), p.peer.name().into())).collect(),
            file: "FILE".into(),
            store: "STORE".into(),
            seconds: 3,
            size: FileSize { mebibytes: 1024 },
        }
    }

    #[test]
    fn both_sides_are_told_the_same_depth_and_directness() {
        for pattern in ALL.iter().filter(|pattern| pattern.peer.name() == "fio") {
            let fio = pattern.command(Side::Peer, &setting(), 7).unwrap().join(" ");
            let ours = pattern.command(Side::Ours, &setting(), 7).unwrap().join(" ");
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
        for pattern in ALL.iter().filter(|pattern| pattern.peer.name() == "fio") {
            let batched = pattern.sides().contains(&Side::FioBatched);
            let plain = pattern.command(Side::Peer, &setting(), 7).unwrap();
            assert_eq!(batched, plain.contains(&"--ioengine=io_uring".to_owned()), "{plain:?}");
            let more = pattern.command(Side::FioBatched, &setting(), 7).unwrap();
            assert_eq!(more[..plain.len()], plain);
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
