//! Serial numbers as a record may have them.
//!
//! A hash alone is no secret: makers number their drives in order, and all numbers of a maker are
//! tried in seconds. So they are hashed with a key that never gets into a record or a report: the
//! machine's id. The same drive is told again on the same machine, in every store.

use std::hash::Hasher;

use crate::host::Host;

/// Before the digits; what was hashed without a key has only the first character.
const MARK: &str = "#1-";
const DIGITS: usize = 16;
/// The same number hashed for another purpose is another text.
const PURPOSE: &[u8] = b"plimsoll serial\0";
/// systemd's, and that of D-Bus before it.
const IDS: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// Whether serial numbers are written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Serials {
    /// As `#1-` and 16 hex digits: the same drive can be told again on this machine, and nobody
    /// learns its number. Left out where the machine has no id.
    #[default]
    Hashed,
    /// As they are.
    Plain,
}

/// How serial numbers of a machine are written down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    serials: Serials,
    key: Option<u128>,
}

impl Shown {
    pub(super) fn new(host: &Host, serials: Serials) -> Self {
        // Not through the host's own reading: a capture writes down what that reads.
        let read = |path: &&str| std::fs::read_to_string(host.path(path)).ok();
        Self { serials, key: IDS.iter().find_map(|path| key(&read(path)?)) }
    }

    /// `None` where it has to be left out.
    pub(super) fn text(&self, serial: &str) -> Option<String> {
        let serial = serial.trim();
        match (self.serials, self.key) {
            (Serials::Plain, _) => Some(serial.to_owned()),
            // Hashed before it came here: in a captured tree.
            _ if is_hashed(serial) => Some(serial.to_owned()),
            (Serials::Hashed, Some(key)) => Some(hashed(key, serial)),
            (Serials::Hashed, None) => None,
        }
    }
}

/// 32 hex digits; systemd has a word in their place until the first start.
fn key(text: &str) -> Option<u128> {
    let text = text.trim();
    let is_id = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(text, 16).ok().filter(|&id| is_id && id != 0)
}

fn hashed(key: u128, serial: &str) -> String {
    #[expect(
        deprecated,
        reason = "SipHash 2-4 under a key of ours; the hasher that replaced it takes none"
    )]
    let mut hasher = std::hash::SipHasher::new_with_keys((key >> 64) as u64, key as u64);
    hasher.write(PURPOSE);
    hasher.write(serial.as_bytes());
    format!("{MARK}{:016x}", hasher.finish())
}

fn is_hashed(serial: &str) -> bool {
    let digits = serial.strip_prefix(MARK).or_else(|| serial.strip_prefix('#'));
    digits.is_some_and(|hex| {
        hex.len() == DIGITS && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef\n";

    fn on(id: &str) -> Shown {
        Shown { serials: Serials::Hashed, key: key(id) }
    }

    #[test]
    fn a_drive_is_told_again_on_its_machine_and_nowhere_else() {
        let once = on(ID).text("S3X9NX0J\n").unwrap();
        assert!(is_hashed(&once) && once.starts_with(MARK), "{once}");
        assert_eq!(on(ID).text("S3X9NX0J"), Some(once.clone()));
        assert_eq!(on(ID).text(&once), Some(once.clone()));
        assert_ne!(on(ID).text("S3X9NX0K"), Some(once.clone()));
        // Who knows the number and not the machine's id does not find it.
        assert_ne!(on(&ID.replace('0', "1")).text("S3X9NX0J"), Some(once));
    }

    #[test]
    fn the_hash_is_siphash_under_that_key() {
        // The test vector of its authors for 15 bytes 0..14 under the key 0..15.
        let mut hasher = {
            #[expect(deprecated, reason = "the same as above")]
            std::hash::SipHasher::new_with_keys(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)
        };
        hasher.write(&(0..15).collect::<Vec<u8>>());
        assert_eq!(hasher.finish(), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn without_an_id_nothing_is_written_down() {
        for id in ["", "uninitialized\n", "0123", &"0".repeat(32), &format!("+{}", "1".repeat(31))]
        {
            assert_eq!(on(id).text("S3X9NX0J"), None, "{id:?}");
        }
        assert_eq!(on("").text("#0123456789abcdef").as_deref(), Some("#0123456789abcdef"));
        let plain = Shown { serials: Serials::Plain, key: None };
        assert_eq!(plain.text(" S1 ").as_deref(), Some("S1"));
    }
}
