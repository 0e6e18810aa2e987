//! What one should know about a stack before it is built.

use units::Bytes;

use crate::array::Level;
use crate::sheet::{Question, Sheet};
use crate::stack::{FileSystemKind, Maker};
use crate::whole::Whole;

/// The largest stripe unit of xfs's log.
const XFS_LOG_UNIT_MAX: Bytes = Bytes::kib(256);

/// Sentences, the most important first.
pub fn of(sheet: &Sheet, whole: &Whole, question: &Question) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(misaligned(sheet, question));
    remarks.extend(pieces(sheet));
    remarks.extend(guessed(sheet));
    remarks.extend(never_full(sheet, whole));
    remarks.extend(nothing_to_lose(sheet));
    remarks.extend(by_maker(sheet));
    remarks.extend(of_file_system(sheet));
    remarks
}

fn misaligned(sheet: &Sheet, question: &Question) -> Option<String> {
    let by = question.misaligned_by.get();
    let width = sheet.leg.and_then(|leg| leg.data_width)?;
    (!by.is_multiple_of(width.get())).then(|| {
        format!(
            "Data begins {} behind a full stripe ({} of data): writes of whole stripes touch two, \
             and read the rest of both.",
            spaced(Bytes::new(by % width.get())),
            spaced(width)
        )
    })
}

/// Pieces of the stripe over the legs against full stripes of a leg.
fn pieces(sheet: &Sheet) -> Option<String> {
    let piece = sheet.top?.chunk?;
    let leg = sheet.leg?;
    let width = leg.data_width.filter(|_| leg.level.parity() > 0)?;
    if piece.is_multiple_of(width) {
        return None;
    }
    let what = format!(
        "A piece of the stripe over the legs is {}, a full stripe of a leg {}: pieces are no whole \
         stripes, so a write of one piece reads.",
        spaced(piece),
        spaced(width)
    );
    let power = width.get().is_power_of_two();
    let lvm = sheet.stack.stripe.as_ref().is_some_and(|stripe| stripe.maker == Maker::Lvm);
    let way = if lvm && !power {
        let parity = leg.level.parity();
        let below = (1 << leg.data_chunks.ilog2()) + parity;
        let above = leg.data_chunks.next_power_of_two() + parity;
        let counts = if below < leg.level.members_min() {
            above.to_string()
        } else {
            format!("{below} or {above}")
        };
        format!(
            " LVM takes powers of two only: use legs of {counts} members, or join them by md with \
             pieces of {}.",
            spaced(width)
        )
    } else {
        format!(" Use pieces of {} or a multiple.", spaced(width))
    };
    Some(what + &way)
}

/// Sizes that are asked for and never fill a stripe.
fn never_full(sheet: &Sheet, whole: &Whole) -> Option<String> {
    let leg = whole.leg().filter(|leg| leg.level().parity() > 0)?;
    let width = leg.data_width()?;
    let page = sheet.writes.iter().find(|cost| cost.size == Bytes::kib(8))?;
    (page.without_reads == 0.0).then(|| {
        format!(
            "Database pages of 8 KiB are far below a full stripe ({} of data): each write costs {} \
             reads and {} writes of members.",
            spaced(width),
            number(page.reads),
            number(page.writes)
        )
    })
}

fn nothing_to_lose(sheet: &Sheet) -> Option<String> {
    let plain = sheet.leg.is_none() && sheet.members == 1;
    let what = if sheet.leg.is_none() {
        "What a leg bears by itself is not known here: it may be an array of a controller. A leg that \
         is lost whole takes all data with it."
    } else {
        "No member may be lost: the first that fails takes all data with it."
    };
    (sheet.tolerance.sure == 0 && !plain).then(|| what.to_owned())
}

/// A guess is said to be one.
fn guessed(sheet: &Sheet) -> Option<String> {
    sheet.stack.stripe.as_ref().filter(|stripe| stripe.chunk.is_none())?;
    let piece = sheet.top?.chunk.filter(|_| sheet.leg.is_none())?;
    Some(format!(
        "Pieces of {} are a guess: how wide a full stripe of a leg is cannot be known here. If the \
         legs are arrays of a controller, say `--stripe-chunk`: its chunk x data drives.",
        spaced(piece)
    ))
}

fn by_maker(sheet: &Sheet) -> Option<String> {
    let leg = sheet.stack.legs.first()?;
    let remark = match (leg.maker, leg.level?) {
        (Maker::Btrfs, Level::Raid5 | Level::Raid6) => {
            "The parity levels of btrfs can lose data when the power fails during a write: its \
             makers advise against them."
        }
        (Maker::Btrfs, _) => {
            "Btrfs never writes in place, so there is no cost per write size; files with \
             `chattr +C` are the exception."
        }
        (Maker::Zfs, Level::Raid5 | Level::Raid6) => {
            "Raidz cuts each record anew over its members and never reads before it writes; small \
             records pay with space for their parity instead."
        }
        (Maker::Zfs, _) => "Zfs never writes in place, so there is no cost per write size.",
        (Maker::Md, Level::Raid01) => {
            "After one loss the whole half of the mirror is gone, and all of it has to be filled: \
             raid10 bears more and is rebuilt sooner."
        }
        _ => return None,
    };
    Some(remark.to_owned())
}

fn of_file_system(sheet: &Sheet) -> Option<String> {
    let kind = sheet.stack.file_system.as_ref()?.kind;
    let told = sheet.told;
    match kind {
        FileSystemKind::Xfs => {
            let unit = told.filter(|told| told.unit > XFS_LOG_UNIT_MAX)?.unit;
            Some(format!(
                "The log of xfs takes stripe units up to 256 KiB: mkfs.xfs says that {} is too \
                 large for it and uses 32 KiB for the log alone.",
                spaced(unit)
            ))
        }
        FileSystemKind::Jfs | FileSystemKind::Nilfs2 | FileSystemKind::F2fs => {
            sheet.leg.or(sheet.top)?.data_width?;
            Some(format!("{kind} cannot be told about stripes: where its files begin is chance."))
        }
        _ => None,
    }
}

/// Exact, with a space before the unit: `384 KiB`.
pub fn spaced(size: Bytes) -> String {
    let text = size.exact();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    format!("{number} {unit}")
}

/// `2`, `1.5`.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), ToOwned::to_owned)
}
