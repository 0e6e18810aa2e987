//! Doing one action: a program with its words, a setting, a directory.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use layout::{Action, Step};

use crate::build::lacks::lacking;
use crate::build::there::as_called;
use crate::build::{Allowed, NotAllowed};
use crate::host::Host;

/// Tools live there too; root's path may lack these when it comes from another user's.
const PLACES: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where programs run.
const NO_PLACE: &str = "/proc";
/// More is not kept of what a program says.
const SAID_MAX: u64 = 64 << 10;
/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Of a failed program so much is told.
const TOLD_LINES: usize = 4;

/// What a program said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// On its standard output.
    pub out: String,
    /// On its standard error.
    pub err: String,
}

/// Why an action was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// It is of no concern of this study.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// The program is not installed.
    #[error("{program} is not installed")]
    NotInstalled {
        /// Its name.
        program: String,
    },
    /// The program did not come to its end in good order.
    #[error("`{command}` {how}: {said}")]
    Failed {
        /// Its words.
        command: String,
        /// `ended with code 1`.
        how: String,
        /// The last of what it said.
        said: String,
    },
    /// It took too long, and was ended.
    #[error("`{command}` was ended after {seconds} s")]
    TimeOut {
        /// Its words.
        command: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The system refused.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// `write`, `make`.
        what: &'static str,
        /// Which.
        path: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Somebody else's things are in it.
    #[error("{path} is not empty: in it is {has}")]
    NotEmpty {
        /// The directory.
        path: String,
        /// Something of what is in it.
        has: String,
    },
    /// There is no value to put back.
    #[error("what {path} was before is not known")]
    NothingToPutBack {
        /// Which setting.
        path: String,
    },
}

impl ActError {
    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotInstalled { program } => format!("install the package that has {program}"),
            Self::File { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                "stacks are built by root".to_owned()
            }
            _ => return None,
        })
    }
}

/// How a program is started and waited for.
pub struct Way<'a> {
    /// One that takes longer is ended.
    pub limit: Duration,
    /// An empty file that it has open as long as it lives, and with it what this process has locked
    /// there: so a program that outlives this process can be waited for.
    pub held: Option<&'a File>,
    /// What a program is given in the place of a name: a link may lead elsewhere a moment later.
    pub named: &'a [(String, String)],
    /// Told at every look what is waited for: its name, its number, for how long.
    pub waits: &'a mut dyn FnMut(&str, u32, Duration),
}

/// Starts a service that goes on by itself, and would hold what it is given for good.
const SERVICE: &str = "zfs-fuse";

/// Does one action, if it is allowed.
///
/// * `before`: of [`Action::PutBack`], what was there.
pub fn act(
    action: &Action,
    allowed: &Allowed,
    before: Option<&str>,
    way: &mut Way<'_>,
) -> Result<Said, ActError> {
    allowed.check(action)?;
    let file = |what, path: &str| {
        let path = path.to_owned();
        move |source| ActError::File { what, path, source }
    };
    match action {
        Action::Run { argv } => {
            let done = run_so(&as_named(&as_found(argv), way.named), way);
            return done.map_err(|error| with_lack(error, argv));
        }
        Action::WriteFile { path, value } => {
            std::fs::write(path, value).map_err(file("write", path))?;
        }
        Action::PutBack { path } => {
            let value = before.ok_or_else(|| ActError::NothingToPutBack { path: path.clone() })?;
            put_back(path, value)?;
        }
        Action::MakeDirectory { path } => {
            std::fs::create_dir_all(path).map_err(file("make", path))?;
        }
        Action::RemoveDirectory { path } => match std::fs::remove_dir(path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                return Err(ActError::NotEmpty { path: path.clone(), has: first_in(path) });
            }
            Err(source) => return Err(file("remove", path)(source)),
        },
    }
    Ok(Said::default())
}

/// A failed mount, with that the kernel has no such file system, where that is so: `mount` has had its
/// module looked for by then.
fn with_lack(error: ActError, argv: &[String]) -> ActError {
    let known = Host::this().text("/proc/filesystems").unwrap_or_default();
    match (lacking(argv, &known), error) {
        (Some(kind), ActError::Failed { command, how, said }) => {
            let lack = format!(
                "this kernel has no {kind}: it is not in /proc/filesystems, and `modprobe {kind}` \
                 says whether there is a module"
            );
            ActError::Failed { command, how, said: format!("{lack} ({said})") }
        }
        (_, error) => error,
    }
}

/// The first by name of what is in a directory.
fn first_in(path: &str) -> String {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.min().unwrap_or_else(|| "something".to_owned())
}

/// The same words, with arrays that are taken back, or on which something is, named as they are found: a restart may
/// have put them together under other names. Only the name on its members says whose an array is.
fn as_found(argv: &[String]) -> Vec<String> {
    if !takes_back(argv) {
        return argv.to_vec();
    }
    let host = Host::this();
    argv.iter().map(|word| as_called(&host, word)).collect()
}

/// The same words with other names of devices, also of those in mount options.
fn as_named(argv: &[String], named: &[(String, String)]) -> Vec<String> {
    let other =
        |name: &str| named.iter().find(|(given, _)| given == name).map(|(_, other)| other.clone());
    let of_piece = |piece: &str| {
        let device = piece.strip_prefix("device=").and_then(other);
        device.map_or_else(|| piece.to_owned(), |device| format!("device={device}"))
    };
    let of_word = |word: &String| {
        let pieces = || word.split(',').map(of_piece).collect::<Vec<_>>().join(",");
        other(word).unwrap_or_else(pieces)
    };
    argv.iter().map(of_word).collect()
}

/// Whether the words take something off a device, or a device apart. What makes an array names it anew.
fn takes_back(argv: &[String]) -> bool {
    let mut words = argv.iter().map(String::as_str);
    match words.next() {
        Some("wipefs" | "pvremove") => true,
        Some("mdadm") => matches!(words.next(), Some("--stop" | "--zero-superblock")),
        _ => false,
    }
}

/// The value of a setting in force: of a list of choices the one in brackets.
pub fn setting(path: &str) -> Result<String, ActError> {
    let text = std::fs::read_to_string(path).map_err(|source| ActError::File {
        what: "read",
        path: path.to_owned(),
        source,
    })?;
    Ok(chosen(text.trim()).to_owned())
}

/// Writes a setting back that is another by now. A device that is gone has none any more.
pub fn put_back(path: &str, value: &str) -> Result<(), ActError> {
    // Not everything that can be read can be written as it is read.
    if setting(path).is_ok_and(|now| now == value) {
        return Ok(());
    }
    match std::fs::write(path, value) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        written => written.map_err(|source| ActError::File {
            what: "write",
            path: path.to_owned(),
            source,
        }),
    }
}

/// `[none] mq-deadline` is `none`.
pub(super) fn chosen(text: &str) -> &str {
    let bracketed = text.split_whitespace().find_map(|word| {
        let word = word.strip_prefix('[')?;
        word.strip_suffix(']')
    });
    bracketed.unwrap_or(text)
}

/// Programs that steps start and that are not installed.
pub fn missing_programs<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Vec<String> {
    let mut missing: Vec<String> = Vec::new();
    for step in steps {
        let undos = step.undo.iter().map(|undo| &undo.action);
        for action in std::iter::once(&step.action).chain(undos) {
            let Action::Run { argv } = action else { continue };
            let Some(program) = argv.first() else { continue };
            if place(program).is_none() && !missing.contains(program) {
                missing.push(program.clone());
            }
        }
    }
    missing
}

/// Where a program is.
fn place(program: &str) -> Option<PathBuf> {
    PLACES.split(':').map(|place| Path::new(place).join(program)).find(|path| path.is_file())
}

/// Starts a program that changes nothing, and waits for its end.
pub(super) fn run(argv: &[String], limit: Duration) -> Result<Said, ActError> {
    run_so(argv, &mut Way { limit, held: None, named: &[], waits: &mut |_, _, _| {} })
}

/// Starts a program and waits for its end. It has no terminal, and a Ctrl-C is not for it: what it
/// is doing to a device it brings to an end.
fn run_so(argv: &[String], way: &mut Way<'_>) -> Result<Said, ActError> {
    let limit = way.limit;
    let command = argv.join(" ");
    let program = argv.first().cloned().unwrap_or_default();
    let Some(path) = place(&program) else { return Err(ActError::NotInstalled { program }) };
    let failed = |how: &str, said: &str| ActError::Failed {
        command: command.clone(),
        how: how.to_owned(),
        said: last_lines(said),
    };
    let held = way.held.filter(|_| program != SERVICE).map(File::try_clone).transpose();
    let held = held.map_err(|error| failed("cannot be started", &error.to_string()))?;
    let mut child = Command::new(path)
        .args(argv.iter().skip(1))
        // No file can be made there: a word that is taken for a file's name makes none.
        .current_dir(NO_PLACE)
        .env("PATH", PLACES)
        .env("LC_ALL", "C")
        .stdin(held.map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| failed("cannot be started", &error.to_string()))?;
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < limit => {
                (way.waits)(&program, child.id(), begun.elapsed());
                std::thread::sleep(LOOK);
            }
            Ok(None) => {
                // If it cannot be ended there is nothing else to be done about it.
                let _ = child.kill();
                return Err(ActError::TimeOut { command, seconds: limit.as_secs() });
            }
            Err(error) => return Err(failed("cannot be waited for", &error.to_string())),
        }
    };
    let said = Said { out: text(out), err: text(err) };
    if status.success() {
        return Ok(said);
    }
    let how = match status.code() {
        Some(code) => format!("ended with code {code}"),
        None => format!("was ended by {status}"),
    };
    let told = if said.err.trim().is_empty() { &said.out } else { &said.err };
    Err(failed(&how, told))
}

type Reader = Option<std::thread::JoinHandle<String>>;

fn reader(pipe: Option<impl Read + Send + 'static>) -> Reader {
    let mut pipe = pipe?;
    let read = move || {
        let mut bytes = Vec::new();
        // What was read until an error is still something.
        let _ = pipe.by_ref().take(SAID_MAX).read_to_end(&mut bytes);
        // Or it would wait for room in the pipe.
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    };
    std::thread::Builder::new().name("said".to_owned()).spawn(read).ok()
}

fn text(reader: Reader) -> String {
    reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let from = lines.len().saturating_sub(TOLD_LINES);
    let told = lines.get(from..).unwrap_or_default().join("; ");
    if told.is_empty() { "it said nothing".to_owned() } else { told }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_taken_back_is_looked_for_under_another_name() {
        let of =
            |line: &str| takes_back(&line.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>());
        for line in [
            "mdadm --stop /dev/md/plimsoll-0-leg0",
            "mdadm --zero-superblock /dev/md/plimsoll-0-leg0",
            "wipefs --all --types xfs /dev/md/plimsoll-0-top",
            "pvremove --yes /dev/md/plimsoll-0-leg1",
        ] {
            assert!(of(line), "{line}");
        }
        // Another's array of that name would be built over.
        for line in ["mdadm --create /dev/md/plimsoll-0-leg0", "mkfs.xfs /dev/md/plimsoll-0-top"] {
            assert!(!of(line), "{line}");
        }
    }

    #[test]
    fn a_link_gives_way_to_its_device_also_in_mount_options() {
        let named = [("/dev/by-id/a".to_owned(), "/dev/sda".to_owned())];
        for (given, wanted) in [
            ("mkfs.ext4 -q /dev/by-id/a", "mkfs.ext4 -q /dev/sda"),
            (
                "mount -o noatime,device=/dev/by-id/a,device=/dev/sdb /dev/sdb /m",
                "mount -o noatime,device=/dev/sda,device=/dev/sdb /dev/sdb /m",
            ),
            ("mkfs.ext4 /dev/by-id/ab", "mkfs.ext4 /dev/by-id/ab"),
        ] {
            assert_eq!(as_named(&argv(given), &named), argv(wanted), "{given}");
        }
    }

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn programs_get_their_words_as_they_are_and_what_they_say_is_kept() {
        let words = ["printf", "%s|", "$HOME", "a b", "; true"].map(str::to_owned);
        let said = run(&words, Duration::from_secs(10)).unwrap();
        assert_eq!(said.out, "$HOME|a b|; true|");
        let error = run(&argv("ls /no/such/place"), Duration::from_secs(10)).unwrap_err();
        assert!(error.to_string().contains("ended with code 2"), "{error}");
        let error = run(&argv("no-such-program x"), Duration::from_secs(10)).unwrap_err();
        assert!(matches!(error, ActError::NotInstalled { .. }), "{error}");
    }

    #[test]
    fn programs_that_are_missing_are_named_once() {
        let step = |words: &str| Step {
            what: "make it".to_owned(),
            stage: layout::Stage::FileSystem,
            action: Action::Run { argv: argv(words) },
            writes_to: vec![],
            makes: vec![],
            undo: vec![],
            waits_for: None,
            expect: vec![],
        };
        let steps = [step("ls /"), step("mkfs.nosuch /dev/a"), step("mkfs.nosuch /dev/b")];
        assert_eq!(missing_programs(&steps), ["mkfs.nosuch"]);
    }

    #[test]
    fn a_program_holds_what_it_is_given_until_its_end_and_makes_no_file_by_a_bare_name() {
        use rustix::fs::{FlockOperation, flock};
        let path = std::env::temp_dir().join(format!("held-{}", std::process::id()));
        let open =
            || File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let held = open().unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        let other = open().unwrap();
        let mut looks = 0;
        let mut waits = |name: &str, _: u32, _: Duration| {
            assert_eq!(name, "sleep");
            assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
            looks += 1;
        };
        let limit = Duration::from_secs(30);
        run_so(
            &argv("sleep 0.1"),
            &mut Way { limit, held: Some(&held), named: &[], waits: &mut waits },
        )
        .unwrap();
        assert!(looks > 0);
        drop(held);
        flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
        std::fs::remove_file(&path).unwrap();
        let error = run(&argv("touch plimsoll-victim"), limit).unwrap_err();
        assert!(error.to_string().contains("ended with code 1"), "{error}");
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let error = run(&argv("sleep 60"), Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, ActError::TimeOut { .. }), "{error}");
    }

    #[test]
    fn a_lot_of_words_fill_no_pipe() {
        let said = run(&argv("seq 1 200000"), Duration::from_secs(30)).unwrap();
        assert_eq!(said.out.len() as u64, SAID_MAX);
    }

    #[test]
    fn the_setting_in_force_is_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("128"), "128");
    }
}
