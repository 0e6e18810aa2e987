use std::path::{Path, PathBuf};

use units::Bytes;

/// Why a run cannot be, or had to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A target's name that means nothing.
    #[error("`{text}` is not a target: {why}")]
    TargetName {
        /// As given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The suite does not fit the target.
    #[error(transparent)]
    Suite(#[from] suite::SuiteError),
    /// The target cannot be looked at.
    #[error(transparent)]
    Target(#[from] stack::TargetError),
    /// The target may not be used like that.
    #[error(transparent)]
    Refused(#[from] stack::Refusal),
    /// It was exchanged under us.
    #[error(transparent)]
    Confirm(#[from] stack::ConfirmError),
    /// Two targets are one, or one holds the other.
    #[error("{second} {how} {first}: a target is named once")]
    SameTarget {
        /// One of them.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// `is the same as`, `lies on`, `shares bytes with`.
        how: &'static str,
    },
    /// Several targets, of which one can only be measured alone.
    #[error("{target} is a {kind}, and there are several targets")]
    Alone {
        /// Which.
        target: String,
        /// `twin`.
        kind: &'static str,
    },
    /// Writes to something that cannot be written.
    #[error("suite `{suite}` writes, but {target} is a {kind}: it can only be read")]
    NotWritable {
        /// The suite's name.
        suite: String,
        /// The target.
        target: String,
        /// `character device`.
        kind: &'static str,
    },
    /// A suite of block requests, on a database.
    #[error(
        "{engine} cannot play stream `{stream}` of suite `{suite}`: a run on a database is commits, or \
         transactions of one load and one scale"
    )]
    NotOfDatabases {
        /// The suite's name.
        suite: String,
        /// The first such stream.
        stream: String,
        /// `postgres`.
        engine: &'static str,
    },
    /// Transactions are asked of what is no database.
    #[error("suite `{suite}` asks for transactions, and {target} is no database")]
    NeedsDatabase {
        /// The suite's name.
        suite: String,
        /// As given.
        target: String,
    },
    /// A database cannot be made ready for transactions.
    #[error("the database is not ready for transactions: {0}")]
    Loading(String),
    /// A database that cannot be started, looked at or removed.
    #[error(transparent)]
    Database(#[from] db::DbError),
    /// The server that was measured is gone.
    #[error("{name} ended while it was measured; its last words: {words}")]
    DatabaseEnded {
        /// `postgres`.
        name: &'static str,
        /// The last lines of its log.
        words: String,
    },
    /// The user did not wait for it.
    #[error("interrupted before the database was ready; what was made of it is removed")]
    Stopped,
    /// Files that begin empty, on something that has no length.
    #[error("suite `{suite}` lets its files begin empty, but {target} is a block device")]
    NotAFile {
        /// The suite's name.
        suite: String,
        /// The target.
        target: String,
    },
    /// The file is shorter than asked for.
    #[error("{path} is {size} long, {wanted} wanted")]
    TooShort {
        /// Which.
        path: PathBuf,
        /// How long it is.
        size: Bytes,
        /// How long it was to be.
        wanted: Bytes,
    },
    /// No room for a scratch file.
    #[error(
        "no room for a scratch file in {directory}: {free} of {total} are free, wanted more than the \
         {reserve} that must stay free (5 %, at least 1 GiB, at most 8 GiB)"
    )]
    NoRoom {
        /// Where.
        directory: PathBuf,
        /// Free there.
        free: Bytes,
        /// In all.
        total: Bytes,
        /// What is always left.
        reserve: Bytes,
    },
    /// The suite cannot be played on a file as large as there is room for.
    #[error(
        "no room in {directory} for suite `{suite}`: its files have {wanted}, and there is room for \
         {room} beside the {reserve} that stay free"
    )]
    NoRoomForSuite {
        /// The suite's name.
        suite: String,
        /// Where.
        directory: PathBuf,
        /// Bytes of its files.
        wanted: Bytes,
        /// What they could have.
        room: Bytes,
        /// What is always left.
        reserve: Bytes,
    },
    /// A suite of what only a file system can do, on a device.
    #[error("suite `{suite}` {does}, but {target} is a {kind}")]
    NeedsFileSystem {
        /// The suite's name.
        suite: String,
        /// `makes files in a directory beside the target`.
        does: &'static str,
        /// The target.
        target: String,
        /// `block device`.
        kind: &'static str,
    },
    /// Something has the name of the run's own and is not.
    #[error("{path} was not made by this run and is left alone: {why}")]
    NotOurs {
        /// Which.
        path: PathBuf,
        /// What was seen.
        why: String,
    },
    /// A link has the name of a scratch file.
    #[error("{path} is a symbolic link to {to}, wanted a scratch file of that name")]
    ScratchIsLink {
        /// Its name.
        path: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
    /// A file that a run may have left, where no file says whose it is.
    #[error(
        "{path} may be what the run left, and stays: its file system keeps no extended \
         attributes, so nothing says whose it is"
    )]
    Unmarked {
        /// Which.
        path: PathBuf,
    },
    /// Somebody put something into a directory of ours.
    #[error(
        "{path} is left: it holds {name}{}, which this run did not make",
        and_more(*others)
    )]
    Strangers {
        /// Which directory.
        path: PathBuf,
        /// The first of what was found, from there.
        name: String,
        /// How many more there are.
        others: usize,
    },
    /// The file system has not as many inodes left as files are to be made.
    #[error("no room for {wanted} files beside {target}: {free} inodes are free")]
    NoInodes {
        /// The target.
        target: String,
        /// Files that are made.
        wanted: u64,
        /// Inodes that are free.
        free: u64,
    },
    /// Files that are made would fill the file system.
    #[error(
        "no room for the files made beside {target}: they take {wanted}, {free} are free, \
         {reserve} stay free"
    )]
    NoRoomForFiles {
        /// The target.
        target: String,
        /// What they take.
        wanted: Bytes,
        /// What is free once the target has its size.
        free: Bytes,
        /// What is always left.
        reserve: Bytes,
    },
    /// An array that cannot be simulated.
    #[error("cannot use array {why}")]
    Array {
        /// Which, and why.
        why: String,
        /// What to do about it, if that can be told.
        hint: Option<String>,
    },
    /// A volume of the layer that cannot be made.
    #[error("cannot make a volume of the layer on {place}")]
    Layer {
        /// Where.
        place: String,
        /// Why.
        #[source]
        error: layer::LayerError,
    },
    /// A model file that cannot be read.
    #[error("cannot use model {path}: {why}")]
    Model {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Verification and the suite do not go together.
    #[error("cannot verify: {why}")]
    Verify {
        /// Why.
        why: String,
    },
    /// Every cell is impossible here.
    #[error("none of the {cells} cells is possible on {target}: {why}")]
    NothingPossible {
        /// How many.
        cells: usize,
        /// The target.
        target: String,
        /// Of the first.
        why: String,
    },
    /// A file could not be made or prepared.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// `create`, `mark`, ...
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A processor that there is not, or that this process may not use.
    #[error("there is no processor {cpu} for this process, wanted one of {allowed}")]
    Processor {
        /// As asked.
        cpu: u32,
        /// Which there are.
        allowed: String,
    },
    /// Another run writes to it.
    #[error("{path} is being written by another run: {holder}")]
    InUse {
        /// Which.
        path: PathBuf,
        /// Whose run it is.
        holder: stack::Process,
    },
    /// Another program has locked it.
    #[error("{path} is in use: another process has a lock on it (flock){}", by(holder.as_ref()))]
    Locked {
        /// Which.
        path: PathBuf,
        /// Who, as far as that can be seen.
        holder: Option<stack::Process>,
    },
    /// There was nothing of that name when it was judged.
    #[error("{path} was made by another process since the check")]
    Appeared {
        /// Which.
        path: PathBuf,
    },
    /// Another has a device for itself since it was judged.
    #[error("{path} is in use since the check{}", by_all(holders))]
    Claimed {
        /// Which.
        path: PathBuf,
        /// Who has it open, as far as that can be seen.
        holders: Vec<stack::Process>,
    },
    /// Buffers for all requests in flight do not fit.
    #[error(
        "the buffers of {requests} requests in flight take {needed}, {available} of memory are \
         available"
    )]
    Memory {
        /// Of the cell that needs most.
        requests: u64,
        /// Their bytes.
        needed: Bytes,
        /// What the kernel says it can give.
        available: Bytes,
    },
    /// The memory twin would take more than there is: it would end in the kernel's hands, and
    /// perhaps other processes with it.
    #[error(
        "{target} takes {files} of memory for its files and {buffers} for its requests in flight, \
         {available} are available and a fifth of them is left to others"
    )]
    TwinMemory {
        /// As given.
        target: String,
        /// What its files take.
        files: Bytes,
        /// What the buffers of all requests in flight take.
        buffers: Bytes,
        /// What the kernel says it can give.
        available: Bytes,
    },
    /// The target cannot be opened.
    #[error(transparent)]
    Open(#[from] uring::OpenError),
    /// No back end.
    #[error(transparent)]
    Backend(#[from] uring::BackendError),
    /// The kernel does not copy there.
    #[error(transparent)]
    Copy(#[from] uring::CopyError),
    /// Caches could not be handled as the suite asks.
    #[error("{step} before a visit failed: {why}")]
    Caches {
        /// Which step.
        step: &'static str,
        /// Why.
        why: String,
    },
    /// A thread could not be started.
    #[error(
        "{started} of the {wanted} worker threads of {} could be started: {source}",
        streams_text(streams)
    )]
    Threads {
        /// Of a visit, by name.
        streams: Vec<String>,
        /// How many there are.
        started: usize,
        /// How many there were to be.
        wanted: usize,
        /// What limits them, as far as is known: `name = most`.
        limits: Vec<String>,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The engine refuses.
    #[error(transparent)]
    Drive(#[from] engine::DriveError),
    /// The store.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// A suite that has no load line.
    #[error("the suite has no load line: {why}")]
    NoLine {
        /// Why.
        why: String,
    },
    /// A run that cannot go on.
    #[error("run {run} cannot be resumed: {why}")]
    Resume {
        /// Which.
        run: String,
        /// Why.
        why: String,
    },
}

/// "stream `read`", "streams `wal`, `data`".
fn streams_text(streams: &[String]) -> String {
    let names: Vec<String> = streams.iter().map(|name| format!("`{name}`")).collect();
    format!("stream{} {}", if names.len() == 1 { "" } else { "s" }, names.join(", "))
}

/// `: plimsoll (pid 17)`, or nothing.
fn by(holder: Option<&stack::Process>) -> String {
    holder.map_or(String::new(), |process| format!(": {process}"))
}

/// `: plimsoll (pid 17), sleep (pid 18)`, or nothing.
fn by_all(holders: &[stack::Process]) -> String {
    let all: Vec<String> = holders.iter().map(ToString::to_string).collect();
    if all.is_empty() { String::new() } else { format!(": {}", all.join(", ")) }
}

/// ` and 2 more`, or nothing.
fn and_more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(" and {others} more") }
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// What may be done where something could not be done to a file.
fn file_hint(what: &str, source: &std::io::Error) -> Option<&'static str> {
    use std::io::ErrorKind::{FileTooLarge, PermissionDenied};
    const ENOSPC: i32 = 28;
    const EMFILE: i32 = 24;
    Some(match (source.kind(), source.raw_os_error()) {
        (_, Some(ENOSPC)) if what == "make files in" => {
            "no space, or no inodes, are left: ask for fewer files"
        }
        _ if is_full(source) => {
            "make room there, ask for less with a smaller `--size`, or name another place"
        }
        (FileTooLarge, _) => {
            "raise the limit of file sizes (`ulimit -f`), or use a smaller `--size`"
        }
        (PermissionDenied, _) if what == "read" => {
            "run as a user who may read it, or name another target"
        }
        (PermissionDenied, _) => "run as a user who may write there, or name another place",
        (_, Some(EMFILE)) => "raise the limit of open files: ulimit -n",
        _ => return None,
    })
}

/// What kind of trouble, for exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The order makes no sense.
    Usage,
    /// It would be unsafe.
    Refused,
    /// The target cannot be used.
    Target,
    /// The user did not want to wait.
    Interrupted,
    /// Results cannot be kept.
    Store,
}

/// What cannot be as it was asked for, what would be unsafe, and the rest.
const fn of_database(error: &db::DbError) -> ErrorKind {
    use db::DbError as E;
    match error {
        E::NoProgram { .. }
        | E::OtherProgram { .. }
        | E::NoUser { .. }
        | E::Closed { .. }
        | E::NotADirectory(_)
        | E::LogOfSqlite(_)
        | E::SameDirectory(_)
        | E::Memory { .. } => ErrorKind::Usage,
        E::NoRoom { .. } | E::Exists(_) | E::NotOurs(..) | E::InUse(_) => ErrorKind::Refused,
        _ => ErrorKind::Target,
    }
}

impl RunError {
    /// Of a file that is locked: a run locks what it writes to, and so may anybody.
    pub(crate) fn locked(path: &Path, holder: Option<stack::Process>) -> Self {
        let path = path.to_path_buf();
        match holder {
            Some(holder) if stack::is_of_this_program(&holder) => Self::InUse { path, holder },
            holder => Self::Locked { path, holder },
        }
    }

    /// What the user may do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Suite(error) => error.hint(),
            Self::Target(error) => error.hint(),
            Self::Refused(refusal) => refusal.hint(),
            Self::Open(error) => error.hint(),
            Self::Backend(error) => error.hint(),
            Self::Copy(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Database(error) => error.hint(),
            Self::Array { hint: Some(hint), .. } => Some(hint.clone()),
            Self::TooShort { size, wanted, .. } if *size > Bytes::ZERO => Some(format!(
                "name a longer file, or one that is not there: it is made with {} and filled; `--size \
                 {}` reads no more than this one has",
                wanted.exact(),
                size.exact()
            )),
            Self::TwinMemory { buffers, available, .. } => {
                let most = crate::prepare::usable(*available).get().saturating_sub(buffers.get());
                let most = Bytes::new(most >> 20 << 20).exact();
                Some(format!("ask for less, with `memory:SIZE` or `--size`: at most {most}"))
            }
            Self::Unmarked { path } => {
                Some(format!("if no other run uses it: `rm {}`", path.display()))
            }
            Self::Strangers { path, .. } => {
                Some(format!("move it elsewhere; then {} can go", path.display()))
            }
            Self::Threads { limits, .. } if !limits.is_empty() => Some(format!(
                "ask for fewer `threads`, or raise what limits: {}",
                limits.join(", ")
            )),
            other => other.plain_hint().map(str::to_owned),
        }
    }

    /// The same where it does not depend on what was seen.
    fn plain_hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::TargetName { .. } => {
                "a path, `null:`, `memory:SIZE`, `model:FILE.toml`, `array:ARRAY` or `layer:TARGET`; a file \
                 named like that is `./null:`"
            }
            Self::TooShort { .. } => "name a file with data in it",
            Self::NoRoom { .. } => "name another place, or less with `--size`",
            Self::NoRoomForSuite { .. } => "name another place, or make it smaller: `--scale 0.1`",
            Self::NotAFile { .. } => "name a file or directory, or `--set start_file=keep`",
            Self::NeedsFileSystem { .. } => {
                "name a directory, or a file in one, on the device's file system"
            }
            Self::ScratchIsLink { .. } => {
                "remove the link, or name another directory; a scratch file is removed with the \
                 run, which must not reach a file elsewhere"
            }
            Self::NotOurs { .. } => "look at what it is, and move or remove it",
            Self::NoInodes { .. } => "ask for fewer files: `--set directory.files=1000`",
            Self::NoRoomForFiles { .. } => {
                "ask for a smaller target, `--size 1GiB`, or for fewer or smaller files there: \
                 `--set directory.files=1000`"
            }
            Self::File { what, source, .. } => return file_hint(what, source),
            Self::NotOfDatabases { .. } => {
                "the suites `commits` and `tpcc` are played on databases: see `plimsoll db --help`"
            }
            Self::NeedsDatabase { .. } => {
                "name one that is made for the run: `--target sqlite:DIRECTORY`; or `plimsoll db tpcc`"
            }
            Self::Alone { .. } => "measure it alone",
            Self::NotWritable { .. } => "use a suite that reads, or another target",
            Self::Threads { .. } => "raise `ulimit -u`, or ask for fewer `threads`",
            Self::SameTarget { .. } => "name each file or device once",
            Self::Confirm(_) => "nothing of it was written; see who exchanges it, and run again",
            Self::Claimed { .. } | Self::Locked { .. } => {
                "wait for that process or end it first, or name another target"
            }
            Self::Appeared { .. } => {
                "nothing of it was written; run again to have it checked, or name another target"
            }
            Self::InUse { .. } => "wait for that run (`plimsoll list`), or name another target",
            Self::Memory { .. } => {
                "ask for smaller blocks, fewer `threads` or a smaller `queue_depth`"
            }
            Self::Processor { .. } => "name processors of those with `--cpus`",
            Self::Caches { .. } => {
                "leave that step out of `caches`: `--set caches=flush,purge` needs no root"
            }
            Self::Model { .. } => "a model is a TOML file: `docs/twins.md` has its fields",
            Self::Array { .. } => {
                "`plimsoll predict --list` has the arrays of the program: `docs/predict.md` says how to write one"
            }
            Self::Layer { .. } => "look at the kernel log for errors of the device",
            Self::NoLine { .. } => {
                "a level is of streams of the suite, up to 3 s, as in `reads p99<2ms`"
            }
            Self::Resume { .. } => {
                "`plimsoll list` shows the state of each run; `plimsoll run` starts a new one"
            }
            Self::Verify { .. } => "write it first with `--verify` and `--keep`, or read without",
            Self::NothingPossible { .. } => {
                "use a block size the device can do, or `--set direct=false`"
            }
            _ => return None,
        })
    }

    /// Whether nothing that was measured is in the store of that name any more.
    pub const fn lost_the_store(&self) -> bool {
        matches!(self, Self::Store(store::StoreError::Gone { .. }))
    }

    /// What kind of trouble, for exit codes.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::TargetName { .. }
            | Self::Alone { .. }
            | Self::NotOfDatabases { .. }
            | Self::NeedsDatabase { .. }
            | Self::Suite(_)
            | Self::Array { .. }
            | Self::Model { .. }
            | Self::Verify { .. }
            | Self::TooShort { .. }
            | Self::Memory { .. }
            | Self::Processor { .. }
            | Self::Drive(_)
            | Self::NoLine { .. }
            | Self::Resume { .. } => ErrorKind::Usage,
            Self::Refused(_)
            | Self::Target(stack::TargetError::Elsewhere { .. })
            | Self::NotWritable { .. }
            | Self::NotAFile { .. }
            | Self::NeedsFileSystem { .. }
            | Self::NotOurs { .. }
            | Self::ScratchIsLink { .. }
            | Self::Strangers { .. }
            | Self::Unmarked { .. }
            | Self::NoInodes { .. }
            | Self::NoRoomForFiles { .. }
            | Self::SameTarget { .. }
            | Self::TwinMemory { .. }
            | Self::Confirm(_)
            | Self::InUse { .. }
            | Self::Appeared { .. }
            | Self::Claimed { .. }
            | Self::Locked { .. }
            | Self::NoRoom { .. }
            | Self::NoRoomForSuite { .. } => ErrorKind::Refused,
            Self::Store(_) => ErrorKind::Store,
            Self::Stopped => ErrorKind::Interrupted,
            Self::Database(error) => of_database(error),
            _ => ErrorKind::Target,
        }
    }
}
