//! Which log is of which store.
//!
//! SQLite puts whatever has the log's name into the file: nothing in it says whose log it is. A
//! backup in the place of a store whose log is still there would become a mix of both. So each
//! transaction sets a random mark and keeps the one before. A log is the file's own if it begins with
//! what the file has, or if the file was brought up to a transaction in it.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, Transaction, params};
use xxhash_rust::xxh3::xxh3_64;

use crate::held::Looked;
use crate::log::{START, big_endian};
use crate::{beside, escaped, migrate};

/// From this schema on stores have marks.
pub(crate) const MARKED: i64 = 17;

/// Random bytes.
pub(crate) type Bytes = [u8; 16];
/// Before the first mark there was none.
const NONE: Bytes = [0; 16];
/// Of page 1: all that is about the file, with how often it was changed and how long it is.
const HEADER: usize = 100;

/// What the first mark of a store has before it: zeros, and behind these what its file was then if it
/// was brought up to date. So the log is bound to that file.
fn born(first: &[u8; START]) -> Bytes {
    let sum = xxh3_64(first.split_at(HEADER).0).to_be_bytes();
    let mut born = NONE;
    born.iter_mut().skip(8).zip(sum).for_each(|(byte, new)| *byte = new);
    born
}

/// Binds the first mark to the file as it is without its log.
pub(crate) fn bear(t: &Transaction, path: &Path) -> rusqlite::Result<()> {
    let read = || -> io::Result<[u8; START]> {
        let mut first = [0; START];
        beside::look_through(path)?.hold()?.read_at(&mut first, 0)?;
        Ok(first)
    };
    // What SQLite reads can be read.
    let Ok(first) = read() else { return Ok(()) };
    t.execute("UPDATE mark SET before = ?1", [born(&first)]).map(drop)
}

const WHAT: &str = "plimsoll store mark";
/// How the only row begins: lengths of record and of key, the key, the record's head (its length, no
/// key, a text of 19 bytes, twice 16 bytes), the text.
const ROW: &[u8] = b"\x38\x01\x05\x00\x33\x2c\x2cplimsoll store mark";

/// The mark in a page of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) now: Bytes,
    before: Bytes,
}

impl Mark {
    /// `None` of any other page.
    pub(crate) fn of_page(page: &[u8]) -> Option<Self> {
        // The leaf of a table, with one row, where its pointer says.
        let &[13, _, _, 0, 1, _, _, _, high, low] = page.first_chunk()? else {
            return None;
        };
        let row = page.get(usize::from(u16::from_be_bytes([high, low]))..)?.strip_prefix(ROW)?;
        let (now, rest) = row.split_first_chunk()?;
        Some(Self { now: *now, before: *rest.first_chunk()? })
    }
}

/// The marks in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Something was committed in it that SQLite reads.
    pub(crate) is_used: bool,
    /// Those that were committed, in their order.
    pub(crate) read: Vec<Mark>,
    /// Those behind damage, which SQLite does not read.
    pub(crate) unread: Vec<Mark>,
    /// The page that they are in.
    pub(crate) page: Option<u32>,
    /// The last page of the store that is not in it.
    pub(crate) lacks: Option<u32>,
    /// The beginnings of page 1 that were committed.
    pub(crate) firsts: BTreeSet<[u8; START]>,
}

impl Marks {
    /// Whether a store was made in it, and then nothing was stored.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.read.as_slice(), [only] if only.before == NONE) && self.unread.is_empty()
    }

    /// Whether it goes on from nothing, as far as that shows.
    pub(crate) fn begins_anew(&self) -> bool {
        self.read.first().is_none_or(|first| first.before.starts_with(&[0; 8]))
    }
}

/// The mark in the file, without its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfFile {
    /// It is of an older schema, or nothing is in it; what a log that begins with it has before its
    /// first mark.
    None(Bytes),
    Now(Bytes),
    /// It cannot be read, or is not where the log has it.
    Unknown,
}

/// What of a file, without its log, tells whose log is beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    bytes: u64,
    page: u32,
    /// The beginning of its page 1.
    first: [u8; START],
    pub(crate) mark: OfFile,
}

/// In page 1: how many pages the file has, the number of its schema's last change, the schema's version.
const PAGES: usize = 28;
const COOKIE: usize = 40;
const VERSION: usize = 60;

impl Facts {
    pub(crate) fn read(path: &Path, page: u32, log: &Marks) -> io::Result<Self> {
        let mut facts = Self::of(&beside::look_through(path)?.hold()?, page, log)?;
        if facts.version() >= MARKED && log.page.is_none() {
            facts.mark = OfFile::read(path);
        }
        Ok(facts)
    }

    /// Plain reads: SQLite reads a mark wherever it is, and nothing where the file is cut. Without a log
    /// that has it, it is not known where the mark is.
    pub(crate) fn of(file: &Looked, page: u32, log: &Marks) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        let mut first = [0; START];
        file.read_at(&mut first, 0)?;
        let mut facts = Self { bytes, page, first, mark: OfFile::Unknown };
        let logged = log.read.first().map_or(NONE, |first| first.before);
        // It got its mark in this log, of which only the first pages are in the file yet.
        let is_begun = log.begins_anew() && facts.is_partly(log);
        if facts.version() < MARKED {
            facts.mark = OfFile::None(match facts.version() {
                _ if is_begun => logged,
                0 => NONE,
                _ => born(&first),
            });
            return Ok(facts);
        }
        let Some(number) = log.page else { return Ok(facts) };
        let mut content = vec![0; usize::try_from(page).unwrap_or_default()];
        let at = u64::from(number.saturating_sub(1)) * u64::from(page);
        let read = file.read_at(&mut content, at);
        facts.mark = match read.ok().and_then(|()| Mark::of_page(&content)) {
            Some(mark) => OfFile::Now(mark.now),
            None if is_begun => OfFile::None(logged),
            None => OfFile::Unknown,
        };
        Ok(facts)
    }

    fn word(&self, at: usize) -> u32 {
        big_endian(&self.first, at).unwrap_or_default()
    }

    fn version(&self) -> i64 {
        i64::from(self.word(VERSION))
    }

    /// Whether the first page of the log is in the file.
    fn is_partly(&self, log: &Marks) -> bool {
        log.firsts.contains(&self.first)
    }

    /// Why the file is not whole, so that the log would complete what is something else.
    pub(crate) fn lacks(&self, log: &Marks) -> Option<String> {
        // Putting a log into the file makes it longer after the first page has the new length.
        let own = if self.is_partly(log) { 0 } else { self.word(PAGES) };
        let pages = own.max(log.lacks.unwrap_or_default());
        let wanted = u64::from(pages) * u64::from(self.page);
        if self.bytes < wanted {
            return Some(format!("it has {} bytes, wanted {wanted}", self.bytes));
        }
        (self.mark == OfFile::Unknown).then(|| "its mark cannot be read".to_owned())
    }

    /// How it shows that the pages of the file have other numbers than those in the log: a program that
    /// numbers them anew (`VACUUM`) changes the schema's number.
    pub(crate) fn is_renumbered(&self, log: &Marks) -> Option<String> {
        let word = |first: &[u8; START], at| big_endian(first, at).unwrap_or_default();
        let same = |first: &&[u8; START]| word(first, VERSION) == self.word(VERSION);
        let cookies: Vec<_> = log.firsts.iter().filter(same).map(|f| word(f, COOKIE)).collect();
        let own = self.word(COOKIE);
        if matches!(self.mark, OfFile::None(_)) || cookies.is_empty() || cookies.contains(&own) {
            return None;
        }
        let logged = cookies.first().copied().unwrap_or_default();
        Some(format!(
            "the store's schema was changed {own} times, and the log's {logged} times: VACUUM and \
             copies made by it do that"
        ))
    }
}

impl OfFile {
    fn read(path: &Path) -> Self {
        let uri = format!("file:{}?immutable=1", escaped(path));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let read = || -> rusqlite::Result<Self> {
            let file = Connection::open_with_flags(uri, flags)?;
            file.query_row("SELECT now FROM mark", [], |row| row.get(0)).map(Self::Now)
        };
        read().unwrap_or(Self::Unknown)
    }
}

/// Whose a log is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bond {
    /// The file's, or nothing is in it.
    Own,
    /// The file's, which has more than can be read of the log.
    Behind,
    /// Another's, and how that shows.
    Other(String),
}

impl Bond {
    pub(crate) fn of(file: OfFile, log: &Marks) -> Self {
        let first = log.read.first();
        if !log.is_used {
            return Self::Own;
        }
        match (file, first) {
            (OfFile::Unknown, _) => Self::Other("the store's mark cannot be read".to_owned()),
            (OfFile::None(_), None) => Self::Own,
            (OfFile::None(born), Some(first)) if first.before == born => Self::Own,
            (OfFile::None(_), Some(first)) => Self::Other(format!(
                "the store has no mark yet, and the log goes on from mark {}",
                short(first.before)
            )),
            (OfFile::Now(now), None) => Self::Other(format!(
                "the store has mark {}, and the log has none: plimsoll did not write it, or before \
                 this store had marks",
                short(now)
            )),
            (OfFile::Now(now), Some(first)) => {
                let has = |marks: &[Mark]| marks.iter().any(|mark| mark.now == now);
                if first.before == now || has(&log.read) {
                    Self::Own
                } else if has(&log.unread) {
                    Self::Behind
                } else {
                    Self::Other(format!(
                        "the store has mark {}, and the log goes on from mark {}",
                        short(now),
                        short(first.before)
                    ))
                }
            }
        }
    }
}

/// For people: enough to see that two differ.
fn short(mark: Bytes) -> String {
    mark.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Sets the next mark: part of every transaction that writes.
pub(crate) fn touch(t: &Transaction) -> rusqlite::Result<()> {
    let next = "UPDATE mark SET before = now, now = randomblob(16)";
    if t.prepare_cached(next)?.execute([])? == 0 {
        // Somebody removed it.
        let first = "INSERT INTO mark VALUES (1, ?1, randomblob(16), ?2)";
        t.execute(first, params![WHAT, NONE])?;
    }
    // Writes page 1, changed or not: every log then has the number of the schema's last change.
    t.pragma_update(None, "user_version", migrate::KNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mark(now: u8, before: u8) -> Mark {
        Mark { now: [now; 16], before: [before; 16] }
    }

    fn log(read: &[Mark], unread: &[Mark]) -> Marks {
        Marks { is_used: true, read: read.to_vec(), unread: unread.to_vec(), ..Marks::default() }
    }

    #[test]
    fn whose_a_log_is() {
        let own = log(&[mark(5, 4), mark(6, 5), mark(7, 6)], &[mark(9, 8)]);
        for now in 4..=7 {
            assert_eq!(Bond::of(OfFile::Now([now; 16]), &own), Bond::Own, "{now}");
        }
        assert_eq!(Bond::of(OfFile::Now([9; 16]), &own), Bond::Behind);
        let other = |file, log: &Marks| matches!(Bond::of(file, log), Bond::Other(_));
        for now in [1, 3, 8, 10] {
            assert!(other(OfFile::Now([now; 16]), &own), "{now}");
        }
        assert!(other(OfFile::Unknown, &own), "what cannot be read");
        assert!(other(OfFile::None(NONE), &own), "a store without marks has another's log");
        // A store that was made, or got its marks, in this log.
        let new = log(&[mark(5, 0), mark(6, 5)], &[]);
        assert_eq!(Bond::of(OfFile::None(NONE), &new), Bond::Own);
        assert!(other(OfFile::Now([4; 16]), &new));
        assert!(other(OfFile::None([1; 16]), &new), "of another file");
        // Of a store before there were marks, and beside one that has them.
        assert_eq!(Bond::of(OfFile::None(NONE), &log(&[], &[])), Bond::Own);
        assert!(other(OfFile::Now([4; 16]), &log(&[], &[])));
        assert_eq!(Bond::of(OfFile::Now([4; 16]), &Marks::default()), Bond::Own);
    }

    /// Whatever page SQLite makes of the row, it is found, and nothing else is.
    #[test]
    fn a_mark_is_found_in_its_page() {
        let folder = std::env::temp_dir().join(format!("plimsoll-mark-{}", std::process::id()));
        let path = folder.join("plimsoll.db");
        let mut store = crate::Store::open(&path).unwrap();
        for _ in 0..3 {
            store.transaction(|_| Ok(())).unwrap();
        }
        let row = |sql: &str| -> (i64, Bytes, Bytes) {
            let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            store.connection.query_row(sql, [], row).unwrap()
        };
        let sql = "SELECT rootpage, now, before FROM mark, sqlite_schema WHERE name = 'mark'";
        let (root, now, before) = row(sql);
        store.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let found: Vec<_> = (1..)
            .zip(bytes.chunks(4096))
            .filter_map(|(number, page)| Mark::of_page(page).map(|mark| (number, mark)))
            .collect();
        assert_eq!(found, [(root, Mark { now, before })]);
        assert_eq!(OfFile::read(&path), OfFile::Now(now));
        drop(store);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
