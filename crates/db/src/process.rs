//! Programs that run beside us, as another user, and never longer than we do.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::DbError;

/// How often a server is asked whether it is ready, and the operator whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// A server that is not ready by then is not expected any more.
const PATIENCE: Duration = Duration::from_secs(60);
/// So much of the end of a log is read, and so many lines of it are shown.
const WORDS: (u64, usize) = (8192, 12);

/// Whom a server runs as. Both refuse root.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

impl User {
    /// The user of the package if we are root; `None`: whoever we are will do.
    pub fn of_package(name: &'static str, program: &str) -> Result<Option<Self>, DbError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next()? == name).then_some(())?;
            let mut numbers = fields.skip(1).map(str::parse);
            let (uid, gid) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            Some(Self { name: name.to_owned(), uid, gid })
        });
        found.map(Some).ok_or_else(|| DbError::NoUser { program: program.to_owned(), user: name })
    }

    /// Refuses a path that this user cannot reach. Asks the kernel as that user: there may be more
    /// than the nine bits.
    pub fn can_pass(&self, setpriv: &Path, wanted: &Path) -> Result<(), DbError> {
        let passes = |path: &Path| {
            let mut test = Command::new(setpriv);
            test.args(self.arguments()).args(["--", "test", "-x"]).arg(path);
            let test = test.stdout(Stdio::null()).stderr(Stdio::null());
            Ok(test.status().map_err(DbError::file("start", setpriv))?.success())
        };
        if passes(wanted)? {
            return Ok(());
        }
        let mut way: Vec<&Path> = wanted.ancestors().collect();
        way.reverse();
        for directory in way {
            if !passes(directory)? {
                return Err(DbError::Closed {
                    directory: directory.into(),
                    user: self.name.clone(),
                    wanted: wanted.into(),
                });
            }
        }
        Ok(())
    }

    fn arguments(&self) -> [String; 3] {
        [format!("--reuid={}", self.uid), format!("--regid={}", self.gid), "--clear-groups".into()]
    }
}

/// Signals to end a program with, and how long each is given.
pub(crate) type Ending = &'static [(Signal, Duration)];

/// For what makes an empty database. Not at once by force: a PostgreSQL that is killed leaves its
/// shared memory.
pub(crate) const MAKER_ENDING: Ending =
    &[(Signal::TERM, Duration::from_secs(5)), (Signal::KILL, Duration::from_secs(10))];

/// A program to be started.
pub(crate) struct Launch<'a> {
    pub setpriv: &'a Path,
    pub user: Option<&'a User>,
    pub program: &'a Path,
    pub arguments: Vec<OsString>,
    /// Where it stands: it may not be able to enter the directory that we stand in.
    pub directory: &'a Path,
    /// Gets what it writes.
    pub log: &'a Path,
    /// What the kernel sends it when we are gone.
    pub orphaned: &'static str,
    pub ending: Ending,
}

impl Launch<'_> {
    pub fn start(&self) -> Result<Spawned, DbError> {
        let open = || File::options().append(true).create(true).open(self.log);
        let log = open().and_then(|log| Ok((log.try_clone()?, log)));
        let (out, err) = log.map_err(DbError::file("write", self.log))?;
        let mut command = Command::new(self.setpriv);
        if let Some(user) = self.user {
            command.args(user.arguments());
        }
        command.arg(format!("--pdeathsig={}", self.orphaned)).arg("--").arg(self.program);
        command
            .args(&self.arguments)
            .current_dir(self.directory)
            // Nobody's variables point it elsewhere: PGDATA, MYSQL_HOME, LD_LIBRARY_PATH.
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            // A Ctrl-C at the terminal is for us, who then end it in order.
            .process_group(0);
        Spawned::start(command, self.ending).map_err(DbError::file("start", self.program))
    }

    /// Runs it to its end; false if the operator stopped it.
    pub fn run(&self, stops: &dyn Fn() -> bool) -> Result<bool, DbError> {
        let process = self.start()?;
        loop {
            match process.ended_within(LOOK) {
                Some(status) if status.success() => return Ok(true),
                Some(status) => return Err(self.failed(format!("ended with {status}"))),
                None if stops() => return Ok(false),
                None => {}
            }
        }
    }

    /// Starts a server and waits until `attempt` says that it answers; `None` if the operator
    /// stopped that.
    pub fn serve<T>(
        &self,
        stops: &dyn Fn() -> bool,
        started: impl FnOnce(&Spawned) -> Result<(), DbError>,
        mut attempt: impl FnMut() -> Result<T, String>,
    ) -> Result<Option<(Spawned, T)>, DbError> {
        let process = self.start()?;
        started(&process)?;
        let since = Instant::now();
        loop {
            let why = match attempt() {
                Ok(ready) => return Ok(Some((process, ready))),
                Err(why) => why,
            };
            if let Some(status) = process.ended_within(LOOK) {
                return Err(self.failed(format!("ended with {status}")));
            }
            if stops() {
                return Ok(None);
            }
            if since.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                return Err(self.failed(format!("does not answer after {seconds} s ({why})")));
            }
        }
    }

    fn failed(&self, how: String) -> DbError {
        DbError::Failed { program: self.program.into(), how, said: last_words(self.log) }
    }
}

/// The last lines of a log; nothing if it cannot be read.
pub(crate) fn last_words(log: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(WORDS.0)))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map(|_| text)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.get(lines.len().saturating_sub(WORDS.1)..).unwrap_or_default().join("\n")
}

/// A child of ours. Dropping it ends it.
///
/// The kernel tells a program that its parent is gone when the *thread* that started it ends. So each
/// has a thread of its own, which starts it, waits for its end and does nothing else.
pub(crate) struct Spawned {
    pub pid: Pid,
    fate: Arc<Fate>,
    keeper: Option<JoinHandle<()>>,
    ending: Ending,
}

#[derive(Default)]
struct Fate {
    ended: Mutex<Option<ExitStatus>>,
    changed: Condvar,
}

impl Fate {
    fn lock(&self) -> MutexGuard<'_, Option<ExitStatus>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spawned {
    fn start(mut command: Command, ending: Ending) -> io::Result<Self> {
        let fate = Arc::new(Fate::default());
        let (send, receive) = mpsc::channel();
        let kept = Arc::clone(&fate);
        let keeper = std::thread::Builder::new().name("server".into()).spawn(move || {
            match command.spawn() {
                Ok(child) => {
                    // The one who asked waits for it.
                    let _ = send.send(Ok(Pid::from_child(&child)));
                    keep(child, &kept);
                }
                Err(error) => drop(send.send(Err(error))),
            }
        })?;
        let pid = receive.recv().map_err(io::Error::other)??;
        Ok(Self { pid, fate, keeper: Some(keeper), ending })
    }

    pub fn is_alive(&self) -> bool {
        self.fate.lock().is_none()
    }

    pub fn ended_within(&self, limit: Duration) -> Option<ExitStatus> {
        let waiting =
            self.fate.changed.wait_timeout_while(self.fate.lock(), limit, |end| end.is_none());
        *waiting.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Ends it and what it has started in its process group; false if even the last signal did not.
    pub fn end(&mut self) -> bool {
        for (signal, patience) in self.ending {
            let ended = self.fate.lock();
            if ended.is_none() {
                // Its number is its own as long as nobody has waited for it, which needs the lock.
                // A failure: it ended meanwhile.
                let _ = rustix::process::kill_process_group(self.pid, *signal);
            }
            drop(ended);
            if self.ended_within(*patience).is_some() {
                // It sets the status last, and then ends.
                let _ = self.keeper.take().map(JoinHandle::join);
                return true;
            }
        }
        false
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        self.end();
    }
}

fn keep(mut child: Child, fate: &Fate) {
    let gone = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    // Not yet reaped: until then nobody else can have its number, and a signal reaches nobody else.
    while let Err(rustix::io::Errno::INTR) =
        rustix::process::waitid(WaitId::Pid(Pid::from_child(&child)), gone)
    {}
    let mut ended = fate.lock();
    *ended = Some(child.wait().unwrap_or_default());
    fate.changed.notify_all();
}

/// What `/proc/PID/stat` says of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat {
    is_running: bool,
    parent: i32,
    /// Ticks since the machine started: with the number it names one process.
    pub start: u64,
    /// Ticks of processor time.
    ticks: u64,
    /// Those of its children that have ended and been waited for.
    childrens_ticks: u64,
}

impl Stat {
    /// `None` if there is no such process; a dead one that nobody has waited for is still there.
    fn of_any(pid: i32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before may hold anything, parentheses too.
        let fields: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let sum = |of: std::ops::RangeInclusive<usize>| of.map(number).sum::<Option<u64>>();
        Some(Self {
            is_running: !matches!(*fields.first()?, "Z" | "X"),
            parent: number(1)? as i32,
            start: number(19)?,
            ticks: sum(11..=12)?,
            childrens_ticks: sum(13..=14)?,
        })
    }

    /// `None` if it does not run.
    pub fn of(pid: i32) -> Option<Self> {
        Self::of_any(pid).filter(|stat| stat.is_running)
    }
}

/// Whether a server, or a program that makes one, stands in the directory or below.
pub(crate) fn is_served(directory: &Path) -> bool {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut processes = entries.map(|entry| entry.path());
    processes.any(|process| {
        let stands = std::fs::read_link(process.join("cwd"));
        let is_there = stands.is_ok_and(|at| at.starts_with(directory));
        is_there && {
            let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
            ["initdb", "postgres", "mariadbd", "mysqld"].contains(&name.trim())
        }
    })
}

/// Processor time of a process and its children in microseconds. It does not fall: the kernel adds
/// that of a child that has ended to its parent's.
pub(crate) fn processor_us(pid: Pid) -> u64 {
    let pid = pid.as_raw_nonzero().get();
    let sum = || {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let others = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let children = others.filter_map(Stat::of_any).filter(|stat| stat.parent == pid);
        children.map(|stat| stat.ticks + stat.childrens_ticks).sum::<u64>()
    };
    let own = || Stat::of_any(pid).map_or((0, 0), |stat| (stat.ticks, stat.childrens_ticks));
    let mut before = own();
    let mut children = sum();
    // One that ended meanwhile would be counted twice or not at all.
    for _ in 0..10 {
        let after = own();
        if after.1 == before.1 {
            break;
        }
        (before, children) = (after, sum());
    }
    let ticks = before.0 + before.1 + children;
    ticks * 1_000_000 / rustix::param::clock_ticks_per_second().max(1)
}
