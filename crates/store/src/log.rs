//! SQLite's log as it lies beside a store, looked at before SQLite does.
//!
//! Every frame of the log has a checksum, and SQLite reads up to the first that does not fit: what comes
//! after was never committed, or so it must assume. Where bytes of the log were changed, whatever
//! was stored behind them is lost without a word. Here that is found, and said.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::held::Looked;
use crate::mark::{Mark, Marks};
use crate::{beside, log_path};

pub(crate) const HEADER: usize = 32;
pub(crate) const FRAME: usize = 24;
/// With the lowest bit set the checksum is of big-endian words.
const MAGIC: u32 = 0x377f_0682;
/// The largest page that SQLite knows.
const PAGE_MAX: usize = 1 << 16;
/// As much of a page 1 as tells whose database it is and whether anything is in it.
pub(crate) const START: usize = 112;
/// So often it is looked at again: another process may be writing just now.
const LOOKS: u32 = 5;
const LOOK: Duration = Duration::from_millis(20);
/// The kernel's clock of files may stand still for so long.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// What SQLite leaves out of the log beside a store, if that may have been stored: for people. `None`
/// where nothing is wrong, or where there is no log.
pub fn doubt(store: &Path) -> Option<String> {
    let store = store.canonicalize().ok()?;
    // Whoever opens it then says what is wrong.
    beside::ask_nobody(&store).ok()?;
    let why = match patient(&store).verdict {
        Verdict::Sound | Verdict::Behind => return None,
        Verdict::Doubt(why) | Verdict::Damaged(why) => why,
    };
    Some(format!(
        "the store's log {} is not as it was written: {why}; what was stored last may be missing. A \
         disk or a memory that changes data does this, and a machine that went down while it wrote",
        log_path(&store).display()
    ))
}

/// How a log is, as far as it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All that was committed is read. Its end may be torn: what a kill or a full disk cut short.
    Sound,
    /// Something at its end does not fit, and it cannot be known whether that was ever committed.
    Doubt(String),
    /// What was committed once is not read any more.
    Damaged(String),
    /// The same, and the store has what is not read: what is read must not be put over it.
    Behind,
}

/// What is known of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) verdict: Verdict,
    /// The beginning of the newest page 1 that was committed.
    pub(crate) start: Option<[u8; START]>,
    pub(crate) marks: Marks,
    /// Where in the log that page is, and how long it is, if every page of the store is in the log: the
    /// store can be had from it alone.
    pub(crate) whole: Option<(u64, u64)>,
    /// So many frames SQLite reads.
    pub(crate) taken: u32,
}

impl Look {
    const NOTHING: Self = Self::of(Verdict::Sound);

    const fn of(verdict: Verdict) -> Self {
        let marks = Marks {
            is_used: false,
            read: Vec::new(),
            unread: Vec::new(),
            page: None,
            lacks: None,
            firsts: BTreeSet::new(),
        };
        Self { verdict, start: None, marks, whole: None, taken: 0 }
    }
}

/// Of the log beside a store, whose path leads through no link. What another process writes meanwhile
/// is no damage: that is the same at each look.
pub(crate) fn patient(store: &Path) -> Look {
    patiently(|| look(store))
}

/// The same of a log that is open, whatever its name is.
pub(crate) fn patient_of(log: &Looked) -> Look {
    patiently(|| read(log.again()))
}

/// How many frames of an open log SQLite would read just now.
pub(crate) fn taken(log: &Looked) -> u32 {
    read(log.again()).taken
}

fn patiently(look: impl Fn() -> Look) -> Look {
    let mut found = look();
    for _ in 1..LOOKS {
        if found.verdict == Verdict::Sound {
            return found;
        }
        std::thread::sleep(LOOK);
        let again = look();
        if again == found {
            return found;
        }
        found = again;
    }
    Look { verdict: Verdict::Sound, ..found }
}

/// What was found last, and in which file: one command looks several times.
static LAST: Mutex<Option<(Stamp, Look)>> = Mutex::new(None);

/// Device, inode, length, times of the last changes.
pub(crate) type Stamp = [i128; 5];

/// `None` while the next change might bear the same time.
pub(crate) fn stamp(found: &Metadata) -> Option<Stamp> {
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let changed = nanos(found.ctime(), found.ctime_nsec());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let age = i128::try_from(now.as_nanos()).ok()? - changed;
    let written = nanos(found.mtime(), found.mtime_nsec());
    let (device, inode, bytes) = (found.dev(), found.ino(), found.len());
    (age.unsigned_abs() > TICK.as_nanos()).then_some([
        device.into(),
        inode.into(),
        bytes.into(),
        written,
        changed,
    ])
}

fn unread(error: io::Error) -> Look {
    Look::of(Verdict::Doubt(format!("it cannot be read: {error}")))
}

fn read(log: Looked) -> Look {
    scan(BufReader::with_capacity(1 << 16, log)).unwrap_or_else(unread)
}

fn look(store: &Path) -> Look {
    let file = match beside::look_at(&log_path(store)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Look::NOTHING,
        Err(error) => return unread(error),
    };
    let stamp = file.metadata().ok().as_ref().and_then(stamp);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((known, look)) if Some(*known) == stamp => return look.clone(),
        _ => {}
    }
    let found = read(file);
    *last = stamp.map(|stamp| (stamp, found.clone()));
    found
}

/// The page size that the head of a log names, if it is one.
pub(crate) fn page_size(head: &[u8]) -> Option<u32> {
    (big_endian(head, 0)? & !1 == MAGIC).then(|| big_endian(head, 8))?
}

fn scan(mut log: impl Read) -> io::Result<Look> {
    let mut head = [0; HEADER];
    // Without a frame there is nothing in it, whatever its head.
    if fill(&mut log, &mut head)? < HEADER {
        return Ok(Look::NOTHING);
    }
    let Some(header) = Header::of(&head) else {
        // SQLite takes none of it.
        let is_used = fill(&mut log, &mut [0])? > 0;
        let why = "its header has a wrong checksum".to_owned();
        return Ok(if is_used { Look::of(Verdict::Damaged(why)) } else { Look::NOTHING });
    };
    let mut frame = vec![0; FRAME + header.page];
    let mut scan = Scan::new(header);
    loop {
        let length = fill(&mut log, &mut frame)?;
        if length == 0 {
            return Ok(scan.done());
        }
        scan.add(frame.get(..length).unwrap_or_default());
    }
}

pub(crate) fn fill(from: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// A checksum.
type Sum = (u32, u32);

/// Goes over the frames of a log.
struct Scan {
    header: Header,
    number: u32,
    /// What the next frame's checksum continues from: what the last one says, and what it is.
    sums: [Sum; 2],
    /// The first frame that SQLite does not take.
    bad: Option<Bad>,
    /// The first frame of this log behind that, and the first that ends a transaction.
    later: Option<u32>,
    later_commit: Option<u32>,
    /// The first whole frame behind it that was never of a log in this file.
    strange: Option<u32>,
    /// A frame behind it that ends a transaction and fits the one before: both were once written whole.
    proof: Option<u32>,
    /// The beginning of page 1, not yet committed and committed.
    written: Option<[u8; START]>,
    start: Option<[u8; START]>,
    /// Not yet committed, and all else.
    mark: Option<Mark>,
    marks: Marks,
    pages: Pages,
}

/// Which pages are in a log.
#[derive(Default)]
struct Pages {
    seen: BTreeSet<u32>,
    /// The frame of the newest page 1.
    first: u32,
    /// As of the last commit: that frame, if all pages were there.
    whole: Option<u32>,
    /// As of the last commit: the last page that the file must have.
    lacks: Option<u32>,
}

impl Pages {
    fn add(&mut self, page: u32, frame: u32, size: u32) {
        self.seen.insert(page);
        if page == 1 {
            self.first = frame;
        }
        if size > 0 {
            let count = self.seen.range(..=size).count();
            self.whole = (u32::try_from(count) == Ok(size)).then_some(self.first);
            self.lacks = (1..=size).rev().find(|page| !self.seen.contains(page));
        }
    }
}

struct Bad {
    number: u32,
    kin: Kin,
    is_whole: bool,
    is_commit: bool,
    /// Its checksum fits, so it was of this log.
    fits: bool,
}

impl Scan {
    fn new(header: Header) -> Self {
        let sums = [header.sum; 2];
        let (bad, later, later_commit, proof, strange) = (None, None, None, None, None);
        let (written, start, mark, marks) = (None, None, None, Marks::default());
        let number = 0;
        Self {
            header,
            number,
            sums,
            bad,
            later,
            later_commit,
            strange,
            proof,
            written,
            start,
            mark,
            marks,
            pages: Pages::default(),
        }
    }

    fn done(mut self) -> Look {
        self.marks.lacks = self.pages.lacks;
        let page = self.header.page as u64;
        let at = |frame: u32| {
            let before = u64::from(frame - 1) * (FRAME as u64 + page);
            (HEADER as u64 + before + FRAME as u64, page)
        };
        let verdict = self.verdict();
        let taken = self.bad.as_ref().map_or(self.number, |bad| bad.number - 1);
        let whole = self.pages.whole.map(at);
        Look { verdict, start: self.start, whole, marks: self.marks, taken }
    }

    fn add(&mut self, frame: &[u8]) {
        self.number += 1;
        let [before, other] = self.sums;
        let kin = self.header.kin(frame);
        let sum = self.header.sum(before, frame);
        let stored = stored(frame);
        let fits = sum.is_some() && sum == stored;
        let is_commit = big_endian(frame, 4).is_some_and(|pages| pages != 0);
        self.sums = [stored.unwrap_or_default(), sum.unwrap_or_default()];
        let takes = self.bad.is_none() && kin == Kin::Of && fits;
        if let Some(mark) = frame.get(FRAME..).and_then(Mark::of_page) {
            match takes {
                true => {
                    self.mark = Some(mark);
                    self.marks.page = self.marks.page.or(big_endian(frame, 0));
                }
                false if kin == Kin::Of => self.marks.unread.push(mark),
                false => {}
            }
        }
        match self.bad {
            None if takes => self.take(frame, is_commit),
            None => {
                let (number, is_whole) = (self.number, sum.is_some());
                self.bad = Some(Bad { number, kin, is_whole, is_commit, fits });
            }
            Some(_) if kin == Kin::Neither && frame.len() == FRAME + self.header.page => {
                self.strange = self.strange.or(Some(self.number));
            }
            Some(_) if kin != Kin::Of || sum.is_none() => {}
            Some(_) => {
                let here = Some(self.number);
                self.later = self.later.or(here);
                let continues = fits || self.header.sum(other, frame) == stored;
                if is_commit {
                    self.later_commit = self.later_commit.or(here);
                    self.proof = self.proof.or(here.filter(|_| continues));
                }
            }
        }
    }

    fn take(&mut self, frame: &[u8], is_commit: bool) {
        let page = big_endian(frame, 0).unwrap_or_default();
        self.pages.add(page, self.number, big_endian(frame, 4).unwrap_or_default());
        if page == 1 {
            self.written = frame.get(FRAME..).and_then(|page| page.first_chunk().copied());
        }
        if is_commit {
            self.start = self.written.or(self.start);
            self.marks.firsts.extend(self.start);
            self.marks.is_used = true;
            self.marks.read.extend(self.mark.take());
        }
    }

    /// Nothing counts in a log before the transaction ends that it is of. So what was written of one
    /// that did not end, for want of space or by a kill, is no loss, whatever it looks like.
    fn verdict(&self) -> Verdict {
        let Some(bad) = &self.bad else { return Verdict::Sound };
        let first = bad.number;
        if bad.fits && bad.is_commit {
            return Verdict::Damaged(format!(
                "frame {first} does not belong to it: its salts differ"
            ));
        }
        match (bad.kin, self.proof, self.later_commit.or(self.later)) {
            (_, Some(proof), _) => Verdict::Damaged(format!(
                "frame {first} has a wrong checksum, and frame {proof} behind it a right one"
            )),
            (Kin::Of | Kin::Pending, None, Some(_)) if self.later_commit.is_some() => {
                Verdict::Doubt(format!("frame {first} has a wrong checksum"))
            }
            // Of a pending frame that ends a transaction only the last write is missing.
            (Kin::Of | Kin::Pending, None, _) if bad.is_commit && bad.is_whole => {
                Verdict::Doubt(format!("frame {first} has a wrong checksum"))
            }
            (Kin::Of | Kin::Pending, None, _) if self.strange.is_some() => Verdict::Doubt(format!(
                "frame {first} has a wrong checksum, and what follows is none"
            )),
            (Kin::Before | Kin::Neither, None, Some(later)) => Verdict::Doubt(format!(
                "frame {first} does not belong to it, and frame {later} does"
            )),
            (Kin::Neither, None, None) => {
                Verdict::Doubt(format!("frame {first} does not belong to it"))
            }
            _ => Verdict::Sound,
        }
    }
}

/// Whose a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kin {
    /// Of this log.
    Of,
    /// Of one that was in the file before, whose frames are written over one by one.
    Before,
    /// Of a transaction that did not end: SQLite puts off salts and checksums of pages that it has
    /// written before.
    Pending,
    Neither,
}

struct Header {
    page: usize,
    big: bool,
    /// How often the log began anew in this file.
    times: u32,
    salts: (u32, u32),
    sum: Sum,
}

impl Header {
    /// `None` unless it fits its checksum.
    fn of(log: &[u8]) -> Option<Self> {
        let word = |at| big_endian(log, at);
        let magic = word(0)?;
        let big = magic & 1 != 0;
        let sum = summed((0, 0), log.get(..24)?, big);
        let page = usize::try_from(word(8)?).ok()?;
        let fits = magic & !1 == MAGIC && sum == (word(24)?, word(28)?);
        let salts = (word(16)?, word(20)?);
        let is_page = (512..=PAGE_MAX).contains(&page);
        (fits && is_page).then_some(Self { page, big, times: word(12)?, salts, sum })
    }

    fn kin(&self, frame: &[u8]) -> Kin {
        let (Some(first), Some(second)) = (big_endian(frame, 8), big_endian(frame, 12)) else {
            return Kin::Before;
        };
        let is_pending = frame.get(8..FRAME).is_some_and(|rest| rest.iter().all(|b| *b == 0));
        if is_pending && big_endian(frame, 0) != Some(0) {
            return Kin::Pending;
        }
        // The first salt counts; the second is a random one each time.
        let before = self.salts.0.wrapping_sub(first);
        match (before, second == self.salts.1) {
            (0, true) => Kin::Of,
            (1.., false) if before <= self.times => Kin::Before,
            _ => Kin::Neither,
        }
    }

    /// The checksum up to a frame; `None` if that is not whole, or none: SQLite has no page 0.
    fn sum(&self, before: Sum, frame: &[u8]) -> Option<Sum> {
        let content = frame.get(FRAME..).filter(|content| content.len() == self.page)?;
        let sum = summed(summed(before, frame.get(..8)?, self.big), content, self.big);
        (big_endian(frame, 0)? != 0).then_some(sum)
    }
}

/// The checksum that a frame bears.
fn stored(frame: &[u8]) -> Option<Sum> {
    Some((big_endian(frame, 16)?, big_endian(frame, 20)?))
}

pub(crate) fn big_endian(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// SQLite's checksum over pairs of words, from where another ended.
fn summed((mut one, mut two): Sum, bytes: &[u8], big: bool) -> Sum {
    let word =
        |four: [u8; 4]| if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) };
    for &[a, b, c, d, e, f, g, h] in bytes.as_chunks::<8>().0 {
        one = one.wrapping_add(word([a, b, c, d])).wrapping_add(two);
        two = two.wrapping_add(word([e, f, g, h])).wrapping_add(one);
    }
    (one, two)
}
