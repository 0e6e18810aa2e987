//! What a file system is told about the stripes below it.

use units::Bytes;

use crate::array::Geometry;
use crate::stack::FileSystemKind;

/// Block size of the file systems of the ext family, unless another is asked for.
const EXT_BLOCK: Bytes = Bytes::kib(4);

/// The largest stripe unit and width that the format of xfs holds, each.
const XFS_STRIPE_MAX: Bytes = Bytes::gib(1);

/// From here on xfs chooses its allocation groups itself, over stripes: the 520 MiB that it needs, and some more
/// for versions with another log.
const XFS_GROUPS_OWN: Bytes = Bytes::mib(640);

/// Words for `mkfs` that tell a file system about stripes; none where it takes none.
///
/// * ext2, ext3, ext4: `stride` and `stripe_width`, in blocks of its own.
/// * xfs: `su` in bytes, `sw` in units.
/// * The others take none: btrfs and zfs make their own stripes, jfs, nilfs2 and f2fs do not look.
pub fn stripe_words(kind: FileSystemKind, geometry: Option<Geometry>, block: Bytes) -> Vec<String> {
    let Some(told) = told(kind, geometry, block) else { return Vec::new() };
    let (unit, count) = (told.unit.get(), told.count);
    match kind {
        FileSystemKind::Xfs => vec!["-d".to_owned(), format!("su={unit},sw={count}")],
        _ => {
            let stride = unit / block.get();
            let width = stride * u64::from(count);
            vec!["-E".to_owned(), format!("stride={stride},stripe_width={width}")]
        }
    }
}

/// Words for `mkfs` that make a small file system possible over stripes; none where it needs none.
///
/// xfs cuts a striped device into twice as many allocation groups as a plain one, and its log, 64 MiB at the least,
/// has to fit into one of them: below 520 MiB `mkfs.xfs` 6.1 refuses by its own choice. With the four of a plain
/// device it makes them down to its floor of 300 MiB.
///
/// * `size`: of what it is made on.
/// * `options`: the operator's words; who chooses groups keeps them.
pub fn group_words(
    kind: FileSystemKind,
    geometry: Option<Geometry>,
    size: Bytes,
    options: &[String],
) -> Vec<String> {
    let chosen = options.iter().any(|word| word.contains("agcount") || word.contains("agsize"));
    if kind != FileSystemKind::Xfs || geometry.is_none() || size >= XFS_GROUPS_OWN || chosen {
        return Vec::new();
    }
    vec!["-d".to_owned(), "agcount=4".to_owned()]
}

/// The geometry that a file system can be told; `None` where it takes none, or not this one.
pub fn told(kind: FileSystemKind, geometry: Option<Geometry>, block: Bytes) -> Option<Geometry> {
    let geometry = geometry.filter(|geometry| geometry.unit.is_multiple_of(block))?;
    match kind {
        FileSystemKind::Ext2 | FileSystemKind::Ext3 | FileSystemKind::Ext4 => {
            (geometry.width() <= Bytes::gib(1)).then_some(geometry)
        }
        FileSystemKind::Xfs => (geometry.width() <= XFS_STRIPE_MAX).then_some(geometry),
        _ => None,
    }
}

/// The block size among the words for a `mkfs`, or what it is without.
///
/// `-b 1024` and `-b size=1k` are understood, and written in one word.
pub fn block_size(options: &[String]) -> Bytes {
    let mut words = options.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("-b") {
            Some("") => words.next(),
            rest => rest,
        };
        let size = value.and_then(|value| value.trim_start_matches("size=").parse::<Bytes>().ok());
        if let Some(size) = size.filter(|size| size.get() > 0) {
            return size;
        }
    }
    EXT_BLOCK
}

/// Bytes below which a `mkfs` refuses, or makes something that cannot be mounted.
///
/// A floor: with large stripes it may want more.
pub const fn size_min(kind: FileSystemKind) -> Bytes {
    match kind {
        FileSystemKind::Xfs => Bytes::mib(300),
        FileSystemKind::Nilfs2 => Bytes::mib(128),
        FileSystemKind::Btrfs => Bytes::mib(110),
        FileSystemKind::F2fs | FileSystemKind::Zfs => Bytes::mib(64),
        FileSystemKind::Jfs => Bytes::mib(16),
        FileSystemKind::Ext2 | FileSystemKind::Ext3 | FileSystemKind::Ext4 => Bytes::mib(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn block_sizes_are_found_among_other_words() {
        for (options, size) in [
            (&["-b", "1024"][..], 1024),
            (&["-O", "x", "-b1024"], 1024),
            (&["-b", "size=2k"], 2048),
            (&["-m", "0"], 4096),
            (&["-b"], 4096),
            (&["-b", "0"], 4096),
        ] {
            assert_eq!(block_size(&words(options)), Bytes::new(size), "{options:?}");
        }
    }

    #[test]
    fn stripes_are_told_in_each_file_systems_own_way() {
        let stripes = Some(Geometry { unit: Bytes::kib(128), count: 4 });
        let told = |kind, block| stripe_words(kind, stripes, Bytes::new(block)).join(" ");
        assert_eq!(told(FileSystemKind::Ext4, 4096), "-E stride=32,stripe_width=128");
        assert_eq!(told(FileSystemKind::Ext4, 1024), "-E stride=128,stripe_width=512");
        assert_eq!(told(FileSystemKind::Xfs, 4096), "-d su=131072,sw=4");
        assert_eq!(told(FileSystemKind::Jfs, 4096), "");
        assert_eq!(stripe_words(FileSystemKind::Xfs, None, Bytes::kib(4)), [""; 0]);
        // A unit that is no whole number of blocks cannot be told.
        let odd = Some(Geometry { unit: Bytes::kib(4), count: 4 });
        assert_eq!(stripe_words(FileSystemKind::Ext4, odd, Bytes::kib(64)), [""; 0]);
    }

    #[test]
    fn a_small_striped_xfs_is_given_few_groups() {
        let stripes = Some(Geometry { unit: Bytes::kib(32), count: 2 });
        let of = |kind, stripes, mib, options: &[&str]| {
            group_words(kind, stripes, Bytes::mib(mib), &words(options)).join(" ")
        };
        assert_eq!(of(FileSystemKind::Xfs, stripes, 448, &["-m", "crc=1"]), "-d agcount=4");
        assert_eq!(of(FileSystemKind::Xfs, stripes, 640, &[]), "", "large enough");
        assert_eq!(of(FileSystemKind::Xfs, None, 448, &[]), "", "four are its own choice there");
        assert_eq!(of(FileSystemKind::Ext4, stripes, 448, &[]), "");
        // `mkfs.xfs` refuses to be told twice.
        for own in [&["-d", "agcount=2"][..], &["-dagsize=100m"]] {
            assert_eq!(of(FileSystemKind::Xfs, stripes, 448, own), "", "{own:?}");
        }
    }
}
