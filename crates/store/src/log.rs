//! SQLite's log as it lies beside a store, looked at before SQLite does.
//!
//! Every frame of the log has a checksum, and SQLite reads up to the first that does not fit: what comes
//! after was never committed, or so it must assume. Where bytes of the log were changed, whatever
//! was stored behind them is lost without a word. Here that is found, and said.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use crate::{beside, log_path};

const HEADER: usize = 32;
const FRAME: usize = 24;
/// With the lowest bit set the checksum is of big-endian words.
const MAGIC: u32 = 0x377f_0682;
/// So often it is looked at again: another process may be writing just now.
const LOOKS: u32 = 5;
const LOOK: Duration = Duration::from_millis(20);

/// What SQLite leaves out of the log beside a store, if that may have been stored: for people. `None`
/// where nothing is wrong, or where there is no log.
pub fn doubt(store: &Path) -> Option<String> {
    let store = store.canonicalize().ok()?;
    let look = || {
        let mut log = Vec::new();
        beside::read(&log_path(&store)).ok()?.read_to_end(&mut log).ok()?;
        fault(&log)
    };
    let mut found = look()?;
    for _ in 1..LOOKS {
        std::thread::sleep(LOOK);
        let again = look()?;
        if again == found {
            break;
        }
        found = again;
    }
    let path = log_path(&store);
    Some(format!(
        "the store's log {} is not as it was written: {found}; what was stored last may be missing. A \
         disk or a memory that changes data does this, and a machine that went down while it wrote",
        path.display()
    ))
}

/// How a log was changed, as far as it shows.
fn fault(log: &[u8]) -> Option<String> {
    if log.is_empty() {
        return None;
    }
    let Some(header) = Header::of(log) else {
        // SQLite takes none of it.
        return Some("its head does not fit its checksum".to_owned());
    };
    let frames = log.get(HEADER..).unwrap_or_default().chunks(FRAME + header.page);
    let mut sum = header.sum;
    // The first frame that SQLite does not take.
    let mut end = None;
    for (number, frame) in (1u32..).zip(frames) {
        let kin = header.kin(frame);
        match end {
            None if kin == Kin::Of => match header.next(sum, frame) {
                Some(next) => sum = next,
                // What a writer was killed in is not whole, and then the file ends.
                None if frame.len() < FRAME + header.page => return None,
                None => return Some(format!("frame {number} does not fit its checksum")),
            },
            None => end = Some((number, kin)),
            Some((first, _)) if kin == Kin::Of => {
                return Some(format!(
                    "frame {first} does not belong to it, and frame {number} does"
                ));
            }
            Some(_) => {}
        }
    }
    match end {
        Some((number, Kin::Neither)) => Some(format!("frame {number} does not belong to it")),
        _ => None,
    }
}

/// Whose a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kin {
    /// Of this log.
    Of,
    /// Of one that was in the file before, whose frames are written over one by one.
    Before,
    Neither,
}

struct Header {
    page: usize,
    big: bool,
    /// How often the log began anew in this file.
    times: u32,
    salts: (u32, u32),
    sum: (u32, u32),
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
        (fits && page >= 512).then_some(Self { page, big, times: word(12)?, salts, sum })
    }

    fn kin(&self, frame: &[u8]) -> Kin {
        let (Some(first), Some(second)) = (big_endian(frame, 8), big_endian(frame, 12)) else {
            return Kin::Before;
        };
        // The first salt counts; the second is a random one each time.
        let before = self.salts.0.wrapping_sub(first);
        match (before, second == self.salts.1) {
            (0, true) => Kin::Of,
            (1.., false) if before <= self.times => Kin::Before,
            _ => Kin::Neither,
        }
    }

    /// The checksum up to a frame, if it is the one stored in it.
    fn next(&self, sum: (u32, u32), frame: &[u8]) -> Option<(u32, u32)> {
        let content = frame.get(FRAME..).filter(|content| content.len() == self.page)?;
        let sum = summed(summed(sum, frame.get(..8)?, self.big), content, self.big);
        // A frame of page 0 is none.
        let is_page = big_endian(frame, 0)? != 0;
        let stored = (big_endian(frame, 16)?, big_endian(frame, 20)?);
        (is_page && sum == stored).then_some(sum)
    }
}

fn big_endian(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// SQLite's checksum over pairs of words, from where another ended.
fn summed((mut one, mut two): (u32, u32), bytes: &[u8], big: bool) -> (u32, u32) {
    let word =
        |four: [u8; 4]| if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) };
    for &[a, b, c, d, e, f, g, h] in bytes.as_chunks::<8>().0 {
        one = one.wrapping_add(word([a, b, c, d])).wrapping_add(two);
        two = two.wrapping_add(word([e, f, g, h])).wrapping_add(one);
    }
    (one, two)
}
