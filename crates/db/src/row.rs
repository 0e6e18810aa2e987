/// Letters of a row: no compressing storage makes less than six eighths of them.
const PAD: usize = 88;
/// Bytes of the row's own data: a 4-byte session, an 8-byte number, the pad.
pub(crate) const ROW_BYTES: u32 = 4 + 8 + PAD as u32;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

/// The next row of a session. The same key and session give the same rows.
#[derive(Debug)]
pub(crate) struct Row {
    pub session: i32,
    pub n: i64,
    pub pad: String,
    state: u64,
}

impl Row {
    pub fn new(key: u64, session: i32) -> Self {
        // Never 0, where xorshift stays.
        let state = (key ^ (session as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1;
        Self { session, n: 0, pad: String::with_capacity(PAD), state }
    }

    /// Makes the next row in place: nothing is allocated.
    pub fn advance(&mut self) {
        self.n += 1;
        self.pad.clear();
        while self.pad.len() < PAD {
            // Marsaglia, Xorshift RNGs (2003), the triple 13, 7, 17.
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let letters = (0..8).map(|i| LETTERS[(self.state >> (6 * i + 8)) as usize & 63]);
            self.pad.extend(letters.map(char::from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_differ_and_are_made_again() {
        let rows = |key, session| {
            let mut row = Row::new(key, session);
            let mut pads = Vec::new();
            for _ in 0..50 {
                row.advance();
                assert_eq!(row.pad.len(), PAD);
                pads.push(row.pad.clone());
            }
            pads
        };
        let first = rows(7, 1);
        assert_eq!(first, rows(7, 1));
        assert_ne!(first, rows(7, 2));
        let different: std::collections::BTreeSet<_> = first.iter().collect();
        assert_eq!(different.len(), 50);
    }
}
