//! The command lines: ours, the bare loops', and the peers' at their best.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::contender::{Contender, Prints};
use crate::repo::find_program;

/// Where the programs are.
#[derive(Debug)]
pub struct Peers {
    pub plimsoll: PathBuf,
    pub bare: PathBuf,
    /// The same as one static file, if `make dist` has built it.
    pub statically: PathBuf,
    /// Looked through before PATH.
    pub searched: Vec<PathBuf>,
    /// Where our runs are stored, so that recording is part of what is measured.
    pub store: PathBuf,
    pub seconds: u32,
}

/// A read load that every program understands.
#[derive(Clone, Debug)]
pub struct Load {
    pub target: PathBuf,
    pub queue_depth: u32,
    pub threads: u32,
    /// Around the page cache.
    pub direct: bool,
}

impl Load {
    /// Whether the target is the kernel's own null, which has no size.
    fn is_null(&self) -> bool {
        self.target == Path::new("/dev/zero")
    }
}

/// What the static build of ours is called.
pub const STATIC: &str = "plimsoll, static";
/// Submitted at once at most; fio's own loop uses this too.
const BATCH: u32 = 32;

impl Peers {
    fn find(&self, name: &str) -> Option<PathBuf> {
        let beside =
            |dir: &PathBuf| [dir.join(name), dir.join("t").join(name), dir.join("bin").join(name)];
        self.searched
            .iter()
            .flat_map(beside)
            .find(|file| file.is_file())
            .or_else(|| find_program(name))
    }

    /// What is here, by its own word.
    pub fn versions(&self) -> Vec<(&'static str, String)> {
        ["plimsoll", "fio", "io_uring", "elbencho", "sysbench"]
            .into_iter()
            .map(|name| {
                let path = if name == "plimsoll" {
                    self.plimsoll.is_file().then(|| self.plimsoll.clone())
                } else {
                    self.find(name)
                };
                (name, path.map_or_else(|| "not found".to_owned(), |path| version(name, &path)))
            })
            .collect()
    }

    /// Ours, with everything recorded. `settings` are the suite's fields.
    pub fn plimsoll(&self, target: &str, settings: &[&str], idle: Option<&str>) -> Contender {
        let mut command = vec![text(&self.plimsoll)];
        command.extend(words(&[
            "run",
            "random-read",
            "--classic",
            "--target",
            target,
            "--json",
            "--store",
        ]));
        command.push(text(&self.store));
        let with = |more: &[&str]| {
            let mut command = command.clone();
            for setting in settings.iter().chain(more) {
                command.extend(words(&["--set", setting]));
            }
            command
        };
        Contender {
            name: "plimsoll".into(),
            command: with(&[]),
            idle: idle.map(|setting| with(&[setting])),
            prints: Prints::Plimsoll,
        }
    }

    /// The static build of ours at the same.
    pub fn statically(&self, ours: &Contender) -> Option<Contender> {
        let other = |command: &[String]| {
            let rest = command.iter().skip(1).cloned();
            std::iter::once(text(&self.statically)).chain(rest).collect::<Vec<_>>()
        };
        self.statically.is_file().then(|| Contender {
            name: STATIC.into(),
            command: other(&ours.command),
            idle: ours.idle.as_deref().map(other),
            prints: ours.prints,
        })
    }

    /// Ours for a load with a time.
    pub fn plimsoll_load(&self, load: &Load) -> Contender {
        let depth = format!("queue_depth={}", load.queue_depth);
        let threads = format!("threads={}", load.threads);
        let time = format!("time={}s", self.seconds);
        let mut settings = vec!["block_size=4K", &depth, &threads, &time];
        if load.queue_depth == 1 {
            settings.push("backend=blocking");
        }
        // On a character device there is nothing to go around; ours finds that out by itself.
        if !load.direct && !load.is_null() {
            settings.push("direct=false");
        }
        self.plimsoll(&load.target.to_string_lossy(), &settings, Some("operations=1"))
    }

    pub fn bare_ring(&self, load: &Load) -> Contender {
        let mut common = vec![text(&self.bare)];
        common.extend(words(&["ring", &load.target.to_string_lossy(), "--depth"]));
        common.push(load.queue_depth.to_string());
        self.bare_loop("bare ring", common, load)
    }

    pub fn bare_pread(&self, load: &Load) -> Contender {
        let mut common = vec![text(&self.bare)];
        common.extend(words(&["pread", &load.target.to_string_lossy(), "--threads"]));
        common.push(load.threads.to_string());
        self.bare_loop("bare pread", common, load)
    }

    fn bare_loop(&self, name: &str, mut common: Vec<String>, load: &Load) -> Contender {
        if load.direct {
            common.push("--direct".into());
        }
        let with = |seconds: u32| {
            let mut command = common.clone();
            command.extend(["--seconds".into(), seconds.to_string()]);
            command
        };
        Contender {
            name: name.into(),
            command: with(self.seconds),
            idle: Some(with(0)),
            prints: Prints::Bare,
        }
    }

    /// fio's peak-rate loop, which records nothing.
    pub fn io_uring(&self, load: &Load) -> Option<Contender> {
        let mut command = vec![text(&self.find("io_uring")?)];
        let batch = load.queue_depth.min(BATCH);
        command.extend(words(&["-b4096", "-p0", "-B1", "-F1", "-R1", "-X1"]));
        command.extend([
            format!("-d{}", load.queue_depth),
            format!("-s{batch}"),
            format!("-c{batch}"),
            format!("-n{}", load.threads),
            format!("-O{}", u32::from(load.direct)),
            // Its first and last seconds are not whole.
            format!("-r{}", self.seconds.max(2)),
            load.target.to_string_lossy().into_owned(),
        ]);
        Some(Contender { name: "t/io_uring".into(), command, idle: None, prints: Prints::IoUring })
    }

    /// fio's ring with the flags that help it most, its latencies recorded as it does unless told
    /// otherwise: to submission, from there to completion, and both.
    pub fn fio_best(&self, load: &Load) -> Option<Contender> {
        self.fio_ring("fio best", load, &[])
    }

    /// The same with only the completion's latency recorded: less than it does, more than asked of
    /// it here.
    pub fn fio_one_latency(&self, load: &Load) -> Option<Contender> {
        self.fio_ring("fio best, clat", load, &["--disable_slat=1"])
    }

    fn fio_ring(&self, name: &str, load: &Load, more: &[&str]) -> Option<Contender> {
        let depth = load.queue_depth.to_string();
        let (submit, least, most) = (
            format!("--iodepth_batch_submit={depth}"),
            format!("--iodepth_batch_complete_min={depth}"),
            format!("--iodepth_batch_complete_max={depth}"),
        );
        let mut flags = vec![
            "--ioengine=io_uring",
            "--fixedbufs",
            "--registerfiles",
            "--norandommap",
            "--random_generator=tausworthe64",
            "--iomem_align=4k",
            &submit,
            &least,
            &most,
        ];
        flags.extend(more);
        self.fio(name, load, &flags)
    }

    /// fio's ring as most people start it.
    pub fn fio_plain(&self, load: &Load) -> Option<Contender> {
        self.fio("fio plain", load, &["--ioengine=io_uring"])
    }

    pub fn fio_psync(&self, load: &Load) -> Option<Contender> {
        self.fio("fio psync", load, &["--ioengine=psync", "--iomem_align=4k", "--norandommap"])
    }

    fn fio(&self, name: &str, load: &Load, flags: &[&str]) -> Option<Contender> {
        let mut common = vec![text(&self.find("fio")?)];
        common.extend(words(&["--name=a", "--rw=randread", "--bs=4k", "--output-format=json"]));
        common.push(format!("--filename={}", load.target.display()));
        common.push(format!("--iodepth={}", load.queue_depth));
        common.push(format!("--direct={}", u32::from(load.direct)));
        if load.is_null() {
            common.push("--size=1g".into());
        }
        if !load.direct {
            // Else it drops the file from the page cache first, for itself and all after it.
            common.push("--invalidate=0".into());
        }
        if load.threads > 1 {
            common.push(format!("--numjobs={}", load.threads));
            common.extend(words(&["--thread", "--group_reporting"]));
        }
        common.extend(words(flags));
        let with = |more: &[String]| common.iter().chain(more).cloned().collect::<Vec<_>>();
        Some(Contender {
            name: name.into(),
            command: with(&["--time_based".into(), format!("--runtime={}", self.seconds)]),
            idle: Some(with(&["--number_ios=1".into()])),
            prints: Prints::Fio,
        })
    }

    /// fio with one read in all, start to end.
    pub fn fio_once(&self, load: &Load) -> Option<Contender> {
        let mut contender = self.fio_psync(load)?;
        contender.name = "fio".into();
        contender.command = contender.idle.take()?;
        Some(contender)
    }

    pub fn elbencho(&self, load: &Load) -> Option<Contender> {
        let mut command = vec![text(&self.find("elbencho")?)];
        command.extend(words(&["-r", "-b", "4k", "--rand", "--randalgo", "fast", "--infloop"]));
        command.extend(words(&["--lat", "--latpercent", "--nolive"]));
        if load.direct {
            command.push("--direct".into());
        }
        if load.is_null() {
            command.extend(words(&["-s", "1g"]));
        }
        command.extend(["-t".into(), load.threads.to_string()]);
        command.extend(["--iodepth".into(), load.queue_depth.to_string()]);
        command.extend(["--timelimit".into(), self.seconds.to_string()]);
        command.push(text(&load.target));
        Some(Contender { name: "elbencho".into(), command, idle: None, prints: Prints::Elbencho })
    }

    /// Reads `test_file.0` of the directory it is started in.
    pub fn sysbench(&self, load: &Load, size: &str) -> Option<Contender> {
        let mut common = vec![text(&self.find("sysbench")?)];
        common.extend(words(&["fileio", "--file-num=1", "--file-test-mode=rndrd"]));
        common.extend(words(&["--file-block-size=4K", "--file-io-mode=sync"]));
        common.push(format!("--file-total-size={size}"));
        common.push(format!("--threads={}", load.threads));
        let with = |more: &[String]| common.iter().chain(more).cloned().collect::<Vec<_>>();
        let time = format!("--time={}", self.seconds);
        Some(Contender {
            name: "sysbench".into(),
            command: with(&[time.clone(), "--events=0".into(), "run".into()]),
            idle: Some(with(&[time, "--events=1".into(), "run".into()])),
            prints: Prints::Sysbench,
        })
    }
}

fn version(name: &str, path: &Path) -> String {
    // fio's loop has no version of its own.
    if name == "io_uring" {
        return path.display().to_string();
    }
    let output = Command::new(path).arg("--version").output();
    let printed = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let first = printed.ok().and_then(|text| {
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        Some(line.trim().to_owned())
    });
    format!("{} ({})", first.unwrap_or_else(|| "version unknown".to_owned()), path.display())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}
