use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Statx, StatxFlags};
use serde::Serialize;
use units::Bytes;

use crate::block::BlockDevice;

/// Smallest units of direct I/O on a file, if they are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Alignment {
    /// Direct I/O is there, with these units.
    Known(DirectAlignment),
    /// The kernel says that there is no direct I/O on this file.
    Unsupported,
    /// Neither the kernel nor a device below says.
    Unknown,
}

/// Smallest units of direct I/O.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DirectAlignment {
    /// Offsets in the file, and lengths, must be whole multiples of it.
    pub offset: Bytes,
    /// Addresses in memory must be whole multiples of it.
    pub memory: Bytes,
    /// Who says so.
    pub source: AlignmentSource,
}

/// Who told the units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlignmentSource {
    /// `statx` with `STATX_DIOALIGN`, Linux 6.1 and later, for this very file.
    Kernel,
    /// The logical sector of the device at the top, by this name: what every kernel wants at
    /// least. A file system may want more (its block size).
    Device(String),
}

impl Alignment {
    /// Unit of offsets and lengths, if known.
    pub fn unit(&self) -> Option<Bytes> {
        match self {
            Self::Known(known) => Some(known.offset),
            Self::Unsupported | Self::Unknown => None,
        }
    }
}

/// Units of direct I/O on what is at `path`.
///
/// * `devices`: those below it, top first, for kernels that do not say.
///
/// The kernel says it for regular files and block devices only; ask again with the file when a
/// directory's file has been made.
pub fn direct_alignment(path: &Path, devices: &[BlockDevice]) -> Alignment {
    let mask = StatxFlags::DIOALIGN | StatxFlags::TYPE;
    judge(rustix::fs::statx(CWD, path, AtFlags::empty(), mask).ok(), devices)
}

/// The same of an open file.
pub fn direct_alignment_of(file: impl AsFd, devices: &[BlockDevice]) -> Alignment {
    let mask = StatxFlags::DIOALIGN | StatxFlags::TYPE;
    judge(rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, mask).ok(), devices)
}

fn judge(answer: Option<Statx>, devices: &[BlockDevice]) -> Alignment {
    let said = answer.filter(|a| a.stx_mask & StatxFlags::DIOALIGN.bits() != 0).map(|a| {
        (Bytes::new(a.stx_dio_offset_align.into()), Bytes::new(a.stx_dio_mem_align.into()))
    });
    choose(said, devices)
}

/// * `said`: by the kernel, offset then memory; zeros mean that there is no direct I/O.
fn choose(said: Option<(Bytes, Bytes)>, devices: &[BlockDevice]) -> Alignment {
    match said {
        Some((Bytes::ZERO, _)) => Alignment::Unsupported,
        Some((offset, memory)) => {
            Alignment::Known(DirectAlignment { offset, memory, source: AlignmentSource::Kernel })
        }
        None => {
            let sector = devices.first().and_then(|d| Some((d.name.clone(), d.logical_sector?)));
            sector.map_or(Alignment::Unknown, |(name, sector)| {
                Alignment::Known(DirectAlignment {
                    offset: sector,
                    memory: sector,
                    source: AlignmentSource::Device(name),
                })
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_from_the_kernel_means_no_direct_io() {
        assert_eq!(choose(Some((Bytes::ZERO, Bytes::ZERO)), &[]), Alignment::Unsupported);
        assert_eq!(choose(None, &[]), Alignment::Unknown);
        let known = choose(Some((Bytes::new(512), Bytes::new(4))), &[]);
        assert_eq!(known.unit(), Some(Bytes::new(512)));
    }

    #[test]
    fn path_and_file_get_the_same_answer() {
        let path = std::env::current_exe().unwrap();
        let file = std::fs::File::open(&path).unwrap();
        assert_eq!(direct_alignment(&path, &[]), direct_alignment_of(&file, &[]));
    }
}
