//! A store and what lies beside it, looked at by plain reads before SQLite opens anything.
//!
//! SQLite takes whatever has the name of its files for its own: it rolls a journal back into the
//! database, puts a log into it, and removes both. And it does so before anybody can ask whose
//! database it is.

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use crate::held::Looked;
use crate::log::{self, Look, START, Verdict, big_endian};
use crate::mark::{Bond, Facts, Marks};
use crate::{StoreError, beside, held, log_path, migrate};

const MAGIC: &[u8] = b"SQLite format 3\0";
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// What making a store writes to a journal is a page and its head.
const JOURNAL_MAX: u64 = 64 << 10;
/// The version of the log's index.
pub(crate) const INDEX: u32 = 3_007_000;
/// So often a refusal is looked at again: another process may be making the store just now.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(10);

/// Refuses what is no store, and a store beside which SQLite would use what is not its own; else how
/// its log is.
pub(crate) fn look(store: &Path) -> Result<Verdict, StoreError> {
    // SQLite goes through a link to the store itself, and puts its own beside what that leads to.
    let real = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let mut last = String::new();
    for _ in 0..LOOKS {
        let error = match once(store, &real) {
            Ok(verdict) => return Ok(verdict),
            Err(error) => error,
        };
        let said = error.to_string();
        if said == last {
            return Err(error);
        }
        last = said;
        std::thread::sleep(LOOK);
    }
    once(store, &real)
}

/// Whether a file is a store, as far as it bears our mark; what cannot be read is none. One that cannot be
/// looked at without ending another process may be one.
pub(crate) fn is_store(path: &Path) -> bool {
    let found = std::fs::metadata(path);
    if found.is_ok_and(|found| held::leased(held::id(&found), false).is_some()) {
        return true;
    }
    match Main::read(path) {
        Ok(Main::Store(_)) => true,
        // All that it has may be in the log.
        Ok(Main::Blank(_)) => {
            let start = log::patient(path).start;
            start.is_some_and(|start| matches!(Main::of(&start, None), Main::Store(_)))
        }
        _ => false,
    }
}

fn once(store: &Path, real: &Path) -> Result<Verdict, StoreError> {
    beside::check(real)?;
    // What cannot be read SQLite cannot open either, and says why.
    let Ok(main) = Main::read(real) else { return Ok(Verdict::Sound) };
    if main == Main::Foreign {
        return Err(StoreError::NotAStore(store.to_owned()));
    }
    let log = Side::read(&log_path(real)).ok().flatten();
    let is_logged = log.is_some_and(|log| log.bytes > 32);
    for (end, is_of) in SIDES {
        let path = beside::side(real, end);
        // What cannot be read is a doubt about the log, and SQLite's to say of the others.
        let Ok(Some(side)) = Side::read(&path) else { continue };
        if let Err((why, wanted)) = is_of(&main, &side, is_logged) {
            return Err(StoreError::NotBeside { path, why: why.to_owned(), wanted });
        }
    }
    match main {
        Main::Absent | Main::Empty => lost((store, real)).map(|()| Verdict::Sound),
        Main::Foreign => Ok(Verdict::Sound),
        Main::Blank(_) | Main::Store(_) => {
            let Look { verdict, start, marks, .. } = log::patient(real);
            newest((store, real), &main, start.as_ref())?;
            bound((store, real), &main, &marks).map(|is_behind| match is_behind {
                true => Verdict::Behind,
                false => verdict,
            })
        }
    }
}

/// Refuses to make a store where one was lost whose log is still there, with something in it, or whose
/// user is.
fn lost((store, real): (&Path, &Path)) -> Result<(), StoreError> {
    let index = beside::side(real, "-shm");
    let in_use = std::fs::symlink_metadata(&index).map(|found| held::id(&found));
    if in_use.is_ok_and(held::others_have) {
        let why = "another process uses it for a store that was removed".to_owned();
        return Err(StoreError::NotBeside { path: index, why, wanted: "nothing without a store" });
    }
    let Look { verdict, marks, whole, .. } = log::patient(real);
    if verdict == Verdict::Sound && (!marks.is_used || marks.is_new()) {
        // SQLite removes it.
        return Ok(());
    }
    let is_whole = verdict == Verdict::Sound && marks.begins_anew();
    let (path, log, whole) = (store.to_owned(), log_path(real), whole.filter(|_| is_whole));
    Err(StoreError::Lost { path, log, whole })
}

/// Refuses the log of another store, and a store that is not whole; whether the file has more than can
/// be read of the log.
fn bound((store, real): (&Path, &Path), main: &Main, log: &Marks) -> Result<bool, StoreError> {
    let Some(head) = main.head().filter(|_| log.is_used) else { return Ok(false) };
    let (path, its_log) = (store.to_owned(), log_path(real));
    let facts = Facts::read(real, head.page, log).map_err(|error| Unfit::Part(error.to_string()));
    facts.and_then(|facts| fits(&facts, log)).map_err(|unfit| match unfit {
        Unfit::Other(why) => StoreError::OtherLog { path, log: its_log, why },
        Unfit::Part(why) => StoreError::NotWhole { path, log: its_log, why },
    })
}

/// Why a log is not put into a file.
enum Unfit {
    /// It is of another one.
    Other(String),
    /// The file is not whole.
    Part(String),
}

/// Whether the file has more than can be read of the log.
fn fits(facts: &Facts, log: &Marks) -> Result<bool, Unfit> {
    if let Some(why) = facts.is_renumbered(log) {
        return Err(Unfit::Other(why));
    }
    match (Bond::of(facts.mark, log), facts.lacks(log)) {
        (Bond::Other(why), None) => Err(Unfit::Other(why)),
        (_, Some(why)) => Err(Unfit::Part(why)),
        (Bond::Own, None) => Ok(false),
        (Bond::Behind, None) => Ok(true),
    }
}

/// Whether a log may be put into a file, both of which are open, whatever their names are.
pub(crate) fn is_own(file: &Looked, log: &Looked) -> bool {
    let Look { verdict, marks, .. } = log::patient_of(log);
    let Ok(Main::Store(head)) = Main::read_from(file.again()) else { return false };
    let facts = || Facts::of(file, head.page, &marks).ok();
    verdict == Verdict::Sound
        && (!marks.is_used
            || facts().is_some_and(|facts| matches!(fits(&facts, &marks), Ok(false))))
}

/// Refuses a store by the newest page 1 there is: what is in the log counts.
fn newest(
    (store, real): (&Path, &Path),
    main: &Main,
    start: Option<&[u8; START]>,
) -> Result<(), StoreError> {
    let found = match start {
        Some(bytes) => Main::of(bytes, None),
        None => *main,
    };
    let head = match (main, found) {
        (_, Main::Store(head)) => head,
        (Main::Blank(_), Main::Blank(_)) => return Ok(()),
        (Main::Store(_), _) => {
            let why = "it is the log of another database".to_owned();
            return Err(StoreError::NotBeside { path: log_path(real), why, wanted: LOG });
        }
        _ => return Err(StoreError::NotAStore(store.to_owned())),
    };
    let known = migrate::KNOWN;
    match i64::from(head.version) {
        found if found > known => Err(StoreError::Newer { path: store.to_owned(), found, known }),
        // Tables and version come in one transaction: who has only one of them is not ours.
        found if found < 0 || (found == 0 && !head.is_blank) => {
            Err(StoreError::NotAStore(store.to_owned()))
        }
        _ => Ok(()),
    }
}

/// The file itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Main {
    Absent,
    Empty,
    /// The first page of a database that nothing was put into: a store is being made, or a kill ended
    /// that.
    Blank(Head),
    /// It bears our mark.
    Store(Head),
    Foreign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    page: u32,
    is_wal: bool,
    /// Of the schema.
    version: i32,
    /// There is no table.
    is_blank: bool,
}

impl Main {
    fn read(path: &Path) -> io::Result<Self> {
        match beside::look_through(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::Absent),
            file => Self::read_from(file?),
        }
    }

    fn read_from(mut file: Looked) -> io::Result<Self> {
        let mut bytes = Vec::with_capacity(START);
        (&mut file).take(START as u64).read_to_end(&mut bytes)?;
        if bytes.starts_with(MAGIC) {
            file = file.hold()?;
        }
        Ok(Self::of(&bytes, Some(file.metadata()?.len())))
    }

    /// * `length`: of the file, unless the page is in the log.
    fn of(bytes: &[u8], length: Option<u64>) -> Self {
        if bytes.is_empty() {
            return Self::Empty;
        }
        let head = bytes.starts_with(MAGIC).then(|| Head::of(bytes)).flatten();
        let (Some(head), Some(mark)) = (head, big_endian(bytes, 68)) else { return Self::Foreign };
        let is_first = length.is_none_or(|length| length == u64::from(head.page));
        match i64::from(mark) {
            migrate::APPLICATION_ID => Self::Store(head),
            0 if head.version == 0 && head.is_blank && is_first => Self::Blank(head),
            _ => Self::Foreign,
        }
    }

    const fn head(&self) -> Option<&Head> {
        match self {
            Self::Blank(head) | Self::Store(head) => Some(head),
            Self::Absent | Self::Empty | Self::Foreign => None,
        }
    }

    /// Whether a journal may lie beside it: SQLite makes one for the first pages of a store alone.
    fn is_in_the_making(&self) -> bool {
        match self {
            Self::Empty | Self::Blank(_) => true,
            Self::Store(head) => head.is_blank && head.version == 0,
            Self::Absent | Self::Foreign => false,
        }
    }
}

impl Head {
    fn of(bytes: &[u8]) -> Option<Self> {
        let byte = |at: usize| bytes.get(at).copied();
        let short = |at: usize| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
        let page = match short(16)? {
            1 => 1 << 16,
            page => u32::from(page),
        };
        let is_wal = byte(18)? == 2 && byte(19)? == 2;
        let version = big_endian(bytes, 60)?.cast_signed();
        // The page of the table of tables: a leaf with no cell.
        let is_blank = byte(100)? == 13 && short(103)? == 0;
        let is_page = page.is_power_of_two() && page >= 512;
        is_page.then_some(Self { page, is_wal, version, is_blank })
    }
}

/// What a file beside it is: how long, and what it begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Side {
    bytes: u64,
    start: [u8; 56],
}

impl Side {
    /// `None` where there is none, or nothing in it.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut file = match beside::look_at(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let bytes = file.metadata()?.len();
        let mut start = [0; 56];
        log::fill(&mut file, &mut start)?;
        Ok((bytes > 0).then_some(Self { bytes, start }))
    }
}

/// What was seen, and what is wanted.
type Fault = (&'static str, &'static str);
/// The last: whether there is anything in its log.
type Rule = fn(&Main, &Side, bool) -> Result<(), Fault>;

const SIDES: [(&str, Rule); 3] = [("-journal", journal), ("-wal", log), ("-shm", index)];

fn journal(main: &Main, side: &Side, is_logged: bool) -> Result<(), Fault> {
    let is_unused = side.start.starts_with(&[0; 8]) && side.bytes <= JOURNAL_MAX;
    if is_unused && main.head().is_some() {
        // One that was never begun: SQLite neither rolls it back nor removes it.
        return Ok(());
    }
    // What SQLite makes with a journal it has made before the first transaction goes to the log.
    if is_logged || !main.is_in_the_making() {
        let why = "SQLite would take it for a journal and roll it back into the store";
        return Err((why, "none: a store keeps a log"));
    }
    let is_journal = side.start.starts_with(&JOURNAL) || side.start.starts_with(&[0; 8]);
    if is_journal && side.bytes <= JOURNAL_MAX {
        return Ok(());
    }
    Err(("it is not the journal of a store that is being made", "that, or none"))
}

const LOG: &str = "a log of this store, or none";

fn log(main: &Main, side: &Side, _: bool) -> Result<(), Fault> {
    let page = log::page_size(&side.start);
    let Some(head) = main.head() else {
        let why = "it is not a log of SQLite's, and there is no store for it";
        return page.map(drop).ok_or((why, "no log without a store"));
    };
    match page {
        // Cut short in its first bytes, nothing is in it.
        None if side.bytes < 32 && is_zero(&side.start) => Ok(()),
        None => Err(("it is not a log of SQLite's", LOG)),
        Some(_) if !head.is_wal => Err(("it is a log, and the store does not use one", LOG)),
        Some(page) if page != head.page && side.bytes > 32 => {
            Err(("it is a log with pages of another size", LOG))
        }
        Some(_) => Ok(()),
    }
}

fn index(_: &Main, side: &Side, _: bool) -> Result<(), Fault> {
    let word = |at: usize| {
        let bytes = side.start.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    };
    let is_index = [word(0), word(48)].iter().all(|word| [0, INDEX].contains(word));
    if is_index && (word(0) == INDEX || is_zero(&side.start)) {
        return Ok(());
    }
    Err(("it is not the index of a log of SQLite's", "that, or none"))
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(mark: u32, version: u32, wal: bool, tables: u16) -> [u8; START] {
        let mut bytes = [0; START];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..18].copy_from_slice(&4096u16.to_be_bytes());
        bytes[18..20].fill(if wal { 2 } else { 1 });
        bytes[60..64].copy_from_slice(&version.to_be_bytes());
        bytes[68..72].copy_from_slice(&mark.to_be_bytes());
        bytes[100] = 13;
        bytes[103..105].copy_from_slice(&tables.to_be_bytes());
        bytes
    }

    const OURS: u32 = 0x504c_494d;

    fn side(bytes: u64, start: &[u8]) -> Side {
        let mut all = [0; 56];
        all[..start.len()].copy_from_slice(start);
        Side { bytes, start: all }
    }

    #[test]
    fn whose_a_file_is() {
        let of = |bytes: &[u8], length| Main::of(bytes, Some(length));
        assert_eq!(of(&[], 0), Main::Empty);
        assert_eq!(of(b"SQLite format 3\0", 16), Main::Foreign);
        assert_eq!(of(&[0; START], 4096), Main::Foreign);
        assert!(matches!(of(&page(OURS, 16, true, 9), 40960), Main::Store(_)));
        assert!(matches!(of(&page(0, 0, true, 0), 4096), Main::Blank(_)));
        assert_eq!(of(&page(0, 0, true, 0), 8192), Main::Foreign, "more than one page");
        assert_eq!(of(&page(0, 0, true, 1), 4096), Main::Foreign, "a table");
        assert_eq!(of(&page(0, 3, true, 0), 4096), Main::Foreign, "a version");
        assert_eq!(of(&page(77, 0, true, 0), 4096), Main::Foreign, "another's mark");
    }

    #[test]
    fn what_counts_is_the_newest_first_page() {
        let path = Path::new("s.db");
        let main = |mark, version, tables| Main::of(&page(mark, version, true, tables), Some(4096));
        let by =
            |main: Main, start: Option<[u8; START]>| newest((path, path), &main, start.as_ref());
        let log = |mark, version, tables| Some(page(mark, version, true, tables));
        assert!(by(main(0, 0, 0), None).is_ok(), "blank");
        assert!(by(main(OURS, 0, 0), None).is_ok(), "blank, and ours");
        assert!(by(main(0, 0, 0), log(OURS, 16, 9)).is_ok(), "all of it is in the log");
        assert!(by(main(OURS, 0, 0), log(OURS, 16, 9)).is_ok());
        assert!(by(main(0, 0, 0), log(0, 0, 1)).is_err(), "a table of others");
        assert!(by(main(OURS, 16, 9), log(0, 0, 0)).is_err(), "a log of others");
        assert!(by(main(OURS, 0, 9), None).is_err(), "tables without a version");
        assert!(matches!(by(main(OURS, 16, 9), log(OURS, 99, 9)), Err(StoreError::Newer { .. })));
    }

    #[test]
    fn what_may_lie_beside() {
        let journal = |main: &Main, side: &Side| journal(main, side, false);
        let log = |main: &Main, side: &Side| log(main, side, false);
        let index = |main: &Main, side: &Side| index(main, side, false);
        let blank = Main::of(&page(0, 0, false, 0), Some(4096));
        let store = Main::of(&page(OURS, 16, true, 9), Some(40960));
        let rollback = Main::of(&page(OURS, 16, false, 9), Some(40960));
        let hot = side(4616, &JOURNAL);
        assert!(journal(&Main::Empty, &hot).is_ok() && journal(&blank, &hot).is_ok());
        assert!(journal(&blank, &side(512, &[0; 8])).is_ok());
        for main in [Main::Absent, store, rollback] {
            assert!(journal(&main, &hot).is_err(), "{main:?}");
        }
        assert!(journal(&blank, &side(1 << 20, &JOURNAL)).is_err(), "too long");
        assert!(journal(&blank, &side(10, b"my notes")).is_err());
        assert!(super::journal(&blank, &hot, true).is_err(), "all of it is in the log");
        let mut head = [0; 32];
        head[..4].copy_from_slice(&0x377f_0682u32.to_be_bytes());
        head[8..12].copy_from_slice(&4096u32.to_be_bytes());
        assert!(log(&store, &side(9000, &head)).is_ok());
        for main in [blank, rollback] {
            assert!(log(&main, &side(9000, &head)).is_err(), "{main:?}");
        }
        for main in [Main::Absent, Main::Empty] {
            assert!(log(&main, &side(9000, &head)).is_ok(), "what is in it decides");
            assert!(log(&main, &side(9000, b"my notes")).is_err());
        }
        head[10] = 0x20;
        assert!(log(&store, &side(9000, &head)).is_err(), "another page size");
        assert!(log(&store, &side(9000, &[0; 32])).is_err(), "zeros");
        let word = INDEX.to_ne_bytes();
        assert!(index(&store, &side(32768, &word)).is_ok());
        assert!(index(&store, &side(3, &[])).is_ok(), "cut to three bytes by its maker");
        assert!(index(&store, &side(9, b"mine")).is_err());
    }
}
